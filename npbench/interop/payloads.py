"""Graphs and lists as other benchmarks write them, converted to and from our JSON form.

Their objects are keyed by numbers written as text, from 0 without a gap. Converting checks what
they leave unchecked: that the keys are 0 to n-1, that both ends of an edge name each other, that
nothing is listed twice.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from npbench.errors import InputError
from npbench.graphs import Graph, WeightedGraph

__all__ = [
    "Payload",
    "adjacency_lists",
    "adjacency_weights",
    "by_number",
    "distance_rows",
    "edge_rows",
    "require_keys",
    "stated_objective",
    "weighted_edge_rows",
]


@dataclass(frozen=True, slots=True)
class Payload:
    """How another benchmark's payload of a task is read and written."""

    read: Callable[[Any], dict[str, Any]]
    """Into our JSON form; raises InputError."""
    write: Callable[[Any], dict[str, Any]]
    """From a decoded instance."""


def by_number(data: object, what: str) -> list[Any]:
    """The values of an object whose keys are 0 to n-1, in the order of the keys.

    Raises:
        InputError: If ``data`` is no object or a key is missing, repeated or no number.

    Example:
        >>> by_number({"1": "b", "0": "a"}, "names")
        ['a', 'b']
    """
    if not isinstance(data, dict):
        raise InputError(f"{what} must be an object, got {str(data)[:40]!r}")
    values: dict[int, Any] = {}
    for key, value in data.items():
        number = _number(key, len(data), f"a key of {what}")
        if number in values:
            raise InputError(f"{what} has the key {number} twice")
        values[number] = value
    return [values[number] for number in range(len(data))]


def edge_rows(data: object) -> dict[str, Any]:
    """The JSON form of a graph ``{"0": [1, 4], ...}`` or ``{"0": {"1": 1}, ...}``.

    Neighbours may be numbers or text.

    Raises:
        InputError: If the payload is none, or an edge is named from one end only.
    """
    rows = by_number(data, "the graph")
    edges = _symmetric(_neighbours(rows, weighted=False))
    return {"num_vertices": len(rows), "edges": [[u, v] for u, v, _ in edges]}


def weighted_edge_rows(data: object) -> dict[str, Any]:
    """The JSON form of a weighted graph ``{"0": {"1": 3}, ...}``; a weight of 0 means no edge.

    Raises:
        InputError: If the payload is none, or an edge has not one weight from both ends.
    """
    rows = by_number(data, "the graph")
    edges = _symmetric(_neighbours(rows, weighted=True))
    return {"num_vertices": len(rows), "edges": [[u, v, w] for u, v, w in edges if w != 0]}


def distance_rows(data: object) -> dict[str, Any]:
    """The JSON form of cities ``{"0": {"1": 12, ...}, ...}``, the diagonal 0 or left out.

    Raises:
        InputError: If a distance is missing or no integer.
    """
    rows = by_number(data, "the distances")
    n = len(rows)
    matrix = []
    for u, row in enumerate(rows):
        if not isinstance(row, dict):
            raise InputError(f"the distances of city {u} must be an object, got {str(row)[:40]!r}")
        found = {_number(key, n, f"a key of city {u}"): value for key, value in row.items()}
        if len(found) != len(row):
            raise InputError(f"the distances of city {u} have a key twice")
        missing = [v for v in range(n) if v != u and v not in found]
        if missing:
            raise InputError(f"the distance from city {u} to city {missing[0]} is missing")
        matrix.append([found.get(v, 0) for v in range(n)])
    return {"distances": matrix}


def adjacency_lists(graph: Graph) -> dict[str, list[int]]:
    """``{"0": [1, 4], ...}`` with a key for each vertex, isolated ones too."""
    return {str(u): list(row) for u, row in enumerate(graph.neighbours)}


def adjacency_weights(graph: WeightedGraph) -> dict[str, dict[str, int]]:
    """``{"0": {"1": 3}, ...}`` with a key for each vertex, isolated ones too."""
    return {str(u): {str(v): w for v, w in row.items()} for u, row in enumerate(graph.weights)}


def stated_objective(value: object, *, closed_walk: bool) -> int | None:
    """The objective that a file states, counted as ours; None where it states none.

    Args:
        value: What stands there.
        closed_walk: Whether the file counts the entries of a closed walk, its start twice.

    Raises:
        InputError: If it is no whole number from 0.
    """
    if value is None:
        return None
    low = int(closed_walk)
    number = value if type(value) is int else None
    if isinstance(value, float) and value.is_integer():
        number = int(value)
    if number is None or not low <= number < 10**15:
        raise InputError(f"ground_truth must be a whole number from {low}, got {str(value)[:40]!r}")
    return number - low


def _number(key: object, count: int, what: str) -> int:
    """A key or a neighbour as a number below ``count``."""
    text = str(key) if type(key) is int else key
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or len(text) > 9:
        raise InputError(f"{what} must be a number from 0, got {str(key)[:40]!r}")
    if str(int(text)) != text or int(text) >= count:
        raise InputError(f"{what} must lie in [0, {count - 1}], got {text}")
    return int(text)


def _neighbours(rows: list[Any], *, weighted: bool) -> list[dict[int, int]]:
    """For each vertex its neighbours with their weights, 1 where only listed."""
    result: list[dict[int, int]] = []
    for u, row in enumerate(rows):
        if isinstance(row, dict):
            pairs = list(row.items())
        elif isinstance(row, (list, tuple)):
            pairs = [(v, 1) for v in row]
        else:
            raise InputError(f"the neighbours of vertex {u} must be a list, got {str(row)[:40]!r}")
        found: dict[int, int] = {}
        for key, value in pairs:
            v = _number(key, len(rows), f"a neighbour of vertex {u}")
            if v in found:
                raise InputError(f"vertex {u} names its neighbour {v} twice")
            if type(value) is not int or (value != 1 and not weighted):
                wanted = "an integer" if weighted else "1"
                raise InputError(f"the weight of edge {u}-{v} must be {wanted}, got {value!r}")
            found[v] = value
        result.append(found)
    return result


def _symmetric(rows: list[dict[int, int]]) -> list[tuple[int, int, int]]:
    """Each edge once with the smaller end first, after checking that both ends agree."""
    edges = []
    for u, row in enumerate(rows):
        for v, weight in row.items():
            if rows[v].get(u) != weight:
                back = rows[v].get(u, "missing")
                raise InputError(f"edge {u}-{v} has weight {weight}, edge {v}-{u} is {back}")
            if u == v and weight != 0:
                raise InputError(f"vertex {u} is joined to itself")
            if u < v:
                edges.append((u, v, weight))
    return sorted(edges)


def require_keys(data: object, keys: tuple[str, ...], what: str) -> Mapping[str, Any]:
    """``data`` if it is an object with all the keys.

    Raises:
        InputError: If it is none, or a key is missing; the message names the first one.
    """
    if not isinstance(data, dict):
        raise InputError(f"{what} must be an object, got {str(data)[:40]!r}")
    missing = [key for key in keys if key not in data]
    if missing:
        raise InputError(f"{what} has no {missing[0]!r}")
    return data
