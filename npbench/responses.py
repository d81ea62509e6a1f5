"""Replies to the questions of a split, read from JSONL and checked against the split's ids."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from npbench.errors import InputError

__all__ = ["json_lines", "read_responses"]

MAX_LINE_CHARS = 16 << 20
"""Longer lines are refused: a reply above 1 MiB is unreadable anyway."""


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Line numbers from 1 and the values of a JSONL file; blank lines are skipped.

    Raises:
        InputError: If the file cannot be read or a line is no JSON.
    """
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if len(line) > MAX_LINE_CHARS:
                    raise InputError(
                        f"{path} line {number} has more than {MAX_LINE_CHARS} characters"
                    )
                if line.strip():
                    yield number, _parsed(path, number, line)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from None


def _parsed(path: Path, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} line {number} is no JSON: {error}") from None


def read_responses(path: Path, ids: Iterable[str]) -> dict[str, list[str]]:
    """Replies by question id, in the order of their sample numbers.

    Args:
        path: JSONL with one ``{"id", "sample", "reply"}`` a line; ``sample`` is 0 where missing.
        ids: The ids of the split, every one of which needs the same samples 0 to k-1.

    Raises:
        InputError: If an id is unknown or missing, a sample appears twice or lacks, or a value has
            the wrong type; the message names the line or the id.
    """
    known = set(ids)
    replies: dict[str, dict[int, str]] = {}
    for number, entry in json_lines(path):
        where = f"{path} line {number}"
        if not isinstance(entry, dict):
            raise InputError(f"{where} is no object")
        missing = [key for key in ("id", "reply") if key not in entry]
        if missing:
            raise InputError(f"{where} has no {missing[0]!r}")
        name, sample, reply = entry["id"], entry.get("sample", 0), entry["reply"]
        if not isinstance(name, str) or name not in known:
            raise InputError(f"{where} answers {str(name)[:120]!r}, which is no id of the split")
        if type(sample) is not int or sample < 0:
            raise InputError(f"{where}: sample must be an integer from 0, got {sample!r}")
        if not isinstance(reply, str):
            raise InputError(f"{where}: reply must be text, got {type(reply).__name__}")
        samples = replies.setdefault(name, {})
        if sample in samples:
            raise InputError(f"{where} repeats sample {sample} of {name}")
        samples[sample] = reply
    lacking = sorted(known - set(replies))
    if lacking:
        raise InputError(f"{path} has no reply to {lacking[0]} ({len(lacking)} ids are missing)")
    k = max((len(samples) for samples in replies.values()), default=0)
    for name, samples in replies.items():
        if sorted(samples) != list(range(k)):
            raise InputError(
                f"{path}: {name} has the samples {sorted(samples)}, "
                f"expected 0 to {k - 1} as elsewhere"
            )
    return {name: [samples[i] for i in range(k)] for name, samples in replies.items()}
