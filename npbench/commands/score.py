"""``npbench score``: SR, QR and their company for the replies to a split."""

import json
from pathlib import Path
from typing import Any

import click

from npbench.console import print_table, progress_bar
from npbench.responses import read_responses
from npbench.scoring import FLOOR_NAMES, SCORE_COLUMNS, Question, score
from npbench.storage import open_split

__all__ = ["command", "score_table"]


@click.command(short_help="Score the replies to a split.")
@click.option("--data", type=click.Path(path_type=Path), required=True, help="The split.")
@click.option("--responses", type=click.Path(path_type=Path), required=True, help="JSONL replies.")
@click.option(
    "--reference",
    default="optimal",
    show_default=True,
    help="What QR is relative to: optimal (the best known) or heuristic (as in the papers).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(data: Path, responses: Path, reference: str, as_json: bool) -> None:
    """Score replies {"id", "sample", "reply"} to the split in DATA.

    All rows count: unreadable and infeasible replies score 0.
    """
    split = open_split(data)
    questions = [Question.from_row(row, reference=reference) for row in split.rows(SCORE_COLUMNS)]
    replies = read_responses(responses, [question.id for question in questions])
    with progress_bar("graded") as progress:
        result = score(questions, replies, progress=lambda done: progress(done, len(questions)))
    result["manifest"] = {
        "version": split.manifest["version"],
        "content_hash": split.manifest["content_hash"],
        "command": split.manifest["command"],
        "reference": reference,
    }
    if as_json:
        click.echo(json.dumps(result))
        return
    score_table(
        result, title=f"{split.manifest['version']}, QR relative to the {reference} reference"
    )


def score_table(result: dict[str, Any], *, title: str) -> None:
    """The table for people: tasks, groups and overall, with intervals and floors."""
    several = result["overall"]["k"] > 1
    columns = ["", "n", "k", "SR", "95 %", "QR", "95 %", "acc", "beats"]
    columns += ["SR@k", "QR@k", "distinct", "distance"] if several else []
    columns += FLOOR_NAMES[:-1]
    rows = [_row(name, row, several=several) for name, row in result["tasks"].items()]
    rows += [_row(f"[{name}]", row, several=several) for name, row in result["groups"].items()]
    if len(result["levels"]) > 1:
        rows += [
            _row(f"level {name}", row, several=several) for name, row in result["levels"].items()
        ]
    rows.append(_row("overall", result["overall"], several=several))
    print_table(f"{title}; the last four columns are the QR of the floors", columns, rows)
    for name, row in result["tasks"].items():
        if row["reasons"]:
            listed = ", ".join(f"{rule} {count}" for rule, count in row["reasons"].items())
            click.echo(f"{name}: not feasible because of {listed}")


def _row(name: str, row: dict[str, Any], *, several: bool) -> list[str]:
    cells = [
        name,
        str(row["n"]),
        str(row["k"]),
        f"{row['sr']:.3f}",
        _interval(row["ci"]["sr"]),
        f"{row['qr']:.3f}",
        _interval(row["ci"]["qr"]),
        f"{row['acc']:.3f}",
        str(row["beats_reference"]),
    ]
    if several:
        cells += [
            f"{row['sr_at_k']:.3f}",
            f"{row['qr_at_k']:.3f}",
            _number(row.get("distinct_feasible")),
            _number(row.get("solution_distance")),
        ]
    return [*cells, *(f"{row['floors'][floor]['qr']:.3f}" for floor in FLOOR_NAMES[:-1])]


def _interval(ends: list[float] | None) -> str:
    return f"{ends[0]:.2f}-{ends[1]:.2f}" if ends else "-"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
