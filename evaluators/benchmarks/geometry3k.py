"""Geometry3K test under two protocols that are never mixed: free-form and four-way choice."""

from evaluators.benchmark import Question
from evaluators.benchmarks._adapter import Adapter, loader
from evaluators.benchmarks._options import by_letter, gold_of, listed
from evaluators.benchmarks._row import Row, interleaved
from evaluators.grading import Gold
from evaluators.loading import Origin
from npbench.errors import InputError

__all__ = ["ADAPTERS", "load"]

_TOKEN = "<image>"


def _free_form(row: Row) -> Question:
    """The problem alone: the value is asked for, as EasyR1, PAPO and VAPO do."""
    return _question(row, row.needed("question"), Gold(row.needed("answer")), row.needed("answer"))


def _choice(row: Row) -> Question:
    """The problem with its four choices: the letter is asked for, as InterGPS does."""
    options = by_letter(row.texts("choices"))
    text = f"{row.needed('question')}\nChoices:\n{listed(options)}"
    return _question(row, text, gold_of(row.needed("letter"), options), row.needed("letter"))


def _question(row: Row, text: str, grading: Gold, gold: str) -> Question:
    pictures = row.pictures("images")
    if text.count(_TOKEN) not in (0, len(pictures)) or not pictures:
        raise InputError(f"{len(pictures)} pictures for {text.count(_TOKEN)} places in the text")
    for number in range(1, len(pictures) + 1):
        text = text.replace(_TOKEN, f"<image {number}>", 1)
    name = row.needed("id")
    parts = interleaved(text, dict(enumerate(pictures, 1)))
    return Question(name, name, parts, gold, {"task": "geometry", "group": "geometry"}, grading)


_COLUMNS = {"id": ("id",), "question": ("problem",), "images": ("images",)}
_ORIGIN = Origin("hiyouga/geometry3k", ("test",))

ADAPTERS = {
    "geometry3k": Adapter(
        origin=_ORIGIN,
        rows=601,
        columns={**_COLUMNS, "answer": ("answer",)},
        question=_free_form,
    ),
    "geometry3k-choice": Adapter(
        origin=_ORIGIN,
        rows=601,
        columns={**_COLUMNS, "choices": ("choices",), "letter": ("ground_truth",)},
        question=_choice,
    ),
}
load = loader(ADAPTERS)
