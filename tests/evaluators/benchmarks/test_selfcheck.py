import hashlib
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from evaluators.selfcheck import selfcheck_command
from npbench.commands import generate
from npbench.errors import InputError


@pytest.fixture
def check():
    def run(*arguments):
        arguments = [str(argument) for argument in arguments]
        return CliRunner().invoke(selfcheck_command, arguments)

    return run


def test_a_sound_benchmark_passes_and_says_how_many_golds_it_has(check, data):
    result = check("mathvista", "--from", data("mathvista"), "--rows", 10)
    assert result.exit_code == 0
    assert result.stdout == "mathvista: 10 of 10 golds score 1 against themselves\n"


def test_a_row_that_is_no_question_is_named(check, data):
    result = check("logicvista", "--from", data("logicvista"), "--rows", 8)
    assert "x1_7 is left out: the question and the answer are empty" in result.stdout
    assert "7 of 7 golds" in result.stdout


def test_a_gold_that_does_not_score_is_printed_and_the_exit_code_is_1(check, written, rows_of):
    rows = rows_of("math-500")
    rows[2]["answer"] = "{{{"
    result = check("math-500", "--from", written(rows), "--rows", len(rows))
    assert result.exit_code == 1
    assert "test/ours/2.json: " in result.stdout
    assert f"{len(rows) - 1} of {len(rows)} golds" in result.stdout


def test_another_number_of_rows_must_be_accepted_by_name(check, data):
    result = check("aime24", "--from", data("aime24"))
    assert isinstance(result.exception, InputError)
    assert "has 2 rows; the official set has 30" in str(result.exception)
    wrong = check("aime24", "--from", data("aime24"), "--rows", 3)
    assert "--rows accepts 3" in str(wrong.exception)


def test_an_unknown_benchmark_gets_the_nearest_name(check):
    result = check("mathverze")
    assert "did you mean 'mathverse'" in str(result.exception)


@pytest.fixture
def split(tmp_path):
    """A small split of two tasks."""
    arguments = ["--suite", "nano", "--split", "test", "--seed", "1", "--per-task", "2"]
    arguments += ["--task", "tsp", "--task", "knapsack", "--out", str(tmp_path / "split")]
    result = CliRunner().invoke(generate.command, arguments)
    assert result.exit_code == 0, result.output
    return tmp_path / "split"


def test_the_references_of_an_np_hard_suite_are_its_golds(check, split):
    total = json.loads((split / "manifest.json").read_text())["rows"]
    result = check("nano", "--from", split)
    assert result.exit_code == 0, result.output
    assert f"nano: {total} of {total} golds score 1" in result.stdout


@pytest.fixture
def damaged(split):
    """Makes the reference solution of the first row that of no tour or knapsack."""
    path = next(split.rglob("*.parquet"))
    table = pq.read_table(path)
    solutions = table["reference_solution"].to_pylist()
    position = table.column_names.index("reference_solution")
    column = pa.array(["[]", *solutions[1:]])
    pq.write_table(table.set_column(position, "reference_solution", column), path)
    manifest = json.loads((split / "manifest.json").read_text())
    name = path.relative_to(split).as_posix()
    manifest["shards"][name] = hashlib.sha256(path.read_bytes()).hexdigest()
    (split / "manifest.json").write_text(json.dumps(manifest))
    return split


def test_a_reference_that_does_not_reach_its_objective_is_printed(check, damaged):
    result = check("nano", "--from", damaged)
    assert result.exit_code == 1
    assert "'Answer: []' scores below 1: " in result.stdout


def test_the_facts_of_np_perception_are_its_golds(check, split):
    result = check("np-perception", "--from", split)
    assert result.exit_code == 0, result.output
    assert "golds score 1" in result.stdout


def test_a_suite_needs_its_folder_and_its_number_of_rows(check, split):
    assert "give its folder with --from" in str(check("nano").exception)
    assert "--rows accepts 1" in str(check("nano", "--from", split, "--rows", 1).exception)
