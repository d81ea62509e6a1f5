"""Importance ratios between the policy and the policy that was scored when the step began.

B rows, T tokens. Masked tokens have log ratio 0 and ratio 1, and no gradient.
"""

from torch import Tensor

from trainers.losses.checks import require_tokens
from trainers.losses.masks import keep, row_mean, row_sum

__all__ = [
    "MAX_LOG_RATIO",
    "log_ratio",
    "sequence_product_log_ratio",
    "sequence_ratio",
    "sequence_token_ratio",
    "token_ratio",
]

MAX_LOG_RATIO = 20.0
"""Log ratios are clamped to plus or minus this before ``exp``, as in verl and EasyR1, not TRL."""


def log_ratio(logprobs_BT: Tensor, old_logprobs_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """The log pi_theta - log pi_old of each token, the old policy detached.

    Both must be log-probabilities of the *sampling* distribution, that is of logits divided by the
    temperature, and of the trainer, not of the sampler.
    """
    require_tokens(mask_BT, logprobs=logprobs_BT, old_logprobs=old_logprobs_BT)
    return keep(logprobs_BT, mask_BT) - keep(old_logprobs_BT.detach(), mask_BT)


def token_ratio(logprobs_BT: Tensor, old_logprobs_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """r_it = pi_theta(o_it | x, o_i<t) / pi_old(o_it | x, o_i<t)."""
    log_BT = log_ratio(logprobs_BT, old_logprobs_BT, mask_BT)
    return log_BT.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()


def sequence_ratio(logprobs_BT: Tensor, old_logprobs_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """GSPO's s_i = exp(mean_t log r_it), the geometric mean of the token ratios.

    References:
        Zheng et al., `Group Sequence Policy Optimization <https://arxiv.org/abs/2507.18071>`_,
        2025, section 4.
    """
    log_B = row_mean(log_ratio(logprobs_BT, old_logprobs_BT, mask_BT), mask_BT)
    return log_B.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()


def sequence_token_ratio(logprobs_BT: Tensor, old_logprobs_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """GSPO-token's s_it = sg[s_i] * pi_theta(o_it) / sg[pi_theta(o_it)]: s_i at every token.

    Its value is s_i and its gradient is s_i times that of log pi_theta(o_it).
    """
    s_B = sequence_ratio(logprobs_BT, old_logprobs_BT, mask_BT).detach()
    kept_BT = keep(logprobs_BT, mask_BT)
    return s_B[:, None] * (kept_BT - kept_BT.detach()).exp()


def sequence_product_log_ratio(
    logprobs_BT: Tensor, old_logprobs_BT: Tensor, mask_BT: Tensor
) -> Tensor:
    """The log of pi_theta(o_i | x) / pi_old(o_i | x), a sum over tokens that grows with length."""
    return row_sum(log_ratio(logprobs_BT, old_logprobs_BT, mask_BT), mask_BT)
