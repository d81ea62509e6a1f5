"""Scores of the replies to a split: every reply graded, then averaged as the metrics define."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npbench.errors import InputError, ParseError
from npbench.metrics import Answer, bootstrap_interval, cluster_means, macro_interval, spread
from npbench.task import Task, better, ratio
from npbench.tasks import get_task

__all__ = ["FLOOR_NAMES", "SCORE_COLUMNS", "Question", "grade", "score"]

FLOOR_NAMES = ("trivial", "random", "greedy", "heuristic", "reference")
STATES = ("right", "feasible", "infeasible", "unparsed", "empty")
SCORE_COLUMNS = (
    "id",
    "instance_id",
    "task",
    "group",
    "level",
    "instance",
    "reference_objective",
    "reference_status",
    *(f"{name}_objective" for name in FLOOR_NAMES[:-1]),
)


@dataclass(frozen=True, slots=True)
class Question:
    """What is needed of a row to grade replies to it."""

    id: str
    instance_id: str
    task: Task[Any, Any]
    group: str
    level: str
    instance: Any
    reference: int
    """The objective that ratios are relative to."""
    optimum: int | None
    """The proven optimum, None where none is proven."""
    floors: Mapping[str, int]

    @classmethod
    def from_row(cls, row: Mapping[str, Any], *, reference: str = "optimal") -> "Question":
        """The question of a row.

        Args:
            row: At least the columns ``SCORE_COLUMNS``.
            reference: ``optimal`` for the row's reference, ``heuristic`` for its heuristic floor.

        Raises:
            InputError: If the reference's name is unknown.
        """
        if reference not in ("optimal", "heuristic"):
            raise InputError(f"reference must be optimal or heuristic, got {reference!r}")
        task = get_task(row["task"])
        floors = {name: row[f"{name}_objective"] for name in FLOOR_NAMES[:-1]}
        floors["reference"] = row["reference_objective"]
        heuristic = reference == "heuristic"
        return cls(
            id=row["id"],
            instance_id=row["instance_id"],
            task=task,
            group=row["group"],
            level=row["level"],
            instance=task.decode(json.loads(row["instance"])),
            reference=floors["heuristic" if heuristic else "reference"],
            optimum=row["reference_objective"] if row["reference_status"] == "optimal" else None,
            floors=floors,
        )


def grade(question: Question, reply: str) -> Answer:
    """The graded reply.

    Raises:
        AssertionError: If an answer beats a proven optimum: the data or the verifier is broken.
    """
    task = question.task
    try:
        solution = task.parse(reply)
    except ParseError:
        state = "unparsed" if reply.strip() else "empty"
        return Answer(question.instance_id, state, 0.0, False, False, state, None, None)
    verdict = task.verify(question.instance, solution)
    if not verdict.feasible or verdict.objective is None:
        return Answer(
            question.instance_id, "infeasible", 0.0, False, False, verdict.rule, None, None
        )
    optimum = question.optimum
    if optimum is not None and better(task.sense, verdict.objective, optimum):
        raise AssertionError(
            f"{question.id}: objective {verdict.objective} beats the proven optimum {optimum}; "
            f"the split or the verifier is broken"
        )
    reached = verdict.objective == optimum
    return Answer(
        instance_id=question.instance_id,
        state="right" if reached else "feasible",
        ratio=ratio(task.sense, objective=verdict.objective, reference=question.reference),
        optimal=reached,
        beats=better(task.sense, verdict.objective, question.reference),
        rule="",
        canonical=task.canonical(question.instance, solution),
        solution=solution,
    )


@dataclass(frozen=True, slots=True)
class _TaskResult:
    """Per-question means of one task, and what they add up to."""

    clusters: Mapping[str, np.ndarray[Any, Any]]
    summary: dict[str, Any]


_Graded = tuple[Question, list[Answer]]

METRICS = ("sr", "qr", "sr_at_k", "qr_at_k", "acc", "acc_at_k")


def score(
    questions: Sequence[Question],
    replies: Mapping[str, Sequence[str]],
    *,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """The scores of a split as plain data.

    Args:
        questions: The questions of the split, in order.
        replies: k replies to each question id.
        progress: Called after each question with the number done.

    Returns:
        ``overall``, ``groups``, ``tasks``, and ``levels`` with an overall row for each level.
    """
    graded: list[_Graded] = []
    for number, question in enumerate(questions, 1):
        answers = [grade(question, reply) for reply in replies[question.id]]
        graded.append((question, answers))
        if progress:
            progress(number)
    result = _averages(graded)
    levels = dict.fromkeys(question.level for question in questions)
    result["levels"] = {
        level: _averages([row for row in graded if row[0].level == level])["overall"]
        for level in levels
    }
    return result


def _averages(graded: Sequence[_Graded]) -> dict[str, Any]:
    """Tasks, groups and overall of graded questions."""
    by_task: defaultdict[str, list[_Graded]] = defaultdict(list)
    for row in graded:
        by_task[row[0].task.name].append(row)
    results = {name: _task_result(rows) for name, rows in by_task.items()}
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name, rows in by_task.items():
        groups[rows[0][0].group].append(name)
    by_group = {group: [results[name] for name in names] for group, names in groups.items()}
    return {
        "overall": _combined(list(by_group.values())),
        "groups": {group: _combined([members]) for group, members in by_group.items()},
        "tasks": {name: result.summary for name, result in results.items()},
    }


def _task_result(rows: Sequence[_Graded]) -> _TaskResult:
    names = [question.instance_id for question, _ in rows]
    values: dict[str, list[float]] = {
        "sr": [float(np.mean([a.feasible for a in answers])) for _, answers in rows],
        "qr": [float(np.mean([a.ratio for a in answers])) for _, answers in rows],
        "sr_at_k": [float(any(a.feasible for a in answers)) for _, answers in rows],
        "qr_at_k": [max(a.ratio for a in answers) for _, answers in rows],
        "acc": [float(np.mean([a.optimal for a in answers])) for _, answers in rows],
        "acc_at_k": [float(any(a.optimal for a in answers)) for _, answers in rows],
    }
    clusters = {metric: cluster_means(row, names) for metric, row in values.items()}
    everything = [answer for _, answers in rows for answer in answers]
    states = Counter(answer.state for answer in everything)
    by_instance: defaultdict[str, list[Answer]] = defaultdict(list)
    asked = {question.instance_id: question for question, _ in rows}
    for answer in everything:
        by_instance[answer.instance_id].append(answer)

    def distance(instance_id: str, first: Any, second: Any) -> float:
        question = asked[instance_id]
        return question.task.distance(question.instance, first, second)

    distinct, apart = spread(by_instance, distance)
    summary = {
        "n": len(rows),
        "k": len(rows[0][1]),
        "instances": len(asked),
        **{metric: float(np.mean(row)) for metric, row in values.items()},
        "beats_reference": sum(answer.beats for answer in everything),
        "distinct_feasible": distinct,
        "solution_distance": apart,
        "ci": {metric: _listed(bootstrap_interval(clusters[metric])) for metric in METRICS},
        "states": {state: states.get(state, 0) for state in STATES},
        "reasons": dict(Counter(a.rule for a in everything if a.rule).most_common()),
        "floors": {
            name: {
                "sr": 1.0,
                "qr": float(
                    np.mean(
                        [
                            ratio(
                                question.task.sense,
                                objective=question.floors[name],
                                reference=question.reference,
                            )
                            for question, _ in rows
                        ]
                    )
                ),
            }
            for name in FLOOR_NAMES
        },
        "estimators": {
            "sr": "mean over all samples",
            "sr_at_k": "any of k",
            "qr_at_k": "best of k",
            "acc": "share of samples that reach the proven optimum",
            "ci": "95 % percentile bootstrap over instances, seed 0",
        },
    }
    return _TaskResult(clusters, summary)


def _listed(interval: tuple[float, float] | None) -> list[float] | None:
    return list(interval) if interval else None


def _combined(groups: Sequence[Sequence[_TaskResult]]) -> dict[str, Any]:
    """Macro average over groups of tasks; one group gives that group's row."""
    tasks = [result for group in groups for result in group]
    summary: dict[str, Any] = {"n": sum(result.summary["n"] for result in tasks)}
    summary["k"] = tasks[0].summary["k"] if tasks else 0
    summary["ci"] = {}
    for metric in METRICS:
        means = [np.mean([result.summary[metric] for result in group]) for group in groups]
        summary[metric] = float(np.mean(means))
        interval = macro_interval([[r.clusters[metric] for r in group] for group in groups])
        summary["ci"][metric] = _listed(interval)
    summary["floors"] = {
        name: {
            "sr": 1.0,
            "qr": float(
                np.mean(
                    [np.mean([r.summary["floors"][name]["qr"] for r in group]) for group in groups]
                )
            ),
        }
        for name in FLOOR_NAMES
    }
    summary["beats_reference"] = sum(result.summary["beats_reference"] for result in tasks)
    summary["states"] = {
        state: sum(result.summary["states"][state] for result in tasks) for state in STATES
    }
    return summary
