"""From token losses to one number, with counts of the whole optimiser step.

A trainer that divides by what happens to be in a micro-batch optimises another loss; public
trainers had this fault more often than any other. So the counts are required arguments, and every
loss of this package returns the *share* of its rows: the shares of all micro-batches and processes
add up to the loss of the step.

P prompts, G replies of a group, B rows, T tokens.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from trainers.losses.checks import require_choice, require_rows, require_tokens
from trainers.losses.masks import keep

__all__ = ["Aggregation", "Counts", "aggregate", "row_weights"]

Aggregation = Literal["sequence-mean", "token-mean", "constant", "group-token-mean"]
"""How token losses become a number; see :func:`row_weights`."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What the step as a whole trains on, over all micro-batches and processes."""

    tokens: int
    """Tokens that the mask keeps."""
    sequences: int
    """Rows of which the mask keeps at least one token."""
    groups: int
    """Prompts, those with flat rewards included."""

    def __post_init__(self) -> None:
        """Refuses negative counts."""
        for name in ("tokens", "sequences", "groups"):
            if getattr(self, name) < 0:
                raise ValueError(f"counts.{name} must not be negative, got {getattr(self, name)}")

    def __add__(self, other: "Counts") -> "Counts":
        """Counts of two disjoint sets of rows; a group must be counted on one side only."""
        return Counts(
            self.tokens + other.tokens,
            self.sequences + other.sequences,
            self.groups + other.groups,
        )

    @classmethod
    def of(cls, mask_BT: Tensor, *, groups: int) -> "Counts":
        """Counts of the rows of one mask, which belong to ``groups`` prompts."""
        require_tokens(mask_BT)
        return cls(int(mask_BT.sum()), int(mask_BT.any(-1).sum()), groups)


def row_weights(
    mask_BT: Tensor,
    *,
    mode: Aggregation,
    counts: Counts,
    max_tokens: int | None = None,
    group_tokens_B: Tensor | None = None,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """The factor of each row's summed token loss.

    ==================  =============================  =======================================
    mode                factor of row i                used by
    ==================  =============================  =======================================
    sequence-mean       1 / (S n_i)                    GRPO's paper, GSPO, MUPO, Share-GRPO
    token-mean          1 / sum_j n_j                  DAPO, GPG; default of verl, EasyR1, TRL
    constant            1 / (S L), L = max_tokens      Dr.GRPO
    group-token-mean    1 / (P n_p), n_p of its group  DAPO's formula read literally
    ==================  =============================  =======================================

    S counts the rows that have tokens: a row that is masked as a whole is no sequence. TRL counts
    it in its ``grpo`` and ``dr_grpo`` modes, verl does not. Counts of 0 are taken as 1, so that a
    step without tokens has loss 0 and finite gradients.

    Args:
        mask_BT: Tokens to train on.
        mode: One of the four above.
        counts: Counts of the whole step.
        max_tokens: L of ``constant``: the generation limit, never the padded width.
        group_tokens_B: Tokens of each row's whole group, for ``group-token-mean``.
        dtype: Type of the result.

    Raises:
        ValueError: If what the mode needs is missing.
    """
    require_choice("aggregation", mode, get_args(Aggregation))
    require_tokens(mask_BT)
    lengths_B = mask_BT.sum(-1).clamp(min=1).to(dtype)
    sequences, tokens = max(counts.sequences, 1), max(counts.tokens, 1)
    if mode == "sequence-mean":
        return 1.0 / (lengths_B * sequences)
    if mode == "token-mean":
        return torch.full_like(lengths_B, 1.0 / tokens)
    if mode == "constant":
        if max_tokens is None or max_tokens < 1:
            raise ValueError(f"aggregation 'constant' needs max_tokens >= 1, got {max_tokens}")
        return torch.full_like(lengths_B, 1.0 / (sequences * max_tokens))
    if group_tokens_B is None:
        raise ValueError("aggregation 'group-token-mean' needs group_tokens, got None")
    require_rows(mask_BT, group_tokens=group_tokens_B)
    return 1.0 / (group_tokens_B.clamp(min=1).to(dtype) * max(counts.groups, 1))


def aggregate(
    losses_BT: Tensor,
    mask_BT: Tensor,
    *,
    mode: Aggregation,
    counts: Counts,
    max_tokens: int | None = None,
    group_tokens_B: Tensor | None = None,
) -> Tensor:
    """The share that these rows have in the step's loss: sum_i factor_i * sum_t l_it.

    Example:
        >>> import torch
        >>> losses = torch.tensor([1.0, 2.0])[:, None].expand(2, 20)
        >>> mask = torch.arange(20)[None, :] < torch.tensor([2, 20])[:, None]
        >>> counts = Counts.of(mask, groups=1)
        >>> round(float(aggregate(losses, mask, mode="token-mean", counts=counts)), 6)
        1.909091
        >>> float(aggregate(losses, mask, mode="sequence-mean", counts=counts))
        1.5
    """
    require_tokens(mask_BT, losses=losses_BT)
    weights_B = row_weights(
        mask_BT,
        mode=mode,
        counts=counts,
        max_tokens=max_tokens,
        group_tokens_B=group_tokens_B,
        dtype=losses_BT.dtype,
    )
    return (keep(losses_BT, mask_BT).sum(-1) * weights_B).sum()
