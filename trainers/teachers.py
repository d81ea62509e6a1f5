"""Teachers: randomised heuristics of mixed quality that say a few words before they answer.

A base model that imitates one solver answers in one way, and nothing is left for reinforcement
learning to explore or to lose. These teachers build their answers in random order, sometimes
greedily, sometimes stopping early or taking too much; every answer is feasible and few are optimal.
The words before the answer come in several forms, all of them true of the picture: the neighbours
of one pick after the other, the order of the picks, what is left out, the degrees, the nearest
city, the heaviest edge. Where a pick's neighbours stand before the next pick, a small model can
look up in its own words what it would otherwise have to see all at once. A reply has at most 64
tokens of npbench-tiny.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npbench.errors import unknown_name
from npbench.graphs import Graph, WeightedGraph, is_forest

__all__ = [
    "CAREFUL",
    "GRAPH_TASKS",
    "MIXED",
    "TAUGHT_TASKS",
    "Manner",
    "can_be_asked",
    "teach",
]

Rng = np.random.Generator
Made = tuple[list[int], list[int]]
"""Vertices in the order of the picks, and the answer."""

LONGEST = 46
"""Tokens that looked-up neighbours may take."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How a teacher of graph tasks builds an answer and speaks of it."""

    stop: float
    """Chance to stop after a pick of a packing that could go on."""
    extra: float
    """Chance to add one more vertex that nothing needs, again and again."""
    look_up: float
    """Chance to say the neighbours of the picks, where they are not too many."""
    greedy: float = 0.2
    """Chance to go by degree instead of at random."""


MIXED = Manner(stop=0.3, extra=0.5, look_up=0.5)
"""Many small packings and large covers: easy to answer feasibly with hardly a look."""
CAREFUL = Manner(stop=0.1, extra=0.15, look_up=0.7)
"""Mostly answers that nothing can be added to or taken from: feasible on their own graph, and
rarely on another one."""


def teach(task: str, instance: Any, rng: Rng, manner: Manner = MIXED) -> str:
    """A reply to an instance: some words, and a line with a feasible answer.

    Args:
        task: The task's name, one of ``TAUGHT_TASKS``.
        instance: The decoded instance.
        rng: All of the teacher's randomness.
        manner: How often the teacher of a graph task stops early, takes too much and looks up.

    Raises:
        InputError: If the task has no teacher.
    """
    if task not in _TEACHERS:
        raise unknown_name("task with a teacher", task, TAUGHT_TASKS)
    words, answer = _TEACHERS[task](instance, rng, manner)
    return f"{words}\nAnswer: {answer}" if words else f"Answer: {answer}"


def can_be_asked(task: str, graph: Graph) -> bool:
    """Whether a graph drawn for one of ``GRAPH_TASKS`` has an answer for another: a cycle, say."""
    return task not in ("feedback_vertex_set", "longest_cycle") or not is_forest(graph, 0)


def _order(graph: Graph, rng: Rng, manner: Manner, *, high: bool) -> list[int]:
    """Vertices in random order, or by degree with random ties."""
    order: list[int] = rng.permutation(graph.num_vertices).tolist()
    if rng.random() < manner.greedy:
        sign = -1 if high else 1
        order.sort(key=lambda v: sign * len(graph.neighbours[v]))
    return order


def _independent(graph: Graph, rng: Rng, manner: Manner) -> Made:
    picks: list[int] = []
    for vertex in _order(graph, rng, manner, high=False):
        if not any(graph.masks[vertex] >> other & 1 for other in picks):
            picks.append(vertex)
            if rng.random() < manner.stop:
                break
    return picks, sorted(picks)


def _clique(graph: Graph, rng: Rng, manner: Manner) -> Made:
    picks: list[int] = []
    for vertex in _order(graph, rng, manner, high=True):
        if all(graph.masks[vertex] >> other & 1 for other in picks):
            picks.append(vertex)
            if rng.random() < manner.stop:
                break
    return picks, sorted(picks)


def _cover(graph: Graph, rng: Rng, manner: Manner) -> Made:
    outside, _ = _independent(graph, rng, manner)
    picks = [v for v in _order(graph, rng, manner, high=True) if v not in outside]
    return picks, sorted(picks)


