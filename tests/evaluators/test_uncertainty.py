import math
from itertools import product
from statistics import stdev

import numpy as np
import pytest

from evaluators.uncertainty import (
    across_seeds,
    bootstrap_interval,
    clustered_error,
    compare_runs,
    estimate,
    mean_over_seeds,
    wilson_interval,
)


def test_the_error_of_clusters_of_one_is_the_deviation_over_the_root_of_n():
    values = [0.0, 1.0, 1.0, 0.25, 0.5]
    assert clustered_error(values, "abcde") == pytest.approx(stdev(values) / math.sqrt(5))


def test_copies_of_a_question_do_not_shrink_its_error():
    values = [0.0, 1.0, 1.0, 0.25]
    copied = [value for value in values for _ in range(7)]
    names = [name for name in "abcd" for _ in range(7)]
    assert clustered_error(copied, names) == pytest.approx(clustered_error(values, "abcd"))


def test_thirty_questions_at_two_fifths_have_the_error_of_the_public_report():
    values = [1.0] * 12 + [0.0] * 18
    assert clustered_error(values, range(30)) == pytest.approx(0.09, abs=0.002)


def test_one_cluster_has_no_error_and_no_interval():
    assert clustered_error([1.0, 0.0], "aa") is None
    assert bootstrap_interval([1.0, 0.0], "aa") is None
    result = estimate([0.5, 0.7], "aa")
    assert (result.standard_error, result.low, result.method) == (None, None, "none")
    assert estimate([], []) is None


def test_wilson_agrees_with_scipy():
    from scipy.stats import binomtest

    for successes, trials in [(0, 5), (12, 30), (30, 30), (499, 1000)]:
        expected = binomtest(successes, trials).proportion_ci(method="wilson")
        assert wilson_interval(successes, trials) == pytest.approx((expected.low, expected.high))
    with pytest.raises(ValueError, match=r"\[0, trials=3\], got 4"):
        wilson_interval(4, 3)


def test_the_bootstrap_is_seeded_and_agrees_with_scipy():
    from scipy.stats import bootstrap

    values = np.random.default_rng(5).random(60)
    names = [str(i) for i in range(60)]
    low, high = bootstrap_interval(list(values), names, seed=1)
    assert (low, high) == bootstrap_interval(list(values), names, seed=1)
    expected = bootstrap(
        (values,), np.mean, n_resamples=4000, method="percentile", rng=np.random.default_rng(2)
    ).confidence_interval
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=0.01)


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(3)
    covered = 0
    for trial in range(150):
        effects = rng.normal(0, 1, size=40)
        values = [effect + noise for effect in effects for noise in rng.normal(0, 0.3, size=3)]
        names = [str(i) for i in range(40) for _ in range(3)]
        low, high = bootstrap_interval(values, names, seed=trial, resamples=400)
        covered += low <= 0 <= high
    assert 0.85 <= covered / 150 <= 0.99


def test_a_paired_comparison_finds_the_difference_and_its_sign():
    first = {str(i): float(i < 30) for i in range(40)}
    second = {str(i): float(i < 15) for i in range(40)}
    result = compare_runs(first, second)
    assert result.difference == pytest.approx(0.375)
    assert (result.wins, result.losses, result.ties) == (15, 0, 25)
    assert 0 < result.low < 0.375 < result.high
    assert result.p_value < 0.001
    turned = compare_runs(second, first)
    assert turned.difference == -result.difference
    assert turned.p_value == pytest.approx(result.p_value, rel=0.5)


def test_the_p_value_of_zeros_and_ones_is_that_of_mcnemars_exact_test():
    from scipy.stats import binomtest

    for wins, losses in [(5, 1), (7, 3), (4, 4), (6, 0), (9, 5)]:
        first = {str(i): float(i < wins) for i in range(20)}
        second = {str(i): float(wins <= i < wins + losses) for i in range(20)}
        expected = binomtest(wins, wins + losses).pvalue
        assert compare_runs(first, second).p_value == pytest.approx(expected)


def test_the_sampled_p_value_agrees_with_scipys_permutation_test():
    from scipy.stats import permutation_test

    rng = np.random.default_rng(8)
    one, two = rng.random(30), rng.random(30) - 0.12
    names = [str(i) for i in range(30)]
    result = compare_runs(dict(zip(names, one, strict=True)), dict(zip(names, two, strict=True)))
    expected = permutation_test(
        (one, two), lambda a, b: np.mean(a) - np.mean(b), permutation_type="samples",
        n_resamples=20_000, rng=np.random.default_rng(1), vectorized=False,
    ).pvalue  # fmt: skip
    assert result.p_value == pytest.approx(expected, abs=0.02)


def test_clusters_are_flipped_whole():
    first = {f"{cluster}{copy}": 1.0 for cluster, copy in product("abc", range(5))}
    second = dict.fromkeys(first, 0.0)
    clusters = {question: question[0] for question in first}
    assert compare_runs(first, second, clusters=clusters).p_value == pytest.approx(2 / 8)
    assert compare_runs(first, second).p_value < 0.001


def test_equal_runs_do_not_differ():
    run = {"a": 1.0, "b": 0.0}
    result = compare_runs(run, run)
    assert (result.difference, result.p_value, result.ties) == (0.0, 1.0, 2)


def test_runs_over_different_questions_are_refused():
    with pytest.raises(ValueError, match="2 questions are in one run only, such as 'a'"):
        compare_runs({"a": 1.0}, {"b": 1.0})
    with pytest.raises(ValueError, match="no questions"):
        compare_runs({}, {})


def test_several_seeds_give_mean_spread_and_students_interval():
    spread = across_seeds([0.4, 0.5, 0.6])
    assert spread.mean == pytest.approx(0.5)
    assert spread.standard_deviation == pytest.approx(0.1)
    assert spread.high - spread.mean == pytest.approx(4.302653 * 0.1 / math.sqrt(3), rel=1e-6)
    assert (spread.lowest, spread.highest, spread.seeds) == (0.4, 0.6, 3)
    single = across_seeds([0.4])
    assert (single.standard_deviation, single.low) == (None, None)
    with pytest.raises(ValueError, match="no seeds"):
        across_seeds([])


def test_the_mean_over_seeds_needs_the_same_questions():
    assert mean_over_seeds([{"a": 1.0}, {"a": 0.0}]) == {"a": 0.5}
    with pytest.raises(ValueError, match="such as 'a'"):
        mean_over_seeds([{"a": 1.0}, {"b": 0.0}])
    with pytest.raises(ValueError, match="no runs"):
        mean_over_seeds([])


def test_clusters_and_values_must_match():
    with pytest.raises(ValueError, match="1 clusters for 2 values"):
        clustered_error([1.0, 0.0], ["a"])
