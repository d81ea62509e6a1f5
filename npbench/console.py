"""What the commands share: tables on stdout, progress on stderr, reading instance files."""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from npbench.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["echo_cases", "print_table", "progress_bar", "read_json"]


MAX_LINE_BYTES = 16 << 20
"""Longer lines of cases are refused: a reply above 1 MiB is unreadable anyway."""


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on stdout, in parts where the terminal is too narrow; its first column is text."""
    from rich.console import Console

    console = Console()
    room = console.width if console.is_terminal else 10_000
    start = 1
    while start < len(columns) or start == 1:
        end = start + 1
        while end < len(columns) and _width(columns, rows, [0, *range(start, end + 1)]) <= room:
            end += 1
        shown = [0, *range(start, min(end, len(columns)))]
        width = max(_width(columns, rows, shown), len(title), 20)
        table = _table(title, columns, rows, shown)
        (console if console.is_terminal else Console(width=width)).print(table)
        start = end


def _width(columns: Sequence[str], rows: Sequence[Sequence[str]], shown: Sequence[int]) -> int:
    """Characters of a table's lines: each column's widest text, blanks and borders."""
    widest = (max(len(row[i]) for row in (columns, *rows)) for i in shown)
    return sum(width + 3 for width in widest) + 1


def _table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], shown: Sequence[int]
) -> "Table":
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(title), title_justify="left", header_style="bold")
    for i in shown:
        table.add_column(escape(columns[i]), justify="right" if i else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(escape(row[i]) for i in shown))
    return table


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """A bar with rate and time left on stderr; the function takes (done, total)."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    progress = Progress(*columns, console=Console(stderr=True))
    start = -1

    def update(done: int, total: int) -> None:
        nonlocal start
        if start < 0:
            start = done
            progress.start()
            progress.add_task(label, total=total, rate="")
        elapsed = progress.tasks[0].elapsed or 0.0
        rate = f"{(done - start) / elapsed:.1f}/s" if elapsed > 0.5 else ""
        progress.update(progress.task_ids[0], completed=done, rate=rate)

    try:
        yield update
    finally:
        if start >= 0:  # a bar that never moved leaves no line behind
            progress.stop()


def read_json(path: Path) -> Any:
    """The value of a JSON file.

    Raises:
        InputError: If the file cannot be read or is no JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is no JSON file: {error}") from None


def echo_cases(
    path: Path, handle: Callable[[dict[str, Any]], dict[str, Any]], *, failed: dict[str, Any]
) -> None:
    """Print one JSON line for every line of a JSONL file; a bad line never stops the rest.

    Args:
        path: The file.
        handle: Gives the fields of a case's line.
        failed: The fields of a line whose case is bad, besides ``error``.

    Raises:
        click.exceptions.Exit: With code 1, at the end, where a case was bad.
    """
    code = 0
    for number, raw in _raw_lines(path):
        name: object = None
        try:
            if len(raw) > MAX_LINE_BYTES:
                raise InputError(f"more than {MAX_LINE_BYTES} bytes")
            case = _case(raw)
            name = case.get("id")
            fields = handle(case)
        except InputError as error:
            code = 1
            fields = {**failed, "error": f"line {number}: {error}"}
        click.echo(json.dumps({"id": name, **fields}))
    if code:
        raise click.exceptions.Exit(code)


def _raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Numbered lines that are not blank; of an overlong one no more than shows that it is."""
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                rest = line
                while not rest.endswith(b"\n") and (rest := file.readline(MAX_LINE_BYTES)):
                    pass
                if line.strip():
                    yield number, line
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None


def _case(raw: bytes) -> dict[str, Any]:
    try:
        case = json.loads(raw, parse_constant=_refused, parse_float=_finite)
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8: {error.reason}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"no JSON: {error}") from None
    if not isinstance(case, dict):
        raise InputError(f"no JSON object but {type(case).__name__}")
    return case


def _refused(name: str) -> float:
    raise InputError(f"{name} is no JSON value")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise InputError(f"{text[:40]} is too large for a number")
    return value
