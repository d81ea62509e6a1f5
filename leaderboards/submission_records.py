"""What a submission consists of: its manifest, typed and bounded, and its raw samples.

A submission is the folder of ``npbench eval`` (``run.json``, ``samples.jsonl``), or a compact one
(``submission.json``, and ``samples.parquet`` or ``samples.jsonl``). Its texts are hostile: every
size is bounded, and nothing is believed that can be computed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from leaderboards.formats import plain
from npbench.errors import InputError

__all__ = [
    "MAX_REPLY_BYTES",
    "SUBMISSION",
    "SUBMISSION_SCHEMA",
    "ModelName",
    "Origin",
    "RawSample",
    "RunManifest",
    "Sampling",
    "Submission",
    "SubmissionManifest",
    "checked",
]

SUBMISSION = "submission.json"
SUBMISSION_SCHEMA = "npbench-submission-1"
"""Of ``submission.json`` and the samples beside it."""

MAX_REPLY_BYTES = 1 << 20
"""No reply of a model that answers is larger."""
_MAX_K = 128
_MAX_TOKENS = 10**8

Line = Annotated[str, Field(min_length=1, max_length=300)]
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{8,64}$")]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Open(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Sampling(_Open):
    """How replies were drawn."""

    greedy: bool
    k: int = Field(ge=0, le=_MAX_K)
    temperature: Finite
    top_p: Finite
    top_k: int = 0
    min_p: Finite = 0.0
    repetition_penalty: Finite = 1.0
    max_tokens: int = Field(ge=1)
    stop: tuple[Annotated[str, Field(max_length=200)], ...] = Field(default=(), max_length=16)
    seed: int = Field(ge=0)


class ModelName(_Open):
    """A model, and a fingerprint of its weights."""

    name: Line
    fingerprint: str | None = Field(default=None, max_length=300)


class _RunBenchmark(_Open):
    """What the manifest of a run says of its questions."""

    name: Line
    version: Line
    dataset_hash: Hash
    rows: int


class _SplitName(_Strict):
    """The official split that a compact submission answers."""

    name: Line
    hash: Hash


class Origin(_Open):
    """What made the replies; both kinds of manifest hold it."""

    model: ModelName
    sampling: Sampling
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{7,64}$")] | None = None
    backend: Line = "not stated"
    prompt_format: Line | None = None
    prompt_hash: Hash | None = None
    system_prompt: Annotated[str, Field(max_length=20_000)] | None = None
    pixels: dict[Literal["min", "max"], int | None] = Field(default_factory=dict)
    versions: dict[Line, Line] = Field(default_factory=dict, max_length=40)
    started: Annotated[str, Field(max_length=40)] | None = None
    grader: Annotated[str, Field(max_length=300)] | None = None


class RunManifest(Origin):
    """What is read of a run's manifest."""

    benchmark: _RunBenchmark


class SubmissionManifest(Origin):
    """``submission.json``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_: Literal["npbench-submission-1"] = Field(alias="schema")
    name: Line
    link: Annotated[str, Field(max_length=300, pattern=r"^https://[!-~]+$")] | None = None
    contact: Annotated[str, Field(max_length=300)] | None = None
    benchmark: _SplitName
    claims: dict[Line, Finite] = Field(default_factory=dict, max_length=1000)
    """Metrics by name, of the whole (``qr``) or a part (``tasks.tsp.qr``)."""


@dataclass(frozen=True, slots=True)
class RawSample:
    """What was said in answer to a question; no verdict."""

    id: str
    decode: str
    sample: int
    reply: str | None
    finish_reason: str | None = None
    stop_reason: str | None = None
    num_tokens: int | None = None
    prompt_hash: str | None = None
    image_hash: str | None = None

    def __post_init__(self) -> None:
        """Checks kinds and sizes."""
        if not isinstance(self.id, str) or not isinstance(self.decode, str):
            raise InputError("id and decode must be text")
        if type(self.sample) is not int or self.sample < 0:
            raise InputError(f"sample must be an integer from 0, got {self.sample!r:.40}")
        tokens = self.num_tokens
        if tokens is not None and (type(tokens) is not int or not 0 <= tokens <= _MAX_TOKENS):
            raise InputError(f"num_tokens must lie in [0, {_MAX_TOKENS}], got {tokens!r:.40}")
        for name in ("finish_reason", "stop_reason", "prompt_hash", "image_hash"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or len(value) > 200):
                raise InputError(f"{name} must be a short text")
        if self.reply is not None:
            if not isinstance(self.reply, str):
                raise InputError(f"reply must be text or null, got {type(self.reply).__name__}")
            size = len(self.reply.encode(errors="replace"))
            if size > MAX_REPLY_BYTES:
                raise InputError(f"a reply of {size} bytes; at most {MAX_REPLY_BYTES} are taken")


@dataclass(frozen=True, slots=True)
class Submission:
    """A submission's manifest in one form, whatever kind of folder it is."""

    folder: Path
    kind: str
    """``run`` or ``compact``."""
    name: str
    link: str | None
    contact: str | None
    manifest: Origin
    split: str
    """What it calls its split: the version of the benchmark."""
    dataset_hash: str
    claims: Mapping[str, float]
    """Numbers by dotted name that must follow from the replies."""


Record = TypeVar("Record", bound=BaseModel)


def checked(kind: type[Record], data: object, where: object) -> Record:
    """The record of data from a file.

    Raises:
        InputError: If a field is missing, unknown or of another kind; the message names the first.
    """
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = plain(".".join(str(part) for part in first["loc"]) or "it")
        given = (
            "" if first["type"] == "missing" else f", got {plain(repr(first['input']), limit=80)}"
        )
        raise InputError(f"{where}: {place}: {plain(first['msg'])}{given}") from None
