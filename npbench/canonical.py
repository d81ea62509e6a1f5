"""Keys of isomorphism classes: equal for relabelled copies of one instance.

An instance is seen as a graph with attributes on its nodes and weights on its edges. The key is an
exact canonical form, found by individualisation and refinement with twins pruned, whenever the
search tree is small, and always up to eight nodes; beyond that (large and very symmetric graphs)
it is the multiset of refinements after individualising each node, which is invariant under
relabelling but may, in rare cases, be shared by two classes.

References:
    McKay and Piperno, Practical graph isomorphism II, 2014.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from npbench.rng import digest

__all__ = ["class_key"]

_EXACT_NODES = 8
_MAX_WORK = 6000
"""Leaves times nodes of the exact search beyond eight nodes."""

Adjacency = Sequence[Mapping[int, int]]


class _TooSymmetricError(Exception):
    """The search tree has more leaves than allowed."""


def class_key(attributes: Sequence[Any], adjacency: Adjacency, *, header: object = None) -> str:
    """A hexadecimal key that is equal for relabelled copies of one structure.

    Args:
        attributes: JSON-ready attribute of each node (what a relabelling must preserve).
        adjacency: Weight to each neighbour, per node; symmetric.
        header: JSON-ready facts about the whole instance.

    Example:
        >>> path = [{1: 1}, {0: 1, 2: 1}, {1: 1}]
        >>> same = [{1: 1, 2: 1}, {0: 1}, {0: 1}]
        >>> class_key([0] * 3, path) == class_key([0] * 3, same)
        True
    """
    order = {text: rank for rank, text in enumerate(sorted({digest(a) for a in attributes}))}
    colours = _refine([order[digest(a)] for a in attributes], adjacency)
    small = len(attributes) <= _EXACT_NODES
    limit = 10**9 if small else _MAX_WORK // len(attributes)
    try:
        form: object = _search(colours, adjacency, [limit])
        named = sorted((colours[v], digest(a)) for v, a in enumerate(attributes))
    except _TooSymmetricError:
        form = sorted(
            _histogram(_refine(_individualise(colours, v), adjacency), adjacency)
            for v in range(len(colours))
        )
        named = sorted((colours[v], digest(a)) for v, a in enumerate(attributes))
    return digest(header, named, form)[:32]


def _refine(colours: list[int], adjacency: Adjacency) -> list[int]:
    """The coarsest equitable refinement; colours are ranks, so their names are invariant."""
    count = len(set(colours))
    while count < len(colours):
        signatures = [
            (colours[v], tuple(sorted((w, colours[u]) for u, w in adjacency[v].items())))
            for v in range(len(colours))
        ]
        ranks = {signature: rank for rank, signature in enumerate(sorted(set(signatures)))}
        if len(ranks) == count:
            break
        count = len(ranks)
        colours = [ranks[signature] for signature in signatures]
    ranks_of = {colour: rank for rank, colour in enumerate(sorted(set(colours)))}
    return [ranks_of[colour] for colour in colours]


def _individualise(colours: list[int], node: int) -> list[int]:
    """Colours in which ``node`` comes just before the others of its cell."""
    fresh = [2 * colour + 1 for colour in colours]
    fresh[node] -= 1
    return fresh


def _search(colours: list[int], adjacency: Adjacency, leaves: list[int]) -> list[list[int]]:
    """The least certificate over the search tree below ``colours``."""
    cells: dict[int, list[int]] = {}
    for node, colour in enumerate(colours):
        cells.setdefault(colour, []).append(node)
    open_cells = [(len(nodes), colour) for colour, nodes in cells.items() if len(nodes) > 1]
    if not open_cells:
        leaves[0] -= 1
        if leaves[0] < 0:
            raise _TooSymmetricError
        return sorted(
            [colours[v], colours[u], w]
            for v in range(len(colours))
            for u, w in adjacency[v].items()
            if colours[v] < colours[u]
        )
    best: list[list[int]] | None = None
    tried: list[int] = []
    for node in cells[min(open_cells)[1]]:
        if any(_twins(node, other, adjacency) for other in tried):
            continue
        tried.append(node)
        form = _search(_refine(_individualise(colours, node), adjacency), adjacency, leaves)
        if best is None or form < best:
            best = form
    assert best is not None
    return best


def _twins(first: int, second: int, adjacency: Adjacency) -> bool:
    """Whether swapping the two nodes changes nothing."""
    a, b = adjacency[first], adjacency[second]
    if len(a) != len(b):
        return False
    return all(b.get(node) == weight for node, weight in a.items() if node != second) and all(
        a.get(node) == weight for node, weight in b.items() if node != first
    )


def _histogram(colours: list[int], adjacency: Adjacency) -> list[Any]:
    """Sizes of the cells and weights between them: what an equitable partition determines."""
    rows: dict[int, list[Any]] = {}
    for node, colour in enumerate(colours):
        if colour not in rows:
            seen = sorted((colours[u], w) for u, w in adjacency[node].items())
            rows[colour] = [colours.count(colour), seen]
    return [[colour, *rows[colour]] for colour in sorted(rows)]
