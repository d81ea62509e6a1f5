"""Splits on disk: the form of their files, and reading them with every doubt refused."""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from npbench.console import read_json
from npbench.errors import InputError
from npbench.splits import COLUMNS, INTEGER_COLUMNS, Row

__all__ = [
    "ROW_GROUP",
    "SHARD_NAME",
    "UNFINISHED",
    "StoredSplit",
    "file_sha256",
    "open_split",
    "rows_table",
    "split_schema",
]

ROW_GROUP = 100

UNFINISHED = ".building"
SHARD_NAME = re.compile(r"[a-z]+-[0-9]{5}-of-[0-9]{5}\.parquet")


def split_schema() -> Any:
    """The Arrow schema, with the metadata by which ``datasets`` shows the picture as an image."""
    import pyarrow as pa

    features: dict[str, Any] = {}
    fields = []
    for name in COLUMNS:
        if name == "image":
            kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
            features[name] = {"_type": "Image"}
        else:
            kind = pa.int64() if name in INTEGER_COLUMNS else pa.string()
            features[name] = {"dtype": str(kind), "_type": "Value"}
        fields.append(pa.field(name, kind))
    card = json.dumps({"info": {"features": features}})
    return pa.schema(fields, metadata={"huggingface": card})


def rows_table(rows: list[Row]) -> Any:
    """Rows as an Arrow table; a picture is its PNG bytes and a file name."""
    import pyarrow as pa

    plain = [asdict(row) for row in rows]
    for row in plain:
        if row["image"] is not None:
            row["image"] = {"bytes": row["image"], "path": f"{row['id']}.png"}
    return pa.Table.from_pylist(plain, schema=split_schema())


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes (hex)."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class _Parameters(BaseModel):
    """What is read of a manifest's parameters."""

    params: dict[str, int | list[int]]


class _Manifest(BaseModel):
    """What is read of a manifest."""

    version: str
    command: str
    content_hash: str
    rows: int = Field(ge=1)
    parameters: _Parameters
    shards: dict[Annotated[str, Field(pattern=rf"^data/{SHARD_NAME.pattern}$")], str] = Field(
        min_length=1
    )


@dataclass(frozen=True, slots=True)
class StoredSplit:
    """A split on disk whose shards agree with its manifest."""

    folder: Path
    manifest: dict[str, Any]

    def __len__(self) -> int:
        """Number of rows."""
        return int(self.manifest["rows"])

    def rows(self, columns: tuple[str, ...] = COLUMNS) -> Iterator[dict[str, Any]]:
        """The rows in order as dictionaries with the given columns; pictures as PNG bytes."""
        import pyarrow.parquet as pq

        for name in self.manifest["shards"]:
            shard = pq.ParquetFile(self.folder / name)
            for batch in shard.iter_batches(batch_size=ROW_GROUP, columns=list(columns)):
                for row in batch.to_pylist():
                    if row.get("image") is not None:
                        row["image"] = row["image"]["bytes"]
                    yield row

    def row(self, number: int) -> dict[str, Any]:
        """One row by its position.

        Raises:
            InputError: If there is no such row.
        """
        if not 0 <= number < len(self):
            raise InputError(f"row must lie in [0, {len(self) - 1}], got {number}")
        return next(row for i, row in enumerate(self.rows()) if i == number)


def open_split(folder: Path) -> StoredSplit:
    """A split on disk, its shards checked against the manifest.

    Raises:
        InputError: If the folder is no finished split, or a shard is missing, damaged or changed.
    """
    path = folder / "manifest.json"
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder")
    if not path.exists():
        if (folder / UNFINISHED).exists():
            raise InputError(f"{folder} holds an unfinished build; run its generate command again")
        raise InputError(f"{folder} is no split: it has no manifest.json")
    manifest = read_json(path)
    try:
        _Manifest.model_validate(manifest)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "it"
        raise InputError(f"{path} is no split manifest: {where}: {first['msg']}") from None
    for name, stated in manifest["shards"].items():
        shard = folder / name
        if not shard.is_file():
            raise InputError(f"{shard} is missing, though the manifest lists it")
        if file_sha256(shard) != stated:
            raise InputError(f"{shard} does not match the sha256 of the manifest")
    _check_shards(folder, manifest)
    return StoredSplit(folder, manifest)


def _check_shards(folder: Path, manifest: dict[str, Any]) -> None:
    """Refuse shards that are no Parquet files of our columns, or hold another number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = 0
    for name in manifest["shards"]:
        try:
            shard = pq.ParquetFile(folder / name)
        except pa.ArrowException as error:
            raise InputError(f"{folder / name} is no Parquet file: {error}") from None
        lacking = [column for column in COLUMNS if column not in shard.schema_arrow.names]
        if lacking:
            raise InputError(f"{folder / name} has no column {lacking[0]}")
        rows += shard.metadata.num_rows
    if rows != manifest["rows"]:
        raise InputError(f"{folder} holds {rows} rows, its manifest states {manifest['rows']}")
