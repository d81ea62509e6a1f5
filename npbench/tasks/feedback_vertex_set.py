"""Minimum feedback vertex set: few vertices whose removal leaves a forest."""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from npbench import families
from npbench.graph_tasks import EXAMPLE_GRAPH, PICTURE_OF_A_GRAPH, subset_task
from npbench.graphs import Graph, is_forest, member_mask, subset_refusal
from npbench.levels import graph_levels
from npbench.packing import edge_cliques
from npbench.prompts import Wording
from npbench.references import EARLY_STOP, choose, membership, run
from npbench.task import Budget, Reference, Sense, Verdict

__all__ = ["TASK"]


def verify(graph: Graph, answer: object) -> Verdict:
    """Feasible where the vertices are distinct and no cycle is left without them."""
    refusal = subset_refusal(answer, graph.num_vertices, "vertex")
    if refusal is not None:
        return refusal
    assert isinstance(answer, (list, tuple))
    ring = remaining_cycle(graph, set(answer))
    if ring:
        shown = "-".join(str(v) for v in [*ring, ring[0]])
        return Verdict(False, reason=f"the cycle {shown} is left", rule="cycle_left")
    return Verdict(True, objective=len(answer))


def remaining_cycle(graph: Graph, removed: set[int]) -> list[int]:
    """The vertices of a cycle that avoids ``removed``, or [] if there is none."""
    seen = set(removed)
    for root in range(graph.num_vertices):
        if root in seen:
            continue
        parent = {root: -1}
        stack = [root]
        while stack:
            vertex = stack.pop()
            seen.add(vertex)
            for other in graph.neighbours[vertex]:
                if other in removed or other == parent[vertex]:
                    continue
                if other in parent:
                    return _closed_walk(parent, vertex, other)
                parent[other] = vertex
                stack.append(other)
    return []


def _closed_walk(parent: Mapping[int, int], first: int, second: int) -> list[int]:
    """The cycle that the edge first-second closes in the tree of parents."""
    ancestors = [first]
    while parent[ancestors[-1]] >= 0:
        ancestors.append(parent[ancestors[-1]])
    walk = [second]
    while walk[-1] not in ancestors:
        walk.append(parent[walk[-1]])
    return ancestors[: ancestors.index(walk[-1])] + walk[::-1]


def trivial(graph: Graph, _: np.random.Generator) -> list[int]:
    """All vertices."""
    return list(range(graph.num_vertices))


def random(graph: Graph, rng: np.random.Generator) -> list[int]:
    """Vertices in random order, removed until a forest is left."""
    chosen: list[int] = []
    for vertex in rng.permutation(graph.num_vertices).tolist():
        if is_forest(graph, member_mask(chosen)):
            break
        chosen.append(vertex)
    return sorted(chosen)


def greedy(graph: Graph, _: np.random.Generator) -> list[int]:
    """Strip leaves, remove the largest degree, repeat; at the end put back what is not needed."""
    left = {v: set(graph.neighbours[v]) for v in range(graph.num_vertices)}
    chosen: list[int] = []
    while True:
        leaves = [v for v in left if len(left[v]) <= 1]
        while leaves:
            vertex = leaves.pop()
            if vertex in left:
                leaves += [other for other in left[vertex] if len(left[other]) <= 2]
                _drop(left, vertex)
        if not left:
            break
        vertex = max(left, key=lambda v: (len(left[v]), -v))
        chosen.append(vertex)
        _drop(left, vertex)
    for vertex in list(chosen):
        without = [v for v in chosen if v != vertex]
        if is_forest(graph, member_mask(without)):
            chosen = without
    return sorted(chosen)


def _drop(left: dict[int, set[int]], vertex: int) -> None:
    for other in left.pop(vertex):
        left[other].discard(vertex)


def heuristic(graph: Graph, rng: np.random.Generator) -> list[int]:
    """CP-SAT stopped early."""
    return _solve(graph, EARLY_STOP, start=greedy(graph, rng), hint=False).solution


def reference(graph: Graph, budget: Budget) -> Reference[list[int]]:
    """A maximum induced forest by CP-SAT.

    Every edge between kept vertices is directed; each vertex has at most one incoming arc, and
    order variables forbid directed cycles. At most two vertices of a clique are kept.
    """
    return _solve(graph, budget, start=greedy(graph, np.random.default_rng(0)), hint=True)


