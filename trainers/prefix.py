"""Prompt and picture encoded once for all replies of a group, with gradient.

The prompt runs once; its keys and values are leaves on which the replies of every micro-batch
leave their gradient, and one backward pass through the prompt takes it on. So the memory of a step
does not grow with the number of replies, their own tokens apart.

R replies of one prompt, L prompt tokens, T reply tokens, V vocabulary, H width of the model.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from npbench.errors import InputError
from trainers.encoding import Prompt

__all__ = [
    "Prefix",
    "Shared",
    "encode_prompt",
    "positions_after",
    "prompt_positions",
    "reply_hidden",
]


@dataclass(frozen=True, slots=True)
class Prefix:
    """What a prompt leaves behind for its replies."""

    keys_values: tuple[tuple[Tensor, Tensor], ...]
    """By layer, each of shape (1, heads, L, width of a head)."""
    last_logits_V: Tensor
    """Logits of the first reply token."""
    hidden_1LH: Tensor | None
    """Last hidden states, where asked for."""
    length: int
    next_position: int
    """Position of the first reply token; with pictures not always the length."""

    def tensors(self) -> list[Tensor]:
        """Everything that carries gradient."""
        flat = [tensor for pair in self.keys_values for tensor in pair]
        return [*flat, self.last_logits_V, *([] if self.hidden_1LH is None else [self.hidden_1LH])]

    def cache(self, rows: int) -> Any:
        """A cache in which ``rows`` replies stand behind the prompt."""
        from transformers import DynamicCache

        cache = DynamicCache()
        for layer, (keys, values) in enumerate(self.keys_values):
            cache.update(keys.expand(rows, -1, -1, -1), values.expand(rows, -1, -1, -1), layer)
        return cache


def prompt_positions(model: nn.Module, prompt: Prompt) -> Tensor:
    """Position ids of a prompt: (1, L), or (3, 1, L) where the model places pictures in 3-D.

    Raises:
        InputError: If a picture comes without its token types: positions would silently be 1-D.
    """
    inner: Any = getattr(model, "model", model)
    if prompt.pictures and hasattr(inner, "get_rope_index"):
        if "mm_token_type_ids" not in prompt.pictures:
            raise InputError("the processor must return mm_token_type_ids for this model")
        found: Tensor = inner.get_rope_index(
            prompt.ids_1L,
            mm_token_type_ids=prompt.pictures["mm_token_type_ids"],
            image_grid_thw=prompt.pictures["image_grid_thw"],
            attention_mask=torch.ones_like(prompt.ids_1L),
        )[0]
        return found
    return torch.arange(prompt.length, device=prompt.ids_1L.device)[None, :]


def positions_after(model: nn.Module, starts_R: Tensor, steps: int, *, offset: int = 0) -> Tensor:
    """Position ids of ``steps`` reply tokens, the first of them at ``starts_R + offset``."""
    inner: Any = getattr(model, "model", model)
    run = torch.arange(offset, offset + steps, device=starts_R.device)
    positions_RT = starts_R[:, None] + run[None, :]
    if hasattr(inner, "get_rope_index"):
        return positions_RT[None].expand(3, -1, -1)
    return positions_RT


def encode_prompt(model: nn.Module, prompt: Prompt, *, hidden: bool = False) -> Prefix:
    """Runs a prompt once.

    Raises:
        InputError: If the model keeps other states than keys and values of all tokens.
    """
    from transformers.cache_utils import DynamicLayer

    positions = prompt_positions(model, prompt)
    extra = {"output_hidden_states": True} if hidden else {}
    outputs: Any = model(
        input_ids=prompt.ids_1L,
        attention_mask=torch.ones_like(prompt.ids_1L),
        position_ids=positions,
        use_cache=True,
        logits_to_keep=1,
        **prompt.pictures,
        **extra,
    )
    layers = outputs.cache.layers
    if any(type(layer) is not DynamicLayer for layer in layers):
        raise InputError(
            "the model must keep keys and values of all tokens in every layer (no sliding windows, "
            f"no recurrent states), got {type(layers[0]).__name__}"
        )
    return Prefix(
        tuple((layer.keys, layer.values) for layer in layers),
        outputs.logits[0, -1],
        outputs.hidden_states[-1] if hidden else None,
        prompt.length,
        int(positions.max()) + 1,
    )


class Shared:
    """A prompt whose replies come in several micro-batches.

    ``shared = Shared(encode_prompt(model, prompt))``, then any number of losses made from
    ``shared.prefix`` with ``loss.backward()``, then ``shared.finish()``.
    """

    def __init__(self, computed: Prefix) -> None:
        """Cuts the graph between the prompt and its replies."""
        self._computed = computed
        pairs = tuple((_leaf(keys), _leaf(values)) for keys, values in computed.keys_values)
        hidden = None if computed.hidden_1LH is None else _leaf(computed.hidden_1LH)
        logits = _leaf(computed.last_logits_V)
        self.prefix = Prefix(pairs, logits, hidden, computed.length, computed.next_position)

    def finish(self) -> None:
        """Takes the gradient that has gathered at the cut through the prompt."""
        found = [
            (tensor, leaf.grad)
            for tensor, leaf in zip(self._computed.tensors(), self.prefix.tensors(), strict=True)
            if tensor.requires_grad and leaf.grad is not None
        ]
        if found:
            tensors, gradients = zip(*found, strict=True)
            torch.autograd.backward(tensors, gradients)


def _leaf(tensor: Tensor) -> Tensor:
    return tensor.detach().requires_grad_(tensor.requires_grad)


def reply_hidden(model: nn.Module, prefix: Prefix, tokens_RT: Tensor, **extra: Any) -> Any:
    """The model's outputs on replies behind a prefix, one position for each given token."""
    rows, steps = tokens_RT.shape
    starts_R = torch.full((rows,), prefix.next_position, device=tokens_RT.device)
    return model(
        input_ids=tokens_RT,
        attention_mask=torch.ones(
            rows, prefix.length + steps, dtype=torch.long, device=tokens_RT.device
        ),
        position_ids=positions_after(model, starts_R, steps),
        cache=prefix.cache(rows),
        use_cache=True,
        **extra,
    )
