"""Packs a run into a compact submission: a manifest, and the raw replies as zstd Parquet."""

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from evaluators.summary import METRICS
from leaderboards.formats import plain
from leaderboards.submission_files import PACKED, raw_samples, read_submission
from leaderboards.submission_records import (
    SUBMISSION,
    SUBMISSION_SCHEMA,
    RawSample,
    SubmissionManifest,
    checked,
)
from npbench.errors import InputError

__all__ = ["pack", "write_samples"]

_FIELDS = tuple(RawSample.__dataclass_fields__)
_INTEGERS = ("sample", "num_tokens")
_ROWS = 1000


def pack(
    run: Path,
    out: Path,
    *,
    name: str | None = None,
    link: str | None = None,
    contact: str | None = None,
) -> int:
    """Write the compact form of a run; returns its number of samples.

    Failed attempts that a later line replaces are left out, and so is every verdict.

    Args:
        run: A run of ``npbench eval``.
        out: Must not exist, or be empty.
        name: How the leaderboard calls it; default: the model's name.
        link: Where to read about it.
        contact: Whom to ask; never published.

    Raises:
        InputError: If the folder holds something, or the run cannot be read.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} is not empty; choose another folder")
    submission = read_submission(run)
    if submission.kind != "run":
        raise InputError(f"{run} is packed already")
    origin = submission.manifest.model_dump(
        mode="json", exclude={"benchmark", "grader"}, exclude_none=True
    )
    wanted = {f"overall.{metric}": metric for metric in METRICS}
    manifest = {
        "schema": SUBMISSION_SCHEMA,
        "name": plain(submission.name if name is None else name),
        **({} if link is None else {"link": link}),
        **({} if contact is None else {"contact": contact}),
        "benchmark": {"name": submission.split, "hash": submission.dataset_hash},
        **origin,
        "claims": {wanted[key]: value for key, value in submission.claims.items() if key in wanted},
    }
    checked(SubmissionManifest, manifest, "the submission")
    out.mkdir(parents=True, exist_ok=True)
    count = write_samples(out / PACKED, _last_attempts(raw_samples(submission)))
    text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    (out / SUBMISSION).write_text(text, encoding="utf-8")
    return count


def _last_attempts(samples: Iterable[RawSample]) -> Iterator[RawSample]:
    """The samples with a reply as they come, then those that never got one."""
    failed: dict[tuple[str, str, int], RawSample] = {}
    for sample in samples:
        key = (sample.id, sample.decode, sample.sample)
        if sample.reply is None:
            failed[key] = sample
        else:
            failed.pop(key, None)
            yield sample
    yield from failed.values()


def write_samples(path: Path, samples: Iterable[RawSample]) -> int:
    """Write raw samples as zstd Parquet; returns how many there are."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [(name, pa.int64() if name in _INTEGERS else pa.string()) for name in _FIELDS]
    )
    left = iter(samples)
    count = 0
    with pq.ParquetWriter(path, schema, compression="zstd", compression_level=12) as writer:
        while rows := list(islice(left, _ROWS)):
            count += len(rows)
            writer.write_table(pa.Table.from_pylist([_plain(row) for row in rows], schema=schema))
    return count


def _plain(sample: RawSample) -> dict[str, Any]:
    row = {name: getattr(sample, name) for name in _FIELDS}
    if sample.reply is not None:
        row["reply"] = sample.reply.encode(errors="replace").decode()
    return row
