"""What every question-answering benchmark is made of: an adapter, and how it becomes a benchmark.

An adapter says where the data is, which columns it needs under which names, how many rows the
official set has, how a row becomes a question and which metrics are official.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, overload

from evaluators.benchmark import Benchmark, Question, no_extra_metrics
from evaluators.benchmarks._row import LeftOut, Row
from evaluators.families import Family, Place, official
from evaluators.loading import Columns, Origin, Table, find_columns, open_table, resolve
from evaluators.records import SampleRecord
from npbench.errors import InputError

__all__ = ["Adapter", "TableQuestions", "load_adapter", "loader"]

_NONE: Columns = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """A benchmark as a record."""

    origin: Origin
    rows: int
    """Of the official set, all splits together."""
    columns: Columns
    """Needed ones."""
    optional: Columns = field(default_factory=lambda: _NONE)
    """Used where a copy has them."""
    question: Callable[[Row], Question | LeftOut]
    """The question of a row; raises InputError where the row is not what it should be."""
    family: Family | None = None
    """The official metrics beside those that every benchmark has."""
    version: str = "1"
    """A change of a prompt, a gold or the set of questions comes with a new one."""


class TableQuestions(Sequence[Question]):
    """The questions of a table; a row is read when its question is asked for."""

    def __init__(self, adapter: Adapter, table: Table, columns: Mapping[str, str]) -> None:
        """All questions, each made once to see that it can be."""
        self._adapter = adapter
        self._table = table
        self._columns = columns
        self._numbers: list[int] = []
        self.left_out: list[LeftOut] = []
        """Rows that are no question, each with its reason."""
        self.places: list[Place] = []
        """Where each question counts, in order."""
        self.hash = self._read_all()

    def _read_all(self) -> str:
        """Makes every question, and returns the hash of what they show and ask for."""
        content = hashlib.sha256()
        seen: set[str] = set()
        for number in range(len(self._table)):
            made = self._made(number)
            if isinstance(made, LeftOut):
                self.left_out.append(made)
                continue
            if made.id in seen:
                raise InputError(f"{self._table.where} has the question {made.id} twice")
            seen.add(made.id)
            self._numbers.append(number)
            self.places.append(Place(made.id, made.instance_id, made.category))
            content.update(_fingerprint(made))
        return content.hexdigest()

    def _made(self, number: int) -> Question | LeftOut:
        values = self._table[number]
        named = {name: values[column] for name, column in self._columns.items()}
        row = Row(number, named, self._table.folder)
        try:
            return self._adapter.question(row)
        except (InputError, ValueError) as error:
            raise InputError(f"{self._table.where}, row {number}: {error}") from None

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
            return [self[position] for position in range(*index.indices(len(self)))]
        made = self._made(self._numbers[index])
        assert isinstance(made, Question)
        return made

    def __iter__(self) -> Iterator[Question]:
        """The questions in order."""
        return (self[position] for position in range(len(self)))


def load_adapter(
    adapter: Adapter, name: str, *, source: Path | None, rows: int | None = None
) -> Benchmark:
    """The benchmark of an adapter.

    Args:
        adapter: What to load.
        name: The benchmark's name.
        source: A folder of files with the columns of the data set; None takes it from the Hub.
        rows: The number of rows to accept; None accepts the official one only.

    Raises:
        InputError: If the data lacks columns, has another number of rows, or holds a row that the
            benchmark does not have.
    """
    table = open_table(adapter.origin, source=source)
    expected = adapter.rows if rows is None else rows
    columns = resolve(table.where, table.columns, adapter.columns)
    columns |= find_columns(table.columns, adapter.optional)
    if len(table) != expected:
        wanted = "the official set has" if rows is None else "--rows accepts"
        raise InputError(f"{table.where} has {len(table)} rows; {wanted} {expected}")
    questions = TableQuestions(adapter, table, columns)
    left_out = [f"{entry.id}: {entry.reason}" for entry in questions.left_out]
    aggregate = no_extra_metrics
    if adapter.family or left_out:
        aggregate = partial(_aggregate, adapter.family, questions.places, left_out)
    return Benchmark(name, adapter.version, questions, questions.hash, aggregate)


def loader(adapters: Mapping[str, Adapter]) -> Callable[..., Benchmark]:
    """A module's ``load(name, *, source, rows=None)`` over its adapters."""

    def load(name: str, *, source: Path | None, rows: int | None = None) -> Benchmark:
        return load_adapter(adapters[name], name, source=source, rows=rows)

    return load


def _aggregate(
    family: Family | None,
    places: Sequence[Place],
    left_out: Sequence[str],
    records: Sequence[SampleRecord],
) -> Mapping[str, Any]:
    metrics = official(family, places, records) if family else {}
    return {**metrics, "left_out": list(left_out)} if left_out else metrics


def _fingerprint(question: Question) -> bytes:
    shown = [
        part if isinstance(part, str) else hashlib.sha256(part).hexdigest()
        for part in question.parts
    ]
    text = json.dumps([question.id, shown, question.gold, repr(question.grading)])
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()
