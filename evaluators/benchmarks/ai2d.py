"""AI2D test: school diagrams with four options; the answer is an option's position from 0."""

from evaluators.benchmark import Question
from evaluators.benchmarks._adapter import Adapter, loader
from evaluators.benchmarks._options import by_letter, gold_of, listed
from evaluators.benchmarks._row import Row
from evaluators.loading import Origin
from npbench.errors import InputError

__all__ = ["ADAPTERS", "load"]


def _question(row: Row) -> Question:
    """The question, its options by letter and a request for the letter."""
    options, answer = by_letter(row.texts("options")), row.needed("answer")
    if not answer.isdecimal() or int(answer) >= len(options):
        raise InputError(f"answer must lie in [0, {len(options) - 1}], got {answer!r}")
    name = f"ai2d-{row.number}"
    asked = f"{row.needed('question')}\n{listed(options)}\nChoose one option by its letter."
    return Question(
        id=name,
        instance_id=name,
        parts=(row.needed_picture("image"), asked),
        gold=answer,
        category={"task": "ai2d", "group": "ai2d"},
        grading=gold_of(tuple(options)[int(answer)], options),
    )


ADAPTERS = {
    "ai2d": Adapter(
        origin=Origin("lmms-lab/ai2d", ("test",)),
        rows=3088,
        columns={
            "question": ("question",),
            "options": ("options",),
            "answer": ("answer",),
            "image": ("image",),
        },
        question=_question,
    )
}
load = loader(ADAPTERS)
