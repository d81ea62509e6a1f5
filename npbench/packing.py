"""Independent sets by CP-SAT, then branch and bound: cliques and covers reduce to them."""

from npbench.branch_and_bound import maximum_clique
from npbench.graphs import Graph
from npbench.references import choose, membership, prefer, run
from npbench.task import Budget, Reference, Sense, Status

__all__ = ["NODE_LIMIT", "edge_cliques", "solve_independent_set"]

NODE_LIMIT = 100_000
"""Nodes of the branch and bound that follows where CP-SAT did not prove its solution."""


def edge_cliques(graph: Graph) -> list[list[int]]:
    """Cliques, grown greedily, that cover every edge: at most one vertex of each is independent."""
    cliques: list[list[int]] = []
    covered: set[tuple[int, int]] = set()
    for u, v in graph.edges:
        if (u, v) in covered:
            continue
        clique = [u, v]
        candidates = graph.masks[u] & graph.masks[v]
        while candidates:
            vertex = (candidates & -candidates).bit_length() - 1
            clique.append(vertex)
            candidates &= graph.masks[vertex]
        clique.sort()
        covered.update((a, b) for i, a in enumerate(clique) for b in clique[i + 1 :])
        cliques.append(clique)
    return cliques


def solve_independent_set(
    graph: Graph, budget: Budget, *, start: list[int], hint: bool, node_limit: int = NODE_LIMIT
) -> Reference[list[int]]:
    """A maximum independent set.

    Args:
        graph: The graph.
        budget: CP-SAT's limit.
        start: A feasible set to fall back to.
        hint: Whether CP-SAT is told of ``start``.
        node_limit: Nodes of the branch and bound on the complement that is tried where CP-SAT
            proves nothing; 0 for none.
    """
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    chosen = [model.new_bool_var("") for _ in range(graph.num_vertices)]
    for clique in edge_cliques(graph):
        model.add_at_most_one(chosen[v] for v in clique)
    model.maximize(sum(chosen))
    hints = membership(chosen, start) if hint else None
    outcome = run(model, chosen, budget=budget, linearization_level=1, hint=hints)
    best = choose(
        outcome,
        sense=Sense.MAX,
        solution=outcome.chosen(chosen) or None,
        fallback=start,
        objective=len,
        trivial_bound=graph.num_vertices,
    )
    if best.status is Status.OPTIMAL or not node_limit:
        return best
    clique, proven = maximum_clique(graph.complement, node_limit=node_limit)
    if proven:
        return Reference(clique, len(clique), len(clique), Status.OPTIMAL)
    found = Reference(clique, len(clique), graph.num_vertices, Status.FEASIBLE)
    return prefer(Sense.MAX, best, found)
