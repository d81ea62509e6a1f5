"""A solution drawn into its picture, for every task: tours, covers, colourings, cuts, schedules."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from npbench.gallery_marks import (
    COLOURS,
    badge,
    cells,
    crossed,
    filled,
    lines,
    note,
    ringed,
    route,
    rows,
    squared,
)
from npbench.rendering.scene import Scene

__all__ = ["Overlay", "overlay"]

BLUE, ORANGE, GREEN, PURPLE, SKY, RED = COLOURS[:6]


@dataclass(frozen=True, slots=True)
class Overlay:
    """SVG elements of a solution."""

    under: str = ""
    """Below vertices and texts."""
    over: str = ""
    """On top of everything."""
    margin: int = 0
    """Space that the elements need at the right side of the picture."""
    legend: str = ""
    """What the marks mean, one sentence."""


def overlay(task: str, instance: Any, solution: Any, scene: Scene) -> Overlay:
    """The marks of a feasible solution.

    Args:
        task: The task's name.
        instance: The decoded instance.
        solution: As a reply states it.
        scene: The picture into which it is drawn.
    """
    return _DRAWERS[task](instance, solution, scene)


def _colouring(instance: Any, solution: Sequence[int], scene: Scene) -> Overlay:
    names = {colour: index for index, colour in enumerate(sorted(set(solution)))}
    under, over = [], []
    for vertex, colour in enumerate(solution):
        shade = COLOURS[names[colour] % len(COLOURS)]
        under.append(filled(scene, [vertex], shade))
        over.append(badge(scene.discs[vertex], chr(ord("A") + names[colour]), shade))
    legend = "Vertices of one colour carry one letter; no edge joins two of them."
    return Overlay("".join(under), "".join(over), legend=legend)


def _feedback(instance: Any, solution: Sequence[int], scene: Scene) -> Overlay:
    gone = set(solution)
    kept = [(u, v) for u, v in instance.edges if u not in gone and v not in gone]
    legend = "Crossed vertices are removed; the thick edges that stay form a forest."
    return Overlay(lines(scene, kept, GREEN) + crossed(scene, solution, RED), legend=legend)


def _cover(instance: Any, solution: Sequence[int], scene: Scene) -> Overlay:
    legend = "Ringed vertices are chosen; every edge ends in one."
    return Overlay(filled(scene, solution, ORANGE), ringed(scene, solution, RED), legend=legend)


def _dominating(instance: Any, solution: Sequence[int], scene: Scene) -> Overlay:
    chosen = set(solution)
    reach = [edge for edge in instance.edges if (edge[0] in chosen) != (edge[1] in chosen)]
    return Overlay(
        lines(scene, reach, SKY) + filled(scene, solution, ORANGE),
        ringed(scene, solution, RED),
        legend="Ringed vertices are chosen; thick edges lead from them to all others.",
    )


def _clique(instance: Any, solution: Sequence[int], scene: Scene) -> Overlay:
    inside = [(u, v) for u in solution for v in solution if u < v]
    return Overlay(
        lines(scene, inside, ORANGE),
        ringed(scene, solution, RED),
        legend="Ringed vertices are chosen; the thick edges join all of them.",
    )


def _independent(instance: Any, solution: Sequence[int], scene: Scene) -> Overlay:
    legend = "Ringed vertices are chosen; no edge joins two of them."
    return Overlay(filled(scene, solution, SKY), ringed(scene, solution, BLUE), legend=legend)


def _cycle(instance: Any, solution: Sequence[int], scene: Scene) -> Overlay:
    legend = "The thick line is the cycle; its arrow shows the start and the direction."
    return Overlay(route(scene, solution, ORANGE), legend=legend)


def _cut(instance: Any, solution: Sequence[Sequence[int]], scene: Scene) -> Overlay:
    side = set(solution[0])
    across = [(u, v) for u, v, _ in instance.edges if (u in side) != (v in side)]
    places = [*across, *((v, u) for u, v in across)]
    under = lines(scene, across, RED, dashed=True)
    under += filled(scene, solution[0], BLUE) + squared(scene, solution[1], ORANGE)
    legend = "Round and square marks are the two sides; dashed edges and framed weights are cut."
    return Overlay(under + cells(scene.tables[0], places, RED), legend=legend)


def _tour(instance: Any, solution: Sequence[int], scene: Scene) -> Overlay:
    steps = list(pairwise(solution))
    under = cells(scene.tables[0], steps, ORANGE)
    if scene.discs:
        under += route(scene, solution, ORANGE)
    legend = "Framed distances are those of the tour; where cities are drawn, a line follows it."
    return Overlay(under, legend=legend)


def _set_cover(instance: Any, solution: Sequence[int], scene: Scene) -> Overlay:
    legend = "Ticked subsets are chosen; together they hold every element."
    return Overlay(rows(scene.tables[0], solution, GREEN), legend=legend)


def _numbers(instance: Any, solution: Sequence[int], scene: Scene) -> Overlay:
    legend = "The numbers at ticked positions add up to the target."
    return Overlay(rows(scene.tables[0], solution, GREEN), legend=legend)


def _knapsack(instance: Any, solution: Sequence[int], scene: Scene) -> Overlay:
    weight = sum(instance.weights[item] for item in solution)
    legend = f"Ticked items are packed: weight {weight} of {instance.capacity}."
    return Overlay(rows(scene.tables[0], solution, GREEN), legend=legend)


def _schedule(instance: Any, solution: Sequence[Sequence[int]], scene: Scene) -> Overlay:
    table = scene.tables[2]
    under = rows(table, [meeting for meeting, _, _ in solution], GREEN)
    ends = {cell.row: cell.box for cell in table.cells}
    over = []
    for meeting, room, start in solution:
        box = ends[meeting + 1]
        end = start + instance.durations[meeting]
        text = f"room {room}, {start}-{end}"
        over.append(note(table.box[2] + 10, (box[1] + box[3]) / 2 + 5, text, GREEN))
    need = table.box[2] + 160
    legend = "Ticked meetings take place, in the rooms and at the times beside them."
    if scene.bars:
        legend += " On the timeline each room has a lane, room 0 the uppermost."
    return Overlay(
        under,
        "".join(over) + _lanes(instance, solution, scene),
        margin=max(0, need - scene.width),
        legend=legend,
    )


def _lanes(instance: Any, solution: Sequence[Sequence[int]], scene: Scene) -> str:
    """The meetings on the timeline, a lane for each room, where one is drawn."""
    marks = {int(bar.of.split()[1]): bar.box[0] for bar in scene.bars if bar.of.startswith("mark")}
    if not marks:
        return ""
    first, last = min(marks), max(marks)
    scale = (marks[last] - marks[first]) / (last - first)
    top, bottom = next(b.box[1::2] for b in scene.bars if b.of.startswith("interval"))
    height = (bottom - top) / len(instance.capacities)
    parts = []
    for meeting, room, start in solution:
        x = marks[first] + scale * (start - first)
        width = scale * instance.durations[meeting]
        y = top + room * height
        parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{GREEN}" '
            f'fill-opacity="0.75" stroke="#ffffff"/>'
        )
        if height >= _LETTERS:
            parts.append(note(x + 4, y + height / 2 + 5, str(meeting), "#ffffff"))
    return "".join(parts)


_LETTERS = 14
"""Height of a lane in which a meeting's number can be read."""

_DRAWERS: Mapping[str, Callable[[Any, Any, Scene], Overlay]] = {
    "graph_coloring": _colouring,
    "feedback_vertex_set": _feedback,
    "vertex_cover": _cover,
    "dominating_set": _dominating,
    "minimum_bisection": _cut,
    "maximum_cut": _cut,
    "maximum_clique": _clique,
    "maximum_independent_set": _independent,
    "tsp": _tour,
    "longest_cycle": _cycle,
    "set_cover": _set_cover,
    "subset_sum": _numbers,
    "knapsack": _knapsack,
    "meeting_scheduling": _schedule,
}
