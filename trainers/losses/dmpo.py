"""DMPO: GRPO plus a term that matches the policy inside a group to softmax(reward / alpha).

P prompts, G replies of a group, B rows, T tokens.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

import torch
from torch import Tensor

from trainers.losses.advantages import flat_groups, group_relative_advantages
from trainers.losses.aggregate import Aggregation, Counts
from trainers.losses.checks import require_choice, require_groups
from trainers.losses.grpo import grpo_loss
from trainers.losses.masks import row_mean

__all__ = [
    "DMPO_SETTINGS",
    "Divergence",
    "DmpoSettings",
    "DmpoTarget",
    "FlatRule",
    "dmpo_loss",
    "dmpo_target",
    "dmpo_term",
]

Divergence = Literal["mse", "forward-kl", "js"]
DmpoTarget = Literal["rewards", "advantages"]
FlatRule = Literal["keep", "drop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DmpoSettings:
    """The settings that sources disagree about."""

    weight: float
    """lambda, the factor of the term beside GRPO's loss."""
    alpha: float
    """Temperature of the target."""
    target: DmpoTarget
    flat: FlatRule


DMPO_SETTINGS: Mapping[str, DmpoSettings] = MappingProxyType(
    {
        "summary": DmpoSettings(weight=0.5, alpha=1.0, target="rewards", flat="keep"),
        "replication": DmpoSettings(weight=2.0, alpha=1 / 15, target="rewards", flat="keep"),
        "recipe": DmpoSettings(weight=2.0, alpha=1 / 15, target="advantages", flat="drop"),
    }
)
"""``summary``: mid-points of the ranges [0.3, 0.7] and [0.8, 1.2] that a summary of the paper calls
robust, a guess; ``replication``: a third party that follows the paper; ``recipe``: the authors'
code on verl, whose target is another one."""


def _log_softmax(values_PG: Tensor, valid_PG: Tensor) -> Tensor:
    """Log-softmax over the valid members; a very large negative number for the others."""
    floor = torch.finfo(values_PG.dtype).min / 4
    return values_PG.masked_fill(~valid_PG, floor).log_softmax(-1)


def _validity(rewards_PG: Tensor, valid_PG: Tensor | None) -> Tensor:
    """Members that are scorable and not rejected."""
    scorable_PG = ~rewards_PG.isnan()
    return scorable_PG if valid_PG is None else scorable_PG & valid_PG


def _target_logits(
    rewards_PG: Tensor, *, alpha: float, target: DmpoTarget, valid_PG: Tensor
) -> Tensor:
    """What the target is a softmax of."""
    require_groups(rewards_PG)
    require_choice("target of DMPO", target, get_args(DmpoTarget))
    if not alpha > 0.0:
        raise ValueError(f"alpha must be positive, got {alpha}")
    if target == "advantages":
        return group_relative_advantages(rewards_PG, valid_PG=valid_PG) / alpha
    return rewards_PG.detach().masked_fill(~valid_PG, 0.0) / alpha


def dmpo_target(
    rewards_PG: Tensor,
    *,
    alpha: float = 1.0,
    target: DmpoTarget = "rewards",
    valid_PG: Tensor | None = None,
) -> Tensor:
    """p_i = softmax_i(R_i / alpha) over each group's scorable replies, 0 for the others.

    ``advantages`` is the recipe's form: softmax of the z-scored advantage over alpha. For graded
    rewards at alpha = 1/15 it is nearly an arg max, that is mode-*seeking*; for right-or-wrong
    rewards it agrees with the paper's form.

    References:
        DMPO, `arXiv 2605.19461 <https://arxiv.org/abs/2605.19461>`_, ICML 2026; the recipe is
        ``verl-project/verl-recipe``, folder ``dmpo``.
    """
    valid = _validity(rewards_PG, valid_PG)
    logits_PG = _target_logits(rewards_PG, alpha=alpha, target=target, valid_PG=valid)
    return _log_softmax(logits_PG, valid).exp().masked_fill(~valid, 0.0)


