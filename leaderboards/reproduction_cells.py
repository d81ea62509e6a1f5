"""The files of a reproduction: its manifest, one small file a cell, one a learning curve.

``STUDY.json`` says what was run; ``cells/BASE/ARM/seed-S/step-N/SPLIT.json`` holds the numbers of
one checkpoint on one split, ``replies/...parquet`` its raw replies, ``curves/BASE/ARM/seed-S.json``
what a training logged. A collected folder holds the same in four files.
"""

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from leaderboards.parquet import read_columns
from npbench.console import read_json
from npbench.errors import InputError

__all__ = [
    "CELLS",
    "CURVES",
    "MANIFEST",
    "REPLIES",
    "SCHEMA",
    "VECTORS",
    "Cell",
    "Collected",
    "Curve",
    "Key",
    "Manifest",
    "Results",
    "read_manifest",
    "read_results",
    "write_json",
]

SCHEMA = 1
MANIFEST = "study.json"
CELLS = "cells.jsonl.gz"
CURVES = "curves.parquet"
REPLIES = "replies.parquet"
VECTORS = "vectors.parquet"
"""The four files of a collected folder."""


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """What no other cell of a reproduction has."""

    base: str
    arm: str
    seed: int
    step: int
    split: str

    @property
    def run(self) -> str:
        """The training that made the checkpoint, as a path."""
        return f"{self.base}/{self.arm}/seed-{self.seed}"

    def cell(self, folder: Path) -> Path:
        """The cell's file."""
        return folder / "cells" / self.run / f"step-{self.step}" / f"{self.split}.json"

    def replies(self, folder: Path) -> Path:
        """The file of its raw replies."""
        return folder / "replies" / self.run / f"step-{self.step}" / f"{self.split}.parquet"

    def curve(self, folder: Path) -> Path:
        """The file of its training's curve."""
        return folder / "curves" / f"{self.run}.json"


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: Literal[1] = Field(default=1, alias="schema")


class Cell(_Stored):
    """The numbers of one checkpoint on one held-out split."""

    base: str
    arm: str
    seed: int
    step: int
    """Training steps that the checkpoint has seen; 0 for the base."""
    split: str
    protocol: str
    """Hash of the preset's protocol."""
    fingerprint: str
    """Of the base's weights."""
    questions: int
    samples: int
    metrics: dict[str, float | None]
    """Means over questions; null where undefined."""
    tasks: dict[str, dict[str, float | None]]
    """The same by task."""
    states: dict[str, int]
    floors: dict[str, float]
    """Quality ratio of each floor; none on questions that are no NP tasks."""
    reasons: dict[str, str]
    """Why a metric is null."""
    cost: dict[str, float | None]
    versions: dict[str, str]
    commit: str | None

    @property
    def key(self) -> Key:
        """Its place."""
        return Key(self.base, self.arm, self.seed, self.step, self.split)


@dataclass(frozen=True, slots=True)
class Curve:
    """What one training logged at each step."""

    base: str
    arm: str
    seed: int
    columns: Mapping[str, Sequence[float | None]]
    """Name -> values; ``step`` is one of them."""

    def values(self, name: str) -> tuple[Sequence[float | None], Sequence[float | None]]:
        """Steps and values of a number; empty where it was not logged."""
        found = self.columns.get(name, ())
        return (self.columns["step"], found) if found else ((), ())


class BaseOrigin(BaseModel):
    """Where a base came from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    """Its name; of a folder the last part alone."""
    fingerprint: str


class Call(BaseModel):
    """One call of the command on the folder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: str
    commit: str | None
    started: str
    versions: dict[str, str]


