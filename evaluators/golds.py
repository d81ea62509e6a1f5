"""Golds that one comparison does not settle, and the score of a reply to any gold.

A gold with alternatives is right where one of them is; a gold with parts scores the fraction that
is found; a gold with a tolerance takes numbers near it. Where the official metric has a judge, the
rule comes first and the judge is an option: its failures are a state of their own.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from evaluators.arithmetic import NotRationalError, TooLargeError, rational_value
from evaluators.grading import Gold, Grade, State, grade
from evaluators.normalization import normalize
from evaluators.quantities import plain_number
from evaluators.reasoning import split_reasoning

__all__ = [
    "AnyOf",
    "Judge",
    "JudgeError",
    "JudgedGold",
    "Mentions",
    "Near",
    "Protocol",
    "Scored",
    "judged",
    "score_reply",
]

_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?![\w]|\.\d)")


class Protocol(StrEnum):
    """What a judge is asked."""

    MATCH = "match"
    """Whether the reply's final answer means the same as the gold."""
    CORRECTNESS = "correctness"
    """Correct, incorrect or unclear; unclear is wrong."""
    LENIENT_CORRECTNESS = "lenient correctness"
    """Correct, incorrect or unclear; unclear is right."""
    SCORE = "score"
    """A score from 0 to 1."""


@dataclass(frozen=True, slots=True)
class AnyOf(Gold):
    """A gold of which any spelling is right."""

    others: tuple[Gold, ...] = ()
    """Golds that are right beside this one."""


@dataclass(frozen=True, slots=True)
class Near(Gold):
    """A number that a reply may miss by a stated amount."""

    tolerance: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class JudgedGold(Gold):
    """A gold whose official metric asks a judge; the rule alone decides where there is none."""

    protocol: Protocol = Protocol.MATCH
    asked: str = ""
    """The question in words, for a judge that does not see the picture."""


def judged(gold: Gold, *, asked: str, protocol: Protocol = Protocol.MATCH) -> JudgedGold:
    """The same gold for a benchmark whose official metric asks a judge."""
    return JudgedGold(
        gold.text, gold.kind, gold.precision, gold.options, protocol=protocol, asked=asked
    )


@dataclass(frozen=True, slots=True)
class Mentions(JudgedGold):
    """Alternatives, each of one or more parts that a reply has to mention."""

    alternatives: tuple[tuple[str, ...], ...] = ()


class JudgeError(Exception):
    """A judge that gave no verdict; the sample is neither right nor wrong."""


Judge = Callable[[JudgedGold, str], float]
"""The score in [0, 1] of a reply; raises JudgeError where there is none."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A reply's state and its score, with what decided."""

    state: State
    score: float
    """0 or 1, or the fraction of a gold with parts."""
    extracted: str | None
    extract_stage: str
    stage: str
    """The stage of the comparison, ``mentions``, ``tolerance`` or ``judge``."""
    reason: str = ""


def score_reply(
    reply: str, gold: Gold, *, truncated: bool = False, judge: Judge | None = None
) -> Scored:
    r"""The score of ``reply``.

    A judge is asked only about golds whose official metric has one, and only where the rule does
    not give the full score; a reply without an answer, or cut off before it, is never sent.

    Args:
        reply: A model's whole reply.
        gold: What is right.
        truncated: Whether the reply ran into the token limit.
        judge: Asked where the official metric does; None leaves all to the rules.

    Example:
        >>> score_reply(r"\boxed{MgS}", AnyOf("magnesium sulfide", others=(Gold("MgS"),))).score
        1.0
        >>> score_reply("A cat.", Mentions("x", alternatives=(("cat", "dog"),))).score
        0.5
    """
    scored = _by_rule(reply, gold, truncated=truncated)
    if judge is None or not isinstance(gold, JudgedGold):
        return scored
    unanswered = scored.state in {State.EMPTY, State.TRUNCATED}
    if unanswered or not split_reasoning(reply).answer:
        return scored
    if scored.state is State.RIGHT and gold.protocol is not Protocol.SCORE:
        return scored
    try:
        score = judge(gold, reply)
    except JudgeError as error:
        return Scored(
            State.JUDGE_FAILED, 0.0, scored.extracted, scored.extract_stage, "judge", str(error)
        )
    state = State.RIGHT if score >= 1 else State.WRONG
    return Scored(state, score, scored.extracted, scored.extract_stage, "judge")


def _by_rule(reply: str, gold: Gold, *, truncated: bool) -> Scored:
    if isinstance(gold, Mentions):
        return _mentioned(reply, gold, truncated=truncated)
    first = grade(reply, gold, truncated=truncated)
    if first.correct:
        return _scored(first)
    if isinstance(gold, AnyOf):
        for other in gold.others:
            verdict = grade(reply, other, truncated=truncated)
            if verdict.correct:
                return _scored(verdict)
    if isinstance(gold, Near) and first.extracted is not None:
        distance = _distance(gold.text, first.extracted)
        if distance is not None and distance <= gold.tolerance:
            return Scored(State.RIGHT, 1.0, first.extracted, first.extract_stage.value, "tolerance")
    return _scored(first)


def _scored(verdict: Grade) -> Scored:
    return Scored(
        verdict.state,
        float(verdict.correct),
        verdict.extracted,
        verdict.extract_stage.value,
        verdict.stage.value,
        verdict.reason,
    )


def _distance(gold: str, answer: str) -> Fraction | None:
    """How far two numbers are apart; None where one of them is no rational number."""
    try:
        return abs(_value(gold) - _value(answer))
    except (NotRationalError, TooLargeError):
        return None


def _value(text: str) -> Fraction:
    return rational_value(plain_number(normalize(text)))


def _mentioned(reply: str, gold: Mentions, *, truncated: bool) -> Scored:
    """The largest share of an alternative's parts that the answer mentions."""
    answer = split_reasoning(reply).answer
    if not answer:
        state = State.TRUNCATED if truncated else State.EMPTY
        return Scored(state, 0.0, None, "none", "mentions", "the reply has no answer")
    found = [
        ([part for part in parts if _mentions(answer, part)], parts) for parts in gold.alternatives
    ]
    named, parts = max(found, key=lambda pair: len(pair[0]) / len(pair[1]))
    score = len(named) / len(parts)
    state = State.RIGHT if score == 1 else State.WRONG
    reason = "" if score == 1 else f"{len(named)} of {len(parts)} parts are mentioned"
    return Scored(state, score, "; ".join(named) or None, "whole", "mentions", reason)


def _mentions(answer: str, part: str) -> bool:
    """Whether a part stands in the answer as whole words, or as an equal number."""
    wanted = " ".join(normalize(part).casefold().split())
    if _NUMBER.fullmatch(wanted):
        value = Fraction(wanted.replace(",", ""))
        numbers = _NUMBER.findall(normalize(answer))
        return any(Fraction(number.replace(",", "")) == value for number in numbers)
    words = " ".join(normalize(answer).casefold().split())
    return re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", words) is not None
