r"""How sure a mean over questions is: clustered standard errors, intervals, paired comparisons.

Samples of one question, and questions about one instance, are not independent. So the unit is the
cluster: a resample draws clusters, a permutation flips clusters, and k samples of a question never
count as k questions.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist
from typing import Any

import numpy as np

__all__ = [
    "Difference",
    "Estimate",
    "SeedSpread",
    "across_seeds",
    "bootstrap_interval",
    "clustered_error",
    "compare_runs",
    "estimate",
    "mean_over_seeds",
    "wilson_interval",
]

LEVEL = 0.95
RESAMPLES = 4_000
_FLIPS = 20_000
_EXACT_CLUSTERS = 14
_CHUNK = 2_000_000

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over questions and how sure it is."""

    value: float
    standard_error: float | None
    """None with fewer than two clusters."""
    low: float | None
    high: float | None
    questions: int
    clusters: int
    method: str
    """How the interval was made: ``wilson``, ``cluster bootstrap`` or ``none``."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first run minus the second on the same questions."""

    difference: float
    standard_error: float | None
    low: float | None
    high: float | None
    p_value: float | None
    """Two-sided, of a test that flips the sign of whole clusters; None below two clusters."""
    questions: int
    clusters: int
    wins: int
    losses: int
    ties: int


@dataclass(frozen=True, slots=True)
class SeedSpread:
    """A metric over runs that differ in their seed."""

    mean: float
    standard_deviation: float | None
    """With n - 1 in the denominator; None for a single seed."""
    low: float | None
    high: float | None
    """Student's interval of the mean over seeds; None for a single seed."""
    lowest: float
    highest: float
    seeds: int


def estimate(
    values: Sequence[float], clusters: Sequence[str], *, seed: int = 0, level: float = LEVEL
) -> Estimate | None:
    """The mean of one value a question, with error and interval; None without questions.

    Zeros and ones in clusters of one get Wilson's interval, everything else a cluster bootstrap.

    Example:
        >>> round(estimate([1.0] * 12 + [0.0] * 18, [str(i) for i in range(30)]).standard_error, 3)
        0.091
    """
    if not values:
        return None
    groups = len(set(clusters))
    data = np.asarray(values, dtype=float)
    binary = bool(np.isin(data, (0.0, 1.0)).all()) and groups == len(values)
    if binary:
        interval: tuple[float, float] | None = wilson_interval(
            int(data.sum()), len(data), level=level
        )
    else:
        interval = bootstrap_interval(values, clusters, seed=seed, level=level)
    low, high = interval or (None, None)
    method = "wilson" if binary else "cluster bootstrap" if interval else "none"
    return Estimate(
        value=math.fsum(values) / len(values),
        standard_error=clustered_error(values, clusters),
        low=low,
        high=high,
        questions=len(values),
        clusters=groups,
        method=method,
    )


def clustered_error(values: Sequence[float], clusters: Sequence[str]) -> float | None:
    r"""Standard error of the mean where values of one cluster may depend on each other.

    :math:`\sqrt{\frac{G}{G-1} \sum_g (\sum_{i \in g} (x_i - \bar x))^2} / N`; with clusters of one
    it is the standard deviation over the square root of N. None below two clusters.

    References:
        Miller, `Adding Error Bars to Evals <https://arxiv.org/abs/2411.00640>`_, 2024, section 2.2.
    """
    data = np.asarray(values, dtype=float)
    sums, _ = _by_cluster(data - data.mean() if len(data) else data, clusters)
    groups = len(sums)
    if groups < 2:
        return None
    return float(np.sqrt(groups / (groups - 1) * np.sum(sums**2)) / len(data))


