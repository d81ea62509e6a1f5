"""TSPLIB's distance functions, with its own rounding: half a unit goes up.

References:
    Reinelt, TSPLIB 95, 1995, section 2.
"""

import math
from collections.abc import Callable, Mapping

__all__ = ["DISTANCES", "attractive", "ceiling", "euclidean", "geographical"]

Point = tuple[float, float]

_PI = 3.141592
_EARTH_RADIUS = 6378.388


def _nearest(value: float) -> int:
    """The nearest integer, halves up; ``round`` would send 2.5 to 2."""
    return int(value + 0.5)


def euclidean(a: Point, b: Point) -> int:
    """EUC_2D: the rounded distance in the plane.

    Example:
        >>> euclidean((0, 0), (2.5, 0)), euclidean((0, 0), (3, 4))
        (3, 5)
    """
    return _nearest(math.hypot(a[0] - b[0], a[1] - b[1]))


def ceiling(a: Point, b: Point) -> int:
    """CEIL_2D: the distance in the plane, rounded up.

    Example:
        >>> ceiling((0, 0), (1, 1)), ceiling((0, 0), (3, 4))
        (2, 5)
    """
    return math.ceil(math.hypot(a[0] - b[0], a[1] - b[1]))


def attractive(a: Point, b: Point) -> int:
    """ATT: the pseudo-Euclidean distance, rounded up.

    Example:
        >>> attractive((0, 0), (10, 0)), attractive((0, 0), (0, 1))
        (4, 1)
    """
    exact = math.sqrt(((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2) / 10.0)
    rounded = _nearest(exact)
    return rounded + 1 if rounded < exact else rounded


def geographical(a: Point, b: Point) -> int:
    """GEO: kilometres on a sphere between places given as degrees.minutes.

    Example:
        >>> geographical((16.47, 96.10), (16.47, 94.44))
        153
    """
    latitude_a, longitude_a = _radians(a[0]), _radians(a[1])
    latitude_b, longitude_b = _radians(b[0]), _radians(b[1])
    q1 = math.cos(longitude_a - longitude_b)
    q2 = math.cos(latitude_a - latitude_b)
    q3 = math.cos(latitude_a + latitude_b)
    cosine = 0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3)
    return int(_EARTH_RADIUS * math.acos(min(1.0, max(-1.0, cosine))) + 1.0)


def _radians(degrees_minutes: float) -> float:
    degrees = int(degrees_minutes)
    return _PI * (degrees + 5.0 * (degrees_minutes - degrees) / 3.0) / 180.0


DISTANCES: Mapping[str, Callable[[Point, Point], int]] = {
    "EUC_2D": euclidean,
    "CEIL_2D": ceiling,
    "ATT": attractive,
    "GEO": geographical,
}
"""The distance of two different cities by EDGE_WEIGHT_TYPE."""
