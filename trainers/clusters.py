"""Clusters of a question's replies, and what MUPO makes of them.

P questions, G replies of a question, N the same for one question, D dimensions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from npbench.rng import stream
from trainers.batches import Batch
from trainers.config import Config
from trainers.embeddings import sentence_vectors, solution_vectors
from trainers.grouping import cluster_replies, cosine_distances, distance_to_other_groups
from trainers.groups import Group
from trainers.losses import (
    balance_weights,
    cluster_advantages,
    cosine_lambda,
    exponential_lambda,
    mupo_rewards,
)
from trainers.losses.diagnostics import starved_share
from trainers.policy import Policy

__all__ = ["Clusters", "embedder", "find_clusters", "mupo_credit"]


@dataclass(frozen=True, slots=True)
class Clusters:
    """The clusters of one question's replies."""

    labels: tuple[int, ...]
    diversity: tuple[float, ...]
    """R_div of each reply: mean cosine distance to the replies of other clusters."""


def find_clusters(
    policy: Policy, batch: Batch, config: Config, *, step: int
) -> tuple[Clusters, ...]:
    """The clusters of each question's replies, by the method's embedding.

    Raises:
        InputError: If the embedder cannot be had.
    """
    settings = config.method_settings
    embed = embedder(settings.embedding, policy)
    found = []
    for group in batch.groups:
        vectors_ND = embed(group)
        rng = stream("npbench-train", "clusters", config.seed, step, group.question.id)
        clustering = cluster_replies(
            vectors_ND, clusters=settings.clusters, min_size=settings.min_size, rng=rng
        )
        diversity = distance_to_other_groups(cosine_distances(vectors_ND), clustering.labels)
        found.append(Clusters(clustering.labels, tuple(float(value) for value in diversity)))
    return tuple(found)


@lru_cache(maxsize=4)
def _sentences(name: str) -> Callable[[Sequence[str]], NDArray[np.float64]]:
    return sentence_vectors(name)


def embedder(name: str, policy: Policy) -> Callable[[Group], NDArray[np.float64]]:
    """From a group to the vectors of its replies: by ``solution``, ``policy``, ``sentence:NAME``.

    Raises:
        InputError: If the name is unknown or the embedder cannot be had.
    """
    if name == "solution":
        return lambda group: solution_vectors(group.question, group.texts)
    if name == "policy":
        return lambda group: _hidden(policy, group)
    encode = _sentences(name)
    return lambda group: encode(group.texts)


def _hidden(policy: Policy, group: Group) -> NDArray[np.float64]:
    """Mean hidden states of a group's replies behind its first prompt."""
    vectors_NH = policy.mean_hidden(group.prompts[0], [reply.ids for reply in group.replies])
    return vectors_NH.double().cpu().numpy()


def mupo_credit(
    settings: Any, batch: Batch, clusters: Sequence[Clusters], *, progress: tuple[int, int]
) -> tuple[Mapping[str, Tensor], Mapping[str, float]]:
    """Local advantages and balance factors of the rows, and numbers to log.

    The diversity reward is added to the run's reward with this step's lambda, where the gate is
    open.
    """
    step, steps = progress
    if settings.schedule == "cosine":
        weight = cosine_lambda(
            step, steps=steps, high=settings.lambda_high, low=settings.lambda_low
        )
    else:
        weight = exponential_lambda(step, high=settings.lambda_high, decay=settings.decay)
    labels_PG = torch.tensor([found.labels for found in clusters])
    diversity_PG = torch.tensor([found.diversity for found in clusters])
    gate_PG = batch.terms("gate") == 1.0
    # rewards already hold accuracy and format with the run's weights
    rewards_PG = mupo_rewards(
        batch.rewards_PG, torch.zeros_like(diversity_PG), diversity_PG, gate_PG, weight=weight
    )
    advantages_PG = cluster_advantages(
        rewards_PG,
        labels_PG,
        eps=settings.eps,
        std_floor=settings.std_floor,
        starved=settings.starved,
    )
    balance_PG = balance_weights(labels_PG, beta=settings.beta, placement=settings.placement)
    rows = {
        "advantages": batch.of_replies(advantages_PG),
        "balance": batch.of_replies(balance_PG),
    }
    report = {
        "mupo_lambda": weight,
        "mupo_diversity": float(diversity_PG.mean()),
        "starved_share": starved_share(batch.terms("accuracy"), labels_PG),
    }
    return rows, report
