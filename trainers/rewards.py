"""Rewards as separate named terms with weights, scored reply by reply; no torch.

A term is a function of the reply and of its dataset row. It returns a number, or None where the
reply cannot be scored; an exception or a time-out inside a term is contained, counted, and makes
that reply unscorable. The total is None as soon as a term that counts is None: an unscorable reply
is not a wrong one, and gets no advantage.
"""

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainers.reward_sets import REWARDS, RewardTerm, load_term, reward_named

__all__ = [
    "REWARDS",
    "RewardBatch",
    "RewardTerm",
    "Scored",
    "add_term",
    "load_term",
    "reward_named",
    "score_replies",
]


@dataclass(frozen=True, slots=True)
class Scored:
    """The reward of one reply."""

    total: float | None
    """Weighted sum of the terms; None where a term of non-zero weight is None."""
    terms: Mapping[str, float | None]
    """Each term's own value, before its weight."""
    faults: Mapping[str, str]
    """What went wrong, by term: the exception in one line, or ``timed out``."""


@dataclass(frozen=True, slots=True)
class RewardBatch:
    """The rewards of a batch of replies, in their order."""

    scored: tuple[Scored, ...]

    @property
    def totals(self) -> tuple[float | None, ...]:
        """The total of each reply."""
        return tuple(one.total for one in self.scored)

    def values(self, name: str) -> tuple[float | None, ...]:
        """One term's values."""
        return tuple(one.terms[name] for one in self.scored)

    @property
    def unscorable(self) -> int:
        """Replies whose total is None."""
        return sum(one.total is None for one in self.scored)

    @property
    def faults(self) -> dict[str, int]:
        """Exceptions and time-outs by term."""
        counts: dict[str, int] = {}
        for one in self.scored:
            for name in one.faults:
                counts[name] = counts.get(name, 0) + 1
        return counts


def _call(term: RewardTerm, reply: str, row: Mapping[str, Any]) -> tuple[float | None, str]:
    """A term's value, and what went wrong ('' if nothing did)."""
    try:
        value = term.function(reply, row)
        if value is None:
            return None, ""
        number = float(value)
    # The one boundary where a term's failure becomes a record: terms are users' code.
    except Exception as error:  # noqa: BLE001
        return None, f"{type(error).__name__}: {error}"
    if not math.isfinite(number):
        return None, f"returned {number}"
    return number, ""


def _call_within(
    seconds: float, term: RewardTerm, reply: str, row: Mapping[str, Any]
) -> tuple[float | None, str]:
    """The same in a thread that is left behind when the time is over; it cannot be killed."""
    found: list[tuple[float | None, str]] = []
    worker = threading.Thread(target=lambda: found.append(_call(term, reply, row)), daemon=True)
    worker.start()
    worker.join(seconds)
    return found[0] if found else (None, "timed out")


def _total(terms: Mapping[str, float | None], weights: Mapping[str, float]) -> float | None:
    """The weighted sum, or None."""
    total = 0.0
    for name, weight in weights.items():
        value = terms[name]
        if weight == 0.0:
            continue
        if value is None:
            return None
        total += weight * value
    return total


def score_replies(
    replies: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    terms: Sequence[RewardTerm],
    *,
    timeout: float | None = None,
    failure_limit: float = 0.5,
) -> RewardBatch:
    """Scores each reply against its own row.

    Args:
        replies: The replies' texts.
        rows: The dataset row of each reply, all columns, in the same order and number.
        terms: The terms; names must differ.
        timeout: Seconds for each call of a term; None waits.
        failure_limit: Largest share of the replies on which one term may raise or time out. Beyond
            it the term or the data is broken, and going on would train on nothing.

    Raises:
        ValueError: If lengths or names do not fit, or a term fails too often.
    """
    if len(replies) != len(rows):
        raise ValueError(f"each reply needs its row, got {len(replies)} replies, {len(rows)} rows")
    names = [term.name for term in terms]
    if not names or len(set(names)) != len(names):
        raise ValueError(f"terms must be at least 1 and have different names, got {names}")
    weights = {term.name: term.weight for term in terms}
    scored = []
    for reply, row in zip(replies, rows, strict=True):
        values: dict[str, float | None] = {}
        faults: dict[str, str] = {}
        for term in terms:
            if timeout is None:
                value, fault = _call(term, reply, row)
            else:
                value, fault = _call_within(timeout, term, reply, row)
            values[term.name] = value
            if fault:
                faults[term.name] = fault
        scored.append(Scored(_total(values, weights), values, faults))
    batch = RewardBatch(tuple(scored))
    for name, count in batch.faults.items():
        if count > failure_limit * len(replies):
            first = next(one.faults[name] for one in scored if name in one.faults)
            raise ValueError(
                f"reward term {name!r} must not fail on more than {failure_limit:.0%} of the "
                f"replies, got {count} of {len(replies)}; the first: {first}"
            )
    return batch


def add_term(
    batch: RewardBatch,
    name: str,
    values: Sequence[float | None],
    *,
    weight: float,
    gate: str | None = None,
) -> RewardBatch:
    """The batch with a term that needs whole groups, such as diversity.

    Args:
        batch: The rewards so far.
        name: The new term's name.
        values: One value for each reply.
        weight: Its factor; MUPO's lambda.
        gate: A term that must be 1 for the new one to count; elsewhere it adds exactly 0, even
            where its value is None.

    Raises:
        ValueError: If the name is taken or the number of values is wrong.
    """
    if len(values) != len(batch.scored):
        raise ValueError(f"values must be one a reply ({len(batch.scored)}), got {len(values)}")
    scored = []
    for one, value in zip(batch.scored, values, strict=True):
        if name in one.terms:
            raise ValueError(f"a new term needs a new name, got {name!r}")
        is_open = gate is None or one.terms[gate] == 1.0
        total = one.total
        if total is not None and is_open and weight != 0.0:
            total = None if value is None else total + weight * value
        scored.append(replace(one, total=total, terms={**one.terms, name: value}))
    return RewardBatch(tuple(scored))