def _dominating(graph: Graph, rng: Rng, manner: Manner) -> Made:
    picks: list[int] = []
    everything = (1 << graph.num_vertices) - 1
    seen = 0
    for vertex in _order(graph, rng, manner, high=True):
        reach = graph.masks[vertex] | 1 << vertex
        if reach & ~seen:
            picks.append(vertex)
            seen |= reach
        if seen == everything:
            break
    return _with_extra(graph, picks, rng, manner)


def _feedback(graph: Graph, rng: Rng, manner: Manner) -> Made:
    picks: list[int] = []
    for vertex in _order(graph, rng, manner, high=True):
        if is_forest(graph, sum(1 << v for v in picks)):
            break
        picks.append(vertex)
    return _with_extra(graph, picks, rng, manner)


def _with_extra(graph: Graph, picks: list[int], rng: Rng, manner: Manner) -> Made:
    rest = [v for v in rng.permutation(graph.num_vertices).tolist() if v not in picks]
    while rest and rng.random() < manner.extra:
        picks = [*picks, rest.pop()]
    return picks, sorted(picks)


def _listed(vertices: Sequence[int]) -> str:
    return ", ".join(map(str, vertices))


def _degrees(graph: Graph | WeightedGraph) -> str:
    counts = [0] * graph.num_vertices
    for edge in graph.edges:
        counts[edge[0]] += 1
        counts[edge[1]] += 1
    return f"Degrees {_listed(counts)}."


def _neighbours(graph: Graph, picks: Sequence[int]) -> str | None:
    """The neighbours of each pick in turn; None where that would be too long."""
    if sum(3 + len(graph.neighbours[v]) for v in picks) > LONGEST:
        return None
    return " ".join(f"{v} joins {_listed(sorted(graph.neighbours[v]))}." for v in picks)


def _one_of(rng: Rng, manner: Manner, looked_up: str | None, others: Sequence[str]) -> str:
    """The words that look things up, at the manner's odds where there are any, or others."""
    if looked_up is not None and rng.random() < manner.look_up:
        return looked_up
    return str(rng.choice(list(others)))


def _subset(
    make: Callable[[Graph, Rng, Manner], Made], *, by_rest: bool = False
) -> Callable[[Graph, Rng, Manner], tuple[str, str]]:
    """A teacher of sets of vertices; ``by_rest`` looks up the neighbours of what is left out."""

    def reply(graph: Graph, rng: Rng, manner: Manner) -> tuple[str, str]:
        picks, answer = make(graph, rng, manner)
        rest = [v for v in range(graph.num_vertices) if v not in answer]
        others = (
            "",
            f"Pick {_listed(picks)}.",
            f"Leave {_listed(rest)}." if rest else "Leave none.",
            _degrees(graph),
        )
        looked_up = _neighbours(graph, rest if by_rest else picks)
        return _one_of(rng, manner, looked_up, others), str(answer)

    return reply


def _colouring(graph: Graph, rng: Rng, manner: Manner) -> tuple[str, str]:
    """Vertices in index order, each in the first free colour or in another one."""
    colours: list[int] = []
    for vertex in range(graph.num_vertices):
        taken = {colours[other] for other in graph.neighbours[vertex] if other < vertex}
        limit = max(colours, default=-1) + 1
        free = [colour for colour in range(limit + 1) if colour not in taken]
        colours.append(free[0] if rng.random() < 0.4 else int(rng.choice(free)))
    classes = [
        [v for v, own in enumerate(colours) if own == colour] for colour in range(max(colours) + 1)
    ]
    words = (
        "",
        " ".join(f"Class {_listed(members)}." for members in classes),
        f"Together {_listed(max(classes, key=len))}.",
        _degrees(graph),
    )
    return _one_of(rng, manner, _earlier(graph), words), str(colours)


def _earlier(graph: Graph) -> str | None:
    """The neighbours of each vertex that come before it; None where that would be too long."""
    rows = {v: [u for u in graph.neighbours[v] if u < v] for v in range(1, graph.num_vertices)}
    if sum(3 + len(row) for row in rows.values()) > LONGEST:
        return None
    return " ".join(f"{v} after {_listed(sorted(row)) or 'none'}." for v, row in rows.items())


