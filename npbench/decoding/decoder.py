"""What a picture shows: vertices, edges and tables, from the pixels alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from npbench.decoding.discs import Disc, find_discs
from npbench.decoding.edges import find_edges
from npbench.decoding.grids import Grid, find_grids
from npbench.decoding.imaging import LINE, Pixels, image_library, read_pixels
from npbench.decoding.tables import read_table

__all__ = ["Decoded", "decode"]

Edges = frozenset[tuple[int, int]]

_BENDS = (1.0, 4.0)
"""How far lines may bend, in pixels: ruled ones first, then those drawn by hand."""
_UNEXPLAINED = 12
"""Pixels of ink that no edge explains, from which on lines are looked for that bend more."""
_NEAR = 2.5
"""Half of the width that a line is granted when ink is explained."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """What was found in a picture."""

    vertices: tuple[Disc, ...]
    """By their numbers."""
    edges: Edges
    tables: tuple[tuple[tuple[str, ...], ...], ...]
    """Texts by table, row and column; tables from top to bottom, unreadable texts as ``?``."""
    unexplained: int
    """Pixels of ink at the vertices that belong to no edge that was found."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the vertices."""
        return tuple(disc.number for disc in self.vertices)


def decode(png: bytes, *, degrees: float = 0.0) -> Decoded:
    """The picture's content.

    Args:
        png: The file.
        degrees: By how much the picture is turned clockwise, as its prompt states.
    """
    pixels = read_pixels(png, degrees=degrees)
    turned = degrees % 90 != 0
    grids = find_grids(pixels)
    discs = find_discs(pixels, grids, turned=turned)
    edges: set[tuple[int, int]] = set()
    left = 0
    for bend in _BENDS:
        edges = find_edges(pixels, discs, aside=bend)
        left = _unexplained(pixels, grids, discs, edges, bend)
        if left < _UNEXPLAINED:
            break
    tables = tuple(tuple(map(tuple, read_table(pixels, grid, turned=turned))) for grid in grids)
    return Decoded(tuple(discs), frozenset(edges), tables, left)


def _unexplained(
    pixels: Pixels,
    grids: Sequence[Grid],
    discs: Sequence[Disc],
    edges: set[tuple[int, int]],
    bend: float,
) -> int:
    """Pixels of the strokes that meet a ring and lie away from all rings and edges."""
    if not discs:
        return 0
    ink = pixels.smooth > LINE
    for grid in grids:
        ink[grid.rows[0] - 2 : grid.rows[-1] + 3, grid.columns[0] - 2 : grid.columns[-1] + 3] = (
            False
        )
    labels, _ = image_library().label(ink, structure=np.ones((3, 3)))
    rings = {label for disc in discs for label in np.unique(labels[_around(disc)]) if label}
    rows, columns = np.nonzero(np.isin(labels, list(rings)))
    x, y = columns + 0.5, rows + 0.5
    free = np.ones(len(x), dtype=bool)
    for disc in discs:
        free &= np.hypot(x - disc.x, y - disc.y) > disc.r + 4
    places = {disc.number: disc for disc in discs}
    for u, v in edges:
        a, b = places[u], places[v]
        length = np.hypot(b.x - a.x, b.y - a.y)
        dx, dy = (b.x - a.x) / length, (b.y - a.y) / length
        along = (x - a.x) * dx + (y - a.y) * dy
        away = np.abs(dx * (y - a.y) - dy * (x - a.x))
        # beyond its ends an edge explains nothing: a neighbour's edge may go on in its direction
        free &= (away > _NEAR + bend - _BENDS[0]) | (along < 0) | (along > length)
    return int(free.sum())


def _around(disc: Disc) -> tuple[slice, slice]:
    reach = int(disc.r) + 3
    x, y = int(disc.x), int(disc.y)
    return slice(max(0, y - reach), y + reach + 1), slice(max(0, x - reach), x + reach + 1)
