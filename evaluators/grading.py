r"""Grades a reply: one entry point for evaluation and for rewards.

The extractor reads the reply, the cascade of ``evaluators.comparison`` decides, and the record
names the stage of each. Grading fails closed: an empty gold, a time-out or a worker that died is a
fault with a reason, never a right answer and never equality. Replies to the NP-hard tasks are not
graded here: ``npbench.scoring`` decides with each task's own parser and verifier.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from evaluators.comparison import compare
from evaluators.extraction import Extraction, ExtractStage, extract
from evaluators.guards import MAX_ANSWER
from evaluators.options import gold_labels, read_option
from evaluators.reasoning import split_reasoning
from evaluators.verdicts import AnswerType, Comparison, Outcome, Stage
from evaluators.worker_pool import AlgebraPool, default_pool

__all__ = ["GRADER_VERSION", "Gold", "Grade", "State", "forget", "grade"]

GRADER_VERSION = "1"
"""Changes whenever a verdict on any reply may change; part of a run's manifest."""

_MEMO_SIZE = 50_000
_NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


class State(StrEnum):
    """What became of a sample."""

    RIGHT = "right"
    FEASIBLE = "feasible"
    WRONG = "wrong"
    INFEASIBLE = "infeasible"
    UNPARSED = "unparsed"
    TRUNCATED = "truncated"
    EMPTY = "empty"
    JUDGE_FAILED = "judge_failed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Gold:
    """The right answer of a question and how it is to be compared."""

    text: str
    """As the data file writes it; for options, a label, several labels, or an option's text."""
    kind: AnswerType = AnswerType.FREE
    precision: float | None = None
    """Decimals of a float gold: a whole number, which data files also write as 2.0."""
    options: Mapping[str, str] = field(default_factory=lambda: _NO_OPTIONS)
    """Labels to texts of a multiple-choice question."""

    def __post_init__(self) -> None:
        """Checks that the type has what it needs."""
        if self.kind is AnswerType.FLOAT and self.precision is None:
            raise ValueError("answer_type float needs a precision")
        decimals = self.precision
        if decimals is not None and not (0 <= decimals <= 15 and decimals == int(decimals)):
            raise ValueError(f"precision must be a whole number in [0, 15], got {decimals}")
        if self.kind is AnswerType.OPTION and not self.options:
            raise ValueError("answer_type option needs options")
        if any(not label.strip() for label in self.options):
            raise ValueError("the labels of options must not be blank")


@dataclass(frozen=True, slots=True)
class Grade:
    """The verdict on one reply."""

    state: State
    extracted: str | None
    """The final answer that was read, or the option's label; None where none can be read."""
    extract_stage: ExtractStage
    stage: Stage
    """The stage of the comparison that decided."""
    reason: str = ""

    @property
    def correct(self) -> bool:
        """Whether the reply scores."""
        return self.state is State.RIGHT


def grade(
    reply: str, gold: Gold, *, truncated: bool = False, pool: AlgebraPool | None = None
) -> Grade:
    r"""The verdict on ``reply``.

    Args:
        reply: A model's whole reply.
        gold: What is right.
        truncated: Whether the reply ran into the token limit; one without an answer is then
            ``truncated`` rather than ``unparsed`` or ``empty``.
        pool: Where symbolic questions are asked; by default a shared pool, and verdicts are
            remembered. A pool of one's own is asked afresh each time.

    Example:
        >>> grade(r"Thus \boxed{\frac{3}{6}}.", Gold("0.5")).state
        <State.RIGHT: 'right'>
        >>> options = {"B": "1", "C": "2"}
        >>> grade("The answer is (c).", Gold("C", AnswerType.OPTION, options=options)).correct
        True
    """
    if gold.kind is AnswerType.OPTION:
        return _grade_option(reply, gold, truncated=truncated, pool=pool)
    extraction = extract(reply)
    if not gold.text.strip():
        return _fault_of_gold(extraction, "the gold is empty")
    if extraction.text is None:
        return Grade(
            _unanswered(reply, truncated=truncated),
            None,
            extraction.stage,
            Stage.GUARD,
            extraction.reason,
        )
    precision = None if gold.precision is None else int(gold.precision)
    decided = _compare(gold.text, extraction.text, gold.kind, precision, pool)
    state = {Outcome.RIGHT: State.RIGHT, Outcome.WRONG: State.WRONG}.get(
        decided.outcome, State.FAILED
    )
    reason = decided.reason
    if state is State.FAILED:
        reason = f"{decided.outcome}: {reason}"
    return Grade(state, extraction.text, extraction.stage, decided.stage, reason)


