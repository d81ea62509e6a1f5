"""HallusionBench: yes-or-no questions in groups by figure and by question."""

from evaluators.benchmark import Question
from evaluators.benchmarks._adapter import Adapter, loader
from evaluators.benchmarks._row import Row
from evaluators.families import hallusion
from evaluators.golds import JudgedGold, Protocol
from evaluators.loading import Origin
from evaluators.verdicts import AnswerType
from npbench.errors import InputError

__all__ = ["ADAPTERS", "load"]

_OPTIONS = {"Yes": "yes", "No": "no"}
_GOLDS = {"1": "Yes", "0": "No"}
_KEYS = ("category", "subcategory", "visual_input", "set_id", "figure_id", "question_id")


def _question(row: Row) -> Question:
    """The question and a request for yes or no; a row without a picture is asked without one."""
    keys = {key: row.needed(key) for key in _KEYS}
    if any("/" in key for key in keys.values()):
        raise InputError(f"a slash in one of {', '.join(keys.values())}, which ids are joined with")
    answer, asked = row.needed("answer"), row.needed("question")
    if answer not in _GOLDS:
        raise InputError(f"gt_answer must be 0 or 1, got {answer!r}")
    picture = row.picture("image")
    if picture is None and keys["visual_input"] != "0":
        raise InputError(f"image holds no picture, though visual_input is {keys['visual_input']}")
    head = (keys["category"], keys["subcategory"], keys["set_id"], keys["figure_id"])
    text = f"{asked}\nAnswer yes or no."
    without_figure = keys["category"] == "VS" and keys["figure_id"] == "0"
    return Question(
        id="/".join(keys.values()),
        instance_id="/".join(head),
        parts=(text,) if picture is None else (picture, text),
        gold=answer,
        category={
            "task": keys["subcategory"],
            "group": keys["category"],
            "category": keys["category"],
            "subcategory": keys["subcategory"],
        },
        grading=JudgedGold(
            _GOLDS[answer],
            AnswerType.OPTION,
            options=_OPTIONS,
            protocol=Protocol.LENIENT_CORRECTNESS if without_figure else Protocol.CORRECTNESS,
            asked=f"{asked}\nThe right answer in full: {row.text('details')}",
        ),
    )


def _adapter(splits: tuple[str, ...], rows: int) -> Adapter:
    return Adapter(
        origin=Origin("lmms-lab/HallusionBench", splits),
        rows=rows,
        columns={
            **{key: (key,) for key in _KEYS},
            "question": ("question",),
            "image": ("image",),
            "answer": ("gt_answer",),
            "details": ("gt_answer_details",),
        },
        question=_question,
        family=hallusion,
    )


ADAPTERS = {
    "hallusionbench": _adapter(("image", "non_image"), 1129),
    "hallusionbench-image": _adapter(("image",), 951),
}
load = loader(ADAPTERS)
