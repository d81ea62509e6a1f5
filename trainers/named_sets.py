"""Published training sets by name: where each lies on the Hub, and how a row of it is read.

Nothing here loads anything. Copies of a set name their columns differently, so each of our names
comes with the names that copies use; case does not matter.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from npbench.errors import InputError, unknown_name

__all__ = [
    "NAMED_SETS",
    "NamedSet",
    "UnusableRowError",
    "answer_of",
    "checked_split",
    "named_set",
    "prompt_of",
]

_NONE: Mapping[str, tuple[str, ...]] = MappingProxyType({})


class UnusableRowError(ValueError):
    """A row that cannot be trained on; the message says what it lacks, for a count of reasons."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSet:
    """Where a data set is on the Hub, and its columns."""

    hub: str
    rows: int | None = None
    """Of the split ``train``, as its card states; None where the card was not at hand."""
    splits: tuple[str, ...] = ("train",)
    held_out: str | None = None
    """The split to evaluate on; None where the set has none."""
    columns: Mapping[str, tuple[str, ...]]
    """Our name of a column that each copy must have -> its names, the preferred one first."""
    optional: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _NONE)
    """The same for columns that a copy may lack."""
    file: str | None = None
    """The file of the rows, where the repository holds other files beside it."""
    archive: str | None = None
    """The zip file of the pictures, where rows name them by their paths in it."""


NAMED_SETS: Mapping[str, NamedSet] = MappingProxyType(
    {
        "virl39k": NamedSet(
            hub="TIGER-Lab/ViRL39K",
            rows=38870,
            columns={"prompt": ("question", "problem"), "answer": ("answer",)},
            optional={"images": ("image", "images"), "id": ("qid", "id")},
            file="39Krelease.parquet",
            archive="images.zip",
        ),
        "mmk12": NamedSet(
            hub="FanqingM/MMK12",
            rows=15616,
            splits=("train", "test"),
            held_out="test",
            columns={"prompt": ("question", "problem"), "answer": ("answer",)},
            optional={"images": ("image", "images"), "id": ("id",)},
        ),
        "geometry3k": NamedSet(
            hub="hiyouga/geometry3k",
            rows=2101,
            splits=("train", "validation", "test"),
            held_out="validation",
            columns={"prompt": ("problem", "question"), "answer": ("answer",)},
            optional={"images": ("images", "image"), "id": ("id",)},
        ),
        "openr1-math-46k": NamedSet(
            hub="Elliott/Openr1-Math-46k-8192",
            columns={
                "prompt": ("prompt", "problem", "question"),
                "answer": ("reward_model", "answer"),
            },
            optional={"id": ("id", "extra_info"), "target": ("target",)},
        ),
    }
)
"""Columns as the sets' cards and first rows show them; text-only sets have no ``images``."""


def named_set(name: str) -> NamedSet:
    """The set of a name.

    Raises:
        InputError: If there is none; the nearest name is given.
    """
    if name not in NAMED_SETS:
        raise unknown_name("data set", name, NAMED_SETS)
    return NAMED_SETS[name]


def prompt_of(cell: Any) -> str:
    """The question of a cell: text, or the user's turns of a conversation.

    A system turn is left out: it belongs to the model that the set was made for.

    Example:
        >>> prompt_of([{"role": "system", "content": "Think."}, {"role": "user", "content": "1?"}])
        '1?'

    Raises:
        UnusableRowError: If there is no text.
    """
    if isinstance(cell, list):
        turns = [turn for turn in cell if isinstance(turn, Mapping) and turn.get("role") == "user"]
        cell = "\n\n".join(str(turn.get("content") or "") for turn in turns)
    text = cell.strip() if isinstance(cell, str) else ""
    if not text.replace("<image>", "").strip():
        raise UnusableRowError("without a prompt")
    return text


def answer_of(cell: Any) -> str:
    r"""The bare answer of a cell: out of its box, and out of a record's ``ground_truth``.

    A box is read as the box of a reply is (:mod:`evaluators.extraction`): the last balanced one.

    Example:
        >>> answer_of(r"\boxed{\frac{1}{2}}"), answer_of({"ground_truth": "7"}), answer_of(3.0)
        ('\\frac{1}{2}', '7', '3')

    Raises:
        UnusableRowError: If there is no answer, or its box never closes.
    """
    from evaluators.extraction import ExtractStage, find_answers

    if isinstance(cell, Mapping):
        cell = cell.get("ground_truth")
    if isinstance(cell, list) and len(cell) == 1:
        cell = cell[0]
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    if isinstance(cell, bool) or not isinstance(cell, str | int | float):
        raise UnusableRowError("without an answer")
    text = str(cell).strip()
    if "\\boxed" in text:
        found = next((f for f in find_answers(text) if f.stage is ExtractStage.BOX), None)
        if found is None:
            raise UnusableRowError("with an answer whose box never closes")
        text = found.text.strip()
    if not text or text == "nan":
        raise UnusableRowError("without an answer")
    return text


def checked_split(name: str, split: str) -> None:
    """Refuses a split that a set does not have.

    Raises:
        InputError: If so; the set's splits are listed.
    """
    known = named_set(name).splits
    if split not in known:
        raise InputError(
            f"data set {name!r} has no split {split!r}; its splits: {', '.join(known)}"
        )
