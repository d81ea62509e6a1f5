import json
import random

import pytest
from click.testing import CliRunner

from evaluators.cli import eval_command
from leaderboards.cli import leaderboard_command
from npbench.building import build_split
from npbench.splits import Request
from npbench.storage import open_split
from npbench.suites import OfficialSplit

HOSTILE = (
    '<script>document.title="pwned"</script><img src=x onerror="document.title=1">',
    "</pre></script><script>alert(1)</script>",
    "\x1b[31mred\x1b[0m \u202egnihtyna",
    "{{ 7 * 7 }} {% raw %} `x` | y & \\input{x}",
    "word " * 900,
    "",
)


@pytest.fixture(scope="session")
def split(tmp_path_factory):
    """Two tiny pictures of each task."""
    folder = tmp_path_factory.mktemp("split")
    build_split(Request.make(suite="nano", split="test", seed=3, per_task=2), folder)
    return folder


@pytest.fixture(scope="session")
def official(split):
    """The tiny split as an official one, under a name of its own."""
    content = open_split(split).manifest["content_hash"]
    return OfficialSplit("nano-test", "nano", ("nano",), "test", 3, 2, content)


@pytest.fixture(scope="session")
def officials(official):
    return {official.name: official}


@pytest.fixture(scope="session")
def rows(split):
    return list(open_split(split).rows())


@pytest.fixture(scope="session")
def evaluated():
    """Makes a run with ``npbench eval``."""

    def call(out, data, *arguments):
        words = ["--data", data, "-k", 2, "--out", out, *arguments]
        result = CliRunner().invoke(eval_command, [str(w) for w in words], standalone_mode=False)
        if result.exception is not None:
            raise result.exception
        return out

    return call


@pytest.fixture(scope="session")
def model_run(tmp_path_factory, split, rows, evaluated):
    """A run whose replies are right, wrong and hostile."""
    folder = tmp_path_factory.mktemp("model")
    choose = random.Random(5)
    replies = folder / "replies.jsonl"
    with replies.open("w", encoding="utf-8") as file:
        for row in rows:
            for sample in range(3):
                right = f"I compare.\n\nAnswer: {row['reference_solution']}"
                wrong = choose.choice(HOSTILE)
                reply = right if choose.random() < 0.6 else wrong
                file.write(json.dumps({"id": row["id"], "sample": sample, "reply": reply}) + "\n")
    return evaluated(folder / "run", split, "--backend", "scripted", "--model", replies)


@pytest.fixture(scope="session")
def solver_run(tmp_path_factory, split, evaluated):
    out = tmp_path_factory.mktemp("solver") / "run"
    return evaluated(out, split, "--backend", "policy", "--model", "greedy")


@pytest.fixture
def leaderboard(officials):
    """Runs ``npbench leaderboard``; an error that a user can cause is raised."""

    def call(*arguments):
        words = [str(argument) for argument in arguments]
        result = CliRunner().invoke(
            leaderboard_command, words, obj=officials, standalone_mode=False
        )
        if result.exception is not None:
            raise result.exception
        return result

    return call
