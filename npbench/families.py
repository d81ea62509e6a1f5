"""Random graph families; every graph is simple and connected.

The caller relabels at the end (``relabelled``), so that vertex numbers say nothing about how a
graph was made.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from npbench.graphs import Graph, WeightedGraph, components

__all__ = [
    "SPARSE_FAMILIES",
    "bipartite_noise",
    "connected",
    "crown",
    "draw_size",
    "from_edges",
    "geometric",
    "gnp",
    "grid_noise",
    "preferential",
    "regular",
    "relabelled",
    "size_range",
    "sparse",
    "weighted",
]

Params = Mapping[str, Any]
Family = Callable[[Params, np.random.Generator], Graph]


def size_range(params: Params, name: str) -> tuple[int, int]:
    """The smallest and the largest value of a size parameter."""
    value = params[name]
    return (value, value) if isinstance(value, int) else (value[0], value[1])


def draw_size(params: Params, name: str, rng: np.random.Generator) -> int:
    """A size parameter, uniform over its range, both ends included."""
    low, high = size_range(params, name)
    return int(rng.integers(low, high + 1))


def from_edges(n: int, pairs: Iterable[tuple[int, int]]) -> Graph:
    """A graph from pairs in any order and direction; loops and repeats are dropped."""
    return Graph(n, tuple(sorted({(min(u, v), max(u, v)) for u, v in pairs if u != v})))


def relabelled(graph: Graph, rng: np.random.Generator) -> Graph:
    """The same graph under a uniformly random renumbering."""
    order = [int(v) for v in rng.permutation(graph.num_vertices)]
    return from_edges(graph.num_vertices, ((order[u], order[v]) for u, v in graph.edges))


def weighted(graph: Graph, high: int, rng: np.random.Generator) -> WeightedGraph:
    """The graph with uniform weights from 1 to ``high``, relabelled at random."""
    rows = tuple((u, v, int(rng.integers(1, high + 1))) for u, v in graph.edges)
    order = [int(v) for v in rng.permutation(graph.num_vertices)]
    moved = ((min(order[u], order[v]), max(order[u], order[v]), w) for u, v, w in rows)
    return WeightedGraph(graph.num_vertices, tuple(sorted(moved)))


def connected(graph: Graph, rng: np.random.Generator) -> Graph:
    """The graph with one random edge between consecutive components."""
    parts = components(graph)
    extra = [
        (int(rng.choice(first)), int(rng.choice(second)))
        for first, second in itertools.pairwise(parts)
    ]
    return from_edges(graph.num_vertices, [*graph.edges, *extra]) if extra else graph


def gnp(n: int, p: float, rng: np.random.Generator) -> Graph:
    """Each pair is an edge with probability p."""
    upper = np.triu(rng.random((n, n)) < p, k=1)
    graph = from_edges(n, ((int(u), int(v)) for u, v in np.argwhere(upper)))
    return connected(graph, rng)


def geometric(n: int, num_edges: int, rng: np.random.Generator) -> Graph:
    """The closest pairs of uniformly random points in the unit square."""
    points = rng.random((n, 2))
    gaps = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    rows, columns = np.triu_indices(n, k=1)
    nearest = np.argsort(gaps[rows, columns], kind="stable")[:num_edges]
    graph = from_edges(n, ((int(rows[i]), int(columns[i])) for i in nearest))
    return connected(graph, rng)


def regular(n: int, degree: int, rng: np.random.Generator) -> Graph:
    """Random pairing of stubs; the few clashing pairs are dropped, so degrees are nearly equal."""
    degree = min(degree, n - 1)
    best: Graph | None = None
    for _ in range(30):
        stubs = rng.permutation(np.repeat(np.arange(n), degree))
        half = len(stubs) // 2
        pairs = zip(stubs[:half].tolist(), stubs[half : 2 * half].tolist(), strict=True)
        graph = from_edges(n, pairs)
        if best is None or len(graph.edges) > len(best.edges):
            best = graph
        if len(graph.edges) == half:
            break
    assert best is not None
    return connected(best, rng)


def preferential(n: int, links: int, rng: np.random.Generator) -> Graph:
    """Each new vertex joins ``links`` earlier ones, drawn in proportion to their degrees."""
    links = max(1, min(links, n - 1))
    pairs = [(u, v) for v in range(links + 1) for u in range(v)]
    ends = [end for pair in pairs for end in pair]
    for vertex in range(links + 1, n):
        chosen: set[int] = set()
        while len(chosen) < links:
            chosen.add(ends[int(rng.integers(len(ends)))])
        for other in sorted(chosen):
            pairs.append((other, vertex))
            ends += [other, vertex]
    return from_edges(n, pairs)


def grid_noise(n: int, num_edges: int, rng: np.random.Generator) -> Graph:
    """A near-square grid with a few edges dropped, filled up with random ones."""
    columns = max(2, round(n**0.5))
    pairs = [(v, v + 1) for v in range(n - 1) if (v + 1) % columns]
    pairs += [(v, v + columns) for v in range(n - columns)]
    kept = [pair for pair in pairs if rng.random() > 0.1]
    graph = connected(from_edges(n, kept), rng)
    return _filled(graph, num_edges, rng)


def bipartite_noise(n: int, num_edges: int, rng: np.random.Generator) -> Graph:
    """Mostly edges between two uneven sides, and a tenth anywhere."""
    side = int(rng.integers(max(1, n // 3), n // 2 + 1))
    across = [(u, v) for u in range(side) for v in range(side, n)]
    picked = rng.permutation(len(across))[: max(n - 1, num_edges * 9 // 10)]
    graph = connected(from_edges(n, (across[int(i)] for i in picked)), rng)
    return _filled(graph, len(graph.edges) + max(1, num_edges // 10), rng)


def crown(n: int, num_edges: int, rng: np.random.Generator) -> Graph:
    """Crowns (complete bipartite without a perfect matching) joined at random.

    The many vertices of equal or misleading degree lead degree rules astray.
    """
    pairs: list[tuple[int, int]] = []
    start = 0
    while n - start >= 6:
        half = int(rng.integers(3, min(5, (n - start) // 2) + 1))
        pairs += [(start + i, start + half + j) for i in range(half) for j in range(half) if i != j]
        start += 2 * half
    for vertex in range(start, n):
        pairs += [(vertex, int(other)) for other in rng.choice(n, size=min(3, n), replace=False)]
    graph = connected(from_edges(n, pairs), rng)
    return _filled(graph, max(num_edges, len(graph.edges) + n // 6), rng)


def _filled(graph: Graph, num_edges: int, rng: np.random.Generator) -> Graph:
    """The graph with random new edges until it has ``num_edges``."""
    missing = graph.complement.edges
    wanted = min(max(0, num_edges - len(graph.edges)), len(missing))
    if not wanted:
        return graph
    picked = rng.permutation(len(missing))[:wanted]
    return from_edges(graph.num_vertices, [*graph.edges, *(missing[int(i)] for i in picked)])


def _mean_degree_edges(params: Params, n: int, rng: np.random.Generator) -> int:
    """Number of edges for a mean degree drawn from the level's ``degree`` (low, high)."""
    low, high = params["degree"]
    return max(n - 1, round(n * float(rng.uniform(low, high)) / 2))


def sparse(draw: Callable[[int, int, np.random.Generator], Graph]) -> Family:
    """A family at the level's size and mean degree, relabelled, from a drawer of (n, edges)."""

    def family(params: Params, rng: np.random.Generator) -> Graph:
        n = draw_size(params, "num_vertices", rng)
        return relabelled(draw(n, _mean_degree_edges(params, n, rng), rng), rng)

    return family


SPARSE_FAMILIES: Mapping[str, Family] = {
    "gnp": sparse(lambda n, m, rng: gnp(n, 2 * m / (n * (n - 1)), rng)),
    "geometric": sparse(geometric),
    "regular": sparse(lambda n, m, rng: regular(n, round(2 * m / n), rng)),
    "preferential": sparse(lambda n, m, rng: preferential(n, round(m / n), rng)),
    "grid_noise": sparse(grid_noise),
}
"""Families that the tasks on sparse graphs share."""
