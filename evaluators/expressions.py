"""Asks a worker process about expressions, after checks that keep prose and bombs away from it."""

import re
from dataclasses import dataclass
from enum import StrEnum

from evaluators.quantities import plain_number
from evaluators.verdicts import Comparison, Outcome, Stage
from evaluators.worker_pool import Answer, Session

__all__ = [
    "Judged",
    "Judgement",
    "as_comparison",
    "compare_expressions",
    "expression_value",
    "is_mathematics",
]

_COMMAND = re.compile(r"\\[A-Za-z]+")
_LONG_WORD = re.compile(r"[A-Za-z]{4,}")
_TEXT = re.compile(r"[^\x00-\x7f]|[\"@#~?`]|__|\\(?:x[0-9a-f]|input|include|def|catcode)")
_BIG_EXPONENT = re.compile(r"\^\s*\{?\s*-?\d{5,}")
_TOWER = re.compile(r"\^\s*[{(]?[\w.\\\s]*\^\s*[{(]?[\w.\\\s]*\^")
_BIG_FACTORIAL = re.compile(r"(?:\d{5,}|\^\s*\{?\d+\}?)\s*\)?\s*!(?!=)")
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{[a-z]{1,10}\*?\}")


class Judgement(StrEnum):
    """What a symbolic comparison came to."""

    TEXT = "text"
    EQUAL = "equal"
    DIFFERENT = "different"
    GOLD_UNREADABLE = "gold_unreadable"
    ANSWER_UNREADABLE = "answer_unreadable"
    TIMEOUT = "timeout"
    ERROR = "error"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class Judged:
    """A judgement, the value where one was asked for, and why."""

    judgement: Judgement
    value: float | None = None
    reason: str = ""


def as_comparison(judged: Judged) -> Comparison:
    """The outcome that a judgement means."""
    outcome = {
        Judgement.EQUAL: Outcome.RIGHT,
        Judgement.GOLD_UNREADABLE: Outcome.GOLD_FAULT,
        Judgement.TIMEOUT: Outcome.TIMEOUT,
        Judgement.ERROR: Outcome.ERROR,
    }.get(judged.judgement, Outcome.WRONG)
    stage = Stage.TEXT if judged.judgement is Judgement.TEXT else Stage.EXPRESSION
    return Comparison(outcome, stage, judged.reason)


def compare_expressions(gold: str, answer: str, *, session: Session) -> Judged:
    """Whether two normalised mathematical texts are equal as expressions or equations."""
    if not is_mathematics(gold):
        return Judged(Judgement.TEXT, reason="the gold is text, which only the same text equals")
    if reason := _refusal(gold):
        return Judged(Judgement.GOLD_UNREADABLE, reason=f"the gold {reason}")
    if reason := _refusal(answer):
        return Judged(Judgement.ANSWER_UNREADABLE, reason=f"the answer {reason}")
    return _judged(session.equal(plain_number(gold), plain_number(answer)))


def expression_value(answer: str, *, session: Session) -> Judged:
    """The real value of a normalised mathematical text."""
    if reason := _refusal(answer):
        return Judged(Judgement.ANSWER_UNREADABLE, reason=f"the answer {reason}")
    return _judged(session.value(plain_number(answer)))


def is_mathematics(text: str) -> bool:
    r"""Whether a text has no words and no characters that mathematics does not use.

    Example:
        >>> is_mathematics(r"\sqrt{3} + x"), is_mathematics("domain: all reals")
        (True, False)
    """
    plain = _COMMAND.sub(" ", _ENVIRONMENT.sub(" ", text))
    return _LONG_WORD.search(plain) is None and _TEXT.search(text) is None


def _refusal(text: str) -> str:
    """Why a text is not handed to the algebra system, or nothing."""
    if not re.search(r"[A-Za-z0-9]|\\[A-Za-z]", text):
        return "holds nothing to compute"
    if not is_mathematics(text):
        return "is not mathematics"
    if _BIG_EXPONENT.search(text) or _TOWER.search(text):
        return "holds a power beyond the bound"
    if _BIG_FACTORIAL.search(text):
        return "holds a factorial beyond the bound"
    return ""


def _judged(answer: Answer) -> Judged:
    judgement = {
        "equal": Judgement.EQUAL,
        "different": Judgement.DIFFERENT,
        "gold_unparsed": Judgement.GOLD_UNREADABLE,
        "answer_unparsed": Judgement.ANSWER_UNREADABLE,
        "value": Judgement.VALUE,
        "timeout": Judgement.TIMEOUT,
    }.get(answer.verdict, Judgement.ERROR)
    reason = answer.reason
    if judgement is Judgement.GOLD_UNREADABLE:
        reason = "the gold cannot be parsed"
    if judgement is Judgement.ANSWER_UNREADABLE:
        reason = "the answer cannot be parsed"
    return Judged(judgement, answer.value, reason)
