"""Minimum dominating set: few vertices such that each is in the set or next to it."""

import itertools

import numpy as np

from npbench import families
from npbench.covering import greedy_cover, random_cover, solve_cover
from npbench.graph_tasks import EXAMPLE_GRAPH, PICTURE_OF_A_GRAPH, subset_task
from npbench.graphs import Graph, subset_refusal
from npbench.levels import graph_levels
from npbench.prompts import Wording
from npbench.references import EARLY_STOP
from npbench.task import Budget, Reference, Sense, Verdict

__all__ = ["TASK"]


def verify(graph: Graph, answer: object) -> Verdict:
    """Feasible where the vertices are distinct and every vertex is chosen or next to one."""
    refusal = subset_refusal(answer, graph.num_vertices, "vertex")
    if refusal is not None:
        return refusal
    assert isinstance(answer, (list, tuple))
    dominated = 0
    for vertex in answer:
        dominated |= graph.masks[vertex] | 1 << vertex
    missing = ~dominated & ((1 << graph.num_vertices) - 1)
    if missing:
        vertex = (missing & -missing).bit_length() - 1
        return Verdict(False, reason=f"vertex {vertex} is not dominated", rule="undominated")
    return Verdict(True, objective=len(answer))


def closed_neighbourhoods(graph: Graph) -> list[int]:
    """Each vertex with its neighbours, as bit masks."""
    return [mask | 1 << vertex for vertex, mask in enumerate(graph.masks)]


def trivial(graph: Graph, _: np.random.Generator) -> list[int]:
    """All vertices."""
    return list(range(graph.num_vertices))


def random(graph: Graph, rng: np.random.Generator) -> list[int]:
    """Vertices in random order, taken until every vertex is dominated."""
    return random_cover(closed_neighbourhoods(graph), graph.num_vertices, rng)


def greedy(graph: Graph, _: np.random.Generator) -> list[int]:
    """The vertex that newly dominates most first, the lowest number among equals."""
    return greedy_cover(closed_neighbourhoods(graph), graph.num_vertices)


def heuristic(graph: Graph, _: np.random.Generator) -> list[int]:
    """CP-SAT stopped early."""
    sets = closed_neighbourhoods(graph)
    return solve_cover(sets, graph.num_vertices, EARLY_STOP, hint=False).solution


def reference(graph: Graph, budget: Budget) -> Reference[list[int]]:
    """CP-SAT with one clause per closed neighbourhood."""
    return solve_cover(closed_neighbourhoods(graph), graph.num_vertices, budget, hint=True)


def flaw(_: Graph, best: Reference[list[int]]) -> str | None:
    """One vertex must not dominate all."""
    return "one vertex dominates all" if best.objective < 2 else None


def _star_paths(n: int, num_edges: int, rng: np.random.Generator) -> Graph:
    """Stars whose leaves are joined in paths: the centres' degrees mislead."""
    hubs = max(2, n // 5)
    pairs = [(int(rng.integers(hubs)), leaf) for leaf in range(hubs, n)]
    order = (rng.permutation(n - hubs) + hubs).tolist()
    extra = max(1, num_edges - len(pairs))
    pairs += list(itertools.pairwise(order))[:extra]
    return families.connected(families.from_edges(n, pairs), rng)


TASK = subset_task(
    name="dominating_set",
    title="minimum dominating set",
    sense=Sense.MIN,
    group="covering",
    category="covering",
    aliases=("NpDominatingSet",),
    levels=graph_levels(degree=(2.6, 4.2)),
    families={**families.SPARSE_FAMILIES, "star_paths": families.sparse(_star_paths)},
    flaw=flaw,
    verify=verify,
    solvers={"trivial": trivial, "random": random, "greedy": greedy, "heuristic": heuristic},
    reference=reference,
    wording=Wording(
        title="the minimum dominating set problem",
        rules=(
            "Find a set of vertices, as small as possible, such that every vertex of the graph is "
            "in the set or joined by an edge to a vertex of the set. Vertices are numbered from 0."
        ),
        picture=PICTURE_OF_A_GRAPH,
        output="A list of distinct vertex numbers.",
        brief=(
            "Find as few vertices as possible such that every other vertex is joined by an edge "
            "to one of them. Answer with a list of vertex numbers."
        ),
        example=EXAMPLE_GRAPH,
        example_answer=[2, 3],
    ),
    notes={"star_paths": "stars whose leaves are joined in paths"},
)
