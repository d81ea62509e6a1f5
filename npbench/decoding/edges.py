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
_STRIDE = 4
"""Samples between places at which a line may have moved aside by half a pixel."""
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
    return _best_way(_smoothed(sampled(contrast, x, y)))


def _best_way(strength: Array) -> float:
    """The weakest place of the best way through strengths by offset and place.

    A drawn line bends little: from one place to the next that is looked at, ``_STRIDE`` samples on,
    it moves aside by one offset at most. Else a way could be patched up of pieces of other lines.
    """
    best = strength[:, 0]
    for place in strength[:, _STRIDE::_STRIDE].T:
        aside = np.pad(best, 1, constant_values=-np.inf)
        near = np.maximum(best, np.maximum(aside[:-2], aside[2:]))
        best = np.minimum(near, place)
    return float(best.max())


def _smoothed(strength: Array) -> Array:
    """Means along the way over a window, or over all of it where rings leave less room."""
    window = min(_WINDOW, strength.shape[1])
    return np.asarray(np.lib.stride_tricks.sliding_window_view(strength, window, axis=1).mean(-1))
