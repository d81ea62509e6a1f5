import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from evaluators.cli import compare_command, eval_command, grade_command
from npbench.building import build_split
from npbench.splits import Request
from npbench.storage import open_split

COMMANDS = {"eval": eval_command, "grade": grade_command, "compare": compare_command}
ENTRY = (
    "import sys; from npbench import cli; from evaluators.cli import eval_command as command\n"
    "cli.cli.main = lambda **_: command.main(sys.argv[2:], 'npbench eval', standalone_mode=False)\n"
    "cli.main()"
)


@pytest.fixture(scope="session")
def split(tmp_path_factory):
    """Six pictures and six texts: two instances of three tasks."""
    folder = tmp_path_factory.mktemp("split")
    request = Request.make(
        suite="nano",
        split="test",
        seed=3,
        per_task=2,
        tasks=("tsp", "graph_coloring", "knapsack"),
        modality="both",
    )
    build_split(request, folder)
    return folder


@pytest.fixture(scope="session")
def rows(split):
    return list(open_split(split).rows())


@pytest.fixture
def npbench():
    """Runs a command in this process; an error that a user can cause is raised."""

    def call(name, *arguments):
        words = [str(argument) for argument in arguments]
        result = CliRunner().invoke(COMMANDS[name], words, standalone_mode=False)
        if result.exception is not None:
            raise result.exception
        return result

    return call


@pytest.fixture
def start():
    """Starts ``npbench eval`` in a process of its own."""
    started = []

    def call(*arguments):
        words = [sys.executable, "-c", ENTRY, "eval", *map(str, arguments)]
        process = subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        )
        started.append(process)
        return process

    yield call
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def samples():
    """The lines of a run's samples."""

    def read(run):
        text = (Path(run) / "samples.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.split("\n")[:-1]]

    return read


@pytest.fixture
def script(tmp_path):
    """Writes a responses file."""
    count = iter(range(100))

    def write(lines):
        path = tmp_path / f"script-{next(count)}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        return path

    return write