def _solve(graph: Graph, budget: Budget, *, start: list[int], hint: bool) -> Reference[list[int]]:
    from ortools.sat.python import cp_model

    n = graph.num_vertices
    model = cp_model.CpModel()
    keep = [model.new_bool_var("") for _ in range(n)]
    order = [model.new_int_var(0, n - 1, "") for _ in range(n)]
    incoming: list[list[Any]] = [[] for _ in range(n)]
    arcs: list[Any] = []
    for u, v in graph.edges:
        down, up = model.new_bool_var(""), model.new_bool_var("")
        incoming[v].append(down)
        incoming[u].append(up)
        arcs += [down, up]
        model.add_bool_or(down, up, keep[u].negated(), keep[v].negated())
        model.add_at_most_one(down, up)
        for arc in (down, up):
            model.add_implication(arc, keep[u])
            model.add_implication(arc, keep[v])
        model.add(order[v] >= order[u] + 1).only_enforce_if(down)
        model.add(order[u] >= order[v] + 1).only_enforce_if(up)
    for clique in edge_cliques(graph):
        if len(clique) > 2:
            model.add(sum(keep[v] for v in clique) <= 2)
    for row in incoming:
        model.add_at_most_one(row)
    if arcs:
        model.add(sum(arcs) <= sum(keep) - 1)
    model.minimize(n - sum(keep))
    kept = sorted(set(range(n)) - set(start))
    hints = membership(keep, kept) if hint else None
    outcome = run(model, keep, budget=budget, linearization_level=1, hint=hints)
    forest = outcome.chosen(keep)
    solution = None if forest is None else sorted(set(range(n)) - set(forest))
    return choose(
        outcome,
        sense=Sense.MIN,
        solution=solution,
        fallback=start,
        objective=len,
        trivial_bound=0,
    )


def flaw(_: Graph, best: Reference[list[int]]) -> str | None:
    """One vertex must not be enough."""
    return "one vertex is enough" if best.objective < 2 else None


def _cactus(params: Mapping[str, Any], rng: np.random.Generator) -> Graph:
    """Cycles hung on each other at single vertices, and a few chords."""
    n = families.draw_size(params, "num_vertices", rng)
    pairs = [(0, 1), (1, 2), (0, 2)]
    used = 3
    while used < n:
        extra = min(int(rng.integers(2, 4)), n - used)
        ring = [int(rng.integers(used)), *range(used, used + extra)]
        pairs += list(itertools.pairwise(ring))
        pairs.append((ring[-1], ring[0] if extra > 1 else int(rng.integers(used))))
        used += extra
    for _ in range(max(1, n // 4)):
        u, v = rng.integers(0, n, size=2).tolist()
        pairs.append((u, v))
    return families.relabelled(families.connected(families.from_edges(n, pairs), rng), rng)


def _theta(params: Mapping[str, Any], rng: np.random.Generator) -> Graph:
    """Two pairs of hubs joined by many paths, cross-linked."""
    n = families.draw_size(params, "num_vertices", rng)
    hubs = 2 if n < 8 else 4
    pairs: list[tuple[int, int]] = []
    vertex = hubs
    while vertex < n:
        a, b = (0, 1) if hubs == 2 or rng.random() < 0.5 else (2, 3)
        length = min(int(rng.integers(1, 3)), n - vertex)
        path = [a, *range(vertex, vertex + length), b]
        pairs += list(itertools.pairwise(path))
        vertex += length
    for _ in range(max(2, n // 4)):
        u, v = rng.integers(0, n, size=2).tolist()
        pairs.append((u, v))
    return families.relabelled(families.connected(families.from_edges(n, pairs), rng), rng)


TASK = subset_task(
    name="feedback_vertex_set",
    title="minimum feedback vertex set",
    sense=Sense.MIN,
    group="constraint",
    category="constraint",
    aliases=("NpFeedbackVertexSet",),
    levels=graph_levels(degree=(3, 4.6)),
    families={**families.SPARSE_FAMILIES, "cactus": _cactus, "theta": _theta},
    flaw=flaw,
    verify=verify,
    solvers={"trivial": trivial, "random": random, "greedy": greedy, "heuristic": heuristic},
    reference=reference,
    wording=Wording(
        title="the minimum feedback vertex set problem",
        rules=(
            "Find a set of vertices, as small as possible, such that the graph has no cycle left "
            "once they are removed together with their edges. Vertices are numbered from 0."
        ),
        picture=PICTURE_OF_A_GRAPH,
        output="A list of distinct vertex numbers.",
        brief=(
            "Remove as few vertices as possible such that no cycle is left. "
            "Answer with the list of removed vertex numbers."
        ),
        example=EXAMPLE_GRAPH,
        example_answer=[0],
    ),
    notes={
        "cactus": "cycles hung on each other at single vertices, and a few chords",
        "theta": "hubs joined by many short paths",
    },
)
