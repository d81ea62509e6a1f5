"""The commands that this package adds to ``npbench``."""

from pathlib import Path
from typing import Any

import click

from evaluators.grading import Gold, Grade, grade
from evaluators.verdicts import AnswerType
from npbench.console import echo_cases
from npbench.errors import InputError, unknown_name

__all__ = ["grade_pairs"]

_NEEDED = ("reply", "gold", "answer_type")


@click.command("grade-pairs")
@click.argument("file", type=click.Path(path_type=Path))
def grade_pairs(file: Path) -> None:
    """Grades replies against golds, one JSON object a line of FILE.

    A line holds "id", "reply", "gold", "answer_type" (free, integer, float, list, set, interval,
    expression or option), "precision" with float and "options" with option. Each gives one line
    on standard output; a line that cannot be graded gives an "error", and the exit code is 1.
    """
    try:
        echo_cases(file, _graded, failed={})
    except ImportError as error:
        raise InputError(str(error)) from None


def _graded(entry: dict[str, Any]) -> dict[str, Any]:
    for key in _NEEDED:
        if key not in entry:
            raise InputError(f"the pair has no {key!r}")
        if not isinstance(entry[key], str):
            raise InputError(f"{key} must be text, got {entry[key]!r:.60}")
    return _output(grade(entry["reply"], _gold(entry)))


def _gold(entry: dict[str, Any]) -> Gold:
    kinds = [kind.value for kind in AnswerType]
    if entry["answer_type"] not in kinds:
        raise unknown_name("answer_type", entry["answer_type"], kinds)
    options = entry.get("options") or {}
    if not isinstance(options, dict) or not all(isinstance(t, str) for t in options.values()):
        raise InputError("options must map labels to texts")
    try:
        return Gold(
            entry["gold"],
            AnswerType(entry["answer_type"]),
            _precision(entry.get("precision")),
            options,
        )
    except ValueError as error:
        raise InputError(str(error)) from None


def _precision(value: Any) -> float | None:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    raise InputError(f"precision must be a number, got {value!r:.60}")


def _output(graded: Grade) -> dict[str, Any]:
    return {
        "extracted": graded.extracted,
        "correct": graded.correct,
        "state": graded.state.value,
        "stage": graded.stage.value,
        "extract_stage": graded.extract_stage.value,
        "reason": graded.reason,
    }
