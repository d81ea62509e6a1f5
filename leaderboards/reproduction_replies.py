"""Raw replies of held-out evaluations as zstd Parquet: one file a cell, or one in all."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leaderboards.reproduction_cells import REPLIES, Key
from npbench.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from leaderboards.reproduction_evaluation import Sample

__all__ = ["gather_replies", "read_vectors", "write_replies"]

_KEY = ("base", "arm", "seed", "step", "split")


def _schema(*, keyed: bool) -> "pa.Schema":
    import pyarrow as pa

    word = pa.dictionary(pa.int32(), pa.string())
    key = [("base", word), ("arm", word), ("seed", pa.int32()), ("step", pa.int32())]
    return pa.schema(
        [
            *([*key, ("split", word)] if keyed else []),
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
    table = pa.Table.from_pylist(rows, schema=_schema(keyed=False))
    pq.write_table(table, part, compression="zstd", compression_level=12)
    part.replace(path)


def gather_replies(folder: Path, keys: Sequence[Key], out: Path) -> int:
    """Puts the replies of cells into one file, with the cells' keys as columns; returns its bytes.

    Raises:
        InputError: If the replies of a cell are missing.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = _schema(keyed=True)
    with pq.ParquetWriter(out, schema, compression="zstd", compression_level=19) as writer:
        for key in keys:
            path = key.replies(folder)
            if not path.is_file():
                raise InputError(f"{path} is missing: the replies of a cell")
            rows = pq.read_table(path).to_pylist()
            whole = {name: getattr(key, name) for name in _KEY}
            writer.write_table(pa.Table.from_pylist([{**whole, **r} for r in rows], schema=schema))
    return out.stat().st_size


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
    """Rows that have a vector."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    def rows(path: Path, columns: Sequence[str]) -> list[dict[str, Any]]:
        table = pq.read_table(path, columns=[*columns, "id", "vector"])
        kept: list[dict[str, Any]] = table.filter(pc.is_valid(table["vector"])).to_pylist()
        return kept

    if (folder / REPLIES).is_file():
        for row in rows(folder / REPLIES, _KEY):
            yield Key(*(row[name] for name in _KEY)), row
    for key in keys:
        if key.replies(folder).is_file():
            for row in rows(key.replies(folder), ()):
                yield key, row
