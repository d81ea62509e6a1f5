"""DAPO: clip-higher, token mean, dynamic sampling, overlong punishment.

P prompts, G replies of a group, B rows, T tokens.
"""

from torch import Tensor

from trainers.losses.advantages import EQUAL_WITHIN, flat_groups
from trainers.losses.aggregate import Aggregation, Counts
from trainers.losses.ratios import token_ratio
from trainers.losses.surrogate import policy_loss

__all__ = ["dapo_loss", "informative_groups", "overlong_punishment"]


def dapo_loss(
    logprobs_BT: Tensor,
    old_logprobs_BT: Tensor,
    advantages_B: Tensor,
    mask_BT: Tensor,
    *,
    counts: Counts,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    dual_clip: float | None = None,
    group_tokens_B: Tensor | None = None,
    sampler_weights_BT: Tensor | None = None,
) -> Tensor:
    """These rows' share of DAPO's loss.

    J = E[(1 / sum_i |o_i|) sum_i sum_t min(r_it A_i, clip(r_it, 1-eps_low, 1+eps_high) A_i)],
    subject to 0 < number of right replies < G; A_i as in GRPO.

    The paper is ambiguous: read literally, the expectation is over prompts and each group is
    divided by its own tokens. The released code, and so the default, divides by the tokens of the
    whole batch; give ``group_tokens_B`` for the literal reading (verl issue 2776). The scripts use
    a dual clip of 10, the paper none.

    Args:
        logprobs_BT: Log-probabilities under the policy, with gradient.
        old_logprobs_BT: The same before the step's first update.
        advantages_B: Group-relative advantage of each reply.
        mask_BT: Reply tokens to train on.
        counts: Counts of the whole step.
        clip_low: eps_low.
        clip_high: eps_high.
        dual_clip: Bound for negative advantages.
        group_tokens_B: Tokens of each row's group: selects the mean over groups.
        sampler_weights_BT: Correction between sampler and trainer.

    References:
        Yu et al., `DAPO <https://arxiv.org/abs/2503.14476>`_, 2025, section 3.
    """
    aggregation: Aggregation = "token-mean" if group_tokens_B is None else "group-token-mean"
    return policy_loss(
        token_ratio(logprobs_BT, old_logprobs_BT, mask_BT),
        advantages_B,
        mask_BT,
        counts=counts,
        clip_low=clip_low,
        clip_high=clip_high,
        dual_clip=dual_clip,
        aggregation=aggregation,
        group_tokens_B=group_tokens_B,
        sampler_weights_BT=sampler_weights_BT,
    )


def informative_groups(accuracy_PG: Tensor, *, equal_within: float = EQUAL_WITHIN) -> Tensor:
    """Dynamic sampling's rule: True for prompts whose *accuracy* is not constant in the group.

    Give it accuracy (on NP tasks the quality ratio), never the mixed reward: with 0.9 accuracy +
    0.1 format, a rule on the mean of the mixed reward keeps groups that are all wrong and drops
    groups that are all right (EasyR1's online filtering with its default key).
    """
    return ~flat_groups(accuracy_PG, equal_within=equal_within)


def overlong_punishment(
    lengths_B: Tensor, *, max_tokens: int = 20480, cache_tokens: int = 4096
) -> Tensor:
    """Soft overlong punishment, added to the reward of each reply.

    0 for |y| <= max - cache; ((max - cache) - |y|) / cache up to max; -1 beyond. Added to the
    reward; groups are still filtered on plain accuracy.

    Example:
        >>> import torch
        >>> overlong_punishment(torch.tensor([16384, 18432, 20480, 20481])).tolist()
        [0.0, -0.5, -1.0, -1.0]

    References:
        Yu et al., `DAPO <https://arxiv.org/abs/2503.14476>`_, 2025, section 3.4.
    """
    if not 0 < cache_tokens <= max_tokens:
        raise ValueError(f"cache_tokens must lie in [1, {max_tokens}], got {cache_tokens}")
    return (((max_tokens - cache_tokens) - lengths_B) / cache_tokens).clamp(-1.0, 0.0)
