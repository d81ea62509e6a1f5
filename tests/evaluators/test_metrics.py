from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.metrics import (
    CURVE,
    ESTIMATORS,
    Samples,
    acc_at_k,
    all_at_k,
    best_at_k,
    curves,
    greedy_accuracy,
    maj_at_k,
    majority_answer,
    mean_at_k,
    pass_at_k,
)


@pytest.mark.parametrize(
    ("n", "c", "k", "any_right", "all_right"),
    [
        (8, 0, 1, 0, 0),
        (8, 3, 1, 0.375, 0.375),
        (8, 3, 2, 0.642857, 0.107143),
        (8, 3, 4, 0.928571, 0),
        (8, 3, 8, 1, 0),
        (8, 8, 4, 1, 1),
        (4, 1, 2, 0.5, 0),
        (16, 2, 8, 0.766667, 0),
        (16, 8, 4, 0.961538, 0.038462),
        (64, 1, 16, 0.25, 0),
        (10_000, 37, 100, 0.311016, 0),
    ],
)
def test_the_reference_values_are_met(n, c, k, any_right, all_right):
    assert pass_at_k(n, c, k) == pytest.approx(any_right, abs=5e-7)
    assert all_at_k(n, c, k) == pytest.approx(all_right, abs=5e-7)


@given(st.lists(st.booleans(), min_size=1, max_size=9), st.integers(1, 9))
@settings(max_examples=200, deadline=None, derandomize=True, database=None)
def test_pass_and_all_at_k_are_means_over_all_draws(correct, k):
    n, c = len(correct), sum(correct)
    if k > n:
        assert pass_at_k(n, c, k) is None
        assert all_at_k(n, c, k) is None
        return
    draws = list(combinations(correct, k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(any(d) for d in draws) / len(draws))
    assert all_at_k(n, c, k) == pytest.approx(sum(all(d) for d in draws) / len(draws))


def test_k_above_n_is_undefined_and_never_one():
    assert acc_at_k([True], 2) is None
    assert mean_at_k([1.0], 2) is None
    assert best_at_k([1.0], 2) is None
    assert maj_at_k(["5"], [True], 2) is None
    assert pass_at_k(1, 1, 2) is None
    assert all_at_k(1, 1, 2) is None


def test_with_n_equal_to_k_any_of_k_is_the_unbiased_estimate():
    for correct in ([True, False, False], [False] * 3, [True] * 3):
        assert acc_at_k(correct, 3) == pass_at_k(3, sum(correct), 3)


def test_only_the_first_k_samples_count():
    correct = [False, False, True, True]
    assert [acc_at_k(correct, k) for k in (1, 2, 3, 4)] == [0, 0, 1, 1]
    assert [mean_at_k(correct, k) for k in (2, 4)] == [0, 0.5]
    assert [best_at_k([0.5, 0.9, 1.2], k) for k in (1, 2, 3)] == [0.5, 0.9, 1.2]


@pytest.mark.parametrize(
    ("answers", "winner"),
    [
        (["5", "7", "7"], 1),
        (["7", "5", "5", "7"], 0),
        ([None, None, "5"], 2),
        ([None, None], None),
        ([], None),
    ],
)
def test_the_majority_is_the_most_frequent_answer_and_the_first_of_tied_ones(answers, winner):
    assert majority_answer(answers) == winner


def test_a_majority_is_right_where_its_answer_is():
    answers, correct = ["5", "7", "7", None], [True, False, False, False]
    assert [maj_at_k(answers, correct, k) for k in (1, 2, 3, 4)] == [1, 1, 0, 0]
    assert maj_at_k([None, None], [False, False], 2) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pass_at_k(4, 9, 1), r"num_correct must lie in \[0, num_samples=4\], got 9"),
        (lambda: all_at_k(4, -1, 1), r"got -1"),
        (lambda: pass_at_k(4, 1, 0), "k must be at least 1, got 0"),
        (lambda: maj_at_k(["5"], [True, False], 1), "1 answers for 2 samples"),
        (lambda: Samples("q", (True, False), answers=("5",)), "1 answers for 2 samples"),
        (lambda: curves([Samples("a", (True,)), Samples("b", (True, False))]), "'b' has 2 samples"),
        (
            lambda: curves([Samples("a", (True,), answers=("5",)), Samples("b", (True,))]),
            "'b' has no answers",
        ),
    ],
)
def test_what_does_not_fit_together_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def np_questions():
    return [
        Samples(
            f"q{number}",
            correct=(number % 2 == 0, False, True, False),
            answers=("5", "7", "5", None),
            feasible=(True, False, True, True),
            ratios=(0.5, 0.0, 1.0, 0.75),
        )
        for number in range(10)
    ]


def test_curves_hold_every_metric_at_every_k():
    rows = curves(np_questions())
    assert set(rows) == {"acc@k", "mean@k", "pass@k", "all@k", "maj@k", "sr@k", "qr@k"}
    assert all(tuple(row) == CURVE for row in rows.values())
    assert set(rows) <= set(ESTIMATORS)
    assert rows["acc@k"][1].value == 0.5
    assert rows["acc@k"][4].value == 1.0
    assert rows["mean@k"][4].value == pytest.approx(0.375)
    assert rows["qr@k"][2].value == 0.5
    assert rows["qr@k"][4].value == 1.0
    assert rows["sr@k"][1].value == 1.0
    assert rows["acc@k"][8] is None
    assert rows["pass@k"][16] is None


def test_metrics_without_their_values_are_left_out():
    assert set(curves([Samples("a", (True,)), Samples("b", (False,))])) == {
        "acc@k", "mean@k", "pass@k", "all@k",
    }  # fmt: skip
    assert curves([]) == {}


def test_equal_samples_of_a_question_leave_the_error_of_one_sample():
    one = [Samples(str(i), (i < 12,)) for i in range(30)]
    many = [Samples(str(i), (i < 12,) * 16) for i in range(30)]
    assert curves(many)["mean@k"][16].standard_error == pytest.approx(
        curves(one)["mean@k"][1].standard_error
    )


def test_questions_of_one_problem_are_one_cluster():
    apart = [Samples(str(i), (i < 20,)) for i in range(40)]
    together = [Samples(str(i), (i < 20,), cluster=str(i // 4)) for i in range(40)]
    first, second = curves(apart)["acc@k"][1], curves(together)["acc@k"][1]
    assert (first.clusters, second.clusters) == (40, 10)
    assert second.standard_error > 1.8 * first.standard_error
    assert (first.method, second.method) == ("wilson", "cluster bootstrap")


def test_greedy_accuracy_is_a_proportion_with_its_own_interval():
    result = greedy_accuracy({str(i): i < 12 for i in range(30)})
    assert result.value == 0.4
    assert result.low < 0.4 < result.high
    assert greedy_accuracy({}) is None
