"""Rows of a published data set, from the Hub or from a folder with files of the same columns.

Nothing is decoded: pictures stay the bytes that the data set holds. Rows are read when they are
asked for, so that memory does not grow with the data set.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from types import ModuleType
from typing import Any

from npbench.errors import InputError

__all__ = ["Columns", "Origin", "Table", "find_columns", "open_table", "resolve"]

Columns = Mapping[str, tuple[str, ...]]
"""Our name of a column to the names that copies give it, the preferred one first."""

_FORMATS = {".parquet": "parquet", ".jsonl": "json", ".json": "json"}
"""File endings in the order in which a folder is searched for them."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a data set is on the Hub."""

    hub: str
    splits: tuple[str, ...]
    """Read one after the other."""
    config: str | None = None


class Table:
    """The rows of one or more files, each a dictionary of plain data."""

    def __init__(self, where: str, folder: Path | None, parts: Sequence[Any]) -> None:
        """The rows of the data sets ``parts``, one after the other."""
        self.where = where
        self.folder = folder
        """What relative paths of pictures start from; None for the Hub."""
        self.columns = tuple(dict.fromkeys(name for part in parts for name in part.column_names))
        self._parts = [part.with_format("arrow") for part in parts]
        self._ends = list(accumulate(len(part) for part in parts))

    def __len__(self) -> int:
        """Number of rows."""
        return self._ends[-1]

    def __getitem__(self, number: int) -> dict[str, Any]:
        """The row at a position, counted from 0."""
        position = bisect_right(self._ends, number)
        start = self._ends[position - 1] if position else 0
        row: dict[str, Any] = self._parts[position][number - start].to_pylist()[0]
        return row

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows in order."""
        return (self[number] for number in range(len(self)))


def open_table(origin: Origin, *, source: Path | None) -> Table:
    """The rows of a data set.

    Args:
        origin: Where it is on the Hub; its config and splits also choose among a folder's files.
        source: A folder of parquet, jsonl or json files; None takes it from the Hub.

    Raises:
        InputError: If the library is missing, or there is nothing to read, or it cannot be read.
    """
    datasets = _library()
    if source is None:
        parts = [_from_hub(datasets, origin, split) for split in origin.splits]
        return Table(origin.hub, None, parts)
    kind, files = _files(source, origin)
    try:
        parts = [
            datasets.load_dataset(kind, data_files=[str(file)], split="train") for file in files
        ]
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        raise InputError(f"{source} cannot be read: {_first_line(error)}") from None
    except StopIteration:
        # what the library raises where a file has no row
        raise InputError(f"{source} has a file without rows") from None
    return Table(str(source), source, parts)


def resolve(where: str, present: Sequence[str], wanted: Columns) -> dict[str, str]:
    """The column of the data for each of our names, case aside.

    Raises:
        InputError: If some have none: all of them, and the columns that there are.

    Example:
        >>> resolve("aime", ["ID", "Problem"], {"id": ("id",), "question": ("question", "problem")})
        {'id': 'ID', 'question': 'Problem'}
    """
    found = find_columns(present, wanted)
    lacking = [" or ".join(names) for name, names in wanted.items() if name not in found]
    if lacking:
        raise InputError(
            f"{where} lacks the columns {', '.join(lacking)}; it has {', '.join(present)}"
        )
    return found


def find_columns(present: Sequence[str], wanted: Columns) -> dict[str, str]:
    """The column for each of our names that has one."""
    by_name = {name.casefold(): name for name in reversed(present)}
    found: dict[str, str] = {}
    for name, aliases in wanted.items():
        column = next((by_name[a.casefold()] for a in aliases if a.casefold() in by_name), None)
        if column is not None:
            found[name] = column
    return found


def _library() -> ModuleType:
    try:
        import datasets
    except ImportError:
        raise InputError("reading a data set needs: pip install 'npbench[eval]'") from None
    library: ModuleType = datasets
    return library


def _from_hub(datasets: Any, origin: Origin, split: str) -> Any:
    try:
        return datasets.load_dataset(origin.hub, origin.config, split=split)
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        raise InputError(
            f"{origin.hub} cannot be loaded from the Hub: {_first_line(error)}; "
            f"--from FOLDER reads a copy on disk"
        ) from None


def _files(folder: Path, origin: Origin) -> tuple[str, list[Path]]:
    """The files of a folder that hold the wanted splits, and the name of their reader.

    Where the folder's names tell configurations or splits apart, as in a copy of a Hub
    repository, only the wanted ones are taken; else all files.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder")
    for ending, kind in _FORMATS.items():
        files = sorted(path for path in folder.rglob(f"*{ending}") if path.is_file())
        if not files:
            continue
        if origin.config:
            files = _named(files, folder, origin.config) or files
        by_split = [_named(files, folder, split) for split in origin.splits]
        missing = [s for s, of in zip(origin.splits, by_split, strict=True) if not of]
        if missing and any(by_split):
            raise InputError(f"{folder} has no file of the split {', '.join(missing)}")
        return kind, files if missing else [file for of in by_split for file in of]
    raise InputError(f"{folder} holds no parquet, jsonl or json file")


def _named(files: Sequence[Path], folder: Path, name: str) -> list[Path]:
    """The files with a folder of this name, or whose own name begins with it as a word."""
    word = re.compile(rf"{re.escape(name)}(?:[-.]|$)")
    return [
        file for file in files if any(word.match(part) for part in file.relative_to(folder).parts)
    ]


def _first_line(error: BaseException) -> str:
    cause = error.__cause__ if error.__cause__ is not None else error
    lines = str(cause).strip().splitlines()
    return lines[0][:300] if lines else type(cause).__name__
