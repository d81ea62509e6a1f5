"""The demo's page: every question with its picture, prompt, answers and verdicts, in one file."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npbench.errors import ParseError
from npbench.task import ratio
from npbench.tasks import TASKS

__all__ = ["Answered", "write_page"]


@dataclass(frozen=True, slots=True)
class Answered:
    """A row and the replies to it by the name of who gave them."""

    row: Mapping[str, Any]
    replies: Mapping[str, str]


def write_page(
    path: Path,
    answered: Sequence[Answered],
    results: Mapping[str, Mapping[str, Any]],
    *,
    command: str,
) -> None:
    """Write a self-contained HTML page.

    Args:
        path: The file.
        answered: The questions in order.
        results: Scores by the name of who answered.
        command: What made the split.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("npbench", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    html = environment.get_template("demo.html").render(
        command=command,
        names=list(results),
        tasks=[
            {
                "title": TASKS[name].title,
                "cells": [result["tasks"][name] for result in results.values()],
            }
            for name in TASKS
        ],
        overall=[result["overall"] for result in results.values()],
        cards=[_card(item) for item in answered],
    )
    path.write_text(html, encoding="utf-8")


def _card(item: Answered) -> dict[str, Any]:
    row = item.row
    task = TASKS[row["task"]]
    instance = task.decode(json.loads(row["instance"]))
    verdicts = []
    for name, reply in item.replies.items():
        try:
            verdict = task.verify(instance, task.parse(reply))
            feasible, objective, reason = verdict.feasible, verdict.objective, verdict.reason
        except ParseError as error:
            feasible, objective, reason = False, None, str(error)
        quality = (
            ratio(task.sense, objective=objective, reference=row["reference_objective"])
            if feasible and objective is not None
            else 0.0
        )
        verdicts.append(
            {
                "name": name,
                "reply": reply,
                "feasible": feasible,
                "objective": objective,
                "reason": reason,
                "ratio": quality,
            }
        )
    return {
        **{key: row[key] for key in ("id", "level", "family", "prompt", "reference_objective")},
        "title": task.title,
        "sense": task.sense.value,
        "status": row["reference_status"],
        "picture": base64.b64encode(row["image"]).decode(),
        "layout": json.loads(row["layout"]),
        "verdicts": verdicts,
    }
