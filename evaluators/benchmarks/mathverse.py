"""MathVerse testmini: 788 problems, each in five picture versions and one text version."""

from evaluators.benchmark import Question
from evaluators.benchmarks._adapter import Adapter, loader
from evaluators.benchmarks._options import bare_labels, named_gold, written_options
from evaluators.benchmarks._row import Row
from evaluators.families import shares
from evaluators.golds import JudgedGold, judged
from evaluators.grading import Gold
from evaluators.loading import Origin
from npbench.errors import InputError

__all__ = ["ADAPTERS", "load"]

_COLUMNS = {
    "id": ("sample_index",),
    "problem": ("problem_index",),
    "version": ("problem_version",),
    "question": ("question",),
    "image": ("image",),
    "answer": ("answer",),
    "type": ("question_type",),
    "metadata": ("metadata",),
    "prompt": ("query_cot",),
    "asked": ("question_for_eval",),
}
_FAMILY = shares("version", "type", "subject", "subfield")


def _question(row: Row) -> Question:
    """The official prompt ``query_cot``: in the Vision Only version, the question is drawn."""
    kind = row.needed("type")
    if kind not in ("multi-choice", "free-form"):
        raise InputError(f"question_type must be multi-choice or free-form, got {kind!r}")
    picture = row.picture("image")
    version = row.needed("version")
    if picture is None and version != "Text Only":
        raise InputError(f"image holds no picture, in the version {version}")
    prompt = row.needed("prompt")
    subject = row.field("metadata", "subject")
    return Question(
        id=row.needed("id"),
        instance_id=row.needed("problem"),
        parts=(prompt,) if picture is None else (picture, prompt),
        gold=row.needed("answer"),
        category={
            "task": subject,
            "group": version,
            "version": version,
            "type": kind,
            "subject": subject,
            "subfield": row.field("metadata", "subfield"),
        },
        grading=_gold(row, multiple_choice=kind == "multi-choice"),
    )


def _gold(row: Row, *, multiple_choice: bool) -> JudgedGold:
    """A label, several labels or an option's text; a gold that is none of them stands for itself.

    Some multiple-choice questions list no options in a form that can be read: any of A to F is a
    label there.
    """
    answer, asked = row.needed("answer"), row.text("asked") or row.text("question")
    options: dict[str, str] = {}
    if multiple_choice:
        for text in (row.text("question"), asked):
            options = options or _options(text)
        options = options or bare_labels("ABCDEF")
    return judged(named_gold(answer, options) or Gold(answer), asked=asked)


def _options(text: str) -> dict[str, str]:
    _, choices, listed = text.partition("Choices:")
    return written_options(listed, before=r"^[ \t]*", after=r"[ \t]*:") if choices else {}


ADAPTERS = {
    "mathverse": Adapter(
        origin=Origin("AI4Math/MathVerse", ("testmini",), "testmini"),
        rows=3940,
        columns=_COLUMNS,
        question=_question,
        family=_FAMILY,
    ),
    "mathverse-text": Adapter(
        origin=Origin("AI4Math/MathVerse", ("testmini_text_only",), "testmini_text_only"),
        rows=788,
        columns=_COLUMNS,
        question=_question,
        family=_FAMILY,
    ),
}
load = loader(ADAPTERS)
