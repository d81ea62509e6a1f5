"""A ranked run as one JSON file: who, on what, how asked, every score, and a few of its samples."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from evaluators.grading import State
from evaluators.records import SampleRecord
from leaderboards.formats import plain
from leaderboards.official import official_request
from leaderboards.submission_records import ModelName, Sampling, checked
from leaderboards.submissions import Checked
from npbench.console import read_json
from npbench.errors import InputError
from npbench.rng import digest
from npbench.suites import OfficialSplit

__all__ = [
    "ENTRY_SCHEMA",
    "EntryFile",
    "Score",
    "ShownSample",
    "check_target",
    "is_shown",
    "make_entry",
    "read_entries",
    "write_entry",
]

ENTRY_SCHEMA = "npbench-entry-1"

_MAX_ENTRY_BYTES = 16 << 20
_MAX_ENTRIES = 10_000
_SHOWN_QUESTIONS = 30
_SHOWN_SAMPLED = 4
_SHOWN_CHARS = 2000
_METRICS = ("qr", "sr", "acc@1", "acc@k", "mean@k", "qr_at_k", "sr_at_k", "qr_greedy", "sr_greedy")
_SOLVERS = ("policy",)

Line = Annotated[str, Field(min_length=1, max_length=300)]
Link = Annotated[str, Field(max_length=300, pattern=r"^https://[!-~]+$")]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Score(_Record):
    """The scores of a set of questions."""

    n: int = Field(ge=1)
    """Questions."""
    samples: int
    instances: int
    metrics: dict[str, Finite | None]
    ci: dict[str, tuple[Finite, Finite] | None]
    """95 % intervals, clustered by instance."""
    pass_at_k: dict[str, Finite]
    states: dict[str, int]
    reasons: dict[str, int]
    """Violated rules."""
    floors: dict[str, Finite]
    """Quality ratios."""
    distinct_feasible: Finite | None
    solution_distance: Finite | None
    beats_reference: int


class Scores(_Record):
    """Scores of the whole and its parts."""

    overall: Score
    groups: dict[str, Score]
    tasks: dict[str, Score]
    levels: dict[str, Score]
    modalities: dict[str, Score]


class ShownSample(_Record):
    """A sample for people to read; its reply may be cut."""

    decode: Literal["greedy", "sampled"]
    sample: int
    reply: Annotated[str, Field(max_length=_SHOWN_CHARS)] | None
    cut: int = 0
    """Characters that are left out."""
    state: State
    score: Finite
    objective: int | None
    reason: Annotated[str, Field(max_length=400)]


class ShownQuestion(_Record):
    """The samples of a question."""

    id: Line
    position: int = Field(ge=0)
    """Of its instance in the split."""
    samples: tuple[ShownSample, ...] = Field(max_length=1 + _SHOWN_SAMPLED)


class BenchmarkName(_Record):
    """The official split."""

    name: Line
    suite: Line
    content_hash: Line
    rows: int


class Protocol(_Record):
    """How the model was asked and graded."""

    sampling: Sampling
    prompt_format: str | None
    system_prompt: str | None
    pixels: dict[str, int | None]
    prompts: Line
    grader: str
    claims: int
    """Claimed numbers that follow from the replies."""


class _Labels(_Record):
    """What whoever adds an entry may say of it."""

    name: Line | None
    link: Link | None


class EntryFile(_Record):
    """The file of a ranked run."""

    schema_: Literal["npbench-entry-1"] = Field(alias="schema")
    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,79}$")]
    name: Line
    link: Link | None
    model: ModelName
    backend: Line
    kind: Literal["model", "solver"]
    """Solvers are baselines: they are shown and not ranked."""
    commit: str | None
    started: str | None
    versions: dict[str, str]
    benchmark: BenchmarkName
    protocol: Protocol
    replies_hash: Line
    scores: Scores
    shown: tuple[ShownQuestion, ...] = Field(max_length=_SHOWN_QUESTIONS)


def is_shown(official: OfficialSplit, position: int) -> bool:
    """Whether the samples of an instance go into the entry: the first ones of each task and level.

    Args:
        official: The split.
        position: Of the instance.
    """
    request = official_request(official)
    cells = len(request.levels) * len(request.tasks)
    return position < cells * min(3, max(1, _SHOWN_QUESTIONS // cells))


def make_entry(passed: Checked, *, name: str | None = None, link: str | None = None) -> EntryFile:
    """The entry of a submission that passed every check.

    Args:
        passed: What the check returned, with the samples that :func:`is_shown` picks.
        name: How the table calls it instead of the submission's own name.
        link: Where to read about it.
    """
    submission, official = passed.submission, passed.official
    manifest, summary = submission.manifest, passed.summary
    shown_name = _public(submission.name if name is None else name)
    essentials = [shown_name, passed.replies_hash, official.content_hash]
    essentials.append(manifest.model_dump_json(include={"model", "sampling", "prompt_format"}))
    by = summary["by"]
    data = {
        "schema": ENTRY_SCHEMA,
        "id": f"{_slug(shown_name)}-{digest(*essentials)[:10]}",
        "name": shown_name,
        "link": submission.link if link is None else link,
        "model": {**manifest.model.model_dump(), "name": _public(manifest.model.name)},
        "backend": plain(manifest.backend),
        "kind": "solver" if manifest.backend in _SOLVERS else "model",
        "commit": manifest.commit,
        "started": manifest.started,
        "versions": manifest.versions,
        "benchmark": {
            "name": official.name,
            "suite": official.suite,
            "content_hash": official.content_hash,
            "rows": len(passed.questions),
        },
        "protocol": {
            "sampling": manifest.sampling.model_dump(),
            "prompt_format": manifest.prompt_format,
            "system_prompt": manifest.system_prompt,
            "pixels": manifest.pixels,
            "prompts": passed.prompts,
            "grader": summary["manifest"]["grader"],
            "claims": passed.claims,
        },
        "replies_hash": passed.replies_hash,
        "scores": {
            "overall": _score(summary["overall"]),
            "groups": _scores(summary["groups"]),
            "tasks": _scores(summary["tasks"]),
            "levels": _scores(by.get("level", {})),
            "modalities": _scores(by.get("modality", {})),
        },
        "shown": _shown(passed),
    }
    return checked(EntryFile, data, "the entry")


def _public(name: str) -> str:
    """A name in one line; of a folder on somebody's disk only the last part.

    Example:
        >>> _public("/home/ann/runs/qwen-grpo"), _public("Qwen/Qwen2.5-VL-7B-Instruct")
        ('qwen-grpo', 'Qwen/Qwen2.5-VL-7B-Instruct')
    """
    line = plain(name)
    if re.match(r"[/~.\\]|[A-Za-z]:[/\\]", line):
        line = re.split(r"[/\\]", line.rstrip("/\\"))[-1]
    return line or "unnamed"


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:48].strip("-") or "run"


def _scores(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {name: _score(row) for name, row in rows.items()}


def _score(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **{name: row[name] for name in ("n", "samples", "instances", "beats_reference")},
        "metrics": {name: _rounded(row[name]) for name in _METRICS},
        "ci": {
            name: None if (ends := row["ci"][name]) is None else [_rounded(end) for end in ends]
            for name in _METRICS
        },
        "pass_at_k": {str(k): _rounded(value) for k, value in row["pass@k"].items()},
        "states": {name: count for name, count in row["states"].items() if count},
        "reasons": row["reasons"],
        "floors": {name: _rounded(floor["qr"]) for name, floor in row["floors"].items()},
        "distinct_feasible": _rounded(row["diversity"]["distinct_feasible"]),
        "solution_distance": _rounded(row["diversity"]["solution_distance"]),
    }


def _rounded(value: float | None) -> float | None:
    """Six digits, which are the same on every machine."""
    return None if value is None else round(value, 6)


def _shown(passed: Checked) -> list[dict[str, Any]]:
    positions = {question.id: number for number, question in enumerate(passed.questions)}
    per_unit = official_request(passed.official).rows_per_unit
    return [
        {
            "id": name,
            "position": positions[name] // per_unit,
            "samples": [
                _sample(record)
                for record in records
                if record.decode == "greedy" or record.sample < _SHOWN_SAMPLED
            ],
        }
        for name, records in passed.shown.items()
    ][:_SHOWN_QUESTIONS]


def _sample(record: SampleRecord) -> dict[str, Any]:
    reply = record.reply
    clean = None if reply is None else reply.encode(errors="replace").decode()
    return {
        "decode": record.decode,
        "sample": record.sample,
        "reply": None if clean is None else clean[:_SHOWN_CHARS],
        "cut": max(0, len(clean or "") - _SHOWN_CHARS),
        "state": record.state,
        "score": _rounded(record.score),
        "objective": record.objective,
        "reason": plain(record.reason or record.error or "", limit=400),
    }


def check_target(folder: Path, *, name: str | None, link: str | None) -> None:
    """Check what an entry will be called and where it will lie, before minutes of grading.

    Raises:
        InputError: If the folder holds files that are no entries, or the name or link is unfit.
    """
    shown = None if name is None else plain(name)
    checked(_Labels, {"name": shown, "link": link}, "the entry")
    if folder.exists() or folder.is_symlink():
        read_entries(folder)


def write_entry(entry: EntryFile, folder: Path) -> str:
    """Write an entry; returns ``added``, ``replaced`` or ``unchanged``.

    Args:
        entry: The entry.
        folder: The folder of entries, which is made where it is missing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{entry.id}.json"
    text = json.dumps(entry.model_dump(mode="json", by_alias=True), indent=1) + "\n"
    before = path.read_text(encoding="utf-8") if path.exists() else None
    if before == text:
        return "unchanged"
    temporary = path.with_suffix(".part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
    return "added" if before is None else "replaced"


def read_entries(folder: Path) -> list[EntryFile]:
    """All entries of a folder, by id.

    Raises:
        InputError: If a file is no entry of this schema, or is not called by its id.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder of entries")
    return list(_entries(folder))


def _entries(folder: Path) -> Iterator[EntryFile]:
    paths = sorted(folder.glob("*.json"))
    if len(paths) > _MAX_ENTRIES:
        raise InputError(f"{folder} holds {len(paths)} entries; at most {_MAX_ENTRIES} are read")
    for path in paths:
        if path.stat().st_size > _MAX_ENTRY_BYTES:
            raise InputError(f"{path} has more than {_MAX_ENTRY_BYTES} bytes")
        data = read_json(path)
        schema = data.get("schema") if isinstance(data, dict) else None
        if schema != ENTRY_SCHEMA:
            raise InputError(
                f"{path} has the schema {plain(str(schema))}; this version reads {ENTRY_SCHEMA}"
            )
        entry = checked(EntryFile, data, path)
        if path.stem != entry.id:
            raise InputError(f"{path} holds the entry {entry.id}: its name must be {entry.id}.json")
        yield entry
