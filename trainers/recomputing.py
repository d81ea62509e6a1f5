"""Gradient checkpointing that keeps the cache, so that it goes together with a shared prefix.

A layer's activations are dropped after its forward pass and computed again in the backward pass.
transformers switches the cache off for that, because the second forward pass would append keys and
values a second time. But the cache is an input of a layer like any other: what it held before the
first pass is remembered, and the second pass appends to that. Keys and values of a prompt keep
their gradient, and those of the replies are dropped with everything else: in the plain shared pass
each layer keeps a copy of the prompt's for every reply.
"""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from npbench.errors import InputError

__all__ = ["recompute_layers"]


def recompute_layers(model: nn.Module) -> None:
    """Makes every layer that transformers can checkpoint drop its activations; changes ``model``.

    Gradients are the same to the last bit as long as the layers are deterministic, so dropout must
    be off. Passes without gradient are left alone.

    Args:
        model: A transformers model.

    Raises:
        InputError: If it has no such layers.
    """
    from transformers.modeling_layers import GradientCheckpointingLayer

    layers = [one for one in model.modules() if isinstance(one, GradientCheckpointingLayer)]
    if not layers:
        raise InputError(
            f"optimizer.gradient_checkpointing must be false: {type(model).__name__} has no layers "
            "that can be computed again"
        )
    for layer in layers:
        layer.forward = _Recomputed(layer.forward)


class _Recomputed:
    """A layer's forward pass whose activations are computed again when they are needed."""

    def __init__(self, forward: Any) -> None:
        self._forward = forward

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not torch.is_grad_enabled():
            return self._forward(*args, **kwargs)
        cache = kwargs.get("cache")
        if cache is None:
            run = partial(self._forward, **kwargs)
            return checkpoint(run, *args, use_reentrant=False, preserve_rng_state=False)
        seen = _Replayed(cache)

        def run_with_cache(*inputs: Any) -> Any:
            found = self._forward(*inputs, **{**rest, "cache": seen})
            seen.end()
            return found

        rest = {name: value for name, value in kwargs.items() if name != "cache"}
        return checkpoint(run_with_cache, *args, use_reentrant=False, preserve_rng_state=False)


class _Replayed:
    """A cache as one layer sees it: appended to once, however often the layer is computed."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache
        self._before: dict[int, Any] = {}
        """Layer number -> what the cache held for it before the first pass."""

    def end(self) -> None:
        """Ends the first pass.

        The cache is let go: it holds what the layer computed, whose graph holds this object, and
        no garbage collector sees through a graph.
        """
        self._cache = None

    def update(
        self, keys: Tensor, values: Tensor, layer: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """All keys and values after these are appended."""
        found: tuple[Tensor, Tensor]
        if self._cache is None:
            # a copy, as the backward pass may come more than once
            found = copy.copy(self._before[layer]).update(keys, values)
        else:
            self._before[layer] = self._state(layer)
            found = self._cache.update(keys, values, layer, *args, **kwargs)
        return found

    def _state(self, layer: int) -> Any:
        from transformers.cache_utils import DynamicLayer

        layers, fresh = self._cache.layers, cast("Callable[[], Any]", DynamicLayer)
        # appending makes new tensors and leaves those of the copy
        return copy.copy(layers[layer]) if layer < len(layers) else fresh()
