"""Advantages from the rewards of a group; detached numbers, one for each reply.

One policy for all of them: NaN means unscorable, such replies enter no mean and no deviation and
get advantage 0; a group whose scorable rewards span no more than ``equal_within`` is flat and gets
exactly 0. "Flat" is decided on max - min, since rounding can give equal rewards (0.35, 0.4) a
standard deviation of 1e-4 and a public trainer advantages 4,000 times too large.

P prompts, G replies of a group, K clusters.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from trainers.losses.checks import require_choice, require_groups

__all__ = [
    "EQUAL_WITHIN",
    "GroupStatistics",
    "cluster_advantages",
    "flat_groups",
    "group_relative_advantages",
    "group_statistics",
    "mean_centred_advantages",
    "pass_at_k_advantages",
]

EQUAL_WITHIN = 1e-6
"""Rewards of a group that span no more than this are equal."""


@dataclass(frozen=True, slots=True)
class GroupStatistics:
    """Mean, deviation and flatness of each group, over its scorable replies only."""

    valid_PG: Tensor
    """Replies that are scorable and not rejected."""
    mean_P1: Tensor
    std_P1: Tensor
    """Standard deviation; 0 where fewer than two replies are scorable."""
    flat_P1: Tensor
    """Groups whose scorable rewards are equal, or that have fewer than two."""


def group_statistics(
    rewards_PG: Tensor,
    *,
    valid_PG: Tensor | None = None,
    ddof: int = 1,
    equal_within: float = EQUAL_WITHIN,
) -> GroupStatistics:
    """Statistics of each group.

    Args:
        rewards_PG: Rewards; NaN where unscorable.
        valid_PG: False for replies that are rejected or masked as a whole: they must not shift the
            baseline of the others.
        ddof: 1 for the sample deviation (verl, EasyR1, TRL, oat), 0 for the population's.
        equal_within: Largest span of a flat group.

    Raises:
        ValueError: If a group holds fewer than two replies or a reward is infinite.
    """
    require_groups(rewards_PG)
    if ddof not in (0, 1):
        raise ValueError(f"ddof must be 0 or 1, got {ddof}")
    rewards_PG = rewards_PG.detach()
    valid = ~rewards_PG.isnan()
    if valid_PG is not None:
        if valid_PG.shape != rewards_PG.shape or valid_PG.dtype != torch.bool:
            raise ValueError(
                f"valid must be a bool tensor of shape {tuple(rewards_PG.shape)}, "
                f"got {valid_PG.dtype} {tuple(valid_PG.shape)}"
            )
        valid = valid & valid_PG
    count_P1 = valid.sum(-1, keepdim=True)
    known_PG = rewards_PG.masked_fill(~valid, 0.0)
    mean_P1 = known_PG.sum(-1, keepdim=True) / count_P1.clamp(min=1)
    deviations_PG = (known_PG - mean_P1).masked_fill(~valid, 0.0)
    variance_P1 = deviations_PG.square().sum(-1, keepdim=True) / (count_P1 - ddof).clamp(min=1)
    high_P1 = rewards_PG.masked_fill(~valid, -torch.inf).amax(-1, keepdim=True)
    low_P1 = rewards_PG.masked_fill(~valid, torch.inf).amin(-1, keepdim=True)
    # fewer than two scorable replies span 0, or minus infinity where there is none
    flat_P1 = high_P1 - low_P1 <= equal_within
    return GroupStatistics(valid, mean_P1, variance_P1.sqrt(), flat_P1)


def _centred(rewards_PG: Tensor, stats: GroupStatistics) -> Tensor:
    """Reward minus mean; exactly 0 in flat groups and for replies that do not count."""
    unused_PG = ~stats.valid_PG | stats.flat_P1
    return (rewards_PG.detach() - stats.mean_P1).masked_fill(unused_PG, 0.0)


def _scale(stats: GroupStatistics, *, std_floor: float, eps: float) -> Tensor:
    """max(std, std_floor) + eps; 1 for flat groups, whose numerator is 0, so that eps may be 0."""
    return (stats.std_P1.clamp(min=std_floor) + eps).masked_fill(stats.flat_P1, 1.0)


def group_relative_advantages(
    rewards_PG: Tensor,
    *,
    valid_PG: Tensor | None = None,
    eps: float = 1e-6,
    std_floor: float = 0.0,
    ddof: int = 1,
    equal_within: float = EQUAL_WITHIN,
) -> Tensor:
    """A_i = (R_i - mean) / (max(std, std_floor) + eps) of each group.

    The paper divides by "std" and says neither which one nor what is added. Here: the sample
    deviation and 1e-6, as verl and EasyR1 do (TRL adds 1e-4, oat 1e-8; verl gives a group of one
    its raw reward as advantage, here it is refused). Defaults leave the floor at 0, as in the
    paper; NVIDIA's NeMo-RL uses 1e-3.

    Example:
        >>> import torch
        >>> rewards = torch.tensor([[1.0, 1, 1, 0, 0, 0, 0, 0]], dtype=torch.float64)
        >>> [round(a, 6) for a in group_relative_advantages(rewards)[0, [0, 7]].tolist()]
        [1.207612, -0.724567]

    References:
        Shao et al., `DeepSeekMath <https://arxiv.org/abs/2402.03300>`_, 2024, section 4.1.2.
    """
    stats = group_statistics(rewards_PG, valid_PG=valid_PG, ddof=ddof, equal_within=equal_within)
    return _centred(rewards_PG, stats) / _scale(stats, std_floor=std_floor, eps=eps)


def mean_centred_advantages(
    rewards_PG: Tensor, *, valid_PG: Tensor | None = None, equal_within: float = EQUAL_WITHIN
) -> Tensor:
    """A_i = R_i - mean of each group: no division, hence no bias to very easy or hard prompts.

    References:
        Liu et al., `Understanding R1-Zero-Like Training <https://arxiv.org/abs/2503.20783>`_, 2025,
        section 3.
    """
    return _centred(
        rewards_PG, group_statistics(rewards_PG, valid_PG=valid_PG, equal_within=equal_within)
    )


def pass_at_k_advantages(
    rewards_PG: Tensor,
    *,
    valid_PG: Tensor | None = None,
    eps: float = 1e-6,
    std_floor: float = 0.0,
    equal_within: float = EQUAL_WITHIN,
) -> Tensor:
    """The best reply gets (r_max - r_second) / (std + eps), every other one exactly 0.

    A tie at the top (within ``equal_within``) gives 0 everywhere. Sample deviation, as in verl and
    EasyR1; an older EasyR1 left raw scores on the other replies, and training collapsed.

    Example:
        >>> import torch
        >>> pass_at_k_advantages(torch.tensor([[1.0, 0.5, 0.0, 0.0]], dtype=torch.float64))
        tensor([[1.0445, 0.0000, 0.0000, 0.0000]], dtype=torch.float64)

    References:
        Tang et al., `Optimizing Language Models for Inference Time Objectives using Reinforcement
        Learning <https://arxiv.org/abs/2503.19595>`_, 2025.
    """
    stats = group_statistics(rewards_PG, valid_PG=valid_PG, equal_within=equal_within)
    ranked_PG = rewards_PG.detach().masked_fill(~stats.valid_PG, -torch.inf)
    top_P2, index_P2 = ranked_PG.topk(2, dim=-1)
    lead_P1 = top_P2[:, :1] - top_P2[:, 1:]
    lead_P1 = lead_P1.masked_fill(stats.flat_P1 | (lead_P1 <= equal_within), 0.0)
    best_P1 = lead_P1 / _scale(stats, std_floor=std_floor, eps=eps)
    return torch.zeros_like(ranked_PG).scatter(-1, index_P2[:, :1], best_P1)


def cluster_advantages(
    rewards_PG: Tensor,
    clusters_PG: Tensor,
    *,
    valid_PG: Tensor | None = None,
    eps: float = 1e-6,
    std_floor: float = 0.0,
    equal_within: float = EQUAL_WITHIN,
    starved: str = "skip",
) -> Tensor:
    """MUPO's local advantages: mean and deviation of a reply's own cluster of its group.

    Local baselines starve: at 30 % right answers a cluster of 3 is flat in accuracy 37 % of the
    time. What happens then is not in the paper and chosen by ``starved``: ``skip`` leaves 0;
    ``global`` takes the advantage within the whole group; ``merge`` gives all flat clusters of a
    prompt one baseline, that of their union (0 if that is flat too).

    Args:
        rewards_PG: Rewards; NaN where unscorable.
        clusters_PG: Cluster of each reply, 0 .. K-1; with one cluster this is
            :func:`group_relative_advantages` bit for bit.
        valid_PG: False for rejected replies.
        eps: Added to the deviation.
        std_floor: Smallest deviation. With 0, a cluster without variance in accuracy has advantages
            (R_div - mean) / std whatever lambda: annealing lambda anneals nothing there, and two
            replies always get +-0.7071. A floor restores the effect of lambda.
        equal_within: Largest span of a flat cluster.
        starved: ``skip``, ``global`` or ``merge``.

    References:
        MUPO, `arXiv 2604.00479 <https://arxiv.org/abs/2604.00479>`_, 2026.
    """
    require_choice("rule for starved clusters", starved, ("skip", "global", "merge"))
    require_groups(rewards_PG)
    if clusters_PG.shape != rewards_PG.shape:
        raise ValueError(
            f"clusters must have shape {tuple(rewards_PG.shape)}, got {tuple(clusters_PG.shape)}"
        )
    usable_PG = torch.ones_like(rewards_PG, dtype=torch.bool) if valid_PG is None else valid_PG

    def within(members_PG: Tensor) -> Tensor:
        return group_relative_advantages(
            rewards_PG,
            valid_PG=members_PG & usable_PG,
            eps=eps,
            std_floor=std_floor,
            equal_within=equal_within,
        )

    advantages_PG = torch.zeros_like(rewards_PG)
    hungry_PG = torch.zeros_like(usable_PG)
    for label in torch.unique(clusters_PG).tolist():
        members_PG = clusters_PG == label
        advantages_PG = torch.where(members_PG, within(members_PG), advantages_PG)
        stats = group_statistics(
            rewards_PG, valid_PG=members_PG & usable_PG, equal_within=equal_within
        )
        hungry_PG = hungry_PG | (members_PG & stats.flat_P1)
    if starved == "global":
        return torch.where(hungry_PG, within(torch.ones_like(usable_PG)), advantages_PG)
    if starved == "merge":
        return torch.where(hungry_PG, within(hungry_PG), advantages_PG)
    return advantages_PG


def flat_groups(
    rewards_PG: Tensor, *, valid_PG: Tensor | None = None, equal_within: float = EQUAL_WITHIN
) -> Tensor:
    """True for each prompt whose group is flat, whatever the advantage is scaled by."""
    stats = group_statistics(rewards_PG, valid_PG=valid_PG, equal_within=equal_within)
    return stats.flat_P1.squeeze(-1)
