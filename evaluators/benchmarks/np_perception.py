"""np-perception: what the pictures of a split show, asked instead of what solves them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluators.benchmark import Benchmark, Question
from evaluators.benchmarks.np_bench import SplitQuestions
from evaluators.perceived import Perceived
from npbench.errors import InputError
from npbench.perception import facts
from npbench.perception_scoring import question_prompt
from npbench.storage import open_split

__all__ = ["load"]

_COLUMNS = ("id", "instance_id", "task", "group", "level", "style", "instance", "image")
_VERSION = "1"


def load(name: str, *, source: Path | None, rows: int | None = None) -> Benchmark:
    """The questions about the pictures of a split.

    Args:
        name: ``np-perception``.
        source: The split's folder.
        rows: The number of pictures that it must have; None takes any.

    Raises:
        InputError: If no split is given, or it has no pictures or another number of them.
    """
    if source is None:
        raise InputError(f"{name} reads the pictures of a split: give its folder with --from")
    split = open_split(source)
    questions = SplitQuestions(split, columns=_COLUMNS, make=_question, modality="image")
    if not questions:
        raise InputError(f"{source} has no pictures; generate it with --modality image")
    if rows is not None and len(questions) != rows:
        raise InputError(f"{source} has {len(questions)} pictures, --rows accepts {rows}")
    return Benchmark(
        name=name,
        version=f"{name}-{_VERSION} of {split.manifest['version']}",
        questions=questions,
        dataset_hash=split.manifest["content_hash"],
    )


def _question(row: Mapping[str, Any]) -> Question:
    drawn = facts(row["task"], json.loads(row["instance"]))
    text = json.dumps({kind: sorted(rows) for kind, rows in drawn.items()})
    return Question(
        id=row["id"],
        instance_id=row["instance_id"],
        parts=(row["image"]["bytes"], question_prompt(row)),
        gold=text,
        category={name: row[name] for name in ("group", "task", "level", "style")},
        grading=Perceived(text, task=row["task"], drawn=drawn),
    )
