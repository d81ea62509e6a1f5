"""Positions for graphs without coordinates: a near-square grid and a spring layout, spread apart.

Both begin with positions that may be illegible and are then relaxed: vertices are pushed away from
foreign edges and from each other until the clearance holds or the attempts are used up. What comes
out is a proposal; the proof decides. Every attempt has its own stream, so the same graph gets the
same picture everywhere.
"""

from collections.abc import Iterator
from math import ceil, sqrt

import numpy as np

from npbench.rendering.geometry import Array
from npbench.rendering.panels import GraphPanel
from npbench.rng import stream

__all__ = ["grid_positions", "spring_positions"]

_ATTEMPTS = 4
_STEPS = 220
_CLEARANCE = 0.105
"""Wanted distance of a vertex from a foreign edge, in a square from -1 to 1."""
_SPACING = 0.21
"""Wanted distance of two vertices."""
_SPARSE = 2.1
"""Edges per vertex up to which a spring layout is tried."""
_COLUMNS_OF = (1, 1, 2, 2, 2)
"""Columns of the smallest grids."""


def grid_positions(panel: GraphPanel) -> Iterator[Array]:
    """Rows in index order, the last one centred; shifted a little where edges need room.

    Args:
        panel: The graph.
    """
    n = panel.num_vertices
    columns = _COLUMNS_OF[n] if n < len(_COLUMNS_OF) else ceil(sqrt(n))
    rows = ceil(n / columns)
    last = n - columns * (rows - 1)
    places = []
    for vertex in range(n):
        row, col = divmod(vertex, columns)
        shift = (columns - last) / 2 if row == rows - 1 else 0.0
        places.append((col + shift, float(row)))
    grid = np.array(places)
    half = max(columns - 1, rows - 1, 1) / 2
    grid = (grid - (grid.min(axis=0) + grid.max(axis=0)) / 2) / half
    if not panel.edges:
        yield grid
        return
    for attempt in range(_ATTEMPTS):
        rng = stream("grid", n, panel.edges, attempt)
        step = 1.0 / half
        jitter = rng.uniform(-0.22, 0.22, grid.shape) * step
        yield _relaxed(grid + jitter, panel, anchor=grid, reach=0.38 * step)


def spring_positions(panel: GraphPanel) -> Iterator[Array]:
    """Distances in the plane like those in the graph (stress), for sparse graphs only.

    References:
        Gansner, Koren and North, Graph Drawing by Stress Majorization, GD 2004.
    """
    n = panel.num_vertices
    if n < 4 or not panel.edges or len(panel.edges) > _SPARSE * n:
        return
    hops = _hops(panel)
    for attempt in range(_ATTEMPTS):
        rng = stream("spring", n, panel.edges, attempt)
        points = _majorized(rng.uniform(-1.0, 1.0, (n, 2)), hops)
        points = points - (points.min(axis=0) + points.max(axis=0)) / 2
        points = points / max(float(np.abs(points).max()), 1e-9)
        yield _relaxed(points, panel, anchor=points, reach=0.5)


def _hops(panel: GraphPanel) -> Array:
    """Lengths of shortest paths; unconnected vertices are as far as the longest path and one."""
    n = panel.num_vertices
    hops = np.full((n, n), np.inf)
    np.fill_diagonal(hops, 0.0)
    for u, v in panel.edges:
        hops[u, v] = hops[v, u] = 1.0
    for middle in range(n):
        hops = np.minimum(hops, hops[:, middle, None] + hops[None, middle])
    return np.where(np.isinf(hops), hops[np.isfinite(hops)].max() + 1.0, hops)


def _majorized(points: Array, hops: Array) -> Array:
    """Positions after a fixed number of steps that never raise the stress."""
    n = len(points)
    weights = 1.0 / np.where(hops > 0, hops, np.inf) ** 2
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.inv(laplacian + 1.0 / n) - 1.0 / n
    for _ in range(60):
        apart = np.hypot(*(points[:, None] - points[None]).T)
        pull = weights * hops / np.maximum(apart, 1e-6)
        points = inverse @ (pull.sum(axis=1)[:, None] * points - pull @ points)
    return np.asarray(points)


def _relaxed(points: Array, panel: GraphPanel, *, anchor: Array, reach: float) -> Array:
    """Positions after pushing vertices off edges and each other, ``reach`` from the anchors."""
    edges = np.array(panel.edges)
    foreign = np.ones((panel.num_vertices, len(edges)), dtype=bool)
    for index, (u, v) in enumerate(panel.edges):
        foreign[[u, v], index] = False
    for _ in range(_STEPS):
        push = _apart(points)
        push_off, clear = _off_edges(points, edges, foreign)
        if clear and not push.any():
            break
        points = points + push + push_off
        points = np.clip(points, anchor - reach, anchor + reach)
        points = np.clip(points, -1.0, 1.0)
    return points


def _apart(points: Array) -> Array:
    """By how much each vertex is pushed away from those that are too near."""
    step = points[:, None] - points[None]
    length = np.maximum(np.hypot(step[..., 0], step[..., 1]), 1e-6)
    np.fill_diagonal(length, np.inf)
    lack = np.maximum(_SPACING - length, 0.0)
    return np.asarray((step / length[..., None] * (0.5 * lack)[..., None]).sum(axis=1))


def _off_edges(
    points: Array, edges: np.ndarray[tuple[int, ...], np.dtype[np.int64]], foreign: Array
) -> tuple[Array, bool]:
    """By how much vertices and ends of edges are pushed apart, and whether all are clear."""
    start, step = points[edges[:, 0]], points[edges[:, 1]] - points[edges[:, 0]]
    offset = points[:, None] - start[None]
    squared = np.maximum((step**2).sum(axis=-1), 1e-9)
    along = np.clip((offset * step).sum(axis=-1) / squared, 0.0, 1.0)
    away = offset - along[..., None] * step
    length = np.maximum(np.hypot(away[..., 0], away[..., 1]), 1e-6)
    lack = np.where(foreign, np.maximum(_CLEARANCE - length, 0.0), 0.0)
    force = away / length[..., None] * (0.3 * lack)[..., None]
    push = force.sum(axis=1)
    back = force.sum(axis=0)
    share = np.where(lack.any(axis=0), 0.5, 0.0)[:, None]
    np.add.at(push, edges[:, 0], -back * share)
    np.add.at(push, edges[:, 1], -back * share)
    return push, not lack.any()
