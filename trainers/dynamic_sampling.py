"""DAPO's dynamic sampling with a bound: fill a batch with groups whose accuracy is not constant.

No torch: a group is whatever the caller draws, its accuracies a sequence of numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from npbench.errors import unknown_name

__all__ = ["FilledBatch", "fill_batch", "informative"]

GroupT = TypeVar("GroupT")


@dataclass(frozen=True, slots=True)
class FilledBatch(Generic[GroupT]):
    """The groups of a step and how they came about."""

    groups: tuple[GroupT, ...]
    """Informative groups in the order of drawing, then flat ones where they fill up."""
    rounds: int
    """Calls of ``draw``."""
    drawn: int
    """Groups drawn in all; those beyond the batch are discarded."""
    flat: int
    """Flat groups drawn."""
    shortage: int
    """Informative groups that were missing when the bound was reached; 0 in a full batch."""


def informative(accuracies: Sequence[float | None], *, equal_within: float = 1e-6) -> bool:
    """Whether a group's scorable accuracies are not all equal.

    Of *accuracy* (on NP tasks the quality ratio), never of the mixed reward: with 0.9 accuracy +
    0.1 format a filter on the mixed reward keeps groups that are all wrong.
    """
    known = [value for value in accuracies if value is not None]
    return len(known) > 1 and max(known) - min(known) > equal_within


def fill_batch(
    draw: Callable[[int], Sequence[GroupT]],
    accuracies: Callable[[GroupT], Sequence[float | None]],
    *,
    size: int,
    max_rounds: int = 10,
    shortage: Literal["flat", "short"] = "flat",
) -> FilledBatch[GroupT]:
    """Draws groups until ``size`` of them are informative, at most ``max_rounds`` times.

    Each round asks for as many groups as are missing, with at least one in four informative so far
    assumed. When the bound is reached, or ``draw`` has nothing more, the batch is filled up with
    the flat groups that were drawn first, which keeps its size and adds no policy gradient
    (``flat``), or stays as it is, possibly empty, and then the update is to be skipped (``short``).
    The released recipe raises instead, and other trainers never returned.

    Args:
        draw: Draws up to that many new groups; fewer, or none, where prompts run out.
        accuracies: A group's accuracies; None where unscorable.
        size: Groups of a step.
        max_rounds: Bound on the calls of ``draw``; 10 in DAPO's recipe.
        shortage: What happens at the bound.

    References:
        Yu et al., `DAPO <https://arxiv.org/abs/2503.14476>`_, 2025, section 3.2.
    """
    if size < 1 or max_rounds < 1:
        raise ValueError(
            f"size and max_rounds must be at least 1, got size={size}, max_rounds={max_rounds}"
        )
    if shortage not in ("flat", "short"):
        raise unknown_name("rule for a shortage", shortage, ("flat", "short"))
    kept: list[GroupT] = []
    flat: list[GroupT] = []
    rounds = drawn = 0
    while len(kept) < size and rounds < max_rounds:
        missing = size - len(kept)
        share = max(len(kept) / drawn, 0.25) if drawn else 1.0
        found = draw(-int(-missing // share))
        rounds += 1
        drawn += len(found)
        for group in found:
            (kept if informative(accuracies(group)) else flat).append(group)
        if not found:
            break
    missing = max(size - len(kept), 0)
    filled = kept[:size] + (flat[:missing] if shortage == "flat" else [])
    return FilledBatch(tuple(filled), rounds, drawn, len(flat), missing)
