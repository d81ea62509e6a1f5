"""Reads submissions: the manifest, what it claims, and the raw samples one by one, all bounded."""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evaluators.run_folder import MANIFEST, SAMPLES, read_manifest
from evaluators.sessions import SUMMARY
from leaderboards.formats import plain
from leaderboards.submission_records import (
    SUBMISSION,
    SUBMISSION_SCHEMA,
    RawSample,
    RunManifest,
    Submission,
    SubmissionManifest,
    checked,
)
from npbench.console import read_json
from npbench.errors import InputError

__all__ = ["PACKED", "claims_of_summary", "raw_samples", "read_submission"]

PACKED = "samples.parquet"

_MAX_JSON_BYTES = 16 << 20
_MAX_LINE_BYTES = 16 << 20
_MAX_TOTAL_BYTES = 4 << 30
"""Of all replies together."""
_BATCH = 64
_NEEDED = ("id", "decode", "sample", "reply")
_OPTIONAL = ("finish_reason", "stop_reason", "num_tokens", "prompt_hash", "image_hash")

_NOT_CLAIMED = frozenset(
    ("schema", "manifest", "torn_bytes", "repeated_lines", "official", "estimators", "errors",
     "reasoning_distance", "embedder", "reason", "mean_tokens")
)  # fmt: skip
"""Parts of a summary that do not follow from the replies alone, or are no numbers."""


def read_submission(folder: Path) -> Submission:
    """The manifest of a submission and what it claims.

    Raises:
        InputError: If there is no manifest, or anything is of another schema.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder")
    if (folder / SUBMISSION).is_file():
        return _compact(folder)
    if not (folder / MANIFEST).is_file():
        raise InputError(f"{folder} has no manifest: neither {MANIFEST} nor {SUBMISSION}")
    _bounded(folder / MANIFEST)
    run = checked(RunManifest, read_manifest(folder), folder / MANIFEST)
    return Submission(
        folder=folder,
        kind="run",
        name=run.model.name,
        link=None,
        contact=None,
        manifest=run,
        split=run.benchmark.version,
        dataset_hash=run.benchmark.dataset_hash,
        claims=_claims_of_run(folder),
    )


def _compact(folder: Path) -> Submission:
    path = folder / SUBMISSION
    _bounded(path)
    data = read_json(path)
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != SUBMISSION_SCHEMA:
        raise InputError(
            f"{path} has the schema {plain(str(schema))}; this version reads {SUBMISSION_SCHEMA}"
        )
    manifest = checked(SubmissionManifest, data, path)
    return Submission(
        folder=folder,
        kind="compact",
        name=manifest.name,
        link=manifest.link,
        contact=manifest.contact,
        manifest=manifest,
        split=manifest.benchmark.name,
        dataset_hash=manifest.benchmark.hash,
        claims=manifest.claims,
    )


def _bounded(path: Path) -> None:
    size = path.stat().st_size
    if size > _MAX_JSON_BYTES:
        raise InputError(f"{path} has {size} bytes; at most {_MAX_JSON_BYTES} are read")


def _claims_of_run(folder: Path) -> dict[str, float]:
    path = folder / SUMMARY
    if not path.is_file():
        return {}
    _bounded(path)
    data = read_json(path)
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != 1:
        raise InputError(f"{path} has the schema {plain(str(schema))}; this version reads 1")
    return claims_of_summary(data)


def claims_of_summary(summary: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a summary that follow from the replies, by dotted name.

    Example:
        >>> claims_of_summary({"schema": 1, "overall": {"qr": 0.5, "ci": {"qr": [0.4, 0.6]}}})
        {'overall.qr': 0.5, 'overall.ci.qr.0': 0.4, 'overall.ci.qr.1': 0.6}
    """
    found: dict[str, float] = {}
    _collect(summary, "", found, depth=0)
    return found


def _collect(value: Any, name: str, found: dict[str, float], *, depth: int) -> None:
    if depth > 8:
        raise InputError(f"the summary is nested too deeply at {plain(name)}")
    if isinstance(value, Mapping):
        parts = [(str(key), part) for key, part in value.items() if key not in _NOT_CLAIMED]
    elif isinstance(value, list | tuple):
        parts = [(str(number), part) for number, part in enumerate(value)]
    else:
        if isinstance(value, int | float) and not isinstance(value, bool):
            found[name] = math.inf if abs(value) > 1e300 else float(value)
        return
    for key, part in parts:
        _collect(part, f"{name}.{key}" if name else key, found, depth=depth + 1)


def raw_samples(submission: Submission) -> Iterator[RawSample]:
    """The samples in the order of the files; verdicts that stand beside them are not read.

    Raises:
        InputError: If there are none, or a line or column is no sample.
    """
    folder = submission.folder
    packed, lines = folder / PACKED, folder / SAMPLES
    if packed.exists() and lines.exists():
        raise InputError(f"{folder} has both {PACKED} and {SAMPLES}; leave one of them")
    if packed.is_file() and submission.kind == "compact":
        found = _from_parquet(packed)
    elif lines.is_file():
        found = _from_lines(lines)
    else:
        raise InputError(f"{folder} has no samples: {SAMPLES} is missing")
    total = 0
    for sample in found:
        total += len(sample.reply or "")
        if total > _MAX_TOTAL_BYTES:
            raise InputError(f"{folder} has replies of more than {_MAX_TOTAL_BYTES} bytes")
        yield sample


def _from_lines(path: Path) -> Iterator[RawSample]:
    with path.open("rb") as file:
        number = 0
        while line := file.readline(_MAX_LINE_BYTES + 1):
            number += 1
            where = f"{path} line {number}"
            if len(line) > _MAX_LINE_BYTES:
                raise InputError(f"{where} has more than {_MAX_LINE_BYTES} bytes")
            if not line.endswith(b"\n"):
                raise InputError(f"{where} is torn: finish the run, it lacks samples")
            yield _sample(_object(line, where), where)


def _object(line: bytes, where: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is no JSON: {plain(str(error))}") from None
    if not isinstance(value, dict):
        raise InputError(f"{where} is no object")
    return value


def _sample(data: Mapping[str, Any], where: str) -> RawSample:
    for name in _NEEDED:
        if name not in data:
            raise InputError(f"{where} has no {name!r}")
    fields: dict[str, Any] = {name: data.get(name) for name in (*_NEEDED, *_OPTIONAL)}
    try:
        return RawSample(**fields)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _from_parquet(path: Path) -> Iterator[RawSample]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        table = pq.ParquetFile(path)
        names = table.schema_arrow.names
        for name in _NEEDED:
            if name not in names:
                raise InputError(f"{path} has no column {name!r}")
        columns = [name for name in (*_NEEDED, *_OPTIONAL) if name in names]
        meta = table.metadata
        size = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
        if size > _MAX_TOTAL_BYTES:
            raise InputError(f"{path} holds {size} bytes; at most {_MAX_TOTAL_BYTES} are read")
        for batch in table.iter_batches(batch_size=_BATCH, columns=columns):
            for row in batch.to_pylist():
                number += 1
                yield _sample(row, f"{path} row {number}")
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise InputError(f"{path} is no Parquet file of samples: {plain(str(error))}") from None
