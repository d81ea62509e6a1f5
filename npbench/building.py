"""Builds splits on disk: on all cores, resumable, the same bytes on any number of processes.

While a split is built its finished chunks lie in ``DIR/.building``; an interrupted build goes on
from there. Shards are written from the chunks in order, the manifest last, so a folder with a
manifest is whole. A lock keeps a second process out.
"""

import fcntl
import io
import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import closing, contextmanager
from importlib.metadata import version as library_version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from npbench.console import read_json
from npbench.errors import InputError
from npbench.manifest import Tally
from npbench.splits import Request, make_rows
from npbench.storage import ROW_GROUP, SHARD_NAME, UNFINISHED, file_sha256, rows_table, split_schema

__all__ = [
    "CHUNK_UNITS",
    "SHARD_ROWS",
    "ChunkSource",
    "build_split",
    "chunk_positions",
    "libraries",
    "make_chunk",
]

CHUNK_UNITS = 16
"""Instances per chunk, the unit of work that a process finishes and an interruption keeps."""
SHARD_ROWS = 1000

ChunkSource = Callable[[Request, Iterator[int]], Generator[tuple[int, bytes], None, None]]
"""Makes chunks elsewhere: their numbers in, the numbers with Parquet files out in any order."""


def chunk_positions(request: Request, chunk: int) -> range:
    """The positions of a chunk's instances in the split."""
    first = chunk * CHUNK_UNITS
    return range(first, min(first + CHUNK_UNITS, request.num_units))


def make_chunk(request: Request, chunk: int) -> bytes:
    """The rows of a chunk as a Parquet file."""
    import pyarrow.parquet as pq

    units = chunk_positions(request, chunk)
    rows = [row for position in units for row in make_rows(request, request.unit(position))]
    file = io.BytesIO()
    pq.write_table(rows_table(rows), file, compression="zstd")
    return file.getvalue()


def _write_chunk(request: Request, chunk: int, path: str) -> int:
    """Make the rows of a chunk and write them; runs in a process of its own."""
    _keep(path, make_chunk(request, chunk))
    return _num_rows(request, chunk)


def _keep(path: str, data: bytes) -> None:
    """Write a chunk at once: its name stands for a whole file."""
    temporary = Path(f"{path}.part")
    temporary.write_bytes(data)
    temporary.replace(path)


def _num_rows(request: Request, chunk: int) -> int:
    return len(chunk_positions(request, chunk)) * request.rows_per_unit


def _follow_parent(parent: int) -> None:
    """End this process when the one that started it is gone, whatever ended it."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def build_split(
    request: Request,
    folder: Path,
    *,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
    expected_hash: str | None = None,
    elsewhere: ChunkSource | None = None,
) -> dict[str, Any]:
    """Build a split in ``folder``, or go on with an interrupted build of the same request.

    Args:
        request: What to build.
        folder: Empty, missing, or holding an unfinished build of the same request.
        workers: Processes; 1 works in this process.
        progress: Called with (rows made, rows in all), the rows of earlier sessions included.
        expected_hash: The content hash of an official split; another one is an error.
        elsewhere: Makes the chunks instead of ``workers``; this process alone writes them.

    Returns:
        The manifest.

    Raises:
        InputError: If the folder holds something else; nothing is overwritten.
    """
    unfinished = _claim(folder, request)
    with _locked(unfinished):
        _check_contents(folder)
        try:
            manifest = _build(
                request, folder, unfinished, workers, progress, expected_hash, elsewhere
            )
        except InputError:
            if not any(unfinished.glob("chunk-*")):
                shutil.rmtree(unfinished)  # nothing is lost, and the folder is free again
            raise
        shutil.rmtree(unfinished)
    return manifest


def _build(
    request: Request,
    folder: Path,
    unfinished: Path,
    workers: int,
    progress: Callable[[int, int], None] | None,
    expected_hash: str | None,
    elsewhere: ChunkSource | None,
) -> dict[str, Any]:
    total = request.num_units * request.rows_per_unit
    chunks = -(-request.num_units // CHUNK_UNITS)
    kept = {path.name for path in unfinished.iterdir() if _is_whole(path)}
    missing = (chunk for chunk in range(chunks) if _chunk_name(chunk) not in kept)
    rows_of_chunk = CHUNK_UNITS * request.rows_per_unit
    done = min(total, len(kept) * rows_of_chunk)

    def finished(count: int) -> None:
        nonlocal done
        done = min(total, done + count)
        if progress:
            progress(done, total)

    finished(0)
    if elsewhere is not None:
        with closing(elsewhere(request, missing)) as made:
            for chunk, data in made:
                _keep(str(unfinished / _chunk_name(chunk)), data)
                finished(_num_rows(request, chunk))
    elif workers == 1:
        for chunk in missing:
            finished(_write_chunk(request, chunk, str(unfinished / _chunk_name(chunk))))
    else:
        _in_processes(request, missing, unfinished, workers, finished)
    paths = (unfinished / _chunk_name(chunk) for chunk in range(chunks))
    return _assemble(request, folder, paths, expected_hash)


def _chunk_name(chunk: int) -> str:
    return f"chunk-{chunk:07d}.parquet"


def _is_whole(path: Path) -> bool:
    """Whether a chunk can be read; a damaged one is made again."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.suffix != ".parquet":
        return False
    try:
        pq.read_metadata(path)
    except pa.ArrowException:
        return False
    return True