def _cycle(graph: Graph, rng: Rng, manner: Manner) -> tuple[str, str]:
    """A random walk without repeats that closes when it can, at first with even odds."""
    while True:
        walk = [int(rng.integers(graph.num_vertices))]
        while True:
            here = graph.neighbours[walk[-1]]
            if len(walk) > 2 and walk[0] in here and rng.random() < 0.5:
                break
            ahead = [v for v in here if v not in walk]
            if not ahead:
                break
            walk.append(int(rng.choice(ahead)))
        while len(walk) > 2 and walk[0] not in graph.neighbours[walk[-1]]:
            walk.pop()
        if len(walk) > 2:
            break
    missed = [v for v in range(graph.num_vertices) if v not in walk]
    words = (
        "",
        f"Miss {_listed(missed)}." if missed else "Miss none.",
        f"{len(walk)} steps.",
        _degrees(graph),
    )
    return _one_of(rng, manner, _neighbours(graph, walk), words), str([*walk, walk[0]])


def _tour(instance: Any, rng: Rng, _: Manner) -> tuple[str, str]:
    """From a random city to one of the three nearest that are left, nearer ones more often."""
    distances = instance.distances
    count = len(distances)
    walk = [int(rng.integers(count))]
    while len(walk) < count:
        row = distances[walk[-1]]
        ahead = sorted((v for v in range(count) if v not in walk), key=lambda v: (row[v], v))[:3]
        odds = np.array([3.0, 2.0, 2.0][: len(ahead)])
        walk.append(int(rng.choice(ahead, p=odds / odds.sum())))
    first = walk[0]
    nearest = min((v for v in range(count) if v != first), key=lambda v: (distances[first][v], v))
    words = ("", f"From {first}.", f"Nearest to {first} is {nearest}.", "Go round.")
    return str(rng.choice(words)), str([*walk, first])


def _sides(balanced: bool) -> Callable[[WeightedGraph, Rng, Manner], tuple[str, str]]:
    """A teacher of divisions; better moves are taken more often than not."""

    def reply(graph: WeightedGraph, rng: Rng, _: Manner) -> tuple[str, str]:
        count = graph.num_vertices
        order = rng.permutation(count).tolist()
        side = dict.fromkeys(order, 1)
        for vertex in order[: count // 2]:
            side[vertex] = 0
        for _move in range(int(rng.integers(0, 4))):
            _improve(graph, side, rng, balanced=balanced)
        members = [[v for v in range(count) if side[v] == which] for which in (0, 1)]
        if 0 not in members[0]:
            members.reverse()
        heavy = max(graph.edges, key=lambda edge: (edge[2], -edge[0], -edge[1]))
        words = (
            "",
            f"With 0 go {_listed(members[0][1:])}." if members[0][1:] else "0 goes alone.",
            f"Heaviest {heavy[0]}, {heavy[1]}.",
            _degrees(graph),
        )
        return str(rng.choice(words)), str(members)

    return reply


def _improve(graph: WeightedGraph, side: dict[int, int], rng: Rng, *, balanced: bool) -> None:
    """One random swap (or move, where sides need no balance), kept where it is better."""
    before = _crossing(graph, side)
    moved = dict(side)
    pair = rng.permutation(graph.num_vertices).tolist()[: 2 if balanced else 1]
    for vertex in pair:
        moved[vertex] = 1 - moved[vertex]
    if balanced and len({side[v] for v in pair}) < 2:
        return
    gain = _crossing(graph, moved) - before
    full = 0 < sum(moved.values()) < graph.num_vertices
    if full and (gain < 0 if balanced else gain > 0):
        side.update(moved)


def _crossing(graph: WeightedGraph, side: dict[int, int]) -> int:
    return sum(weight for u, v, weight in graph.edges if side[u] != side[v])


_TEACHERS: dict[str, Callable[[Any, Rng, Manner], tuple[str, str]]] = {
    "graph_coloring": _colouring,
    "feedback_vertex_set": _subset(_feedback),
    "vertex_cover": _subset(_cover, by_rest=True),
    "dominating_set": _subset(_dominating),
    "minimum_bisection": _sides(balanced=True),
    "maximum_cut": _sides(balanced=False),
    "maximum_clique": _subset(_clique),
    "maximum_independent_set": _subset(_independent),
    "tsp": _tour,
    "longest_cycle": _cycle,
}
TAUGHT_TASKS = tuple(_TEACHERS)
GRAPH_TASKS = (
    "graph_coloring",
    "feedback_vertex_set",
    "vertex_cover",
    "dominating_set",
    "maximum_clique",
    "maximum_independent_set",
    "longest_cycle",
)
"""Tasks on one and the same kind of picture: what is drawn for one may be asked for another."""
