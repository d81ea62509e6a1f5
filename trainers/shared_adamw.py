"""AdamW whose moments are shared out among processes that all hold the whole model.

torch's ZeroRedundancyOptimizer does the same, but keeps the moments of all processes in memory
after a checkpoint and twice after a load, which is what sharing was to save.
"""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from trainers import fsdp_states
from trainers.distributed import failures_named, processes, rank

__all__ = ["SharedAdamW", "shares", "whole_state"]

State = dict[str, Any]


def shares(sizes: Sequence[int], count: int) -> list[int]:
    """The process that each parameter belongs to: the largest first, to who has least so far.

    Example:
        >>> shares([5, 1, 1, 4], 2)
        [0, 1, 0, 1]
    """
    owners, load = [0] * len(sizes), [0] * count
    for number in sorted(range(len(sizes)), key=lambda number: (-sizes[number], number)):
        owners[number] = min(range(count), key=lambda process: (load[process], process))
        load[owners[number]] += sizes[number]
    return owners


class SharedAdamW(torch.optim.Optimizer):
    """AdamW of which each process keeps and updates the parameters that are its own.

    Parameters and gradients are whole everywhere, because a process runs the model as often as its
    own prompts ask and could wait for no other within a pass. A step ends with every process
    having all parameters as plain AdamW would have them, bit for bit.

    References:
        Rajbhandari et al., ZeRO (arXiv 1910.02054), section 5.1, stage 1.
    """

    def __init__(self, groups: Sequence[dict[str, Any]], **options: Any) -> None:
        """Shares out the parameters of some groups.

        Args:
            groups: As for :class:`torch.optim.AdamW`, the same on all processes.
            options: The same.
        """
        super().__init__(groups, dict(options))
        self._parameters: list[Tensor] = [p for group in self.param_groups for p in group["params"]]
        self.owners = shares([p.numel() for p in self._parameters], processes())
        """The process of each parameter, in the order of the groups."""
        number = count()
        mine = [
            {
                **{name: value for name, value in group.items() if name != "params"},
                "params": [p for p in group["params"] if self.owners[next(number)] == rank()],
            }
            for group in self.param_groups
        ]
        self._own = torch.optim.AdamW(mine, **options)

    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Updates what is this process's own, and takes the rest from the others."""
        for group, own in zip(self.param_groups, self._own.param_groups, strict=True):
            own |= {name: value for name, value in group.items() if name != "params"}
        self._own.step(closure)
        with failures_named():
            works = [
                dist.broadcast(parameter.data, owner, async_op=True)
                for parameter, owner in zip(self._parameters, self.owners, strict=True)
            ]
            for work in works:
                work.wait()

    def own_state(self) -> dict[int, State]:
        """AdamW's state of this process's parameters, by their numbers."""
        places = enumerate(zip(self._parameters, self.owners, strict=True))
        return {
            number: self._own.state[parameter]
            for number, (parameter, owner) in places
            if owner == rank() and parameter in self._own.state
        }

    def whole_state(self) -> dict[str, Any]:
        """The state as plain AdamW has it, on process 0; all processes call it together.

        It comes a parameter at a time and lies in the memory of the CPU. The others get an empty
        one.
        """
        mine, found = self.own_state(), {}
        with failures_named():
            for number, owner in enumerate(self.owners):
                state = mine.get(number)
                held = [None if state is None else _moved(state, "cpu")]
                dist.broadcast_object_list(held, src=owner, device=torch.device("cpu"))
                if rank() == 0 and held[0] is not None:
                    found[number] = held[0]
        if rank():
            return {}
        numbers = count()
        groups = [
            {**own, "params": [next(numbers) for _ in group["params"]]}
            for own, group in zip(
                self._own.state_dict()["param_groups"], self.param_groups, strict=True
            )
        ]
        return {"state": found, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes this process's share of the state of a plain AdamW."""
        own = [number for number, owner in enumerate(self.owners) if owner == rank()]
        places = {number: place for place, number in enumerate(own)}
        known = state_dict["state"]
        local = self._own.state_dict()["param_groups"]
        groups = [
            {**whole, "params": mine["params"]}
            for whole, mine in zip(state_dict["param_groups"], local, strict=True)
        ]
        state = {place: known[number] for number, place in places.items() if number in known}
        self._own.load_state_dict({"state": state, "param_groups": groups})
        for group, whole in zip(self.param_groups, state_dict["param_groups"], strict=True):
            group |= {name: value for name, value in whole.items() if name != "params"}


def _moved(state: State, device: str) -> State:
    return {
        name: value.to(device) if isinstance(value, Tensor) else value
        for name, value in state.items()
    }


def whole_state(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """The optimiser's state as one process would have it, on process 0; empty on the others."""
    if isinstance(optimizer, SharedAdamW):
        return optimizer.whole_state()
    if fsdp_states.has_shards(optimizer):
        return fsdp_states.whole_state(optimizer)
    return optimizer.state_dict() if rank() == 0 else {}
