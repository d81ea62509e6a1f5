"""The published numbers as typed data: every figure with its paper, table, row and protocol.

A paper is a file of ``leaderboards/published``: its printed tables, and single figures of its text.
Tables of two papers are never joined, because prompts, extraction and protocols differ.
"""

import tomllib
from decimal import Decimal
from functools import lru_cache
from importlib.resources import files
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from npbench.errors import InputError, unknown_name

__all__ = [
    "Average",
    "Entry",
    "Figure",
    "Inconsistency",
    "Note",
    "Paper",
    "PaperFile",
    "Row",
    "Table",
    "find_table",
    "load_papers",
    "read_paper",
]

Text = Annotated[str, Field(min_length=1)]
Words = Annotated[tuple[Text, ...], Field(min_length=1)]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class Figure(_Record):
    """A printed number, or the reason why there is none."""

    value: Decimal | None
    """With the digits that were printed."""
    reason: str = ""
    """Why there is no value; empty where there is one."""

    @property
    def text(self) -> str:
        """The number as printed, ``-`` where there is none."""
        return "-" if self.value is None else str(self.value)


def _figure(raw: object) -> Figure:
    if isinstance(raw, Decimal | int) and not isinstance(raw, bool):
        return Figure(value=Decimal(raw))
    if isinstance(raw, str) and raw.strip():
        return Figure(value=None, reason=raw)
    raise ValueError(f"a figure is a number, or the reason why there is none, got {raw!r}")


class Paper(_Record):
    """Where figures were published."""

    order: int
    """Its place in lists."""
    id: Text
    short: Text
    title: Text
    arxiv: str | None = Field(default=None, pattern=r"^\d{4}\.\d{5}$")
    arxiv_missing: str | None = None
    """Why there is no arXiv number."""
    venue: str | None = None
    protocol: Text

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.arxiv is None) == (self.arxiv_missing is None):
            raise ValueError("a paper has an arXiv number, or a reason why it has none")
        return self

    @property
    def citation(self) -> str:
        """How entries name it."""
        return f"arXiv:{self.arxiv}" if self.arxiv else self.title


class Average(_Record):
    """A column that is the mean of others."""

    column: Text
    of: Words
    weights: tuple[int, ...] = ()
    """Of the columns; equal where empty."""

    @model_validator(mode="after")
    def _same_length(self) -> Self:
        if self.weights and len(self.weights) != len(self.of):
            raise ValueError(f"{len(self.weights)} weights for {len(self.of)} columns")
        return self


class Inconsistency(_Record):
    """A printed average that does not follow from its columns."""

    row: Text
    """The labels of the row."""
    column: Text
    metric: Text
    printed: Decimal
    recomputed: Decimal
    note: Text


class Row(_Record):
    """A row as printed."""

    labels: Words
    cells: tuple[tuple[Figure, ...], ...]
    """For each column one figure for each of its metrics."""
    texts: tuple[str, ...] = ()
    """The text columns, empty where nothing stands."""

    @property
    def name(self) -> str:
        """The labels as one text."""
        return ", ".join(self.labels)


class _RawTable(_Record):
    """A table as the files hold it."""

    id: Text
    where: Text
    title: Text
    metrics: Words
    unit: Text = "percent"
    labels: Words
    columns: Words
    columns_are: Literal["benchmark", "method", "metric", "quantity", "setting"] = "benchmark"
    column_metrics: dict[Text, Words] = Field(default_factory=dict)
    """Of the columns whose metrics are others than ``metrics``."""
    text_columns: tuple[Text, ...] = ()
    method: str | None = None
    """Of all rows, where no label names it."""
    model: str | None = None
    protocol: str | None = None
    """Where it differs from the paper's."""
    note: str = ""
    rows: tuple[tuple[Any, ...], ...] = Field(min_length=1)
    averages: tuple[Average, ...] = ()
    inconsistency: tuple[Inconsistency, ...] = ()


class Table(_Record):
    """A printed table; its cells are checked for number and kind."""

    id: str
    paper: Paper
    where: str
    title: str
    unit: str
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    columns_are: str
    metrics: tuple[tuple[str, ...], ...]
    """Of each column."""
    text_columns: tuple[str, ...]
    method: str | None
    model: str | None
    protocol: str
    note: str
    rows: tuple[Row, ...]
    averages: tuple[Average, ...]
    inconsistencies: tuple[Inconsistency, ...]

    def figure(self, row: Row, column: str, metric: str) -> Figure:
        """The figure of a row.

        Raises:
            InputError: If the table has no such column, or the column no such metric.
        """
        if column not in self.columns:
            raise unknown_name(f"column of {self.id}", column, self.columns)
        place = self.columns.index(column)
        if metric not in self.metrics[place]:
            raise unknown_name(f"metric of {self.id}", metric, self.metrics[place])
        return row.cells[place][self.metrics[place].index(metric)]

    def recomputed(self, row: Row, average: Average, metric: str) -> Decimal | None:
        """The mean of a row's columns, exactly; None where one of them has no value.

        Args:
            row: A row of the table.
            average: Which columns and weights.
            metric: A metric that all of them have.
        """
        figures = [self.figure(row, column, metric).value for column in average.of]
        weights = average.weights or (1,) * len(figures)
        known = [value for value in figures if value is not None]
        if len(known) < len(figures):
            return None
        total = sum((w * v for w, v in zip(weights, known, strict=True)), Decimal(0))
        return total / sum(weights)


class Note(_Record):
    """Something to know: an inconsistency, or how to read the figures."""

    text: Text
    tables: tuple[Text, ...] = ()
    """Empty where it is about the paper as a whole."""


