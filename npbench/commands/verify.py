"""``npbench verify``: verdicts on replies to instances."""

import json
from pathlib import Path
from typing import Any

import click

from npbench.answers import is_marked
from npbench.commands.parse import text_field
from npbench.console import echo_cases
from npbench.errors import InputError, ParseError
from npbench.interop.instances import read_instance
from npbench.task import Task
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
    return _verdict(task, task.decode(case["instance"]), text_field(case, "reply"))


def _verdict(task: Task[Any, Any], instance: Any, reply: str) -> dict[str, Any]:
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
@click.option("--task", help="The task of a single instance, where its file does not say it.")
@click.option("--instance", type=click.Path(path_type=Path), help="Its file, as for solve.")
@click.option("--key", help="Which instance, where the file holds several.")
@click.option("--answer", help="The reply, such as 'Answer: [0, 2]' or just '[0, 2]'.")
def command(
    cases: Path | None,
    task: str | None,
    instance: Path | None,
    key: str | None,
    answer: str | None,
) -> None:
    """Print {"id", "parsed", "answer", "feasible", "objective", "reason"} for every case.

    Cases are lines {"id", "task", "instance", "reply"}; or give one by --instance and --answer.
    """
    single = (task, instance, key, answer)
    if cases is not None:
        if any(value is not None for value in single):
            raise InputError("--cases goes alone, without the options of a single instance")
        echo_cases(cases, verify_case, failed=_fields(parsed=False, answer=None, reason=""))
        return
    if instance is None or answer is None:
        raise InputError("verify needs --cases, or --instance and --answer")
    found = read_instance(instance, task=task, key=key)
    reply = answer if is_marked(answer) else f"Answer: {answer}"
    click.echo(json.dumps(_verdict(found.task, found.instance, reply)))
