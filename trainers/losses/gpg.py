"""GPG: plain policy gradient on group-centred rewards, scaled for the groups that carry none.

P prompts, G replies of a group, B rows, T tokens.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from trainers.losses.advantages import (
    EQUAL_WITHIN,
    group_statistics,
    mean_centred_advantages,
)
from trainers.losses.aggregate import Counts, aggregate
from trainers.losses.checks import require_choice, require_rows, require_tokens

__all__ = ["GpgAlpha", "GpgRule", "gpg_advantages", "gpg_alpha", "gpg_loss"]

GpgRule = Literal["paper", "verl"]


@dataclass(frozen=True, slots=True)
class GpgAlpha:
    """GPG's scale for one step."""

    alpha: float | None
    """B / (B - M); None where every group is flat: skip the update."""
    valid_share: float
    """(B - M) / B: below a threshold (paper 0.6, code 0.5) resample, keeping the valid groups."""


def gpg_alpha(
    rewards_PG: Tensor, *, rule: GpgRule = "paper", equal_within: float = EQUAL_WITHIN
) -> GpgAlpha:
    """Alpha over *all* groups of the step.

    ``paper``: B / (B - M), B scorable replies, M of them in flat groups. ``verl`` is another method
    under the same name: B / (number of rewards that are not zero). The authors' code has alpha in
    some trainers only, and truncates the batch per worker after counting.

    Args:
        rewards_PG: Rewards of the whole step; NaN where unscorable (such replies count nowhere).
        rule: ``paper`` or ``verl``.
        equal_within: Largest span of a flat group.

    References:
        Chu et al., `GPG <https://arxiv.org/abs/2504.02546>`_, 2025; the equation was compared with
        the code, not word by word with the paper.
    """
    require_choice("rule for alpha", rule, get_args(GpgRule))
    stats = group_statistics(rewards_PG, equal_within=equal_within)
    total = int(stats.valid_PG.sum())
    flat = int((stats.valid_PG & stats.flat_P1).sum())
    kept = total - flat
    if rule == "verl":
        kept = int((stats.valid_PG & (rewards_PG != 0.0)).sum())
    share = (total - flat) / total if total else 0.0
    return GpgAlpha(total / kept if kept else None, share)


def gpg_advantages(
    rewards_PG: Tensor,
    *,
    alpha: float,
    f_norm: float | Literal["std"] = 1.0,
    equal_within: float = EQUAL_WITHIN,
) -> Tensor:
    """A_i = alpha (R_i - mean) / F_norm.

    Args:
        rewards_PG: Rewards; NaN where unscorable.
        alpha: From :func:`gpg_alpha`, over the whole step.
        f_norm: 1 by default; ``std`` is the variant that the paper ablates as a source of bias.
        equal_within: Largest span of a flat group.
    """
    if f_norm != "std" and not f_norm > 0.0:
        raise ValueError(f"f_norm must be positive or 'std', got {f_norm}")
    centred_PG = alpha * mean_centred_advantages(rewards_PG, equal_within=equal_within)
    if f_norm != "std":
        return centred_PG / f_norm
    stats = group_statistics(rewards_PG, equal_within=equal_within)
    return centred_PG / torch.where(stats.flat_P1, torch.ones_like(stats.std_P1), stats.std_P1)


def gpg_loss(
    logprobs_BT: Tensor, advantages_B: Tensor, mask_BT: Tensor, *, counts: Counts
) -> Tensor:
    """These rows' share of GPG's loss: no ratio, clip, KL, reference or critic.

    J = E[(1 / sum_i |o_i|) sum_i sum_t log pi_theta(o_it) A_i]. Tokens are counted over the whole
    step (open-r1's trainer averages over the micro-batch's tokens, R1-V's over sequences).

    References:
        Chu et al., `GPG <https://arxiv.org/abs/2504.02546>`_, 2025.
    """
    require_tokens(mask_BT, logprobs=logprobs_BT)
    require_rows(mask_BT, advantages=advantages_B)
    losses_BT = -logprobs_BT.masked_fill(~mask_BT, 0.0) * advantages_B.detach()[:, None]
    return aggregate(losses_BT, mask_BT, mode="token-mean", counts=counts)
