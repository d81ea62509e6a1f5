"""The summary of a run: every metric with its interval, its estimator's name and its company.

The denominator is always all rows: truncated, empty, unparsed and failed samples score 0. NP-hard
tasks are averaged task by task, then group by group; questions of other benchmarks are pooled.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evaluators.benchmark import Benchmark, no_extra_metrics
from evaluators.embedders import Embedder, Unavailable
from evaluators.grading import State
from evaluators.metrics import ESTIMATORS
from evaluators.question_scores import ANSWERED, CURVES, QuestionScores, question_scores
from evaluators.records import SCHEMA, SampleRecord
from evaluators.run_folder import RunFolder, SampleIndex
from evaluators.uncertainty import estimate
from npbench.errors import InputError
from npbench.metrics import cluster_means, macro_interval

__all__ = ["METRICS", "MOST_VALUES", "RUN_ESTIMATORS", "scores_of_run", "summarize"]

METRICS = (
    "score", "acc@1", "acc@k", "mean@1", "mean@k", "maj@k", "all@k",
    "sr", "qr", "sr_at_k", "qr_at_k", "sr_greedy", "qr_greedy",
)  # fmt: skip
_DIVERSITY = ("distinct_replies", "distinct_feasible", "solution_distance", "reasoning_distance")

MOST_VALUES = 50
"""A category with more values, such as a topic of each question, is not broken down."""

RUN_ESTIMATORS: Mapping[str, str] = {
    **ESTIMATORS,
    "mean@1": "mean@k at k = 1: the first sample of each question",
    "score": "mean score of the samples that sr counts: partial credit, or the quality ratio",
    "sr": "share of feasible samples: of all k sampled ones, of the greedy one where k = 0",
    "qr": "mean quality ratio of the samples that sr counts, 0 where not feasible, not capped",
    "sr_at_k": "sr@k at the run's k",
    "qr_at_k": "qr@k at the run's k",
    "sr_greedy": "share of feasible greedy replies",
    "qr_greedy": "mean quality ratio of greedy replies",
    "acc_answered": "share of right samples among those with an answer that could be judged",
    "ci": "95 %, clustered by instance: Wilson or percentile bootstrap; instances are resampled "
    "within each task where tasks are averaged",
}
"""What each name in a summary stands for."""


def scores_of_run(
    benchmark: Benchmark,
    folder: RunFolder,
    index: SampleIndex,
    sampling: Mapping[str, Any],
    *,
    embedder: Embedder | Unavailable,
) -> tuple[list[QuestionScores], list[SampleRecord]]:
    """The scores of every question; and the records, where the benchmark has metrics of its own.

    Raises:
        InputError: If the run lacks a sample.
    """
    wanted = [("greedy", 0)] if sampling["greedy"] else []
    wanted += [("sampled", sample) for sample in range(sampling["k"])]
    scores: list[QuestionScores] = []
    kept: list[SampleRecord] = []
    missing = 0
    for question in benchmark.questions:
        keys = [(question.id, decode, sample) for decode, sample in wanted]
        there = [key for key in keys if key in index.entries]
        if len(there) < len(keys):
            missing += len(keys) - len(there)
        if missing:
            continue
        records = folder.records(index, keys)
        greedy = records[0] if sampling["greedy"] else None
        sampled = records[1:] if sampling["greedy"] else records
        scores.append(question_scores(question, greedy, sampled, embedder=embedder))
        if benchmark.aggregate is not no_extra_metrics:
            kept += records
    if missing:
        total = len(benchmark.questions) * len(wanted)
        raise InputError(
            f"{folder.folder} lacks {missing} of {total} samples; "
            f"finish it with the command in its run.json"
        )
    return scores, kept


def summarize(
    benchmark: Benchmark,
    folder: RunFolder,
    index: SampleIndex,
    manifest: Mapping[str, Any],
    *,
    embedder: Embedder | Unavailable,
) -> dict[str, Any]:
    """The summary of a whole run as plain data.

    Args:
        benchmark: The questions that were asked.
        folder: The run.
        index: Its samples.
        manifest: Its manifest.
        embedder: For the diversity of reasoning.

    Raises:
        InputError: If the run lacks a sample.
    """
    sampling = manifest["sampling"]
    scores, records = scores_of_run(benchmark, folder, index, sampling, embedder=embedder)
    tasks: defaultdict[str, list[QuestionScores]] = defaultdict(list)
    groups: defaultdict[str, list[QuestionScores]] = defaultdict(list)
    others: defaultdict[str, defaultdict[str, list[QuestionScores]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for row in scores:
        tasks[row.category.get("task", benchmark.name)].append(row)
        groups[row.category.get("group", benchmark.name)].append(row)
        for name, value in row.category.items():
            if name not in ("task", "group"):
                others[name][value].append(row)
    hard = bool(scores) and bool(scores[0].floors)
    context = _Context(sampling["k"], embedder, macro=hard)
    return {
        "schema": SCHEMA,
        "manifest": dict(manifest),
        "torn_bytes": index.torn,
        "repeated_lines": index.repeated,
        "overall": context.row(_regrouped(scores)),
        "groups": {name: context.row(_regrouped(rows)) for name, rows in groups.items()},
        "tasks": {name: context.row([[rows]]) for name, rows in tasks.items()},
        "by": {
            name: {value: context.row(_regrouped(rows)) for value, rows in values.items()}
            for name, values in others.items()
            if len(values) <= MOST_VALUES
        },
        "official": dict(benchmark.aggregate(records)),
        "estimators": dict(RUN_ESTIMATORS),
    }


def _regrouped(rows: Sequence[QuestionScores]) -> list[list[list[QuestionScores]]]:
    """Groups of tasks; a task that stands in several groups is in each with its own rows."""
    groups: dict[str, dict[str, list[QuestionScores]]] = {}
    for row in rows:
        tasks = groups.setdefault(row.category.get("group", ""), {})
        tasks.setdefault(row.category.get("task", ""), []).append(row)
    return [list(tasks.values()) for tasks in groups.values()]


class _Context:
    """Makes the rows of a summary: one for any set of questions, in groups of tasks."""

    def __init__(self, k: int, embedder: Embedder | Unavailable, *, macro: bool) -> None:
        self._k = k
        self._embedder = embedder
        self._macro = macro

    def row(self, groups: Sequence[Sequence[Sequence[QuestionScores]]]) -> dict[str, Any]:
        """The row of all questions in groups of tasks."""
        scores = [row for tasks in groups for rows in tasks for row in rows]
        if not self._macro:
            groups = [[scores]]
        values: dict[str, Any] = {name: _mean(groups, name) for name in METRICS}
        curves: dict[str, dict[str, float]] = {}
        for name in CURVES:
            ks = [key for key in scores[0].values if key.startswith(f"{name} ")] if scores else []
            known = {key.split()[1]: _mean(groups, key) for key in ks}
            curves[name] = {k: value for k, value in known.items() if value is not None}
        states = Counter[str]()
        rules, errors = Counter[str](), Counter[str]()
        for row in scores:
            states.update(row.states)
            rules.update(row.rules)
            errors.update(row.errors)
        samples = sum(states.values())
        answered = sum(states[state.value] for state in ANSWERED)
        return {
            "n": len(scores),
            "k": self._k,
            "samples": samples,
            "instances": len({row.cluster for row in scores}),
            **values,
            "pass@k": curves.pop("pass@k"),
            "curves": curves,
            "ci": {name: _interval(groups, name) for name in METRICS},
            "diversity": self._diversity(groups),
            "states": {state.value: states[state.value] for state in State},
            "rates": {
                name: states[name] / samples if samples else None
                for name in ("truncated", "unparsed", "empty", "failed", "judge_failed")
            },
            "answered": answered,
            "acc_answered": sum(row.answered_right for row in scores) / answered
            if answered
            else None,
            "reasons": dict(rules.most_common()),
            "errors": dict(errors.most_common(5)),
            "stopped_by_string": sum(row.stopped for row in scores),
            "mean_tokens": sum(row.num_tokens for row in scores) / samples if samples else None,
            "beats_reference": sum(row.beats_reference for row in scores),
            "floors": _floors(groups),
        }

    def _diversity(self, groups: Sequence[Sequence[Sequence[QuestionScores]]]) -> dict[str, Any]:
        found: dict[str, Any] = {name: _mean_of_known(groups, name) for name in _DIVERSITY}
        found["embedder"] = self._embedder.name
        if isinstance(self._embedder, Unavailable):
            found["reason"] = self._embedder.reason
        return found


_Groups = Sequence[Sequence[Sequence[QuestionScores]]]


def _mean(groups: _Groups, name: str) -> float | None:
    """Mean over groups of the mean over tasks of the mean over questions; None if any lacks it."""
    means = []
    for tasks in groups:
        inner = []
        for rows in tasks:
            values = [row.values.get(name) for row in rows]
            known = [value for value in values if value is not None]
            if not known or len(known) < len(values):
                return None
            inner.append(float(np.mean(known)))
        means.append(float(np.mean(inner)))
    return float(np.mean(means)) if means else None


def _mean_of_known(groups: _Groups, name: str) -> float | None:
    """Mean over the questions that have a value, such as those with two feasible samples."""
    known = [
        value
        for tasks in groups
        for rows in tasks
        for row in rows
        if (value := row.values.get(name)) is not None
    ]
    return float(np.mean(known)) if known else None


def _interval(groups: _Groups, name: str) -> list[float] | None:
    if _mean(groups, name) is None:
        return None
    if len(groups) == 1 and len(groups[0]) == 1:
        rows = groups[0][0]
        found = estimate([_known(row, name) for row in rows], [row.cluster for row in rows])
        if found is None or found.low is None or found.high is None:
            return None
        return [found.low, found.high]
    means = [
        [
            cluster_means([_known(row, name) for row in rows], [row.cluster for row in rows])
            for rows in tasks
        ]
        for tasks in groups
    ]
    interval = macro_interval(means)
    return list(interval) if interval else None


def _known(row: QuestionScores, name: str) -> float:
    value = row.values[name]
    assert value is not None
    return value


def _floors(groups: _Groups) -> dict[str, dict[str, float]]:
    names = groups[0][0][0].floors if groups and groups[0] and groups[0][0] else {}
    return {
        name: {
            "sr": 1.0,
            "qr": float(
                np.mean(
                    [
                        np.mean([np.mean([row.floors[name] for row in rows]) for rows in tasks])
                        for tasks in groups
                    ]
                )
            ),
        }
        for name in names
    }
