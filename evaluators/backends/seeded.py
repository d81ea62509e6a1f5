"""Sampling in which each row of a batch draws from a seed of its own.

Shapes: B rows, T tokens, V vocabulary.
"""

# ruff: noqa: N806

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import (
    LogitsProcessor,
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from evaluators.backends.base import Sampling

__all__ = ["seeded_processor"]


def seeded_processor(
    seeds: Sequence[int | None], sampling: Sampling, *, max_tokens: int
) -> LogitsProcessor:
    """A processor that leaves one token of each row possible.

    Rows without a seed keep their likeliest token; the others draw by inversion, one uniform
    number a token from the row's own stream.

    Args:
        seeds: One a row, None for greedy decoding.
        sampling: Temperature and cuts of the sampled rows.
        max_tokens: The most tokens that are drawn.
    """
    return _Seeded(seeds, sampling, max_tokens)


class _Seeded(LogitsProcessor):
    def __init__(self, seeds: Sequence[int | None], sampling: Sampling, max_tokens: int) -> None:
        self._step = 0
        self._greedy_B = torch.tensor([seed is None for seed in seeds])
        self._uniform_BT = torch.stack(
            [
                torch.rand(
                    max_tokens,
                    generator=torch.Generator().manual_seed(seed or 0),
                    dtype=torch.float64,
                )
                for seed in seeds
            ]
        )
        warpers: list[Any] = []
        if sampling.repetition_penalty != 1.0:
            warpers.append(RepetitionPenaltyLogitsProcessor(sampling.repetition_penalty))
        warpers.append(TemperatureLogitsWarper(float(sampling.temperature)))
        if sampling.top_k:
            warpers.append(TopKLogitsWarper(sampling.top_k))
        if sampling.top_p < 1.0:
            warpers.append(TopPLogitsWarper(sampling.top_p))
        if sampling.min_p > 0.0:
            warpers.append(MinPLogitsWarper(sampling.min_p))
        self._warpers: Any = LogitsProcessorList(warpers)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Minus infinity but for one token of each row."""
        device = scores.device
        chosen_B = scores.argmax(dim=-1)
        if not bool(self._greedy_B.all()):
            probabilities_BV = self._warpers(input_ids, scores.float()).softmax(dim=-1).double()
            cumulative_BV = probabilities_BV.cumsum(dim=-1)
            uniform_B = self._uniform_BT[:, self._step].to(device)
            wanted_B1 = (uniform_B * cumulative_BV[:, -1]).unsqueeze(-1)
            drawn_B = torch.searchsorted(cumulative_BV, wanted_B1, right=True).squeeze(-1)
            # The last token with any mass, where rounding leads past it.
            last_B = (probabilities_BV > 0).double().cumsum(dim=-1).argmax(dim=-1)
            chosen_B = torch.where(
                self._greedy_B.to(device), chosen_B, torch.minimum(drawn_B, last_B)
            )
        self._step += 1
        forced_BV = torch.full_like(scores, float("-inf"))
        return forced_BV.scatter(-1, chosen_B.unsqueeze(-1), 0.0)
