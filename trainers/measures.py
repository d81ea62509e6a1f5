"""What is logged of a step's groups: rewards, success, quality, diversity, lengths.

P questions, G replies of each.
"""

from collections.abc import Sequence

import numpy as np
import torch

from trainers.dynamic_sampling import FilledBatch
from trainers.embeddings import answer_features, solution_vectors
from trainers.grouping import cosine_distances, mean_pairwise_distance
from trainers.groups import Group
from trainers.losses.diagnostics import reward_report

__all__ = ["Numbers", "batch_numbers", "group_numbers", "speed"]

Numbers = dict[str, float | None]


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def group_numbers(groups: Sequence[Group]) -> Numbers:
    """Success rate, quality ratio and diversity over groups of whatever size.

    ``sr`` and ``qr`` are means over all samples of NP questions, None where there is none;
    ``accuracy`` is the mean over all questions. ``distinct`` is the share of a group's replies
    whose answers differ, ``diversity`` the mean pairwise cosine distance of the answers' vectors.
    """
    feasible = [one for group in groups for one in group.feasible]
    quality = [q for group in groups if group.question.is_np for q in group.accuracy]
    distances = [
        mean_pairwise_distance(cosine_distances(solution_vectors(group.question, group.texts)))
        for group in groups
    ]
    distinct = [
        len({answer_features(group.question, text) for text in group.texts}) / len(group.texts)
        for group in groups
    ]
    return {
        "sr": _mean([None if one is None else float(one) for one in feasible]),
        "qr": _mean(quality),
        "accuracy": _mean([one for group in groups for one in group.accuracy]),
        "diversity": _mean(distances),
        "distinct": _mean(distinct),
    }


def batch_numbers(filled: FilledBatch[Group]) -> Numbers:
    """All numbers of a training step but those of the update."""
    groups = filled.groups
    replies = [reply for group in groups for reply in group.replies]
    scored = [one for group in groups for one in group.scored]
    numbers = group_numbers(groups)
    numbers["reward"] = _mean([one.total for one in scored])
    for name in scored[0].terms if scored else ():
        numbers[f"reward_{name}"] = _mean([one.terms[name] for one in scored])
    totals = [[float("nan") if s.total is None else s.total for s in g.scored] for g in groups]
    if totals:
        report = reward_report(torch.tensor(totals))
        numbers["flat_share"] = report.flat_share
        numbers["unscorable_share"] = report.unscorable_share
    tokens = sum(len(reply.ids) for reply in replies)
    numbers |= {
        "entropy": _mean([reply.entropy for reply in replies]),
        "length": _mean([float(len(reply.ids)) for reply in replies]),
        "truncated_share": _mean([float(reply.truncated) for reply in replies]),
        "faults": float(sum(len(one.faults) for one in scored)),
        "drawn_groups": float(filled.drawn),
        "sampling_rounds": float(filled.rounds),
        "shortage": float(filled.shortage),
        "tokens": float(tokens),
    }
    return numbers


def speed(numbers: Numbers, *, seconds: float) -> Numbers:
    """How long a step took, and how many reply tokens it saw a second."""
    return {"seconds": seconds, "tokens_per_second": (numbers.get("tokens") or 0.0) / seconds}
