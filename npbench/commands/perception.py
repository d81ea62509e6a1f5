"""``npbench perception``: np-perception, the benchmark of reading pictures."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from npbench.console import print_table, progress_bar
from npbench.errors import InputError
from npbench.perception import facts, perception_reply
from npbench.perception_scoring import question_prompt, score_perception, seeing_and_solving
from npbench.rendering.styles import get_style
from npbench.responses import read_responses
from npbench.scoring import SCORE_COLUMNS, Question
from npbench.storage import StoredSplit, open_split

__all__ = ["command"]


@click.command(short_help="Read pictures: prompts, a decoder's replies, and their scores.")
@click.option("--data", type=click.Path(path_type=Path), required=True, help="The split.")
@click.option("--prompts", type=click.Path(path_type=Path), help="Write the prompts as JSONL.")
@click.option("--decode", type=click.Path(path_type=Path), help="Write our decoder's replies.")
@click.option("--responses", type=click.Path(path_type=Path), help="JSONL replies to score.")
@click.option("--solved", type=click.Path(path_type=Path), help="Replies to the tasks themselves.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    data: Path,
    prompts: Path | None,
    decode: Path | None,
    responses: Path | None,
    solved: Path | None,
    as_json: bool,
) -> None:
    """Ask what the pictures of the split DATA show, and score the replies.

    One of --prompts, --decode and --responses. With --solved, the success rate on the tasks is
    shown apart for pictures that were read exactly and for the others.
    """
    if sum(path is not None for path in (prompts, decode, responses)) != 1:
        raise InputError("perception needs one of --prompts, --decode and --responses")
    if solved is not None and responses is None:
        raise InputError("--solved goes with --responses")
    split = open_split(data)
    if prompts is not None:
        _write(prompts, ({"id": row["id"], "prompt": question_prompt(row)} for row in _rows(split)))
    elif decode is not None:
        _write(decode, _decoded(split))
    elif responses is not None:
        result = _scored(split, responses, solved)
        if as_json:
            click.echo(json.dumps(result))
        else:
            _show(split, result)


def _rows(split: StoredSplit, *extra: str) -> Iterator[dict[str, Any]]:
    """The rows with pictures."""
    columns = tuple(dict.fromkeys((*SCORE_COLUMNS, "style", "modality", *extra)))
    return (row for row in split.rows(columns) if row["modality"] == "image")


def _write(path: Path, entries: Iterator[dict[str, Any]]) -> None:
    if path.exists():
        raise InputError(f"{path} exists; choose another file")
    temporary = path.with_name(f"{path.name}.part")
    with temporary.open("w", encoding="utf-8") as file:
        for entry in entries:
            file.write(json.dumps(entry) + "\n")
    temporary.replace(path)


def _decoded(split: StoredSplit) -> Iterator[dict[str, Any]]:
    """What our decoder reads from the pixels, as replies."""
    from npbench.decoding.decoder import decode
    from npbench.decoding.instances import as_instance

    with progress_bar("pictures") as progress:
        for done, row in enumerate(_rows(split, "image"), 1):
            seen = decode(row["image"], degrees=get_style(row["style"]).rotation)
            try:
                reply = perception_reply(facts(row["task"], as_instance(row["task"], seen)))
            except InputError as error:
                reply = str(error)
            yield {"id": row["id"], "sample": 0, "reply": reply}
            progress(done, len(split))


def _scored(split: StoredSplit, responses: Path, solved: Path | None) -> dict[str, Any]:
    rows = list(_rows(split))
    ids = [row["id"] for row in rows]
    replies = read_responses(responses, ids)
    result = score_perception(rows, replies)
    if solved is not None:
        questions = [Question.from_row(row) for row in rows]
        answers = read_responses(solved, ids)
        result["solving"] = seeing_and_solving(rows, questions, replies, answers)
    return result


def _show(split: StoredSplit, result: dict[str, Any]) -> None:
    rows = [
        [f"{task}: {kind}", *(f"{part[name]:.3f}" for name in ("precision", "recall", "f1")), ""]
        for task, row in result["tasks"].items()
        for kind, part in row["kinds"].items()
    ]
    for name, row in [*result["styles"].items(), ("overall", result["overall"])]:
        rows.append([name, "", "", f"{row['f1']:.3f}", f"{row['exact']:.3f}"])
    headings = ["facts", "precision", "recall", "F1", "exact"]
    print_table(f"np-perception on {split.manifest['version']}", headings, rows)
    for name, row in result.get("solving", {}).items():
        rate = "-" if row["sr"] is None else f"{row['sr']:.3f}"
        click.echo(f"pictures {name}: {row['n']}, SR on the task {rate}")
