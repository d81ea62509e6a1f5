"""A split written for another program: a new folder, whole or not there at all."""

import base64
import csv
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npbench.errors import InputError, unknown_name
from npbench.interop.lmms_eval import write_task_files
from npbench.interop.np_engine import LEVELS, TASK_TYPES, np_engine_entry
from npbench.interop.npmm import ALIASES, COLUMNS, npmm_question, npmm_row
from npbench.interop.parquet import LAYOUTS, write_parquet
from npbench.storage import StoredSplit
from npbench.tasks import TASKS

__all__ = ["FORMATS", "ExportSummary", "export_split"]

FORMATS = ("npmm", "np-engine", *LAYOUTS)

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ExportSummary:
    """What an export wrote and left out."""

    rows: int
    files: tuple[str, ...]
    """Relative to the folder."""
    left_out: Mapping[str, int]
    """Rows that the format cannot hold, by reason."""


def export_split(split: StoredSplit, form: str, out: Path) -> ExportSummary:
    """Write a split in another format.

    Args:
        split: The split.
        form: One of ``FORMATS``.
        out: A folder that is missing or empty; it appears only when everything is written.

    Raises:
        InputError: If the format is unknown, the folder holds something, a row has a value that
            the format cannot express, or no row is left to write.
    """
    if form not in FORMATS:
        raise unknown_name("format", form, FORMATS)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} exists and is not an empty folder; choose another folder")
    left_out = Counter(_reasons(split, form))
    kept = left_out.pop("", 0)
    if not kept:
        reasons = "; ".join(f"{count} rows: {reason}" for reason, count in left_out.items())
        raise InputError(f"{split.folder} has no row for {form} ({reasons})")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as temporary:
        folder = Path(temporary) / "whole"
        folder.mkdir()
        repeats = _WRITERS[form](split, folder)
        if repeats:
            left_out["repeats an earlier question, which NP-Engine merges"] = repeats
        files = tuple(sorted(path.name for path in folder.iterdir()))
        folder.replace(out)
    return ExportSummary(kept - repeats, files, dict(left_out))


def _reasons(split: StoredSplit, form: str) -> Iterator[str]:
    """Why each row is left out, empty where it is kept."""
    for row in split.rows(("task", "level", "modality")):
        yield _reason(row, form)


def _reason(row: Row, form: str) -> str:
    if form == "npmm":
        if row["modality"] != "image":
            return "npmm questions are pictures"
        return "" if row["task"] in ALIASES else f"npmm has no task {row['task']}"
    if form == "np-engine":
        if row["modality"] != "text":
            return "NP-Engine questions are text"
        if row["task"] not in TASK_TYPES:
            return f"NP-Engine has no task {row['task']}"
        return "" if row["level"] in LEVELS else f"NP-Engine has no level {row['level']}"
    return ""


def _kept(split: StoredSplit, form: str) -> Iterator[Row]:
    return (row for row in split.rows() if not _reason(row, form))


def _decoded(row: Row) -> Any:
    return TASKS[row["task"]].decode(json.loads(row["instance"]))


def _write_npmm(split: StoredSplit, folder: Path) -> int:
    with (folder / "npmm.tsv").open("w", encoding="utf-8", newline="") as file:
        names = (*COLUMNS, "id", "level")
        writer = csv.DictWriter(file, names, delimiter="\t", lineterminator="\n")
        writer.writeheader()
        for index, row in enumerate(_kept(split, "npmm")):
            task = TASKS[row["task"]]
            try:
                known = npmm_row(task, _decoded(row), reference=row["reference_objective"])
            except InputError as error:
                raise InputError(f"row {row['id']}: {error}") from None
            writer.writerow(
                {
                    "index": index,
                    "image": base64.b64encode(row["image"]).decode("ascii"),
                    "question": npmm_question(row["prompt"]),
                    "id": row["id"],
                    "level": row["level"],
                    **known,
                }
            )
    return 0


def _write_np_engine(split: StoredSplit, folder: Path) -> int:
    """The questions, and beside them which of our rows each one is."""
    entries: dict[str, Any] = {}
    ids: dict[str, str] = {}
    seen: set[str] = set()
    numbers: Counter[str] = Counter()
    repeats = 0
    for row in _kept(split, "np-engine"):
        task = TASKS[row["task"]]
        try:
            entry = np_engine_entry(task, _decoded(row), reference=row["reference_objective"])
        except InputError as error:
            raise InputError(f"row {row['id']}: {error}") from None
        question = json.dumps([entry["prompt"], entry["question"]])
        if question in seen:
            repeats += 1
            continue
        seen.add(question)
        name = f"{row['level']}_{TASK_TYPES[task.name]}_question"
        numbers[name] += 1
        key = f"{name}{numbers[name]}"
        entries[key] = entry
        ids[key] = row["id"]
    for name, content in (("NP_Bench.json", entries), ("ids.json", ids)):
        text = json.dumps(content, indent=1, ensure_ascii=False)
        (folder / name).write_text(text + "\n", encoding="utf-8", newline="\n")
    return repeats


def _write_rows(form: str, name: str) -> Callable[[StoredSplit, Path], int]:
    """A writer of one Parquet file, ``name`` with the split's own name filled in."""

    def write(split: StoredSplit, folder: Path) -> int:
        modalities = {row["modality"] for row in split.rows(("modality",))}
        parameters = split.manifest["parameters"]
        path = folder / name.format(split=parameters["split"])
        write_parquet(split.rows(), path, LAYOUTS[form], modalities=modalities)
        if form == "lmms-eval":
            task_name = f"npbench_{parameters['suite']}_{parameters['split']}".replace("-", "_")
            write_task_files(folder, name=task_name, version=split.manifest["version"])
        return 0

    return write


_WRITERS: Mapping[str, Callable[[StoredSplit, Path], int]] = {
    "npmm": _write_npmm,
    "np-engine": _write_np_engine,
    "verl": _write_rows("verl", "{split}.parquet"),
    "easyr1": _write_rows("easyr1", "{split}.parquet"),
    "trl": _write_rows("trl", "{split}.parquet"),
    "lmms-eval": _write_rows("lmms-eval", "data.parquet"),
}
"""Each writes its files and says how many rows it left out as repeats."""
