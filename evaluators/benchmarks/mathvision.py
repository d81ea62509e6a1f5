"""MathVision (MATH-V): competition problems in 16 subjects and five levels, one merged picture."""

import re

from evaluators.benchmark import Question
from evaluators.benchmarks._adapter import Adapter, loader
from evaluators.benchmarks._options import bare_labels, by_letter, gold_of, listed
from evaluators.benchmarks._row import Row
from evaluators.families import shares
from evaluators.grading import Gold
from evaluators.loading import Origin

__all__ = ["ADAPTERS", "PROMPT", "load"]

PROMPT = (
    'Please solve the problem step by step and put your answer in one "\\boxed{}". If it is a '
    'multiple choice question, only one letter is allowed in the "\\boxed{}".'
)
"""The instruction of the official repository, above each question."""

_PICTURE_TOKEN = re.compile(r"\s*<image\d{1,2}>")
_BOXED = re.compile(r"^\$?\\boxed\{(.*)\}\$?$", re.DOTALL)
_COLUMNS = {
    "id": ("id",),
    "question": ("question",),
    "options": ("options",),
    "image": ("decoded_image", "image"),
    "answer": ("answer",),
    "level": ("level",),
    "subject": ("subject",),
}


def _question(row: Row) -> Question:
    """All numbered pictures of a question are merged into one, so their tokens are dropped."""
    options = _options(row)
    asked = _PICTURE_TOKEN.sub("", row.needed("question")).strip()
    shown = f"\n{listed(options)}" if any(options.values()) else ""
    subject = row.needed("subject")
    return Question(
        id=row.needed("id"),
        instance_id=row.needed("id"),
        parts=(row.needed_picture("image"), f"{PROMPT}\n{asked}{shown}"),
        gold=row.needed("answer"),
        category={
            "task": subject,
            "group": "multiple choice" if options else "free-form",
            "type": "multiple choice" if options else "free-form",
            "subject": subject,
            "level": row.needed("level"),
        },
        grading=gold_of(row.needed("answer"), options) if options else Gold(_mended(row)),
    )


def _options(row: Row) -> dict[str, str]:
    """The options; bare letters stand for options that are drawn."""
    texts = tuple(_PICTURE_TOKEN.sub("", text).strip() for text in row.texts("options"))
    options = by_letter(texts)
    return bare_labels(tuple(options)) if texts == tuple(options) else options


def _mended(row: Row) -> str:
    """The gold without its box, and with the command that a form feed was made of."""
    answer = row.needed("answer").replace("\x0crac", r"\frac").strip()
    boxed = _BOXED.match(answer)
    return boxed[1] if boxed else answer


ADAPTERS = {
    "mathvision": Adapter(
        origin=Origin("MathLLMs/MathVision", ("test",)),
        rows=3040,
        columns=_COLUMNS,
        question=_question,
        family=shares("type", "subject", "level"),
    ),
    "mathvision-testmini": Adapter(
        origin=Origin("MathLLMs/MathVision", ("testmini",)),
        rows=304,
        columns=_COLUMNS,
        question=_question,
        family=shares("type", "subject", "level"),
    ),
}
load = loader(ADAPTERS)
