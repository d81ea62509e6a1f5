import math
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from trainers.reward_terms import (
    FORMATS,
    accuracy,
    correctness,
    feasibility,
    judge,
    np_engine,
    quality,
)
from trainers.rewards import (
    RewardTerm,
    add_term,
    load_term,
    reward_named,
    score_replies,
)

Row = dict[str, Any]
FEASIBLE, BEST, INFEASIBLE, NONE = "Answer: [0, 1, 2]", "Answer: [0]", "Answer: [1]", "no idea"


@pytest.fixture
def star() -> Row:
    """A star: the cover [0] is optimal, [0, 1, 2] is three times as large."""
    return {
        "task": "vertex_cover",
        "instance": '{"num_vertices": 4, "edges": [[0, 1], [0, 2], [0, 3]]}',
        "reference_objective": 1,
        "reference_status": "optimal",
    }


@pytest.mark.parametrize(
    ("reply", "parsed", "feasible", "value", "optimal"),
    [
        (BEST, True, True, 1.0, True),
        (FEASIBLE, True, True, 1 / 3, False),
        (INFEASIBLE, True, False, 0.0, False),
        (NONE, False, False, 0.0, False),
        ("", False, False, 0.0, False),
    ],
)
def test_replies_are_judged_by_npbench(
    star: Row, reply: str, parsed: bool, feasible: bool, value: float, optimal: bool
) -> None:
    found = judge(reply, star)
    assert (found.parsed, found.feasible, found.optimal) == (parsed, feasible, optimal)
    assert found.quality == pytest.approx(value)
    assert (feasibility(reply, star), quality(reply, star), accuracy(reply, star)) == (
        float(feasible),
        pytest.approx(value),
        float(optimal),
    )


def test_a_reference_that_is_not_proven_gives_no_accuracy_and_can_be_beaten(star: Row) -> None:
    star |= {"reference_objective": 2, "reference_status": "feasible"}
    assert quality(BEST, star) == 2.0
    assert accuracy(BEST, star) == 0.0


def test_max_tasks_have_the_ratio_the_other_way_round(star: Row) -> None:
    star |= {"task": "maximum_independent_set", "reference_objective": 3}
    assert quality("Answer: [1, 2]", star) == pytest.approx(2 / 3)
    assert accuracy("Answer: [1, 2, 3]", star) == 1.0


def test_an_instance_may_be_text_or_data(star: Row) -> None:
    data = star | {"instance": {"num_vertices": 4, "edges": [[0, 1], [0, 2], [0, 3]]}}
    assert judge(FEASIBLE, data) == judge(FEASIBLE, star)


@pytest.mark.parametrize(
    ("reply", "total"),
    [(BEST, 1.1), (FEASIBLE, 0.1 + 1 / 3), (INFEASIBLE, 0.1), (NONE, 0.0), ("\\boxed{[0]}", 1.0)],
)
def test_dmpos_reward_is_a_tenth_for_the_format_plus_the_ratio(
    star: Row, reply: str, total: float
) -> None:
    batch = score_replies([reply], [star], reward_named("dmpo"))
    assert batch.totals[0] == pytest.approx(total)


@pytest.mark.parametrize(
    ("reply", "total"), [(BEST, 2.0), (FEASIBLE, 4 / 3), (INFEASIBLE, -0.5), (NONE, -2.5)]
)
def test_np_engines_reward_has_its_three_levels(star: Row, reply: str, total: float) -> None:
    assert np_engine(reply, star) == pytest.approx(total)


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [
        ("answer-line", "so\n**Answer: [1]**", "the answer is [1]"),
        ("answer-line", "answer : 3", "Answer:   \n"),
        ("answer-tag", "<answer>[1]</answer>", "<answer></answer>"),
        ("answer-tag", "<ANSWER> [1]\n</ANSWER>", "<answer>[1]"),
        ("boxed", "so \\boxed{[1]}", "\\boxed{ }"),
        ("think-boxed", "<think>a</think> \\boxed{1}", "<think>a \\boxed{1}"),
        ("think-boxed", "\n<think></think>\\boxed{x}", "a <think>b</think> \\boxed{1}"),
        ("think-boxed", "<think>a</think> b \\boxed{1} c", "<think>a</think><think>\\boxed{1}"),
    ],
)
def test_each_format_accepts_its_form_and_nothing_else(form: str, good: str, bad: str) -> None:
    assert FORMATS[form](good, {}) == 1.0
    assert FORMATS[form](bad, {}) == 0.0


def test_mupo_adds_diversity_behind_the_gate_only(star: Row) -> None:
    replies = [BEST, FEASIBLE, INFEASIBLE]
    batch = score_replies(replies, [star] * 3, reward_named("mupo"))
    full = add_term(batch, "diversity", [0.5, 0.25, None], weight=0.4, gate="gate")
    assert full.totals == pytest.approx((1.1 + 0.2, 0.1 + 1 / 3 + 0.1, 0.1))
    assert full.values("diversity") == (0.5, 0.25, None)
    strict = score_replies(replies, [star] * 3, reward_named("mupo-optimal-gate"))
    strict = add_term(strict, "diversity", [0.5, 0.25, 1.0], weight=0.4, gate="gate")
    assert strict.totals == pytest.approx((1.1 + 0.2, 0.1 + 1 / 3, 0.1))
    missing = add_term(batch, "diversity", [None, None, None], weight=0.4, gate="gate")
    assert missing.totals == (None, None, pytest.approx(0.1))
    logged = add_term(batch, "diversity", [None, 1.0, 1.0], weight=0.0)
    assert logged.totals == batch.totals


