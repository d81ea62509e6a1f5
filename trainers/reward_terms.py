"""The reward terms, each a function of a reply and its dataset row.

A row of an NP task has the columns of a split: ``task``, ``instance`` (JSON text or its value),
``reference_objective``, ``reference_status``; verdicts are npbench's own. A row of another question
has ``gold`` and, where they apply, ``answer_type``, ``precision``, ``options``; verdicts are those
of the evaluators, so training and scoring agree.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from npbench.errors import ParseError
from npbench.task import Status, ratio

__all__ = [
    "FORMATS",
    "GATES",
    "Judged",
    "Term",
    "accuracy",
    "correctness",
    "feasibility",
    "judge",
    "np_engine",
    "quality",
]

Term = Callable[[str, Mapping[str, Any]], float | None]


@dataclass(frozen=True, slots=True)
class Judged:
    """What npbench says of a reply."""

    parsed: bool
    feasible: bool
    quality: float
    """Ratio to the reference, not capped; 0 where unparsed or infeasible."""
    optimal: bool
    """The reference is proven optimal and the reply reaches it."""


@lru_cache(maxsize=4096)
def _judge(task_name: str, instance: str, reply: str, reference: int, status: str) -> Judged:
    from npbench.tasks import get_task

    task = get_task(task_name)
    problem = task.decode(json.loads(instance))
    try:
        solution = task.parse(reply)
    except ParseError:
        return Judged(parsed=False, feasible=False, quality=0.0, optimal=False)
    verdict = task.verify(problem, solution)
    if not verdict.feasible or verdict.objective is None:
        return Judged(parsed=True, feasible=False, quality=0.0, optimal=False)
    value = ratio(task.sense, objective=verdict.objective, reference=reference)
    reached = value >= 1.0 and status == Status.OPTIMAL.value
    return Judged(parsed=True, feasible=True, quality=value, optimal=reached)


def judge(reply: str, row: Mapping[str, Any]) -> Judged:
    """Parses and verifies a reply to the instance of its row.

    Raises:
        KeyError: If the row lacks a column; scoring contains and counts it.
        InputError: If the task or the instance is broken.
    """
    instance = row["instance"]
    text = instance if isinstance(instance, str) else json.dumps(instance, sort_keys=True)
    return _judge(
        row["task"], text, reply, int(row["reference_objective"]), str(row["reference_status"])
    )


def feasibility(reply: str, row: Mapping[str, Any]) -> float:
    """1 where the reply holds a feasible answer, else 0.

    A flat reward for feasibility leads to reward hacking when it is all there is (NP-Engine): use
    it as a gate, or beside :func:`quality`.
    """
    return float(judge(reply, row).feasible)


def quality(reply: str, row: Mapping[str, Any]) -> float:
    """The quality ratio QR of a feasible answer, else 0; above 1 where it beats the reference.

    References:
        DMPO, `arXiv 2605.19461 <https://arxiv.org/abs/2605.19461>`_, 2026: r_opt.
    """
    return judge(reply, row).quality


def accuracy(reply: str, row: Mapping[str, Any]) -> float:
    """1 where the reply reaches the proven optimum, else 0 (also where none is proven)."""
    return float(judge(reply, row).optimal)


def correctness(reply: str, row: Mapping[str, Any]) -> float | None:
    """1 where the reply's final answer equals the row's gold, else 0.

    None where the grader failed: such a reply is unscorable, not wrong.

    Raises:
        KeyError: If the row lacks the column ``gold``.
        ValueError: If the gold's type does not fit its other columns.
    """
    from evaluators.grading import Gold, State, grade
    from evaluators.verdicts import AnswerType

    gold = Gold(
        text=str(row["gold"]),
        kind=AnswerType(row.get("answer_type") or AnswerType.FREE),
        precision=row.get("precision"),
        options=row.get("options") or {},
    )
    verdict = grade(reply, gold)
    if verdict.state in (State.FAILED, State.JUDGE_FAILED):
        return None
    return float(verdict.correct)


def np_engine(reply: str, row: Mapping[str, Any]) -> float:
    """NP-Engine's older reward: +1 or -1 for the format, and -1.5 or the ratio.

    +1 where the reply has an answer line, else -1; plus the ratio of a feasible answer, else -1.5.
    So -2.5 without an answer, -0.5 where it is infeasible or unreadable, and 1 + ratio.
    """
    judged = judge(reply, row)
    form = 1.0 if _ANSWER_LINE.search(reply) else -1.0
    return form + (judged.quality if judged.feasible else -1.5)


_ANSWER_LINE = re.compile(r"^[ \t*_#>]*answer[ \t*_]*:[ \t*_]*\S", re.IGNORECASE | re.MULTILINE)
_ANSWER_TAG = re.compile(r"<answer>\s*[^\s<]", re.IGNORECASE)
_BOXED = re.compile(r"\\boxed\s*\{\s*[^\s}]")
_THINK_BOXED = re.compile(
    r"\A\s*<think>(?:(?!</?think>).)*</think>(?:(?!</?think>).)*\\boxed\s*\{\s*[^\s}]", re.DOTALL
)


def _form(pattern: re.Pattern[str]) -> Term:
    """1 where the pattern is found, else 0."""
    return lambda reply, row: float(pattern.search(reply) is not None)


def _tagged(reply: str, row: Mapping[str, Any]) -> float:
    """1 where an answer tag opens, holds something and closes, else 0."""
    opening = _ANSWER_TAG.search(reply)
    return float(opening is not None and "</answer>" in reply[opening.end() :].lower())


FORMATS: Mapping[str, Term] = {
    "answer-line": _form(_ANSWER_LINE),
    "answer-tag": _tagged,
    "boxed": _form(_BOXED),
    "think-boxed": _form(_THINK_BOXED),
}
"""Format terms by prompt format: a line ``Answer: ...``, ``<answer>...</answer>``, a box, or one
thinking block followed by a box."""

GATES: Mapping[str, Term] = {"feasible": feasibility, "optimal": accuracy}
"""Where MUPO's diversity reward counts on NP tasks."""
