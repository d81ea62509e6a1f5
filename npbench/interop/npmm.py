"""VLMEvalKit's ``npmm`` table: rows read from its TSV, splits written as one.

Columns: ``index``, ``image`` (base64, or the index of the row whose picture is shared),
``question``, ``data_source`` (``bootcamp/NpTsp``), ``graph`` (a Python literal) and
``ground_truth``. Cycles are counted there by the entries of the closed list, one more than their
vertices.

What its evaluator does that a user of these files should know; the tests hold the table:

- repeats in a vertex cover, dominating set, feedback vertex set or cut are removed in silence;
- an empty independent set is feasible with size 0, and neighbours written as integers switch its
  check off: ours are written as text;
- a cycle may be ``[0]`` or ``[0, 1, 0]``, or name one vertex that does not exist;
- a reply to clique is read behind its FIRST ``Answer:``, which nothing may follow;
- a value of 0 in a task that minimises ends the run with a ZeroDivisionError, a ground truth of 0
  in one that maximises too: rows with one are refused here;
- ratios are not capped, and rows with an unknown task are skipped in silence.

References:
    VLMEvalKit, ``vlmeval/dataset/NPMM.py``.
"""

import base64
import binascii
import csv
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from npbench.errors import InputError
from npbench.interop.npmm_payloads import PAYLOADS, graph_literal
from npbench.interop.payloads import stated_objective
from npbench.interop.records import ForeignInstance
from npbench.interop.text import at, located, read_text
from npbench.task import Task
from npbench.tasks import get_task

__all__ = ["ALIASES", "COLUMNS", "npmm_question", "npmm_reply", "npmm_row", "read_npmm"]

COLUMNS = ("index", "image", "question", "data_source", "graph", "ground_truth")
MAX_FIELD = 64 << 20
"""Longest field in characters, pictures included."""
SHARED_IMAGE = 64
"""An image of at most so many characters is the index of another row."""

_LAST_LINE = (
    'Write "Answer:" exactly once in your reply: in its last line, with the answer behind it on '
    "the same line and nothing after it."
)

ALIASES: Mapping[str, str] = {get_task(alias).name: alias for alias in PAYLOADS}
"""VLMEvalKit's name of each of our tasks that it has."""


def read_npmm(path: Path, *, task: str | None = None) -> tuple[ForeignInstance, ...]:
    """The rows of a table, named by their index.

    Args:
        path: The file.
        task: A task that all rows must have.

    Raises:
        InputError: If a row breaks the format; the message names the file, the line on which the
            row starts, the rule and the value.
    """
    rows = _table(path)
    pictures: dict[str, str] = {}
    for line, row in rows:
        if row["index"] in pictures:
            raise at(path, line, f"the index {row['index'][:40]!r} is repeated")
        pictures[row["index"]] = row["image"]
    found = []
    for line, row in rows:
        with located(path, line, f"row {row['index'][:40]}"):
            chosen = _task_of(row["data_source"])
            if task is not None and chosen is not get_task(task):
                raise InputError(f"the task is {chosen.name}, not {get_task(task).name}")
            payload = PAYLOADS[ALIASES[chosen.name]].read(graph_literal(row["graph"]))
            found.append(
                ForeignInstance(
                    name=row["index"],
                    task=chosen,
                    instance=chosen.decode(payload),
                    reference=_reference(chosen, row["ground_truth"]),
                    prompt=row["question"],
                    image=_picture(row["image"], pictures),
                )
            )
    return tuple(found)


def npmm_row(task: Task[Any, Any], instance: Any, *, reference: int) -> dict[str, Any]:
    """``data_source``, ``graph`` and ``ground_truth`` of an instance's row.

    Args:
        task: One of the ten tasks.
        instance: Its instance.
        reference: The best known objective, counted as ours.

    Raises:
        InputError: If VLMEvalKit has no such task, or the reference is 0.
    """
    if task.name not in ALIASES:
        raise InputError(f"VLMEvalKit's npmm has no task {task.name}")
    if reference <= 0:
        raise InputError(
            f"VLMEvalKit divides by the objective, which must be positive: {reference}"
        )
    alias = ALIASES[task.name]
    return {
        "data_source": f"bootcamp/{alias}",
        "graph": repr(PAYLOADS[alias].write(instance)),
        "ground_truth": reference + 1 if task.name == "longest_cycle" else reference,
    }


def npmm_question(prompt: str) -> str:
    """Our prompt with the rule that keeps VLMEvalKit's readers of replies working."""
    return f"{prompt}\n\n{_LAST_LINE}"


def npmm_reply(solution: Any) -> str:
    """A solution as VLMEvalKit reads it.

    Example:
        >>> npmm_reply([[0, 1], [2]])
        'Answer: [[0, 1], [2]]'
    """
    return f"Answer: {json.dumps(solution)}"


def _table(path: Path) -> list[tuple[int, dict[str, str]]]:
    """The rows with the lines on which they start."""
    reader = csv.reader(io.StringIO(read_text(path), newline=""), delimiter="\t", strict=True)
    rows: list[tuple[int, dict[str, str]]] = []
    header: list[str] | None = None
    limit = csv.field_size_limit(MAX_FIELD)
    try:
        line = 1
        for fields in reader:
            if header is None:
                header = _header(path, fields)
            elif fields:
                if len(fields) != len(header):
                    count = f"a row must have {len(header)} fields as the header, got {len(fields)}"
                    raise at(path, line, count)
                rows.append((line, dict(zip(header, fields, strict=True))))
            line = reader.line_num + 1
    except csv.Error as error:
        raise at(path, line, f"no tab-separated row: {error}") from None
    finally:
        csv.field_size_limit(limit)
    if not rows:
        raise at(path, 1, "the table holds no row")
    return rows


def _header(path: Path, fields: list[str]) -> list[str]:
    missing = [name for name in COLUMNS if name not in fields]
    if missing:
        raise at(
            path, 1, f"the header has no column {missing[0]!r}, got {', '.join(fields)[:80]!r}"
        )
    if len(set(fields)) != len(fields):
        twice = next(name for name in fields if fields.count(name) > 1)
        raise at(path, 1, f"the header has the column {twice[:40]!r} twice")
    return fields


def _task_of(data_source: str) -> Task[Any, Any]:
    prefix, slash, name = data_source.partition("/")
    if not slash or not prefix:
        raise InputError(
            f"data_source must be of the form 'bootcamp/NpTsp', got {data_source[:40]!r}"
        )
    task = get_task(name)
    if task.name not in ALIASES:
        raise InputError(f"VLMEvalKit's npmm has no task {task.name}")
    return task


def _reference(task: Task[Any, Any], text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,15}(?:\.0+)?", text.strip()):
        raise InputError(f"ground_truth must be a whole number, got {text[:40]!r}")
    number = int(text.strip().split(".")[0])
    stated = stated_objective(number, closed_walk=task.name == "longest_cycle")
    assert stated is not None
    return stated


def _picture(image: str, pictures: Mapping[str, str]) -> bytes:
    """The bytes of a picture, found in another row where only an index stands."""
    if len(image) <= SHARED_IMAGE:
        if image not in pictures or len(pictures[image]) <= SHARED_IMAGE:
            raise InputError(f"image must be base64 or the index of a row with one, got {image!r}")
        image = pictures[image]
    try:
        return base64.b64decode(image, validate=True)
    except binascii.Error as error:
        raise InputError(f"image must be base64: {error}") from None
