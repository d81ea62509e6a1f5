import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from evaluators.cli import grade_pairs
from npbench.errors import InputError

CASES = Path(__file__).parent / "cases"


def run(path):
    return CliRunner().invoke(grade_pairs, [str(path)])


def test_the_handed_pairs_come_out_as_expected_in_order():
    result = run(CASES / "grading.jsonl")
    assert result.exit_code == 0
    cases = [json.loads(line) for line in (CASES / "grading.jsonl").read_text("utf-8").splitlines()]
    graded = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["id"] for row in graded] == [case["id"] for case in cases]
    assert [row["correct"] for row in graded] == [case["expect"] for case in cases]
    assert {"id", "extracted", "correct", "state", "stage"} <= set(graded[0])


def test_options_are_graded_by_label(tmp_path):
    path = tmp_path / "pairs.jsonl"
    row = {"id": 1, "reply": "Answer: **b**", "gold": "B", "answer_type": "option",
           "options": {"A": "1", "B": "2"}}  # fmt: skip
    path.write_text(json.dumps(row) + "\n\n", encoding="utf-8")
    (line,) = run(path).stdout.splitlines()
    assert json.loads(line) | {"reason": ""} == {
        "id": 1, "extracted": "B", "correct": True, "state": "right", "stage": "option",
        "extract_stage": "cue", "reason": "",
    }  # fmt: skip


GOOD = {"id": "x", "reply": "Answer: 5", "gold": "5", "answer_type": "free"}


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b"not json", "line 1: no JSON"),
        (b"[" * 100_000, "line 1: no JSON"),
        (b'{"id": "\xff"}', "line 1: not UTF-8"),
        (b"[1, 2]", "line 1: no JSON object but list"),
        ({}, "line 1: the pair has no 'reply'"),
        ({**GOOD, "reply": None}, "reply must be text, got None"),
        ({**GOOD, "gold": 5}, "gold must be text, got 5"),
        ({**GOOD, "answer_type": "intger"}, "did you mean 'integer'?"),
        ({**GOOD, "answer_type": "float"}, "needs a precision"),
        (
            {**GOOD, "answer_type": "float", "precision": 1.5},
            "must be a whole number in [0, 15], got 1.5",
        ),
        ({**GOOD, "answer_type": "float", "precision": float("nan")}, "NaN is no JSON value"),
        ({**GOOD, "answer_type": "float", "precision": float("inf")}, "Infinity is no JSON"),
        ({**GOOD, "answer_type": "float", "precision": True}, "got True"),
        ({**GOOD, "answer_type": "float", "precision": -1}, "[0, 15], got -1"),
        ({**GOOD, "answer_type": "option"}, "needs options"),
        ({**GOOD, "answer_type": "option", "options": ["1"]}, "options must map labels to texts"),
        ({**GOOD, "answer_type": "option", "options": {"A": 1}}, "options must map"),
    ],
)
def test_a_bad_line_gets_an_error_and_the_rest_is_graded(line, error, tmp_path):
    path = tmp_path / "pairs.jsonl"
    bad = line if isinstance(line, bytes) else json.dumps(line).encode()
    path.write_bytes(bad + b"\n" + json.dumps(GOOD).encode() + b"\n")
    result = run(path)
    assert result.exit_code == 1
    first, second = (json.loads(text) for text in result.stdout.splitlines())
    assert error in first["error"]
    assert "\n" not in first["error"]
    assert second["correct"] is True


def test_a_file_that_is_not_there_is_bad_input(tmp_path):
    result = run(tmp_path / "absent.jsonl")
    assert isinstance(result.exception, InputError)
    assert "cannot be read" in str(result.exception)
