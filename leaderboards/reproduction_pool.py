"""Runs the units of a reproduction, one after the other or on several processes, with a bar."""

import multiprocessing
import os
import queue
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from leaderboards.reproduction_runs import Unit, run_unit, unit_weight
from npbench.errors import InputError

__all__ = ["quiet_libraries", "run_units", "work_bar", "writing"]

Advance = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class _News:
    """What a worker says."""

    unit: str
    replies: int = 0
    finished: bool = False
    error: str | None = None
    """What went wrong; a refusal where it was one."""
    refused: bool = False


def run_units(
    units: Sequence[Unit], *, jobs: int, advance: Advance = lambda unit, replies: None
) -> None:
    """Runs all units; the first that is refused ends the others.

    Args:
        units: In the order in which they are begun.
        jobs: Processes; with 1 everything happens in this one.
        advance: Called with a unit's name and the number of replies that it made.

    Raises:
        InputError: If a unit is refused.
    """
    open_units = [unit for unit in units if unit.missing()]
    if jobs == 1 or len(open_units) <= 1:
        for unit in open_units:
            run_unit(unit, lambda replies, name=unit.name: advance(name, replies))  # type: ignore[misc]
        return
    _run_apart(open_units, min(jobs, len(open_units)), advance)


def _run_apart(units: Sequence[Unit], jobs: int, advance: Advance) -> None:
    # a forked torch may hang: its threads are not copied
    context = multiprocessing.get_context("spawn")
    tasks: Any = context.Queue()
    news: Any = context.Queue()
    for unit in units:
        tasks.put(unit)
    for _ in range(jobs):
        tasks.put(None)
    workers = [context.Process(target=_work, args=(tasks, news), daemon=True) for _ in range(jobs)]
    for worker in workers:
        worker.start()
    left = len(units)
    try:
        while left:
            try:
                found: _News = news.get(timeout=1.0)
            except queue.Empty:
                if not any(worker.is_alive() for worker in workers):
                    raise RuntimeError("the worker processes died before all was done") from None
                continue
            if found.error is not None:
                kind = InputError if found.refused else RuntimeError
                raise kind(found.error)
            advance(found.unit, found.replies)
            left -= found.finished
    finally:
        for worker in workers:
            if left:
                worker.terminate()
            worker.join()
        # nobody takes the units that are left, and the end must not wait until somebody does
        tasks.cancel_join_thread()


def _work(tasks: Any, news: Any) -> None:
    """Takes units until there is none."""
    import traceback

    quiet_libraries()
    while (unit := tasks.get()) is not None:
        try:
            run_unit(unit, lambda n, name=unit.name: news.put(_News(name, n)))  # type: ignore[misc]
            news.put(_News(unit.name, finished=True))
        except KeyboardInterrupt:
            return
        except InputError as error:
            news.put(_News(unit.name, error=str(error), refused=True))
        # the boundary of the process: the other side raises it again
        except Exception:  # noqa: BLE001
            news.put(_News(unit.name, error=f"{unit.name}: {traceback.format_exc()}"))


def quiet_libraries() -> None:
    """Leaves stderr to our own bar."""
    from transformers.utils import logging

    silence: Callable[[], None] = logging.disable_progress_bar
    silence()


@contextmanager
def work_bar(units: Sequence[Unit]) -> Iterator[Advance]:
    """A bar on stderr over all units, with what is under way and the time left."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    weights = [unit_weight(unit) for unit in units]
    columns = (
        TextColumn("{task.percentage:3.0f} %"),
        BarColumn(bar_width=30),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), speed_estimate_period=600) as bar:
        task = bar.add_task(
            "", total=sum(total for total, _ in weights), completed=sum(d for _, d in weights)
        )

        def advance(name: str, replies: int) -> None:
            bar.update(task, advance=replies, description=name)

        yield advance


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Holds a folder: two calls that write the same runs would spoil both.

    Raises:
        InputError: If another process holds it.
    """
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    file: IO[str]
    with (folder / ".lock").open("w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"another npbench reproduce is writing {folder}") from None
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
