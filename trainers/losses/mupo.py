"""MUPO: replies of a prompt are clustered, and each cluster is optimised against itself.

Clusters come from :mod:`trainers.grouping`, local advantages from
:func:`trainers.losses.advantages.cluster_advantages`. The released code has the calls to its
grouping commented out, so the paper's equations are the specification.

P prompts, G replies of a group (the paper's N), K clusters, B rows, T tokens.
"""

import math
from typing import Literal, get_args

import torch
from torch import Tensor

from trainers.losses.aggregate import Aggregation, Counts
from trainers.losses.checks import require_choice, require_rows
from trainers.losses.ratios import token_ratio
from trainers.losses.surrogate import policy_loss

__all__ = [
    "Placement",
    "balance_weights",
    "cosine_lambda",
    "exponential_lambda",
    "mupo_code_rewards",
    "mupo_loss",
    "mupo_rewards",
]

Placement = Literal["group", "response"]


def cosine_lambda(step: int, *, steps: int, high: float = 0.4, low: float = 0.1) -> float:
    """lambda(t) = low + (high - low)/2 * (1 + cos(pi t / t_max)), ``low`` from ``steps`` on.

    Example:
        >>> [round(cosine_lambda(step, steps=4), 6) for step in range(5)]
        [0.4, 0.356066, 0.25, 0.143934, 0.1]

    References:
        MUPO, `arXiv 2604.00479 <https://arxiv.org/abs/2604.00479>`_, 2026.
    """
    if steps < 1 or step < 0:
        raise ValueError(f"step must be >= 0 and steps >= 1, got step={step}, steps={steps}")
    return low + 0.5 * (high - low) * (1.0 + math.cos(math.pi * min(step / steps, 1.0)))


def exponential_lambda(step: int, *, high: float = 0.4, decay: float = 9e-3) -> float:
    """The released code's schedule, high * exp(-decay * step): 7B 0.4, 9e-3; 3B 0.2, 7.5e-3."""
    if step < 0:
        raise ValueError(f"step must not be negative, got {step}")
    return high * math.exp(-decay * step)


def _gated(diversity_PG: Tensor, gate_PG: Tensor) -> Tensor:
    """Diversity where the gate is open, else exactly 0."""
    if gate_PG.dtype != torch.bool or gate_PG.shape != diversity_PG.shape:
        raise ValueError(
            f"gate must be bool of shape {tuple(diversity_PG.shape)}, "
            f"got {gate_PG.dtype} {tuple(gate_PG.shape)}"
        )
    gated_PG = diversity_PG.masked_fill(~gate_PG, 0.0)
    if not bool(gated_PG.isfinite().all()):
        raise ValueError("diversity must be finite where the gate is open, got NaN or infinity")
    return gated_PG


def mupo_rewards(
    accuracy_PG: Tensor,
    format_PG: Tensor,
    diversity_PG: Tensor,
    gate_PG: Tensor,
    *,
    weight: float,
) -> Tensor:
    """R_i = R_acc + R_fmt + lambda 1[gate] R_div(i).

    In the paper the gate is R_acc = 1. On NP tasks accuracy is the quality ratio, and the gate is
    feasibility (or optimality, by name: :mod:`trainers.rewards`). The magnitudes of R_acc and R_fmt
    are not printed in the paper: they are whatever is passed in.

    Args:
        accuracy_PG: R_acc; NaN where unscorable, and then so is the reward.
        format_PG: R_fmt, already weighted.
        diversity_PG: R_div (:func:`trainers.grouping.distance_to_other_groups`).
        gate_PG: True where diversity counts.
        weight: lambda of this step.

    References:
        MUPO, `arXiv 2604.00479 <https://arxiv.org/abs/2604.00479>`_, 2026.
    """
    return accuracy_PG + format_PG + weight * _gated(diversity_PG, gate_PG)


def mupo_code_rewards(
    accuracy_PG: Tensor,
    format_PG: Tensor,
    diversity_PG: Tensor,
    gate_PG: Tensor,
    *,
    weight: float,
    format_weight: float = 0.1,
) -> Tensor:
    """The released code's reward: lambda takes weight *from accuracy*.

    (1 - w_fmt - lambda) acc + w_fmt fmt + lambda 1[gate] 2 R_div, with accuracy and format in
    {0, 1}: at lambda 0.4 a right reply without diversity scores 0.6.
    """
    share = 1.0 - format_weight - weight
    if share < 0.0:
        raise ValueError(f"format_weight + weight must be at most 1, got {format_weight + weight}")
    diverse_PG = 2.0 * weight * _gated(diversity_PG, gate_PG)
    return share * accuracy_PG + format_weight * format_PG + diverse_PG


