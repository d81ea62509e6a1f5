"""``npbench demo``: the whole way on a small split of all fourteen tasks."""

import json
import os
from pathlib import Path

import click

from npbench.building import build_split
from npbench.commands.score import score_table
from npbench.console import print_table, progress_bar
from npbench.demo_page import Answered, write_page
from npbench.errors import InputError
from npbench.policies import SOLVER_NAMES, as_reply, policy_replies
from npbench.scoring import SCORE_COLUMNS, Question, score
from npbench.splits import Request
from npbench.storage import StoredSplit, open_split
from npbench.tasks import TASKS

__all__ = ["command"]


@click.command(short_help="Build a small split of all tasks, answer it and write a page.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("demo"), show_default=True)
def command(out: Path) -> None:
    """Build a split of all tasks, answer it with the five solvers, score them, write a page.

    OUT/split is the split, OUT/responses the replies, OUT/index.html the page. A demo that is
    already there is shown again, not built again.
    """
    folder = out / "split"
    request = Request.make(
        suite="nano",
        split="test",
        seed=0,
        per_task=2,
        levels=("nano", "l2"),
        modality="image",
    )
    if not (folder / "manifest.json").exists():
        with progress_bar("building") as progress:
            build_split(request, folder, workers=os.cpu_count() or 1, progress=progress)
    split = open_split(folder)
    if split.manifest["parameters"] != json.loads(json.dumps(request.as_json())):
        raise InputError(f"{folder} holds another split; choose another folder")
    replies = {solver: _replies(out, solver, split) for solver in SOLVER_NAMES}
    rows = list(split.rows())
    replies["careless"] = {row["id"]: _careless(row) for row in rows}
    questions = [Question.from_row(row) for row in split.rows(SCORE_COLUMNS)]
    results = {
        name: score(questions, {key: [reply] for key, reply in answers.items()})
        for name, answers in replies.items()
    }
    print_table(
        "SR / QR per task: five solvers, and careless answers (the reference, an entry repeated)",
        ["task", *results],
        [[task, *(_pair(r["tasks"][task]) for r in results.values())] for task in TASKS]
        + [["overall", *(_pair(r["overall"]) for r in results.values())]],
    )
    score_table(results["greedy"], title="greedy in full")
    answered = [
        Answered(row, {name: answers[row["id"]] for name, answers in replies.items()})
        for row in rows
    ]
    page = out / "index.html"
    write_page(page, answered, results, command=split.manifest["command"])
    click.echo(f"\n{len(rows)} instances with pictures, prompts, answers and verdicts: {page}")


def _replies(out: Path, solver: str, split: StoredSplit) -> dict[str, str]:
    """A solver's replies by id, written beside the split."""
    path = out / "responses" / f"{solver}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    responses = list(policy_replies(split, solver))
    text = "".join(json.dumps(response) + "\n" for response in responses)
    path.write_text(text, encoding="utf-8")
    return {response["id"]: response["reply"] for response in responses}


def _pair(row: dict[str, float]) -> str:
    return f"{row['sr']:.2f} / {row['qr']:.3f}"


def _careless(row: dict[str, object]) -> str:
    """The reference solution with one entry repeated: what a duplicate-blind verifier accepts."""
    solution = json.loads(str(row["reference_solution"]))
    return as_reply([*solution, solution[-1]])
