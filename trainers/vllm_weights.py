"""A model's weights as an engine takes them: under their plain names, each tensor once."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from trainers.adapters import merged_state
from trainers.model_configs import read_model_config

__all__ = ["Outline", "model_outline", "pack_tied_heads", "plain_weights", "stored_weights"]


def plain_weights(model: nn.Module) -> dict[str, Tensor]:
    """The tensors of a model, an adapter merged into them; a tied head is the embedding's."""
    seen: set[tuple[int, torch.Size]] = set()
    found = {}
    for name, tensor in merged_state(model).items():
        if (key := (tensor.data_ptr(), tensor.shape)) not in seen:
            seen.add(key)
            found[name] = tensor.detach()
    return found


def stored_weights(folder: Path) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a folder's safetensors files, read as they are taken."""
    from safetensors import safe_open

    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118
                yield name, file.get_tensor(name)


@dataclass(frozen=True, slots=True)
class Outline:
    """What a checkpoint's configuration says of its model."""

    shapes: dict[str, tuple[int, ...]]
    """Names and shapes of its ``plain_weights``."""
    image_token_id: int | None


def model_outline(source: str) -> Outline:
    """The outline of a checkpoint; its weights are not looked at.

    Raises:
        InputError: If there is no such checkpoint.
    """
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

    config = read_model_config(source)
    image_token_id = getattr(config, "image_token_id", None)
    kind: Any = AutoModelForCausalLM if image_token_id is None else AutoModelForImageTextToText
    with torch.device("meta"):
        model = kind.from_config(config)
    seen: set[int] = set()
    found: dict[str, tuple[int, ...]] = {}
    # tensors of a model without memory have no address, but tied ones are one object
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            found[name] = tuple(tensor.shape)
    return Outline(found, image_token_id)


def pack_tied_heads(model: nn.Module) -> None:
    """On a CPU layers compute with packed copies, and a reload leaves a tied head its old one."""
    for layer in model.modules():
        packed: Any = layer
        if hasattr(layer, "cpu_linear") and packed.weight.numel():
            packed.quant_method.process_weights_after_loading(layer)
