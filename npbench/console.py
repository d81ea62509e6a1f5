"""What the commands share: tables on stdout, progress on stderr, reading instance files."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from npbench.errors import InputError

if TYPE_CHECKING:
    pass

__all__ = ["echo_cases", "print_table", "progress_bar", "read_json"]


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on stdout; the first column is text, the others are numbers."""
    from rich.console import Console
    from rich.table import Table

    table: Table = Table(title=title, title_justify="left", header_style="bold")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console = Console()
    if not console.is_terminal:
        console = Console(width=200)
    console.print(table)


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
    with Progress(*columns, console=Console(stderr=True)) as progress:
        start = -1

        def update(done: int, total: int) -> None:
            nonlocal start
            if start < 0:
                start = done
                progress.add_task(label, total=total, rate="")
            elapsed = progress.tasks[0].elapsed or 0.0
            rate = f"{(done - start) / elapsed:.1f}/s" if elapsed > 0.5 else ""
            progress.update(progress.task_ids[0], completed=done, rate=rate)

        yield update


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
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                if not raw.strip():
                    continue
                name: object = None
                try:
                    case = _case(raw)
                    name = case.get("id")
                    fields = handle(case)
                except InputError as error:
                    code = 1
                    fields = {**failed, "error": f"line {number}: {error}"}
                click.echo(json.dumps({"id": name, **fields}))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    if code:
        raise click.exceptions.Exit(code)


def _case(raw: bytes) -> dict[str, Any]:
    try:
        case = json.loads(raw)
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8: {error.reason}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"no JSON: {error}") from None
    if not isinstance(case, dict):
        raise InputError(f"no JSON object but {type(case).__name__}")
    return case
