"""Log-probabilities of given tokens over a large vocabulary, a part at a time.

A softmax over V = 152k words for 2k tokens is 1.2 GB in float32, and automatic differentiation
keeps several of them. Here only a bounded part is ever held in float32: the forward pass keeps one
number a token, and the backward pass computes each part again and writes its gradient in the type
of the logits.

R rows, T tokens of each, V vocabulary; (r, t, V) is a part of (R, T, V).
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

__all__ = ["PART", "scaled_logits", "token_logprobs"]

PART = 1 << 25
"""Numbers of a softmax that are held at once: 128 MB in float32."""


def scaled_logits(logits: Tensor, *, temperature: float, banned_ids: Sequence[int] = ()) -> Tensor:
    """Logits of softmax(logits / temperature) over the tokens that are not banned.

    Args:
        logits: Of shape (..., V), in any float type.
        temperature: Above 0.
        banned_ids: Tokens of probability 0.

    Returns:
        The same shape in float32; in float64 where the logits are.
    """
    exact = logits if logits.dtype == torch.float64 else logits.float()
    scaled = exact / temperature
    if not banned_ids:
        return scaled
    banned = torch.tensor(tuple(banned_ids), device=logits.device)
    return scaled.index_fill(-1, banned, -torch.inf)


def token_logprobs(
    logits_RTV: Tensor,
    tokens_RT: Tensor,
    *,
    temperature: float = 1.0,
    banned_ids: Sequence[int] = (),
    part: int = PART,
) -> Tensor:
    """The logarithm of softmax(logits / temperature) at given tokens.

    Args:
        logits_RTV: In any float type; they need not be contiguous. One leading dimension may lack.
        tokens_RT: Ids; their log-probability is -inf where they are banned.
        temperature: Above 0.
        banned_ids: Tokens of probability 0.
        part: Numbers of the softmax held at once, at least one token's.

    Returns:
        Shape (R, T), in float32 or, where the logits are, float64.
    """
    if logits_RTV.numel() <= part:
        scaled = scaled_logits(logits_RTV, temperature=temperature, banned_ids=banned_ids)
        picked: Tensor = scaled.gather(-1, tokens_RT[..., None]).squeeze(-1)
        return picked - scaled.logsumexp(-1)
    flat = logits_RTV.ndim == 2
    found: Tensor = _LogProbs.apply(  # type: ignore[no-untyped-call]
        logits_RTV[None] if flat else logits_RTV,
        tokens_RT[None] if flat else tokens_RT,
        temperature,
        tuple(banned_ids),
        part,
    )
    return found[0] if flat else found


def _parts(shape: torch.Size, part: int) -> Iterator[tuple[slice, slice]]:
    """Slices of rows and tokens, each of at most ``part`` numbers or one token."""
    rows, steps, words = shape
    tokens_at_once = max(1, part // words)
    rows_at_once = max(1, tokens_at_once // max(steps, 1))
    for row in range(0, rows, rows_at_once):
        for step in range(0, steps, tokens_at_once):
            yield slice(row, row + rows_at_once), slice(step, step + tokens_at_once)


def _empty_like(logits_RTV: Tensor) -> Tensor:
    """One number for each token."""
    kind = torch.float64 if logits_RTV.dtype == torch.float64 else torch.float32
    return torch.empty(logits_RTV.shape[:-1], dtype=kind, device=logits_RTV.device)


class _LogProbs(torch.autograd.Function):
    """d log p_y / d logit_v = ((v = y) - p_v) / temperature."""

    @staticmethod
    def forward(
        ctx: Any,
        logits_RTV: Tensor,
        tokens_RT: Tensor,
        temperature: float,
        banned_ids: tuple[int, ...],
        part: int,
    ) -> Tensor:
        found_RT, norm_RT = _empty_like(logits_RTV), _empty_like(logits_RTV)
        for at in _parts(logits_RTV.shape, part):
            scaled = scaled_logits(logits_RTV[at], temperature=temperature, banned_ids=banned_ids)
            norm_RT[at] = scaled.logsumexp(-1)
            found_RT[at] = scaled.gather(-1, tokens_RT[at][..., None]).squeeze(-1) - norm_RT[at]
        ctx.save_for_backward(logits_RTV, tokens_RT, norm_RT)
        ctx.settings = (temperature, banned_ids, part)
        return found_RT

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient_RT: Tensor) -> tuple[Tensor | None, ...]:
        logits_RTV, tokens_RT, norm_RT = ctx.saved_tensors
        temperature, banned_ids, part = ctx.settings
        found_RTV = torch.empty_like(logits_RTV, memory_format=torch.contiguous_format)
        for at in _parts(logits_RTV.shape, part):
            scaled = scaled_logits(logits_RTV[at], temperature=temperature, banned_ids=banned_ids)
            weight = gradient_RT[at][..., None] / temperature
            # in place: one part in float32 is all there is
            moved = scaled.sub_(norm_RT[at][..., None]).exp_().mul_(-weight)
            places = tokens_RT[at][..., None]
            moved.scatter_(-1, places, moved.gather(-1, places) + weight)
            if banned_ids:
                banned = torch.tensor(banned_ids, device=moved.device)
                moved.index_fill_(-1, banned, 0.0)
            found_RTV[at] = moved
        return found_RTV, None, None, None, None
