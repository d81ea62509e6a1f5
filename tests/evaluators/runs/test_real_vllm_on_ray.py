"""Two real vLLM engines as workers of a local Ray; ``make test-vllm`` runs this for real."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="vllm lives in an environment of its own: make test-vllm")
pytest.importorskip("ray")


def npbench(*words: object) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "npbench", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_two_engines_on_ray_write_the_bytes_of_one(tmp_path: Path) -> None:
    data, one, two = (tmp_path / name for name in ("data", "one", "two"))
    npbench(
        "generate",
        "--suite",
        "nano",
        "--split",
        "test",
        "--seed",
        1,
        "--per-task",
        1,
        "--out",
        data,
    )
    asked = ("eval", "--data", data, "--backend", "vllm", "-k", 3, "--max-tokens", 48)
    npbench(*asked, "--out", one)
    npbench(*asked, "--engine", "ray", "--workers", 2, "--out", two)
    replies = (one / "samples.jsonl").read_bytes()
    assert (two / "samples.jsonl").read_bytes() == replies
    # 14 tasks, each a greedy reply and three samples
    assert len(replies.splitlines()) == 14 * 4
