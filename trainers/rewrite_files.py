"""Parquet in and out of ``npbench rewrite``: which rows need what, and the column of variants."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npbench.errors import InputError
from npbench.rng import digest, stream

__all__ = ["Job", "read_done", "read_jobs", "write_variants"]


@dataclass(frozen=True, slots=True)
class Job:
    """One row whose prompt is to be reworded."""

    key: str
    """Digest of the row's place, its prompt and the settings."""
    prompt: str
    task: str | None
    """The NP task, where templates serve; None where a model is asked."""
    seed: int
    """Seed of the row's first request; rows lie 10,000 apart."""

    def from_template(self, *, variants: int) -> tuple[str, ...]:
        """The variants by template."""
        from trainers.variants import template_variants

        assert self.task is not None
        return template_variants(
            self.task, self.prompt, variants=variants, rng=stream("rewrite", self.key)
        )


def _shards(folder: Path) -> Iterator[Path]:
    """The Parquet files, by name; those in ``data/`` where there is such a folder."""
    home = folder / "data" if (folder / "data").is_dir() else folder
    found = sorted(home.glob("*.parquet"))
    if not found:
        raise InputError(f"{folder} must hold Parquet files, in itself or in data/, got none")
    return iter(found)


def read_jobs(folder: Path, settings: Mapping[str, Any]) -> list[Job]:
    """One job a row, in order.

    Raises:
        InputError: If there is no Parquet file, or a file has no text column ``prompt``.
    """
    import pyarrow.parquet as pq

    from npbench.tasks import get_task

    jobs: list[Job] = []
    for shard in _shards(folder):
        names = pq.read_schema(shard).names
        if "prompt" not in names:
            raise InputError(f"{shard} must have a column 'prompt', got {', '.join(names)}")
        wanted = ["prompt", "task"] if "task" in names else ["prompt"]
        for row in pq.read_table(shard, columns=wanted).to_pylist():
            prompt, task = row["prompt"], row.get("task")
            if not isinstance(prompt, str) or not prompt.strip():
                raise InputError(f"row {len(jobs)} of {folder} must have a prompt, got {prompt!r}")
            if task is not None:
                try:
                    task = get_task(task).name
                except InputError:
                    task = None
            number = len(jobs)
            key = digest("rewrite", dict(settings), number, prompt)
            jobs.append(Job(key, prompt, task, int(settings["seed"]) + 10_000 * number))
    return jobs


def read_done(journal: Path) -> dict[str, tuple[str, ...]]:
    """Whole sets of variants of an earlier run; a torn last line is passed over."""
    if not journal.exists():
        return {}
    done = {}
    lines = journal.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            if record["variants"] is not None:
                done[record["key"]] = tuple(record["variants"])
        except (ValueError, KeyError, TypeError) as error:
            if number < len(lines):
                raise InputError(f"{journal}, line {number}, must be a record: {error}") from error
    if lines:
        # so that the next record starts on a line of its own
        kept = [line for line in lines if _is_record(line)]
        journal.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
    return done


def _is_record(line: str) -> bool:
    try:
        return "key" in json.loads(line)
    except (ValueError, TypeError):
        return False


def write_variants(
    folder: Path,
    out: Path,
    jobs: Sequence[Job],
    finished: Mapping[str, tuple[str, ...] | None],
) -> dict[str, int]:
    """Writes each shard with its column ``variants``; returns the counts of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    target = out / "data"
    target.mkdir(parents=True, exist_ok=True)
    kind = pa.list_(pa.string())
    start = 0
    for shard in _shards(folder):
        table = pq.read_table(shard)
        part = jobs[start : start + table.num_rows]
        start += table.num_rows
        column = pa.array([finished[job.key] for job in part], type=kind)
        if "variants" in table.column_names:
            table = table.drop_columns(["variants"])
        table = table.append_column(pa.field("variants", kind), column)
        pq.write_table(table.replace_schema_metadata(_metadata(table)), target / shard.name)
    failed = sum(finished[job.key] is None for job in jobs)
    by_template = sum(job.task is not None for job in jobs)
    return {
        "rows": len(jobs),
        "by_template": by_template,
        "by_model": len(jobs) - by_template - failed,
        "failed": failed,
    }


def _metadata(table: Any) -> dict[bytes, bytes]:
    """The table's metadata; where it lists features for ``datasets``, the new column among them."""
    metadata: dict[bytes, bytes] = dict(table.schema.metadata or {})
    if b"huggingface" in metadata:
        card = json.loads(metadata[b"huggingface"])
        features = card.get("info", {}).get("features")
        if features is not None:
            text = {"dtype": "string", "_type": "Value"}
            features["variants"] = {"feature": text, "_type": "List"}
            metadata[b"huggingface"] = json.dumps(card).encode()
    return metadata
