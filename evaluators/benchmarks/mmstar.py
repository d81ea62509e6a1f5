"""MMStar: six core capabilities of 250 questions each; the options stand in the question."""

from evaluators.benchmark import Question
from evaluators.benchmarks._adapter import Adapter, loader
from evaluators.benchmarks._options import bare_labels, gold_of, written_options
from evaluators.benchmarks._row import Row
from evaluators.families import shares
from evaluators.loading import Origin
from evaluators.options import gold_labels

__all__ = ["ADAPTERS", "load"]


def _question(row: Row) -> Question:
    """The question as it is and a request for the letter."""
    answer, asked = row.needed("answer"), row.needed("question")
    category = row.needed("category")
    return Question(
        id=row.needed("id"),
        instance_id=row.needed("id"),
        parts=(row.needed_picture("image"), f"{asked}\nChoose one option by its letter."),
        gold=answer,
        category={
            "task": category,
            "group": category,
            "category": category,
            "l2_category": row.needed("l2_category"),
        },
        grading=gold_of(answer, _options(asked, answer)),
    )


def _options(asked: str, answer: str) -> dict[str, str]:
    """The options in the text, whose commas also separate them; bare A to D where none can be read.

    Texts serve only to read replies that state one, so bare labels lose no letter.
    """
    listed = asked.rpartition("Options:")[2]
    options = written_options(listed, before=r"^\s*|,\s+|\n\s*", after=r"\s*:")
    return options if gold_labels(answer, options)[0] else bare_labels("ABCD")


ADAPTERS = {
    "mmstar": Adapter(
        origin=Origin("Lin-Chen/MMStar", ("val",), "val"),
        rows=1500,
        columns={
            "id": ("index",),
            "question": ("question",),
            "image": ("image",),
            "answer": ("answer",),
            "category": ("category",),
            "l2_category": ("l2_category",),
        },
        question=_question,
        family=shares("category", "l2_category", macro=("l2_category",)),
    )
}
load = loader(ADAPTERS)
