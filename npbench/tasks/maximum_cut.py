"""Maximum cut: two sides with much weight between them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from npbench import families
from npbench.cuts import local_search, solve_cut, split_verdict
from npbench.graph_tasks import EXAMPLE_WEIGHTED, PICTURE_OF_WEIGHTS, split_task
from npbench.graphs import WeightedGraph
from npbench.levels import graph_levels
from npbench.prompts import Wording
from npbench.references import EARLY_STOP
from npbench.task import Budget, Reference, Sense, Verdict

__all__ = ["TASK"]

Sides = list[list[int]]


def verify(graph: WeightedGraph, answer: object) -> Verdict:
    """Feasible where two disjoint sides, one possibly empty, hold all vertices."""
    return split_verdict(graph, answer, balanced=False)


def trivial(graph: WeightedGraph, _: np.random.Generator) -> Sides:
    """Even numbers against odd numbers."""
    n = graph.num_vertices
    return [list(range(0, n, 2)), list(range(1, n, 2))]


def random(graph: WeightedGraph, rng: np.random.Generator) -> Sides:
    """Each vertex on a side drawn by a fair coin."""
    flags = rng.random(graph.num_vertices) < 0.5
    return [np.flatnonzero(flags).tolist(), np.flatnonzero(~flags).tolist()]


def greedy(graph: WeightedGraph, _: np.random.Generator) -> Sides:
    """The heaviest vertex first, each to the side with more weight across to it."""
    sides: list[set[int]] = [set(), set()]
    order = sorted(range(graph.num_vertices), key=lambda v: (-sum(graph.weights[v].values()), v))
    for vertex in order:
        row = graph.weights[vertex]
        to_first, to_second = (sum(row.get(u, 0) for u in side) for side in sides)
        sides[0 if to_second >= to_first else 1].add(vertex)
    return [sorted(side) for side in sides]


def heuristic(graph: WeightedGraph, rng: np.random.Generator) -> Sides:
    """CP-SAT stopped early."""
    start = greedy(graph, rng)
    return solve_cut(
        graph, EARLY_STOP, sense=Sense.MAX, balanced=False, start=start, hint=False
    ).solution


def reference(graph: WeightedGraph, budget: Budget) -> Reference[Sides]:
    """CP-SAT with vertex 0 fixed and a hint from local search."""
    start = local_search(graph, sense=Sense.MAX, balanced=False, starts=20, seed=budget.seed)
    return solve_cut(graph, budget, sense=Sense.MAX, balanced=False, start=start, hint=True)


def flaw(graph: WeightedGraph, best: Reference[Sides]) -> str | None:
    """The graph must not be bipartite."""
    return "all edges can be cut" if best.objective >= graph.total_weight else None


def _gnp(params: Mapping[str, Any], rng: np.random.Generator) -> WeightedGraph:
    n = families.draw_size(params, "num_vertices", rng)
    density = params["density"] if n <= 24 else min(params["density"], 6 / n)
    return families.weighted(families.gnp(n, density, rng), 9, rng)


def _regular(params: Mapping[str, Any], rng: np.random.Generator) -> WeightedGraph:
    n = families.draw_size(params, "num_vertices", rng)
    return families.weighted(families.regular(n, int(rng.integers(4, 6)), rng), 9, rng)


def _noisy_bipartite(params: Mapping[str, Any], rng: np.random.Generator) -> WeightedGraph:
    n = families.draw_size(params, "num_vertices", rng)
    return families.weighted(families.bipartite_noise(n, round(2.4 * n), rng), 9, rng)


def _triangles(params: Mapping[str, Any], rng: np.random.Generator) -> WeightedGraph:
    """Triangles on random vertices: every one loses an edge of the cut."""
    n = families.draw_size(params, "num_vertices", rng)
    pairs: list[tuple[int, int]] = []
    for _ in range(n):
        a, b, c = rng.choice(n, size=3, replace=False).tolist()
        pairs += [(a, b), (b, c), (a, c)]
    return families.weighted(families.connected(families.from_edges(n, pairs), rng), 9, rng)


TASK = split_task(
    name="maximum_cut",
    title="maximum cut",
    sense=Sense.MAX,
    category="partitioning",
    aliases=("NpMaximumCut",),
    levels=graph_levels(density=0.5),
    families={
        "gnp": _gnp,
        "regular": _regular,
        "noisy_bipartite": _noisy_bipartite,
        "triangles": _triangles,
    },
    flaw=flaw,
    verify=verify,
    solvers={"trivial": trivial, "random": random, "greedy": greedy, "heuristic": heuristic},
    reference=reference,
    wording=Wording(
        title="the maximum cut problem",
        rules=(
            "Divide all vertices into two sides such that the total weight of the edges between "
            "the sides is as large as possible. The sides may differ in size. Vertices are "
            "numbered from 0."
        ),
        picture=PICTURE_OF_WEIGHTS,
        output="A list of two lists of vertex numbers, one for each side.",
        brief=(
            "Divide all vertices into two sides such that the edges between the sides weigh as "
            "much as possible. Answer with two lists of vertex numbers."
        ),
        example=EXAMPLE_WEIGHTED,
        example_answer=[[0, 3], [1, 2]],
    ),
    notes={
        "gnp": "each pair is an edge with the level's density (sparser above 24 vertices)",
        "regular": "degrees 4 or 5",
        "noisy_bipartite": "two uneven sides and a tenth of the edges anywhere",
        "triangles": "many odd cycles",
    },
)
