"""The clipped policy-gradient term that GRPO and most of its rivals share.

B rows, T tokens.
"""

import torch
from torch import Tensor

from trainers.losses.aggregate import Aggregation, Counts, aggregate
from trainers.losses.checks import require_rows, require_tokens

__all__ = ["check_clip", "clipped_surrogate", "policy_loss"]


def check_clip(clip_low: float, clip_high: float, dual_clip: float | None = None) -> None:
    """Raises ValueError unless 0 <= clip_low < 1, clip_high >= 0 and dual_clip > 1."""
    if not 0.0 <= clip_low < 1.0:
        raise ValueError(f"clip_low must lie in [0, 1), got {clip_low}")
    if not clip_high >= 0.0:
        raise ValueError(f"clip_high must not be negative, got {clip_high}")
    if dual_clip is not None and not dual_clip > 1.0:
        raise ValueError(f"dual_clip must be greater than 1, got {dual_clip}")


def clipped_surrogate(
    ratios: Tensor,
    advantages: Tensor,
    *,
    clip_low: float,
    clip_high: float,
    dual_clip: float | None = None,
) -> Tensor:
    """-min(r A, clip(r, 1 - clip_low, 1 + clip_high) A), to be minimised; same shape as the ratios.

    With a dual clip c, the term for A < 0 is bounded: -max(min(r A, clip(r) A), c A).

    Args:
        ratios: Ratios of tokens or of sequences.
        advantages: One value for each ratio (broadcastable).
        clip_low: Lower clip range.
        clip_high: Upper clip range.
        dual_clip: c; verl and EasyR1 use 3, DAPO's scripts 10, the GRPO paper none.

    References:
        Schulman et al., `Proximal Policy Optimization <https://arxiv.org/abs/1707.06347>`_, 2017;
        Ye et al., `Mastering Complex Control in MOBA Games <https://arxiv.org/abs/1912.09729>`_,
        2020 (dual clip).
    """
    check_clip(clip_low, clip_high, dual_clip)
    clipped = ratios.clamp(1.0 - clip_low, 1.0 + clip_high)
    gain = torch.minimum(ratios * advantages, clipped * advantages)
    if dual_clip is not None:
        gain = torch.where(advantages < 0, torch.maximum(gain, dual_clip * advantages), gain)
    return -gain


def policy_loss(
    ratios_BT: Tensor,
    advantages_B: Tensor,
    mask_BT: Tensor,
    *,
    counts: Counts,
    clip_low: float,
    clip_high: float,
    aggregation: Aggregation,
    dual_clip: float | None = None,
    max_tokens: int | None = None,
    group_tokens_B: Tensor | None = None,
    sampler_weights_BT: Tensor | None = None,
) -> Tensor:
    """These rows' share of the aggregated clipped surrogate.

    Args:
        ratios_BT: Ratio of each token.
        advantages_B: Advantage of each reply; detached here.
        mask_BT: Reply tokens.
        counts: Counts of the whole step.
        clip_low: Lower clip range.
        clip_high: Upper clip range.
        aggregation: How tokens become one number.
        dual_clip: Bound for negative advantages.
        max_tokens: Constant of the aggregation ``constant``.
        group_tokens_B: Tokens of each row's group, for ``group-token-mean``.
        sampler_weights_BT: Weights of :func:`trainers.losses.importance.sampler_correction`.
    """
    require_tokens(mask_BT, ratios=ratios_BT, sampler_weights=sampler_weights_BT)
    require_rows(mask_BT, advantages=advantages_B)
    losses_BT = clipped_surrogate(
        ratios_BT,
        advantages_B.detach()[:, None],
        clip_low=clip_low,
        clip_high=clip_high,
        dual_clip=dual_clip,
    )
    if sampler_weights_BT is not None:
        losses_BT = losses_BT * sampler_weights_BT.detach()
    return aggregate(
        losses_BT,
        mask_BT,
        mode=aggregation,
        counts=counts,
        max_tokens=max_tokens,
        group_tokens_B=group_tokens_B,
    )
