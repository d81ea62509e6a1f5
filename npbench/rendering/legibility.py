"""The proof that a picture is legible, from its stored layout alone.

Rules, with lengths in pixels of the delivered picture:

- everything lies on the canvas;
- discs are at least ``VERTEX_GAP`` apart;
- an edge runs from one of its vertices to the other, is drawn once, and its middle line keeps
  ``EDGE_GAP`` from the disc of every vertex in which it does not end;
- edges that leave one vertex part at ``MIN_ANGLE`` degrees at least, and edges that cross do so at
  that angle at least;
- texts are ``MIN_TEXT_HEIGHT`` high at least and keep ``LABEL_GAP`` from each other, from tables
  and from edges, a label on its disc from foreign edges only;
- every vertex is named once, by a text of its own, either within its disc, ``RIM`` inside of its
  outline, or outside, ``LABEL_REACH`` from it at most and nearer to it than to any other;
- the cells of a table tile it, and hold their texts.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from npbench.rendering.bars import misplaced
from npbench.rendering.geometry import (
    angle_gap,
    box_point,
    box_segment,
    crossing_angles,
    point_segment,
)
from npbench.rendering.marks import Marks, read_marks
from npbench.rendering.naming import LABEL_GAP, LABEL_REACH, RIM, crowded, misnamed
from npbench.rendering.tiling import MIN_TEXT_HEIGHT, untiled
from npbench.rendering.turning import turned_layout

__all__ = [
    "EDGE_GAP",
    "LABEL_GAP",
    "LABEL_REACH",
    "MIN_ANGLE",
    "MIN_TEXT_HEIGHT",
    "RIM",
    "VERTEX_GAP",
    "flaws",
]

VERTEX_GAP = 4.0
EDGE_GAP = 3.0
MIN_ANGLE = 3.0


def flaws(layout: Mapping[str, Any]) -> list[str]:
    """What makes a picture illegible, one sentence each; empty for a legible one.

    Args:
        layout: As stored with the picture.
    """
    if "upright" in layout:
        return _turned_flaws(layout)
    marks = read_marks(layout)
    found = list(_off_canvas(layout))
    found += _vertices(marks)
    found += _edge_ends(layout)
    found += _edge_clearances(marks)
    found += _edge_angles(layout, marks)
    found += crowded(marks)
    found += misnamed(marks)
    for index, table in enumerate(layout["tables"]):
        found += untiled(f"table {index}", table)
    found += misplaced(layout)
    return found


def _turned_flaws(layout: Mapping[str, Any]) -> list[str]:
    """The flaws of the upright layout, and whether the picture is that layout, turned."""
    found = flaws(layout["upright"])
    if dict(layout) != turned_layout(layout["upright"], layout["rotation"]):
        found.append(f"the layout is not its upright one, turned by {layout['rotation']:g} degrees")
    return found


def _off_canvas(layout: Mapping[str, Any]) -> Iterator[str]:
    extents: list[tuple[str, Sequence[float]]] = []
    for v in layout["vertices"]:
        x, y, r = v["x"], v["y"], v["r"]
        extents.append((f"vertex {v['id']}", (x - r, y - r, x + r, y + r)))
    for edge in layout["edges"]:
        extents += [(f"edge {edge['u']}-{edge['v']}", (x, y, x, y)) for x, y in edge["points"]]
    extents += [(f"label {t['text']!r} of {t['of']}", t["box"]) for t in layout["labels"]]
    extents += [(f"table {i}", table["box"]) for i, table in enumerate(layout["tables"])]
    for name, (x0, y0, x1, y1) in extents:
        beyond = max(-x0, -y0, x1 - layout["width"], y1 - layout["height"])
        if beyond > 0:
            yield f"{name} lies {beyond:.1f} px outside the canvas"


def _vertices(marks: Marks) -> Iterator[str]:
    apart = np.hypot(*(marks.centres[:, None] - marks.centres).T).T
    gaps = apart - marks.radii[:, None] - marks.radii
    for i, j in np.argwhere(np.triu(gaps < VERTEX_GAP, k=1)):
        yield (
            f"vertex {marks.vertex[i]} and vertex {marks.vertex[j]} are {gaps[i, j]:.1f} px apart, "
            f"at least {VERTEX_GAP:g} needed"
        )
    for t, i in np.argwhere(box_point(marks.tables, marks.centres) < marks.radii):
        yield f"vertex {marks.vertex[i]} lies on table {t}"


def _edge_ends(layout: Mapping[str, Any]) -> Iterator[str]:
    centres = {v["id"]: (v["x"], v["y"]) for v in layout["vertices"]}
    seen: set[frozenset[int]] = set()
    for edge in layout["edges"]:
        u, v, points = edge["u"], edge["v"], edge["points"]
        if frozenset((u, v)) in seen:
            yield f"edge {u}-{v} is drawn twice"
        seen.add(frozenset((u, v)))
        for vertex, (x, y) in ((u, points[0]), (v, points[-1])):
            if vertex not in centres:
                yield f"edge {u}-{v} ends in vertex {vertex}, which is not drawn"
                continue
            miss = float(np.hypot(x - centres[vertex][0], y - centres[vertex][1]))
            if miss > 1.0:
                yield f"edge {u}-{v} misses the centre of vertex {vertex} by {miss:.1f} px"


def _edge_clearances(marks: Marks) -> Iterator[str]:
    gaps = point_segment(marks.centres, marks.segments) - marks.radii[:, None]
    for i, s in np.argwhere(gaps < EDGE_GAP):
        if marks.vertex[i] not in marks.edges[marks.owner[s]]:
            yield (
                f"{marks.edge(s)} passes {gaps[i, s]:.1f} px from the disc of vertex "
                f"{marks.vertex[i]}, at least {EDGE_GAP:g} needed"
            )
    for t, s in np.argwhere(box_segment(marks.tables, marks.segments) < EDGE_GAP):
        yield f"{marks.edge(s)} touches table {t}"


def _edge_angles(layout: Mapping[str, Any], marks: Marks) -> Iterator[str]:
    rays: dict[int, list[tuple[float, str]]] = {}
    for edge in layout["edges"]:
        u, v, points = edge["u"], edge["v"], edge["points"]
        for vertex, start, then in ((u, points[0], points[1]), (v, points[-1], points[-2])):
            direction = np.degrees(np.arctan2(then[1] - start[1], then[0] - start[0]))
            rays.setdefault(vertex, []).append((float(direction), f"edge {u}-{v}"))
    for vertex, leaving in rays.items():
        around = sorted(leaving)
        # Of two edges only one gap is to be looked at: the round trip would name the pair twice.
        turns = zip(
            around, around[1:] + around[:1] if len(around) > 2 else around[1:], strict=False
        )
        for (one, first), (two, second) in turns:
            if angle_gap(one, two) < MIN_ANGLE:
                yield (
                    f"{first} and {second} leave vertex {vertex} {angle_gap(one, two):.1f} degrees "
                    f"apart, at least {MIN_ANGLE:g} needed"
                )
    angles = crossing_angles(marks.segments)
    for s, t in np.argwhere(np.triu(angles < MIN_ANGLE, k=1)):
        if marks.owner[s] == marks.owner[t]:
            continue  # pieces of one bent edge follow each other at almost no angle
        yield (
            f"{marks.edge(s)} and {marks.edge(t)} cross at {angles[s, t]:.1f} degrees, "
            f"at least {MIN_ANGLE:g} needed"
        )
