"""Longest cycle: a simple cycle through many vertices (the papers' Hamiltonian cycle task)."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from npbench import families
from npbench.answers import Shape
from npbench.errors import NoSolutionError
from npbench.graph_tasks import (
    EXAMPLE_GRAPH,
    PICTURE_OF_A_GRAPH,
    VERTEX_LIMITS,
    describe_graph,
    draw_graph,
    encode_graph,
    graph_class_key,
)
from npbench.graphs import Graph, decode_graph, entry_refusal
from npbench.levels import graph_levels
from npbench.prompts import Wording
from npbench.references import EARLY_STOP, choose, run
from npbench.solutions import canonical_cycle, cycle_distance
from npbench.task import Budget, Reference, Sense, Status, Task, Verdict

__all__ = ["TASK"]

Walk = list[int]


def verify(graph: Graph, answer: object) -> Verdict:
    """Feasible where the walk is closed, follows edges and visits 3 or more vertices once each."""
    refusal = entry_refusal(answer, graph.num_vertices, "vertex")
    if refusal is not None:
        return refusal
    assert isinstance(answer, (list, tuple))
    if len(answer) < 4:
        reason = f"{len(answer)} entries; a cycle has at least 3 vertices and returns to its start"
        return Verdict(False, reason=reason, rule="too_short")
    if answer[0] != answer[-1]:
        reason = f"the walk starts at {answer[0]} and ends at {answer[-1]}"
        return Verdict(False, reason=reason, rule="not_closed")
    seen: set[int] = set()
    for vertex in answer[:-1]:
        if vertex in seen:
            return Verdict(False, reason=f"vertex {vertex} is visited twice", rule="duplicate")
        seen.add(vertex)
    for u, v in itertools.pairwise(answer):
        if not graph.masks[u] >> v & 1:
            return Verdict(False, reason=f"{u}-{v} is not an edge", rule="no_edge")
    return Verdict(True, objective=len(answer) - 1)


def size(walk: Sequence[int]) -> int:
    """Number of distinct vertices of a closed walk."""
    return len(walk) - 1


def trivial(graph: Graph, _: np.random.Generator) -> Walk:
    """A shortest cycle."""
    best: Walk = []
    for u, v in graph.edges:
        path = _shortest_path(graph, u, v)
        if path and (not best or len(path) + 1 < len(best)):
            best = [*path, u]
    if not best:
        raise NoSolutionError("the graph has no cycle")
    return best


def _shortest_path(graph: Graph, start: int, goal: int) -> list[int]:
    """A shortest path that does not use the edge start-goal, or []."""
    parent = {start: -1}
    queue = [start]
    for vertex in queue:
        for other in graph.neighbours[vertex]:
            if other in parent or (vertex == start and other == goal):
                continue
            parent[other] = vertex
            queue.append(other)
    if goal not in parent:
        return []
    path = [goal]
    while path[-1] != start:
        path.append(parent[path[-1]])
    return path[::-1]


def random(graph: Graph, rng: np.random.Generator) -> Walk:
    """The first cycle that a random walk without turning back closes, in the graph's 2-core."""
    core = set(range(graph.num_vertices))
    while pruned := [v for v in core if sum(u in core for u in graph.neighbours[v]) < 2]:
        core.difference_update(pruned)
    if not core:
        return trivial(graph, rng)
    start = sorted(core)[int(rng.integers(len(core)))]
    walk, position = [start], {start: 0}
    while True:
        back = walk[-2] if len(walk) > 1 else -1
        steps = [u for u in graph.neighbours[walk[-1]] if u in core and u != back]
        vertex = steps[int(rng.integers(len(steps)))]
        if vertex in position:
            return [*walk[position[vertex] :], vertex]
        position[vertex] = len(walk)
        walk.append(vertex)


def greedy(graph: Graph, rng: np.random.Generator) -> Walk:
    """Warnsdorff's path from every vertex, closed by its longest back edge, then insertions."""
    best = trivial(graph, rng)
    for start in range(graph.num_vertices):
        ring = _inserted(graph, _closed(graph, _warnsdorff(graph, start)))
        if len(ring) + 1 > len(best):
            best = [*ring, ring[0]]
    return best


def _warnsdorff(graph: Graph, start: int) -> list[int]:
    """A path that always goes on to the unvisited neighbour with fewest unvisited neighbours."""
    free = (1 << graph.num_vertices) - 1 & ~(1 << start)
    path = [start]
    while True:
        options = [u for u in graph.neighbours[path[-1]] if free >> u & 1]
        if not options:
            return path
        vertex = min(options, key=lambda u: ((graph.masks[u] & free).bit_count(), u))
        free &= ~(1 << vertex)
        path.append(vertex)


