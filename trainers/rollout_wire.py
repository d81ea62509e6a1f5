"""What a trainer and a rollout server say to each other: JSON, and tensors as safetensors.

Each call is one POST. Its words are a JSON record; where tensors go along, the body is a
safetensors file whose metadata holds that record. Neither can make the reader run anything.
"""

import ipaddress
import os
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from npbench.errors import InputError

__all__ = [
    "CLAIM_BYTES",
    "CLAIM_HEADER",
    "DRAW_BYTES",
    "DRAW_JOBS",
    "DRAW_PROMPTS",
    "JSON_BYTES",
    "JSON_TYPE",
    "KEY_VARIABLE",
    "PART_BYTES",
    "PROTOCOL",
    "TENSORS_TYPE",
    "About",
    "ClaimCall",
    "Claimed",
    "Done",
    "DrawCall",
    "DrawJob",
    "DrawPrompt",
    "DrawnReplies",
    "DrawnReply",
    "Message",
    "PartCall",
    "PushCall",
    "Refusal",
    "is_loopback",
    "packed",
    "parts_of",
    "shared_key",
]

PROTOCOL = 1
"""Grows with every change of what is said."""
CLAIM_HEADER = "X-Npbench-Claim"
JSON_TYPE, TENSORS_TYPE = "application/json", "application/octet-stream"
KEY_VARIABLE = "NPBENCH_ROLLOUT_KEY"
PART_BYTES = 256 * 2**20
"""Weights of one call; a larger tensor goes alone."""
JSON_BYTES, CLAIM_BYTES = 2 * 2**20, 16 * 2**20
"""Of a call without tensors, and of one that lists all of a model's."""
DRAW_BYTES = 4 * 2**30
"""Of one draw, mostly pixels."""
DRAW_JOBS, DRAW_PROMPTS = 100_000, 20_000
"""Of one draw, at most."""


class Message(BaseModel):
    """A record that is what it says and nothing else."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        ser_json_inf_nan="constants",
    )


Token = Annotated[int, Field(ge=0, lt=2**31)]


class ClaimCall(Message):
    """A run that wants the server for itself."""

    protocol: int
    holder: Annotated[str, Field(min_length=1, max_length=200)]
    weights: Annotated[dict[str, tuple[int, ...]], Field(min_length=1)]
    """Names and shapes of all that it is going to push."""


class Claimed(Message):
    """What the holder of a claim gets to know."""

    claim: str
    longest: int
    patience: float
    """Seconds of silence after which another run may have the server."""


class About(Message):
    """What anybody with the key may know of a server, of this version or another."""

    model_config = ConfigDict(extra="ignore")

    protocol: int
    vllm: str
    model: str


class Done(Message):
    """Nothing more is to be said."""


class Refusal(Message):
    """Why there is no answer."""

    error: str


class PushCall(Message):
    """The beginning of a push."""

    parts: Annotated[int, Field(ge=1, le=100_000)]


class PartCall(Message):
    """Some of the weights."""

    number: Annotated[int, Field(ge=0)]


class DrawPrompt(Message):
    """A prompt; its pictures are the tensors ``<number of the prompt>.<name>``."""

    ids: Annotated[tuple[Token, ...], Field(min_length=1)]
    pictures: tuple[str, ...]


class DrawJob(Message):
    """One sample."""

    prompt: Annotated[int, Field(ge=0)]
    """Which of the call's prompts."""
    seed: Annotated[int, Field(ge=0, lt=2**63)]
    max_tokens: Annotated[int, Field(ge=1)]
    greedy: bool


class DrawCall(Message):
    """Samples, and the distribution that they are drawn from."""

    temperature: Annotated[float, Field(gt=0.0)]
    end_ids: tuple[Token, ...]
    banned_ids: tuple[Token, ...]
    prompts: Annotated[tuple[DrawPrompt, ...], Field(min_length=1, max_length=DRAW_PROMPTS)]
    jobs: Annotated[tuple[DrawJob, ...], Field(min_length=1, max_length=DRAW_JOBS)]


class DrawnReply(Message):
    """One sample as it was drawn."""

    # a broken model gives NaN, and the trainer's probe is what finds it
    model_config = ConfigDict(allow_inf_nan=True)

    ids: Annotated[tuple[Token, ...], Field(min_length=1)]
    logprobs: tuple[float, ...]
    finish_reason: Literal["stop", "length"]


class DrawnReplies(Message):
    """All samples of a call, in its order."""

    replies: tuple[DrawnReply, ...]


def packed(call: Message, tensors: Mapping[str, Tensor]) -> bytes:
    """A body with tensors."""
    from safetensors.torch import save

    # tensors of a file may not share memory
    apart = {
        name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()
    }
    return save(apart, metadata={"call": call.model_dump_json()})


def parts_of(weights: Mapping[str, Tensor], *, limit: int = PART_BYTES) -> Iterator[list[str]]:
    """Names of tensors that go together, in their order.

    Example:
        >>> import torch
        >>> weights = {name: torch.zeros(size) for name, size in zip("abcd", (1, 2, 9, 1))}
        >>> list(parts_of(weights, limit=12))
        [['a', 'b'], ['c'], ['d']]
    """
    part: list[str] = []
    room = limit
    for name, tensor in weights.items():
        if part and tensor.nbytes > room:
            yield part
            part, room = [], limit
        part.append(name)
        room -= tensor.nbytes
    if part:
        yield part


def shared_key() -> str | None:
    """The key that both sides know; None where there is none.

    Raises:
        InputError: If it cannot stand in a header.
    """
    key = os.environ.get(KEY_VARIABLE, "")
    if not all("!" <= letter <= "~" for letter in key):
        raise InputError(f"{KEY_VARIABLE} must be of ASCII letters, digits and signs, no spaces")
    return key or None


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from its own machine only.

    Example:
        >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "node1")]
        [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
