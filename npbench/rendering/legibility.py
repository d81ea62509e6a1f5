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
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from npbench.rendering.geometry import (
    Array,
    angle_gap,
    box_box,
    box_point,
    box_segment,
    crossing_angles,
    point_segment,
)
from npbench.rendering.tiling import MIN_TEXT_HEIGHT, untiled
from npbench.rendering.timelines import misplaced
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
LABEL_GAP = 2.0
RIM = 2.5
LABEL_REACH = 8.0
MIN_ANGLE = 3.0


@dataclass(frozen=True, slots=True)
class _Marks:
    """The layout as arrays, with a name for each mark."""

    vertex: tuple[int, ...]
    centres: Array
    radii: Array
    edges: tuple[tuple[int, int], ...]
    segments: Array
    owner: tuple[int, ...]
    """For each segment, the position of its edge."""
    boxes: Array
    of: tuple[str, ...]
    texts: tuple[str, ...]
    tables: Array

    def label(self, index: int) -> str:
        return f"label {self.texts[index]!r} of {self.of[index]}"

    def edge(self, segment: int) -> str:
        u, v = self.edges[self.owner[segment]]
        return f"edge {u}-{v}"


def flaws(layout: Mapping[str, Any]) -> list[str]:
    """What makes a picture illegible, one sentence each; empty for a legible one.

    Args:
        layout: As stored with the picture.
    """
    if "upright" in layout:
        return _turned_flaws(layout)
    marks = _read(layout)
    found = list(_off_canvas(layout))
    found += _vertices(marks)
    found += _edge_ends(layout)
    found += _edge_clearances(marks)
    found += _edge_angles(layout, marks)
    found += _labels(marks)
    found += _names(marks)
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


def _read(layout: Mapping[str, Any]) -> _Marks:
    vertices, edges, labels = layout["vertices"], layout["edges"], layout["labels"]
    pieces = [
        (index, [*start, *end])
        for index, edge in enumerate(edges)
        for start, end in zip(edge["points"], edge["points"][1:], strict=False)
    ]
    return _Marks(
        vertex=tuple(v["id"] for v in vertices),
        centres=np.array([[v["x"], v["y"]] for v in vertices], dtype=float).reshape(-1, 2),
        radii=np.array([v["r"] for v in vertices], dtype=float),
        edges=tuple((edge["u"], edge["v"]) for edge in edges),
        segments=np.array([piece for _, piece in pieces], dtype=float).reshape(-1, 4),
        owner=tuple(index for index, _ in pieces),
        boxes=np.array([label["box"] for label in labels], dtype=float).reshape(-1, 4),
        of=tuple(label["of"] for label in labels),
        texts=tuple(label["text"] for label in labels),
        tables=np.array([t["box"] for t in layout["tables"]], dtype=float).reshape(-1, 4),
    )


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


def _vertices(marks: _Marks) -> Iterator[str]:
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


def _edge_clearances(marks: _Marks) -> Iterator[str]:
    gaps = point_segment(marks.centres, marks.segments) - marks.radii[:, None]
    for i, s in np.argwhere(gaps < EDGE_GAP):
        if marks.vertex[i] not in marks.edges[marks.owner[s]]:
            yield (
                f"{marks.edge(s)} passes {gaps[i, s]:.1f} px from the disc of vertex "
                f"{marks.vertex[i]}, at least {EDGE_GAP:g} needed"
            )
    for t, s in np.argwhere(box_segment(marks.tables, marks.segments) < EDGE_GAP):
        yield f"{marks.edge(s)} touches table {t}"


def _edge_angles(layout: Mapping[str, Any], marks: _Marks) -> Iterator[str]:
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


def _labels(marks: _Marks) -> Iterator[str]:
    for i, (_, top, _, bottom) in enumerate(marks.boxes):
        if bottom - top < MIN_TEXT_HEIGHT:
            yield f"{marks.label(i)} is {bottom - top:g} px high, at least {MIN_TEXT_HEIGHT} needed"
    apart = box_box(marks.boxes, marks.boxes)
    for i, j in np.argwhere(np.triu(apart < LABEL_GAP, k=1)):
        yield f"{marks.label(i)} and {marks.label(j)} are {apart[i, j]:.1f} px apart"
    for i, t in np.argwhere(box_box(marks.boxes, marks.tables) < LABEL_GAP):
        yield f"{marks.label(i)} touches table {t}"
    from_discs = box_point(marks.boxes, marks.centres) - marks.radii
    for i, j in np.argwhere(from_discs < LABEL_GAP):
        if marks.of[i] != f"vertex {marks.vertex[j]}":
            yield (
                f"{marks.label(i)} is {from_discs[i, j]:.1f} px from the disc of vertex "
                f"{marks.vertex[j]}, at least {LABEL_GAP:g} needed"
            )
    inside = set(_inside(marks))
    from_edges = box_segment(marks.boxes, marks.segments)
    for i, s in np.argwhere(from_edges < LABEL_GAP):
        ends = {f"vertex {end}" for end in marks.edges[marks.owner[s]]}
        hidden = i in inside and marks.of[i] in ends
        if not hidden and marks.of[i] != marks.edge(s):
            yield (
                f"{marks.label(i)} is {from_edges[i, s]:.1f} px from {marks.edge(s)}, "
                f"at least {LABEL_GAP:g} needed"
            )


def _inside(marks: _Marks) -> Iterator[int]:
    """Labels whose box begins inside the disc of the vertex that they name."""
    position = {f"vertex {vertex}": index for index, vertex in enumerate(marks.vertex)}
    for i, of in enumerate(marks.of):
        if of in position:
            j = position[of]
            if box_point(marks.boxes[i : i + 1], marks.centres[j : j + 1])[0, 0] < marks.radii[j]:
                yield i


def _names(marks: _Marks) -> Iterator[str]:
    inside = set(_inside(marks))
    from_discs = box_point(marks.boxes, marks.centres) - marks.radii
    named: dict[int, list[int]] = {vertex: [] for vertex in marks.vertex}
    for j, vertex in enumerate(marks.vertex):
        for i in (i for i, of in enumerate(marks.of) if of == f"vertex {vertex}"):
            named[vertex].append(i)
            x0, y0, x1, y1 = marks.boxes[i]
            x, y = marks.centres[j]
            reach = float(np.hypot(max(x - x0, x1 - x), max(y - y0, y1 - y)))
            if i in inside and reach > marks.radii[j] - RIM:
                yield (
                    f"{marks.label(i)} ends {marks.radii[j] - reach:.1f} px inside its disc, "
                    f"at least {RIM:g} needed"
                )
            if from_discs[i, j] > LABEL_REACH:
                yield (
                    f"{marks.label(i)} is {from_discs[i, j]:.1f} px away, "
                    f"at most {LABEL_REACH:g} allowed"
                )
            nearest = int(np.argmin(from_discs[i]))
            if i not in inside and nearest != j:
                yield f"{marks.label(i)} is nearer to vertex {marks.vertex[nearest]}"
    for vertex, labels in named.items():
        if len(labels) != 1:
            yield f"vertex {vertex} has {len(labels)} labels, 1 needed"
    for v, w in combinations(marks.vertex, 2):
        if {marks.texts[i] for i in named[v]} & {marks.texts[i] for i in named[w]}:
            yield f"vertex {v} and vertex {w} have the same label"
