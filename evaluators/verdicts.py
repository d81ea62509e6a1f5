"""The words of a comparison: types of golds, stages, outcomes, and what people disagree about."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

__all__ = ["CONVENTIONS", "AnswerType", "Comparison", "Outcome", "Stage", "wrong"]

CONVENTIONS: Mapping[str, str] = MappingProxyType(
    {
        "percent": "x% is x/100; where one side alone has the sign, x% also equals x",
        "units": "a unit on one side is ignored; two different units are unequal",
        "decimal gold": "relative tolerance 1e-6; so 33.3 is not 33.33, and pi is not 3.14",
        "rounded gold": "a precision rounds both sides with Python's round",
        "ratio": "members are compared one by one; 1:2 is neither 1/2 nor 2:4",
        "base": "a number with a base equals only the same digits with the same base",
        "list without a type": "members in any order unless brackets say otherwise",
        "brackets left out": "a bare list equals a point or a bracketed list in the same order",
        "names": "x = 5 equals 5, and differs from y = 5",
        "angles": "degrees are never turned into radians",
        "words": "case and a leading article do not count; a single letter keeps its case",
    }
)
"""What graders disagree about, and how this one decides."""


class AnswerType(StrEnum):
    """What a benchmark says about its gold."""

    FREE = "free"
    INTEGER = "integer"
    FLOAT = "float"
    LIST = "list"
    SET = "set"
    INTERVAL = "interval"
    EXPRESSION = "expression"
    OPTION = "option"


class Stage(StrEnum):
    """Which stage decided."""

    GUARD = "guard"
    EXACT = "exact"
    OPTION = "option"
    NUMBER = "number"
    STRUCTURE = "structure"
    TEXT = "text"
    EXPRESSION = "expression"


class Outcome(StrEnum):
    """What was decided; only RIGHT scores."""

    RIGHT = "right"
    WRONG = "wrong"
    GOLD_FAULT = "gold_fault"
    TIMEOUT = "timeout"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outcome, the stage that decided, and why where it is not plain."""

    outcome: Outcome
    stage: Stage
    reason: str = ""


def wrong(stage: Stage, reason: str = "") -> Comparison:
    """A wrong answer, the stage that found it, and why where it is not plain."""
    return Comparison(Outcome.WRONG, stage, reason)