class Collected(BaseModel):
    """What a collected folder holds, and what was left out of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cells: int
    curves: int
    replies_of_seeds: tuple[int, ...]
    replies_left_out_of_seeds: tuple[int, ...]


class Manifest(_Stored):
    """What was run in a folder."""

    kind: Literal["npbench reproduction"] = "npbench reproduction"
    preset: str
    protocol: dict[str, Any]
    protocol_hash: str
    bases: dict[str, BaseOrigin]
    studies: tuple[str, ...]
    calls: tuple[Call, ...]
    collected: Annotated[Collected | None, BeforeValidator(lambda given: given or None)] = None
    """In a collected folder."""

    @property
    def marker(self) -> str:
        """Stands above every output."""
        return str(self.protocol.get("marker", ""))


@dataclass(frozen=True, slots=True)
class Results:
    """Everything that a reproduction has found so far."""

    manifest: Manifest
    cells: Mapping[Key, Cell]
    curves: tuple[Curve, ...] = field(default=())

    def splits(self) -> list[str]:
        """The splits that have cells, in the preset's order."""
        found = {key.split for key in self.cells}
        stated = [one["name"] for one in self.manifest.protocol["evaluation"]["splits"]]
        return [name for name in stated if name in found]

    def last_step(self) -> int:
        """Steps of a whole training."""
        return int(self.manifest.protocol["training"]["steps"])


def write_json(path: Path, value: Any) -> None:
    """Writes a JSON file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    text = json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False)
    part.write_text(text + "\n", encoding="utf-8")
    part.replace(path)


def _checked(kind: type[Any], value: Any, where: str) -> Any:
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        if first["loc"] == ("schema",):
            raise InputError(
                f"{where} has schema {first['input']!r}, this version reads {SCHEMA}"
            ) from None
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise InputError(f"{where}: {place}: {first['msg'].lower()}") from None


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a folder.

    Raises:
        InputError: If there is none, or it is of another schema.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise InputError(f"{folder} is no reproduction: it has no {MANIFEST}")
    found: Manifest = _checked(Manifest, read_json(path), str(path))
    return found


def read_results(folder: Path) -> Results:
    """Everything found in a folder, collected or not.

    Raises:
        InputError: If it is no reproduction, or a file in it is of another schema or protocol.
    """
    manifest = read_manifest(folder)
    cells: dict[Key, Cell] = {}
    for where, value in _stored_cells(folder):
        cell: Cell = _checked(Cell, value, where)
        if cell.protocol != manifest.protocol_hash:
            raise InputError(f"{where} is of another protocol than {folder / MANIFEST}")
        origin = manifest.bases.get(cell.base)
        if origin is None or origin.fingerprint != cell.fingerprint:
            raise InputError(f"{where} is of another base {cell.base} than {folder / MANIFEST}")
        if cell.key in cells:
            raise InputError(f"{where} is there twice")
        cells[cell.key] = cell
    curves = sorted(_stored_curves(folder), key=lambda c: (c.base, c.arm, c.seed))
    return Results(manifest, dict(sorted(cells.items())), tuple(curves))


def _stored_cells(folder: Path) -> Iterator[tuple[str, Any]]:
    if (folder / CELLS).is_file():
        try:
            lines = gzip.decompress((folder / CELLS).read_bytes()).decode().rstrip("\n").split("\n")
        except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
            raise InputError(f"{folder / CELLS} cannot be read: {error}") from None
        for number, line in enumerate(lines, start=1):
            try:
                yield f"{folder / CELLS}, line {number}", json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{folder / CELLS}, line {number}: {error}") from None
    for path in sorted((folder / "cells").rglob("*.json")):
        yield str(path), read_json(path)


def _stored_curves(folder: Path) -> Iterator[Curve]:
    if (folder / CURVES).is_file():
        rows = read_columns(folder / CURVES, ("base", "arm", "seed", "step")).to_pylist()
        grouped: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
        for row in rows:
            run = (row.pop("base"), row.pop("arm"), row.pop("seed"))
            grouped.setdefault(run, []).append(row)
        for (base, arm, seed), steps in grouped.items():
            yield Curve(base, arm, seed, {name: [s[name] for s in steps] for name in steps[0]})
    for path in sorted((folder / "curves").rglob("*.json")):
        value = read_json(path)
        if value.get("schema") != SCHEMA:
            raise InputError(
                f"{path} has schema {value.get('schema')!r}, this version reads {SCHEMA}"
            )
        yield Curve(value["base"], value["arm"], value["seed"], value["columns"])
