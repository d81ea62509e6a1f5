"""GRPO, Dr.GRPO and GRPO pass@k: a clipped surrogate on token ratios.

B rows, T tokens. GRPO pass@k is :func:`grpo_loss` with
:func:`trainers.losses.advantages.pass_at_k_advantages`.
"""

from torch import Tensor

from trainers.losses.aggregate import Aggregation, Counts
from trainers.losses.kl import KLTerm, kl_loss
from trainers.losses.ratios import token_ratio
from trainers.losses.surrogate import policy_loss

__all__ = ["dr_grpo_loss", "grpo_loss"]


def grpo_loss(
    logprobs_BT: Tensor,
    old_logprobs_BT: Tensor,
    advantages_B: Tensor,
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
    ref_logprobs_BT: Tensor | None = None,
    kl_coef: float = 0.0,
    kl_term: KLTerm = "k3",
) -> Tensor:
    """These rows' share of GRPO's loss.

    J = E[(1/G) sum_i (1/|o_i|) sum_t (min(r_it A_i, clip(r_it, 1-eps, 1+eps) A_i) - beta k3_it)],
    A_i the group-relative advantage; the loss is -J.

    Defaults: eps 0.2 on both sides, as in TRL and verl (EasyR1 0.2 / 0.3). The paper's beta is 0.04
    as far as we know; here it is 0 unless a coefficient is given with reference log-probabilities.
    Released code departs from the paper's aggregation: verl and EasyR1 default to ``token-mean``
    with a dual clip of 3, TRL to ``token-mean`` (its ``dapo``). With one update per rollout every
    ratio is 1 and the *value* is about 0 (minus the mean advantage) while the gradient is not.

    Args:
        logprobs_BT: Log-probabilities under the policy, with gradient.
        old_logprobs_BT: The same before the step's first update.
        advantages_B: Advantage of each reply.
        mask_BT: Reply tokens to train on.
        counts: Counts of the whole step.
        clip_low: eps below.
        clip_high: eps above.
        dual_clip: Bound for negative advantages; None as in the paper.
        aggregation: How tokens become one number.
        max_tokens: Constant of the aggregation ``constant``.
        group_tokens_B: Tokens of each row's group, for ``group-token-mean``.
        sampler_weights_BT: Correction between sampler and trainer.
        ref_logprobs_BT: Log-probabilities under the reference policy.
        kl_coef: beta.
        kl_term: Which KL term; see :func:`trainers.losses.kl.kl_loss`.

    Raises:
        ValueError: If ``kl_coef`` is negative, or positive without reference log-probabilities.

    References:
        Shao et al., `DeepSeekMath <https://arxiv.org/abs/2402.03300>`_, 2024, section 4.1.1,
        equation 3.
    """
    if kl_coef < 0.0 or (kl_coef > 0.0 and ref_logprobs_BT is None):
        raise ValueError(
            f"kl_coef must be 0, or positive with reference log-probabilities, got {kl_coef}"
        )
    loss = policy_loss(
        token_ratio(logprobs_BT, old_logprobs_BT, mask_BT),
        advantages_B,
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
    if ref_logprobs_BT is None or kl_coef == 0.0:
        return loss
    return loss + kl_coef * kl_loss(
        logprobs_BT,
        old_logprobs_BT,
        ref_logprobs_BT,
        mask_BT,
        counts=counts,
        term=kl_term,
        aggregation=aggregation,
        max_tokens=max_tokens,
        group_tokens_B=group_tokens_B,
    )


def dr_grpo_loss(
    logprobs_BT: Tensor,
    old_logprobs_BT: Tensor,
    advantages_B: Tensor,
    mask_BT: Tensor,
    *,
    counts: Counts,
    max_tokens: int,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    sampler_weights_BT: Tensor | None = None,
) -> Tensor:
    """These rows' share of Dr.GRPO's loss: no length bias and no KL.

    J = E[(1/G) sum_i (1/L) sum_t min(r_it A_i, clip(r_it, 1-eps, 1+eps) A_i)] with L a constant and
    A_i = R_i - mean (:func:`trainers.losses.advantages.mean_centred_advantages`).

    The paper's objective sums over tokens and leaves L open; its code divides by the generation
    limit (3000), so ``max_tokens`` is required. verl's ``seq-mean-token-sum-norm`` falls back to
    the padded width of the tensor. The gradient is smaller than GRPO's by mean length / L.

    Args:
        logprobs_BT: Log-probabilities under the policy, with gradient.
        old_logprobs_BT: The same before the step's first update.
        advantages_B: Advantage of each reply.
        mask_BT: Reply tokens to train on.
        counts: Counts of the whole step.
        max_tokens: L, the generation limit.
        clip_low: eps below.
        clip_high: eps above.
        sampler_weights_BT: Correction between sampler and trainer.

    References:
        Liu et al., `Understanding R1-Zero-Like Training <https://arxiv.org/abs/2503.20783>`_, 2025,
        section 3.
    """
    return policy_loss(
        token_ratio(logprobs_BT, old_logprobs_BT, mask_BT),
        advantages_B,
        mask_BT,
        counts=counts,
        clip_low=clip_low,
        clip_high=clip_high,
        aggregation="constant",
        max_tokens=max_tokens,
        sampler_weights_BT=sampler_weights_BT,
    )
