"""The terms of a reply's reward: is an answer readable, is it feasible, how good is it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from npbench.errors import InputError, ParseError
from npbench.graphs import require_int
from npbench.task import Status, Task, ratio
from npbench.tasks import get_task

__all__ = ["Terms", "reward_terms", "truth_terms"]

CACHED_ROWS = 4096
"""Rows kept decoded: the replies of a group share one."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of one reply's reward, before their weights."""

    format: float
    feasibility: float
    quality: float
    optimal: float
    """1 where the answer reaches a proven optimum, else 0; for logging, in no total."""

    def total(
        self, *, format_weight: float, feasibility_weight: float, quality_weight: float
    ) -> float:
        """The weighted sum of format, feasibility and quality."""
        return (
            format_weight * self.format
            + feasibility_weight * self.feasibility
            + quality_weight * self.quality
        )


def reward_terms(
    reply: str,
    *,
    task: str,
    instance: str | Mapping[str, Any],
    reference_objective: int,
    reference_status: str = Status.FEASIBLE.value,
) -> Terms:
    """The terms of one reply to one instance.

    Args:
        reply: The model's reply; text that holds no answer is a fact, not an error.
        task: The task, by our name or an alias.
        instance: Its JSON form, as text or as a value.
        reference_objective: The objective that the quality ratio is relative to.
        reference_status: ``optimal`` where that is proven.

    Raises:
        InputError: If the task, the instance or the reference is broken.

    Example:
        >>> triangle = {"num_vertices": 3, "edges": [[0, 1], [0, 2], [1, 2]]}
        >>> row = {"task": "vertex_cover", "instance": triangle, "reference_objective": 2}
        >>> reward_terms("Answer: [0, 1, 2]", **row)
        Terms(format=1.0, feasibility=1.0, quality=0.6666666666666666, optimal=0.0)
        >>> reward_terms("I give up.", **row)
        Terms(format=0.0, feasibility=0.0, quality=0.0, optimal=0.0)
    """
    if not isinstance(task, str):
        raise InputError(f"task must be text, got {str(task)[:40]!r}")
    text = instance if isinstance(instance, str) else json.dumps(instance)
    chosen, problem = _decoded(task, text)
    reference = require_int(reference_objective, "reference_objective", low=0)
    return _judged(reply, _Row(chosen, problem, reference, reference_status))


def truth_terms(reply: str, truth: str) -> Terms:
    """The terms of one reply to the row that a ground truth holds.

    Args:
        reply: The model's reply.
        truth: JSON text with ``task``, ``instance``, ``reference_objective`` and, where it is
            known, ``reference_status``.

    Raises:
        InputError: If the ground truth is broken.
    """
    return _judged(reply, _row(truth))


@dataclass(frozen=True, slots=True)
class _Row:
    """What a row says, decoded."""

    task: Task[Any, Any]
    instance: Any
    reference: int
    status: str


def _judged(reply: str, row: _Row) -> Terms:
    try:
        answer = row.task.parse(reply)
    except ParseError:
        return Terms(0.0, 0.0, 0.0, 0.0)
    verdict = row.task.verify(row.instance, answer)
    if not verdict.feasible or verdict.objective is None:
        return Terms(1.0, 0.0, 0.0, 0.0)
    quality = ratio(row.task.sense, objective=verdict.objective, reference=row.reference)
    reached = row.status == Status.OPTIMAL.value and verdict.objective == row.reference
    return Terms(1.0, 1.0, quality, float(reached))


@lru_cache(maxsize=CACHED_ROWS)
def _decoded(task: str, instance: str) -> tuple[Task[Any, Any], Any]:
    """Task and instance."""
    chosen = get_task(task)
    try:
        data = json.loads(instance)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the instance is no JSON: {error}") from None
    return chosen, chosen.decode(data)


@lru_cache(maxsize=CACHED_ROWS)
def _row(truth: str) -> _Row:
    """The row that a ground truth holds."""
    try:
        data = json.loads(truth)
    except (ValueError, RecursionError) as error:
        raise InputError(f"ground_truth is no JSON: {error}") from None
    if not isinstance(data, dict):
        raise InputError(f"ground_truth must be an object, got {str(data)[:40]!r}")
    missing = [key for key in ("task", "instance", "reference_objective") if key not in data]
    if missing:
        raise InputError(f"ground_truth has no {missing[0]!r}")
    if not isinstance(data["task"], str):
        raise InputError(f"task must be text, got {str(data['task'])[:40]!r}")
    task = get_task(data["task"])
    instance = data["instance"]
    if isinstance(instance, str):
        instance = _decoded(data["task"], instance)[1]
    else:
        instance = task.decode(instance)
    reference = require_int(data["reference_objective"], "reference_objective", low=0)
    return _Row(task, instance, reference, data.get("reference_status", Status.FEASIBLE.value))
