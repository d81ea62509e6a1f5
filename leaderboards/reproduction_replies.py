"""Raw replies of held-out evaluations as zstd Parquet: one file a cell, or one in all."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leaderboards.parquet import read_columns
from leaderboards.reproduction_cells import REPLIES, VECTORS, Key
from npbench.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from leaderboards.reproduction_evaluation import Sample

__all__ = [
    "gather_replies",
    "gather_vectors",
    "read_replies",
    "read_vectors",
    "write_replies",
]

_KEY = ("base", "arm", "seed", "step", "split")
_ORDER = ("id", "decode", "sample")


def _schema() -> "pa.Schema":
    import pyarrow as pa

    word = pa.dictionary(pa.int32(), pa.string())
    return pa.schema(
        [
            ("id", word),
            ("task", word),
            ("decode", word),
            ("sample", pa.int16()),
            ("seed_of_sample", pa.int64()),
            ("reply", pa.string()),
            ("finish_reason", word),
            ("num_tokens", pa.int32()),
            ("entropy", pa.float32()),
            ("state", word),
            ("score", pa.float32()),
            ("objective", pa.int64()),
            ("vector", pa.list_(pa.float32())),
        ]
    )


def _key_schema() -> "pa.Schema":
    """The columns of replies with those of their cell's key before them."""
    import pyarrow as pa

    kinds = (pa.string(), pa.string(), pa.int32(), pa.int32(), pa.string())
    key = [pa.field(name, kind) for name, kind in zip(_KEY, kinds, strict=True)]
    return pa.schema([*key, *_schema()])


