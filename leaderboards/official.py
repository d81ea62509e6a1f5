"""The rows that an official split has: from a folder whose content is proven, or made anew."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from npbench.errors import InputError
from npbench.manifest import Tally
from npbench.splits import LazySplit, Request
from npbench.storage import open_split
from npbench.suites import OfficialSplit, get_suite, group_of
from npbench.tasks import TASKS

__all__ = ["find_official", "instance_id", "official_request", "official_rows", "row_ids"]

Progress = Callable[[int, int], None]


def find_official(
    name: str, content_hash: str, officials: Mapping[str, OfficialSplit]
) -> OfficialSplit:
    """The official split that replies answer.

    Args:
        name: What the submission calls its split.
        content_hash: The content hash that it states.
        officials: The official splits by name.

    Raises:
        InputError: If it is no official split, or one whose content was altered.
    """
    for official in officials.values():
        if official.content_hash == content_hash:
            return official
    known = ", ".join(f"{key} ({one.content_hash[:12]})" for key, one in officials.items())
    short = name.removesuffix("/test")
    if short in officials:
        raise InputError(
            f"its split calls itself {short} but has the content hash {content_hash[:12]}, the "
            f"official one has {officials[short].content_hash[:12]}: a part of it, or altered data"
        )
    raise InputError(
        f"it answers {name!r:.60} with content hash {content_hash[:12]}, which is no official "
        f"split; official: {known}"
    )


def official_request(official: OfficialSplit) -> Request:
    """What ``npbench generate --official`` builds."""
    return Request.make(
        suite=official.suite,
        split=official.split,
        seed=official.seed,
        per_task=official.per_task,
        levels=official.levels,
    )


def instance_id(request: Request, position: int) -> str:
    """The id of the instance at a position, without making it."""
    unit = request.unit(position)
    version = get_suite(request.suite).version
    return f"{version}-{unit.task}-{unit.level}-{request.split}-s{request.seed}-{unit.index:05d}"


def row_ids(request: Request) -> dict[str, int]:
    """The id of every row of an official split and the position of its instance, in order."""
    return {
        f"{instance_id(request, position)}-{shown}": position
        for position in range(request.num_units)
        for shown in request.modalities
    }


def official_rows(
    official: OfficialSplit, folder: Path | None, *, progress: Progress | None = None
) -> Iterator[dict[str, Any]]:
    """The rows of an official split in order; the content is proven when the last one is out.

    Ids, instances, prompts, references and pixels enter the content hash; tasks, groups, levels
    and modalities are compared with what the official split has at each place.

    Args:
        official: The split.
        folder: Where it lies on disk; None makes every row anew, which takes minutes.
        progress: Called with (rows out, rows in all).

    Raises:
        InputError: If the folder holds anything else.
    """
    request = official_request(official)
    total = request.num_units * request.rows_per_unit
    tally = Tally()
    for number, row in enumerate(_stored(folder) if folder else _made(request)):
        where = f"{folder or official.name} row {number}"
        if number == total:
            raise InputError(f"{where} is one more than the official {total}")
        _check_place(request, number, row, where)
        image = row["image"]
        tally.add({**row, "image": None if image is None else {"bytes": image}})
        if progress:
            progress(number + 1, total)
        yield row
    if tally.rows != total or tally.content_hash() != official.content_hash:
        found = tally.content_hash()[:12] if tally.rows else "none"
        raise InputError(
            f"{folder or 'this version'} gives {official.name} the content hash {found} with "
            f"{tally.rows} rows, the official one is {official.content_hash[:12]} with {total}"
        )


def _stored(folder: Path) -> Iterator[dict[str, Any]]:
    return open_split(folder).rows()


def _made(request: Request) -> Iterator[dict[str, Any]]:
    return (asdict(row) for row in LazySplit(request))


def _check_place(request: Request, number: int, row: Mapping[str, Any], where: str) -> None:
    """Refuse a row that is not the one which belongs at its place."""
    position, offset = divmod(number, request.rows_per_unit)
    unit = request.unit(position)
    name = instance_id(request, position)
    modality = request.modalities[offset]
    expected = {
        "id": f"{name}-{modality}",
        "instance_id": name,
        "task": unit.task,
        "group": group_of(request.suite, TASKS[unit.task]),
        "level": unit.level,
        "modality": modality,
    }
    for field, value in expected.items():
        if row[field] != value:
            raise InputError(f"{where}: {field} is {str(row[field])[:80]!r}, official is {value!r}")
