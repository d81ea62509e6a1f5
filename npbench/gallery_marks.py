"""Marks that show a solution in a picture, as SVG elements: rings, thick lines, rows, badges.

The colours are those of Okabe and Ito without their yellow, told apart with every kind of colour
blindness; a shape, a letter or a dash says the same again, so no mark depends on its colour.

References:
    Okabe and Ito, Color Universal Design, 2008, https://jfly.uni-koeln.de/color/.
"""

from collections.abc import Collection, Iterable, Sequence
from math import sqrt

from npbench.gallery_badges import badge_places
from npbench.gallery_room import Edge
from npbench.gallery_routes import Leg, arrow
from npbench.rendering.naming import RIM
from npbench.rendering.scene import Cell, Scene, Table
from npbench.rendering.styles import Style
from npbench.rendering.svg import svg_text

__all__ = [
    "COLOURS",
    "badges",
    "cells",
    "crossed",
    "lines",
    "note",
    "ringed",
    "route",
    "rows",
]

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999", "#6a3d9a")
_PAPER = "#ffffff"
_BAND = 4.5
"""Width of a ring, where there is room."""
_TEETH = 10
"""Of a toothed ring."""
_BADGE = 8.0
"""Radius of a badge, its rim included."""


def ringed(
    scene: Scene, vertices: Iterable[int], colour: str, *, room: float, toothed: bool = False
) -> str:
    """A wide ring around each vertex.

    It reaches ``room`` pixels over the disc and, where that is too little for its width, into it,
    up to the number.
    """
    parts = []
    for v in vertices:
        disc = scene.discs[v]
        outer = disc.r + room
        inner = max(disc.r - RIM, min(disc.r, outer - _BAND))
        teeth = f' pathLength="{2 * _TEETH}" stroke-dasharray="1 1"' if toothed else ""
        parts.append(
            f'<circle cx="{disc.x:g}" cy="{disc.y:g}" r="{(inner + outer) / 2:g}" fill="none" '
            f'stroke="{colour}" stroke-width="{outer - inner:g}"{teeth}/>'
        )
    return "".join(parts)


def crossed(
    scene: Scene, vertices: Collection[int], colour: str, *, room: float, style: Style
) -> str:
    """A cross through each vertex, behind its number."""
    parts = []
    for v in vertices:
        disc = scene.discs[v]
        x, y, d = disc.x, disc.y, (disc.r + room - 2) / sqrt(2)
        parts.append(
            f'<path d="M{x - d:g} {y - d:g}L{x + d:g} {y + d:g}M{x - d:g} {y + d:g}'
            f'L{x + d:g} {y - d:g}" stroke="{colour}" stroke-width="4" stroke-linecap="round"/>'
        )
    of = {f"vertex {v}" for v in vertices}
    parts += [
        svg_text(label.text, style.number, halo=style.disc)
        for label in scene.labels
        if label.of in of and label.inside
    ]
    return "".join(parts)


def lines(
    scene: Scene, edges: Collection[Edge], colour: str, *, width: float, dashed: bool = False
) -> str:
    """Thick lines along edges that are drawn."""
    dash = ' stroke-dasharray="9 6"' if dashed else ""
    parts = []
    for line in scene.lines:
        if frozenset((line.u, line.v)) in edges:
            points = " ".join(f"{x:g},{y:g}" for x, y in line.points)
            parts.append(
                f'<polyline points="{points}" fill="none" stroke="{colour}" '
                f'stroke-width="{width:g}" stroke-opacity="0.8"{dash}/>'
            )
    return "".join(parts)


def route(scene: Scene, legs: Sequence[Leg], colour: str) -> str:
    """A thick line along legs, with an arrow that shows the direction."""
    x, y = legs[0].stroke.points[0]
    path = f"M{x:g} {y:g}" + "".join(leg.path for leg in legs)
    at = arrow(scene, legs)
    ux, uy = 9 * at.dx, 9 * at.dy
    tip = (
        f"M{at.x + ux:g} {at.y + uy:g}L{at.x - ux - uy:g} {at.y - uy + ux:g}"
        f"L{at.x - ux + uy:g} {at.y - uy - ux:g}Z"
    )
    return (
        f'<path d="{path}" fill="none" stroke="{colour}" '
        f'stroke-width="{legs[0].stroke.width:g}" '
        f'stroke-opacity="0.8" stroke-linejoin="round"/><path d="{tip}" fill="{colour}"/>'
    )


def badges(
    scene: Scene, letters: Sequence[str], colours: Sequence[str], *, room: float, frame: int
) -> str:
    """A letter in a small disc beside each vertex, where no edge runs."""
    places = badge_places(scene, radius=_BADGE, room=room, frame=frame)
    return "".join(
        f'<circle cx="{x:g}" cy="{y:g}" r="{_BADGE - 1:g}" fill="{_PAPER}" stroke="{colour}" '
        f'stroke-width="2"/><text x="{x:g}" y="{y + 3.6:g}" font-size="10" font-weight="700" '
        f'text-anchor="middle" fill="#000000">{letter}</text>'
        for (x, y), letter, colour in zip(places, letters, colours, strict=True)
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