def balance_weights(
    clusters_PG: Tensor, *, beta: float = 1.0, placement: Placement = "group"
) -> Tensor:
    """c_i, the factor of reply i in a mean over the G replies of its prompt.

    With w_k = (G / (K |G_k|))^beta:

    - ``group`` (paper): J = sum_k (w_k / |G_k|) sum_{i in G_k} ..., so c_i = G w_k / |G_k|. At
      beta = 1 a cluster's total is proportional to 1 / |G_k|: small ones are over-weighted, and the
      scale drifts with the sizes; beta = 0 is the balanced setting, at K times GRPO's scale.
    - ``response`` (as the released code, which multiplies advantages): (1/G) sum_i w_k(i) ..., so
      c_i = w_k; at beta = 1 each cluster gets exactly 1/K.

    With one cluster all factors are exactly 1. K is the number of clusters of each prompt.

    Example:
        >>> import torch
        >>> clusters = torch.tensor([[0, 0, 0, 0, 1, 1]])
        >>> (balance_weights(clusters) / 6)[0, [0, 4]].tolist()
        [0.1875, 0.75]

    References:
        MUPO, `arXiv 2604.00479 <https://arxiv.org/abs/2604.00479>`_, 2026.
    """
    require_choice("placement of the balance weight", placement, get_args(Placement))
    if clusters_PG.ndim != 2 or clusters_PG.dtype.is_floating_point:
        raise ValueError(
            f"clusters must be integers of shape (P, G), "
            f"got {clusters_PG.dtype} {tuple(clusters_PG.shape)}"
        )
    same_PGG = clusters_PG[:, :, None] == clusters_PG[:, None, :]
    size_PG = same_PGG.sum(-1).to(torch.float64)
    group_size = clusters_PG.shape[1]
    sizes_inverse_PG = 1.0 / size_PG
    clusters_P1 = sizes_inverse_PG.sum(-1, keepdim=True).round()
    w_PG = (group_size / (clusters_P1 * size_PG)) ** beta
    return w_PG if placement == "response" else group_size * w_PG / size_PG


def mupo_loss(
    logprobs_BT: Tensor,
    old_logprobs_BT: Tensor,
    advantages_B: Tensor,
    balance_B: Tensor,
    mask_BT: Tensor,
    *,
    counts: Counts,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float | None = None,
    aggregation: Aggregation = "sequence-mean",
    max_tokens: int | None = None,
    group_tokens_B: Tensor | None = None,
    sampler_weights_BT: Tensor | None = None,
) -> Tensor:
    """These rows' share of MUPO's loss.

    J = E[sum_k (w_k/|G_k|) sum_{i in G_k} min(r_i A_i, clip(r_i, 1-eps, 1+eps) A_i)], A_i local to
    the cluster. The paper writes the ratio for a reply and describes it for tokens; here it is of
    tokens, averaged over the reply as in GRPO. With K = 1, R_div = 0 and the same aggregation this
    is :func:`trainers.losses.grpo.grpo_loss` bit for bit. eps is not printed; the code has 0.20 /
    0.28, a dual clip of 3 and a token mean.

    Args:
        logprobs_BT: Log-probabilities under the policy, with gradient.
        old_logprobs_BT: The same before the step's first update.
        advantages_B: Local advantage of each reply.
        balance_B: Factor of each reply, from :func:`balance_weights`.
        mask_BT: Reply tokens to train on.
        counts: Counts of the whole step.
        clip_low: eps below.
        clip_high: eps above.
        dual_clip: Bound for negative advantages.
        aggregation: How tokens become one number.
        max_tokens: Constant of the aggregation ``constant``.
        group_tokens_B: Tokens of each row's group, for ``group-token-mean``.
        sampler_weights_BT: Correction between sampler and trainer.

    Raises:
        ValueError: If a balance factor is not positive.

    References:
        MUPO, `arXiv 2604.00479 <https://arxiv.org/abs/2604.00479>`_, 2026.
    """
    require_rows(mask_BT, advantages=advantages_B, balance=balance_B)
    if balance_B.numel() and not float(balance_B.min()) > 0.0:
        raise ValueError(f"balance factors must be positive, got {float(balance_B.min())}")
    # min(r A, clip(r) A) is positively homogeneous in A, so the factor may sit on the advantage.
    return policy_loss(
        token_ratio(logprobs_BT, old_logprobs_BT, mask_BT),
        advantages_B * balance_B.to(advantages_B.dtype),
        mask_BT,
        counts=counts,
        clip_low=clip_low,
        clip_high=clip_high,
        dual_clip=dual_clip,
        aggregation=aggregation,
        max_tokens=max_tokens,
        group_tokens_B=group_tokens_B,
        sampler_weights_BT=sampler_weights_BT,
    )
