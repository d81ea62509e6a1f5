"""Minimum vertex cover: few vertices that touch every edge."""

import numpy as np

from npbench import families
from npbench.branch_and_bound import maximum_clique
from npbench.graph_tasks import EXAMPLE_GRAPH, PICTURE_OF_A_GRAPH, subset_task
from npbench.graphs import Graph, member_mask, subset_problem
from npbench.levels import graph_levels
from npbench.packing import NODE_LIMIT
from npbench.prompts import Wording
from npbench.references import EARLY_STOP, choose, prefer, run
from npbench.task import Budget, Reference, Sense, Status, Verdict

__all__ = ["TASK"]


def verify(graph: Graph, answer: object) -> Verdict:
    """Feasible where the vertices are distinct and every edge has an end among them."""
    problem = subset_problem(answer, graph.num_vertices, "vertex")
    if problem:
        return Verdict(False, reason=problem[0], rule=problem[1])
    assert isinstance(answer, (list, tuple))
    chosen = member_mask(answer)
    for u, v in graph.edges:
        if not (chosen >> u | chosen >> v) & 1:
            return Verdict(False, reason=f"edge {u}-{v} is not covered", rule="uncovered")
    return Verdict(True, objective=len(answer))


def trivial(graph: Graph, _: np.random.Generator) -> list[int]:
    """All vertices."""
    return list(range(graph.num_vertices))


def random(graph: Graph, rng: np.random.Generator) -> list[int]:
    """Vertices in random order, taken while an edge is uncovered."""
    uncovered = set(graph.edges)
    chosen: list[int] = []
    for vertex in rng.permutation(graph.num_vertices).tolist():
        if not uncovered:
            break
        chosen.append(vertex)
        uncovered = {edge for edge in uncovered if vertex not in edge}
    return sorted(chosen)


def greedy(graph: Graph, _: np.random.Generator) -> list[int]:
    """The vertex with the most uncovered edges first, the lowest number among equals."""
    left = list(graph.masks)
    chosen: list[int] = []
    while True:
        vertex = max(range(graph.num_vertices), key=lambda v: (left[v].bit_count(), -v))
        if not left[vertex]:
            return sorted(chosen)
        chosen.append(vertex)
        left[vertex] = 0
        left = [mask & ~(1 << vertex) for mask in left]


def heuristic(graph: Graph, rng: np.random.Generator) -> list[int]:
    """CP-SAT stopped early."""
    return _solve(graph, EARLY_STOP, start=greedy(graph, rng), hint=False).solution


def reference(graph: Graph, budget: Budget) -> Reference[list[int]]:
    """CP-SAT with one clause per edge; where unproven, branch and bound on the complement."""
    start = greedy(graph, np.random.default_rng(0))
    best = _solve(graph, budget, start=start, hint=True)
    if best.status is Status.OPTIMAL:
        return best
    independent, proven = maximum_clique(graph.complement, node_limit=NODE_LIMIT)
    cover = sorted(set(range(graph.num_vertices)) - set(independent))
    bound = len(cover) if proven else 0
    status = Status.OPTIMAL if proven else Status.FEASIBLE
    return prefer(Sense.MIN, best, Reference(cover, len(cover), bound, status))


def _solve(graph: Graph, budget: Budget, *, start: list[int], hint: bool) -> Reference[list[int]]:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    chosen = [model.new_bool_var("") for _ in range(graph.num_vertices)]
    for u, v in graph.edges:
        model.add_bool_or(chosen[u], chosen[v])
    model.minimize(sum(chosen))
    members = set(start)
    hints = [(variable, int(v in members)) for v, variable in enumerate(chosen)] if hint else None
    outcome = run(model, chosen, budget=budget, linearization_level=1, hint=hints)
    solution = None
    if outcome.values is not None:
        solution = [v for v, variable in enumerate(chosen) if outcome.value(variable)]
    return choose(
        outcome,
        sense=Sense.MIN,
        solution=solution,
        fallback=start,
        objective=len,
        trivial_bound=0,
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
