"""The cheapest assignment of points to clusters of at least a given size; exact, no torch.

N points, K clusters.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["assign"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def assign(costs_NK: Floats, *, min_size: int) -> Ints:
    """A cheapest assignment of points to clusters in which each cluster gets at least ``min_size``.

    Exact: starting from the cheapest assignment without sizes, each missing point is brought in
    along a shortest path of moves between clusters (successive shortest paths of the min-cost
    flow). Ties go to the lower index.

    Raises:
        ValueError: If the points do not suffice, or a cost is not finite.
    """
    points, clusters = costs_NK.shape
    if not np.isfinite(costs_NK).all():
        raise ValueError("costs must be finite, got NaN or infinity")
    if min_size * clusters > points:
        raise ValueError(
            f"min_size * clusters must be at most the {points} points, got {min_size} * {clusters}"
        )
    labels: Ints = costs_NK.argmin(axis=1).astype(np.int64)
    while True:
        sizes = np.bincount(labels, minlength=clusters)
        if sizes.min() >= min_size:
            return labels
        target = int(np.flatnonzero(sizes < min_size)[0])
        # price[a, b]: what it costs to hand a point of a to b at the cheapest; mover: which point
        price = np.full((clusters, clusters), np.inf)
        mover = np.zeros((clusters, clusters), dtype=np.int64)
        for a in range(clusters):
            members = np.flatnonzero(labels == a)
            if len(members):
                extra = costs_NK[members] - costs_NK[members, a][:, None]
                mover[a] = members[extra.argmin(axis=0)]
                price[a] = extra.min(axis=0)
        np.fill_diagonal(price, np.inf)
        # Bellman-Ford from every cluster that can spare a point
        reach = np.where(sizes > min_size, 0.0, np.inf)
        before = np.full(clusters, -1)
        for _ in range(clusters):
            for a in range(clusters):
                for b in range(clusters):
                    # strictly better beyond rounding, or a cycle of equal prices never ends
                    if reach[a] + price[a, b] < reach[b] - 1e-12:
                        reach[b], before[b] = reach[a] + price[a, b], a
        step = target
        while before[step] >= 0:
            labels[mover[before[step], step]] = step
            step = int(before[step])