def dmpo_term(
    scores_PG: Tensor,
    rewards_PG: Tensor,
    *,
    groups: int,
    alpha: float = 1.0,
    form: Divergence = "mse",
    target: DmpoTarget = "rewards",
    flat: FlatRule = "keep",
    valid_PG: Tensor | None = None,
) -> Tensor:
    """These groups' share of L_DM, a mean over ``groups`` prompts, as a function of the scores.

    With q_i = softmax_i(phi_i), phi_i the mean token log-probability of reply i, and p the target:

    - ``mse`` (paper): (1/G) sum_i (p_i - q_i)^2, with dL/dphi_k = (2/G) q_k [(q_k - p_k) - sum_i
      q_i (q_i - p_i)];
    - ``forward-kl``: KL(p || q), with dL/dphi_k = q_k - p_k; 20 to 30 times larger gradients;
    - ``js`` (a variant of the recipe): (KL(p || m) + KL(q || m)) / 2, m = (p + q) / 2.

    All depend on phi only up to a constant: they redistribute inside the group and never raise its
    total probability. Groups must be whole: the recipe's softmax runs over whichever members are in
    the micro-batch, and its term is not scaled by global counts. For micro-batches use
    :mod:`trainers.losses.group_gradient`.

    Args:
        scores_PG: phi of each reply, with gradient.
        rewards_PG: Rewards; NaN where unscorable: such replies leave both p and q, and G counts the
            others.
        groups: Prompts of the whole step, dropped ones included.
        alpha: Temperature of the target.
        form: ``mse``, ``forward-kl`` or ``js``.
        target: ``rewards``, or ``advantages`` for the recipe's.
        flat: What a group with equal rewards does. The paper has no rule, so ``keep``: p is uniform
            and the term equalises phi over all members, all-wrong ones included. ``drop`` (the
            recipe's default variant) leaves it out, with gradient exactly 0.
        valid_PG: False for replies without tokens or rejected.

    References:
        DMPO, `arXiv 2605.19461 <https://arxiv.org/abs/2605.19461>`_, ICML 2026.
    """
    require_choice("form of DMPO", form, get_args(Divergence))
    require_choice("rule for flat groups", flat, get_args(FlatRule))
    require_groups(rewards_PG)
    if scores_PG.shape != rewards_PG.shape:
        raise ValueError(
            f"scores must have shape {tuple(rewards_PG.shape)}, got {tuple(scores_PG.shape)}"
        )
    if groups < 1:
        raise ValueError(f"groups must be at least 1, got {groups}")
    valid = _validity(rewards_PG, valid_PG)
    logits_PG = _target_logits(rewards_PG, alpha=alpha, target=target, valid_PG=valid)
    log_p_PG = _log_softmax(logits_PG.to(scores_PG.dtype), valid)
    log_q_PG = _log_softmax(scores_PG, valid)
    p_PG, q_PG = log_p_PG.exp(), log_q_PG.exp()
    if form == "mse":
        terms_PG = (p_PG - q_PG).square() / valid.sum(-1, keepdim=True).clamp(min=1)
    elif form == "forward-kl":
        terms_PG = p_PG * (log_p_PG - log_q_PG)
    else:
        log_m_PG = torch.logaddexp(log_p_PG, log_q_PG) - torch.log(p_PG.new_tensor(2.0))
        terms_PG = 0.5 * (p_PG * (log_p_PG - log_m_PG) + q_PG * (log_q_PG - log_m_PG))
    unused_PG = ~valid
    if flat == "drop":
        unused_PG = unused_PG | flat_groups(rewards_PG, valid_PG=valid)[:, None]
    return terms_PG.masked_fill(unused_PG, 0.0).sum() / groups


def dmpo_loss(
    logprobs_BT: Tensor,
    old_logprobs_BT: Tensor,
    advantages_B: Tensor,
    mask_BT: Tensor,
    rewards_PG: Tensor,
    index_PG: Tensor,
    *,
    counts: Counts,
    weight: float = 0.5,
    alpha: float = 1.0,
    form: Divergence = "mse",
    target: DmpoTarget = "rewards",
    flat: FlatRule = "keep",
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    aggregation: Aggregation = "sequence-mean",
) -> Tensor:
    """These rows' share of L = L_GRPO + lambda L_DM, where the rows are whole groups.

    With ``weight`` 0 this is :func:`trainers.losses.grpo.grpo_loss` bit for bit. L_GRPO has GRPO's
    defaults; the recipe runs it with 0.2 / 0.28 and ``token-mean``. Sources disagree about lambda
    and alpha: see :data:`DMPO_SETTINGS`. At G = 8 each component of the term's gradient is about
    100 times smaller than GRPO's with the ``summary`` settings, 10 times with the others: log both
    norms (:func:`trainers.losses.diagnostics.gradient_norms`).

    Args:
        logprobs_BT: Log-probabilities under the policy, with gradient.
        old_logprobs_BT: The same before the step's first update.
        advantages_B: Group-relative advantage of each reply.
        mask_BT: Reply tokens to train on.
        rewards_PG: Rewards by group.
        index_PG: Row of each reply (:func:`trainers.losses.groups.rows_by_group`).
        counts: Counts of the whole step.
        weight: lambda.
        alpha: Temperature of the target.
        form: Divergence.
        target: What the target is made of.
        flat: Rule for groups with equal rewards.
        clip_low: eps below.
        clip_high: eps above.
        aggregation: How tokens become one number in L_GRPO.

    Raises:
        ValueError: If the index does not hold every row exactly once: a group must not be split.

    References:
        DMPO, `arXiv 2605.19461 <https://arxiv.org/abs/2605.19461>`_, ICML 2026.
    """
    if not weight >= 0.0:
        raise ValueError(f"weight must not be negative, got {weight}")
    rows = torch.arange(len(mask_BT), device=index_PG.device)
    if not torch.equal(index_PG.flatten().sort().values, rows):
        raise ValueError(
            f"index must hold each of the {len(mask_BT)} rows once: a group must not be split"
        )
    loss = grpo_loss(
        logprobs_BT,
        old_logprobs_BT,
        advantages_B,
        mask_BT,
        counts=counts,
        clip_low=clip_low,
        clip_high=clip_high,
        aggregation=aggregation,
    )
    if weight == 0.0:
        return loss
    return loss + weight * dmpo_term(
        row_mean(logprobs_BT, mask_BT)[index_PG],
        rewards_PG,
        groups=max(counts.groups, 1),
        alpha=alpha,
        form=form,
        target=target,
        flat=flat,
        valid_PG=mask_BT.any(-1)[index_PG],
    )