@contextmanager
def _locked(unfinished: Path) -> Iterator[None]:
    """Keep a second process out of the folder while this one builds."""
    with (unfinished / "lock").open("w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"another process is building {unfinished.parent}") from None
        yield


def libraries() -> dict[str, str]:
    """The versions that the bytes of a split depend on."""
    names = ("npbench", "numpy", "ortools", "pillow", "pyarrow")
    return {name: library_version(name) for name in names}


def _claim(folder: Path, request: Request) -> Path:
    """The folder of unfinished work, made or found to belong to the same request."""
    if (folder / "manifest.json").exists():
        raise InputError(f"{folder} already holds a split; choose another folder")
    unfinished = folder / UNFINISHED
    stated = unfinished / "request.json"
    wanted = json.loads(json.dumps({**request.as_json(), "libraries": libraries()}))
    if stated.exists():
        found = read_json(stated)
        if not isinstance(found, dict):
            raise InputError(f"{stated} is damaged; remove {unfinished} to begin anew")
        for key in wanted:
            if found.get(key) != wanted[key]:
                raise InputError(
                    f"{folder} holds an unfinished build with {key} = {found.get(key)}, not "
                    f"{wanted[key]}; finish it with its own options or choose another folder"
                )
        return unfinished
    if folder.exists() and any(path.name != UNFINISHED for path in folder.iterdir()):
        raise InputError(f"{folder} is not empty and holds no split; choose another folder")
    unfinished.mkdir(parents=True, exist_ok=True)
    temporary = unfinished / "request.json.part"
    temporary.write_text(json.dumps(wanted, indent=1) + "\n", encoding="utf-8")
    temporary.replace(stated)
    return unfinished


def _check_contents(folder: Path) -> None:
    """Refuse to go on where somebody put files of their own beside the unfinished build."""
    ours = {UNFINISHED, "data", "README.md"}
    foreign = sorted({path.name for path in folder.iterdir()} - ours)
    if (folder / "data").is_dir():
        names = sorted(path.name for path in (folder / "data").iterdir())
        foreign += [name for name in names if not SHARD_NAME.fullmatch(name)]
    if foreign:
        raise InputError(f"{folder} holds {foreign[0]}, which is no part of the unfinished build")


def _in_processes(
    request: Request,
    missing: Iterator[int],
    unfinished: Path,
    workers: int,
    finished: Callable[[int], None],
) -> None:
    """Make chunks in ``workers`` processes, a few ahead of them queued."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    pool = ProcessPoolExecutor(
        workers,
        mp_context=get_context("spawn"),
        initializer=_follow_parent,
        initargs=(os.getpid(),),
    )
    pending: set[Future[int]] = set()
    # Processes inherit the mask: an interruption is the main process's alone from the start.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        while True:
            for chunk in missing:
                path = str(unfinished / _chunk_name(chunk))
                pending.add(pool.submit(_write_chunk, request, chunk, path))
                if len(pending) >= 2 * workers:
                    break
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            if not pending:
                break
            ready, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in ready:
                finished(future.result())
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        pool.shutdown(wait=True, cancel_futures=True)


def _assemble(
    request: Request, folder: Path, paths: Iterator[Path], expected_hash: str | None
) -> dict[str, Any]:
    """Write the shards from the chunks, then the card, then the manifest."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = folder / "data"
    data.mkdir(exist_ok=True)
    total = request.num_units * request.rows_per_unit
    count = -(-total // SHARD_ROWS)
    tally = Tally()
    buffered: list[Any] = []
    names: list[str] = []

    def flush(rows: int) -> None:
        name = f"data/{request.split}-{len(names):05d}-of-{count:05d}.parquet"
        table = pa.concat_tables(buffered)
        temporary = folder / UNFINISHED / "shard.part"
        pq.write_table(
            table.slice(0, rows), temporary, compression="zstd", row_group_size=ROW_GROUP
        )
        temporary.replace(folder / name)
        names.append(name)
        buffered[:] = [table.slice(rows)]

    for path in paths:
        table = pq.read_table(path, schema=split_schema())
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
        "shards": {name: file_sha256(folder / name) for name in names},
        "libraries": libraries(),
    }
    (folder / "README.md").write_text(tally.card(request, manifest), encoding="utf-8")
    temporary = folder / UNFINISHED / "manifest.json.part"
    temporary.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    temporary.replace(folder / "manifest.json")
    return manifest
