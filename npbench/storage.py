"""Splits on disk: Parquet shards, a manifest and a dataset card, built on all cores, resumable.

While a split is built its finished chunks lie in ``DIR/.building``; an interrupted build goes on
from there. Shards are written from the chunks in order, the manifest last, so a folder with a
manifest is whole. The bytes do not depend on the number of processes.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from importlib.metadata import version as library_version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from npbench.errors import InputError
from npbench.manifest import Tally
from npbench.splits import COLUMNS, INTEGER_COLUMNS, Request, Row, make_rows

__all__ = ["StoredSplit", "build_split", "open_split"]

CHUNK_UNITS = 16
"""Instances per chunk, the unit of work that a process finishes and an interruption keeps."""
SHARD_ROWS = 1000
ROW_GROUP = 100

_UNFINISHED = ".building"


def _schema() -> Any:
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


def _table(rows: list[Row]) -> Any:
    import pyarrow as pa

    plain = [asdict(row) for row in rows]
    for row in plain:
        if row["image"] is not None:
            row["image"] = {"bytes": row["image"], "path": f"{row['id']}.png"}
    return pa.Table.from_pylist(plain, schema=_schema())


def _write_chunk(request: Request, chunk: int, path: str) -> int:
    """Make the rows of a chunk and write them; runs in a process of its own."""
    import pyarrow.parquet as pq

    first = chunk * CHUNK_UNITS
    units = range(first, min(first + CHUNK_UNITS, request.num_units))
    rows = [row for position in units for row in make_rows(request, request.unit(position))]
    temporary = f"{path}.part"
    pq.write_table(_table(rows), temporary, compression="zstd")
    Path(temporary).replace(path)
    return len(rows)


def _quiet_worker() -> None:
    """Leave an interruption to the main process."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


def build_split(
    request: Request,
    folder: Path,
    *,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
    expected_hash: str | None = None,
) -> dict[str, Any]:
    """Build a split in ``folder``, or go on with an interrupted build of the same request.

    Args:
        request: What to build.
        folder: Empty, missing, or holding an unfinished build of the same request.
        workers: Processes; 1 works in this process.
        progress: Called with (rows made, rows in all), the rows of earlier sessions included.
        expected_hash: The content hash of an official split; another one is an error.

    Returns:
        The manifest.

    Raises:
        InputError: If the folder holds something else; nothing is overwritten.
    """
    unfinished = _claim(folder, request)
    total = request.num_units * request.rows_per_unit
    chunks = -(-request.num_units // CHUNK_UNITS)
    paths = [unfinished / f"chunk-{chunk:06d}.parquet" for chunk in range(chunks)]
    missing = [chunk for chunk in range(chunks) if not paths[chunk].exists()]
    rows_of_chunk = CHUNK_UNITS * request.rows_per_unit
    done = total - sum(min(rows_of_chunk, total - chunk * rows_of_chunk) for chunk in missing)

    def finished(count: int) -> None:
        nonlocal done
        done += count
        if progress:
            progress(done, total)

    finished(0)
    if workers == 1:
        for chunk in missing:
            finished(_write_chunk(request, chunk, str(paths[chunk])))
    else:
        _in_processes(request, missing, paths, workers, finished)
    manifest = _assemble(request, folder, paths, expected_hash)
    shutil.rmtree(unfinished)
    return manifest


def _claim(folder: Path, request: Request) -> Path:
    """The folder of unfinished work, made or found to belong to the same request."""
    if (folder / "manifest.json").exists():
        raise InputError(f"{folder} already holds a split; choose another folder")
    unfinished = folder / _UNFINISHED
    stated = unfinished / "request.json"
    wanted = request.as_json()
    if stated.exists():
        found = json.loads(stated.read_text(encoding="utf-8"))
        wanted = json.loads(json.dumps(wanted))
        for key in wanted:
            if found.get(key) != wanted[key]:
                raise InputError(
                    f"{folder} holds an unfinished build with {key} = {found.get(key)}, not "
                    f"{wanted[key]}; finish it with its own options or choose another folder"
                )
        return unfinished
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder} is not empty and holds no split; choose another folder")
    unfinished.mkdir(parents=True)
    stated.write_text(json.dumps(wanted, indent=1) + "\n", encoding="utf-8")
    return unfinished


def _in_processes(
    request: Request,
    missing: list[int],
    paths: list[Path],
    workers: int,
    finished: Callable[[int], None],
) -> None:
    """Make chunks in ``workers`` processes, a few ahead of them queued."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    queue = iter(missing)
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_quiet_worker)
    pending: set[Future[int]] = set()
    try:
        while True:
            for chunk in queue:
                pending.add(pool.submit(_write_chunk, request, chunk, str(paths[chunk])))
                if len(pending) >= 2 * workers:
                    break
            if not pending:
                break
            ready, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in ready:
                finished(future.result())
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _assemble(
    request: Request, folder: Path, paths: list[Path], expected_hash: str | None
) -> dict[str, Any]:
    """Write the shards from the chunks, then the card, then the manifest."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = folder / "data"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir()
    total = request.num_units * request.rows_per_unit
    count = -(-total // SHARD_ROWS)
    tally = Tally()
    buffered: list[Any] = []
    names: list[str] = []

    def flush(rows: int) -> None:
        name = f"data/{request.split}-{len(names):05d}-of-{count:05d}.parquet"
        table = pa.concat_tables(buffered)
        pq.write_table(
            table.slice(0, rows), folder / name, compression="zstd", row_group_size=ROW_GROUP
        )
        names.append(name)
        buffered[:] = [table.slice(rows)]

    for path in paths:
        table = pq.read_table(path, schema=_schema())
        for row in table.to_pylist():
            tally.add(row)
        buffered.append(table)
        while sum(part.num_rows for part in buffered) >= SHARD_ROWS:
            flush(SHARD_ROWS)
    rest = sum(part.num_rows for part in buffered)
    if rest:
        flush(rest)
    content_hash = tally.content_hash()
    if expected_hash and content_hash != expected_hash:
        raise InputError(
            f"the content hash {content_hash} is not the official {expected_hash}: other library "
            f"versions than the pinned ones draw or solve differently, so scores would not compare"
        )
    manifest = {
        "schema": 1,
        "version": tally.version,
        "command": request.command(),
        "parameters": request.as_json(),
        **tally.summary(),
        "content_hash": content_hash,
        "shards": {name: _sha256(folder / name) for name in names},
        "libraries": {
            name: library_version(name)
            for name in ("npbench", "numpy", "ortools", "pillow", "pyarrow")
        },
    }
    (folder / "README.md").write_text(tally.card(request, manifest), encoding="utf-8")
    temporary = folder / "manifest.json.part"
    temporary.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    temporary.replace(folder / "manifest.json")
    return manifest


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
        if (folder / _UNFINISHED).exists():
            raise InputError(f"{folder} holds an unfinished build; run its generate command again")
        raise InputError(f"{folder} is no split: it has no manifest.json")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is no JSON file: {error}") from None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("shards"), dict):
        raise InputError(f"{path} is no split manifest: it lists no shards")
    for name, stated in manifest["shards"].items():
        shard = folder / name
        if not shard.is_file():
            raise InputError(f"{shard} is missing, though the manifest lists it")
        if _sha256(shard) != stated:
            raise InputError(f"{shard} does not match the sha256 of the manifest")
    return StoredSplit(folder, manifest)
