"""Edges: pairs of vertices between which a line runs without a gap."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from npbench.decoding.discs import Disc
from npbench.decoding.imaging import Array, Pixels, sampled

__all__ = ["find_edges"]

_DRAWN = 42.0
"""Contrast that a line keeps everywhere, averaged over ``_WINDOW`` samples."""
_STEP = 0.5
_WINDOW = 7
_CLEAR = 2.8
"""From the inside of a ring to where a line is seen apart from it."""
STRAIGHT = 1.0
"""How far to the side of the straight line from centre to centre a line is looked for."""


def find_edges(
    pixels: Pixels, discs: Sequence[Disc], *, aside: float = STRAIGHT
) -> set[tuple[int, int]]:
    """The edges as pairs of vertex numbers, the smaller one first."""
    return {
        (u.number, v.number)
        for u, v in combinations(discs, 2)
        if u.number != v.number
        and not any(_between(u, v, other) for other in discs)
        and _weakest(pixels.contrast, u, v, aside) > _DRAWN
    }


def _between(u: Disc, v: Disc, other: Disc) -> bool:
    """Whether the way from u to v leads over a third vertex, where every line ends."""
    if other is u or other is v:
        return False
    dx, dy = v.x - u.x, v.y - u.y
    along = ((other.x - u.x) * dx + (other.y - u.y) * dy) / (dx**2 + dy**2)
    away = abs(dx * (other.y - u.y) - dy * (other.x - u.x)) / np.hypot(dx, dy)
    return 0.0 < along < 1.0 and away < other.r


def _weakest(contrast: Array, u: Disc, v: Disc, aside: float) -> float:
    """The lowest contrast along the way from u to v; the way may bend by ``aside``."""
    length = float(np.hypot(v.x - u.x, v.y - u.y))
    along = np.arange(u.r + _CLEAR, length - v.r - _CLEAR, _STEP)
    if not len(along):
        return 255.0
    dx, dy = (v.x - u.x) / length, (v.y - u.y) / length
    offsets = np.arange(-aside, aside + 0.01, 0.5)
    x = u.x + along * dx - offsets[:, None] * dy
    y = u.y + along * dy + offsets[:, None] * dx
    strength = sampled(contrast, x, y)
    return float(_smoothed(strength.max(axis=0)).min())


def _smoothed(values: Array) -> Array:
    """Means over a window, or over all values where two rings leave less room than that."""
    window = min(_WINDOW, len(values))
    return np.convolve(values, np.full(window, 1 / window), mode="valid")
