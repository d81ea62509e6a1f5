"""The figures of published tables one by one, each with all that is known of it."""

from collections.abc import Iterator, Mapping

from leaderboards.papers import Entry, PaperFile, Table

__all__ = ["entries"]

_UNSTATED = "not stated"
_OWN = ("method", "model", "benchmark", "metric")
"""Labels that are fields of an entry; others go into its note."""


def entries(paper: PaperFile, table: Table | None = None) -> Iterator[Entry]:
    """Every figure by itself: those of one table, or of all tables and of the text.

    Args:
        paper: The paper.
        table: One of its tables.
    """
    for one in paper.tables if table is None else (table,):
        yield from _of_table(one)
    if table is None:
        yield from paper.entries


def _of_table(table: Table) -> Iterator[Entry]:
    for row in table.rows:
        labels = dict(zip(table.labels, row.labels, strict=True))
        rest = [f"{name} {text}" for name, text in labels.items() if name not in _OWN]
        for column, metrics, figures in zip(table.columns, table.metrics, row.cells, strict=True):
            for metric, figure in zip(metrics, figures, strict=True):
                named = _named(table, labels, column, metric)
                yield Entry(
                    method=named.get("method", _UNSTATED),
                    model=named.get("model", _UNSTATED),
                    benchmark=named.get("benchmark", _UNSTATED),
                    metric=named["metric"],
                    value=figure.value,
                    paper=table.paper.citation,
                    where=table.where,
                    protocol=table.protocol,
                    note="; ".join([*rest, *([figure.reason] if figure.reason else [])]),
                )


def _named(table: Table, labels: Mapping[str, str], column: str, metric: str) -> dict[str, str]:
    """What a figure is of: from the table, then its row, then its column."""
    named = {"metric": metric}
    if table.method is not None:
        named["method"] = table.method
    if table.model is not None:
        named["model"] = table.model
    named |= labels
    if table.columns_are == "setting":
        named["metric"] = f"{metric}, {column}"
    elif table.columns_are == "quantity":
        named["metric"] = f"{column} {metric}"
    elif table.columns_are == "metric":
        named["metric"] = column
    else:
        named[table.columns_are] = column
    if table.unit != "percent":
        named["metric"] += f" ({table.unit})"
    return named
