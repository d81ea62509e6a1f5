"""Sweeps: their files, their runs in folders, going on, plans and the table at the end."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from npbench.errors import InputError
from trainers.cli import train_command
from trainers.logs import read_log
from trainers.loop import train
from trainers.sweep_runs import read_progress, train_sweep
from trainers.sweeps import load_sweep

SMALL = (
    "steps=2",
    "prompts_per_step=2",
    "checkpoint_every=1",
    "sampling.max_tokens=8",
    "evaluation.questions=2",
    "evaluation.samples=2",
    "data.per_task=4",
)


class StopError(Exception):
    """Ends a run from outside."""


def options(model: Path) -> list[str]:
    return [part for change in (*SMALL, f"model={model}") for part in ("--set", change)]


def run(*arguments: object):
    return CliRunner().invoke(train_command, [str(a) for a in arguments], catch_exceptions=False)


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    path = tmp_path / "own.toml"
    path.write_text(
        'recipe = "tiny-grpo"\n[settings]\ngroup_size = [2, 4]\n"loss.clip_high" = [0.2]\n'
    )
    return path


def test_a_sweep_trains_each_run_as_it_is_trained_alone_and_ends_with_a_table(
    idefics_model: Path, sweep: Path, tmp_path: Path
) -> None:
    out = tmp_path / "sweep"
    outcome = run("--sweep", sweep, *options(idefics_model), "--out", out)
    assert outcome.exit_code == 0
    folders = ["group_size-2_clip_high-0.2", "group_size-4_clip_high-0.2"]
    assert sorted(path.name for path in out.iterdir()) == [*folders, "sweep.json"]
    assert all(folder in outcome.stdout for folder in folders)
    assert "accuracy_at_k" in outcome.stdout
    found = json.loads((out / "sweep.json").read_text())["runs"]
    assert [one["settings"]["group_size"] for one in found] == [2, 4]
    assert [one["steps"] for one in found] == [2, 2]
    assert all(0.0 <= one["evaluation"]["score"] <= 1.0 for one in found)

    (alone,) = (r for r in load_sweep(str(sweep), (*SMALL, f"model={idefics_model}"))[1:])
    train(alone.config, tmp_path / "alone")
    timeless = [
        [{k: v for k, v in row.items() if "second" not in k} for row in read_log(folder / name)]
        for name in ("scalars.jsonl", "evaluations.jsonl")
        for folder in (tmp_path / "alone", out / folders[1])
    ]
    assert timeless[0] == timeless[1]
    assert timeless[2] == timeless[3]


def test_the_same_command_skips_what_is_finished_and_goes_on_with_the_rest(
    idefics_model: Path, sweep: Path, tmp_path: Path
) -> None:
    out = tmp_path / "sweep"
    runs = load_sweep(str(sweep), (*SMALL, f"model={idefics_model}"))
    told: list[tuple[str, bool, int]] = []

    def stopping(config, folder: Path, *, resume: bool) -> None:
        def stop(step: int, numbers: object) -> None:
            told.append((folder.name, resume, step))
            if folder.name == runs[1].folder and not resume and step == 1:
                raise StopError

        train(config, folder, resume=resume, progress=stop)

    assert [str(read_progress(one, out)) for one in runs] == ["new", "new"]
    with pytest.raises(StopError):
        train_sweep(runs, out, train=stopping)
    assert [str(read_progress(one, out)) for one in runs] == ["finished", "step 1 of 2"]
    plan = run("--sweep", sweep, *options(idefics_model), "--out", out, "--dry-run")
    assert "step 1 of 2" in plan.stdout
    told.clear()
    train_sweep(runs, out, train=stopping)
    assert told == [(runs[1].folder, True, 1)]
    outcome = run("--sweep", sweep, *options(idefics_model), "--out", out)
    assert outcome.stderr.count("(finished)") == 2


def test_a_dry_run_lists_the_runs_with_their_plans_and_writes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "sweep"
    outcome = run("--sweep", "tiny-dmpo-divergence", "--out", out, "--dry-run")
    assert outcome.exit_code == 0
    assert "form-forward-kl" in outcome.stdout
    assert "rollouts a step" in outcome.stdout
    assert not out.exists()


def test_every_folder_is_checked_before_the_first_run(
    text_model: Path, sweep: Path, tmp_path: Path
) -> None:
    out = tmp_path / "sweep"
    runs = load_sweep(str(sweep), (*SMALL, f"model={text_model}"))
    (out / runs[1].folder).mkdir(parents=True)
    (out / runs[1].folder / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty"):
        train_sweep(runs, out, train=train)
    assert not (out / runs[0].folder).exists()


def test_a_failing_run_is_named(text_model: Path, sweep: Path, tmp_path: Path) -> None:
    runs = load_sweep(str(sweep), (*SMALL, f"model={tmp_path / 'none'}"))
    with pytest.raises(InputError, match=r"run group_size-2_clip_high-0\.2: model .* be loaded"):
        train_sweep(runs, tmp_path / "sweep", train=train)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read"),
        ("recipe = ", "is no TOML file"),
        ('recipe = "tiny-grpo"\n', r"must hold a recipe and \[settings\]"),
        ('recipe = "tiny-grpo"\n[setting]\nseed = [1]\n', "did you mean 'settings'"),
        ('recipe = "tiny-grpo"\n[settings]\nseed = 1\n', "must be a list of values"),
        ('recipe = "tiny-grpo"\n[settings]\nseed = [1, 1]\n', "has a value twice"),
        ('recipe = "tiny-grpo"\n[settings]\nseed = [[2026-01-01]]\n', "type date is not JSON"),
        ('recipe = "tiny-grpo"\n[settings]\nmodel = ["a/b", "a-b"]\n', "in one folder, model-a-b"),
        ('recipe = "tiny-grop"\n[settings]\nseed = [1]\n', "did you mean 'tiny-grpo'"),
        ('recipe = "tiny-grpo"\n[settings]\nsed = [1]\n', "did you mean 'seed'"),
    ],
)
def test_a_wrong_sweep_is_one_line(text: str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=message) as error:
        load_sweep(str(path))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--sweep", "tiny-mupo-group"), "did you mean 'tiny-mupo-groups'"),
        (("--sweep", "tiny-mupo-groups"), "a sweep needs --out FOLDER"),
        (
            ("--sweep", "tiny-mupo-groups", "--set", "model=", "--out", "x"),
            "names no model: add --set model=",
        ),
        (("--sweep", "tiny-mupo-groups", "--resume", "x"), "give one of"),
    ],
)
def test_wrong_usage_is_one_line(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        run(*arguments)
    assert "\n" not in str(error.value)


def test_folders_have_whole_names_where_short_ones_clash(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(
        'recipe = "tiny-grpo"\n[settings]\n'
        '"data.seed" = [1]\nseed = [2]\n"data.tasks" = [["tsp"]]\n'
    )
    (found,) = load_sweep(str(path))
    assert found.folder == "data.seed-1_seed-2_data.tasks-tsp"
