"""``solve``, ``verify``, ``draw`` and ``export`` on files, as a user runs them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from npbench.commands import draw, export, solve, verify
from npbench.errors import InputError

FILES = Path(__file__).parent / "files"


@pytest.fixture
def run():
    def invoke(module, *arguments):
        words = [str(argument) for argument in arguments]
        result = CliRunner().invoke(module.command, words, standalone_mode=False)
        if result.exception is not None:
            raise result.exception
        return result.output

    return invoke


@pytest.mark.parametrize(
    ("name", "task", "objective"),
    [
        ("upper_row.tsp", None, 16),
        ("geo.tsp", None, 38749),
        ("house.col", None, 3),
        ("house.clq", None, 3),
        ("house.col", "maximum_cut", 5),
        ("house.col", "NpDominatingSet", 2),
        ("four.in", None, 10),
    ],
)
def test_solve_and_verify_agree_on_a_file_of_each_format(run, name, task, objective):
    asked = ["--task", task] if task else []
    solved = json.loads(run(solve, FILES / name, *asked, "--json"))
    assert solved["id"] == Path(name).stem
    assert (solved["objective"], solved["status"]) == (objective, "optimal")
    answer = json.dumps(solved["solution"])
    judged = json.loads(run(verify, "--instance", FILES / name, *asked, "--answer", answer))
    assert judged["feasible"]
    assert judged["objective"] == objective


def test_all_instances_of_a_file_are_solved(run):
    lines = run(solve, FILES / "NP_Bench.json", "--json").splitlines()
    assert [json.loads(line)["id"] for line in lines][:2] == ["easy_question1", "easy_cycle"]
    assert len(lines) == 10
    text = run(solve, FILES / "npmm.tsv")
    assert text.count("objective:") == 10
    assert "\n\nid:" in text


def test_one_instance_of_several_is_verified_by_its_key(run):
    file = ["--instance", FILES / "NP_Bench.json"]
    options = ["--key", "easy_cycle", "--answer", "[0, 1, 2, 0]"]
    assert json.loads(run(verify, *file, *options))["objective"] == 3
    with pytest.raises(InputError, match="give --key"):
        run(verify, *file, "--answer", "[0]")
    with pytest.raises(InputError, match="--cases goes alone"):
        run(verify, "--cases", "x.jsonl", "--key", "easy_cycle")


def test_our_own_files_still_need_their_task(run, tmp_path):
    path = tmp_path / "mine.json"
    instance = {"capacity": 3, "weights": [2, 3], "values": [1, 2]}
    path.write_text(json.dumps(instance))
    with pytest.raises(InputError, match="does not say its task; give --task"):
        run(solve, path)
    assert json.loads(run(solve, path, "--task", "knapsack", "--json"))["objective"] == 2
    path.write_text(json.dumps({"task": "knapsack", "instance": instance}))
    assert json.loads(run(solve, path, "--json"))["objective"] == 2
    path.write_text(json.dumps({"task": 5, "instance": instance}))
    with pytest.raises(InputError, match="line 1: task must be text, got '5'"):
        run(solve, path)


@pytest.mark.parametrize(
    ("name", "task", "message"),
    [
        ("four.in", "tsp", "holds a knapsack instance, not one of tsp"),
        ("house.col", "tsp", "holds a graph, and tsp is no task on graphs"),
        ("five.opt.tour", None, "unknown ending of an instance file '.tour'"),
    ],
)
def test_a_task_that_the_file_does_not_hold_is_refused(run, name, task, message):
    with pytest.raises(InputError, match=message):
        run(solve, FILES / name, *(["--task", task] if task else []))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("euc_2d.tsp", []),
        ("house.col", ["--style", "dark"]),
        ("four.in", []),
        ("NP_Bench.json", ["--key", "bench_question5"]),
        ("npmm.tsv", ["--key", "5"]),
        ("tsp_questions.json", ["--task", "tsp", "--key", "easy_question2"]),
    ],
)
def test_a_file_of_each_format_is_drawn(run, tmp_path, name, options):
    out = tmp_path / "picture.png"
    printed = run(draw, FILES / name, *options, "--out", out)
    assert out.read_bytes().startswith(b"\x89PNG")
    assert "bytes" in printed
    with pytest.raises(InputError, match="exists; choose another file"):
        run(draw, FILES / name, *options, "--out", out)


def test_a_picture_that_cannot_be_written_or_styled_is_refused(run, tmp_path):
    with pytest.raises(InputError, match="cannot be written: No such file"):
        run(draw, FILES / "four.in", "--out", tmp_path / "none" / "p.png")
    with pytest.raises(InputError, match="unknown style 'drak'; did you mean 'dark'"):
        run(draw, FILES / "four.in", "--out", tmp_path / "p.png", "--style", "drak")


def test_an_export_says_what_it_wrote_and_left_out(run, picture_split, tmp_path):
    out = tmp_path / "out"
    printed = run(export, picture_split.folder, "--format", "npmm", "--out", out)
    lines = printed.splitlines()
    assert lines[0] == f"20 rows in {out / 'npmm.tsv'}"
    assert "left out: 28 rows (npmm questions are pictures)" in lines
    with pytest.raises(InputError, match="is no folder"):
        run(export, tmp_path / "none", "--format", "npmm", "--out", tmp_path / "other")
