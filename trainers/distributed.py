"""Several processes that train one policy: they share out prompts, and sum counts and gradients.

``torchrun`` and ``accelerate launch`` start the same command several times and say by environment
variables who is who. Every process knows the replies and rewards of all groups, so credit and
counts are those of the whole step and no method need know of this; it runs the model on the rows
of its own groups alone. Process 0 writes logs and checkpoints. In one process everything here does
nothing.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from types import TracebackType
from typing import Any, Self, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from npbench.errors import InputError
from npbench.launch import environment_number, processes
from trainers.config import Config

__all__ = [
    "NoLogs",
    "agree_on_gradients",
    "check_equal",
    "collected_by_first",
    "failures_named",
    "first_process",
    "gathered",
    "handed_out_by_first",
    "merged",
    "own",
    "process_group",
    "processes",
    "rank",
    "stop_together",
    "sum_gradients",
    "summed",
    "together",
]

T = TypeVar("T")

KNOWN = "known_to_all_processes"
"""The mark of an error that is under way on every process."""
PATIENCE = timedelta(hours=2)
"""How long a process waits for the others: an evaluation or a checkpoint may be long."""


def rank() -> int:
    """Which of them this one is."""
    return environment_number("RANK", 0) if processes() > 1 else 0


def first_process() -> bool:
    """Whether this one writes logs, checkpoints and the terminal."""
    return rank() == 0


@contextmanager
def process_group(config: Config) -> Iterator[None]:
    """The block in which processes can talk to each other; each takes the GPU of its number.

    Raises:
        InputError: If the run cannot be shared out, or the others cannot be found.
    """
    if processes() > 1:
        _check(config)
    if processes() == 1 or dist.is_initialized():
        yield
        return
    local = environment_number("LOCAL_RANK", rank())
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        if name not in os.environ:
            raise InputError(
                f"WORLD_SIZE={processes()} asks for several processes, but {name} is not set: "
                f"start them with torchrun or accelerate launch"
            )
    cuda = config.device != "cpu" and torch.cuda.is_available()
    if cuda:
        there = torch.cuda.device_count()
        if local >= there:
            raise InputError(
                f"a machine with {there} GPUs takes {there} processes, got {local + 1}"
            )
        torch.cuda.set_device(local)
    with failures_named():
        dist.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo", timeout=PATIENCE)
    try:
        yield
    finally:
        # an interpreter that ends beside a living group may abort on the group's own threads;
        # an engine that lived in it has ended it with itself
        if dist.is_initialized():
            dist.destroy_process_group()


def _check(config: Config) -> None:
    """Refuses what cannot be shared out.

    Raises:
        InputError: If a setting, or how the processes were started, wants something else.
    """
    count = processes()
    for name in ("FSDP", "DEEPSPEED"):
        if os.environ.get(f"ACCELERATE_USE_{name}", "false").lower() == "true":
            raise InputError(
                f"accelerate must start plain processes (--multi_gpu), got {name}: "
                f"optimizer.fsdp=true shards the policy here"
            )
    mixed = os.environ.get("ACCELERATE_MIXED_PRECISION", "no")
    if mixed != "no":
        raise InputError(
            f"accelerate's mixed precision must be 'no', got {mixed!r}: set optimizer.precision"
        )
    rollouts = config.rollouts
    if rollouts.backend == "vllm" and rollouts.tensor_parallel > 1:
        raise InputError(
            f"rollouts.tensor_parallel must be 1 in {count} processes, each of which has an engine "
            f"of its own, got {rollouts.tensor_parallel}"
        )
    if config.device not in ("auto", "cpu", "cuda"):
        raise InputError(
            f"device must be auto, cuda or cpu in {count} processes, got {config.device!r}"
        )
    if config.prompts_per_step < count:
        raise InputError(
            f"prompts_per_step must be at least the {count} processes, "
            f"got {config.prompts_per_step}"
        )


@contextmanager
def failures_named() -> Iterator[None]:
    """The boundary at which a lost process becomes one line."""
    try:
        yield
    except RuntimeError as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise InputError(
            f"process {rank()} of {processes()} cannot go on with the others ({reason}); "
            f"the run can go on from its last checkpoint with --resume"
        ) from error


def own(items: Sequence[T]) -> Sequence[T]:
    """This process's share of some items that all processes know."""
    return items[rank() :: processes()]


