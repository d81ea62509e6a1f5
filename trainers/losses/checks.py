"""Checks of arguments; each message names the thing, the rule and the value.

Shape suffixes used throughout ``trainers.losses``: P prompts, G replies of a group, B rows (usually
P * G), T tokens, K clusters, M variants of a question, N replies of a variant, V vocabulary.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from npbench.errors import unknown_name

__all__ = ["require_choice", "require_groups", "require_rows", "require_tokens"]


def require_tokens(mask_BT: Tensor, **tensors: Tensor | None) -> None:
    """Raises ValueError unless the mask is a bool matrix and all tensors have its shape.

    Broadcasting a (B,) value over (B, T) tokens is silently wrong where B equals T, so nothing but
    the exact shape is accepted.
    """
    if mask_BT.dtype != torch.bool or mask_BT.ndim != 2:
        raise ValueError(
            f"mask must be a bool tensor of shape (B, T), "
            f"got {mask_BT.dtype} {tuple(mask_BT.shape)}"
        )
    for name, tensor in tensors.items():
        if tensor is not None and tensor.shape != mask_BT.shape:
            raise ValueError(
                f"{name} must have the mask's shape {tuple(mask_BT.shape)}, "
                f"got {tuple(tensor.shape)}"
            )


def require_rows(mask_BT: Tensor, **tensors: Tensor | None) -> None:
    """Raises ValueError unless every tensor has one value for each row of the mask."""
    for name, tensor in tensors.items():
        if tensor is not None and tensor.shape != mask_BT.shape[:1]:
            raise ValueError(
                f"{name} must have shape ({mask_BT.shape[0]},), one value a row, "
                f"got {tuple(tensor.shape)}"
            )


def require_groups(rewards_PG: Tensor) -> None:
    """Raises ValueError unless rewards are (P, G) with G of at least 2, finite or NaN."""
    if rewards_PG.ndim != 2 or not rewards_PG.dtype.is_floating_point:
        raise ValueError(
            f"rewards must be a floating tensor of shape (P, G), "
            f"got {rewards_PG.dtype} {tuple(rewards_PG.shape)}"
        )
    if rewards_PG.shape[1] < 2:
        raise ValueError(f"a group must hold at least 2 replies, got G={rewards_PG.shape[1]}")
    if bool(rewards_PG.isinf().any()):
        raise ValueError("rewards must be finite, or NaN where unscorable, got an infinite one")


def require_choice(kind: str, name: str, known: Iterable[str]) -> None:
    """Raises InputError, with the nearest known name, where ``name`` is not known."""
    names = tuple(known)
    if name not in names:
        raise unknown_name(kind, name, names)
