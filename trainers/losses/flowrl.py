"""FlowRL: match the whole reward distribution instead of maximising the reward.

B rows, T tokens, H width of the model.
"""

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from trainers.losses.aggregate import Counts
from trainers.losses.checks import require_choice, require_rows
from trainers.losses.masks import row_mean
from trainers.losses.ratios import sequence_product_log_ratio, sequence_ratio
from trainers.losses.surrogate import check_clip

__all__ = ["FlowWeight", "LogZHead", "flowrl_loss"]

FlowWeight = Literal["paper", "mean", "recipe"]


def flowrl_loss(
    logprobs_BT: Tensor,
    old_logprobs_BT: Tensor,
    ref_logprobs_BT: Tensor,
    log_z_B: Tensor,
    rewards_B: Tensor,
    mask_BT: Tensor,
    *,
    counts: Counts,
    beta: float = 15.0,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    weight: FlowWeight = "paper",
) -> Tensor:
    """These rows' share of FlowRL's loss, a mean over replies.

    L = w [log Z(x) + (1/|y|) log pi_theta(y|x) - beta r - (1/|y|) log pi_ref(y|x)]^2,
    w = sg[clip(pi_theta(y|x) / pi_old(y|x), 1-eps, 1+eps)].

    ``weight`` names how w is read. ``paper``: the ratio of whole replies, a product over tokens,
    and really clipped. ``mean``: the geometric mean of the token ratios, clipped: the same length
    normalisation as in the bracket. ``recipe``: the product, its log capped at 10 and *not*
    clipped, as verl's recipe has it (the authors' repository computes the clip and drops it). No
    eps for w is known to us from the paper; 0.2 is the usual one. Equal rewards give r = 0 and an
    anchor to pi_ref / Z, not a zero gradient: the one method here whose flat groups always train.

    Args:
        logprobs_BT: Log-probabilities under the policy, with gradient.
        old_logprobs_BT: The same before the step's first update.
        ref_logprobs_BT: Log-probabilities under the reference policy.
        log_z_B: log Z of each row's prompt, with gradient to its head.
        rewards_B: r, the group-relative advantage of each reply.
        mask_BT: Reply tokens to train on.
        counts: Counts of the whole step.
        beta: Inverse temperature; 15 in paper and code.
        clip_low: eps below.
        clip_high: eps above.
        weight: ``paper``, ``mean`` or ``recipe``.

    References:
        Zhu et al., `FlowRL <https://arxiv.org/abs/2509.15207>`_, ICLR 2026, section 3.
    """
    require_choice("weight of FlowRL", weight, get_args(FlowWeight))
    require_rows(mask_BT, log_z=log_z_B, rewards=rewards_B)
    check_clip(clip_low, clip_high)
    with torch.no_grad():
        if weight == "mean":
            w_B = sequence_ratio(logprobs_BT, old_logprobs_BT, mask_BT)
        else:
            log_B = sequence_product_log_ratio(logprobs_BT, old_logprobs_BT, mask_BT)
            w_B = log_B.clamp(max=10.0).exp()
        if weight != "recipe":
            w_B = w_B.clamp(1.0 - clip_low, 1.0 + clip_high)
    policy_B = row_mean(logprobs_BT, mask_BT)
    reference_B = row_mean(ref_logprobs_BT.detach(), mask_BT)
    residual_B = log_z_B + policy_B - beta * rewards_B.detach() - reference_B
    losses_B = (w_B * residual_B.square()).masked_fill(~mask_BT.any(-1), 0.0)
    return losses_B.sum() / max(counts.sequences, 1)


class LogZHead(nn.Module):
    """log Z(x) from the prompt's last hidden states, trained by the same loss.

    Three linear layers: (Linear, GELU, LayerNorm, Dropout) twice, then Linear to one number; the
    input is the mean over prompt tokens. It belongs in the optimiser and in the checkpoint, and
    must not be sent to the sampler. The released head shares the policy's learning rate of 1e-6,
    slow for a fresh module, and drops the prompt's last token from the mean; here nothing is
    dropped. Dropout must be off wherever two passes have to agree.
    """

    def __init__(self, width: int, *, dropout: float = 0.1) -> None:
        """A head for hidden states of the given width."""
        super().__init__()
        layers: list[nn.Module] = []
        for _ in range(2):
            layers += [
                nn.Linear(width, width),
                nn.GELU(),
                nn.LayerNorm(width),
                nn.Dropout(dropout),
            ]
        self.layers = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, hidden_BTH: Tensor, mask_BT: Tensor) -> Tensor:
        """The log Z of each row.

        Args:
            hidden_BTH: Last hidden states of the prompt.
            mask_BT: The prompt's tokens.

        Raises:
            ValueError: If a prompt has no token.
        """
        if mask_BT.dtype != torch.bool or mask_BT.shape != hidden_BTH.shape[:2]:
            raise ValueError(
                f"mask must be bool of shape {tuple(hidden_BTH.shape[:2])}, "
                f"got {mask_BT.dtype} {tuple(mask_BT.shape)}"
            )
        if not bool(mask_BT.any(-1).all()):
            raise ValueError("every prompt must have at least 1 token, got a row without")
        kept = hidden_BTH.masked_fill(~mask_BT[..., None], 0.0).sum(1)
        mean_BH = kept / mask_BT.sum(-1, keepdim=True)
        log_z_B1: Tensor = self.layers(mean_BH)
        return log_z_B1.squeeze(-1)
