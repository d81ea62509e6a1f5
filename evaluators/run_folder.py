"""The folder of a run: its manifest, its samples by key, appending one at a time.

A sample is on disk before the next one is awaited. Lines are only ever added, except that a torn
last line is cut off. A failed sample is tried again by a later session: its new line, which comes
later, replaces it.
"""

import fcntl
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self

from pydantic import TypeAdapter, ValidationError

from evaluators.grading import State
from evaluators.records import SCHEMA, Key, RunManifest, SampleRecord, differing_field
from npbench.console import read_json
from npbench.errors import InputError

__all__ = ["MANIFEST", "SAMPLES", "Entry", "RunFolder", "SampleIndex", "read_manifest", "scan"]

MANIFEST = "run.json"
SAMPLES = "samples.jsonl"

_RECORD = TypeAdapter(SampleRecord)


@dataclass(frozen=True, slots=True)
class Entry:
    """Where the record of a key stands, and what resuming needs of it."""

    offset: int
    length: int
    line_hash: bytes
    prompt_hash: str
    state: State
    generated: bool
    attempts: int
    """Lines that were written for the key."""


@dataclass(slots=True)
class SampleIndex:
    """All keys of a samples file; replies stay on disk."""

    entries: dict[Key, Entry] = field(default_factory=dict)
    torn: int = 0
    """Bytes of a last line that was cut off."""
    repeated: int = 0
    """Lines that repeat another one word for word."""
    size: int = 0
    """Bytes of the whole lines."""

    def by_question(self) -> dict[str, list[Key]]:
        """The keys of each question, greedy ones first, in the order of their numbers."""
        keys: dict[str, list[Key]] = {}
        for key in sorted(self.entries, key=lambda key: key[1:]):
            keys.setdefault(key[0], []).append(key)
        return keys


class RunFolder:
    """A run on disk, held by one process at a time while it is written."""

    def __init__(self, folder: Path) -> None:
        """The run in a folder, which :meth:`claim` makes or finds."""
        self.folder = folder
        self.samples = folder / SAMPLES
        self._file: IO[bytes] | None = None

    def claim(self, manifest: RunManifest) -> SampleIndex:
        """Start the run, or go on with it where its manifest is the same.

        Returns:
            The samples that are there.

        Raises:
            InputError: If the folder holds something else or another process writes to it.
        """
        wanted = manifest.as_json()
        path = self.folder / MANIFEST
        if path.exists():
            difference = differing_field(read_manifest(self.folder), wanted)
            if difference:
                raise InputError(
                    f"{self.folder} is a run of another configuration: {difference}; "
                    f"choose another folder"
                )
        elif self.folder.exists() and (
            not self.folder.is_dir() or any(p.name != SAMPLES for p in self.folder.iterdir())
        ):
            raise InputError(f"{self.folder} exists and holds no run; choose another folder")
        elif self.samples.exists() and self.samples.stat().st_size:
            raise InputError(f"{self.folder} has samples and no {MANIFEST}; choose another folder")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.hold()
            if not path.exists():
                _replace(path, json.dumps(wanted, indent=1) + "\n")
        except OSError as error:
            raise InputError(f"{self.folder} cannot be written: {error.strerror}") from None
        index = scan(self.samples)
        if index.torn:
            assert self._file is not None
            self._file.truncate(index.size)
        return index

    def hold(self) -> None:
        """Keep other processes from writing to the run.

        Raises:
            InputError: If another process writes to it.
        """
        file = self.samples.open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise InputError(f"another process writes to {self.folder}") from None
        self._file = file

    def append(self, record: SampleRecord) -> None:
        """Write a record; it is with the operating system when this returns."""
        assert self._file is not None
        self._file.write(record.line())
        self._file.flush()

    def close(self) -> None:
        """Let another process write to the run."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        """The run itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the run."""
        self.close()

    def records(self, index: SampleIndex, keys: list[Key]) -> list[SampleRecord]:
        """The records of keys, read from where they stand."""
        found = []
        with self.samples.open("rb") as file:
            for key in keys:
                entry = index.entries[key]
                file.seek(entry.offset)
                found.append(_RECORD.validate_json(file.read(entry.length)))
        return found

    def rewrite(self, records: Iterator[SampleRecord]) -> None:
        """Replace all samples at once; an interruption leaves the old ones."""
        temporary = self.samples.with_name(SAMPLES + ".part")
        with temporary.open("wb") as file:
            for record in records:
                file.write(record.line())
        temporary.replace(self.samples)

    def write_json(self, name: str, data: Mapping[str, Any]) -> None:
        """Write a file of the run at once."""
        _replace(self.folder / name, json.dumps(data, indent=1) + "\n")


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a run.

    Raises:
        InputError: If the folder holds no run that this version can read.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise InputError(f"{folder} is no run: it has no {MANIFEST}")
    manifest = read_json(path)
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        found = manifest.get("schema") if isinstance(manifest, dict) else None
        raise InputError(f"{path} has the schema {found}; this version reads {SCHEMA}")
    return manifest


def scan(path: Path) -> SampleIndex:
    """The keys of a samples file.

    A torn last line is left out. Lines that are the same word for word are one; a later line
    replaces one that failed.

    Raises:
        InputError: If a whole line is no record, or a key has two different ones.
    """
    index = SampleIndex()
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    index.torn = len(line)
                    break
                _add(index, line, f"{path} line {number}")
                index.size += len(line)
    except FileNotFoundError:
        raise InputError(f"{path} is missing") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    return index


def _add(index: SampleIndex, line: bytes, where: str) -> None:
    try:
        record = _RECORD.validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{where} is no sample: {place} {first['msg']}") from None
    line_hash = hashlib.blake2b(line, digest_size=8).digest()
    old = index.entries.get(record.key)
    if old is not None and old.generated:
        if old.line_hash == line_hash:
            index.repeated += 1
        elif record.generated:
            name, decode, sample = record.key
            raise InputError(f"{where} gives {decode} sample {sample} of {name} another reply")
        return
    index.entries[record.key] = Entry(
        offset=index.size,
        length=len(line),
        line_hash=line_hash,
        prompt_hash=record.prompt_hash,
        state=record.state,
        generated=record.generated,
        attempts=1 + (old.attempts if old else 0),
    )
