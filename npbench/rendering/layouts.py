"""Where vertices and their numbers go: a circle in index order, or positions in the plane."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, cos, hypot, inf, pi, sin

import numpy as np

from npbench.rendering.geometry import Array, box_box, box_point, box_segment, point_segment
from npbench.rendering.legibility import EDGE_GAP, LABEL_GAP, RIM, VERTEX_GAP
from npbench.rendering.panels import GraphPanel
from npbench.rendering.scene import Disc, Label, Line
from npbench.rendering.text import TEXT_SIZES, Text, centred, glyphs

__all__ = ["GraphMarks", "circle", "plane", "scattered"]

_PADDING = 6
"""Between the panel's side and the outermost disc or number."""
_BESIDE = 4
"""Between a disc and the number outside of it; whole pixels may take a half off."""
_DOT_RADII = (8, 7, 6, 5)
"""Radii of discs that are too small for their number."""
_ROOMY = 1.5
"""An edge shall pass a foreign vertex at this many radii, if there is room for it."""
_SEEN = 12.0
"""Length of an edge between two discs that is seen at least, where discs may come that close."""
_SLACK = 0.1
"""Over the gaps of the proof: stored coordinates are rounded to 0.01."""
_SIDES = ((0, -1), (0, 1), (1, 0), (-1, 0), (1, -1), (-1, -1), (1, 1), (-1, 1))
"""Where the number of a dot may stand, best first."""


@dataclass(frozen=True, slots=True)
class GraphMarks:
    """A graph in its place."""

    discs: tuple[Disc, ...]
    lines: tuple[Line, ...]
    labels: tuple[Label, ...]


@dataclass(frozen=True, slots=True)
class _Shape:
    """Positions within the square from (-1, -1) to (1, 1), before they are scaled."""

    points: Array
    spacing: float
    """Smallest distance of two positions."""
    clearance: float
    """Smallest distance of an edge from a vertex in which it does not end."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """A radius of the discs and what it takes."""

    r: float
    text_size: int
    """Font size of the numbers in the discs; 0 where they stand outside."""
    clearance: float
    """From the centre of a disc to a foreign edge."""
    reserve: float
    """Width of the strip that numbers outside take."""


def circle(panel: GraphPanel, *, left: int, top: int, size: int) -> GraphMarks | None:
    """Vertices on a circle, vertex 0 at the top, clockwise; None where ``size`` is too small.

    In convex position no edge passes through a vertex: the chord past one neighbour comes
    nearest, and the discs are made small enough for it. Numbers stand in their discs where an
    11 px digit fits, else outside of the circle, where no edge goes.

    Args:
        panel: The graph.
        left: Left side of the square to fill.
        top: Its upper side.
        size: Its side.
    """
    n = panel.num_vertices
    angles = [2 * pi * vertex / n for vertex in range(n)]
    outwards = [(sin(angle), -cos(angle)) for angle in angles]
    shape = _Shape(
        points=np.array(outwards),
        spacing=2 * sin(pi / n) if n > 1 else inf,
        # The chord past one neighbour, drawn or not: pictures of one size look alike.
        clearance=1 - cos(2 * pi / n) if panel.edges and n > 3 else inf,
    )
    middle = (left + size / 2, top + size / 2)
    for choice, scale in _fitting(panel, shape, size):
        discs = _discs(shape, middle, scale, choice.r)
        if choice.text_size:
            texts = [_inside(disc, choice.text_size) for disc in discs]
        else:
            texts = [_outside(disc, way) for disc, way in zip(discs, outwards, strict=True)]
        return _marks(panel, discs, texts, inside=choice.text_size > 0)
    return None


def plane(panel: GraphPanel, *, left: int, top: int, size: int) -> GraphMarks | None:
    """Vertices at the panel's coordinates; None where two come too close for ``size``.

    Args:
        panel: The graph, with coordinates.
        left: Left side of the square to fill.
        top: Its upper side.
        size: Its side.
    """
    positions = np.array(panel.coordinates, dtype=float) * (1.0, -1.0)
    return _scattered(panel, positions, gap=VERTEX_GAP, outside=True, left=left, top=top, size=size)


def scattered(
    panel: GraphPanel, positions: Array, *, left: int, top: int, size: int
) -> GraphMarks | None:
    """Vertices at positions (n, 2), scaled to the square; None where that is too close.

    Between two discs so much of an edge is seen that it is not taken for none.

    Args:
        panel: The graph.
        positions: One row for each vertex, y downwards.
        left: Left side of the square to fill.
        top: Its upper side.
        size: Its side.
    """
    return _scattered(panel, positions, gap=_SEEN, outside=False, left=left, top=top, size=size)


def _scattered(
    panel: GraphPanel,
    positions: Array,
    *,
    gap: float,
    outside: bool,
    left: int,
    top: int,
    size: int,
) -> GraphMarks | None:
    """Discs at least ``gap`` apart; ``outside`` allows numbers beside dots where they are not."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    points = (positions - (low + high) / 2) / max((high - low).max() / 2, 1.0)
    apart = np.hypot(*(points[:, None] - points).T)
    np.fill_diagonal(apart, inf)
    shape = _Shape(points, float(apart.min(initial=inf)), _clearance(points, panel.edges))
    middle = (left + size / 2, top + size / 2)
    for choice, scale in _fitting(panel, shape, size, gap=gap):
        discs = _discs(shape, middle, scale, choice.r)
        if choice.text_size:
            texts = [_inside(disc, choice.text_size) for disc in discs]
        else:
            texts = _around(panel, discs) if outside else []
        if texts:
            return _marks(panel, discs, texts, inside=choice.text_size > 0)
    return None


