"""Mathematics in text: AIME 2024 and 2025, AMC 2023, MATH-500 and Minerva, one record each."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from evaluators.benchmark import Question
from evaluators.benchmarks._adapter import Adapter, loader
from evaluators.benchmarks._row import Row, literal_list
from evaluators.families import shares
from evaluators.golds import AnyOf
from evaluators.grading import Gold
from evaluators.loading import Origin
from evaluators.verdicts import AnswerType
from npbench.errors import InputError

__all__ = ["ADAPTERS", "load"]

_BOXED_INTEGER = re.compile(r"\$*\\boxed\{\s*(\d{1,3})\s*\}\$*")


def _aime(row: Row) -> Gold:
    """An integer, which copies write with or without leading zeros.

    math-ai/aime24 has no column of answers: there, and only there, the solution is a box.
    """
    if row.text("answer"):
        return Gold(row.text("answer"), AnswerType.INTEGER)
    boxed = _BOXED_INTEGER.fullmatch(row.text("solution").strip())
    if boxed is None:
        raise InputError("there is no answer, and the solution is no boxed integer")
    return Gold(boxed[1], AnswerType.INTEGER)


def _amc(row: Row) -> Gold:
    """A number, which copies write as a float."""
    answer = row.needed("answer")
    try:
        value = float(answer)
    except ValueError:
        raise InputError(f"the answer must be a number, got {answer!r}") from None
    return Gold(str(int(value)) if value.is_integer() else answer)


def _plain(row: Row) -> Gold:
    return Gold(row.needed("answer").strip())


def _any_of(row: Row) -> Gold:
    """Any spelling of a list, be it a list or one that is written as text."""
    value = row.values["answer"]
    if isinstance(value, str):
        listed = literal_list(value)
        # "[0, 1]" is an interval, a list of texts is a list of spellings.
        value = listed if listed and all(isinstance(part, str) for part in listed) else [value]
    if not isinstance(value, list):
        value = [row.needed("answer")]
    first, *others = (Gold(str(part).strip()) for part in value)
    return AnyOf(first.text, others=tuple(others)) if others else first


def _made(name: str, gold: Callable[[Row], Gold], *keys: str) -> Callable[[Row], Question]:
    """The question of a row: its text as it is."""

    def question(row: Row) -> Question:
        grading = gold(row)
        identity = row.text("id") or f"{name}-{row.number}"
        category = {key: row.needed(key) for key in keys}
        return Question(
            id=identity,
            instance_id=identity,
            parts=(row.needed("question"),),
            gold=grading.text,
            category={"task": category.get("subject", name), "group": name, **category},
            grading=grading,
        )

    return question


_COLUMNS = {"question": ("problem", "question"), "answer": ("answer",)}
_ID: Mapping[str, tuple[str, ...]] = {"id": ("id", "unique_id")}
_AIME = Adapter(
    origin=Origin("HuggingFaceH4/aime_2024", ("train",)),
    rows=30,
    columns={"question": ("problem", "question")},
    optional={**_ID, "answer": ("answer",), "solution": ("solution",)},
    question=_made("aime24", _aime),
)

ADAPTERS = {
    "aime24": _AIME,
    "aime25": replace(
        _AIME,
        origin=Origin("math-ai/aime25", ("test",)),
        columns=_COLUMNS,
        optional=_ID,
        question=_made("aime25", _aime),
    ),
    "amc23": Adapter(
        origin=Origin("math-ai/amc23", ("test",)),
        rows=40,
        columns=_COLUMNS,
        optional=_ID,
        question=_made("amc23", _amc),
    ),
    "math-500": Adapter(
        origin=Origin("HuggingFaceH4/MATH-500", ("test",)),
        rows=500,
        columns={
            **_COLUMNS,
            "id": ("unique_id", "id"),
            "subject": ("subject",),
            "level": ("level",),
        },
        question=_made("math-500", _plain, "subject", "level"),
        family=shares("subject", "level"),
    ),
    "minerva": Adapter(
        origin=Origin("math-ai/minervamath", ("test",)),
        rows=272,
        columns=_COLUMNS,
        optional=_ID,
        question=_made("minerva", _any_of),
    ),
}
load = loader(ADAPTERS)
