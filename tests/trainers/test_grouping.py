import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from trainers.assignment import assign
from trainers.grouping import (
    cluster_replies,
    cosine_distances,
    distance_to_other_groups,
    mean_pairwise_distance,
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def cost_of(unit: np.ndarray, labels: tuple[int, ...]) -> float:
    marks = np.array(labels)
    return sum(
        float(np.square(unit[marks == k] - unit[marks == k].mean(axis=0)).sum())
        for k in set(labels)
    )


def partition(labels: tuple[int, ...]) -> set[frozenset[int]]:
    return {frozenset(i for i, v in enumerate(labels) if v == k) for k in labels}


@pytest.mark.parametrize("seed", range(30))
def test_assignment_is_the_cheapest_of_all(seed: int) -> None:
    draw = rng(seed)
    clusters = int(draw.integers(2, 4))
    min_size = int(draw.integers(1, 3))
    points = int(draw.integers(clusters * min_size, 8))
    costs = draw.random((points, clusters))
    if seed % 3 == 0:
        costs[:, 0] -= 1.0
    labels = assign(costs, min_size=min_size)
    feasible = [
        trial
        for trial in itertools.product(range(clusters), repeat=points)
        if min(np.bincount(trial, minlength=clusters)) >= min_size
    ]
    best = min(costs[range(points), trial].sum() for trial in feasible)
    assert np.bincount(labels, minlength=clusters).min() >= min_size
    assert costs[range(points), labels].sum() == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_assignment_agrees_with_a_linear_assignment_of_reserved_places(seed: int) -> None:
    points, clusters, min_size = 24, 5, 4
    costs = rng(seed).random((points, clusters)) ** 3
    labels = assign(costs, min_size=min_size)
    reserved = np.repeat(costs, min_size, axis=1)
    free = np.repeat(costs.min(axis=1)[:, None], points - clusters * min_size, axis=1)
    square = np.concatenate([reserved, free], axis=1)
    rows, columns = linear_sum_assignment(square)
    assert costs[range(points), labels].sum() == pytest.approx(
        square[rows, columns].sum(), abs=1e-12
    )


def test_costs_must_be_finite_and_the_points_enough() -> None:
    with pytest.raises(ValueError, match="costs must be finite"):
        assign(np.array([[math.nan, 1.0], [0.0, 1.0]]), min_size=1)
    with pytest.raises(ValueError, match=r"at most the 3 points, got 2 \* 2"):
        assign(np.zeros((3, 2)), min_size=2)


@pytest.mark.parametrize("seed", range(10))
def test_clusters_are_the_global_optimum_on_small_cases(seed: int) -> None:
    embeddings = rng(seed).normal(size=(8, 3))
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    found = cluster_replies(embeddings, clusters=2, min_size=3, rng=rng(), starts=20)
    best = min(
        cost_of(unit, trial)
        for trial in itertools.product(range(2), repeat=8)
        if min(np.bincount(trial, minlength=2)) >= 3
    )
    assert found.cost == pytest.approx(cost_of(unit, found.labels))
    assert found.cost == pytest.approx(best)


@pytest.mark.parametrize("size", [9, 15, 32])
def test_sizes_and_labels_are_as_promised(size: int) -> None:
    found = cluster_replies(rng(size).normal(size=(size, 6)), clusters=3, min_size=3, rng=rng())
    assert len(found.labels) == size
    assert found.num_clusters == 3
    assert min(np.bincount(found.labels)) >= 3
    assert list(dict.fromkeys(found.labels)) == [0, 1, 2]


@pytest.mark.parametrize("seed", range(5))
def test_permuting_the_replies_permutes_the_clusters(seed: int) -> None:
    embeddings = rng(seed).normal(size=(15, 4))
    order = rng(seed + 50).permutation(15)
    first = cluster_replies(embeddings, clusters=3, min_size=3, rng=rng(7))
    again = cluster_replies(embeddings, clusters=3, min_size=3, rng=rng(7))
    other = cluster_replies(embeddings[order], clusters=3, min_size=3, rng=rng(7))
    assert first == again
    moved = {frozenset(int(order[i]) for i in members) for members in partition(other.labels)}
    assert moved == partition(first.labels)


def test_the_scale_of_an_embedding_does_not_matter() -> None:
    embeddings = rng(1).normal(size=(12, 4))
    scale = rng(2).uniform(0.1, 9.0, size=(12, 1))
    first = cluster_replies(embeddings, clusters=3, min_size=2, rng=rng())
    second = cluster_replies(embeddings * scale, clusters=3, min_size=2, rng=rng())
    assert partition(first.labels) == partition(second.labels)


def test_as_many_replies_as_places_give_equal_clusters() -> None:
    found = cluster_replies(rng(3).normal(size=(9, 2)), clusters=3, min_size=3, rng=rng())
    assert sorted(np.bincount(found.labels)) == [3, 3, 3]


def test_duplicates_share_a_cluster_unless_the_sizes_forbid_it() -> None:
    directions = np.eye(3)[[0, 0, 0, 1, 1, 1, 2, 2, 2]]
    found = cluster_replies(directions, clusters=3, min_size=3, rng=rng())
    assert found.labels == (0, 0, 0, 1, 1, 1, 2, 2, 2)
    assert found.cost == 0
    same = cluster_replies(np.ones((7, 4)), clusters=3, min_size=2, rng=rng())
    assert min(np.bincount(same.labels)) >= 2
    assert same == cluster_replies(np.ones((7, 4)), clusters=3, min_size=2, rng=rng())


def test_zero_vectors_are_replies_like_others() -> None:
    embeddings = np.concatenate([np.zeros((3, 2)), np.eye(2)[[0, 0, 1]]])
    found = cluster_replies(embeddings, clusters=2, min_size=2, rng=rng())
    assert found.labels[:3] == (0, 0, 0)
    distances = cosine_distances(embeddings)
    assert distances[0, 1] == 0
    assert distances[0, 3] == 1


def test_too_few_replies_are_refused_or_give_fewer_clusters() -> None:
    embeddings = rng(4).normal(size=(8, 3))
    with pytest.raises(ValueError, match=r"at most the 8 replies, got 3 \* 3"):
        cluster_replies(embeddings, clusters=3, min_size=3, rng=rng())
    fewer = cluster_replies(embeddings, clusters=3, min_size=3, rng=rng(), too_few="fewer")
    assert fewer.num_clusters == 2
    assert min(np.bincount(fewer.labels)) >= 3
    one = cluster_replies(embeddings[:2], clusters=3, min_size=3, rng=rng(), too_few="fewer")
    assert (one.num_clusters, one.labels) == (1, (0, 0))


def test_one_cluster_holds_everything_and_has_no_diversity_reward() -> None:
    embeddings = rng(5).normal(size=(6, 3))
    found = cluster_replies(embeddings, clusters=1, min_size=1, rng=rng())
    assert found.labels == (0,) * 6
    assert distance_to_other_groups(cosine_distances(embeddings), found.labels).tolist() == [0] * 6


def test_the_toy_of_the_plane_has_the_reference_diversity() -> None:
    angles = np.radians([0, 10, 20, 5, 90, 100])
    embeddings = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    distances = cosine_distances(embeddings)
    labels = cluster_replies(embeddings, clusters=2, min_size=2, rng=rng()).labels
    assert labels == (0, 0, 0, 0, 1, 1)
    expected = [1.086824, 0.913176, 0.742166, 1.0, 0.849294, 1.021789]
    assert distance_to_other_groups(distances, labels).tolist() == pytest.approx(expected, abs=1e-6)
    assert mean_pairwise_distance(distances) == pytest.approx(0.508793, abs=1e-6)
    assert mean_pairwise_distance(distances[:1, :1]) is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"clusters": 0}, "clusters must be at least 1, got 0"),
        ({"min_size": 0}, "min_size must be at least 1, got 0"),
        ({"starts": 0}, "starts must be at least 1, got 0"),
        ({"too_few": "less"}, "unknown rule for too few replies 'less'"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cluster_replies(np.eye(4), **{"clusters": 2, "min_size": 1, "rng": rng(), **settings})


def test_embeddings_must_be_a_finite_matrix() -> None:
    with pytest.raises(ValueError, match="must be finite"):
        cosine_distances(np.array([[1.0, math.nan]]))
    with pytest.raises(ValueError, match=r"shape \(N, D\), got \(3,\)"):
        cosine_distances(np.ones(3))
    with pytest.raises(ValueError, match=r"distances must have shape \(2, 2\)"):
        distance_to_other_groups(np.zeros((3, 3)), (0, 1))


def test_grouping_does_not_import_torch() -> None:
    code = "import sys, trainers.grouping; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
