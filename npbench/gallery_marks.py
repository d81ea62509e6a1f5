"""Marks that show a solution in a picture, as SVG elements: rings, thick lines, rows, badges.

The colours are those of Okabe and Ito without their yellow, told apart with every kind of colour
blindness; a shape, a letter or a dash says the same again, so no mark depends on its colour.

References:
    Okabe and Ito, Color Universal Design, 2008, https://jfly.uni-koeln.de/color/.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import hypot

from npbench.rendering.scene import Cell, Disc, Scene, Table

__all__ = [
    "COLOURS",
    "badge",
    "cells",
    "crossed",
    "filled",
    "lines",
    "note",
    "ringed",
    "route",
    "rows",
    "squared",
]

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999", "#6a3d9a")
_PAPER = "#ffffff"
_BENDS = (0.0, *(sign * step / 20 for step in range(2, 17) for sign in (1, -1)))
"""Offsets of a control point from the middle of a leg, as shares of its length, flattest first."""
_SHARES = tuple(step / 40 for step in range(41))
_CLEAR = 3.5
"""From a vertex to the middle of a thick line that passes it, at least."""


def _circle(disc: Disc, r: float, attributes: str) -> str:
    return f'<circle cx="{disc.x:g}" cy="{disc.y:g}" r="{r:g}" {attributes}/>'


def ringed(scene: Scene, vertices: Iterable[int], colour: str) -> str:
    """A wide ring around each vertex."""
    stroke = f'fill="none" stroke="{colour}" stroke-width="4.5"'
    return "".join(_circle(scene.discs[v], scene.discs[v].r + 3.5, stroke) for v in vertices)


def filled(scene: Scene, vertices: Iterable[int], colour: str) -> str:
    """A disc of colour below each vertex, seen as a halo."""
    return "".join(
        _circle(scene.discs[v], scene.discs[v].r + 6, f'fill="{colour}"') for v in vertices
    )


def squared(scene: Scene, vertices: Iterable[int], colour: str) -> str:
    """A square of colour below each vertex."""
    parts = []
    for v in vertices:
        disc = scene.discs[v]
        r = disc.r + 4.5
        parts.append(
            f'<rect x="{disc.x - r:g}" y="{disc.y - r:g}" width="{2 * r:g}" height="{2 * r:g}" '
            f'fill="{colour}"/>'
        )
    return "".join(parts)


def crossed(scene: Scene, vertices: Iterable[int], colour: str) -> str:
    """A cross below each vertex, its arms seen beside the disc."""
    parts = []
    for v in vertices:
        disc = scene.discs[v]
        x, y, d = disc.x, disc.y, disc.r * 0.71 + 6
        parts.append(
            f'<path d="M{x - d:g} {y - d:g}L{x + d:g} {y + d:g}M{x - d:g} {y + d:g}'
            f'L{x + d:g} {y - d:g}" stroke="{colour}" stroke-width="5" stroke-linecap="round"/>'
        )
    return "".join(parts)


def lines(
    scene: Scene, edges: Iterable[tuple[int, int]], colour: str, *, dashed: bool = False
) -> str:
    """Thick lines along edges that are drawn."""
    wanted = {frozenset(edge) for edge in edges}
    dash = ' stroke-dasharray="9 6"' if dashed else ""
    parts = []
    for line in scene.lines:
        if frozenset((line.u, line.v)) in wanted:
            points = " ".join(f"{x:g},{y:g}" for x, y in line.points)
            parts.append(
                f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="5" '
                f'stroke-opacity="0.8"{dash}/>'
            )
    return "".join(parts)


def route(scene: Scene, stops: Sequence[int], colour: str) -> str:
    """A thick line from stop to stop, drawn edge or not, with the direction at its start.

    A leg that would lead over a foreign vertex is bent around it.
    """
    path = f"M{scene.discs[stops[0]].x:g} {scene.discs[stops[0]].y:g}"
    middles = []
    for start, end in pairwise(stops):
        first, then = scene.discs[start], scene.discs[end]
        x, y = _control(scene, first, then)
        path += f"Q{x:g} {y:g} {then.x:g} {then.y:g}"
        middles.append(((first.x + 2 * x + then.x) / 4, (first.y + 2 * y + then.y) / 4))
    (x, y), first, then = middles[0], scene.discs[stops[0]], scene.discs[stops[1]]
    dx, dy = then.x - first.x, then.y - first.y
    length = max(hypot(dx, dy), 1e-9)
    ux, uy = 9 * dx / length, 9 * dy / length
    arrow = (
        f"M{x + ux:g} {y + uy:g}L{x - ux - uy:g} {y - uy + ux:g}L{x - ux + uy:g} {y - uy - ux:g}Z"
    )
    return (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="5" '
        f'stroke-opacity="0.8" stroke-linejoin="round"/><path d="{arrow}" fill="{colour}"/>'
    )


def _control(scene: Scene, first: Disc, then: Disc) -> tuple[float, float]:
    """The control point of the flattest quadratic curve between two discs that clears all others.

    Where none does, the straight line.
    """
    middle = ((first.x + then.x) / 2, (first.y + then.y) / 2)
    dx, dy = then.x - first.x, then.y - first.y
    others = [disc for disc in scene.discs if disc not in (first, then)]
    for bend in _BENDS:
        x, y = middle[0] - bend * dy, middle[1] + bend * dx
        curve = [
            (
                (1 - t) ** 2 * first.x + 2 * t * (1 - t) * x + t**2 * then.x,
                (1 - t) ** 2 * first.y + 2 * t * (1 - t) * y + t**2 * then.y,
            )
            for t in _SHARES
        ]
        if all(hypot(o.x - px, o.y - py) >= o.r + _CLEAR for o in others for px, py in curve):
            return x, y
    return middle


def badge(disc: Disc, letter: str, colour: str) -> str:
    """A letter in a small disc at the upper right of a vertex."""
    x, y = disc.x + 0.7 * (disc.r + 5), disc.y - 0.7 * (disc.r + 5)
    return (
        f'<circle cx="{x:g}" cy="{y:g}" r="7" fill="{_PAPER}" stroke="{colour}" '
        f'stroke-width="2"/><text x="{x:g}" y="{y + 3.6:g}" font-size="10" font-weight="700" '
        f'text-anchor="middle" fill="#000000">{letter}</text>'
    )


def _box(cell: Cell, colour: str) -> str:
    x0, y0, x1, y1 = cell.box
    return (
        f'<rect x="{x0 + 1}" y="{y0 + 1}" width="{x1 - x0 - 1}" height="{y1 - y0 - 1}" '
        f'fill="{colour}" fill-opacity="0.35" stroke="{colour}" stroke-width="2"/>'
    )


def cells(table: Table, places: Iterable[tuple[int, int]], colour: str) -> str:
    """Framed cells, by row and column of the table's body."""
    wanted = {(row + 1, col + 1) for row, col in places}
    return "".join(_box(cell, colour) for cell in table.cells if (cell.row, cell.col) in wanted)


def rows(table: Table, chosen: Iterable[int], colour: str) -> str:
    """A band over whole rows of the table's body, and a tick at its left end."""
    parts = []
    for row in chosen:
        boxes = [cell.box for cell in table.cells if cell.row == row + 1]
        x0, y0, x1, y1 = boxes[0][0], boxes[0][1], boxes[-1][2], boxes[0][3]
        middle = (y0 + y1) / 2
        parts.append(
            f'<rect x="{x0 + 1}" y="{y0 + 1}" width="{x1 - x0 - 1}" height="{y1 - y0 - 1}" '
            f'fill="{colour}" fill-opacity="0.35" stroke="{colour}" stroke-width="2"/>'
            f'<path d="M{x0 - 9} {middle:g}l3 4l6 -9" fill="none" stroke="{colour}" '
            f'stroke-width="2.5"/>'
        )
    return "".join(parts)


def note(x: float, y: float, text: str, colour: str) -> str:
    """A few words of the solution."""
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="15" font-weight="700" fill="{colour}">{text}</text>'
    )
