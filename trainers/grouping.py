"""Clusters of a prompt's replies, each of at least a given size; no torch.

Constrained k-means after Bradley, Bennett and Demiriz, on embeddings of unit length, where the
squared Euclidean distance is twice the cosine distance. The assignment of each iteration is exact,
and the result does not depend on the order of the replies.

N replies of a prompt, D dimensions, K clusters.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from npbench.errors import unknown_name
from trainers.assignment import assign

__all__ = [
    "Clustering",
    "cluster_replies",
    "cosine_distances",
    "distance_to_other_groups",
    "mean_pairwise_distance",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Clustering:
    """The clusters of one prompt's replies."""

    labels: tuple[int, ...]
    """Cluster of each reply, numbered 0 .. K-1 by first appearance."""
    num_clusters: int
    """K, or fewer where the prompt had too few replies and the rule was ``fewer``."""
    cost: float
    """Sum of squared distances of the unit-length embeddings to their cluster's mean."""


def _unit(embeddings_ND: NDArray[np.floating]) -> Floats:
    """Embeddings of unit length; a zero vector stays zero."""
    array = np.asarray(embeddings_ND, dtype=np.float64)
    if array.ndim != 2 or array.shape[0] < 1 or array.shape[1] < 1:
        raise ValueError(f"embeddings must have shape (N, D), got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError("embeddings must be finite, got NaN or infinity")
    norms = np.linalg.norm(array, axis=1, keepdims=True)
    unit: Floats = np.divide(array, norms, out=np.zeros_like(array), where=norms > 0)
    return unit


def cosine_distances(embeddings_ND: NDArray[np.floating]) -> Floats:
    """1 - cos(e_i, e_j) for all pairs, exactly symmetric, 0 on the diagonal.

    A zero vector (an answer that names nothing) is at distance 1 from every other vector and 0 from
    another zero vector.
    """
    unit = _unit(embeddings_ND)
    similarity = unit @ unit.T
    distances = 1.0 - np.clip((similarity + similarity.T) / 2.0, -1.0, 1.0)
    empty = ~unit.any(axis=1)
    distances[np.ix_(empty, empty)] = 0.0
    np.fill_diagonal(distances, 0.0)
    return distances


def mean_pairwise_distance(distances_NN: Floats) -> float | None:
    """D = 2 / (N (N - 1)) sum_{i<j} d_ij; None for fewer than two replies."""
    n = len(distances_NN)
    return float(distances_NN.sum() / (n * (n - 1))) if n > 1 else None


def distance_to_other_groups(distances_NN: Floats, labels: tuple[int, ...]) -> Floats:
    """MUPO's R_div(i): mean distance of reply i to all replies of the other clusters.

    R_div(i) = 1/(N - |G_k|) sum_{m != k} sum_{j in G_m} d(o_i, o_j), without further scaling (the
    released code doubles it). With one cluster the equation is 0/0; here it is 0, so that K = 1 is
    GRPO.

    References:
        MUPO, `arXiv 2604.00479 <https://arxiv.org/abs/2604.00479>`_, 2026.
    """
    marks = np.asarray(labels)
    if distances_NN.shape != (len(marks), len(marks)):
        raise ValueError(
            f"distances must have shape ({len(marks)}, {len(marks)}), got {distances_NN.shape}"
        )
    other = marks[:, None] != marks[None, :]
    counts = other.sum(axis=1)
    sums = np.where(other, distances_NN, 0.0).sum(axis=1)
    means: Floats = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
    return means


def _squared_distances(unit_ND: Floats) -> Floats:
    """Squared Euclidean distances of all pairs, by differences: duplicates are exactly alike."""
    rows = [np.square(unit_ND - point).sum(axis=1) for point in unit_ND]
    return np.stack(rows)


def _first_centres(squares_NN: Floats, clusters: int, rng: np.random.Generator) -> list[int]:
    """k-means++: each next centre is drawn in proportion to the squared distance to the nearest."""
    points = len(squares_NN)
    chosen = [int(rng.integers(points))]
    for _ in range(clusters - 1):
        gaps = squares_NN[:, chosen].min(axis=1)
        total = gaps.sum()
        if total > 0.0:
            place = int(np.searchsorted(np.cumsum(gaps) / total, rng.random(), "right"))
            chosen.append(min(place, points - 1))
        else:
            chosen.append(int(rng.integers(points)))
    return chosen


def _to_means(squares_NN: Floats, labels: Ints, clusters: int) -> tuple[Floats, float]:
    """Squared distances of all points to the clusters' means, and the cost of the clustering.

    |x - mean(C)|^2 = mean_j |x - j|^2 - (1 / 2) mean_ij |i - j|^2 over C: no mean is ever formed,
    and the time does not grow with the number of dimensions.
    """
    costs = np.empty((len(squares_NN), clusters))
    total = 0.0
    for k in range(clusters):
        members = labels == k
        means = squares_NN[:, members].mean(axis=1)
        within = means[members].mean() / 2.0
        costs[:, k] = means - within
        total += within * float(members.sum())
    return costs, float(total)


def _lloyd(
    squares_NN: Floats, centres: list[int], *, min_size: int, rounds: int
) -> tuple[Ints, float]:
    """Alternates exact assignment and means until nothing changes; labels and cost."""
    labels = assign(squares_NN[:, centres], min_size=min_size)
    costs, total = _to_means(squares_NN, labels, len(centres))
    for _ in range(rounds):
        after = assign(costs, min_size=min_size)
        if np.array_equal(after, labels):
            break
        labels = after
        costs, total = _to_means(squares_NN, labels, len(centres))
    return labels, total


def cluster_replies(
    embeddings_ND: NDArray[np.floating],
    *,
    clusters: int,
    min_size: int,
    rng: np.random.Generator,
    starts: int = 10,
    rounds: int = 100,
    too_few: Literal["refuse", "fewer"] = "refuse",
) -> Clustering:
    """Groups N replies into K clusters of at least ``min_size``.

    The replies are put into a canonical order first (by their embeddings), so a permutation of them
    permutes the labels and changes nothing else, for one state of the generator. Exact duplicates
    are interchangeable: they share a cluster unless the sizes force some of them elsewhere, and
    then the earlier in the given order go to the earlier cluster. The paper uses
    k-means-constrained with 10 starts, which rounds squared distances to 1/1000; here they are not
    rounded.

    Args:
        embeddings_ND: One embedding for each reply, any scale.
        clusters: K.
        min_size: G_min, at least 1.
        rng: Source of the starting centres.
        starts: Number of starts; the cheapest result is kept, the first of equals.
        rounds: Most iterations of a start.
        too_few: Where N < K * G_min: ``refuse``, or use the ``fewer`` clusters that fit,
            max(1, N // G_min).

    Raises:
        ValueError: If the sizes do not fit and the rule is ``refuse``.

    References:
        Bradley, Bennett, Demiriz, `Constrained K-Means Clustering
        <https://www.microsoft.com/en-us/research/publication/constrained-k-means-clustering/>`_,
        MSR-TR-2000-65; MUPO, `arXiv 2604.00479 <https://arxiv.org/abs/2604.00479>`_, 2026.
    """
    for name, value in (("clusters", clusters), ("min_size", min_size), ("starts", starts)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    if too_few not in ("refuse", "fewer"):
        raise unknown_name("rule for too few replies", too_few, ("refuse", "fewer"))
    unit = _unit(embeddings_ND)
    if clusters * min_size > len(unit):
        if too_few == "refuse":
            raise ValueError(
                f"clusters * min_size must be at most the {len(unit)} replies, "
                f"got {clusters} * {min_size}"
            )
        clusters = max(1, len(unit) // min_size)
        min_size = min(min_size, len(unit))
    # any total order of the rows' contents will do; adding 0 makes -0 and 0 one
    keys = [(row + 0.0).tobytes() for row in unit]
    order = np.array(sorted(range(len(unit)), key=keys.__getitem__))
    squares = _squared_distances(unit[order])
    best: tuple[Ints, float] | None = None
    for _ in range(starts):
        centres = _first_centres(squares, clusters, rng)
        found = _lloyd(squares, centres, min_size=min_size, rounds=rounds)
        if best is None or found[1] < best[1] - 1e-12:
            best = found
    assert best is not None
    labels = np.empty(len(unit), dtype=np.int64)
    labels[order] = best[0]
    names: dict[int, int] = {}
    renamed = tuple(names.setdefault(int(label), len(names)) for label in labels)
    return Clustering(renamed, clusters, best[1])