def wilson_interval(successes: int, trials: int, *, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's score interval of a proportion.

    Raises:
        ValueError: If there are no trials or successes lie outside them.

    References:
        Wilson, Probable inference, the law of succession, and statistical inference, 1927.
    """
    if trials < 1 or not 0 <= successes <= trials:
        raise ValueError(f"successes must lie in [0, trials={trials}], got {successes}")
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = successes / trials
    scale = 1 + z * z / trials
    centre = (share + z * z / (2 * trials)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials**2))
    return max(0.0, centre - half), min(1.0, centre + half)


def bootstrap_interval(
    values: Sequence[float],
    clusters: Sequence[str],
    *,
    seed: int = 0,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
) -> tuple[float, float] | None:
    """Percentile interval of the mean over resampled clusters; None below two clusters.

    References:
        Efron and Tibshirani, An Introduction to the Bootstrap, 1993, section 13.3.
    """
    sums, sizes = _by_cluster(np.asarray(values, dtype=float), clusters)
    groups = len(sums)
    if groups < 2:
        return None
    rng = np.random.default_rng(seed)
    means = []
    step = max(1, _CHUNK // groups)
    for start in range(0, resamples, step):
        picks = rng.integers(0, groups, size=(min(step, resamples - start), groups))
        means.append(sums[picks].sum(axis=1) / sizes[picks].sum(axis=1))
    low, high = np.quantile(np.concatenate(means), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def compare_runs(
    first: Mapping[str, float],
    second: Mapping[str, float],
    *,
    clusters: Mapping[str, str] | None = None,
    seed: int = 0,
    level: float = LEVEL,
) -> Difference:
    """First minus second, paired by question.

    The p-value is that of a sign-flip test over clusters: exact up to 14 clusters that differ,
    sampled beyond. On zeros and ones without clusters it is McNemar's exact test.

    Args:
        first: One value a question, for example acc@4 or a mean over samples.
        second: Values of the other run for the same questions.
        clusters: The cluster of a question where it is not the question itself.
        seed: Seed of the resampling.
        level: Coverage of the interval.

    Raises:
        ValueError: If the runs have different questions, or none.
    """
    if first.keys() != second.keys():
        only = sorted(first.keys() ^ second.keys())
        raise ValueError(f"{len(only)} questions are in one run only, such as {only[0]!r}")
    if not first:
        raise ValueError("there are no questions to compare")
    names = [(clusters or {}).get(question, question) for question in first]
    differences = [first[question] - second[question] for question in first]
    interval = bootstrap_interval(differences, names, seed=seed, level=level)
    low, high = interval or (None, None)
    sums, _ = _by_cluster(np.asarray(differences, dtype=float), names)
    return Difference(
        difference=math.fsum(differences) / len(differences),
        standard_error=clustered_error(differences, names),
        low=low,
        high=high,
        p_value=_sign_flip_p_value(sums, seed) if len(sums) > 1 else None,
        questions=len(differences),
        clusters=len(sums),
        wins=sum(value > 0 for value in differences),
        losses=sum(value < 0 for value in differences),
        ties=sum(value == 0 for value in differences),
    )


def mean_over_seeds(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Each question's mean over runs that differ in their seed, ready for ``compare_runs``.

    Raises:
        ValueError: If there is no run or the runs have different questions.
    """
    if not runs:
        raise ValueError("there are no runs")
    for run in runs[1:]:
        if run.keys() != runs[0].keys():
            only = sorted(run.keys() ^ runs[0].keys())
            raise ValueError(f"{len(only)} questions are not in all runs, such as {only[0]!r}")
    return {question: math.fsum(run[question] for run in runs) / len(runs) for question in runs[0]}


def across_seeds(values: Sequence[float], *, level: float = LEVEL) -> SeedSpread:
    """Mean, spread and Student's interval of one metric over several seeds.

    Raises:
        ValueError: If there are no values.
        ImportError: If scipy, which several seeds need, is not installed.
    """
    if not values:
        raise ValueError("there are no seeds")
    n = len(values)
    mean = math.fsum(values) / n
    deviation = low = high = None
    if n > 1:
        deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
        half = _student_quantile((1 + level) / 2, n - 1) * deviation / math.sqrt(n)
        low, high = mean - half, mean + half
    return SeedSpread(mean, deviation, low, high, min(values), max(values), n)


def _student_quantile(probability: float, degrees: int) -> float:
    try:
        from scipy.stats import t
    except ImportError as error:
        raise ImportError(
            "intervals over seeds need: pip install 'npbench[eval]' (scipy)"
        ) from error
    return float(t.ppf(probability, degrees))


def _by_cluster(values: Array, clusters: Sequence[str]) -> tuple[Array, Array]:
    """Sum and size of each cluster, in the order of first appearance."""
    if len(values) != len(clusters):
        raise ValueError(f"{len(clusters)} clusters for {len(values)} values")
    number: dict[str, int] = {}
    index = [number.setdefault(cluster, len(number)) for cluster in clusters]
    sums = np.bincount(index, weights=values, minlength=len(number))
    return sums, np.bincount(index, minlength=len(number)).astype(float)


def _sign_flip_p_value(sums: Array, seed: int) -> float:
    """Share of sign patterns whose total is at least as far from 0 as the one observed."""
    sums = sums[sums != 0]
    if not len(sums):
        return 1.0
    observed = abs(float(sums.sum())) * (1 - 1e-12)
    if len(sums) <= _EXACT_CLUSTERS:
        signs = np.array(list(product((1.0, -1.0), repeat=len(sums))))
        return float(np.mean(np.abs(signs @ sums) >= observed))
    rng = np.random.default_rng(seed)
    reached = 0
    step = max(1, _CHUNK // len(sums))
    for start in range(0, _FLIPS, step):
        size = (min(step, _FLIPS - start), len(sums))
        signs = rng.integers(0, 2, size=size) * 2.0 - 1.0
        reached += int(np.sum(np.abs(signs @ sums) >= observed))
    return (reached + 1) / (_FLIPS + 1)
