"""Minimum bisection: two sides of equal size with little weight between them."""

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
    """Feasible where two disjoint sides hold all vertices and differ by at most one in size."""
    return split_verdict(graph, answer, balanced=True)


def trivial(graph: WeightedGraph, _: np.random.Generator) -> Sides:
    """The first half of the numbers against the second half."""
    n = graph.num_vertices
    return [list(range((n + 1) // 2)), list(range((n + 1) // 2, n))]


def random(graph: WeightedGraph, rng: np.random.Generator) -> Sides:
    """A uniformly random half."""
    order = rng.permutation(graph.num_vertices).tolist()
    half = graph.num_vertices // 2
    return [sorted(order[:half]), sorted(order[half:])]


def greedy(graph: WeightedGraph, _: np.random.Generator) -> Sides:
    """One side grown from vertex 0 by the vertex with most weight into it."""
    n = graph.num_vertices
    side = [0]
    pull = [graph.weights[0].get(v, 0) for v in range(n)]
    while len(side) < n // 2:
        vertex = max((v for v in range(n) if v not in side), key=lambda v: (pull[v], -v))
        side.append(vertex)
        for other, weight in graph.weights[vertex].items():
            pull[other] += weight
    return [sorted(side), [v for v in range(n) if v not in side]]


def heuristic(graph: WeightedGraph, rng: np.random.Generator) -> Sides:
    """CP-SAT stopped early."""
    start = greedy(graph, rng)
    return solve_cut(
        graph, EARLY_STOP, sense=Sense.MIN, balanced=True, start=start, hint=False
    ).solution


def reference(graph: WeightedGraph, budget: Budget) -> Reference[Sides]:
    """CP-SAT with a hint from pair-swap descents."""
    start = local_search(graph, sense=Sense.MIN, balanced=True, starts=20, seed=budget.seed)
    return solve_cut(graph, budget, sense=Sense.MIN, balanced=True, start=start, hint=True)


def flaw(_: WeightedGraph, best: Reference[Sides]) -> str | None:
    """Something must be cut."""
    return "nothing needs to be cut" if best.objective == 0 else None


def _gnp(params: Mapping[str, Any], rng: np.random.Generator) -> WeightedGraph:
    n = families.draw_size(params, "num_vertices", rng)
    density = params["density"] if n <= 24 else min(params["density"], 4 / n)
    return families.weighted(families.gnp(n, density, rng), params["max_weight"], rng)


def _geometric(params: Mapping[str, Any], rng: np.random.Generator) -> WeightedGraph:
    n = families.draw_size(params, "num_vertices", rng)
    return families.weighted(families.geometric(n, round(2.2 * n), rng), params["max_weight"], rng)


def _grid(params: Mapping[str, Any], rng: np.random.Generator) -> WeightedGraph:
    n = families.draw_size(params, "num_vertices", rng)
    return families.weighted(families.grid_noise(n, round(2.1 * n), rng), params["max_weight"], rng)


def _communities(params: Mapping[str, Any], rng: np.random.Generator) -> WeightedGraph:
    """Two or three communities of uneven sizes, so that one must be split, and a few traitors.

    A traitor is as strongly tied to a foreign community as to its own.
    """
    n = families.draw_size(params, "num_vertices", rng)
    count = 3 if n >= 9 and rng.random() < 0.6 else 2
    home = np.sort(rng.integers(0, count, size=n)).tolist()
    traitors = set(rng.choice(n, size=max(1, n // 6), replace=False).tolist())
    inside, outside = min(0.85, 10 / n), min(0.3, 2 / n)

    def strength(u: int, v: int) -> float:
        if home[u] == home[v] or u in traitors or v in traitors:
            return inside if n <= 24 or home[u] == home[v] else outside * 2
        return outside

    pairs = [(u, v) for u in range(n) for v in range(u + 1, n) if rng.random() < strength(u, v)]
    graph = families.connected(families.from_edges(n, pairs), rng)
    return families.weighted(graph, params["max_weight"], rng)


def _text(low: int, high: int) -> dict[str, Any]:
    return {"num_vertices": (low, high), "density": 0.5, "max_weight": 10}


TASK = split_task(
    name="minimum_bisection",
    title="minimum bisection",
    sense=Sense.MIN,
    category="partition",
    aliases=("NpMinimumCut", "minimum-cut"),
    levels=graph_levels(
        density=0.5,
        max_weight=9,
        text={
            "easy": _text(16, 24),
            "medium": _text(26, 34),
            "hard": _text(36, 44),
            "bench": _text(46, 50),
        },
    ),
    families={"gnp": _gnp, "geometric": _geometric, "grid": _grid, "communities": _communities},
    flaw=flaw,
    verify=verify,
    solvers={"trivial": trivial, "random": random, "greedy": greedy, "heuristic": heuristic},
    reference=reference,
    wording=Wording(
        title="the minimum bisection problem",
        rules=(
            "Divide all vertices into two sides whose sizes differ by at most one, such that the "
            "total weight of the edges between the sides is as small as possible. Vertices are "
            "numbered from 0."
        ),
        picture=PICTURE_OF_WEIGHTS,
        output="A list of two lists of vertex numbers, one for each side.",
        brief=(
            "Divide all vertices into two sides whose sizes differ by at most one, such that the "
            "edges between the sides weigh as little as possible. "
            "Answer with two lists of vertex numbers."
        ),
        example=EXAMPLE_WEIGHTED,
        example_answer=[[0, 1], [2, 3]],
    ),
    notes={
        "gnp": "each pair is an edge with the level's density (sparser above 24 vertices)",
        "geometric": "closest pairs of random points",
        "grid": "a near-square grid with noise",
        "communities": "two or three uneven communities and traitors between them",
    },
)
