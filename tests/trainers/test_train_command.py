"""The command: a run from a recipe, its plan, going on, and errors with exit code 2."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from npbench.errors import InputError
from trainers.cli import train_command
from trainers.logs import read_log


def run(*arguments: object) -> str:
    outcome = CliRunner().invoke(train_command, [str(a) for a in arguments], catch_exceptions=False)
    assert outcome.exit_code == 0
    return outcome.stdout


def small(model: Path) -> list[str]:
    changes = [
        f"model={model}",
        "steps=2",
        "prompts_per_step=2",
        "group_size=4",
        "sampling.max_tokens=8",
        "evaluation.questions=2",
        "evaluation.samples=2",
        "data.per_task=4",
    ]
    return [part for change in changes for part in ("--set", change)]


def test_a_recipe_runs_and_its_run_goes_on(idefics_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    said = run("--recipe", "tiny-grpo", *small(idefics_model), "--out", out)
    assert said.strip() == str(out / "checkpoints" / "last")
    assert len(read_log(out / "scalars.jsonl")) == 2
    # a finished run has nothing left to do, and its bar says so
    done = CliRunner().invoke(train_command, ["--resume", str(out)], catch_exceptions=False)
    assert done.exit_code == 0
    assert "2/2" in done.stderr
    assert len(read_log(out / "scalars.jsonl")) == 2
    with pytest.raises(InputError, match="seed is 0 in the run and 1 now"):
        run("--resume", out, "--set", "seed=1")
    with pytest.raises(InputError, match="is not empty"):
        run("--recipe", "tiny-grpo", *small(idefics_model), "--out", out)


def test_a_dry_run_prints_the_plan_and_writes_nothing(idefics_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    said = run("--recipe", "tiny-mupo", *small(idefics_model)[:2], "--out", out, "--dry-run")
    assert "rollouts a step" in said
    assert "memory estimate" in said
    assert 'method = "mupo"' in said
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give one of --recipe NAME.FILE.toml, --sweep NAME.FILE.toml, --resume RUN"),
        (("--recipe", "tiny-grpo", "--sweep", "tiny-mupo-groups"), "give one of --recipe"),
        (
            ("--recipe", "tiny-grpo", "--set", "model=", "--out", "x"),
            "names no model: add --set model=",
        ),
        (("--recipe", "tiny-grpo", "--set", "model=m"), "needs --out RUN"),
        (("--resume", "nowhere"), "is no run: it has no config.toml"),
        (("--resume", "a", "--out", "b"), "leave --out away"),
    ],
)
def test_wrong_usage_is_one_line(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        run(*arguments)
    assert "\n" not in str(error.value)


def test_help_does_not_import_torch() -> None:
    code = (
        "import sys, trainers.cli as cli\n"
        "cli.train_command.main(['--help'], standalone_mode=False)\n"
        "import trainers.config\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
