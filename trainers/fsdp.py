"""FSDP2 at points that all processes reach: shards at rest, whole weights in the passes between.

FSDP2 gathers a layer's weights when that layer runs, and all processes must run it then. Here a
process runs the model as often as its own prompts ask. So nothing that the model calls is wrapped:
its parameters stand on shelves, modules that FSDP2 shards and that run at one agreed point, the
optimiser step. There one backward pass through all shelves sums the gradients into the shards,
AdamW moves the shards, and the weights are gathered again for the passes of the next step.

At rest a process keeps its part of the float32 weights, of the summed gradients and of AdamW's
moments. In a pass it has beside them all weights in the type that computes, and its own gradients
in float32.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd.graph import increment_version
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

from npbench.errors import InputError

__all__ = ["SHELF", "Shards", "named_tensors", "shard_model", "shards_of"]

SHELF = 2**26
"""Numbers that are gathered, or summed, in one go, unless a single tensor has more."""
LOWERED = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
"""Layers whose weights autocast casts; the rest is looked up or multiplied in float32."""


class Shelf(nn.Module):
    """Modules whose parameters are sharded together; it passes on what it is given."""

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        """Keeps references to modules of the model."""
        super().__init__()
        self.held = nn.ModuleList(modules)

    def forward(self, signal: Tensor) -> Tensor:
        """The same numbers, as a tensor of their own."""
        return signal.clone()


class Shelves(nn.Module):
    """All shelves of a model, one after the other."""

    def __init__(self, shelves: Sequence[Shelf]) -> None:
        """Keeps them."""
        super().__init__()
        self.held = nn.ModuleList(shelves)

    def forward(self, signal: Tensor) -> Tensor:
        """A signal that has passed every shelf."""
        for shelf in self.held:
            signal = shelf(signal)
        return signal


class Shards:
    """A model's parameters among processes; every method is called by all of them together."""

    def __init__(self, model: nn.Module, device: torch.device, precision: torch.dtype) -> None:
        """Shards a model that has the same float32 parameters everywhere, and gathers them.

        Args:
            model: Changed in place; it may still lie in the memory of the CPU.
            device: Where it is to run.
            precision: The type that linear and convolutional layers compute in.
        """
        self.names = tuple(model.state_dict())
        """Of the state's tensors. To ask a sharded model again would shard what is gathered."""
        self._model, self._device = model, device
        mesh = init_device_mesh(device.type, (dist.get_world_size(),))
        owners = _owners(model)
        groups = _groups(owners, precision)
        shelves = []
        while groups:
            kind, group = groups.pop(0)
            # popped, so that nothing keeps what was whole
            modules = dict.fromkeys(chain.from_iterable(owners.pop(p) for p in group))
            shelf = Shelf(list(modules))
            _shard(shelf, mesh, kind, set(shelf.parameters()) - set(group))
            shelves.append(shelf)
            del group
        self._shelves = Shelves(shelves)
        _shard(self._shelves, mesh, None, set())
        for module in model.modules():
            for name, buffer in module.named_buffers(recurse=False):
                setattr(module, name, buffer.to(device))
        self.trained = [p for p in model.parameters() if p.requires_grad]
        """This process's parts, in the order of the model: what the optimiser moves."""
        self.gather(moved=True)

    def gather(self, *, moved: bool) -> None:
        """Makes all parameters whole, in the types that compute; the model can run after this.

        Args:
            moved: Whether the shards have changed since all was whole, so that who holds a copy of
                the weights needs another one.
        """
        for shelf in self._shelves.held:
            cast("FSDPModule", shelf).unshard()
        for parameter in self._model.parameters():
            if parameter.requires_grad and parameter.dtype != torch.float32:
                # micro-batches add up in float32, as under autocast
                parameter.grad_dtype = torch.float32
            if moved:
                # FSDP writes into storage unseen, and who holds a copy asks for versions
                increment_version(parameter)

    def reduce(self) -> None:
        """Puts the sum of all processes' gradients into the shards; nothing stays whole.

        The processes must have gradients of the same parameters.
        """
        signal = torch.ones(1, device=self._device, requires_grad=True)
        self._shelves(signal).sum().backward()

    def rest(self) -> None:
        """Keeps the shards alone, as the model's parameters; the model cannot run after this."""
        for shelf in self._shelves.held:
            cast("FSDPModule", shelf).reshard()


