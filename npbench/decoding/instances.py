"""The JSON form of an instance from what was read in its picture."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from npbench.decoding.decoder import Decoded
from npbench.errors import InputError

__all__ = ["as_instance"]

_ALMOST = 0.5
"""Likeness of a head to the word that it is taken for."""

Table = tuple[tuple[str, ...], ...]


def as_instance(task: str, decoded: Decoded) -> dict[str, Any]:
    """The instance that a picture of a task shows; places of cities are left out.

    Args:
        task: The task's name.
        decoded: What was read.

    Raises:
        InputError: If the picture does not determine an instance; the message says why.
    """
    try:
        return _READERS.get(task, _graph)(decoded)
    except (IndexError, ValueError) as error:
        raise InputError(f"the picture shows no instance of {task}: {error}") from None


def _graph(decoded: Decoded) -> dict[str, Any]:
    _check_numbers(decoded)
    return {
        "num_vertices": len(decoded.vertices),
        "edges": [list(edge) for edge in sorted(decoded.edges)],
    }


def _check_numbers(decoded: Decoded) -> None:
    if decoded.numbers != tuple(range(len(decoded.vertices))):
        raise ValueError(f"its vertices have the numbers {decoded.numbers}")


def _weighted(decoded: Decoded) -> dict[str, Any]:
    """The graph with the matrix's weights; picture and matrix must show the same edges."""
    _check_numbers(decoded)
    matrix = _matrix(decoded.tables[0])
    weights = {
        (u, v): _integer(text)
        for u, row in enumerate(matrix)
        for v, text in enumerate(row)
        if text and u < v
    }
    if frozenset(weights) != decoded.edges:
        raise ValueError(f"lines and matrix differ in {sorted(decoded.edges ^ set(weights))}")
    if any(matrix[u][v] != matrix[v][u] for u, v in weights):
        raise ValueError("its matrix is not symmetric")
    edges = [[u, v, weight] for (u, v), weight in sorted(weights.items())]
    return {"num_vertices": len(decoded.vertices), "edges": edges}


def _matrix(table: Table) -> list[tuple[str, ...]]:
    """The body of a square table with row and column numbers."""
    numbers = tuple(str(v) for v in range(len(table) - 1))
    if table[0][1:] != numbers or tuple(row[0] for row in table[1:]) != numbers:
        raise ValueError(f"the heads of its matrix are {table[0]}")
    return [row[1:] for row in table[1:]]


def _tour(decoded: Decoded) -> dict[str, Any]:
    matrix = _matrix(decoded.tables[0])
    if decoded.vertices and decoded.numbers != tuple(range(len(matrix))):
        raise ValueError(f"its cities have the numbers {decoded.numbers}")
    return {
        "distances": [
            [0 if u == v else _integer(text) for v, text in enumerate(row)]
            for u, row in enumerate(matrix)
        ]
    }


def _cover(decoded: Decoded) -> dict[str, Any]:
    table = decoded.tables[0]
    return {
        "num_elements": len(table[0]) - 1,
        "subsets": [[e for e, text in enumerate(row[1:]) if text == "x"] for row in table[1:]],
    }


def _sum(decoded: Decoded) -> dict[str, Any]:
    numbers, target = decoded.tables
    return {"numbers": _column(numbers, "number"), "target": _column(target, "target")[0]}


def _items(decoded: Decoded) -> dict[str, Any]:
    items, capacity = decoded.tables
    return {
        "capacity": _column(capacity, "capacity")[0],
        "weights": _column(items, "weight"),
        "values": _column(items, "value"),
    }


def _meetings(decoded: Decoded) -> dict[str, Any]:
    day, rooms, meetings = decoded.tables
    people = _head(meetings, "attendees")
    durations = _column(meetings, "duration")
    return {
        "day": [
            [opens, closes]
            for opens, closes in zip(_column(day, "open from"), _column(day, "until"), strict=True)
        ],
        "rooms": [{"capacity": capacity} for capacity in _column(rooms, "capacity")],
        "meetings": [
            {"duration": duration, "attendees": [int(a) for a in row[people].split()]}
            for duration, row in zip(durations, meetings[1:], strict=True)
        ],
    }


def _column(table: Table, name: str) -> list[int]:
    """The numbers below a head; a first column of numbers must count from 0."""
    col = _head(table, name)
    if col > 0 and name != "until":
        counted = [row[0] for row in table[1:]]
        if counted != [str(i) for i in range(len(counted))]:
            raise ValueError(f"its rows have the numbers {counted}")
    return [_integer(row[col]) for row in table[1:]]


def _integer(text: str) -> int:
    """The number in a cell; noise may part its digits."""
    return int(text.replace(" ", ""))


def _head(table: Table, name: str) -> int:
    """The column with a head that reads almost like a word, since letters may be misread."""
    close = get_close_matches(name, table[0], n=1, cutoff=_ALMOST)
    if not close:
        raise ValueError(f"no column of {table[0]} is called {name!r}")
    return table[0].index(close[0])


_READERS: Mapping[str, Callable[[Decoded], dict[str, Any]]] = {
    "minimum_bisection": _weighted,
    "maximum_cut": _weighted,
    "tsp": _tour,
    "set_cover": _cover,
    "subset_sum": _sum,
    "knapsack": _items,
    "meeting_scheduling": _meetings,
}
