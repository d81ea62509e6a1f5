"""Maximum independent set: many vertices, no two of them adjacent."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from npbench import families
from npbench.graph_tasks import EXAMPLE_GRAPH, PICTURE_OF_A_GRAPH, subset_task
from npbench.graphs import Graph, member_mask, subset_refusal
from npbench.levels import graph_levels
from npbench.packing import solve_independent_set
from npbench.prompts import Wording
from npbench.references import EARLY_STOP
from npbench.task import Budget, Reference, Sense, Verdict

__all__ = ["TASK"]


def verify(graph: Graph, answer: object) -> Verdict:
    """Feasible where the vertices are distinct, at least one, and no edge joins two of them."""
    refusal = subset_refusal(answer, graph.num_vertices, "vertex", empty=False)
    if refusal is not None:
        return refusal
    assert isinstance(answer, (list, tuple))
    chosen = member_mask(answer)
    for vertex in answer:
        clash = graph.masks[vertex] & chosen
        if clash:
            other = (clash & -clash).bit_length() - 1
            reason = f"vertices {vertex} and {other} are adjacent"
            return Verdict(False, reason=reason, rule="adjacent")
    return Verdict(True, objective=len(answer))


def trivial(_: Graph, __: np.random.Generator) -> list[int]:
    """Vertex 0 alone."""
    return [0]


def random(graph: Graph, rng: np.random.Generator) -> list[int]:
    """Vertices in random order, each taken that fits: a maximal set."""
    chosen: list[int] = []
    blocked = 0
    for vertex in rng.permutation(graph.num_vertices).tolist():
        if not blocked >> vertex & 1:
            chosen.append(vertex)
            blocked |= graph.masks[vertex] | 1 << vertex
    return sorted(chosen)


def greedy(graph: Graph, _: np.random.Generator) -> list[int]:
    """The smallest degree inside the candidates first, the lowest number among equals."""
    candidates = (1 << graph.num_vertices) - 1
    chosen: list[int] = []
    while candidates:
        members = (v for v in range(graph.num_vertices) if candidates >> v & 1)
        vertex = min(members, key=lambda v: ((graph.masks[v] & candidates).bit_count(), v))
        chosen.append(vertex)
        candidates &= ~(graph.masks[vertex] | 1 << vertex)
    return sorted(chosen)


def heuristic(graph: Graph, rng: np.random.Generator) -> list[int]:
    """CP-SAT stopped early."""
    start = greedy(graph, rng)
    best = solve_independent_set(graph, EARLY_STOP, start=start, hint=False, node_limit=0)
    return best.solution


def reference(graph: Graph, budget: Budget) -> Reference[list[int]]:
    """CP-SAT over edge-covering cliques, then branch and bound where that proves nothing."""
    start = greedy(graph, np.random.default_rng(0))
    return solve_independent_set(graph, budget, start=start, hint=True)


def flaw(graph: Graph, best: Reference[list[int]]) -> str | None:
    """Two vertices must fit, and not all."""
    if not 2 <= best.objective < graph.num_vertices:
        return f"the optimum {best.objective} is not in [2, {graph.num_vertices - 1}]"
    return None


def _dense_gnp(params: Mapping[str, Any], rng: np.random.Generator) -> Graph:
    n = families.draw_size(params, "num_vertices", rng)
    return families.relabelled(families.gnp(n, params.get("density", 0.3), rng), rng)


TASK = subset_task(
    name="maximum_independent_set",
    title="maximum independent set",
    sense=Sense.MAX,
    group="subgraph",
    category="graph",
    aliases=("NpMaximumSet", "maximum-set"),
    levels=graph_levels(
        degree=(3, 5),
        text={
            "easy": {"num_vertices": (12, 20), "degree": (3, 6), "density": 0.4},
            "medium": {"num_vertices": (20, 30), "degree": (4, 8), "density": 0.4},
            "hard": {"num_vertices": (30, 40), "degree": (4, 9), "density": 0.4},
            "bench": {"num_vertices": (40, 50), "degree": (4, 9), "density": 0.4},
        },
    ),
    families={
        **families.SPARSE_FAMILIES,
        "bipartite_noise": families.sparse(families.bipartite_noise),
        "crown": families.sparse(families.crown),
        "dense_gnp": _dense_gnp,
    },
    flaw=flaw,
    verify=verify,
    solvers={"trivial": trivial, "random": random, "greedy": greedy, "heuristic": heuristic},
    reference=reference,
    wording=Wording(
        title="the maximum independent set problem",
        rules=(
            "Find a set of vertices, as large as possible, such that no two of them are joined "
            "by an edge. The set must hold at least one vertex. Vertices are numbered from 0."
        ),
        picture=PICTURE_OF_A_GRAPH,
        output="A list of distinct vertex numbers.",
        brief=(
            "Find as many vertices as possible such that no edge joins two of them. "
            "Answer with a list of vertex numbers."
        ),
        example=EXAMPLE_GRAPH,
        example_answer=[0, 3],
    ),
    notes={
        "dense_gnp": "each pair is an edge with probability 0.3 (text levels: 0.4)",
        "bipartite_noise": "two uneven sides and a tenth of the edges anywhere",
        "crown": "crowns joined at random: degrees mislead",
    },
)
