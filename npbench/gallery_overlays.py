"""A solution drawn into its picture, for every task: tours, covers, colourings, cuts, schedules."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from npbench.gallery_lanes import Meeting, lanes
from npbench.gallery_marks import (
    COLOURS,
    badges,
    cells,
    crossed,
    lines,
    note,
    ringed,
    route,
    rows,
)
from npbench.gallery_room import Edge, drawn, reach, thickness
from npbench.gallery_routes import legs
from npbench.rendering.scene import Scene
from npbench.rendering.styles import Style

__all__ = ["Ground", "Overlay", "overlay"]

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


@dataclass(frozen=True, slots=True)
class Ground:
    """The picture into which a solution is drawn."""

    scene: Scene
    style: Style
    frame: int = 0
    """Blank space around it."""


def overlay(task: str, instance: Any, solution: Any, ground: Ground) -> Overlay:
    """The marks of a feasible solution.

    Args:
        task: The task's name.
        instance: The decoded instance.
        solution: As a reply states it.
        ground: The picture into which it is drawn.
    """
    return _DRAWERS[task](instance, solution, ground)


def _thick(scene: Scene, edges: Iterable[tuple[int, int]]) -> tuple[set[Edge], float]:
    """Edges to be drawn as thick lines, and how wide."""
    wanted = {frozenset(edge) for edge in edges}
    strokes = [stroke for stroke in drawn(scene) if stroke.ends in wanted]
    return wanted, thickness(scene, strokes)


def _colouring(instance: Any, solution: Sequence[int], ground: Ground) -> Overlay:
    scene = ground.scene
    names = {colour: index for index, colour in enumerate(sorted(set(solution)))}
    shades = [COLOURS[names[colour] % len(COLOURS)] for colour in solution]
    room = reach(scene, range(len(solution)), drawn(scene))
    rings = "".join(ringed(scene, [v], shade, room=room) for v, shade in enumerate(shades))
    letters = [chr(ord("A") + names[colour]) for colour in solution]
    over = rings + badges(scene, letters, shades, room=room, frame=ground.frame)
    legend = "Vertices of one colour carry one letter; no edge joins two of them."
    return Overlay(over=over, legend=legend)


def _feedback(instance: Any, solution: Sequence[int], ground: Ground) -> Overlay:
    scene = ground.scene
    gone = set(solution)
    kept, width = _thick(scene, [e for e in instance.edges if not gone.intersection(e)])
    room = reach(scene, solution, drawn(scene, thick=kept, width=width))
    legend = "Crossed vertices are removed; the thick edges that stay form a forest."
    return Overlay(
        lines(scene, kept, GREEN, width=width),
        crossed(scene, solution, RED, room=room, style=ground.style),
        legend=legend,
    )


def _chosen(
    ground: Ground,
    solution: Sequence[int],
    ring: str,
    legend: str,
    *,
    edges: Iterable[tuple[int, int]] = (),
    line: str = SKY,
) -> Overlay:
    """Rings around vertices and thick lines along edges."""
    scene = ground.scene
    thick, width = _thick(scene, edges)
    room = reach(scene, solution, drawn(scene, thick=thick, width=width))
    return Overlay(
        lines(scene, thick, line, width=width),
        ringed(scene, solution, ring, room=room),
        legend=legend,
    )


def _cover(instance: Any, solution: Sequence[int], ground: Ground) -> Overlay:
    return _chosen(ground, solution, RED, "Ringed vertices are chosen; every edge ends in one.")


def _dominating(instance: Any, solution: Sequence[int], ground: Ground) -> Overlay:
    chosen = set(solution)
    reached = [edge for edge in instance.edges if (edge[0] in chosen) != (edge[1] in chosen)]
    legend = "Ringed vertices are chosen; thick edges lead from them to all others."
    return _chosen(ground, solution, RED, legend, edges=reached)


def _clique(instance: Any, solution: Sequence[int], ground: Ground) -> Overlay:
    legend = "Ringed vertices are chosen; the thick edges join all of them."
    inside = combinations(solution, 2)
    return _chosen(ground, solution, RED, legend, edges=inside, line=ORANGE)


def _independent(instance: Any, solution: Sequence[int], ground: Ground) -> Overlay:
    legend = "Ringed vertices are chosen; no edge joins two of them."
    return _chosen(ground, solution, BLUE, legend)


def _cycle(instance: Any, solution: Sequence[int], ground: Ground) -> Overlay:
    legend = (
        "The thick line is the cycle; it starts at the ringed vertex, and the arrow shows the "
        "direction."
    )
    under, over = _route(ground.scene, solution)
    return Overlay(under, over, legend=legend)


def _route(scene: Scene, stops: Sequence[int]) -> tuple[str, str]:
    """A route below the vertices, and the ring around its start above them."""
    found = legs(scene, stops)
    strokes = [*drawn(scene), *(leg.stroke for leg in found)]
    start = stops[:1]
    return (
        route(scene, found, ORANGE),
        ringed(scene, start, BLUE, room=reach(scene, start, strokes)),
    )


def _cut(instance: Any, solution: Sequence[Sequence[int]], ground: Ground) -> Overlay:
    scene = ground.scene
    side = set(solution[0])
    across = [(u, v) for u, v, _ in instance.edges if (u in side) != (v in side)]
    places = [*across, *((v, u) for u, v in across)]
    cut, width = _thick(scene, across)
    room = reach(scene, [*solution[0], *solution[1]], drawn(scene, thick=cut, width=width))
    under = lines(scene, cut, RED, width=width, dashed=True)
    over = ringed(scene, solution[0], BLUE, room=room)
    over += ringed(scene, solution[1], ORANGE, room=room, toothed=True)
    legend = "Closed and toothed rings are the two sides; dashed edges and framed weights are cut."
    return Overlay(under + cells(scene.tables[0], places, RED), over, legend=legend)


def _tour(instance: Any, solution: Sequence[int], ground: Ground) -> Overlay:
    scene = ground.scene
    under, over = _route(scene, solution) if scene.discs else ("", "")
    framed = cells(scene.tables[0], pairwise(solution), ORANGE)
    legend = (
        "Framed distances are those of the tour; where cities are drawn, a line follows it from "
        "the ringed one."
    )
    return Overlay(framed + under, over, legend=legend)


def _set_cover(instance: Any, solution: Sequence[int], ground: Ground) -> Overlay:
    legend = "Ticked subsets are chosen; together they hold every element."
    return Overlay(rows(ground.scene.tables[0], solution, GREEN), legend=legend)


def _numbers(instance: Any, solution: Sequence[int], ground: Ground) -> Overlay:
    legend = "The numbers at ticked positions add up to the target."
    return Overlay(rows(ground.scene.tables[0], solution, GREEN), legend=legend)


def _knapsack(instance: Any, solution: Sequence[int], ground: Ground) -> Overlay:
    weight = sum(instance.weights[item] for item in solution)
    legend = f"Ticked items are packed: weight {weight} of {instance.capacity}."
    return Overlay(rows(ground.scene.tables[0], solution, GREEN), legend=legend)


def _schedule(instance: Any, solution: Sequence[Sequence[int]], ground: Ground) -> Overlay:
    scene = ground.scene
    table = scene.tables[2]
    under = rows(table, [meeting for meeting, _, _ in solution], GREEN)
    ends = {cell.row: cell.box for cell in table.cells}
    over, held = [], []
    for meeting, room, start in solution:
        box = ends[meeting + 1]
        end = start + instance.durations[meeting]
        held.append(Meeting(meeting, room, start, end))
        text = f"room {room}, {start}-{end}"
        over.append(note(table.box[2] + 10, (box[1] + box[3]) / 2 + 5, text, GREEN))
    need = table.box[2] + 160
    rooms = len(instance.capacities)
    timeline = lanes(scene, held, GREEN, rooms=rooms, style=ground.style, frame=ground.frame)
    legend = "Ticked meetings take place, in the rooms and at the times beside them."
    if scene.bars:
        legend += " On the timeline each room has a lane, room 0 the uppermost."
    return Overlay(
        under,
        "".join(over) + timeline,
        margin=max(0, need - scene.width),
        legend=legend,
    )


_DRAWERS: Mapping[str, Callable[[Any, Any, Ground], Overlay]] = {
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
