"""When two solutions are the same, and how far apart two are, for each form of solution."""

import itertools
from collections.abc import Sequence
from typing import Any

__all__ = [
    "canonical_colouring",
    "canonical_cycle",
    "canonical_rows",
    "canonical_set",
    "canonical_sides",
    "colouring_distance",
    "cycle_distance",
    "row_distance",
    "set_distance",
    "side_distance",
]


def canonical_set(_: object, chosen: Sequence[int]) -> tuple[int, ...]:
    """A set's members in increasing order."""
    return tuple(sorted(chosen))


def set_distance(_: object, first: Sequence[int], second: Sequence[int]) -> float:
    """Jaccard distance: one minus shared members over all members; 0 for two empty sets."""
    return _jaccard(set(first), set(second))


def canonical_rows(_: object, rows: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Rows (meeting, room, start) in increasing order."""
    return tuple(sorted(tuple(row) for row in rows))


def row_distance(
    _: object, first: Sequence[Sequence[int]], second: Sequence[Sequence[int]]
) -> float:
    """Jaccard distance of two sets of rows."""
    return _jaccard({tuple(row) for row in first}, {tuple(row) for row in second})


def canonical_colouring(_: object, colours: Sequence[int]) -> tuple[int, ...]:
    """Colours renamed in the order of their first appearance.

    Example:
        >>> canonical_colouring(None, [7, 3, 7])
        (0, 1, 0)
    """
    names: dict[int, int] = {}
    return tuple(names.setdefault(colour, len(names)) for colour in colours)


def colouring_distance(_: object, first: Sequence[int], second: Sequence[int]) -> float:
    """Share of the vertex pairs that are together in one colouring and apart in the other."""
    n = len(first)
    pairs = n * (n - 1) // 2
    differing = sum(
        (first[u] == first[v]) != (second[u] == second[v]) for u in range(n) for v in range(u)
    )
    return differing / pairs if pairs else 0.0


def canonical_sides(_: object, sides: Sequence[Sequence[int]]) -> frozenset[frozenset[int]]:
    """The two sides as a set of sets."""
    return frozenset(frozenset(side) for side in sides)


def side_distance(
    _: object, first: Sequence[Sequence[int]], second: Sequence[Sequence[int]]
) -> float:
    """Fewest vertices to move from one split to the other, over the most that can be needed."""
    n = len(first[0]) + len(first[1])
    moved = len(set(first[0]) ^ set(second[0]))
    return min(moved, n - moved) / (n // 2) if n > 1 else 0.0


def canonical_cycle(_: object, walk: Sequence[int]) -> tuple[int, ...]:
    """A closed walk from its smallest vertex in the direction of that vertex's smaller neighbour.

    Example:
        >>> canonical_cycle(None, [2, 1, 3, 0, 2])
        (0, 2, 1, 3)
    """
    ring = list(walk[:-1])
    start = ring.index(min(ring))
    ring = ring[start:] + ring[:start]
    if len(ring) > 2 and ring[1] > ring[-1]:
        ring = [ring[0], *reversed(ring[1:])]
    return tuple(ring)


def cycle_distance(_: object, first: Sequence[int], second: Sequence[int]) -> float:
    """Jaccard distance of the edge sets of two closed walks."""
    return _jaccard(_ring_edges(first), _ring_edges(second))


def _ring_edges(walk: Sequence[int]) -> set[tuple[int, int]]:
    return {(min(u, v), max(u, v)) for u, v in itertools.pairwise(walk)}


def _jaccard(first: set[Any], second: set[Any]) -> float:
    union = len(first | second)
    return 1 - len(first & second) / union if union else 0.0