def _closed(graph: Graph, path: list[int]) -> list[int]:
    """The longest cycle that an edge from a path's vertex to an earlier one closes."""
    best: list[int] = []
    for end in range(2, len(path)):
        mask = graph.masks[path[end]]
        start = next(i for i in range(end) if mask >> path[i] & 1)
        if end - start >= 2 and end - start + 1 > len(best):
            best = path[start : end + 1]
    return best


def _inserted(graph: Graph, ring: list[int]) -> list[int]:
    """The ring with vertices put between two neighbours of theirs, until none fits."""
    outside = [v for v in range(graph.num_vertices) if v not in set(ring)]
    changed = bool(ring)
    while changed:
        changed = False
        for vertex in outside:
            mask = graph.masks[vertex]
            for i in range(len(ring)):
                if mask >> ring[i] & 1 and mask >> ring[i - 1] & 1:
                    ring = [*ring[:i], vertex, *ring[i:]]
                    outside = [v for v in outside if v != vertex]
                    changed = True
                    break
            if changed:
                break
    return ring


def heuristic(graph: Graph, rng: np.random.Generator) -> Walk:
    """CP-SAT on the whole graph, stopped early."""
    start = trivial(graph, rng)
    return _solve(graph, range(graph.num_vertices), EARLY_STOP, start=start, hint=False).solution


def reference(graph: Graph, budget: Budget) -> Reference[Walk]:
    """A circuit with optional vertices by CP-SAT, one 2-connected block after the other.

    A longest cycle lies inside one block, so blocks are solved by decreasing size until the next
    one is no larger than the best cycle.
    """
    import networkx as nx

    plain = nx.Graph(list(graph.edges))
    blocks = sorted(
        (sorted(b) for b in nx.biconnected_components(plain)), key=lambda b: (-len(b), b)
    )
    best: Reference[Walk] | None = None
    bound = 3
    start = greedy(graph, np.random.default_rng(0))
    for block in blocks:
        if len(block) < 3 or (best is not None and len(block) <= best.objective):
            break
        found = _solve(graph, block, budget, start=start, hint=True)
        bound = max(bound, found.bound)
        if best is None or found.objective > best.objective:
            best = found
    if best is None:
        raise NoSolutionError("the graph has no cycle")
    status = Status.OPTIMAL if best.objective >= bound else Status.FEASIBLE
    return Reference(best.solution, best.objective, max(bound, best.objective), status)


def _solve(
    graph: Graph, block: Sequence[int], budget: Budget, *, start: Walk, hint: bool
) -> Reference[Walk]:
    """A longest cycle inside a block; level 0 first, level 2 where that proves nothing."""
    from ortools.sat.python import cp_model

    inside = set(block)
    model = cp_model.CpModel()
    arcs: list[tuple[int, int, Any]] = []
    for u, v in graph.edges:
        if u in inside and v in inside:
            arcs += [(u, v, model.new_bool_var("")), (v, u, model.new_bool_var(""))]
    position = {vertex: rank for rank, vertex in enumerate(block)}
    skipped = [model.new_bool_var("") for _ in block]
    circuit = [(position[u], position[v], arc) for u, v, arc in arcs]
    circuit += [(rank, rank, skip) for rank, skip in enumerate(skipped)]
    model.add_circuit(circuit)
    model.add(sum(skipped) <= len(block) - 3)
    model.maximize(len(block) - sum(skipped))
    hints = None
    if hint and set(start) <= inside:
        steps = set(itertools.pairwise(start))
        hints = [(arc, int((u, v) in steps)) for u, v, arc in arcs]
    variables = [arc for _, _, arc in arcs]
    outcome = run(model, variables, budget=budget, linearization_level=0, hint=hints)
    if hint and not outcome.optimal:
        outcome = run(model, variables, budget=budget, linearization_level=2)
    solution = None
    if outcome.values is not None:
        after = {u: v for u, v, arc in arcs if outcome.value(arc)}
        walk = [min(after)]
        while len(walk) == 1 or walk[-1] != walk[0]:
            walk.append(after[walk[-1]])
        solution = walk
    return choose(
        outcome,
        sense=Sense.MAX,
        solution=solution,
        fallback=start,
        objective=size,
        trivial_bound=len(block),
    )


