"""``npbench parse``: what the parser reads of replies."""

from pathlib import Path
from typing import Any

import click

from npbench.console import echo_cases
from npbench.errors import InputError, ParseError
from npbench.tasks import get_task

__all__ = ["command", "parse_case", "text_field"]


def text_field(case: dict[str, Any], name: str) -> str:
    """A text value of a case.

    Raises:
        InputError: If it is missing or no text.
    """
    if name not in case:
        raise InputError(f"the case has no {name!r}")
    if not isinstance(case[name], str):
        raise InputError(f"{name} must be text, got {type(case[name]).__name__}")
    value: str = case[name]
    return value


def parse_case(case: dict[str, Any]) -> dict[str, Any]:
    """``parsed`` and ``answer`` of a case with ``task`` and ``reply``."""
    task = get_task(text_field(case, "task"))
    try:
        return {"parsed": True, "answer": task.parse(text_field(case, "reply"))}
    except ParseError:
        return {"parsed": False, "answer": None}


@click.command(short_help="Read the answers of replies.")
@click.option("--cases", type=click.Path(path_type=Path), required=True, help="JSONL of cases.")
def command(cases: Path) -> None:
    """Print {"id", "parsed", "answer"} for every {"id", "task", "reply"} of a JSONL file."""
    echo_cases(cases, parse_case, failed={"parsed": False, "answer": None})
