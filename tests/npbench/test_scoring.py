"""Scores are what the metrics' definitions say, computed here by hand."""

import json
from itertools import combinations

import numpy as np
import pytest

from npbench.errors import InputError
from npbench.metrics import bootstrap_interval, cluster_means, macro_interval
from npbench.responses import read_responses
from npbench.scoring import Question, grade, score
from npbench.task import Sense, ratio

TRIANGLE = {"num_vertices": 4, "edges": [[0, 1], [0, 2], [1, 2], [2, 3]]}


def row(name, *, task="vertex_cover", group="covering", instance=TRIANGLE, best=2, **other):
    return {
        "id": name,
        "instance_id": name,
        "task": task,
        "group": group,
        "level": "l1",
        "instance": json.dumps(instance),
        "reference_objective": best,
        "reference_status": "optimal",
        "trivial_objective": 4,
        "random_objective": 3,
        "greedy_objective": 2,
        "heuristic_objective": 3,
        **other,
    }


@pytest.mark.parametrize(
    ("sense", "objective", "reference", "expected"),
    [
        (Sense.MIN, 4, 3, 0.75),
        (Sense.MIN, 3, 4, 4 / 3),
        (Sense.MAX, 3, 4, 0.75),
        (Sense.MIN, 0, 0, 1.0),
        (Sense.MAX, 0, 0, 1.0),
        (Sense.MAX, 0, 5, 0.0),
        (Sense.MIN, 0, 5, 5.0),
        (Sense.MAX, 4, 0, 4.0),
    ],
)
def test_the_quality_ratio_follows_the_sense_and_the_zero_rule(
    sense, objective, reference, expected
):
    assert ratio(sense, objective=objective, reference=reference) == expected


@pytest.mark.parametrize(
    ("reply", "state", "value", "rule"),
    [
        ("Answer: [0, 2]", "right", 1.0, ""),
        ("Answer: [0, 1, 2]", "feasible", 2 / 3, ""),
        ("Answer: [3]", "infeasible", 0.0, "uncovered"),
        ("Answer: [2, 2]", "infeasible", 0.0, "duplicate"),
        ("no idea", "unparsed", 0.0, "unparsed"),
        ("  \n", "empty", 0.0, "empty"),
    ],
)
def test_a_reply_gets_its_state_ratio_and_rule(reply, state, value, rule):
    answer = grade(Question.from_row(row("a")), reply)
    assert (answer.state, answer.ratio, answer.rule) == (state, value, rule)


def test_relative_to_the_heuristic_an_optimum_beats_the_reference_and_stays_right():
    question = Question.from_row(row("a"), reference="heuristic")
    answer = grade(question, "Answer: [0, 2]")
    assert (answer.state, answer.ratio, answer.beats) == ("right", 1.5, True)


def test_beating_a_proven_optimum_stops_the_command():
    question = Question.from_row(row("a", best=3))
    with pytest.raises(AssertionError, match="beats the proven optimum 3"):
        grade(question, "Answer: [0, 2]")


def test_beating_an_unproven_reference_scores_above_one_and_is_counted():
    question = Question.from_row(row("a", best=3, reference_status="feasible"))
    result = score([question], {"a": ["Answer: [0, 2]"]})
    assert result["overall"]["qr"] == 1.5
    assert result["overall"]["beats_reference"] == 1


def test_k_samples_give_means_and_best_of_k():
    questions = [Question.from_row(row("a")), Question.from_row(row("b"))]
    replies = {
        "a": ["Answer: [0, 2]", "Answer: [0, 1, 2]", "Answer: [3]"],
        "b": ["nothing", "Answer: [0]", "Answer: [9]"],
    }
    result = score(questions, replies)["tasks"]["vertex_cover"]
    assert result["k"] == 3
    assert result["sr"] == pytest.approx((2 / 3 + 0) / 2)
    assert result["qr"] == pytest.approx(((1 + 2 / 3) / 3 + 0) / 2)
    assert result["sr_at_k"] == 0.5
    assert result["qr_at_k"] == 0.5
    assert result["acc"] == pytest.approx(1 / 6)
    assert result["states"] == {
        "right": 1,
        "feasible": 1,
        "infeasible": 3,
        "unparsed": 1,
        "empty": 0,
    }
    assert result["reasons"] == {"uncovered": 2, "unparsed": 1, "range": 1}
    assert result["distinct_feasible"] == 1.0
    assert result["solution_distance"] == pytest.approx(1 / 3)
    assert result["floors"]["trivial"] == {"sr": 1.0, "qr": 0.5}
    assert result["floors"]["reference"] == {"sr": 1.0, "qr": 1.0}