class Entry(_Record):
    """One figure with everything that is known of it."""

    method: Text
    model: Text
    benchmark: Text
    metric: Text
    value: Decimal | None = None
    paper: Text
    where: Text
    protocol: Text
    note: str = ""

    @model_validator(mode="after")
    def _reason(self) -> Self:
        if self.value is None and not self.note:
            raise ValueError("a figure without a value needs a note that says why")
        return self


class PaperFile(_Record):
    """All that one file holds."""

    paper: Paper
    tables: tuple[Table, ...]
    entries: tuple[Entry, ...]
    """Single figures, which stand in no table."""
    notes: tuple[Note, ...]

    def notes_on(self, table: str | None) -> list[str]:
        """The notes about a table; None gives those about the paper as a whole."""
        if table is None:
            return [note.text for note in self.notes if not note.tables]
        return [note.text for note in self.notes if table in note.tables]


def _tuples(raw: object) -> object:
    return tuple(raw) if isinstance(raw, list) else raw


class _RawFile(_Record):
    paper: Paper
    table: Annotated[tuple[_RawTable, ...], BeforeValidator(_tuples)] = ()
    entry: tuple[dict[str, Any], ...] = ()
    note: tuple[Note, ...] = ()


def _checked(raw: _RawTable, paper: Paper) -> Table:
    """The table with typed cells.

    Raises:
        ValueError: If a row has another shape, or an average or inconsistency names nothing.
    """
    metrics = tuple(raw.column_metrics.get(column, raw.metrics) for column in raw.columns)
    unknown = set(raw.column_metrics) - set(raw.columns)
    if unknown:
        raise ValueError(f"{raw.id}: column_metrics names {min(unknown)!r}, no column")
    labels, columns = len(raw.labels), len(raw.columns)
    rows = []
    for cells in raw.rows:
        if len(cells) != labels + columns + len(raw.text_columns):
            raise ValueError(f"{raw.id}: the row {cells[0]!r} has {len(cells)} cells")
        figures = [_cell(raw.id, cells[labels + i], metrics[i]) for i in range(columns)]
        texts = cells[labels + columns :]
        rows.append(Row(labels=cells[:labels], cells=tuple(figures), texts=texts))
    names = [row.name for row in rows]
    if len(set(names)) < len(names):
        raise ValueError(f"{raw.id}: two rows have the same name")
    for average in raw.averages:
        for column in (average.column, *average.of):
            if column not in raw.columns:
                raise ValueError(f"{raw.id}: the average names {column!r}, no column")
    for found in raw.inconsistency:
        if found.row not in names or found.column not in raw.columns:
            raise ValueError(f"{raw.id}: no row {found.row!r} with a column {found.column!r}")
    same = ("id", "where", "title", "unit", "labels", "columns", "columns_are", "text_columns",
            "method", "model", "note", "averages")  # fmt: skip
    return Table(
        paper=paper,
        metrics=metrics,
        protocol=raw.protocol or paper.protocol,
        rows=tuple(rows),
        inconsistencies=raw.inconsistency,
        **{name: getattr(raw, name) for name in same},
    )


def _cell(table: str, raw: object, metrics: tuple[str, ...]) -> tuple[Figure, ...]:
    several = raw if isinstance(raw, list | tuple) else [raw]
    if isinstance(raw, str):
        several = [raw] * len(metrics)
    if len(several) != len(metrics):
        raise ValueError(f"{table}: {len(several)} figures for the metrics {', '.join(metrics)}")
    return tuple(_figure(figure) for figure in several)


def read_paper(text: str, *, name: str) -> PaperFile:
    """The paper of a TOML text.

    Args:
        text: The file's text.
        name: What errors call it.

    Raises:
        InputError: If it is no TOML, or anything in it is unknown, missing or of another shape.
    """
    try:
        data = tomllib.loads(text, parse_float=Decimal)
        raw = _RawFile.model_validate(data)
        cite = {"paper": raw.paper.citation, "protocol": raw.paper.protocol}
        made = PaperFile(
            paper=raw.paper,
            tables=tuple(_checked(table, raw.paper) for table in raw.table),
            entries=tuple(Entry.model_validate({**cite, **entry}) for entry in raw.entry),
            notes=raw.note,
        )
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name} is no TOML file: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "it"
        raise InputError(f"{name}: {where}: {first['msg']}") from None
    except ValueError as error:
        raise InputError(f"{name}: {error}") from None
    ids = [table.id for table in made.tables]
    for note in made.notes:
        for table in note.tables:
            if table not in ids:
                raise InputError(f"{name}: a note names {table!r}; the tables: {', '.join(ids)}")
    return made


@lru_cache(maxsize=1)
def load_papers() -> tuple[PaperFile, ...]:
    """All papers that ship with the package, in their order.

    Raises:
        InputError: If a file is not as it should be, or two tables have one name.
    """
    folder = files("leaderboards").joinpath("published")
    found = sorted(
        (item for item in folder.iterdir() if item.name.endswith(".toml")), key=lambda f: f.name
    )
    read = [read_paper(item.read_text(encoding="utf-8"), name=item.name) for item in found]
    papers = tuple(sorted(read, key=lambda paper: paper.paper.order))
    ids = [table.id for paper in papers for table in paper.tables]
    for name in ids:
        if ids.count(name) > 1:
            raise InputError(f"two published tables are called {name}")
    return papers


def find_table(name: str) -> tuple[PaperFile, Table]:
    """A published table and its paper.

    Raises:
        InputError: If there is no such table.
    """
    known = {table.id: (paper, table) for paper in load_papers() for table in paper.tables}
    if name not in known:
        raise unknown_name("published table", name, known)
    return known[name]
