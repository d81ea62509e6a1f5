"""Which tasks, groups and levels make a suite, and the official splits that scores compare on."""

from collections.abc import Mapping
from dataclasses import dataclass

from npbench.errors import InputError, unknown_name
from npbench.prompts import Modality
from npbench.task import Task
from npbench.tasks import TASKS

__all__ = ["OFFICIAL", "SUITES", "OfficialSplit", "Suite", "get_official", "get_suite", "group_of"]


@dataclass(frozen=True, slots=True)
class Suite:
    """A named choice of tasks and levels with one version for all its instances."""

    name: str
    version: str
    """A change that alters an instance, a prompt or a picture comes with a new version."""
    tasks: tuple[str, ...]
    levels: tuple[str, ...]
    """Levels that are generated where none is asked for."""
    modality: Modality
    """How instances are shown where nothing else is asked for."""


@dataclass(frozen=True, slots=True)
class OfficialSplit:
    """A split that the leaderboard takes: fixed levels, size and seed, and a known content."""

    name: str
    suite: str
    levels: tuple[str, ...]
    split: str
    seed: int
    per_task: int
    content_hash: str
    """What ``manifest.json`` must state as ``content_hash``."""


_VISION = tuple(
    name
    for name, task in TASKS.items()
    if task.group in ("constraint", "covering", "partitioning", "subgraph", "path")
)
_TEXT = tuple(
    name
    for name, task in TASKS.items()
    if task.category in ("graph", "schedule", "partition", "selection", "planning")
)

SUITES: Mapping[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite("mm-np-bench", "mm-np-bench-v1", _VISION, ("l1", "l2", "l3"), Modality.IMAGE),
        Suite("np-bench", "np-bench-v1", _TEXT, ("easy", "medium", "hard", "bench"), Modality.TEXT),
        Suite("nano", "nano-v1", tuple(TASKS), ("nano",), Modality.IMAGE),
    )
}

OFFICIAL: Mapping[str, OfficialSplit] = {
    official.name: official
    for official in (
        OfficialSplit(
            name="mm-np-bench-v1",
            suite="mm-np-bench",
            levels=("l1", "l2", "l3"),
            split="test",
            seed=20261130,
            per_task=100,
            content_hash="519df7b2446648e15a5a41c6497aae9f8cc3e5227f035d08538b297a3fa01407",
        ),
        OfficialSplit(
            name="np-bench-v1",
            suite="np-bench",
            levels=("bench",),
            split="test",
            seed=20261130,
            per_task=100,
            content_hash="a21e5e5803a85258ec53cd3320475290232024e1b3a44e85be6539945ee47215",
        ),
    )
}


def get_suite(name: str) -> Suite:
    """The suite of a name.

    Raises:
        InputError: If the name is unknown.
    """
    if name not in SUITES:
        raise unknown_name("suite", name, SUITES)
    return SUITES[name]


def get_official(name: str) -> OfficialSplit:
    """The official split of a name; ``NAME/test`` is read as ``NAME``.

    Raises:
        InputError: If the name is unknown.
    """
    short = name.removesuffix("/test")
    if short not in OFFICIAL:
        raise unknown_name("official split", name, OFFICIAL)
    return OFFICIAL[short]


def group_of(suite: str, task: Task[object, object]) -> str:
    """The group in which a suite averages a task: text categories in np-bench, else groups."""
    return task.category if suite == "np-bench" else task.group


def suite_tasks(suite: Suite, wanted: tuple[str, ...], levels: tuple[str, ...]) -> tuple[str, ...]:
    """The suite's tasks, or the wanted ones, every one of which must have every level.

    A task outside the suite may be asked for by name where it has the levels.

    Raises:
        InputError: If a task lacks a level.
    """
    names = wanted or suite.tasks
    for name in names:
        for level in levels:
            if level not in TASKS[name].levels:
                known = ", ".join(TASKS[name].levels)
                raise InputError(f"{name} has no level {level}; its levels: {known}")
    return names
