"""MathVista testmini: five tasks, multiple choice by text, integers, rounded floats and lists."""

from evaluators.benchmark import Question
from evaluators.benchmarks._adapter import Adapter, loader
from evaluators.benchmarks._options import by_letter, chosen_text
from evaluators.benchmarks._row import Row
from evaluators.families import shares
from evaluators.golds import JudgedGold, judged
from evaluators.loading import Origin
from evaluators.verdicts import AnswerType
from npbench.errors import InputError

__all__ = ["ADAPTERS", "load"]

_KINDS = {
    "integer": AnswerType.INTEGER,
    "float": AnswerType.FLOAT,
    "list": AnswerType.LIST,
    "text": AnswerType.FREE,
}


def _question(row: Row) -> Question:
    """The official prompt ``query``, word for word."""
    task = row.field("metadata", "task")
    return Question(
        id=row.needed("id"),
        instance_id=row.needed("id"),
        parts=(row.needed_picture("image"), row.needed("prompt")),
        gold=row.needed("answer"),
        category={
            "task": task,
            "group": row.needed("question_type"),
            "question_type": row.needed("question_type"),
            "answer_type": row.needed("answer_type"),
            "skills": row.field("metadata", "skills"),
            "context": row.field("metadata", "context"),
            "grade": row.field("metadata", "grade"),
            "language": row.field("metadata", "language"),
        },
        grading=_gold(row),
    )


def _gold(row: Row) -> JudgedGold:
    answer, asked = row.needed("answer"), row.needed("prompt")
    if row.needed("question_type") == "multi_choice":
        return judged(chosen_text(answer, by_letter(row.texts("choices"))), asked=asked)
    name = row.needed("answer_type")
    if name not in _KINDS:
        raise InputError(f"answer_type must be one of {', '.join(_KINDS)}, got {name!r}")
    if name == "float" and not row.text("precision"):
        raise InputError("precision is empty, and the answer is a float")
    # The data writes the precision as a float, which round() refuses.
    precision = float(row.text("precision")) if name == "float" else None
    return JudgedGold(answer, _KINDS[name], precision, asked=asked)


ADAPTERS = {
    "mathvista": Adapter(
        origin=Origin("AI4Math/MathVista", ("testmini",)),
        rows=1000,
        columns={
            "id": ("pid",),
            "prompt": ("query",),
            "image": ("decoded_image", "image"),
            "choices": ("choices",),
            "precision": ("precision",),
            "answer": ("answer",),
            "question_type": ("question_type",),
            "answer_type": ("answer_type",),
            "metadata": ("metadata",),
        },
        question=_question,
        family=shares(
            "task",
            "question_type",
            "answer_type",
            "skills",
            "context",
            "grade",
            "language",
            each=("skills",),
        ),
    )
}
load = loader(ADAPTERS)