def test_a_group_term_needs_a_value_for_each_reply_and_a_new_name(star: Row) -> None:
    batch = score_replies([BEST], [star], reward_named("mupo"))
    with pytest.raises(ValueError, match=r"values must be one a reply \(1\), got 2"):
        add_term(batch, "diversity", [1.0, 2.0], weight=1.0)
    with pytest.raises(ValueError, match="a new term needs a new name, got 'gate'"):
        add_term(batch, "gate", [1.0], weight=1.0)


def test_none_means_unscorable_unless_the_term_is_only_logged(star: Row) -> None:
    terms = [RewardTerm("known", feasibility), RewardTerm("unknown", lambda reply, row: None)]
    batch = score_replies([BEST], [star], terms)
    assert batch.totals == (None,)
    assert (batch.unscorable, batch.faults) == (1, {})
    logged = [terms[0], RewardTerm("unknown", lambda reply, row: None, 0.0)]
    assert score_replies([BEST], [star], logged).totals == (1.0,)


HANGING = threading.Event()


def fragile(reply: str, row: Row) -> float:
    if reply == "raise":
        raise RuntimeError("judge is away")
    if reply == "nan":
        return math.nan
    if reply == "hang":
        HANGING.wait(60)
    return 1.0


def test_exceptions_and_odd_values_are_contained_and_counted(star: Row) -> None:
    replies = ["raise", "nan", "fine", "fine", "fine"]
    batch = score_replies(replies, [star] * 5, [RewardTerm("fragile", fragile)])
    assert batch.totals == (None, None, 1.0, 1.0, 1.0)
    assert batch.faults == {"fragile": 2}
    assert batch.scored[0].faults == {"fragile": "RuntimeError: judge is away"}
    assert batch.scored[1].faults == {"fragile": "returned nan"}


def test_a_term_that_hangs_is_left_behind(star: Row) -> None:
    batch = score_replies(
        ["hang", "fine", "fine"], [star] * 3, [RewardTerm("fragile", fragile)], timeout=4.0
    )
    HANGING.set()
    assert batch.totals == (None, 1.0, 1.0)
    assert batch.scored[0].faults == {"fragile": "timed out"}


def test_a_term_that_fails_on_most_replies_stops_the_run(star: Row) -> None:
    del star["instance"]
    with pytest.raises(ValueError, match=r"'quality' must not fail on more than 50% .* 2 of 2"):
        score_replies([BEST, NONE], [star] * 2, reward_named("dmpo"))
    batch = score_replies([BEST, NONE], [star] * 2, reward_named("dmpo"), failure_limit=1.0)
    assert batch.faults == {"quality": 2}
    assert batch.scored[0].faults == {"quality": "KeyError: 'instance'"}


def test_each_reply_is_scored_against_its_own_row(star: Row) -> None:
    rows = [star | {"answer": str(i)} for i in range(4)]
    seen = RewardTerm("echo", lambda reply, row: float(reply == row["answer"]))
    replies = ["0", "1", "0", "3"]
    assert score_replies(replies, rows, [seen]).totals == (1.0, 1.0, 0.0, 1.0)
    order = [3, 0, 2, 1]
    permuted = score_replies([replies[i] for i in order], [rows[i] for i in order], [seen])
    assert permuted.totals == (1.0, 1.0, 0.0, 1.0)
    with pytest.raises(ValueError, match="got 2 replies, 4 rows"):
        score_replies(replies[:2], rows, [seen])


def test_terms_need_different_names(star: Row) -> None:
    term = RewardTerm("same", quality)
    with pytest.raises(ValueError, match="have different names"):
        score_replies([BEST], [star], [term, term])
    with pytest.raises(ValueError, match="at least 1"):
        score_replies([BEST], [star], [])


def test_a_users_function_is_found_by_its_import_path(
    star: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_reward_module.py").write_text(
        "def length(reply, row):\n    return len(reply)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    try:
        term = RewardTerm("length", load_term("my_reward_module:length"), 0.5)
        assert score_replies(["four"], [star], [term]).totals == (2.0,)
        with pytest.raises(ValueError, match="must hold a function 'width'"):
            load_term("my_reward_module:width")
    finally:
        sys.modules.pop("my_reward_module", None)
    with pytest.raises(ValueError, match="'no_such_module' cannot be imported"):
        load_term("no_such_module:f")
    with pytest.raises(ValueError, match=r"must be given as package\.module:function, got 'f'"):
        load_term("f")


def test_an_unknown_reward_names_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean 'mupo'"):
        reward_named("mupoo")


@pytest.mark.parametrize(
    ("reply", "row", "value"),
    [
        ("so \\boxed{12}", {"gold": "12"}, 1.0),
        ("so \\boxed{13}", {"gold": "12"}, 0.0),
        ("no answer here", {"gold": "12"}, 0.0),
        ("so \\boxed{12}", {"gold": ""}, None),
        (
            "The answer is (B).",
            {"gold": "B", "answer_type": "option", "options": {"A": "1", "B": "2"}},
            1.0,
        ),
    ],
)
def test_correctness_is_the_verdict_of_the_evaluators(
    reply: str, row: Row, value: float | None
) -> None:
    assert correctness(reply, row) == value


def test_a_right_answer_in_a_box_scores_accuracy_and_format_and_opens_the_gate() -> None:
    batch = score_replies(
        ["\\boxed{12}", "\\boxed{13}"], [{"gold": "12"}] * 2, reward_named("correct")
    )
    assert batch.totals == pytest.approx((1.1, 0.1))
    assert batch.values("gate") == (1.0, 0.0)
