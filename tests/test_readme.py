"""The README is true: its commands and its Python run, and print what it shows."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(console|python)\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)
RUN_ELSEWHERE = re.compile(
    r"(make|npbench (demo|reproduce|train|serve-rollouts)|pip|torchrun) |python -m trainers|"
    r".* --engine ray"
)
"""What takes long, or needs an environment of its own; other tests run these."""


def steps(block: str) -> list[tuple[str, list[str]]]:
    """Commands of a console block, each with the output that is shown behind it."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and line:
            found[-1][1].append(line)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("readme")


def test_the_commands_run_in_the_order_in_which_they_stand(folder):
    bin_folder = Path(sys.executable).parent
    for kind, block in BLOCKS:
        if kind != "console":
            continue
        for command, shown in steps(block):
            if RUN_ELSEWHERE.match(command):
                continue
            small = re.sub(r"--per-task \d+", "--per-task 1", command)
            done = subprocess.run(
                ["bash", "-c", small],
                cwd=folder,
                env={"PATH": f"{bin_folder}:/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"{small}\n{done.stdout}{done.stderr}"
            for line in shown:
                assert line in done.stdout, small


@pytest.mark.parametrize("code", [code for kind, code in BLOCKS if kind == "python"])
def test_the_python_runs(code, folder):
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
