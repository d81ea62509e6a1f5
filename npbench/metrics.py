"""Success rate, quality ratio and their intervals: the definitions of MM-NP-Bench, made exact.

SR is the share of feasible answers, QR the mean quality ratio over all answers with 0 for those
that are not feasible. Both are averaged within a task, then over the tasks of a group, then over
groups. With k samples, ``sr`` and ``qr`` are means over all samples; ``sr_at_k`` and ``qr_at_k``
take the best of the k samples of an instance.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

__all__ = ["Answer", "bootstrap_interval", "cluster_means", "macro_interval", "spread"]

RESAMPLES = 2000
"""Bootstrap resamples behind every interval."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One graded reply."""

    instance_id: str
    state: str
    """``right``, ``feasible``, ``infeasible``, ``unparsed`` or ``empty``."""
    ratio: float
    """Quality ratio, 0 where not feasible."""
    optimal: bool
    """Whether it reaches a proven optimum."""
    beats: bool
    """Whether it is better than the reference."""
    rule: str
    """The violated rule's name, empty where feasible."""
    canonical: Any
    """Canonical form of a feasible answer, else None."""
    solution: Any
    """The parsed answer where feasible, else None."""

    @property
    def feasible(self) -> bool:
        """Whether the answer is feasible."""
        return self.state in ("right", "feasible")


def cluster_means(values: Sequence[float], clusters: Sequence[str]) -> np.ndarray[Any, Any]:
    """Mean of the values of each cluster, in the order of first appearance.

    Args:
        values: One number per question.
        clusters: The instance that each question shows.
    """
    sums: dict[str, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        sums.setdefault(cluster, []).append(value)
    return np.array([float(np.mean(row)) for row in sums.values()])


def bootstrap_interval(
    means: np.ndarray[Any, Any], *, seed: int = 0, level: float = 0.95
) -> tuple[float, float] | None:
    """Percentile bootstrap interval of the mean of cluster means, None below two clusters.

    References:
        Efron and Tibshirani, An Introduction to the Bootstrap, 1993, section 13.3.
    """
    return macro_interval([[means]], seed=seed, level=level)


def macro_interval(
    groups: Sequence[Sequence[np.ndarray[Any, Any]]], *, seed: int = 0, level: float = 0.95
) -> tuple[float, float] | None:
    """Interval of the mean over groups of the mean over tasks, instances resampled in each task.

    Args:
        groups: For each group the cluster means of each of its tasks.
        seed: Seed of the resampling.
        level: Coverage.
    """
    if any(len(means) < 2 for group in groups for means in group):
        return None
    rng = np.random.default_rng(seed)
    total = np.zeros(RESAMPLES)
    for group in groups:
        inner = np.zeros(RESAMPLES)
        for means in group:
            picks = rng.integers(0, len(means), size=(RESAMPLES, len(means)))
            inner += means[picks].mean(axis=1)
        total += inner / len(group)
    low, high = np.quantile(total / len(groups), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def spread(
    answers: Mapping[str, Sequence[Answer]],
    distance: Callable[[str, Any, Any], float],
) -> tuple[float | None, float | None]:
    """Distinct feasible solutions per instance, and their mean pairwise distance.

    Args:
        answers: All answers to each instance.
        distance: Distance of two solutions of an instance, by its id.

    Returns:
        The mean number of distinct feasible solutions over all instances, None without instances;
        and the mean, over the instances with two or more feasible answers, of the mean distance
        of their pairs, None where there is no such instance.
    """
    distinct: list[int] = []
    distances: list[float] = []
    for instance_id, row in answers.items():
        feasible = [answer for answer in row if answer.feasible]
        distinct.append(len({answer.canonical for answer in feasible}))
        pairs = [
            0.0 if a.canonical == b.canonical else distance(instance_id, a.solution, b.solution)
            for a, b in combinations(feasible, 2)
        ]
        if pairs:
            distances.append(float(np.mean(pairs)))
    mean_distinct = float(np.mean(distinct)) if distinct else None
    return mean_distinct, float(np.mean(distances)) if distances else None
