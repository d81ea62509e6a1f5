"""What is logged beside the loss, and never trained on.

P prompts, G replies of a group, B rows, T tokens, V vocabulary.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from trainers.losses.advantages import EQUAL_WITHIN, flat_groups, group_statistics
from trainers.losses.checks import require_rows, require_tokens
from trainers.losses.kl import kl_estimate
from trainers.losses.masks import keep
from trainers.losses.ratios import log_ratio, token_ratio

__all__ = [
    "RatioReport",
    "RewardReport",
    "effective_modes",
    "gradient_norms",
    "ratio_report",
    "reward_report",
    "starved_share",
    "step_zero_faults",
    "token_entropy",
]


@dataclass(frozen=True, slots=True)
class RatioReport:
    """Ratios between the policy and the old policy, over the rows of one call."""

    tokens: int
    """Tokens seen: the weight of this report in a mean over micro-batches."""
    mean: float
    largest: float
    smallest: float
    clipped_high: float
    """Share of the tokens with A > 0 and ratio above 1 + clip_high: their gradient is 0."""
    clipped_low: float
    """Share of the tokens with A < 0 and ratio below 1 - clip_low."""
    kl_old: float
    """Mean k3 estimate of KL(pi_old || pi_theta) on the old policy's tokens."""


def ratio_report(
    logprobs_BT: Tensor,
    old_logprobs_BT: Tensor,
    advantages_B: Tensor,
    mask_BT: Tensor,
    *,
    clip_low: float,
    clip_high: float,
) -> RatioReport:
    """Ratios and clip shares; exactly 1 and 0 before a step's first update."""
    require_tokens(mask_BT, logprobs=logprobs_BT, old_logprobs=old_logprobs_BT)
    require_rows(mask_BT, advantages=advantages_B)
    tokens = int(mask_BT.sum())
    if tokens == 0:
        return RatioReport(0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0)
    with torch.no_grad():
        ratio = token_ratio(logprobs_BT, old_logprobs_BT, mask_BT)[mask_BT]
        advantage = advantages_B[:, None].expand_as(mask_BT)[mask_BT]
        kl_BT = kl_estimate(old_logprobs_BT, logprobs_BT, mask_BT)
        return RatioReport(
            tokens=tokens,
            mean=float(ratio.mean()),
            largest=float(ratio.max()),
            smallest=float(ratio.min()),
            clipped_high=float(((advantage > 0) & (ratio > 1.0 + clip_high)).double().mean()),
            clipped_low=float(((advantage < 0) & (ratio < 1.0 - clip_low)).double().mean()),
            kl_old=float(kl_BT.sum()) / tokens,
        )


@dataclass(frozen=True, slots=True)
class RewardReport:
    """What the rewards of a batch look like, group by group."""

    mean: float | None
    """Over scorable replies; None where there is none."""
    unscorable_share: float
    flat_share: float
    """Share of the groups with no signal, whatever the advantages are scaled by."""
    all_top_share: float
    """Share of the groups that are flat at the batch's highest reward."""
    all_bottom_share: float
    """Share of the groups that are flat at the batch's lowest reward."""


def reward_report(rewards_PG: Tensor, *, equal_within: float = EQUAL_WITHIN) -> RewardReport:
    """Means and shares over the groups of a batch."""
    stats = group_statistics(rewards_PG, equal_within=equal_within)
    known = rewards_PG[stats.valid_PG]
    if known.numel() == 0:
        return RewardReport(None, 1.0, 1.0, 0.0, 0.0)
    flat_P = stats.flat_P1.squeeze(-1) & stats.valid_PG.any(-1)
    mean_P = stats.mean_P1.squeeze(-1)
    top_P = flat_P & ((mean_P - known.max()).abs() <= equal_within)
    bottom_P = flat_P & ((mean_P - known.min()).abs() <= equal_within)
    return RewardReport(
        mean=float(known.mean()),
        unscorable_share=1.0 - known.numel() / rewards_PG.numel(),
        flat_share=float(stats.flat_P1.double().mean()),
        all_top_share=float(top_P.double().mean()),
        all_bottom_share=float(bottom_P.double().mean()),
    )


