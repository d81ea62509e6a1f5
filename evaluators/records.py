"""Records of a run: one a sample, and the manifest that says what made them."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from evaluators.grading import State

__all__ = ["SCHEMA", "Decode", "Key", "RunManifest", "SampleRecord", "differing_field"]

SCHEMA = 1
"""Of the manifest and the summary."""

Decode = str
"""``greedy`` or ``sampled``."""

Key = tuple[str, str, int]
"""Question id, decode and sample index; the benchmark is the run's."""

_MAY_DIFFER = ("command", "commit", "started", "source")
"""What a resumed run may have other than the first: none of it changes a reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRecord:
    """One sample of one question; the fields are those of a line of ``samples.jsonl``."""

    benchmark: str
    id: str
    instance_id: str
    decode: Decode
    sample: int
    seed: int | None
    """None for greedy decoding."""
    reply: str | None
    """None where nothing was generated."""
    reasoning: str | None = None
    """What a server kept apart from the reply; never graded."""
    finish_reason: str | None = None
    """``stop``, ``length``, or what else the backend says; None where nothing was generated."""
    stop_reason: str | None = None
    """The stop string that ended the reply, where one did."""
    num_tokens: int | None = None
    extracted: str | None = None
    extract_stage: str | None = None
    gold: str | None = None
    state: State = State.FAILED
    score: float = 0.0
    """0 or 1 for question answering, the quality ratio for NP-hard tasks."""
    acc: int = 0
    """1 where right."""
    objective: int | None = None
    grade_stage: str | None = None
    reason: str = ""
    rule: str = ""
    """The violated constraint's short name, for counting."""
    error: str | None = None
    prompt_hash: str = ""
    image_hash: str | None = None
    picture_sizes: tuple[tuple[int, int], ...] | None = None
    """Width and height of each picture as it was sent, where pictures were sent."""

    @property
    def key(self) -> Key:
        """What no other sample of the run has."""
        return (self.id, self.decode, self.sample)

    @property
    def generated(self) -> bool:
        """Whether there is a reply, be it empty; a sample without one may be tried again."""
        return self.reply is not None

    def line(self) -> bytes:
        """The record as a line of JSON."""
        plain = {name: getattr(self, name) for name in _FIELDS}
        return (json.dumps(plain, ensure_ascii=False) + "\n").encode(errors="replace")


_FIELDS = tuple(entry.name for entry in fields(SampleRecord))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunManifest:
    """What made a run's replies; the fields are those of ``run.json``."""

    schema: int = SCHEMA
    command: str
    commit: str | None
    started: str
    benchmark: Mapping[str, Any]
    """``name``, ``version``, ``dataset_hash``, ``rows``, ``limit``, ``modality``, ``source``."""
    model: Mapping[str, Any]
    """``name``, ``fingerprint`` and what else the backend says of it."""
    backend: str
    prompt_format: str
    prompt_hash: str
    """Of the words that the format adds to each question."""
    system_prompt: str | None
    sampling: Mapping[str, Any]
    """``greedy``, ``k`` and every sampling field."""
    pixels: Mapping[str, int | None]
    """``min`` and ``max``, None where not limited."""
    grader: str
    judge: str | None = None
    """The judge's model and the version of its prompts."""
    versions: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The manifest as plain data."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return plain


def differing_field(old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    """The first field in which two manifests disagree, with both values; None where they agree.

    Example:
        >>> differing_field({"sampling": {"k": 4}}, {"sampling": {"k": 8}})
        'sampling.k is 4 in the run and 8 now'
    """
    before, after = _flat(old), _flat(new)
    for name in [*before, *(name for name in after if name not in before)]:
        if name.rpartition(".")[2] in _MAY_DIFFER or before.get(name) == after.get(name):
            continue
        return f"{name} is {_shown(before.get(name))} in the run and {_shown(after.get(name))} now"
    return None


def _flat(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in data.items():
        if isinstance(value, Mapping):
            flat.update(_flat(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = value
    return flat


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