def test_the_overall_score_is_the_mean_of_groups_of_the_means_of_tasks():
    clique = {"task": "maximum_clique", "group": "subgraph", "best": 3}
    dominating = {"task": "dominating_set", "group": "covering", "best": 1}
    questions = [
        Question.from_row(row("a")),
        Question.from_row(row("b")),
        Question.from_row(row("c", **dominating)),
        Question.from_row(row("d", **clique)),
    ]
    replies = {
        "a": ["Answer: [0, 2]"],
        "b": ["Answer: [1]"],
        "c": ["Answer: [2]"],
        "d": ["Answer: [0, 1]"],
    }
    result = score(questions, replies)
    assert result["groups"]["covering"]["qr"] == pytest.approx((0.5 + 1) / 2)
    assert result["groups"]["subgraph"]["qr"] == pytest.approx(2 / 3)
    assert result["overall"]["qr"] == pytest.approx((0.75 + 2 / 3) / 2)
    assert result["overall"]["sr"] == pytest.approx((0.75 + 1) / 2)
    assert result["overall"]["n"] == 4


def test_each_level_has_an_overall_row_of_its_own():
    questions = [Question.from_row(row("a")), Question.from_row(row("b", level="l2"))]
    result = score(questions, {"a": ["Answer: [0, 2]"], "b": ["Answer: [0, 1, 2]"]})
    assert {level: cell["qr"] for level, cell in result["levels"].items()} == {
        "l1": 1.0,
        "l2": pytest.approx(2 / 3),
    }
    assert result["overall"]["qr"] == pytest.approx((1 + 2 / 3) / 2)


def test_rows_of_one_instance_are_one_cluster():
    means = cluster_means([1.0, 0.0, 1.0, 1.0], ["a", "a", "b", "c"])
    assert means.tolist() == [0.5, 1.0, 1.0]


def test_an_interval_covers_the_mean_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    covered = 0
    for seed in range(300):
        low, high = bootstrap_interval(rng.random(40), seed=seed)
        covered += low <= 0.5 <= high
    assert 0.90 <= covered / 300 <= 0.98


def test_the_bootstrap_agrees_with_every_resample_of_a_tiny_sample():
    """With two clusters the bootstrap mean is 0, 1/2 or 1 with chances 1/4, 1/2, 1/4."""
    assert bootstrap_interval(np.array([0.0, 1.0])) == (0.0, 1.0)
    assert bootstrap_interval(np.array([1.0])) is None
    narrow = macro_interval([[np.array([1.0, 1.0])], [np.array([0.0, 0.0])]])
    assert narrow == (0.5, 0.5)


def test_the_mean_pairwise_distance_is_over_all_pairs():
    question = Question.from_row(row("a"))
    replies = ["Answer: [0, 2]", "Answer: [1, 2]", "Answer: [0, 1, 2]", "Answer: [0, 2]"]
    sets = [{0, 2}, {1, 2}, {0, 1, 2}, {0, 2}]
    result = score([question], {"a": replies})["tasks"]["vertex_cover"]
    expected = np.mean([1 - len(x & y) / len(x | y) for x, y in combinations(sets, 2)])
    assert result["solution_distance"] == pytest.approx(expected)
    assert result["distinct_feasible"] == 3


def write(path, lines):
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['{"id": "a", "reply": "x"'], "line 1 is no JSON"),
        (["[1]"], "line 1 is no object"),
        (['{"id": "a"}'], "line 1 has no 'reply'"),
        (['{"reply": "x"}'], "line 1 has no 'id'"),
        (['{"id": "z", "reply": "x"}'], "'z', which is no id of the split"),
        (['{"id": 7, "reply": "x"}'], "'7', which is no id of the split"),
        (['{"id": "a", "reply": 5}'], "reply must be text, got int"),
        (['{"id": "a", "sample": -1, "reply": "x"}'], "sample must be an integer from 0"),
        (['{"id": "a", "sample": true, "reply": "x"}'], "sample must be an integer from 0"),
        (['{"id": "a", "reply": "x"}'] * 2, "line 2 repeats sample 0 of a"),
        (['{"id": "a", "reply": "x"}'], "has no reply to b"),
        (
            [
                '{"id": "a", "reply": "x"}',
                '{"id": "b", "reply": "x"}',
                '{"id": "b", "sample": 1, "reply": "x"}',
            ],
            r"a has the samples \[0\], expected 0 to 1",
        ),
        ([], "has no reply to a"),
    ],
)
def test_a_bad_responses_file_is_refused_with_line_and_rule(tmp_path, lines, message):
    path = write(tmp_path / "r.jsonl", lines)
    with pytest.raises(InputError, match=message):
        read_responses(path, ["a", "b"])


def test_a_responses_file_that_is_not_utf8_is_refused(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_bytes(b'{"id": "a", "reply": "\xff"}\n')
    with pytest.raises(InputError, match="not UTF-8"):
        read_responses(path, ["a"])


def test_samples_come_back_in_the_order_of_their_numbers(tmp_path):
    lines = [f'{{"id": "a", "sample": {i}, "reply": "{i}"}}' for i in (2, 0, 1)]
    assert read_responses(write(tmp_path / "r.jsonl", lines), ["a"]) == {"a": ["0", "1", "2"]}
