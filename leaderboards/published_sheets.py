"""The published numbers as sheets to print: one table, all of a paper, or the list of all."""

from collections.abc import Sequence

from leaderboards.formats import Sheet, as_csv
from leaderboards.paper_figures import entries
from leaderboards.papers import Entry, PaperFile, Table, find_table, load_papers
from npbench.errors import unknown_name

__all__ = [
    "TEXT_SUFFIX",
    "chosen",
    "entries_csv",
    "entries_json",
    "overview",
    "sheet_of_figures",
    "sheet_of_table",
]

TEXT_SUFFIX = "-text"
"""``PAPER-text`` names the single figures of a paper."""

_FIELDS = (
    "method", "model", "benchmark", "metric", "value", "paper", "where", "protocol", "note",
)  # fmt: skip


def overview() -> Sheet:
    """All published tables, and the papers' single figures."""
    rows: list[tuple[str, ...]] = []
    for paper in load_papers():
        cite = paper.paper.citation
        rows += [
            (table.id, paper.paper.short, cite, table.where, table.title, str(len(table.rows)))
            for table in paper.tables
        ]
        if paper.entries:
            name = f"{paper.paper.id}{TEXT_SUFFIX}"
            count = str(len(paper.entries))
            rows.append((name, paper.paper.short, cite, "text and figures", "", count))
    return Sheet(
        "published tables",
        ("table", "paper", "source", "where", "title", "rows"),
        tuple(rows),
        ("Every figure as printed. Tables of two papers are never joined: protocols differ.",),
        labels=5,
    )


def chosen(name: str) -> list[tuple[PaperFile, Table | None]]:
    """What a name stands for: a table, a paper's single figures (None), or all of a paper.

    Raises:
        InputError: If nothing is called so.
    """
    papers = {paper.paper.id: paper for paper in load_papers()}
    if name in papers:
        paper = papers[name]
        everything: list[tuple[PaperFile, Table | None]] = [(paper, t) for t in paper.tables]
        return [*everything, (paper, None)] if paper.entries else everything
    stem = name.removesuffix(TEXT_SUFFIX)
    if stem != name and stem in papers and papers[stem].entries:
        return [(papers[stem], None)]
    tables = {table.id for paper in papers.values() for table in paper.tables}
    if name not in tables:
        texts = [f"{key}{TEXT_SUFFIX}" for key, paper in papers.items() if paper.entries]
        raise unknown_name("published table", name, [*papers, *sorted(tables), *texts])
    return [find_table(name)]


def sheet_of_table(paper: PaperFile, table: Table) -> Sheet:
    """A published table as printed, with its protocol and every inconsistency that was found."""
    columns = [*table.labels]
    for column, metrics in zip(table.columns, table.metrics, strict=True):
        columns.append(column if metrics == table.metrics[0] else f"{column} {' / '.join(metrics)}")
    rows = [
        (*row.labels, *(" / ".join(figure.text for figure in cell) for cell in row.cells),
         *(text or "-" for text in row.texts))
        for row in table.rows
    ]  # fmt: skip
    unit = "" if table.unit == "percent" else f", {table.unit}"
    main = " / ".join(table.metrics[0])
    title = (
        f"{table.id}: {paper.paper.short}, {table.where}: {table.title} ({main}{unit}; "
        f"{paper.paper.citation})"
    )
    return Sheet(
        title,
        (*columns, *table.text_columns),
        tuple(rows),
        tuple(_notes(paper, table)),
        labels=len(table.labels),
    )


def _notes(paper: PaperFile, table: Table) -> list[str]:
    notes = [f"Protocol: {table.protocol}"]
    notes += [table.note] if table.note else []
    missing = {
        figure.reason
        for row in table.rows
        for cell in row.cells
        for figure in cell
        if figure.value is None
    }
    notes += [f"A dash stands for: {'; '.join(sorted(missing))}."] if missing else []
    notes += [
        f"Inconsistent: {found.row}, {found.column}, {found.metric}: printed {found.printed}, "
        f"recomputed {found.recomputed}. {found.note}"
        for found in table.inconsistencies
    ]
    return [*notes, *paper.notes_on(table.id), *paper.notes_on(None)]


def sheet_of_figures(paper: PaperFile) -> Sheet:
    """The single figures of a paper's text."""
    rows = tuple(
        (entry.method, entry.model, entry.benchmark, entry.metric, _value(entry) or "-",
         entry.paper, entry.where, entry.note)
        for entry in paper.entries
    )  # fmt: skip
    return Sheet(
        f"{paper.paper.id}{TEXT_SUFFIX}: {paper.paper.short}, figures of text and plots",
        ("method", "model", "benchmark", "metric", "value", "source", "where", "note"),
        rows,
        (f"Protocol: {paper.paper.protocol}", *paper.notes_on(None)),
        labels=4,
    )


def entries_json(paper: PaperFile, table: Table | None) -> list[dict[str, object]]:
    """The figures of a table, or of a paper's text, as plain data."""
    return [
        {**entry.model_dump(), "value": None if entry.value is None else float(entry.value)}
        for entry in _entries(paper, table)
    ]


def entries_csv(picked: Sequence[tuple[PaperFile, Table | None]]) -> str:
    """Figures as comma-separated values, one figure a line."""
    rows = [
        [_value(entry) if name == "value" else str(getattr(entry, name)) for name in _FIELDS]
        for paper, table in picked
        for entry in _entries(paper, table)
    ]
    return as_csv(_FIELDS, rows)


def _entries(paper: PaperFile, table: Table | None) -> list[Entry]:
    return list(paper.entries) if table is None else list(entries(paper, table))


def _value(entry: Entry) -> str:
    return "" if entry.value is None else str(entry.value)
