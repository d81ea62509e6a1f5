"""GSPO: one importance ratio for a whole reply, length-normalised.

B rows, T tokens.
"""

from typing import Literal, get_args

from torch import Tensor

from trainers.losses.aggregate import Counts
from trainers.losses.checks import require_choice, require_rows
from trainers.losses.ratios import sequence_ratio, sequence_token_ratio
from trainers.losses.surrogate import clipped_surrogate, policy_loss

__all__ = ["GspoForm", "gspo_loss"]

GspoForm = Literal["sequence", "token"]


def gspo_loss(
    logprobs_BT: Tensor,
    old_logprobs_BT: Tensor,
    advantages_B: Tensor,
    mask_BT: Tensor,
    *,
    counts: Counts,
    clip_low: float = 3e-4,
    clip_high: float = 4e-4,
    form: GspoForm = "sequence",
    sampler_weights_BT: Tensor | None = None,
) -> Tensor:
    """These rows' share of GSPO's loss.

    J = E[(1/G) sum_i min(s_i A_i, clip(s_i, 1-eps_l, 1+eps_r) A_i)], s_i = exp(mean_t log r_it),
    A_i the group-relative advantage, no KL. The form ``token`` (GSPO-token) replaces s_i by
    sg[s_i] pi_theta(o_it) / sg[pi_theta(o_it)] in a mean over the reply's tokens: equal in value
    and gradient while the advantage is constant over the reply.

    Always a mean over sequences. verl clamps the log ratio at 10; EasyR1 re-weights micro-batches
    by tokens; TRL re-weights sequences by length unless ``loss_type="grpo"``. The old
    log-probabilities must come from the trainer: a mismatch of 1e-3 a token is as large as the
    clip range.

    Args:
        logprobs_BT: Log-probabilities under the policy, with gradient.
        old_logprobs_BT: The trainer's, before the step's first update.
        advantages_B: Group-relative advantage of each reply.
        mask_BT: Reply tokens to train on.
        counts: Counts of the whole step.
        clip_low: eps_l.
        clip_high: eps_r.
        form: ``sequence`` or ``token``.
        sampler_weights_BT: Correction between sampler and trainer; form ``token`` only.

    Raises:
        ValueError: If weights of tokens are given for the form ``sequence``.

    References:
        Zheng et al., `Group Sequence Policy Optimization <https://arxiv.org/abs/2507.18071>`_,
        2025, section 4 (section 4.3 for GSPO-token); clip ranges from section 5.
    """
    require_choice("form of GSPO", form, get_args(GspoForm))
    require_rows(mask_BT, advantages=advantages_B)
    if form == "token":
        return policy_loss(
            sequence_token_ratio(logprobs_BT, old_logprobs_BT, mask_BT),
            advantages_B,
            mask_BT,
            counts=counts,
            clip_low=clip_low,
            clip_high=clip_high,
            aggregation="sequence-mean",
            sampler_weights_BT=sampler_weights_BT,
        )
    if sampler_weights_BT is not None:
        raise ValueError("sampler weights of tokens need form 'token', got form 'sequence'")
    losses_B = clipped_surrogate(
        sequence_ratio(logprobs_BT, old_logprobs_BT, mask_BT),
        advantages_B.detach(),
        clip_low=clip_low,
        clip_high=clip_high,
    )
    return losses_B.masked_fill(~mask_BT.any(-1), 0.0).sum() / max(counts.sequences, 1)
