"""Masks from lengths, and means over the tokens that a mask keeps.

B rows, T tokens.
"""

import torch
from torch import Tensor

from trainers.losses.checks import require_tokens

__all__ = ["keep", "mask_from_lengths", "row_mean", "row_sum"]


def mask_from_lengths(
    lengths_B: Tensor, *, width: int, truncated_B: Tensor | None = None
) -> Tensor:
    """A bool mask that keeps the first ``lengths_B`` tokens of each row.

    Masks come from lengths and never from ids: where the padding id equals the end-of-sequence id,
    a mask made from ids hides the end from the model, which then never learns to stop.

    Args:
        lengths_B: Number of reply tokens of each row, the end-of-sequence token included.
        width: T, the padded width.
        truncated_B: Rows to hide altogether (replies cut off by the limit), if that is the policy.

    Raises:
        ValueError: If a length does not lie in [0, width].
    """
    if lengths_B.numel() and not 0 <= int(lengths_B.min()) <= int(lengths_B.max()) <= width:
        raise ValueError(
            f"lengths must lie in [0, width={width}], "
            f"got {int(lengths_B.min())} to {int(lengths_B.max())}"
        )
    mask_BT = torch.arange(width, device=lengths_B.device)[None, :] < lengths_B[:, None]
    return mask_BT if truncated_B is None else mask_BT & ~truncated_B[:, None]


def keep(values_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """The values where the mask holds, and exactly 0, with gradient exactly 0, elsewhere.

    Multiplying by the mask would turn an infinity in the padding into NaN; a fill does not.
    """
    return values_BT.masked_fill(~mask_BT, 0.0)


def row_sum(values_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Sum over the tokens of each row."""
    require_tokens(mask_BT, values=values_BT)
    return keep(values_BT, mask_BT).sum(-1)


def row_mean(values_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Mean over the tokens of each row; 0 for a row without tokens.

    With log-probabilities this is phi, the length-normalised score of a reply.
    """
    return row_sum(values_BT, mask_BT) / mask_BT.sum(-1).clamp(min=1)
