"""Student's intervals over seeds: the seed is the unit, whatever lies inside it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from npbench.errors import InputError

__all__ = ["LEVEL", "Spread", "holm", "over_seeds", "paired"]

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Spread:
    """A mean over seeds."""

    mean: float
    low: float | None
    """None for a single seed."""
    high: float | None
    p: float | None
    """Two-sided, of Student's test that the mean is 0."""
    n: int


def over_seeds(values: Sequence[float], *, level: float = LEVEL) -> Spread | None:
    """Mean and Student's interval of one value a seed; None without values.

    Seeds that all agree have an interval of width 0, and p is 0, or 1 where the mean is 0.

    Raises:
        InputError: If scipy, which several seeds need, is not installed.

    Example:
        >>> found = over_seeds([1.0, 2.0, 3.0])
        >>> found.mean, round(found.low, 3), round(found.high, 3), round(found.p, 4)
        (2.0, -0.484, 4.484, 0.0742)

    References:
        Student, The probable error of a mean, Biometrika 6, 1908.
    """
    n = len(values)
    if not n:
        return None
    mean = math.fsum(values) / n
    if n == 1:
        return Spread(mean, None, None, None, 1)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    error = deviation / math.sqrt(n)
    # differences of equal numbers leave rounding behind
    if error <= 1e-12 * max(1.0, abs(mean)):
        return Spread(mean, mean, mean, 1.0 if abs(mean) <= 1e-12 else 0.0, n)
    try:
        from scipy.stats import t
    except ImportError as fault:
        raise InputError("intervals over seeds need: pip install 'npbench[eval]'") from fault
    half = float(t.ppf((1 + level) / 2, n - 1)) * error
    p = 2 * float(t.sf(abs(mean) / error, n - 1))
    return Spread(mean, mean - half, mean + half, p, n)


def paired(
    first: Mapping[int, float], second: Mapping[int, float], *, level: float = LEVEL
) -> Spread | None:
    """First minus second over the seeds that both have; None where they share none."""
    shared = sorted(first.keys() & second.keys())
    return over_seeds([first[seed] - second[seed] for seed in shared], level=level)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's step-down adjustment: each name's smallest level at which it is rejected.

    Example:
        >>> {name: round(p, 6) for name, p in holm({"a": 0.01, "b": 0.04, "c": 0.03}).items()}
        {'a': 0.03, 'c': 0.06, 'b': 0.06}

    References:
        Holm, A simple sequentially rejective multiple test procedure, 1979.
    """
    adjusted: dict[str, float] = {}
    highest = 0.0
    ordered = sorted(p_values.items(), key=lambda pair: (pair[1], pair[0]))
    for place, (name, p) in enumerate(ordered):
        highest = max(highest, min(1.0, (len(ordered) - place) * p))
        adjusted[name] = highest
    return adjusted