def _owners(model: nn.Module) -> dict[nn.Parameter, list[nn.Module]]:
    """The modules that have each parameter: two of an embedding with a tied head."""
    owners: dict[nn.Parameter, list[nn.Module]] = {}
    for module in model.modules():
        for parameter in module.parameters(recurse=False):
            owners.setdefault(parameter, []).append(module)
    return owners


def _groups(
    owners: Mapping[nn.Parameter, Sequence[nn.Module]], precision: torch.dtype
) -> list[tuple[torch.dtype | None, list[nn.Parameter]]]:
    """The parameters of each shelf, and the type they are gathered in; None leaves it."""
    groups: list[tuple[torch.dtype | None, list[nn.Parameter]]] = []
    filled: dict[torch.dtype | None, tuple[list[nn.Parameter], int]] = {}
    for parameter, modules in owners.items():
        lowered = all(isinstance(module, LOWERED) for module in modules)
        kind = precision if lowered and precision != torch.float32 else None
        group, size = filled.get(kind, ([], SHELF))
        if size + parameter.numel() > SHELF:
            group, size = [], 0
            groups.append((kind, group))
        group.append(parameter)
        filled[kind] = group, size + parameter.numel()
    return groups


def _shard(
    module: nn.Module, mesh: DeviceMesh, kind: torch.dtype | None, others: set[nn.Parameter]
) -> None:
    """Gives a module's parameters to FSDP2, but for those that stand on other shelves."""
    sharded = fully_shard(
        module,
        mesh=mesh,
        reshard_after_forward=False,
        mp_policy=MixedPrecisionPolicy(param_dtype=kind, cast_forward_inputs=False),
        ignored_params=others,
    )
    # a sum, as in one process, and one that gloo can make, too
    sharded.set_gradient_divide_factor(1.0)
    sharded.set_force_sum_reduction_for_comms(True)


def shard_model(model: Any, *, device: torch.device, precision: torch.dtype) -> None:
    """Shards a model and gathers its weights; changes it in place.

    Args:
        model: With the same float32 parameters on all processes.
        device: Where it is to run.
        precision: The type that linear and convolutional layers compute in.

    Raises:
        InputError: If a parameter has no rows to share out, or torch cannot keep float32 gradients
            of weights in another type.
    """
    for name, parameter in model.named_parameters():
        if not parameter.ndim:
            raise InputError(
                f"optimizer.fsdp must be false for a model with a parameter without a dimension, "
                f"got {name}"
            )
    if precision != torch.float32 and not hasattr(Tensor, "grad_dtype"):
        raise InputError(
            f"optimizer.fsdp needs torch>=2.10 where optimizer.precision is 'bfloat16', "
            f"got {torch.__version__}"
        )
    model.npbench_shards = Shards(model, device, precision)


def shards_of(model: nn.Module) -> Shards | None:
    """What holds a model's shards; None where the model is whole."""
    return getattr(model, "npbench_shards", None)


def named_tensors(model: nn.Module) -> dict[str, Tensor]:
    """A model's state by name, as it computes; the shards alone after :meth:`Shards.rest`.

    Two names of one parameter give the same object.
    """
    shards = shards_of(model)
    if shards is None:
        return dict(model.state_dict())
    known = chain(
        model.named_parameters(remove_duplicate=False), model.named_buffers(remove_duplicate=False)
    )
    found: dict[str, Tensor] = dict(known)
    return {name: found[name] for name in shards.names}
