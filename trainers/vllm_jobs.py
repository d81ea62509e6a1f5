"""What an engine is asked for and what it gives, in this process or behind an address."""

from dataclasses import dataclass
from typing import Any, Literal, Self

from npbench.errors import InputError
from trainers.policy import Policy

__all__ = ["Distribution", "Drawn", "EngineError", "Job", "StoppedError"]


class EngineError(InputError):
    """The engine died or disagrees; weights and optimiser are those of the last whole step."""


class StoppedError(RuntimeError):
    """Nobody wants the replies any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """What replies are drawn from, and what ends them."""

    temperature: float
    end_ids: tuple[int, ...]
    banned_ids: tuple[int, ...]

    @classmethod
    def of(cls, policy: Policy) -> Self:
        """The one that a policy is trained under."""
        return cls(
            temperature=policy.temperature, end_ids=policy.end_ids, banned_ids=policy.banned_ids
        )


@dataclass(frozen=True, slots=True)
class Job:
    """One sample to draw."""

    prompt: Any
    """What the engine's ``prompt`` made; the samples of a group share one."""
    seed: int
    max_tokens: int
    greedy: bool = False


@dataclass(frozen=True, slots=True)
class Drawn:
    """One sample as the engine drew it."""

    ids: tuple[int, ...]
    """The ending one included."""
    logprobs: tuple[float, ...]
    """Of the distribution it was drawn from; a greedy sample's are at temperature 1."""
    finish_reason: Literal["stop", "length"]
