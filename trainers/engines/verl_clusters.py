"""MUPO's advantages over a verl batch: replies of a prompt are clustered before credit is given.

G members of a group, D dimensions, B rows.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from npbench.errors import InputError
from npbench.rng import stream
from trainers import losses
from trainers.embeddings import sentence_vectors, solution_vectors
from trainers.engines.verl_groups import BatchRows, VerlBatch
from trainers.engines.verl_rewards import gate_opens, truth_row
from trainers.engines.verl_settings import PREFIX, VerlSettings
from trainers.grouping import cluster_replies, cosine_distances, distance_to_other_groups
from trainers.losses.diagnostics import starved_share

__all__ = ["mupo_advantages"]

Vectors = NDArray[np.float64]


def mupo_advantages(settings: VerlSettings, batch: VerlBatch) -> Tensor:
    """w_k-weighted local advantages of each row.

    The factor may sit on the advantage since min(r A, clip(r) A) is positively homogeneous in A.
    The run's reward holds accuracy and format already; the diversity reward is added where the gate
    is open. A group that lost so many replies that K clusters of G_min do not fit is grouped into
    the fewer clusters that do, and counted in ``npbench/short_groups``.

    References:
        MUPO, `arXiv 2604.00479 <https://arxiv.org/abs/2604.00479>`_, 2026.
    """
    rows = batch.known()
    if rows.replies is None or rows.truths is None:
        raise InputError(f"{PREFIX}{batch.method} needs the replies and their ground truths")
    weight = _lambda(settings.method, rows)
    advantages_B = torch.zeros(len(batch.mask_BT), dtype=torch.float64)
    diversities: list[float] = []
    starved: list[float] = []
    short = 0
    for index_G, rewards_G in zip(batch.groups.members(), batch.rewards_PG, strict=True):
        if len(index_G) < 2:
            continue
        members = index_G.tolist()
        rewards_1G = rewards_G[None, : len(members)]
        replies = [rows.replies[row] for row in members]
        truth = rows.truths[members[0]]
        labels, diversity = _clusters(settings, rows, truth, replies)
        short += max(labels) + 1 < settings.method.clusters
        labels_1G, diversity_1G = torch.tensor([labels]), torch.tensor([diversity])
        gate_1G = torch.tensor(
            [[gate_opens(reply, truth, gate=settings.extras.gate) for reply in replies]]
        )
        local_1G = losses.cluster_advantages(
            losses.mupo_rewards(
                rewards_1G, torch.zeros_like(rewards_1G), diversity_1G, gate_1G, weight=weight
            ),
            labels_1G,
            eps=settings.method.eps,
            std_floor=settings.method.std_floor,
            starved=settings.method.starved,
        )
        balance_1G = losses.balance_weights(
            labels_1G, beta=settings.method.beta, placement=settings.method.placement
        )
        advantages_B[index_G] = (local_1G * balance_1G)[0]
        diversities.append(float(diversity_1G.mean()))
        starved.append(starved_share(rewards_1G, labels_1G))
    batch.log(
        {
            "mupo_lambda": weight,
            "mupo_diversity": float(np.mean(diversities)) if diversities else 0.0,
            "starved_share": float(np.mean(starved)) if starved else 0.0,
            "short_groups": float(short),
        }
    )
    return advantages_B


def _lambda(method: Any, rows: BatchRows) -> float:
    if method.schedule == "exponential":
        return losses.exponential_lambda(rows.step, high=method.lambda_high, decay=method.decay)
    return losses.cosine_lambda(
        rows.step, steps=rows.steps, high=method.lambda_high, low=method.lambda_low
    )


def _clusters(
    settings: VerlSettings, rows: BatchRows, truth: Any, replies: Sequence[str]
) -> tuple[tuple[int, ...], list[float]]:
    """The cluster and the diversity of each reply of a group."""
    vectors_GD = _embed(settings.method.embedding, truth, replies)
    # the truth tells prompts apart; verl's uids are drawn anew in every run
    rng = stream("npbench-verl", "clusters", settings.extras.seed, rows.step, str(truth))
    found = cluster_replies(
        vectors_GD,
        clusters=settings.method.clusters,
        min_size=settings.method.min_size,
        rng=rng,
        too_few="fewer",
    )
    diversity = distance_to_other_groups(cosine_distances(vectors_GD), found.labels)
    return found.labels, [float(value) for value in diversity]


def _embed(name: str, truth: Any, replies: Sequence[str]) -> Vectors:
    from trainers.data import Question

    if name == "solution":
        return solution_vectors(Question("", "", (), truth_row(truth)), replies)
    return _sentences(name)(replies)


@lru_cache(maxsize=2)
def _sentences(name: str) -> Callable[[Sequence[str]], Vectors]:
    return sentence_vectors(name)
