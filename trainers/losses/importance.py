"""Correction for a sampler whose log-probabilities differ from the trainer's.

A rollout engine computes in another precision and with other kernels than the trainer; the tokens
are then drawn from a policy that is not quite pi_old. The weights here multiply the policy-gradient
term; they are data and carry no gradient.

B rows, T tokens.
"""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from trainers.losses.checks import require_choice
from trainers.losses.masks import keep, row_sum
from trainers.losses.ratios import log_ratio

__all__ = ["CorrectionLevel", "CorrectionRule", "SamplerCorrection", "sampler_correction"]

CorrectionLevel = Literal["token", "sequence"]
CorrectionRule = Literal["truncate", "mask"]


@dataclass(frozen=True, slots=True)
class SamplerCorrection:
    """Importance weights between sampler and trainer, and what to report of them."""

    weights_BT: Tensor
    """Weight of each token; 0 where the mask is off."""
    kept_share: float
    """Share of the kept tokens whose weight was neither truncated nor masked; 1 without tokens."""
    mean_ratio: float
    """Mean of pi_trainer / pi_sampler over tokens (log capped at 20): about 1, or an engine that
    returns raw log-probabilities at another temperature, or a filtered (top-p, top-k) sampler."""


def sampler_correction(
    logprobs_BT: Tensor,
    sampler_logprobs_BT: Tensor,
    mask_BT: Tensor,
    *,
    level: CorrectionLevel = "token",
    rule: CorrectionRule = "truncate",
    threshold: float = 2.0,
) -> SamplerCorrection:
    """Truncated (TIS) or masked (MIS) weights of pi_trainer / pi_sampler.

    With rho the ratio of a token, or of a whole reply (a product over its tokens): ``truncate``
    gives min(rho, threshold); ``mask`` gives rho where rho <= threshold and else 0. Default: token
    level, truncated. The product explodes with length: 4,000 tokens with a bias of 0.001 nats have
    a log ratio of 4, so ``mask`` at sequence level with 3.0, TRL's default, drops most long
    replies. OpenRLHF's ``seq-mask-tis`` says that it clamps and uses the bare exponential.

    Args:
        logprobs_BT: The trainer's log-probabilities when the step begins.
        sampler_logprobs_BT: The sampler's processed (temperature-scaled) log-probabilities.
        mask_BT: Reply tokens.
        level: ``token`` or ``sequence``.
        rule: ``truncate`` or ``mask``.
        threshold: Largest weight.

    Raises:
        ValueError: If the threshold is below 1 or a name is unknown.

    References:
        Yao et al., `Your Efficient RL Framework Secretly Brings You Off-Policy RL Training
        <https://fengyao.notion.site/off-policy-rl>`_, 2025.
    """
    require_choice("correction level", level, get_args(CorrectionLevel))
    require_choice("correction rule", rule, get_args(CorrectionRule))
    if not threshold >= 1.0:
        raise ValueError(f"threshold must be at least 1, got {threshold}")
    with torch.no_grad():
        tokens_BT = log_ratio(logprobs_BT, sampler_logprobs_BT, mask_BT)
        log_BT = tokens_BT
        if level == "sequence":
            log_BT = row_sum(tokens_BT, mask_BT)[:, None].expand_as(tokens_BT)
        inside_BT = log_BT <= math.log(threshold)
        weights_BT = log_BT.clamp(max=math.log(threshold)).exp()
        if rule == "mask":
            weights_BT = weights_BT.masked_fill(~inside_BT, 0.0)
        count = int(mask_BT.sum())
        kept = float((inside_BT & mask_BT).sum()) / count if count else 1.0
        ratios_BT = keep(tokens_BT.clamp(max=20.0).exp(), mask_BT)
        mean = float(ratios_BT.sum()) / count if count else 1.0
        return SamplerCorrection(keep(weights_BT, mask_BT), kept, mean)
