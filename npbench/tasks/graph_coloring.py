"""Graph colouring: few colours such that the ends of every edge differ."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from npbench import families
from npbench.answers import Shape
from npbench.graph_tasks import (
    EXAMPLE_GRAPH,
    PICTURE_OF_A_GRAPH,
    VERTEX_LIMITS,
    describe_graph,
    draw_graph,
    encode_graph,
    graph_class_key,
)
from npbench.graphs import Graph, decode_graph, shown
from npbench.levels import graph_levels
from npbench.prompts import Wording
from npbench.references import EARLY_STOP, choose, run
from npbench.solutions import canonical_colouring, colouring_distance
from npbench.task import Budget, Reference, Sense, Task, Verdict

__all__ = ["TASK"]

Colours = list[int]


def verify(graph: Graph, answer: object) -> Verdict:
    """Feasible where every vertex has one colour and the ends of each edge differ."""
    n = graph.num_vertices
    if not isinstance(answer, (list, tuple)):
        return Verdict(False, reason="the answer is no list of colours", rule="shape")
    for vertex, colour in enumerate(answer):
        if type(colour) is not int:
            reason = f"vertex {vertex} has colour {shown(colour)}, which is no integer"
            return Verdict(False, reason=reason, rule="type")
        if colour < 0:
            reason = f"vertex {vertex} has colour {shown(colour)}, which is negative"
            return Verdict(False, reason=reason, rule="range")
    if len(answer) != n:
        return Verdict(False, reason=f"{len(answer)} colours for {n} vertices", rule="length")
    for u, v in graph.edges:
        if answer[u] == answer[v]:
            reason = f"edge {u}-{v} has both ends in colour {shown(answer[u])}"
            return Verdict(False, reason=reason, rule="edge_conflict")
    return Verdict(True, objective=len(set(answer)))


def trivial(graph: Graph, _: np.random.Generator) -> Colours:
    """A colour of its own for each vertex."""
    return list(range(graph.num_vertices))


def random(graph: Graph, rng: np.random.Generator) -> Colours:
    """Vertices in random order, each in a uniform choice of its allowed colours and a new one."""
    colours = [-1] * graph.num_vertices
    used = 0
    for vertex in rng.permutation(graph.num_vertices).tolist():
        taken = {colours[other] for other in graph.neighbours[vertex]}
        free = [colour for colour in range(used + 1) if colour not in taken]
        colours[vertex] = free[int(rng.integers(len(free)))]
        used = max(used, colours[vertex] + 1)
    return colours


def greedy(graph: Graph, _: np.random.Generator) -> Colours:
    """First fit: vertices in index order, each with the smallest colour that no neighbour has."""
    colours = [-1] * graph.num_vertices
    for vertex in range(graph.num_vertices):
        colours[vertex] = _first_free(graph, colours, vertex)
    return colours


def heuristic(graph: Graph, _: np.random.Generator) -> Colours:
    """CP-SAT stopped early."""
    return _solve(graph, EARLY_STOP).solution


def reference(graph: Graph, budget: Budget) -> Reference[Colours]:
    """CP-SAT on assignment booleans, colours bounded by DSATUR, a greedy clique coloured first."""
    return _solve(graph, budget)


def dsatur(graph: Graph) -> Colours:
    """The vertex with the most colours among its neighbours first (Brelaz 1979)."""
    n = graph.num_vertices
    colours = [-1] * n
    for _ in range(n):
        vertex = max(
            (v for v in range(n) if colours[v] < 0),
            key=lambda v: (
                len({colours[u] for u in graph.neighbours[v]} - {-1}),
                len(graph.neighbours[v]),
                -v,
            ),
        )
        colours[vertex] = _first_free(graph, colours, vertex)
    return colours


def greedy_clique(graph: Graph) -> list[int]:
    """A maximal clique grown by the largest degree inside the candidates."""
    candidates = (1 << graph.num_vertices) - 1
    clique: list[int] = []
    while candidates:
        members = [v for v in range(graph.num_vertices) if candidates >> v & 1]
        vertex = max(members, key=lambda v: ((graph.masks[v] & candidates).bit_count(), -v))
        clique.append(vertex)
        candidates &= graph.masks[vertex]
    return clique


def _first_free(graph: Graph, colours: Colours, vertex: int) -> int:
    taken = {colours[other] for other in graph.neighbours[vertex]}
    return next(colour for colour in range(len(taken) + 1) if colour not in taken)


def _solve(graph: Graph, budget: Budget) -> Reference[Colours]:
    from ortools.sat.python import cp_model

    start = dsatur(graph)
    clique = greedy_clique(graph)
    limit = len(set(start))
    model = cp_model.CpModel()
    vertices, palette = range(graph.num_vertices), range(limit)
    has = [[model.new_bool_var("") for _ in palette] for _ in vertices]
    used = [model.new_bool_var("") for _ in palette]
    for vertex in vertices:
        model.add_exactly_one(has[vertex])
    for u, v in graph.edges:
        for colour in palette:
            model.add_at_most_one(has[u][colour], has[v][colour])
    for colour in palette:
        for vertex in vertices:
            model.add_implication(has[vertex][colour], used[colour])
        if colour:
            model.add_implication(used[colour], used[colour - 1])
    for colour, vertex in enumerate(clique):
        model.add(has[vertex][colour] == 1)
    model.minimize(sum(used))
    renamed = _aligned(start, clique)
    hint = [(has[v][c], int(renamed[v] == c)) for v in vertices for c in palette]
    outcome = run(
        model, [x for row in has for x in row], budget=budget, linearization_level=0, hint=hint
    )
    solution = None
    if outcome.values is not None:
        solution = [next(c for c in palette if outcome.value(has[v][c])) for v in vertices]
    return choose(
        outcome,
        sense=Sense.MIN,
        solution=solution,
        fallback=start,
        objective=lambda colours: len(set(colours)),
        trivial_bound=len(clique),
    )


def _aligned(colours: Colours, clique: list[int]) -> Colours:
    """The same colouring with the clique's vertices in colours 0, 1, 2, ..."""
    names = {colours[vertex]: name for name, vertex in enumerate(clique)}
    return [names.setdefault(colour, len(names)) for colour in colours]


