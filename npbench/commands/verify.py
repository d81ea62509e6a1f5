"""``npbench verify``: verdicts on replies to instances."""

import json
from pathlib import Path
from typing import Any

import click

from npbench.commands.parse import text_field
from npbench.console import echo_cases, read_json
from npbench.errors import InputError, ParseError
from npbench.tasks import get_task

__all__ = ["command", "verify_case"]


def verify_case(case: dict[str, Any]) -> dict[str, Any]:
    """Answer and verdict of a case with ``task``, ``instance`` and ``reply``.

    Raises:
        InputError: If the case itself is broken.
    """
    task = get_task(text_field(case, "task"))
    if "instance" not in case:
        raise InputError("the case has no 'instance'")
    instance = task.decode(case["instance"])
    reply = text_field(case, "reply")
    try:
        answer = task.parse(reply)
    except ParseError as error:
        return _fields(parsed=False, answer=None, reason=f"unparsed: {error}")
    verdict = task.verify(instance, answer)
    return _fields(
        parsed=True,
        answer=answer,
        feasible=verdict.feasible,
        objective=verdict.objective,
        reason=verdict.reason,
    )


def _fields(
    *,
    parsed: bool,
    answer: Any,
    reason: str,
    feasible: bool = False,
    objective: int | None = None,
) -> dict[str, Any]:
    return {
        "parsed": parsed,
        "answer": answer,
        "feasible": feasible,
        "objective": objective,
        "reason": reason,
    }


@click.command(short_help="Judge replies to instances.")
@click.option("--cases", type=click.Path(path_type=Path), help="JSONL of cases.")
@click.option("--task", help="The task of a single instance.")
@click.option("--instance", type=click.Path(path_type=Path), help="Its JSON file.")
@click.option("--answer", help="The reply, such as 'Answer: [0, 2]' or just '[0, 2]'.")
def command(
    cases: Path | None, task: str | None, instance: Path | None, answer: str | None
) -> int | None:
    """Print {"id", "parsed", "answer", "feasible", "objective", "reason"} for every case.

    Cases are lines {"id", "task", "instance", "reply"}; or give one by --task, --instance and
    --answer.
    """
    single = (task, instance, answer)
    if cases is not None:
        if any(value is not None for value in single):
            raise InputError("--cases goes alone, without --task, --instance and --answer")
        return echo_cases(cases, verify_case, failed=_fields(parsed=False, answer=None, reason=""))
    if task is None or instance is None or answer is None:
        raise InputError("verify needs --cases, or --task, --instance and --answer")
    reply = answer if "answer" in answer.lower() or "boxed" in answer else f"Answer: {answer}"
    case = {"task": task, "instance": read_json(instance), "reply": reply}
    click.echo(json.dumps(verify_case(case)))
    return None
