"""Numbers of a page that a summary lacks: intervals of curves and of diversity, paired variants."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from evaluators.question_scores import QuestionScores
from evaluators.uncertainty import Difference, compare_runs, estimate
from npbench.metrics import cluster_means, macro_interval

__all__ = [
    "DIVERSITY",
    "CurvePoint",
    "VariantGap",
    "curve",
    "interval",
    "known_interval",
    "variant_gaps",
]

DIVERSITY = ("distinct_replies", "distinct_feasible", "solution_distance", "reasoning_distance")

_BASES = {"modality": "text", "style": "light"}
"""From which variant of a category differences are taken, where the run has it."""

_PAIRED = ("sr", "qr", "acc@1", "acc@k", "mean@k")


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A metric at one k."""

    k: int
    value: float
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class VariantGap:
    """How one way of showing instances differs from another on the instances that both show."""

    category: str
    variant: str
    base: str
    metrics: Mapping[str, Difference]


def interval(scores: Sequence[QuestionScores], name: str) -> tuple[float, float] | None:
    """The 95 % interval of a metric over all questions, as a summary defines it.

    NP-hard tasks are averaged task by task, then group by group, with instances resampled within
    each task; other questions are pooled.
    """
    if not scores or any(row.values.get(name) is None for row in scores):
        return None
    groups: dict[str, dict[str, list[QuestionScores]]] = {}
    hard = bool(scores[0].floors)
    for row in scores:
        group, task = (row.category.get("group", ""), row.category.get("task", ""))
        groups.setdefault(group if hard else "", {}).setdefault(task if hard else "", []).append(
            row
        )
    if len(groups) == 1 and all(len(tasks) == 1 for tasks in groups.values()):
        return known_interval(scores, name)
    return macro_interval(
        [
            [
                cluster_means(_values(rows, name), [row.cluster for row in rows])
                for rows in tasks.values()
            ]
            for tasks in groups.values()
        ]
    )


def known_interval(scores: Sequence[QuestionScores], name: str) -> tuple[float, float] | None:
    """The 95 % interval of a metric's mean over the questions that have a value."""
    known = [row for row in scores if row.values.get(name) is not None]
    found = estimate(_values(known, name), [row.cluster for row in known])
    if found is None or found.low is None or found.high is None:
        return None
    return found.low, found.high


def _values(rows: Sequence[QuestionScores], name: str) -> list[float]:
    return [value for row in rows if (value := row.values[name]) is not None]


def curve(
    values: Mapping[str, float], scores: Sequence[QuestionScores], name: str
) -> list[CurvePoint]:
    """A metric over k.

    Args:
        values: Its value at each k, as a summary has them.
        scores: The questions behind it; without them there are no intervals.
        name: The metric, such as ``acc@k``.
    """
    return [
        CurvePoint(int(k), value, interval(scores, f"{name} {k}"))
        for k, value in sorted(values.items(), key=lambda pair: int(pair[0]))
    ]


def variant_gaps(scores: Sequence[QuestionScores]) -> list[VariantGap]:
    """Each modality minus text and each style minus the first one, paired by instance.

    A variant's value of an instance is the mean over the questions that show it so.
    """
    gaps = []
    for category, preferred in _BASES.items():
        variants: dict[str, list[QuestionScores]] = {}
        for row in scores:
            if category in row.category:
                variants.setdefault(row.category[category], []).append(row)
        if len(variants) < 2:
            continue
        base = preferred if preferred in variants else next(iter(variants))
        for variant, rows in variants.items():
            if variant == base:
                continue
            metrics = {
                name: difference
                for name in _PAIRED
                if (difference := _gap(rows, variants[base], name)) is not None
            }
            if metrics:
                gaps.append(VariantGap(category, variant, base, metrics))
    return gaps


def _gap(
    rows: Sequence[QuestionScores], base: Sequence[QuestionScores], name: str
) -> Difference | None:
    first, second = _by_instance(rows, name), _by_instance(base, name)
    shared = [instance for instance in first if instance in second]
    if not shared:
        return None
    return compare_runs(
        {instance: first[instance] for instance in shared},
        {instance: second[instance] for instance in shared},
    )


def _by_instance(rows: Sequence[QuestionScores], name: str) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for row in rows:
        value = row.values.get(name)
        if value is not None:
            found.setdefault(row.cluster, []).append(value)
    return {instance: fmean(values) for instance, values in found.items()}
