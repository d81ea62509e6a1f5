"""Estimators of KL(pi_theta || pi_ref) on sampled tokens: as values, and as terms of a loss.

With x = log pi_theta - log pi_ref: k1 = x, k2 = x^2 / 2, k3 = exp(-x) - 1 + x. On-policy k1 and k3
are unbiased *values*. Their *gradients* are another matter, hence two functions.

B rows, T tokens.
"""

from typing import Literal, get_args

from torch import Tensor

from trainers.losses.aggregate import Aggregation, Counts, aggregate
from trainers.losses.checks import require_choice
from trainers.losses.ratios import MAX_LOG_RATIO, log_ratio, token_ratio

__all__ = ["KLEstimator", "KLTerm", "kl_estimate", "kl_loss"]

KLEstimator = Literal["k1", "k2", "k3"]
KLTerm = Literal["k2", "k3", "ratio-k1", "ratio-k3"]


def kl_estimate(
    logprobs_BT: Tensor,
    ref_logprobs_BT: Tensor,
    mask_BT: Tensor,
    *,
    estimator: KLEstimator = "k3",
) -> Tensor:
    """The estimate at each token, 0 where masked; log ratios beyond plus or minus 20 are clamped.

    References:
        Schulman, `Approximating KL Divergence <http://joschu.net/blog/kl-approx.html>`_, 2020.
    """
    require_choice("KL estimator", estimator, get_args(KLEstimator))
    x_BT = log_ratio(logprobs_BT, ref_logprobs_BT, mask_BT).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    if estimator == "k1":
        return x_BT
    if estimator == "k2":
        return 0.5 * x_BT.square()
    return (-x_BT).exp() - 1.0 + x_BT


def kl_loss(
    logprobs_BT: Tensor,
    old_logprobs_BT: Tensor,
    ref_logprobs_BT: Tensor,
    mask_BT: Tensor,
    *,
    counts: Counts,
    term: KLTerm = "k3",
    aggregation: Aggregation = "sequence-mean",
    max_tokens: int | None = None,
    group_tokens_B: Tensor | None = None,
) -> Tensor:
    """These rows' share of a KL term of the loss; multiply it by the coefficient.

    =========  ==========================================================================
    term       expected gradient on-policy
    =========  ==========================================================================
    k1         exactly 0: refused
    k2         that of KL(pi_theta || pi_ref)
    k3         that of the *forward* KL(pi_ref || pi_theta); GRPO's paper, so the default
    ratio-k1   that of KL(pi_theta || pi_ref): k1 times the live ratio pi_theta / sg[pi_old]
    ratio-k3   that of KL(pi_theta || pi_ref); TRL's default since mid-2026
    =========  ==========================================================================

    KL in the reward is another method and not offered under these names.

    Raises:
        ValueError: If the term is ``k1`` or unknown.

    References:
        Shao et al., `DeepSeekMath <https://arxiv.org/abs/2402.03300>`_, 2024, equation 4.
    """
    name: str = term
    if name == "k1":
        raise ValueError("KL term must not be 'k1': its expected gradient is 0; use 'ratio-k1'")
    require_choice("KL term", name, get_args(KLTerm))
    estimator: KLEstimator = "k2" if term == "k2" else "k1" if term == "ratio-k1" else "k3"
    losses_BT = kl_estimate(logprobs_BT, ref_logprobs_BT, mask_BT, estimator=estimator)
    if term.startswith("ratio-"):
        losses_BT = losses_BT * token_ratio(logprobs_BT, old_logprobs_BT, mask_BT)
    return aggregate(
        losses_BT,
        mask_BT,
        mode=aggregation,
        counts=counts,
        max_tokens=max_tokens,
        group_tokens_B=group_tokens_B,
    )
