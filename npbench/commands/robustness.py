"""``npbench robustness``: SR and QR by style, with paired differences."""

import json
from pathlib import Path
from typing import Any

import click

from npbench.console import print_table
from npbench.responses import read_responses
from npbench.robustness import TEXT, Variant, robustness
from npbench.scoring import SCORE_COLUMNS, Question
from npbench.storage import open_split

__all__ = ["command"]


@click.command(short_help="Compare styles, and pictures with text, instance by instance.")
@click.option("--data", type=click.Path(path_type=Path), required=True, help="The split.")
@click.option("--responses", type=click.Path(path_type=Path), required=True, help="JSONL replies.")
@click.option("--base", default="light", show_default=True, help="A style, or text.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(data: Path, responses: Path, base: str, as_json: bool) -> None:
    """Score replies to a split that shows each instance in several styles, or as text as well.

    Such a split is made with ``npbench generate --style light --style dark --modality both``.
    """
    split = open_split(data)
    columns = tuple(dict.fromkeys((*SCORE_COLUMNS, "style", "modality")))
    variants = [
        Variant(Question.from_row(row), TEXT if row["modality"] == TEXT else row["style"])
        for row in split.rows(columns)
    ]
    replies = read_responses(responses, [variant.question.id for variant in variants])
    result = robustness(variants, replies, base=base)
    if as_json:
        click.echo(json.dumps(result))
        return
    headings = ["variant", "n", "SR", "95 %", "QR", "95 %", "pairs"]
    headings += [f"SR - {base}", "95 %", f"QR - {base}", "95 %"]
    rows = [_cells(name, row) for name, row in result["variants"].items()]
    print_table(f"{split.manifest['version']}, differences paired by instance", headings, rows)


def _cells(name: str, row: dict[str, Any]) -> list[str]:
    cells = [name, str(row["n"])]
    for metric in ("sr", "qr"):
        cells += [f"{row[metric]:.3f}", _ends(row["ci"][metric], "")]
    cells.append(str(row["paired"]))
    for metric in ("sr", "qr"):
        change = row["difference"]
        cells += (
            ["-", "-"]
            if change is None
            else [
                f"{change[metric]:+.3f}",
                _ends(change["ci"][metric], "+"),
            ]
        )
    return cells


def _ends(interval: list[float] | None, sign: str) -> str:
    return f"{interval[0]:{sign}.3f} to {interval[1]:{sign}.3f}" if interval else "-"