def starved_share(
    accuracy_PG: Tensor, clusters_PG: Tensor, *, equal_within: float = EQUAL_WITHIN
) -> float:
    """Share of the (prompt, cluster) pairs that are flat in accuracy: MUPO's starved baselines."""
    starved = pairs = 0
    for label in torch.unique(clusters_PG).tolist():
        members_PG = clusters_PG == label
        present_P = members_PG.any(-1)
        flat_P = flat_groups(accuracy_PG, valid_PG=members_PG, equal_within=equal_within)
        pairs += int(present_P.sum())
        starved += int((flat_P & present_P).sum())
    return starved / pairs if pairs else 0.0


def effective_modes(probabilities_PG: Tensor) -> Tensor:
    """exp(entropy) of each group's distribution: how many replies a target keeps alive.

    Example:
        >>> import torch
        >>> effective_modes(torch.tensor([[0.25, 0.25, 0.25, 0.25], [1.0, 0.0, 0.0, 0.0]]))
        tensor([4., 1.])
    """
    entropy_P: Tensor = torch.special.entr(probabilities_PG).sum(-1)
    return entropy_P.exp()


def token_entropy(logits_BTV: Tensor, mask_BT: Tensor, *, temperature: float = 1.0) -> float:
    """Mean entropy, in nats, of softmax(logits / temperature) over the kept tokens."""
    if not temperature > 0.0:
        raise ValueError(f"temperature must be positive, got {temperature}")
    with torch.no_grad():
        log_NV = (logits_BTV[mask_BT] / temperature).log_softmax(-1)
        if len(log_NV) == 0:
            return 0.0
        return float(-(log_NV.exp() * log_NV).sum(-1).mean())


def gradient_norms(terms: Mapping[str, Tensor], parameters: Iterable[Tensor]) -> dict[str, float]:
    """The norm of each term's own gradient, by name; graphs are kept for the backward pass.

    Log them for every loss of several terms: DMPO's second term is 10 to 100 times smaller than
    GRPO's. For norms over accumulated micro-batches, pass whole-step terms, or take them with
    respect to the log-probabilities, whose squares add up over rows.
    """
    inputs: Sequence[Tensor] = list(parameters)
    norms = {}
    for name, term in terms.items():
        if not term.requires_grad:
            norms[name] = 0.0
            continue
        found = torch.autograd.grad(term, inputs, retain_graph=True, allow_unused=True)
        squares = [float(g.detach().double().square().sum()) for g in found if g is not None]
        norms[name] = sum(squares) ** 0.5
    return norms


def step_zero_faults(
    logprobs_BT: Tensor,
    old_logprobs_BT: Tensor,
    mask_BT: Tensor,
    *,
    ref_logprobs_BT: Tensor | None = None,
    sampler_logprobs_BT: Tensor | None = None,
    sampler_tolerance: float = 0.05,
) -> tuple[str, ...]:
    """What does not hold at a run's first update though it must; empty where all is well.

    Ratios are exactly 1, or dropout is on or precision differs between scoring and training. The
    reference agrees exactly, or the KL is to the wrong model (give no reference later than step
    0). The mean ratio to the sampler is within ``sampler_tolerance`` of 1, or the engine
    returns raw log-probabilities at another temperature, or filters its distribution.
    """
    faults = []
    with torch.no_grad():
        gap = float(log_ratio(logprobs_BT, old_logprobs_BT, mask_BT).abs().max())
        if gap != 0.0:
            faults.append(f"the first update's ratio must be 1, a log ratio is {gap:.3g}")
        if ref_logprobs_BT is not None:
            gap = float(log_ratio(logprobs_BT, ref_logprobs_BT, mask_BT).abs().max())
            if gap != 0.0:
                faults.append(f"the reference must equal the policy, a log ratio is {gap:.3g}")
        if sampler_logprobs_BT is not None and bool(mask_BT.any()):
            ratio_BT = keep(token_ratio(logprobs_BT, sampler_logprobs_BT, mask_BT), mask_BT)
            mean = float(ratio_BT.sum()) / int(mask_BT.sum())
            if not abs(mean - 1.0) <= sampler_tolerance:
                faults.append(
                    f"the mean ratio to the sampler must be within {sampler_tolerance:g} of 1, "
                    f"got {mean:.4g}"
                )
    return tuple(faults)
