"""The NP-hard suites: the rows of a split on disk as questions."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any, overload

from evaluators.benchmark import Benchmark, Question
from npbench import scoring
from npbench.errors import InputError
from npbench.storage import StoredSplit, open_split

__all__ = ["SplitQuestions", "load", "split_benchmark"]

_COLUMNS = (*scoring.SCORE_COLUMNS, "modality", "style", "prompt", "image")


def load(name: str, *, source: Path | None, rows: int | None = None) -> Benchmark:
    """The suite ``name`` from the split in ``source``.

    Args:
        name: The suite.
        source: The split's folder.
        rows: The number of rows that the split must have; None takes any.

    Raises:
        InputError: If no split is given, or it is of another suite or size.
    """
    if source is None:
        raise InputError(
            f"{name} is read from a split: give its folder with --from, "
            f"made by npbench generate --suite {name}"
        )
    benchmark = split_benchmark(source)
    if benchmark.name != name:
        raise InputError(f"{source} is a split of {benchmark.name}, not of {name}")
    if rows is not None and len(benchmark.questions) != rows:
        raise InputError(f"{source} has {len(benchmark.questions)} rows, --rows accepts {rows}")
    return benchmark


def split_benchmark(folder: Path) -> Benchmark:
    """The questions of a split on disk; its rows are read when they are asked for.

    Raises:
        InputError: If the folder is no finished split.
    """
    split = open_split(folder)
    return Benchmark(
        name=split.manifest["parameters"]["suite"],
        version=split.manifest["version"],
        questions=SplitQuestions(split, columns=_COLUMNS, make=_question),
        dataset_hash=split.manifest["content_hash"],
    )


class SplitQuestions(Sequence[Question]):
    """The rows of a split as questions, a few row groups of them in memory at a time."""

    def __init__(
        self,
        split: StoredSplit,
        *,
        columns: Sequence[str],
        make: Callable[[Mapping[str, Any]], Question],
        modality: str | None = None,
    ) -> None:
        """The questions of a split on disk.

        Args:
            split: The split.
            columns: What is read of a row.
            make: Makes the question of a row.
            modality: Take the rows of one modality alone.
        """
        import pyarrow.parquet as pq

        self._columns = list(columns)
        self._make = make
        self._groups: list[tuple[Path, int]] = []
        sizes: list[int] = []
        for name in split.manifest["shards"]:
            path = split.folder / name
            metadata = pq.read_metadata(path)
            for number in range(metadata.num_row_groups):
                self._groups.append((path, number))
                sizes.append(metadata.row_group(number).num_rows)
        self._ends = list(accumulate(sizes))
        self._numbers: Sequence[int] = range(sum(sizes))
        if modality is not None:
            shown = enumerate(row["modality"] for row in split.rows(("modality",)))
            self._numbers = [number for number, found in shown if found == modality]
        self._read = lru_cache(maxsize=2)(self._read_group)

    def _read_group(self, number: int) -> list[Mapping[str, Any]]:
        import pyarrow.parquet as pq

        path, position = self._groups[number]
        table = pq.ParquetFile(path).read_row_group(position, columns=self._columns)
        rows: list[Mapping[str, Any]] = table.to_pylist()
        return rows

    def __len__(self) -> int:
        """Number of questions."""
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> Question: ...
    @overload
    def __getitem__(self, index: slice) -> list[Question]: ...
    def __getitem__(self, index: int | slice) -> Question | list[Question]:
        """One question, or those of a slice."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        position = self._numbers[index]
        group = bisect_right(self._ends, position)
        start = self._ends[group - 1] if group else 0
        return self._make(self._read(group)[position - start])


def _question(row: Mapping[str, Any]) -> Question:
    graded = scoring.Question.from_row(row)
    category = {
        "group": graded.group,
        "task": graded.task.name,
        "level": graded.level,
        "modality": row["modality"],
    }
    if row["style"] is not None:
        category["style"] = row["style"]
    picture = row["image"]
    parts = (row["prompt"],) if picture is None else (picture["bytes"], row["prompt"])
    return Question(graded.id, graded.instance_id, parts, None, category, graded)
