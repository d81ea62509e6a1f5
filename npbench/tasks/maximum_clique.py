"""Maximum clique: many vertices, every two of them adjacent."""

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
    """Feasible where the vertices are distinct, at least one, and every two are adjacent."""
    refusal = subset_refusal(answer, graph.num_vertices, "vertex", empty=False)
    if refusal is not None:
        return refusal
    assert isinstance(answer, (list, tuple))
    chosen = member_mask(answer)
    for vertex in answer:
        strangers = chosen & ~graph.masks[vertex] & ~(1 << vertex)
        if strangers:
            other = (strangers & -strangers).bit_length() - 1
            reason = f"vertices {vertex} and {other} are not adjacent"
            return Verdict(False, reason=reason, rule="not_adjacent")
    return Verdict(True, objective=len(answer))


def trivial(_: Graph, __: np.random.Generator) -> list[int]:
    """Vertex 0 alone."""
    return [0]


def random(graph: Graph, rng: np.random.Generator) -> list[int]:
    """Vertices in random order, each taken that fits: a maximal clique."""
    chosen: list[int] = []
    candidates = (1 << graph.num_vertices) - 1
    for vertex in rng.permutation(graph.num_vertices).tolist():
        if candidates >> vertex & 1:
            chosen.append(vertex)
            candidates &= graph.masks[vertex]
    return sorted(chosen)


def greedy(graph: Graph, _: np.random.Generator) -> list[int]:
    """The largest degree inside the candidates first, the lowest number among equals."""
    candidates = (1 << graph.num_vertices) - 1
    chosen: list[int] = []
    while candidates:
        members = (v for v in range(graph.num_vertices) if candidates >> v & 1)
        vertex = min(members, key=lambda v: (-(graph.masks[v] & candidates).bit_count(), v))
        chosen.append(vertex)
        candidates &= graph.masks[vertex]
    return sorted(chosen)


def heuristic(graph: Graph, rng: np.random.Generator) -> list[int]:
    """CP-SAT stopped early."""
    start = greedy(graph, rng)
    return solve_independent_set(
        graph.complement, EARLY_STOP, start=start, hint=False, node_limit=0
    ).solution


def reference(graph: Graph, budget: Budget) -> Reference[list[int]]:
    """An independent set of the complement by CP-SAT, then branch and bound if unproven."""
    start = greedy(graph, np.random.default_rng(0))
    return solve_independent_set(graph.complement, budget, start=start, hint=True)


def flaw(graph: Graph, best: Reference[list[int]]) -> str | None:
    """A triangle must exist, and the graph must not be complete."""
    if not 3 <= best.objective < graph.num_vertices:
        return f"the optimum {best.objective} is not in [3, {graph.num_vertices - 1}]"
    return None


def _gnp(params: Mapping[str, Any], rng: np.random.Generator) -> Graph:
    n = families.draw_size(params, "num_vertices", rng)
    return families.relabelled(families.gnp(n, params["density"], rng), rng)


def _planted(params: Mapping[str, Any], rng: np.random.Generator) -> Graph:
    """A clique whose members have fewer other neighbours than the crowd has."""
    n = families.draw_size(params, "num_vertices", rng)
    size = max(3, round(n * float(rng.uniform(0.3, 0.45))))
    density = params["density"]

    def edge(u: int, v: int) -> bool:
        inside = (u < size) + (v < size)
        if inside == 2:
            return True
        return bool(rng.random() < (density if inside == 0 else density * 0.55))

    pairs = [(u, v) for u in range(n) for v in range(u + 1, n) if edge(u, v)]
    return families.relabelled(families.connected(families.from_edges(n, pairs), rng), rng)


def _far_pairs(params: Mapping[str, Any], rng: np.random.Generator) -> Graph:
    """Complement of a geometric graph: far points are joined."""
    n = families.draw_size(params, "num_vertices", rng)
    near = round((1 - params["density"]) * n * (n - 1) / 2)
    graph = families.geometric(n, near, rng).complement
    return families.relabelled(families.connected(graph, rng), rng)


def _multipartite(params: Mapping[str, Any], rng: np.random.Generator) -> Graph:
    """Dense between small classes and empty inside, a few pairs missing: many near-cliques."""
    n = families.draw_size(params, "num_vertices", rng)
    classes = int(rng.integers(max(3, n // 4), max(4, n // 2) + 1))
    side = rng.integers(0, classes, size=n).tolist()
    keep = min(0.95, params["density"] + 0.2)
    pairs = [
        (u, v)
        for u in range(n)
        for v in range(u + 1, n)
        if side[u] != side[v] and rng.random() < keep
    ]
    return families.relabelled(families.connected(families.from_edges(n, pairs), rng), rng)


TASK = subset_task(
    name="maximum_clique",
    title="maximum clique",
    sense=Sense.MAX,
    group="subgraph",
    category="graph",
    aliases=("NpMaximumCliqueProblem", "maximum_clique_problem"),
    levels=graph_levels(
        density=0.55,
        text={
            "easy": {"num_vertices": (6, 8), "density": 0.5},
            "medium": {"num_vertices": (8, 12), "density": 0.5},
            "hard": {"num_vertices": (12, 16), "density": 0.55},
            "bench": {"num_vertices": (16, 20), "density": 0.55},
        },
    ),
    families={
        "gnp": _gnp,
        "planted": _planted,
        "far_pairs": _far_pairs,
        "multipartite": _multipartite,
    },
    flaw=flaw,
    verify=verify,
    solvers={"trivial": trivial, "random": random, "greedy": greedy, "heuristic": heuristic},
    reference=reference,
    wording=Wording(
        title="the maximum clique problem",
        rules=(
            "Find a clique, a set of vertices of which every two are joined by an edge, that is "
            "as large as possible. It must hold at least one vertex. Vertices are numbered from 0."
        ),
        picture=PICTURE_OF_A_GRAPH,
        output="A list of distinct vertex numbers.",
        brief=(
            "Find as many vertices as possible such that every two of them are joined by an "
            "edge. Answer with a list of vertex numbers."
        ),
        example=EXAMPLE_GRAPH,
        example_answer=[0, 1, 2],
    ),
    notes={
        "gnp": "each pair is an edge with the level's density",
        "planted": "a hidden clique whose members have lower degrees than the crowd",
        "far_pairs": "complement of a geometric graph",
        "multipartite": "dense between small classes: many near-cliques",
    },
)
