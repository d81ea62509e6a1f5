"""Graphs as plain data: validated records, predicates that tasks share, and JSON faces."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from npbench.errors import InputError
from npbench.task import Verdict

__all__ = [
    "Graph",
    "WeightedGraph",
    "components",
    "decode_graph",
    "decode_weighted_graph",
    "entry_refusal",
    "is_forest",
    "member_mask",
    "require_int",
    "require_list",
    "shown",
    "subset_refusal",
]

Edge = tuple[int, int]
WeightedEdge = tuple[int, int, int]


@dataclass(frozen=True)
class Graph:
    """A simple undirected graph on the vertices 0 to n-1."""

    num_vertices: int
    edges: tuple[Edge, ...]
    """Each edge once as (u, v) with u < v, sorted."""

    @cached_property
    def masks(self) -> tuple[int, ...]:
        """Neighbours of each vertex as a bit mask."""
        masks = [0] * self.num_vertices
        for u, v in self.edges:
            masks[u] |= 1 << v
            masks[v] |= 1 << u
        return tuple(masks)

    @cached_property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """Neighbours of each vertex in increasing order."""
        lists: list[list[int]] = [[] for _ in range(self.num_vertices)]
        for u, v in self.edges:
            lists[u].append(v)
            lists[v].append(u)
        return tuple(tuple(sorted(row)) for row in lists)

    @cached_property
    def complement(self) -> "Graph":
        """The graph whose edges are the pairs that are no edges here."""
        present = set(self.edges)
        n = self.num_vertices
        pairs = ((u, v) for u in range(n) for v in range(u + 1, n))
        return Graph(n, tuple(pair for pair in pairs if pair not in present))


@dataclass(frozen=True)
class WeightedGraph:
    """A simple undirected graph with positive integer weights on its edges."""

    num_vertices: int
    edges: tuple[WeightedEdge, ...]
    """Each edge once as (u, v, weight) with u < v, sorted."""

    @cached_property
    def weights(self) -> tuple[dict[int, int], ...]:
        """Weight to each neighbour, per vertex."""
        rows: list[dict[int, int]] = [{} for _ in range(self.num_vertices)]
        for u, v, weight in self.edges:
            rows[u][v] = weight
            rows[v][u] = weight
        return tuple(rows)

    @cached_property
    def total_weight(self) -> int:
        """Sum of all weights."""
        return sum(weight for _, _, weight in self.edges)

    @property
    def skeleton(self) -> Graph:
        """The same graph without weights."""
        return Graph(self.num_vertices, tuple((u, v) for u, v, _ in self.edges))


def components(graph: Graph) -> list[list[int]]:
    """Connected components as sorted lists of vertices, ordered by their smallest vertex."""
    seen: set[int] = set()
    parts: list[list[int]] = []
    for root in range(graph.num_vertices):
        if root in seen:
            continue
        seen.add(root)
        part = [root]
        for vertex in part:
            for other in graph.neighbours[vertex]:
                if other not in seen:
                    seen.add(other)
                    part.append(other)
        parts.append(sorted(part))
    return parts


def is_forest(graph: Graph, removed: int) -> bool:
    """Whether no cycle is left without the vertices of the bit mask ``removed``."""
    parent = list(range(graph.num_vertices))
    for u, v in graph.edges:
        if removed >> u & 1 or removed >> v & 1:
            continue
        while parent[u] != u:
            parent[u] = parent[parent[u]]
            u = parent[u]
        while parent[v] != v:
            parent[v] = parent[parent[v]]
            v = parent[v]
        if u == v:
            return False
        parent[u] = v
    return True


def entry_refusal(answer: object, size: int, noun: str) -> Verdict | None:
    """Why ``answer`` is no list of numbers below ``size``, or None."""
    if not isinstance(answer, (list, tuple)):
        return Verdict(False, reason=f"the answer is no list of {noun} numbers", rule="shape")
    for entry in answer:
        if type(entry) is not int:
            reason = f"the answer holds {shown(entry)}, which is no integer"
            return Verdict(False, reason=reason, rule="type")
        if not 0 <= entry < size:
            reason = f"{noun} {shown(entry)} does not exist (0 to {size - 1})"
            return Verdict(False, reason=reason, rule="range")
    return None


def subset_refusal(answer: object, size: int, noun: str, *, empty: bool = True) -> Verdict | None:
    """Why ``answer`` is no list of distinct numbers below ``size``, or None.

    Args:
        answer: Any object.
        size: How many things there are to choose from.
        noun: What they are called.
        empty: Whether an empty list is allowed.
    """
    refusal = entry_refusal(answer, size, noun)
    if refusal is not None:
        return refusal
    assert isinstance(answer, (list, tuple))
    if len(set(answer)) < len(answer):
        seen: set[int] = set()
        for entry in answer:
            if entry in seen:
                return Verdict(False, reason=f"{noun} {entry} appears twice", rule="duplicate")
            seen.add(entry)
    if not answer and not empty:
        return Verdict(False, reason=f"the answer names no {noun}, it is empty", rule="empty")
    return None


def shown(value: object) -> str:
    """A value as a message shows it: short, whatever its size or depth.

    Example:
        >>> shown(7), shown("seven"), shown([[7]]), shown(10**99)
        ('7', "'seven'", 'a list', 'an integer of 329 bits')
    """
    if isinstance(value, int) and value.bit_length() > 96:
        return f"an integer of {value.bit_length()} bits"
    if value is None or isinstance(value, (bool, int, float)):
        return str(value)
    if isinstance(value, str):
        return repr(value[:40])
    return f"a {type(value).__name__}"


def member_mask(vertices: Iterable[int]) -> int:
    """A bit mask with the given bits set."""
    mask = 0
    for vertex in vertices:
        mask |= 1 << vertex
    return mask


def require_int(value: object, name: str, *, low: int, high: int = 10**12) -> int:
    """``value`` if it is an integer in [low, high], else an InputError that names it."""
    if type(value) is not int:
        raise InputError(f"{name} must be an integer, got {shown(value)}")
    if not low <= value <= high:
        raise InputError(f"{name} must lie in [{low}, {high}], got {shown(value)}")
    return value


def require_list(value: object, name: str, *, low: int = 0) -> Sequence[Any]:
    """``value`` if it is a list of at least ``low`` entries, else an InputError that names it."""
    if not isinstance(value, (list, tuple)):
        raise InputError(f"{name} must be a list, got {shown(value)}")
    if len(value) < low:
        raise InputError(f"{name} must hold at least {low} entries, got {len(value)}")
    return value


def _raw_edges(data: Any, width: int) -> tuple[int, list[tuple[int, ...]]]:
    """Vertex count and validated rows of ``edges``, smaller vertex first, sorted."""
    if not isinstance(data, dict):
        raise InputError(f"a graph instance must be an object, got {shown(data)}")
    missing = [key for key in ("num_vertices", "edges") if key not in data]
    if missing:
        raise InputError(f"a graph instance needs the key {missing[0]!r}")
    n = require_int(data["num_vertices"], "num_vertices", low=1, high=100_000)
    rows: dict[tuple[int, int], tuple[int, ...]] = {}
    for number, entry in enumerate(require_list(data["edges"], "edges")):
        name = f"edges[{number}]"
        edge = require_list(entry, name)
        if len(edge) != width:
            raise InputError(f"{name} must hold {width} numbers, got {len(edge)}")
        u, v = (require_int(edge[i], name, low=0, high=n - 1) for i in (0, 1))
        if u == v:
            raise InputError(f"{name} joins vertex {u} to itself")
        pair = (min(u, v), max(u, v))
        if pair in rows:
            raise InputError(f"{name} repeats the edge {pair[0]}-{pair[1]}")
        extra = tuple(require_int(weight, f"{name} weight", low=1) for weight in edge[2:])
        rows[pair] = (*pair, *extra)
    return n, sorted(rows.values())


def decode_graph(data: Any) -> Graph:
    """A graph from ``{"num_vertices": n, "edges": [[u, v], ...]}``.

    Raises:
        InputError: If a key is missing, or an edge is a loop, a repeat or out of range.
    """
    n, rows = _raw_edges(data, 2)
    return Graph(n, tuple((row[0], row[1]) for row in rows))


def decode_weighted_graph(data: Any) -> WeightedGraph:
    """A weighted graph from ``{"num_vertices": n, "edges": [[u, v, weight], ...]}``.

    Raises:
        InputError: As for ``decode_graph``, or if a weight is no positive integer.
    """
    n, rows = _raw_edges(data, 3)
    return WeightedGraph(n, tuple((row[0], row[1], row[2]) for row in rows))
