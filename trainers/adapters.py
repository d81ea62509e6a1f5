"""LoRA through peft: an adapter inside frozen weights, and the same model with it switched off.

The layers are put into the model itself, so everything else sees an ordinary model. Checkpoints
hold the merged model, which needs no peft to be loaded, and the adapter beside it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from npbench.errors import InputError
from trainers.fsdp import named_tensors
from trainers.sections import LoraSettings

__all__ = [
    "adapter_off",
    "adapter_size",
    "adapter_state",
    "attach_adapter",
    "load_adapter",
    "merged_state",
]


def attach_adapter(model: Any, settings: LoraSettings, *, seed: int) -> None:
    """Freezes a model and puts a fresh adapter into it, which changes nothing yet.

    Adapter weights are float32 whatever the model's are.

    Args:
        model: Changed in place.
        settings: Rank, scale and layers.
        seed: Of the first matrix; the second one is 0.

    Raises:
        InputError: If peft is not installed or no layer has such a name.
    """
    try:
        from peft import (  # type: ignore[import-not-found, import-untyped, unused-ignore]
            LoraConfig,
            inject_adapter_in_model,
        )
    except ImportError as error:
        raise InputError("lora.rank above 0 needs: pip install peft") from error
    names = _layers(model, settings)
    wanted = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=0.0,
        target_modules=list(names),
    )
    model.requires_grad_(False)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        inject_adapter_in_model(wanted, model)
    for name, parameter in model.named_parameters():
        if "lora_" in name:
            parameter.data = parameter.data.float()
            parameter.requires_grad_(True)


def _layers(model: Any, settings: LoraSettings) -> dict[str, nn.Linear]:
    """The layers that an adapter goes into, by whole names.

    The last part of a name alone, such as 0, may be that of another kind of layer.

    Raises:
        InputError: If no layer has such a name.
    """
    head = model.get_output_embeddings()
    linear = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and module is not head
    }
    known = sorted({name.rpartition(".")[2] for name in linear})
    missing = sorted(set(settings.targets) - set(known))
    if missing:
        raise InputError(
            f"lora.targets must be linear layers of the model, got {missing[0]!r}; "
            f"known: {', '.join(known)}"
        )
    chosen = set(settings.targets or known)
    return {name: one for name, one in linear.items() if name.rpartition(".")[2] in chosen}


def adapter_size(model: Any, settings: LoraSettings) -> int:
    """The parameters that an adapter would have; the model may be one without memory.

    Raises:
        InputError: If no layer has such a name.
    """
    layers = _layers(model, settings).values()
    return sum(settings.rank * (one.in_features + one.out_features) for one in layers)


def adapter_state(model: nn.Module) -> dict[str, Tensor]:
    """The adapter's own tensors by name; empty where there is none."""
    return {name: p.detach() for name, p in model.named_parameters() if "lora_" in name}


def load_adapter(model: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Puts an adapter's tensors back.

    Raises:
        InputError: If they are not those of this model and these settings.
    """
    own = {name: p for name, p in model.named_parameters() if "lora_" in name}
    if set(own) != set(state):
        raise InputError(
            f"the checkpoint's adapter must have the model's {len(own)} tensors, got {len(state)}"
        )
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(state[name])


def _adapted(model: nn.Module) -> Iterator[tuple[str, Any]]:
    for name, module in model.named_modules():
        if hasattr(module, "lora_A") and hasattr(module, "base_layer"):
            yield name, module


@contextmanager
def adapter_off(model: nn.Module) -> Iterator[None]:
    """The model as it was before the adapter; for passes without gradient only."""
    layers = [module for _, module in _adapted(model)]
    for layer in layers:
        layer._disable_adapters = True
    try:
        yield
    finally:
        for layer in layers:
            layer._disable_adapters = False


@torch.no_grad()
def merged_state(model: nn.Module) -> dict[str, Tensor]:
    """The tensors of an ordinary model of the same function; the model itself is not changed.

    Those of a sharded model are whole, in the types that it computes in.
    """
    deltas = {
        f"{name}.weight": module.get_delta_weight("default") for name, module in _adapted(model)
    }
    found = {}
    for name, tensor in named_tensors(model).items():
        if "lora_" in name:
            continue
        plain = name.replace(".base_layer.", ".")
        delta = deltas.get(plain)
        found[plain] = tensor.detach() if delta is None else (tensor + delta).to(tensor.dtype)
    return found