def write_replies(path: Path, samples: Sequence["Sample"]) -> None:
    """Writes the replies of one cell, whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [
        {
            "id": one.record.id,
            "task": one.task,
            "decode": one.record.decode,
            "sample": one.record.sample,
            "seed_of_sample": one.record.seed,
            "reply": (one.record.reply or "").encode(errors="replace").decode(),
            "finish_reason": one.record.finish_reason,
            "num_tokens": one.record.num_tokens,
            "entropy": one.entropy,
            "state": one.record.state.value,
            "score": one.record.score,
            "objective": one.record.objective,
            "vector": None if one.vector is None else list(one.vector),
        }
        for one in samples
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    table = pa.Table.from_pylist(rows, schema=_schema())
    pq.write_table(table, part, compression="zstd", compression_level=12)
    part.replace(path)


def gather_replies(folder: Path, keys: Sequence[Key], out: Path) -> int:
    """Puts the replies of cells into one file, with the cells' keys as columns; returns its bytes.

    All replies to a question stand together, which is what makes the file small. Seeds of samples
    are left out, because they follow from the key (:func:`trainers.rollouts.sample_seed` of the
    run's seed, ``held-out SPLIT``, the question and the number), and vectors, which
    :func:`gather_vectors` keeps.

    Raises:
        InputError: If the replies of a cell are missing.
    """
    left_out = ("seed_of_sample", "vector")
    return _gather(folder, keys, out, lambda table: table.drop_columns(list(left_out)))


def gather_vectors(folder: Path, keys: Sequence[Key], out: Path) -> int:
    """Puts the vectors of cells that have any into one file; returns its bytes.

    Raises:
        InputError: If the replies of a cell are missing.
    """
    import pyarrow.compute as pc

    names = ["id", "decode", "sample", "vector"]
    return _gather(
        folder, keys, out, lambda table: table.select(names).filter(pc.is_valid(table["vector"]))
    )


def _gather(
    folder: Path, keys: Sequence[Key], out: Path, taken: "Callable[[pa.Table], pa.Table]"
) -> int:
    """Writes what is taken of each cell's replies into one sorted file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts = []
    for key in keys:
        path = key.replies(folder)
        if not path.is_file():
            raise InputError(f"{path} is missing: the replies of a cell")
        table = taken(read_columns(path, _schema().names))
        for name in _KEY:
            kind = _key_schema().field(name).type
            column = pa.repeat(pa.scalar(getattr(key, name), kind), table.num_rows)
            table = table.append_column(name, column)
        parts.append(table)
    whole = _sorted(pa.concat_tables(parts), ("split", "id", *_KEY[:-1], "decode", "sample"))
    pq.write_table(
        whole, out, compression="zstd", compression_level=19, row_group_size=len(whole) or None
    )
    return out.stat().st_size


def _sorted(table: "pa.Table", names: Sequence[str]) -> "pa.Table":
    return table.sort_by([(name, "ascending") for name in names])


def read_replies(folder: Path, *, collected: bool) -> Iterator[tuple[Key, list[dict[str, Any]]]]:
    """The rows of every cell that has replies, of a folder in either form, a cell at a time.

    Rows come question by question, the greedy one first, then by their numbers.

    Args:
        folder: Of a reproduction.
        collected: Whether its replies stand in one file.

    Raises:
        InputError: If a file is missing, cannot be read or holds something else.
    """
    names = [name for name in _schema().names if name not in ("seed_of_sample", "vector")]
    if not collected:
        for path in sorted((folder / "replies").rglob("*.parquet")):
            yield _key_of(path, folder), _sorted(_read(path, names), _ORDER).to_pylist()
        return
    if not (folder / REPLIES).is_file():
        raise InputError(f"{folder} has no {REPLIES}: there is nothing to grade again")
    whole = _sorted(_read(folder / REPLIES, [*_KEY, *names]), (*_KEY, *_ORDER))
    start = 0
    for place, run in groupby(zip(*(whole[name].to_pylist() for name in _KEY), strict=True)):
        count = sum(1 for _ in run)
        rows = whole.slice(start, count).drop_columns(list(_KEY))
        start += count
        yield Key(*place), rows.to_pylist()


def _key_of(path: Path, folder: Path) -> Key:
    """The cell of a file of replies, from where it stands.

    Raises:
        InputError: If it stands where no cell's replies do.
    """
    parts = path.relative_to(folder / "replies").with_suffix("").parts
    match = re.fullmatch(r"([^/]+)/([^/]+)/seed-(\d+)/step-(\d+)/([^/]+)", "/".join(parts))
    if match is None:
        raise InputError(f"{path} stands where no cell's replies do")
    base, arm, seed, step, split = match.groups()
    return Key(base, arm, int(seed), int(step), split)


def _read(path: Path, names: Sequence[str]) -> "pa.Table":
    """Columns of replies, of the types that they were written with."""
    return read_columns(path, names, kinds=_key_schema(), nullable=("objective",), only=True)


def read_vectors(
    folder: Path, keys: Sequence[Key]
) -> dict[Key, list[tuple[str, tuple[float, ...]]]]:
    """Question and vector of the kept replies of some cells, of a folder in either form."""
    found: dict[Key, list[tuple[str, tuple[float, ...]]]] = {}
    wanted = set(keys)
    for key, row in _kept_rows(folder, keys):
        if key in wanted:
            found.setdefault(key, []).append((row["id"], tuple(row["vector"])))
    return found


def _kept_rows(folder: Path, keys: Sequence[Key]) -> Iterator[tuple[Key, dict[str, Any]]]:
    """Rows that have a vector, question by question."""
    import pyarrow.compute as pc

    def rows(path: Path, columns: Sequence[str]) -> list[dict[str, Any]]:
        table = read_columns(path, [*columns, *_ORDER, "vector"], only=True)
        kept = _sorted(table.filter(pc.is_valid(table["vector"])), _ORDER)
        found: list[dict[str, Any]] = kept.to_pylist()
        return found

    if (folder / VECTORS).is_file():
        for row in rows(folder / VECTORS, _KEY):
            yield Key(*(row[name] for name in _KEY)), row
    for key in keys:
        if key.replies(folder).is_file():
            for row in rows(key.replies(folder), ()):
                yield key, row