def flaw(_: Graph, best: Reference[Walk]) -> str | None:
    """Triangles alone are too easy."""
    return "no cycle has four vertices" if best.objective < 4 else None


def _planted(params: Mapping[str, Any], rng: np.random.Generator) -> Graph:
    """A cycle through all vertices, and chords."""
    n = families.draw_size(params, "num_vertices", rng)
    pairs = [(v, (v + 1) % n) for v in range(n)]
    low, high = params["degree"]
    chords = round(n * max(0.5, float(rng.uniform(low, high)) / 2 - 1))
    pairs += [(int(u), int(v)) for u, v in rng.integers(0, n, size=(chords, 2))]
    return families.relabelled(families.from_edges(n, pairs), rng)


def _blocks(params: Mapping[str, Any], rng: np.random.Generator) -> Graph:
    """Dense parts that share single vertices, and pendant paths: no cycle visits all."""
    n = families.draw_size(params, "num_vertices", rng)
    pairs: list[tuple[int, int]] = []
    joint, used = 0, 1
    while used < n:
        extra = min(int(rng.integers(max(2, n // 4), max(3, n // 2) + 1)), n - used)
        part = [joint, *range(used, used + extra)]
        if extra >= 2:
            pairs += list(zip(part, [*part[1:], part[0]], strict=True))
            for _ in range(len(part) // 2):
                pairs.append((int(rng.choice(part)), int(rng.choice(part))))
        else:
            pairs.append((part[0], part[-1]))
        used += extra
        joint = int(rng.integers(used))
    return families.relabelled(families.connected(families.from_edges(n, pairs), rng), rng)


def _uneven(n: int, num_edges: int, rng: np.random.Generator) -> Graph:
    """Bipartite with sides of different size: at most twice the smaller side."""
    small = max(2, round(n * float(rng.uniform(0.35, 0.45))))
    across = [(u, v) for u in range(small) for v in range(small, n)]
    picked = rng.permutation(len(across))[: max(n, num_edges)]
    return families.connected(families.from_edges(n, (across[int(i)] for i in picked)), rng)


TASK: Task[Graph, Walk] = Task(
    name="longest_cycle",
    title="longest cycle",
    sense=Sense.MAX,
    group="path",
    category="planning",
    aliases=("NpHamiltonianCycle", "hamiltonian-cycle"),
    levels=graph_levels(
        degree=(2.6, 3.4),
        text={
            "easy": {"num_vertices": (15, 20), "degree": (2.6, 4)},
            "medium": {"num_vertices": (20, 30), "degree": (2.6, 4)},
            "hard": {"num_vertices": (30, 40), "degree": (2.6, 4)},
            "bench": {"num_vertices": (40, 50), "degree": (2.6, 4)},
        },
    ),
    limits=VERTEX_LIMITS,
    families={
        "gnp": families.SPARSE_FAMILIES["gnp"],
        "geometric": families.SPARSE_FAMILIES["geometric"],
        "preferential": families.SPARSE_FAMILIES["preferential"],
        "grid_noise": families.SPARSE_FAMILIES["grid_noise"],
        "planted": _planted,
        "blocks": _blocks,
        "uneven_bipartite": families.sparse(_uneven),
    },
    flaw=flaw,
    verify=verify,
    solvers={"trivial": trivial, "random": random, "greedy": greedy, "heuristic": heuristic},
    reference=reference,
    canonical=canonical_cycle,
    distance=cycle_distance,
    class_key=graph_class_key,
    encode=encode_graph,
    decode=decode_graph,
    shape=Shape.PATH,
    wording=Wording(
        title="the longest cycle problem",
        rules=(
            "Find a simple cycle that visits as many vertices as possible. It follows edges of "
            "the graph, visits no vertex twice, has at least 3 vertices and returns to its start. "
            "The graph need not have a cycle through all vertices. Vertices are numbered from 0."
        ),
        picture=PICTURE_OF_A_GRAPH,
        output="The list of vertices in the order of the cycle, the first one again at the end.",
        brief=(
            "Find a cycle through as many vertices as possible, each at most once, along edges. "
            "Answer with the list of vertices in order, the first again at the end."
        ),
        example=EXAMPLE_GRAPH,
        example_answer=[0, 1, 2, 0],
    ),
    describe=describe_graph,
    draw=draw_graph,
    notes={
        "planted": "a cycle through all vertices, and chords",
        "blocks": "dense parts that share single vertices",
        "uneven_bipartite": "two sides of different size",
    },
)
