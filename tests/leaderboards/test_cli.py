"""The commands as a user meets them: output, one-line errors, exit codes."""

import json
import subprocess
import sys

import pytest

from npbench.errors import InputError


def npbench(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "npbench", "leaderboard", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("show", "mupo1"), "did you mean 'mupo-1'"),
        (("check", "nowhere"), "nowhere is no folder"),
        (("compare", "nowhere.json"), "cannot be read"),
        (("build", "site", "--entries", "nowhere"), "is no folder of entries"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = npbench(*arguments)
    assert done.returncode == 2
    assert reason in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not done.stdout


def test_an_unofficial_run_is_refused_from_the_command_line(model_run):
    done = npbench("check", model_run)
    assert done.returncode == 2
    assert "no official split; official: mm-np-bench-v1" in done.stderr


def test_the_group_loads_nothing_heavy():
    code = (
        "import sys, leaderboards.cli\n"
        "print(sorted({'torch', 'pyarrow', 'pydantic', 'jinja2', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_check_prints_the_scores_and_what_was_checked(leaderboard, model_run, split):
    output = leaderboard("check", model_run, "--split", split).output
    assert "overall" in output
    assert "84 samples of 28 questions graded again" in output
    assert "prompts: texts and pictures are official" in output


def test_check_as_json_prints_the_recomputed_summary(leaderboard, model_run, split):
    result = leaderboard("check", model_run, "--split", split, "--json")
    assert json.loads(result.stdout)["overall"]["n"] == 28


def test_add_ranks_and_is_idempotent(leaderboard, model_run, solver_run, split, tmp_path):
    to = tmp_path / "entries"
    first = leaderboard("add", model_run, "--to", to, "--split", split).stdout
    assert first.splitlines()[-1].startswith("added: ")
    assert "rank 1 of 1 on nano-test by QR" in first
    again = leaderboard("add", model_run, "--to", to, "--split", split).stdout
    assert again.splitlines()[-1].startswith("unchanged: ")
    solver = leaderboard("add", solver_run, "--to", to, "--split", split).stdout
    assert "a baseline, not ranked" in solver
    assert len(list(to.iterdir())) == 2


@pytest.mark.parametrize(
    ("to", "options", "message"),
    [
        ("new", ("--name", ""), "name: String should have at least 1 character, got ''"),
        ("new", ("--link", "javascript:x"), "should match pattern .*, got 'javascript:x'"),
        ("file", (), "file is no folder of entries"),
        ("foreign", (), "mine.json has the schema None"),
    ],
)
def test_what_cannot_be_added_is_refused_before_anything_is_graded(
    to, options, message, leaderboard, tmp_path
):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "mine.json").write_text("{}")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match=message):
        leaderboard("add", tmp_path / "no run", "--to", tmp_path / to, *options)
    assert sorted(tmp_path.rglob("*")) == before


def test_pack_says_what_it_wrote(leaderboard, model_run, tmp_path, split):
    said = leaderboard("pack", model_run, tmp_path / "out", "--name", "X").stdout
    assert "84 replies in 0.0" in said
    assert "passed: X" in leaderboard("check", tmp_path / "out", "--split", split).stdout


def test_build_writes_a_site(leaderboard, model_run, split, tmp_path):
    leaderboard("add", model_run, "--to", tmp_path / "entries", "--split", split)
    said = leaderboard("build", tmp_path / "site", "--entries", tmp_path / "entries").stdout
    assert "4 pages, 1 runs" in said
    assert (tmp_path / "site" / "index.html").is_file()
