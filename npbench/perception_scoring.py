"""Scores of np-perception by task and style, and seeing set against solving."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from npbench.errors import ParseError
from npbench.metrics import bootstrap_interval, cluster_means
from npbench.perception import (
    KINDS,
    Agreement,
    agreement,
    facts,
    mean_f1,
    parse_facts,
    perception_prompt,
)
from npbench.rendering.styles import get_style
from npbench.scoring import Question, grade
from npbench.tasks import TASKS

__all__ = ["question_prompt", "score_perception", "seeing_and_solving"]

Row = Mapping[str, Any]


def question_prompt(row: Row) -> str:
    """The question of np-perception about a row that has a picture."""
    note = get_style(row["style"]).note
    words = TASKS[row["task"]].wording.picture
    return perception_prompt(row["task"], f"{words} {note}".strip())


def _read(row: Row, reply: str) -> dict[str, Agreement] | None:
    """Agreement by kind, None where the reply cannot be read."""
    drawn = facts(row["task"], json.loads(row["instance"]))
    try:
        read = parse_facts(row["task"], reply)
    except ParseError:
        return None
    return {kind: agreement(drawn[kind], read[kind]) for kind in KINDS[row["task"]]}


_NOTHING = Agreement(0.0, 0.0, 0.0)


def score_perception(rows: Sequence[Row], replies: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Precision, recall and F1 by task and kind of fact, F1 by style, all rows counted.

    Args:
        rows: Rows with pictures: ``id``, ``instance_id``, ``task``, ``style``, ``instance``.
        replies: Replies by id; one that cannot be read scores 0.
    """
    found = [(row, _read(row, reply)) for row in rows for reply in replies[row["id"]]]
    tasks: dict[str, Any] = {}
    for task in KINDS:
        own = [(row, parts) for row, parts in found if row["task"] == task]
        if own:
            tasks[task] = {**_summary(own), "kinds": _kinds(task, own)}
    styles = {
        style: _summary([pair for pair in found if pair[0]["style"] == style])
        for style in dict.fromkeys(row["style"] for row in rows)
    }
    return {"overall": _summary(found), "tasks": tasks, "styles": styles}


def _f1(parts: dict[str, Agreement] | None) -> float:
    return mean_f1(list(parts.values())) if parts else 0.0


def _summary(found: Sequence[tuple[Row, dict[str, Agreement] | None]]) -> dict[str, Any]:
    scores = [_f1(parts) for _, parts in found]
    interval = bootstrap_interval(cluster_means(scores, [row["instance_id"] for row, _ in found]))
    return {
        "n": len(found),
        "f1": float(np.mean(scores)),
        "ci": list(interval) if interval else None,
        "exact": float(np.mean([score == 1.0 for score in scores])),
        "unparsed": sum(parts is None for _, parts in found),
    }


def _kinds(task: str, found: Sequence[tuple[Row, dict[str, Agreement] | None]]) -> dict[str, Any]:
    """Means of precision, recall and F1 for each kind of fact."""
    result = {}
    for kind in KINDS[task]:
        parts = [(read or {}).get(kind, _NOTHING) for _, read in found]
        result[kind] = {
            "precision": float(np.mean([part.precision for part in parts])),
            "recall": float(np.mean([part.recall for part in parts])),
            "f1": float(np.mean([part.f1 for part in parts])),
        }
    return result


def seeing_and_solving(
    rows: Sequence[Row],
    questions: Sequence[Question],
    seen: Mapping[str, Sequence[str]],
    solved: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    """How often the task was answered feasibly, apart for pictures read exactly and not.

    Args:
        rows: The rows.
        questions: Their questions, in the same order.
        seen: Replies to np-perception by id; the first one counts.
        solved: Replies to the tasks themselves by id, all of which count.
    """
    table: defaultdict[str, list[float]] = defaultdict(list)
    for row, question in zip(rows, questions, strict=True):
        exact = _f1(_read(row, seen[row["id"]][0])) == 1.0
        answers = [grade(question, reply).feasible for reply in solved[row["id"]]]
        table["seen" if exact else "not seen"].append(float(np.mean(answers)))
    return {
        name: {"n": len(values), "sr": float(np.mean(values)) if values else None}
        for name, values in (("seen", table["seen"]), ("not seen", table["not seen"]))
    }