def flaw(_: Graph, best: Reference[Colours]) -> str | None:
    """Two colours are too easy."""
    return "fewer than three colours are enough" if best.objective < 3 else None


def _gnp(params: Mapping[str, Any], rng: np.random.Generator) -> Graph:
    n = families.draw_size(params, "num_vertices", rng)
    return families.relabelled(families.gnp(n, params["density"], rng), rng)


def _planted(params: Mapping[str, Any], rng: np.random.Generator) -> Graph:
    n = families.draw_size(params, "num_vertices", rng)
    classes = int(rng.integers(3, max(4, n // 3) + 1))
    side = rng.integers(0, classes, size=n).tolist()
    density = params["density"] + 0.15
    pairs = (
        (u, v) for u in range(n) for v in range(u) if side[u] != side[v] and rng.random() < density
    )
    graph = families.connected(families.from_edges(n, pairs), rng)
    return families.relabelled(graph, rng)


def _near_bipartite(params: Mapping[str, Any], rng: np.random.Generator) -> Graph:
    n = families.draw_size(params, "num_vertices", rng)
    graph = families.bipartite_noise(n, round(params["density"] * n * (n - 1) / 3), rng)
    return families.relabelled(graph, rng)


def _mycielski(params: Mapping[str, Any], rng: np.random.Generator) -> Graph:
    n = families.draw_size(params, "num_vertices", rng)
    base = families.gnp((n - 1) // 2, params["density"], rng)
    half = base.num_vertices
    pairs = list(base.edges)
    pairs += [pair for u, v in base.edges for pair in ((u, half + v), (v, half + u))]
    pairs += [(half + v, 2 * half) for v in range(half)]
    pairs += [(int(rng.integers(2 * half + 1)), extra) for extra in range(2 * half + 1, n)]
    graph = families.connected(families.from_edges(n, pairs), rng)
    return families.relabelled(graph, rng)


TASK: Task[Graph, Colours] = Task(
    name="graph_coloring",
    title="graph colouring",
    sense=Sense.MIN,
    group="constraint",
    category="graph",
    aliases=("NpGcpD", "GCP-D"),
    levels=graph_levels(
        density=0.45,
        text={
            "easy": {"num_vertices": (8, 12), "density": 0.3},
            "medium": {"num_vertices": (15, 22), "density": 0.4},
            "hard": {"num_vertices": (25, 32), "density": 0.5},
            "bench": {"num_vertices": (32, 40), "density": 0.5},
        },
    ),
    limits=VERTEX_LIMITS,
    families={
        "gnp": _gnp,
        "planted": _planted,
        "near_bipartite": _near_bipartite,
        "mycielski": _mycielski,
    },
    flaw=flaw,
    verify=verify,
    solvers={"trivial": trivial, "random": random, "greedy": greedy, "heuristic": heuristic},
    reference=reference,
    canonical=canonical_colouring,
    distance=colouring_distance,
    class_key=graph_class_key,
    encode=encode_graph,
    decode=decode_graph,
    shape=Shape.FLAT,
    wording=Wording(
        title="graph colouring",
        rules=(
            "Give every vertex of the graph a colour such that the two ends of each edge have "
            "different colours. Use as few different colours as possible. Vertices are numbered "
            "from 0; colours are non-negative integers."
        ),
        picture=PICTURE_OF_A_GRAPH,
        output="A list with one colour per vertex, in the order of the vertex numbers.",
        brief=(
            "Colour the vertices so that the ends of each edge differ, with as few colours as "
            "possible. Answer with a list: the colour (0, 1, ...) of each vertex in order."
        ),
        example=EXAMPLE_GRAPH,
        example_answer=[0, 1, 2, 0, 1],
    ),
    describe=describe_graph,
    draw=draw_graph,
    notes={
        "gnp": "each pair is an edge with the level's density",
        "planted": "edges only between 3 or more hidden classes",
        "near_bipartite": "two sides and a few edges inside them",
        "mycielski": "Mycielskian of a random graph: more colours than its cliques need",
    },
)
