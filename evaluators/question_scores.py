"""What the samples of one question say: its value under every metric, and its tallies."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from json import loads

from evaluators.benchmark import Question
from evaluators.diversity import mean_cosine_distance, reasoning_segment, solution_spread
from evaluators.embedders import Embedder, Unavailable
from evaluators.grading import State
from evaluators.metrics import (
    CURVE,
    acc_at_k,
    all_at_k,
    best_at_k,
    maj_at_k,
    mean_at_k,
    pass_at_k,
)
from evaluators.normalization import comparison_key, normalize
from evaluators.records import SampleRecord
from npbench import scoring
from npbench.task import better, ratio

__all__ = ["ANSWERED", "CURVES", "QuestionScores", "question_floors", "question_scores"]

ANSWERED = frozenset((State.RIGHT, State.FEASIBLE, State.WRONG, State.INFEASIBLE))
"""States of samples that gave an answer which could be judged."""

CURVES = ("acc@k", "mean@k", "pass@k", "all@k", "maj@k", "sr@k", "qr@k")
"""Metrics that are evaluated at several k."""

_FEASIBLE = (State.RIGHT, State.FEASIBLE)


@dataclass(frozen=True, slots=True)
class QuestionScores:
    """One question under every metric."""

    id: str
    cluster: str
    category: Mapping[str, str]
    values: Mapping[str, float | None]
    """Metrics by name; a metric of several k by its name and k, as in ``acc@k 4``."""
    states: Counter[str]
    rules: Counter[str]
    """Violated constraints."""
    errors: Counter[str]
    answered_right: int
    num_tokens: int
    beats_reference: int
    stopped: int
    """Replies that a stop string ended."""
    floors: Mapping[str, float]
    """Quality ratio of each floor; empty where there are none."""


def question_scores(
    question: Question,
    greedy: SampleRecord | None,
    sampled: Sequence[SampleRecord],
    *,
    embedder: Embedder | Unavailable,
) -> QuestionScores:
    """The scores of a question from its graded samples.

    Args:
        question: The question.
        greedy: Its greedy reply, None where the run has none.
        sampled: Its sampled replies, in the order of their numbers.
        embedder: What turns the reasoning of sampled replies into vectors.
    """
    records = [greedy, *sampled] if greedy else list(sampled)
    hard = question.grading if isinstance(question.grading, scoring.Question) else None
    values: dict[str, float | None] = {
        "acc@1": float(greedy.acc) if greedy else None,
        **_sampled_values(sampled, hard=hard is not None),
    }
    counted = sampled or records
    values["score"] = sum(record.score for record in counted) / len(counted)
    if hard:
        feasible = [float(record.state in _FEASIBLE) for record in counted]
        values |= {
            "sr": sum(feasible) / len(feasible),
            "qr": sum(record.score for record in counted) / len(counted),
            "sr_greedy": float(greedy.state in _FEASIBLE) if greedy else None,
            "qr_greedy": greedy.score if greedy else None,
        }
    values |= _diversity(hard, sampled, embedder)
    return QuestionScores(
        id=question.id,
        cluster=question.instance_id,
        category=question.category,
        values=values,
        states=Counter(record.state.value for record in records),
        rules=Counter(record.rule for record in records if record.rule),
        errors=Counter(record.error for record in records if record.error),
        answered_right=sum(record.acc for record in records if record.state in ANSWERED),
        num_tokens=sum(record.num_tokens or 0 for record in records),
        beats_reference=sum(_beats(hard, record) for record in records) if hard else 0,
        stopped=sum(record.stop_reason is not None for record in records),
        floors=question_floors(question),
    )


def _sampled_values(sampled: Sequence[SampleRecord], *, hard: bool) -> dict[str, float | None]:
    n = len(sampled)
    correct = [bool(record.acc) for record in sampled]
    scores = [float(record.acc) for record in sampled]
    solved = [record.state in _FEASIBLE for record in sampled]
    ratios = [record.score for record in sampled]
    answers = [None] * n if hard else [record.extracted for record in sampled]
    votes = [None if answer is None else _vote(answer) for answer in answers]
    values: dict[str, float | None] = {}
    for k in sorted({*CURVE, n} - {0}):
        found = (
            acc_at_k(correct, k),
            mean_at_k(scores, k),
            pass_at_k(n, sum(correct), k),
            all_at_k(n, sum(correct), k),
            None if hard else maj_at_k(votes, correct, k),
            acc_at_k(solved, k) if hard else None,
            best_at_k(ratios, k) if hard else None,
        )
        values |= zip(_names_at(k), found, strict=True)
    for name, metric, k in (
        ("acc@k", "acc@k", n),
        ("mean@1", "mean@k", 1),
        ("mean@k", "mean@k", n),
        ("maj@k", "maj@k", n),
        ("all@k", "all@k", n),
        ("sr_at_k", "sr@k", n),
        ("qr_at_k", "qr@k", n),
    ):
        values[name] = values.get(_names_at(k)[CURVES.index(metric)])
    return values


@cache
def _names_at(k: int) -> tuple[str, ...]:
    """The names of the curves' metrics at k, one text each for all questions."""
    return tuple(f"{name} {k}" for name in CURVES)


@lru_cache(maxsize=10_000)
def _vote(extracted: str) -> str:
    return comparison_key(normalize(extracted))


def _diversity(
    hard: scoring.Question | None,
    sampled: Sequence[SampleRecord],
    embedder: Embedder | Unavailable,
) -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    replies = [record.reply for record in sampled if record.reply is not None]
    if sampled:
        values["distinct_replies"] = float(len(set(replies)))
    if hard and sampled:
        solutions = [
            loads(record.extracted)
            for record in sampled
            if record.extracted is not None and record.state in _FEASIBLE
        ]
        spread = solution_spread(hard.task, hard.instance, solutions)
        values["distinct_feasible"] = float(spread.distinct)
        values["solution_distance"] = spread.distance.value
    if isinstance(embedder, Embedder) and len(replies) > 1:
        segments = [segment for reply in replies if (segment := reasoning_segment(reply))]
        if len(segments) > 1:
            values["reasoning_distance"] = mean_cosine_distance(embedder.embed(segments)).value
    return values


def _beats(question: scoring.Question, record: SampleRecord) -> bool:
    objective = record.objective
    return objective is not None and better(
        question.task.sense, objective, question.floors["reference"]
    )


def question_floors(question: Question) -> dict[str, float]:
    """Quality ratio of each floor; empty for a question that is no NP task."""
    hard = question.grading
    if not isinstance(hard, scoring.Question):
        return {}
    return {
        name: ratio(hard.task.sense, objective=objective, reference=hard.reference)
        for name, objective in hard.floors.items()
    }