def _clearance(points: Array, edges: Sequence[tuple[int, int]]) -> float:
    if not edges:
        return inf
    segments = np.array([[*points[u], *points[v]] for u, v in edges])
    distances = point_segment(points, segments)
    for index, (u, v) in enumerate(edges):
        distances[[u, v], index] = inf
    return float(distances.min())


def _fitting(
    panel: GraphPanel, shape: _Shape, size: int, *, gap: float = VERTEX_GAP
) -> Iterator[tuple[_Choice, float]]:
    """The choices that keep all gaps at ``size``, best first, each with the shape's scale."""
    for choice in _choices(panel, size):
        scale = size / 2 - _PADDING - choice.reserve - choice.r
        wide = scale * shape.spacing >= 2 * choice.r + gap + _SLACK
        if wide and scale * shape.clearance >= choice.clearance:
            yield choice, scale


def _choices(panel: GraphPanel, size: int) -> Iterator[_Choice]:
    numbers = [str(vertex) for vertex in range(panel.num_vertices)]
    extents = {text_size: _extent(numbers, text_size) for text_size in TEXT_SIZES}
    least = ceil(10 * (extents[TEXT_SIZES[-1]] / 2 + RIM)) / 10
    for r in range(12 + size // 64, ceil(least) - 1, -1):
        text_size = next(s for s in TEXT_SIZES if extents[s] / 2 + RIM <= r)
        yield _Choice(r, text_size, _ROOMY * r, reserve=0)
    yield _Choice(least, TEXT_SIZES[-1], least + EDGE_GAP + _SLACK, reserve=0)
    for r in _DOT_RADII:
        clearance = max(_ROOMY * r, r + EDGE_GAP + _SLACK)
        yield _Choice(r, 0, clearance, reserve=_BESIDE + extents[TEXT_SIZES[-1]])


def _extent(texts: Sequence[str], size: int) -> float:
    """The largest diagonal of the texts, with a pixel to place them on whole pixels."""
    inks = [glyphs(text, size, bold=True).ink for text in texts]
    return max(hypot(x1 - x0 + 1, y1 - y0 + 1) for x0, y0, x1, y1 in inks)


def _discs(shape: _Shape, middle: tuple[float, float], scale: float, r: float) -> tuple[Disc, ...]:
    centres = np.round(np.array(middle) + scale * shape.points, 2).tolist()
    return tuple(Disc(vertex, x, y, r) for vertex, (x, y) in enumerate(centres))


def _inside(disc: Disc, text_size: int) -> Text:
    return centred(str(disc.vertex), disc.x, disc.y, size=text_size, bold=True)


def _outside(disc: Disc, way: tuple[float, float]) -> Text:
    """The number next to its disc, in the direction of the unit vector ``way``."""
    size = TEXT_SIZES[-1]
    x0, y0, x1, y1 = glyphs(str(disc.vertex), size, bold=True).ink
    away = disc.r + _BESIDE + (abs(way[0]) * (x1 - x0) + abs(way[1]) * (y1 - y0)) / 2
    x, y = disc.x + way[0] * away, disc.y + way[1] * away
    return centred(str(disc.vertex), x, y, size=size, bold=True)


def _around(panel: GraphPanel, discs: Sequence[Disc]) -> list[Text]:
    """Each number on the first side of its disc that is free; no texts where one has none."""
    centres = np.array([(disc.x, disc.y) for disc in discs])
    segments = np.array([[*centres[u], *centres[v]] for u, v in panel.edges]).reshape(-1, 4)
    texts: list[Text] = []
    for disc in discs:
        others = np.delete(centres, disc.vertex, axis=0)
        taken = np.array([text.box for text in texts], dtype=float).reshape(-1, 4)
        for side in _SIDES:
            length = hypot(*side)
            text = _outside(disc, (side[0] / length, side[1] / length))
            box = np.array([text.box], dtype=float)
            free = (
                box_point(box, others).min(initial=inf) >= disc.r + 2 * _BESIDE
                and box_box(box, taken).min(initial=inf) >= LABEL_GAP
                and box_segment(box, segments).min(initial=inf) >= LABEL_GAP
            )
            if free:
                texts.append(text)
                break
        else:
            return []
    return texts


def _marks(
    panel: GraphPanel, discs: tuple[Disc, ...], texts: Sequence[Text], *, inside: bool
) -> GraphMarks:
    ends = [(disc.x, disc.y) for disc in discs]
    lines = tuple(Line(u, v, (ends[u], ends[v])) for u, v in panel.edges)
    labels = tuple(
        Label(text, f"vertex {disc.vertex}", inside=inside)
        for disc, text in zip(discs, texts, strict=True)
    )
    return GraphMarks(discs, lines, labels)
