"""Loading a policy: the model of a checkpoint, its encoder, and where it is to run."""

import inspect
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from evaluators.models import shipped_model
from npbench.errors import InputError
from npbench.launch import processes
from trainers.adapters import attach_adapter
from trainers.blank import BLANK, make_blank
from trainers.config import Config
from trainers.distributed import check_equal, failures_named
from trainers.encoding import load_encoder
from trainers.fsdp import shard_model
from trainers.model_configs import read_model_config
from trainers.policy import Policy
from trainers.recomputing import recompute_layers

__all__ = ["load_policy", "located", "pick_device", "rename_cache", "sums"]


def pick_device(name: str) -> torch.device:
    """The device of a name; ``auto`` takes CUDA where there is any."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(f"device must be auto, cpu, cuda or cuda:N, got {name!r}") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"device {name!r} is asked for, but there is no CUDA here")
    return device


@contextmanager
def located(source: str, seed: int) -> Iterator[str]:
    """Where a checkpoint can be loaded from: our own names stand for folders."""
    if source == BLANK:
        with tempfile.TemporaryDirectory() as folder:
            make_blank(Path(folder), seed=seed)
            yield folder
    else:
        yield str(shipped_model(source) or source)


def load_policy(source: str, config: Config, *, trained: bool = True) -> Policy:
    """The policy of a checkpoint: a folder, a name that the Hub knows, or one of our own.

    Args:
        source: Folder or name.
        config: The run's settings.
        trained: False for a reference: no gradient.

    Raises:
        InputError: If there is no such checkpoint, or it is of no known kind, or processes that
            are to shard it have found different weights.
    """
    with located(source, config.seed) as folder:
        return _load(folder, config, trained=trained)


def _load(source: str, config: Config, *, trained: bool) -> Policy:
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

    model_config = read_model_config(source)
    image_token_id = getattr(model_config, "image_token_id", None)
    kind = AutoModelForCausalLM if image_token_id is None else AutoModelForImageTextToText
    optimizer = config.optimizer
    precision = torch.bfloat16 if optimizer.precision == "bfloat16" else torch.float32
    adapted = trained and config.lora.rank > 0
    # frozen weights need no float32 master
    model: Any = kind.from_pretrained(
        source,
        dtype=precision if adapted else torch.float32,
        attn_implementation=optimizer.attention,
    )
    _switch_dropout_off(model)
    model.requires_grad_(trained)
    if adapted:
        attach_adapter(model, config.lora, seed=config.seed)
    model.eval()
    if trained and optimizer.gradient_checkpointing:
        recompute_layers(model)
    rename_cache(model)
    sampling = config.sampling
    encoder = load_encoder(
        source,
        model_config,
        chat_template=sampling.chat_template,
        min_pixels=sampling.min_pixels,
        max_pixels=sampling.max_pixels,
    )
    placeholders = [image_token_id, getattr(model_config, "video_token_id", None)]
    device = pick_device(config.device)
    if trained and optimizer.fsdp and processes() > 1:
        # each process keeps its part of what it has loaded, and no later check could see that the
        # parts come from different models
        check_equal("parameters to begin with", sums(list(model.parameters())))
        # a shelf at a time goes over: the device need not hold the whole model in float32
        with failures_named():
            shard_model(model, device=device, precision=precision)
    else:
        model.to(device)
    return Policy(
        model=model,
        encoder=encoder,
        temperature=sampling.temperature,
        end_ids=_end_ids(model, encoder.tokenizer),
        banned_ids=tuple(token for token in placeholders if token is not None),
        precision=precision,
    )


def sums(parameters: Sequence[nn.Parameter]) -> list[float]:
    """The sum of all numbers and that of their squares."""
    with torch.no_grad():
        first = sum(float(p.double().sum()) for p in parameters)
        second = sum(float(p.double().square().sum()) for p in parameters)
    return [first, second]


def rename_cache(model: nn.Module) -> None:
    """Lets a model take and give its cache under the name ``cache``.

    Transformers before 5.21, the newest that vLLM allows, call it ``past_key_values``.
    """
    if "cache" in inspect.signature(model.forward).parameters:
        return

    def before(_: nn.Module, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        if "cache" in given:
            given["past_key_values"] = given.pop("cache")
        return args, given

    def after(_: nn.Module, args: tuple[Any, ...], outputs: Any) -> None:
        outputs.cache = outputs.past_key_values

    model.register_forward_pre_hook(before, with_kwargs=True)
    model.register_forward_hook(after)


def _end_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """All ids that end a reply; a generation configuration may name several."""
    found: set[int] = set()
    for value in (model.generation_config.eos_token_id, tokenizer.eos_token_id):
        found |= set(value) if isinstance(value, list) else {value} - {None}
    if not found:
        raise InputError("the model names no token that ends a reply (eos_token_id)")
    return tuple(sorted(found))


def _switch_dropout_off(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for name in ("attention_dropout", "dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
