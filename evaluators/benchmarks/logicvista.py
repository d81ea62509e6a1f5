"""LogicVista: five reasoning skills; labels, and sometimes several, whose options are drawn."""

from evaluators.benchmark import Question
from evaluators.benchmarks._adapter import Adapter, loader
from evaluators.benchmarks._options import bare_labels, gold_of
from evaluators.benchmarks._row import LeftOut, Row
from evaluators.families import shares
from evaluators.golds import judged
from evaluators.loading import Origin

__all__ = ["ADAPTERS", "load"]

_LETTERS = "ABCDEFGHI"
_DIGITS = "123456789"


def _question(row: Row) -> Question | LeftOut:
    """The question unchanged, which names its labels; an empty gold is never right.

    The one row without a question and an answer is left out of the denominator.
    """
    if not row.text("question").strip() and not row.text("answer").strip():
        return LeftOut(row.needed("id"), "the question and the answer are empty")
    answer, asked = row.needed("answer"), row.needed("question")
    labels = _DIGITS if any(sign.isdigit() for sign in answer) else _LETTERS
    skill = ", ".join(row.texts("skill"))
    return Question(
        id=row.needed("id"),
        instance_id=row.needed("id"),
        parts=(row.needed_picture("image"), asked),
        gold=answer,
        category={"task": skill, "group": skill, "skill": skill},
        grading=judged(gold_of(answer, bare_labels(labels)), asked=asked),
    )


ADAPTERS = {
    "logicvista": Adapter(
        origin=Origin("lscpku/LogicVista", ("test",)),
        rows=448,
        columns={
            "id": ("id",),
            "question": ("question",),
            "image": ("image",),
            "answer": ("answer",),
            "skill": ("skill",),
        },
        question=_question,
        family=shares("skill"),
    )
}
load = loader(ADAPTERS)
