"""The part of the legibility proof that concerns texts: apart from all, and each vertex named."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from npbench.rendering.geometry import box_box, box_point, box_segment
from npbench.rendering.marks import Marks
from npbench.rendering.tiling import MIN_TEXT_HEIGHT

__all__ = ["LABEL_GAP", "LABEL_REACH", "RIM", "crowded", "misnamed"]

LABEL_GAP = 2.0
RIM = 2.5
LABEL_REACH = 8.0


def crowded(marks: Marks) -> Iterator[str]:
    """Texts that are too small or too near to something, one sentence each."""
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


def _inside(marks: Marks) -> Iterator[int]:
    """Labels whose box begins inside the disc of the vertex that they name."""
    position = {f"vertex {vertex}": index for index, vertex in enumerate(marks.vertex)}
    for i, of in enumerate(marks.of):
        if of in position:
            j = position[of]
            if box_point(marks.boxes[i : i + 1], marks.centres[j : j + 1])[0, 0] < marks.radii[j]:
                yield i


def misnamed(marks: Marks) -> Iterator[str]:
    """Vertices without a text of their own in the right place, one sentence each."""
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