def forget() -> None:
    """Empties the memory of verdicts."""
    _remembered.cache_clear()


def _grade_option(reply: str, gold: Gold, *, truncated: bool, pool: AlgebraPool | None) -> Grade:
    wanted, all_required = gold_labels(gold.text, gold.options)
    several = all_required and len(wanted) > 1

    given_up: list[Comparison] = []

    def same(option: str, stated: str) -> bool:
        if given_up:
            return False
        decided = _compare(option, stated, AnswerType.FREE, None, pool)
        if decided.outcome in {Outcome.TIMEOUT, Outcome.ERROR}:
            given_up.append(decided)
        return decided.outcome is Outcome.RIGHT

    reading = read_option(reply, gold.options, same=same, several=several)
    if not wanted:
        extraction = Extraction(reading.label, reading.stage)
        return _fault_of_gold(extraction, f"the gold {gold.text!r} names no option")
    named = ", ".join(label for label in gold.options if label in reading.labels) or None
    if not reading.labels:
        # Two options carry the gold's text: no label can be named, and yet the text is right.
        if not all_required and reading.text and same(gold.text, reading.text):
            return Grade(State.RIGHT, reading.text, reading.stage, Stage.OPTION)
        if given_up:
            reason = f"{given_up[0].outcome}: {given_up[0].reason}"
            return Grade(State.FAILED, None, reading.stage, Stage.OPTION, reason)
        state = _unanswered(reply, truncated=truncated)
        return Grade(state, None, reading.stage, Stage.OPTION, reading.reason)
    right = reading.labels == wanted if all_required else reading.labels <= wanted
    return Grade(State.RIGHT if right else State.WRONG, named, reading.stage, Stage.OPTION)


def _unanswered(reply: str, *, truncated: bool) -> State:
    if truncated:
        return State.TRUNCATED
    split = split_reasoning(reply)
    return State.EMPTY if split.closed and not split.answer else State.UNPARSED


def _fault_of_gold(extraction: Extraction, reason: str) -> Grade:
    return Grade(
        State.FAILED,
        extraction.text,
        extraction.stage,
        Stage.GUARD,
        f"{Outcome.GOLD_FAULT}: {reason}",
    )


def _compare(
    gold: str, answer: str, kind: AnswerType, precision: int | None, pool: AlgebraPool | None
) -> Comparison:
    if pool is None and len(answer) > MAX_ANSWER:
        pool = default_pool()  # refused at once, and not worth remembering
    if pool is not None:
        return compare(gold, answer, kind, pool=pool, precision=precision)
    try:
        return _remembered(gold, answer, kind, precision)
    except _NotRememberedError as error:
        return error.comparison


class _NotRememberedError(Exception):
    """Carries a verdict past the memory: what a dying worker said may not hold next time."""

    def __init__(self, comparison: Comparison) -> None:
        super().__init__(comparison.reason)
        self.comparison = comparison


@functools.lru_cache(maxsize=_MEMO_SIZE)
def _remembered(gold: str, answer: str, kind: AnswerType, precision: int | None) -> Comparison:
    decided = compare(gold, answer, kind, pool=default_pool(), precision=precision)
    if decided.outcome is Outcome.ERROR:
        raise _NotRememberedError(decided)
    return decided
