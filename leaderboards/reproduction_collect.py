"""Collects a reproduction for keeping: a few small files, without checkpoints."""

import gzip
import json
from pathlib import Path
from typing import Any

from leaderboards.reproduction_cells import (
    CELLS,
    CURVES,
    MANIFEST,
    REPLIES,
    VECTORS,
    Collected,
    Key,
    Results,
    read_results,
    write_json,
)
from leaderboards.reproduction_replies import gather_replies, gather_vectors
from leaderboards.reproduction_table import seeds_of
from npbench.errors import InputError

__all__ = ["MAX_BYTES", "collect"]

MAX_BYTES = 10_000_000
"""What a collected folder may hold."""
_SPARE = 4000
"""What the manifest says more than the one that is there: which seeds were kept."""


def collect(folder: Path, out: Path, *, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Puts manifest, cells, curves and raw replies into ``out``; returns what was taken.

    Where the replies of all seeds would be too large, those of the last seeds are left out, and the
    manifest says which; the numbers of all cells stay.

    Raises:
        InputError: If the folder is no reproduction or is collected already, ``out`` holds
            something, or not even one seed's replies fit.
    """
    results = read_results(folder)
    if (folder / CELLS).is_file():
        raise InputError(f"{folder} is collected already")
    if not results.cells:
        raise InputError(f"{folder} has no finished cell yet")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} is not empty; choose another folder")
    out.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps(cell.model_dump(mode="json", by_alias=True), ensure_ascii=False)
        for cell in results.cells.values()
    ]
    text = "\n".join(lines) + "\n"
    (out / CELLS).write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
    _write_curves(results, out / CURVES)
    gather_vectors(folder, list(results.cells), out / VECTORS)
    used = sum(path.stat().st_size for path in (*out.iterdir(), folder / MANIFEST))
    left = max_bytes - used - _SPARE
    if left < 0:
        raise InputError(f"all but the replies takes {used} bytes, {max_bytes} may be kept")
    seeds = _fitting_replies(folder, results, out / REPLIES, left)
    taken = Collected(
        cells=len(results.cells),
        curves=len(results.curves),
        replies_of_seeds=tuple(seeds),
        replies_left_out_of_seeds=tuple(s for s in seeds_of(results) if s not in seeds),
    )
    manifest = results.manifest.model_copy(update={"collected": taken})
    write_json(out / MANIFEST, manifest.model_dump(mode="json", by_alias=True))
    return {
        **taken.model_dump(mode="json"),
        "bytes": sum(path.stat().st_size for path in out.iterdir()),
    }


def _fitting_replies(folder: Path, results: Results, path: Path, left: int) -> list[int]:
    """Writes the replies of as many seeds as fit, from the first on; returns these seeds."""
    seeds = seeds_of(results)
    while seeds:
        keys: list[Key] = [key for key in results.cells if key.seed in set(seeds)]
        size = gather_replies(folder, keys, path)
        if size <= left:
            return seeds
        kept = min(len(seeds) - 1, int(len(seeds) * left / size))
        seeds = seeds[:kept]
    path.unlink()
    raise InputError(f"the replies of one seed do not fit into {left} bytes")


def _write_curves(results: Results, path: Path) -> None:
    """All curves in one Parquet file, a row a step."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    word = pa.dictionary(pa.int32(), pa.string())
    names = dict.fromkeys(n for c in results.curves for n in c.columns if n != "step")
    columns: dict[str, list[Any]] = {"base": [], "arm": [], "seed": [], "step": []}
    columns |= {name: [] for name in names}
    for curve in results.curves:
        steps = curve.columns["step"]
        for name, value in (("base", curve.base), ("arm", curve.arm), ("seed", curve.seed)):
            columns[name] += [value] * len(steps)
        columns["step"] += list(steps)
        for name in names:
            columns[name] += list(curve.columns.get(name) or [None] * len(steps))
    kinds = {"base": word, "arm": word, "seed": pa.int32(), "step": pa.int32()}
    schema = pa.schema([(name, kinds.get(name, pa.float32())) for name in columns])
    pq.write_table(pa.table(columns, schema=schema), path, compression="zstd", compression_level=19)
