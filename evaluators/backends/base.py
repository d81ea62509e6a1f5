"""What every backend takes and gives: requests for samples in, completions in any order out."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from evaluators.records import Decode
from npbench.errors import InputError

__all__ = [
    "Backend",
    "Completion",
    "ModelInfo",
    "Prompt",
    "Reply",
    "Request",
    "Sampling",
    "complete",
    "failure",
]

_LOWEST_TEMPERATURE = 0.01
_MAX_ERROR = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How replies are drawn; every field is sent to every backend, none is left to a default.

    Greedy replies take ``max_tokens`` and ``stop`` alone.
    """

    greedy: bool = True
    """Whether each question gets a greedy reply, beside the sampled ones."""
    k: int = 4
    """Sampled replies to each question."""
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    """0 keeps all tokens."""
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    max_tokens: int = 2048
    stop: tuple[str, ...] = ()
    """No stop string unless one is given: a model may reason in paragraphs."""
    seed: int = 0

    def __post_init__(self) -> None:
        """Checks every range, before anything is loaded."""
        if self.k < 0:
            raise InputError(f"k must be at least 0, got {self.k}")
        if self.k == 0 and not self.greedy:
            raise InputError("k=0 without greedy decoding asks for no reply")
        if self.k and not _LOWEST_TEMPERATURE <= self.temperature <= 100:
            raise InputError(
                f"k={self.k} samples need a temperature in [{_LOWEST_TEMPERATURE}, 100], got "
                f"{self.temperature:g}; greedy replies are drawn beside them, or alone with k=0"
            )
        if not 0 < self.top_p <= 1:
            raise InputError(f"top_p must lie in (0, 1], got {self.top_p:g}")
        if self.top_k < 0:
            raise InputError(f"top_k must be at least 0, got {self.top_k}")
        if not 0 <= self.min_p <= 1:
            raise InputError(f"min_p must lie in [0, 1], got {self.min_p:g}")
        if not 0 < self.repetition_penalty <= 10:
            raise InputError(
                f"repetition_penalty must lie in (0, 10], got {self.repetition_penalty:g}"
            )
        if self.max_tokens < 1:
            raise InputError(f"max_tokens must be at least 1, got {self.max_tokens}")
        if not 0 <= self.seed < 2**63:
            raise InputError(f"seed must lie in [0, 2^63), got {self.seed}")
        if "" in self.stop:
            raise InputError("a stop string must not be empty")


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model sees of a question."""

    parts: tuple[str | bytes, ...]
    """Text and encoded pictures in order."""
    system: str | None = None

    @property
    def pictures(self) -> tuple[bytes, ...]:
        """The encoded pictures in order."""
        return tuple(part for part in self.parts if isinstance(part, bytes))


@dataclass(frozen=True, slots=True)
class Request:
    """The samples of one question that are wanted under one decoding."""

    id: str
    prompt: Prompt
    decode: Decode
    samples: tuple[int, ...]
    seeds: tuple[int, ...]
    """One seed a sample; unused by greedy decoding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What became of one sample."""

    text: str | None
    reasoning: str | None = None
    finish_reason: str | None = None
    stop_reason: str | None = None
    num_tokens: int | None = None
    error: str | None = None
    """Why there is no reply; None where there is one."""
    picture_sizes: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished sample: it is joined to its question by id, decode and number."""

    request: Request
    sample: int
    reply: Reply


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What replies depend on besides the request."""

    name: str
    fingerprint: str
    """Differs where other weights lie at the same path."""
    details: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)
    """Such as the number type, the adapter and the hash of the chat template."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of the libraries that make the replies."""


class Backend(Protocol):
    """A source of replies.

    A sample that cannot be had is a completion with an error, never an exception; requests are
    drawn from the iterator when there is room for them, so that memory stays flat.
    """

    name: str

    def describe(self) -> ModelInfo:
        """What the manifest says of the model."""
        ...

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """The completions of all samples of all requests, in any order."""
        ...


def failure(error: BaseException | str) -> Reply:
    """The reply of a sample that could not be had, the reason in one line."""
    if isinstance(error, BaseException):
        text = str(error)
        error = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return Reply(text=None, error=" ".join(error.split())[:_MAX_ERROR])


def complete(
    request: Request, produce: Callable[[Request], Sequence[Reply]]
) -> Iterator[Completion]:
    """The completions of one request; whatever ``produce`` raises fails its samples alone.

    Args:
        request: The request.
        produce: Gives one reply a sample, in the order of ``request.samples``.
    """
    try:
        replies: Sequence[Reply] = produce(request)
        if len(replies) != len(request.samples):
            raise RuntimeError(f"{len(replies)} replies to {len(request.samples)} samples")
    except Exception as error:  # noqa: BLE001 -- the boundary at which failures become records
        replies = [failure(error)] * len(request.samples)
    for sample, reply in zip(request.samples, replies, strict=True):
        yield Completion(request, sample, reply)
