"""How much room there is around a vertex for a mark that covers nothing foreign."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from npbench.rendering.geometry import Array, box_point, point_segment
from npbench.rendering.scene import Scene
from npbench.rendering.styles import STYLES

__all__ = ["Edge", "Stroke", "drawn", "reach", "segments", "thickness"]

Edge = frozenset[int]
"""The two vertices that an edge joins."""
_THIN = max(style.edge_width for style in STYLES.values())
"""Width of the widest edge that a style draws."""
_THICK = (3.6, 5.0)
"""Least and greatest width of a thick line."""
_APART = 1.2
"""Between a mark and a foreign stroke."""
_WIDEST = 6.0
"""By how much a mark reaches over its disc where there is room."""
_SHARE = 0.2
"""Of the gap between two discs, what the mark of either may take."""
_RIM_OF_TEXT = 2.5
"""Around a number outside of its disc: half of the rim that parts it from what lies below."""


@dataclass(frozen=True, slots=True)
class Stroke:
    """A line in the picture, of an edge or of the solution."""

    ends: Edge
    """The vertices at its ends."""
    points: tuple[tuple[float, float], ...]
    width: float


def drawn(scene: Scene, *, thick: Collection[Edge] = (), width: float = _THIN) -> list[Stroke]:
    """The edges of a scene as they are drawn, thick ones ``width`` wide."""
    strokes = []
    for line in scene.lines:
        ends = frozenset((line.u, line.v))
        strokes.append(Stroke(ends, line.points, width if ends in thick else _THIN))
    return strokes


def segments(strokes: Iterable[Stroke]) -> Array:
    """The pieces of strokes (m, 4)."""
    pieces = [[*a, *b] for s in strokes for a, b in zip(s.points, s.points[1:], strict=False)]
    return np.array(pieces, dtype=float).reshape(-1, 4)


def thickness(scene: Scene, strokes: Sequence[Stroke]) -> float:
    """The width of thick lines along strokes: less where they pass close by a foreign vertex."""
    gap = float(_gaps(scene, [replace(stroke, width=0.0) for stroke in strokes]).min(initial=inf))
    least, greatest = _THICK
    return min(greatest, max(least, 2 * (gap - 2)))


def reach(scene: Scene, vertices: Iterable[int], strokes: Sequence[Stroke]) -> float:
    """By how much the marks of vertices may reach over their discs, one number for all of them.

    They keep ``_APART`` from the strokes that do not end in their vertex, leave most of the gap to
    other discs free and do not touch numbers that stand outside.

    Args:
        scene: The picture.
        vertices: Those to be marked.
        strokes: All lines, those of the solution included.
    """
    chosen = list(vertices)
    outside = [label.text.box for label in scene.labels if not label.inside]
    boxes = np.array(outside, dtype=float).reshape(-1, 4)
    discs = np.array([(disc.x, disc.y, disc.r) for disc in scene.discs])
    apart = np.hypot(*(discs[:, None, :2] - discs[:, :2]).T) - discs[:, 2] - discs[:, None, 2]
    np.fill_diagonal(apart, inf)
    texts = box_point(boxes, discs[:, :2]).min(axis=0, initial=inf) - discs[:, 2]
    lines = _gaps(scene, strokes).min(axis=1, initial=inf)
    rooms = np.minimum.reduce(
        [lines - _APART, _SHARE * apart.min(axis=1, initial=inf), texts - _RIM_OF_TEXT]
    )
    return float(min(_WIDEST, rooms[chosen].min(initial=inf)))


def _gaps(scene: Scene, strokes: Sequence[Stroke]) -> Array:
    """From each vertex to each piece of a stroke (n, m); infinite where the stroke ends in it."""
    discs = np.array([(disc.x, disc.y, disc.r) for disc in scene.discs]).reshape(-1, 3)
    gaps = point_segment(discs[:, :2], segments(strokes)) - discs[:, 2:]
    first = 0
    for stroke in strokes:
        last = first + len(stroke.points) - 1
        gaps[:, first:last] -= stroke.width / 2
        gaps[list(stroke.ends), first:last] = inf
        first = last
    return np.asarray(gaps)
