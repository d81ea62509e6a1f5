"""Several processes with real vLLM engines on a CPU; ``make test-vllm`` runs this for real."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="vllm lives in an environment of its own: make test-vllm")

from trainers.config import Config, as_toml
from trainers.logs import read_log
from trainers.loop import train

VLLM = {"rollouts": {"backend": "vllm"}, "sampling": {"max_tokens": 12, "temperature": 0.7}}
DYING = """
import sys
from npbench.cli import main
from trainers.distributed import rank
from trainers.vllm_engine import Engine

draw = Engine.draw
calls = []

def dying(engine, *given):
    calls.append(1)
    # a step draws twice: the probe's reply and the others
    if rank() == 1 and len(calls) > 4:
        raise RuntimeError("EngineCore encountered an issue")
    return draw(engine, *given)

Engine.draw = dying
main()
"""
"""The command, but the second process's engine dies in the third step."""


@pytest.fixture
def launched(tmp_path: Path):
    """A function that starts training in two processes, and gives how it ended."""

    def start(*words: object, code: str | None = None) -> subprocess.CompletedProcess[str]:
        launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        program: list[object] = ["-m", "npbench"]
        if code is not None:
            program = [tmp_path / "program.py"]
            (tmp_path / "program.py").write_text(code)
        return subprocess.run(
            [sys.executable, *launch, *program, "train", *words],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "toy"), *sys.path])},
            capture_output=True,
            text=True,
            check=False,
            timeout=500,
        )

    return start


def written(config: Config, folder: Path) -> Path:
    recipe = folder / "recipe.toml"
    recipe.write_text(as_toml(config))
    return recipe


def assert_same(one: Path, two: Path) -> None:
    """The same replies, and the same gradients but for the order of sums."""
    rollouts = [read_log(run / "rollouts.jsonl") for run in (one, two)]
    assert [line["ids"] for line in rollouts[0]] == [line["ids"] for line in rollouts[1]]
    norms = [
        [line["gradient_norm"] for line in read_log(run / "scalars.jsonl")] for run in (one, two)
    ]
    assert norms[0] == pytest.approx(norms[1], rel=1e-4)


def test_two_processes_with_an_engine_each_draw_what_one_draws_and_outlive_a_dead_engine(
    widened, make_config, launched, tmp_path: Path
) -> None:
    config = make_config(widened("picture", tied=True), steps=4, prompts_per_step=3, **VLLM)
    recipe, whole, two, broken = written(config, tmp_path), *(tmp_path / n for n in "abc")
    train(config, whole)
    done = launched("--recipe", recipe, "--out", two)
    assert done.returncode == 0, done.stderr[-3000:]
    assert_same(whole, two)

    done = launched("--recipe", recipe, "--out", broken, code=DYING)
    assert done.returncode != 0
    line = "the vLLM engine failed (RuntimeError: EngineCore encountered an issue)"
    assert f"npbench: process 1 of 2 cannot go on: {line}" in done.stderr
    assert f"npbench: {line}" in done.stderr
    assert (broken / "checkpoints" / "last").resolve().name == "step-000002"
    done = launched("--resume", broken)
    assert done.returncode == 0, done.stderr[-3000:]
    assert_same(whole, broken)


def test_one_server_draws_for_two_processes_what_an_engine_draws_for_one(
    widened, make_config, serving, launched, tmp_path: Path
) -> None:
    config = make_config(widened("picture", tied=True), prompts_per_step=3, **VLLM)
    train(config, tmp_path / "whole")
    with serving(Path(config.model), log=tmp_path / "server.log") as served:
        given = ("--recipe", written(config, tmp_path), "--out", tmp_path / "two")
        done = launched(*given, "--set", f"rollouts.address={served.address}")
        assert done.returncode == 0, done.stderr[-3000:]
        assert_same(tmp_path / "whole", tmp_path / "two")

        given = ("--recipe", tmp_path / "recipe.toml", "--out", tmp_path / "sharded")
        changes = (f"rollouts.address={served.address}", "optimizer.fsdp=true")
        done = launched(*given, *(word for change in changes for word in ("--set", change)))
        assert done.returncode == 0, done.stderr[-3000:]
        assert_same(tmp_path / "whole", tmp_path / "sharded")

        done = launched(
            *given[:2], "--out", tmp_path / "late", "--set", "rollouts.address=http://127.0.0.1:9"
        )
        assert done.returncode != 0
        assert "npbench: the rollout server http://127.0.0.1:9 cannot be reached" in done.stderr
