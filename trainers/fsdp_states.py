"""What lies sharded among processes, as one process has it: for checkpoints and for clipping.

All functions are called by all processes together.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor

from trainers.distributed import failures_named, first_process, summed
from trainers.fsdp import named_tensors, shards_of

__all__ = ["clip_shards", "has_shards", "load_state", "weights_at_rest", "whole_state"]


def has_shards(optimizer: torch.optim.Optimizer) -> bool:
    """Whether an optimiser moves shards."""
    return any(isinstance(one, DTensor) for one in _parameters(optimizer))


def _parameters(optimizer: torch.optim.Optimizer) -> list[nn.Parameter]:
    return [one for group in optimizer.param_groups for one in group["params"]]


def _whole(value: Any) -> Any:
    """A tensor as one process has it, in the memory of process 0's CPU; on the others None."""
    if not isinstance(value, DTensor):
        return value
    with torch.no_grad():
        whole = value.full_tensor()
    return whole.cpu() if first_process() else None


@contextmanager
def weights_at_rest(model: nn.Module) -> Iterator[dict[str, Tensor] | None]:
    """A sharded model's state in float32 on process 0, empty on the others; None of a whole model.

    One tensor at a time is made whole. A head that is tied to the embedding stays the same tensor.
    Within the block the model has its shards alone and cannot run; it must come to its end on all
    processes.

    A checkpoint takes 12 bytes a parameter of process 0's main memory: 4 of the whole weights, and
    8 of the moments from :func:`whole_state`. The weights go when the block ends, before the model
    is gathered again, unless the block keeps them.
    """
    shards = shards_of(model)
    if shards is None:
        yield None
        return
    with failures_named():
        shards.rest()
        found = _all_whole(named_tensors(model))
    yield found
    # what a caller still calls by its name is emptied, too
    found.clear()
    with failures_named():
        shards.gather(moved=False)


def _all_whole(parts: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors by name, as one process has them, on process 0; empty on the others."""
    whole: dict[int, Any] = {}
    for part in parts.values():
        if id(part) not in whole:
            whole[id(part)] = _whole(part)
    return {name: whole[id(part)] for name, part in parts.items()} if first_process() else {}


def whole_state(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """An optimiser's state as one process has it, on process 0; empty on the others."""
    state = optimizer.state_dict()
    with failures_named():
        known = {
            number: {name: _whole(value) for name, value in one.items()}
            for number, one in state["state"].items()
        }
    return {**state, "state": known} if first_process() else {}


def load_state(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Takes this process's parts of a state that all processes have whole."""
    parameters = _parameters(optimizer)
    known = {
        number: {name: _part(value, parameters[number]) for name, value in one.items()}
        for number, one in state["state"].items()
    }
    optimizer.load_state_dict({**state, "state": known})


def _part(value: Any, parameter: nn.Parameter) -> Any:
    """What belongs to a parameter's shard; the count of steps belongs to all."""
    if not isinstance(parameter, DTensor) or value.shape != parameter.shape:
        return value
    # without a source every process cuts its own part, and nothing is sent
    return distribute_tensor(value, parameter.device_mesh, parameter.placements, src_data_rank=None)


@torch.no_grad()
def clip_shards(optimizer: torch.optim.Optimizer, limit: float) -> float:
    """Scales gradients down to a norm of ``limit``; the norm of the whole gradient before that.

    What is no shard is the same on all processes, such as the log Z head. It is clipped as
    :func:`torch.nn.utils.clip_grad_norm_` clips, which takes no shards beside other tensors.
    """
    gradients = [one.grad for one in _parameters(optimizer) if one.grad is not None]
    parts = [one.to_local() for one in gradients if isinstance(one, DTensor)]
    plain = [one for one in gradients if not isinstance(one, DTensor)]
    square = summed(nn.utils.get_total_norm(parts).square())
    norm = (square + nn.utils.get_total_norm(plain).to(square.device).square()).sqrt()
    if math.isfinite(norm):
        factor = (limit / (norm + 1e-6)).clamp(max=1.0)
        for part in (*parts, *plain):
            part.mul_(factor)
    return float(norm)
