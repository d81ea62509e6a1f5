"""Clip-Cov: a few tokens of high covariance between advantage and log-probability get no gradient.

B rows, T tokens.
"""

import torch
from torch import Tensor

from trainers.losses.aggregate import Aggregation, Counts
from trainers.losses.checks import require_rows, require_tokens
from trainers.losses.masks import keep
from trainers.losses.ratios import token_ratio
from trainers.losses.surrogate import check_clip, policy_loss

__all__ = ["clip_cov_loss", "clip_cov_tokens"]


def clip_cov_tokens(
    logprobs_BT: Tensor,
    old_logprobs_BT: Tensor,
    advantages_B: Tensor,
    mask_BT: Tensor,
    *,
    generator: torch.Generator,
    share: float = 2e-4,
    low: float = 1.0,
    high: float = 5.0,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Tensor:
    """True for the tokens whose loss is multiplied by 0.

    cov_t = (A_t - mean A)(log pi_t - mean log pi), means over the tokens. Of the tokens with
    low < cov < high that the surrogate has not clipped already, floor(share * tokens) are drawn.

    Call it once over *all* rows of the optimiser step. verl takes means and counts over the rows of
    the current micro-batch and drops at least one token a call, so its share grows as micro-batches
    shrink. Here floor(share * tokens) may be 0. The draw depends on the order of the rows; keep the
    generator's state in the checkpoint.

    Args:
        logprobs_BT: Log-probabilities under the policy (not differentiated here).
        old_logprobs_BT: The same before the step's first update.
        advantages_B: Advantage of each reply.
        mask_BT: Reply tokens.
        generator: Source of the draw, on the tensors' device.
        share: Share of the tokens to drop; default of verl.
        low: Lower bound of the covariance, exclusive.
        high: Upper bound, exclusive.
        clip_low: Clip range of the surrogate, below.
        clip_high: Clip range of the surrogate, above.

    References:
        Cui et al., `The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models
        <https://arxiv.org/abs/2505.22617>`_, 2025; defaults of verl.
    """
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"share must lie in [0, 1], got {share}")
    if not low < high:
        raise ValueError(f"low must be below high={high}, got {low}")
    check_clip(clip_low, clip_high)
    require_rows(mask_BT, advantages=advantages_B)
    with torch.no_grad():
        ratios_BT = token_ratio(logprobs_BT, old_logprobs_BT, mask_BT)
        advantages_BT = advantages_B[:, None].expand_as(ratios_BT)
        too_high_BT = (advantages_BT > 0) & (ratios_BT > 1.0 + clip_high)
        too_low_BT = (advantages_BT < 0) & (ratios_BT < 1.0 - clip_low)
        count = int(mask_BT.sum())
        kept_BT = keep(logprobs_BT, mask_BT)
        mean_advantage = keep(advantages_BT, mask_BT).sum() / max(count, 1)
        mean_logprob = kept_BT.sum() / max(count, 1)
        cov_BT = (advantages_BT - mean_advantage) * (kept_BT - mean_logprob)
        open_BT = mask_BT & (cov_BT > low) & (cov_BT < high) & ~too_high_BT & ~too_low_BT
        candidates = open_BT.flatten().nonzero().squeeze(-1)
        wanted = min(int(share * count), len(candidates))
        order = torch.randperm(len(candidates), generator=generator, device=candidates.device)
        dropped = torch.zeros_like(mask_BT).flatten()
        dropped[candidates[order[:wanted]]] = True
        return dropped.reshape(mask_BT.shape)


def clip_cov_loss(
    logprobs_BT: Tensor,
    old_logprobs_BT: Tensor,
    advantages_B: Tensor,
    mask_BT: Tensor,
    dropped_BT: Tensor,
    *,
    counts: Counts,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float | None = None,
    aggregation: Aggregation = "token-mean",
    max_tokens: int | None = None,
    sampler_weights_BT: Tensor | None = None,
) -> Tensor:
    """These rows' share of Clip-Cov's loss: the clipped surrogate, 0 at the dropped tokens.

    Dropped tokens stay in the denominator, as in the paper, which multiplies their loss by 0. Token
    mean by default, as in verl.

    Args:
        logprobs_BT: Log-probabilities under the policy, with gradient.
        old_logprobs_BT: The same before the step's first update.
        advantages_B: Group-relative advantage of each reply.
        mask_BT: Reply tokens to train on.
        dropped_BT: These rows of :func:`clip_cov_tokens`.
        counts: Counts of the whole step.
        clip_low: eps below.
        clip_high: eps above.
        dual_clip: Bound for negative advantages.
        aggregation: How tokens become one number.
        max_tokens: Constant of the aggregation ``constant``.
        sampler_weights_BT: Correction between sampler and trainer.

    References:
        Cui et al., `The Entropy Mechanism <https://arxiv.org/abs/2505.22617>`_, 2025.
    """
    require_tokens(mask_BT, dropped=dropped_BT)
    weights_BT = (~dropped_BT).to(logprobs_BT.dtype)
    if sampler_weights_BT is not None:
        require_tokens(mask_BT, sampler_weights=sampler_weights_BT)
        weights_BT = weights_BT * sampler_weights_BT
    return policy_loss(
        token_ratio(logprobs_BT, old_logprobs_BT, mask_BT),
        advantages_B,
        mask_BT,
        counts=counts,
        clip_low=clip_low,
        clip_high=clip_high,
        dual_clip=dual_clip,
        aggregation=aggregation,
        max_tokens=max_tokens,
        sampler_weights_BT=weights_BT,
    )
