"""OlympiadBench, the English open-ended competition problems in text: values, sets, intervals."""

from fractions import Fraction

from evaluators.benchmark import Question
from evaluators.benchmarks._adapter import Adapter, loader
from evaluators.benchmarks._row import Row
from evaluators.families import shares
from evaluators.golds import Near
from evaluators.grading import Gold
from evaluators.loading import Origin
from evaluators.verdicts import AnswerType
from npbench.errors import InputError

__all__ = ["ADAPTERS", "load"]


def _question(row: Row) -> Question:
    """The context, where there is one, and the question."""
    context, asked = row.text("context").strip(), row.needed("question")
    answers = [text.strip() for text in row.texts("answer")]
    if not answers or not all(answers):
        raise InputError("final_answer is empty")
    kind = row.needed("type")
    subfield = row.text("subfield") or "none"
    return Question(
        id=row.needed("id"),
        instance_id=row.needed("id"),
        parts=(f"{context}\n\n{asked}" if context else asked,),
        gold=", ".join(answers),
        category={"task": subfield, "group": kind, "type": kind, "subfield": subfield},
        grading=_gold(row, answers, kind),
    )


def _gold(row: Row, answers: list[str], kind: str) -> Gold:
    """All values where several are asked for, in any order; a number within its stated error."""
    several = row.values["several"]
    if not isinstance(several, bool):
        raise InputError(f"is_multiple_answer must be true or false, got {several!r:.40}")
    if several:
        return Gold(", ".join(answers), AnswerType.SET)
    if len(answers) > 1:
        raise InputError(f"{len(answers)} answers, though is_multiple_answer is false")
    error = row.text("error").strip()
    if error and kind == "Numerical":
        try:
            return Near(answers[0], tolerance=Fraction(error))
        except ValueError:
            raise InputError(f"error must be a number, got {error!r}") from None
    interval = kind == "Interval"
    return Gold(answers[0], AnswerType.INTERVAL if interval else AnswerType.FREE)


ADAPTERS = {
    "olympiadbench": Adapter(
        origin=Origin("Hothan/OlympiadBench", ("train",), "OE_TO_maths_en_COMP"),
        rows=674,
        columns={
            "id": ("id",),
            "question": ("question",),
            "context": ("context",),
            "answer": ("final_answer",),
            "several": ("is_multiple_answer",),
            "type": ("answer_type",),
            "error": ("error",),
        },
        optional={"subfield": ("subfield",)},
        question=_question,
        family=shares("type", "subfield"),
    )
}
load = loader(ADAPTERS)