def gathered(value: T) -> list[T]:
    """The value that each process has here, in their order."""
    if processes() == 1:
        return [value]
    found: list[Any] = [None] * processes()
    with failures_named():
        dist.all_gather_object(found, value)
    return found


def collected_by_first(value: T) -> list[T]:
    """The value that each process has here, in their order, on the first; empty on the others."""
    if processes() == 1:
        return [value]
    found: list[Any] | None = [None] * processes() if first_process() else None
    with failures_named():
        dist.gather_object(value, found)
    return found or []


def handed_out_by_first(values: Sequence[T] | None) -> T:
    """This process's one of the values that the first process has; None on the others."""
    if processes() == 1:
        assert values is not None
        return values[0]
    found: list[Any] = [None]
    with failures_named():
        dist.scatter_object_list(found, None if values is None else list(values))
    value: T = found[0]
    return value


def merged(part: Mapping[int, T]) -> list[T]:
    """All processes' items in the order of their numbers; each number is known to one process."""
    found: dict[int, T] = {}
    for one in gathered(part):
        found |= one
    return [found[number] for number in sorted(found)]


def summed(values: Tensor) -> Tensor:
    """The sum over all processes, in place."""
    if processes() > 1:
        with failures_named():
            dist.all_reduce(values)
    return values


def sum_gradients(parameters: Sequence[nn.Parameter]) -> None:
    """Replaces each gradient by the sum over all processes.

    What has no gradient anywhere has none afterwards, as in one process: the optimiser skips it.
    """
    if processes() == 1:
        return
    gradients = agree_on_gradients(parameters)
    with failures_named():
        for work in [dist.all_reduce(gradient, async_op=True) for gradient in gradients]:
            work.wait()


def agree_on_gradients(parameters: Sequence[nn.Parameter]) -> list[Tensor]:
    """The gradients that exist on some process, with zeros where this one has none."""
    known = summed(torch.tensor([int(p.grad is not None) for p in parameters])).tolist()
    gradients = []
    for parameter, count in zip(parameters, known, strict=True):
        if count:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter, dtype=torch.float32)
            gradients.append(parameter.grad)
    return gradients


def check_equal(name: str, value: object) -> None:
    """Refuses to go on where processes that must agree do not.

    Raises:
        InputError: If a process has another value.
    """
    for number, other in enumerate(gathered(value)):
        if other != value:
            raise InputError(
                f"all processes must have the same {name}: process {rank()} has {value}, "
                f"process {number} has {other}"
            )


def stop_together(failure: InputError | None) -> None:
    """Raises the first failure on all processes: one that goes on would wait for ever.

    Raises:
        InputError: If a process has one, of its class.
    """
    for number, found in enumerate(gathered(failure)):
        if found is None:
            continue
        if failure is None or number != rank():
            failure = type(found)(f"process {number} of {processes()} cannot go on: {found}")
        setattr(failure, KNOWN, True)
        raise failure


@contextmanager
def together() -> Iterator[None]:
    """The block after which all processes go on or none does; each has to come to its end.

    Raises:
        InputError: On all processes, if it was raised on one.
    """
    failure = None
    try:
        yield
    except InputError as error:
        if getattr(error, KNOWN, False):
            raise
        failure = error
    stop_together(failure)


class NoLogs:
    """The logs of all processes but the first."""

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing to close."""

    def step(self, step: int, numbers: object, groups: object) -> None:
        """Writes nothing."""

    def evaluation(self, step: int, numbers: object) -> None:
        """Writes nothing."""
