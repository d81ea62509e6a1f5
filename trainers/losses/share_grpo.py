"""Share-GRPO: replies to variants of a question are optimised under every variant of it.

P questions, M variants of a question, N replies to a variant, B rows, T tokens.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from trainers.losses.advantages import EQUAL_WITHIN, group_relative_advantages
from trainers.losses.aggregate import Aggregation, Counts
from trainers.losses.checks import require_choice
from trainers.losses.grpo import grpo_loss

__all__ = ["GlobalSpread", "SharedRow", "hierarchical_advantages", "share_grpo_loss", "shared_rows"]

GlobalSpread = Literal["responses", "rows"]


@dataclass(frozen=True, slots=True)
class SharedRow:
    """One training row: a reply, the variant it was sampled under, the one it is scored under."""

    question: int
    sampled_under: int
    """j: the variant that the sampler saw."""
    reply: int
    """i, within the variant."""
    scored_under: int
    """k: the variant in the training row's prompt, for the new *and* the old log-probabilities."""


def shared_rows(*, questions: int, variants: int, replies: int) -> tuple[SharedRow, ...]:
    """All P * M * N * M training rows, ordered as :func:`hierarchical_advantages` flattened."""
    for name, value in (("questions", questions), ("variants", variants), ("replies", replies)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    return tuple(
        SharedRow(p, j, i, k)
        for p in range(questions)
        for j in range(variants)
        for i in range(replies)
        for k in range(variants)
    )


def hierarchical_advantages(
    rewards_PMN: Tensor,
    *,
    eps: float = 1e-6,
    std_floor: float = 0.0,
    equal_within: float = EQUAL_WITHIN,
    spread: GlobalSpread = "responses",
) -> Tensor:
    """A = A_global + 1[j = k] A_local for reply i sampled under j and optimised under k.

    A_global is the z-score over all M * N replies of the question, A_local over the N replies to
    variant j. It is a sum, not a mean: with one variant both coincide, and every advantage is twice
    GRPO's. A variant that is flat in a mixed question still gets A_global.

    Args:
        rewards_PMN: Rewards; NaN where unscorable.
        eps: Added to the deviations.
        std_floor: Smallest deviation.
        equal_within: Largest span of a flat group.
        spread: Where the global deviation is taken: over the replies (paper), or over the ``rows``,
            in which each reply stands M times (released code: the sample deviation comes out
            smaller, by a factor 0.978019 for N = 6, M = 2).

    Returns:
        Advantages of shape (P, M, N, M), indexed by question, j, i, k.

    References:
        Yao et al., `R1-ShareVL <https://arxiv.org/abs/2505.16673>`_, NeurIPS 2025.
    """
    require_choice("global spread", spread, get_args(GlobalSpread))
    if rewards_PMN.ndim != 3:
        raise ValueError(f"rewards must have shape (P, M, N), got {tuple(rewards_PMN.shape)}")
    questions, variants, replies = rewards_PMN.shape

    def z_scores(rewards: Tensor) -> Tensor:
        return group_relative_advantages(
            rewards, eps=eps, std_floor=std_floor, equal_within=equal_within
        )

    times = variants if spread == "rows" else 1
    pooled = rewards_PMN.reshape(questions, variants * replies).repeat(1, times)
    overall_PMN = z_scores(pooled)[:, : variants * replies].reshape(rewards_PMN.shape)
    local_PMN = z_scores(rewards_PMN.reshape(questions * variants, replies)).reshape(
        rewards_PMN.shape
    )
    own_MM = torch.eye(variants, dtype=local_PMN.dtype, device=local_PMN.device)
    return overall_PMN[..., None] + local_PMN[..., None] * own_MM[None, :, None, :]


def share_grpo_loss(
    logprobs_BT: Tensor,
    old_logprobs_BT: Tensor,
    advantages_B: Tensor,
    mask_BT: Tensor,
    *,
    counts: Counts,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float | None = None,
    aggregation: Aggregation = "sequence-mean",
    max_tokens: int | None = None,
    sampler_weights_BT: Tensor | None = None,
) -> Tensor:
    """These rows' share of Share-GRPO's loss over the rows of :func:`shared_rows`.

    J = E[(1/N) sum_i (1/M^2) sum_j sum_k min(rho A, clip(rho, 1-eps, 1+eps) A)],
    rho = pi_theta(o_i^{Qj} | Q_k) / pi_old(o_i^{Qj} | Q_k): a mean over the N M^2 rows of a
    question. The denominator is pi_old under Q_k, not under Q_j where the reply was sampled: there
    is no importance correction across variants, by design (biased, stable). So the sampler's
    log-probabilities are no substitute for the old ones off the diagonal. The paper writes rho for
    a reply; here, as in the code, it is of tokens. Code: 0.2 / 0.3, dual clip 3, token mean of the
    micro-batch.

    Args:
        logprobs_BT: Log-probabilities of the reply under Q_k, with gradient.
        old_logprobs_BT: The same, under Q_k too, before the step's first update.
        advantages_B: :func:`hierarchical_advantages`, flattened.
        mask_BT: Reply tokens to train on.
        counts: Counts of the whole step; its sequences are rows.
        clip_low: eps below.
        clip_high: eps above.
        dual_clip: Bound for negative advantages.
        aggregation: How tokens become one number.
        max_tokens: Constant of the aggregation ``constant``.
        sampler_weights_BT: Correction between sampler and trainer (diagonal rows; 1 elsewhere).

    References:
        Yao et al., `R1-ShareVL <https://arxiv.org/abs/2505.16673>`_, NeurIPS 2025.
    """
    return grpo_loss(
        logprobs_BT,
        old_logprobs_BT,
        advantages_B,
        mask_BT,
        counts=counts,
        clip_low=clip_low,
        clip_high=clip_high,
        dual_clip=dual_clip,
        aggregation=aggregation,
        max_tokens=max_tokens,
        sampler_weights_BT=sampler_weights_BT,
    )
