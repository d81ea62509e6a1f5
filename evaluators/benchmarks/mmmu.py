"""MMMU validation: 30 college subjects, multiple choice and open, with up to seven pictures."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from evaluators.benchmark import Question
from evaluators.benchmarks._adapter import Adapter, loader
from evaluators.benchmarks._options import by_letter, gold_of, listed
from evaluators.benchmarks._row import Row, interleaved, literal_list
from evaluators.families import shares
from evaluators.golds import AnyOf
from evaluators.grading import Gold
from evaluators.loading import Origin
from npbench.errors import InputError

__all__ = ["ADAPTERS", "load"]

_SUBJECTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Art and Design": ("Art", "Art_Theory", "Design", "Music"),
        "Business": ("Accounting", "Economics", "Finance", "Manage", "Marketing"),
        "Science": ("Biology", "Chemistry", "Geography", "Math", "Physics"),
        "Health and Medicine": (
            "Basic_Medical_Science",
            "Clinical_Medicine",
            "Diagnostics_and_Laboratory_Medicine",
            "Pharmacy",
            "Public_Health",
        ),
        "Humanities and Social Science": ("History", "Literature", "Psychology", "Sociology"),
        "Tech and Engineering": (
            "Agriculture",
            "Architecture_and_Engineering",
            "Computer_Science",
            "Electronics",
            "Energy_and_Power",
            "Materials",
            "Mechanical_Engineering",
        ),
    }
)
_DISCIPLINE = {subject: name for name, subjects in _SUBJECTS.items() for subject in subjects}
_NAME = re.compile(r"[a-z]+_(?P<subject>.+)_\d+")
_PICTURES = range(1, 8)


def _question(row: Row) -> Question:
    """Question, options and request, each picture where its number stands."""
    name, kind = row.needed("id"), row.needed("type")
    match = _NAME.fullmatch(name)
    if match is None or match["subject"] not in _DISCIPLINE:
        raise InputError(f"the id {name!r} names no subject of MMMU")
    if kind not in ("multiple-choice", "open"):
        raise InputError(f"question_type must be multiple-choice or open, got {kind!r}")
    subject, asked = match["subject"], row.needed("question")
    options = by_letter(row.texts("options")) if kind == "multiple-choice" else {}
    if options:
        text = f"{asked}\n\n{listed(options)}\n\nChoose one option by its letter."
    else:
        text = f"{asked}\n\nAnswer with a single word, number or phrase."
    pictures = {number: row.picture(f"image_{number}") for number in _PICTURES}
    present = {number: picture for number, picture in pictures.items() if picture is not None}
    answer = row.needed("answer")
    return Question(
        id=name,
        instance_id=name,
        parts=interleaved(text, present),
        gold=answer,
        category={
            "task": subject,
            "group": _DISCIPLINE[subject],
            "subject": subject,
            "discipline": _DISCIPLINE[subject],
            "type": kind,
            "difficulty": row.text("difficulty"),
        },
        grading=gold_of(answer, options) if options else _open_gold(answer),
    )


def _open_gold(answer: str) -> Gold:
    """A text, or any of the texts of a list that is written as text."""
    spellings = literal_list(answer)
    if spellings is None:
        return Gold(answer)
    first, *others = (Gold(str(spelling).strip()) for spelling in spellings)
    return AnyOf(first.text, others=tuple(others))


ADAPTERS = {
    "mmmu": Adapter(
        origin=Origin("lmms-lab/MMMU", ("validation",)),
        rows=900,
        columns={
            "id": ("id",),
            "question": ("question",),
            "options": ("options",),
            "answer": ("answer",),
            "type": ("question_type",),
            "image_1": ("image_1",),
        },
        optional={
            "difficulty": ("topic_difficulty",),
            **{f"image_{number}": (f"image_{number}",) for number in _PICTURES[1:]},
        },
        question=_question,
        family=shares("discipline", "subject", "type", "difficulty"),
    )
}
load = loader(ADAPTERS)
