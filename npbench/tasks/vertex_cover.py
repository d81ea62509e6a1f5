"""Minimum vertex cover: few vertices that touch every edge."""

import numpy as np

from npbench import families
from npbench.branch_and_bound import maximum_clique
from npbench.covering import greedy_cover, random_cover, solve_cover
from npbench.graph_tasks import EXAMPLE_GRAPH, PICTURE_OF_A_GRAPH, subset_task
from npbench.graphs import Graph, member_mask, subset_refusal
from npbench.levels import graph_levels
from npbench.packing import NODE_LIMIT
from npbench.prompts import Wording
from npbench.references import EARLY_STOP, prefer
from npbench.task import Budget, Reference, Sense, Status, Verdict

__all__ = ["TASK"]


def verify(graph: Graph, answer: object) -> Verdict:
    """Feasible where the vertices are distinct and every edge has an end among them."""
    refusal = subset_refusal(answer, graph.num_vertices, "vertex")
    if refusal is not None:
        return refusal
    assert isinstance(answer, (list, tuple))
    chosen = member_mask(answer)
    for u, v in graph.edges:
        if not (chosen >> u | chosen >> v) & 1:
            return Verdict(False, reason=f"edge {u}-{v} is not covered", rule="uncovered")
    return Verdict(True, objective=len(answer))


def trivial(graph: Graph, _: np.random.Generator) -> list[int]:
    """All vertices."""
    return list(range(graph.num_vertices))


def incidences(graph: Graph) -> list[int]:
    """The edges at each vertex, as bit masks."""
    masks = [0] * graph.num_vertices
    for number, (u, v) in enumerate(graph.edges):
        masks[u] |= 1 << number
        masks[v] |= 1 << number
    return masks


def random(graph: Graph, rng: np.random.Generator) -> list[int]:
    """Vertices in random order, taken while an edge is uncovered."""
    return random_cover(incidences(graph), len(graph.edges), rng)


def greedy(graph: Graph, _: np.random.Generator) -> list[int]:
    """The vertex with the most uncovered edges first, the lowest number among equals."""
    return greedy_cover(incidences(graph), len(graph.edges))


def heuristic(graph: Graph, _: np.random.Generator) -> list[int]:
    """CP-SAT stopped early."""
    return _solve(graph, EARLY_STOP, hint=False).solution


def reference(graph: Graph, budget: Budget) -> Reference[list[int]]:
    """CP-SAT with one clause per edge; where unproven, branch and bound on the complement."""
    best = _solve(graph, budget, hint=True)
    if best.status is Status.OPTIMAL:
        return best
    independent, proven = maximum_clique(graph.complement, node_limit=NODE_LIMIT)
    cover = sorted(set(range(graph.num_vertices)) - set(independent))
    bound = len(cover) if proven else 0
    status = Status.OPTIMAL if proven else Status.FEASIBLE
    return prefer(Sense.MIN, best, Reference(cover, len(cover), bound, status))


def _solve(graph: Graph, budget: Budget, *, hint: bool) -> Reference[list[int]]:
    return solve_cover(
        incidences(graph), len(graph.edges), budget, hint=hint, linearization_level=1
    )


def flaw(graph: Graph, best: Reference[list[int]]) -> str | None:
    """At least two vertices stay outside."""
    if best.objective > graph.num_vertices - 2:
        return f"the optimum {best.objective} is above {graph.num_vertices - 2}"
    return None


TASK = subset_task(
    name="vertex_cover",
    title="minimum vertex cover",
    sense=Sense.MIN,
    group="covering",
    category="covering",
    aliases=("NpVertexCover",),
    levels=graph_levels(degree=(3, 5)),
    families={
        **families.SPARSE_FAMILIES,
        "bipartite_noise": families.sparse(families.bipartite_noise),
        "crown": families.sparse(families.crown),
    },
    flaw=flaw,
    verify=verify,
    solvers={"trivial": trivial, "random": random, "greedy": greedy, "heuristic": heuristic},
    reference=reference,
    wording=Wording(
        title="the minimum vertex cover problem",
        rules=(
            "Find a set of vertices, as small as possible, such that every edge has at least one "
            "of its two ends in the set. Vertices are numbered from 0."
        ),
        picture=PICTURE_OF_A_GRAPH,
        output="A list of distinct vertex numbers.",
        brief=(
            "Find as few vertices as possible such that every edge has an end among them. "
            "Answer with a list of vertex numbers."
        ),
        example=EXAMPLE_GRAPH,
        example_answer=[0, 2, 3],
    ),
    notes={
        "bipartite_noise": "two uneven sides and a tenth of the edges anywhere",
        "crown": "crowns joined at random: degrees mislead",
    },
)
