"""Entries as ranked tables: one table for each official split, never across splits."""

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboards.entry import EntryFile, Score
from leaderboards.submission_records import Sampling

__all__ = [
    "METRIC_NAMES",
    "Ranked",
    "protocol_of",
    "protocol_words",
    "rank",
    "score_of",
    "splits_of",
]

METRIC_NAMES = {
    "qr": "QR",
    "sr": "SR",
    "acc@1": "acc@1",
    "acc@k": "acc@k",
    "qr_at_k": "QR@k",
    "sr_at_k": "SR@k",
}
"""Metrics in the order in which tables show them, with their printed names."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """An entry at its place."""

    entry: EntryFile
    score: Score
    rank: int | None
    """From 1; equal scores share a rank; None for solvers, which are baselines."""


def splits_of(entries: Sequence[EntryFile]) -> list[str]:
    """The official splits that entries answer, by name."""
    return sorted({entry.benchmark.name for entry in entries})


def score_of(entry: EntryFile, scope: str = "overall") -> Score | None:
    """The score of a part, such as ``tasks.tsp`` or ``groups.path``; None where it has none."""
    kind, _, name = scope.partition(".")
    if kind == "overall":
        return entry.scores.overall
    parts: dict[str, Score] = getattr(entry.scores, kind)
    return parts.get(name)


def rank(
    entries: Sequence[EntryFile], split: str, *, scope: str = "overall", metric: str = "qr"
) -> list[Ranked]:
    """The entries of one split, best first; those without the metric come last.

    Args:
        entries: Entries of any splits.
        split: The official split.
        scope: ``overall``, or a part such as ``tasks.tsp``.
        metric: What decides.
    """
    found = [
        (entry, score)
        for entry in entries
        if entry.benchmark.name == split and (score := score_of(entry, scope)) is not None
    ]

    def order(pair: tuple[EntryFile, Score]) -> tuple[bool, float, str]:
        value = pair[1].metrics.get(metric)
        return (value is None, -(value or 0.0), pair[0].id)

    ranked: list[Ranked] = []
    place, models, last = 0, 0, None
    for entry, score in sorted(found, key=order):
        value = score.metrics.get(metric)
        if entry.kind == "solver" or value is None:
            ranked.append(Ranked(entry, score, None))
            continue
        models += 1
        if value != last:
            place, last = models, value
        ranked.append(Ranked(entry, score, place))
    return ranked


def protocol_of(entry: EntryFile) -> str:
    """How an entry was asked, in a few words."""
    return protocol_words(entry.protocol.sampling, entry.protocol.prompt_format)


def protocol_words(drawn: Sampling, prompt_format: str | None) -> str:
    """How a model was asked, in a few words."""
    parts = [f"k = {drawn.k}"]
    if drawn.k:
        parts.append(f"T = {drawn.temperature:g}")
        parts += [f"top-p {drawn.top_p:g}"] if drawn.top_p < 1 else []
    if drawn.greedy:
        parts.append("greedy too" if drawn.k else "greedy")
    return ", ".join([*parts, f"{drawn.max_tokens} tokens", prompt_format or "format not stated"])
