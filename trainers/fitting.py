"""Whether a run fits into the memory of a device; if not, by how much, and what would help."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from npbench.launch import processes
from trainers.config import Config
from trainers.memory import Memory
from trainers.plan import Plan, make_plan

__all__ = ["Fit", "fit"]

RANK = 16
"""Of the adapter that is proposed where training the whole model cannot fit."""
STATES = "optimizer.share_states"
SHARDS = "optimizer.fsdp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A run's memory beside what there is, in bytes."""

    needed: int
    available: int
    settings: tuple[str, ...] = ()
    """Changes with which it would fit; none where it fits, or where nothing helps."""
    least: int
    """What it needs with them; with all that could be proposed where nothing helps."""

    @property
    def missing(self) -> int:
        """How much is missing; 0 where the run fits."""
        return max(self.needed - self.available, 0)

    def lines(self) -> Iterator[str]:
        """What is wrong, and what would help."""
        if not self.missing:
            return
        line = (
            f"memory must hold the estimated {_gigabytes(self.needed)}, there are "
            f"{_gigabytes(self.available)}: {_gigabytes(self.missing)} missing"
        )
        if self.settings:
            changes = " ".join(f"--set {setting}" for setting in self.settings)
            yield f"{line}; it would fit ({_gigabytes(self.least)}) with {changes}"
        else:
            yield f"{line}; no setting fits, the least is {_gigabytes(self.least)}"


def _gigabytes(number: int) -> str:
    return f"{number / 1e9:.2f} GB"


def fit(
    configured: Callable[[Sequence[str]], Config], *, free: int, whole: int, plan: Plan
) -> Fit | None:
    """How a run fits; None where its model is not known.

    Settings that leave the gradient as it is are proposed first, an adapter last. Several processes
    are proposed to share out AdamW's moments, and then to shard the policy.

    Args:
        configured: The run's settings with further changes, such as ``lora.rank=16``.
        free: Bytes of the device that are free.
        whole: Bytes of the device.
        plan: The plan of the run as it is.
    """
    config = configured(())
    if plan.memory is None or plan.prompt_tokens is None:
        return None
    needed = _needed(config, plan.memory, whole)
    if needed <= free:
        return Fit(needed=needed, available=free, least=needed)
    least = needed
    for changes in _proposals(config, plan.prompt_tokens):
        changed = configured(changes)
        memory = make_plan(changed).memory
        assert memory is not None
        then = _needed(changed, memory, whole)
        least = min(least, then)
        if then <= free:
            return Fit(needed=needed, available=free, settings=tuple(changes), least=then)
    return Fit(needed=needed, available=free, least=least)


def _needed(config: Config, memory: Memory, whole: int) -> int:
    """The bytes of a run; vLLM takes a share of a GPU, unless asleep or behind an address."""
    rollouts = config.rollouts
    if rollouts.backend != "vllm":
        return memory.total
    engine = 0 if rollouts.address is not None else int(rollouts.memory_fraction * whole)
    passing = memory.logits + memory.activations
    if rollouts.sleep:
        return memory.total_beside(max(passing, engine))
    return engine + memory.total_beside(passing)


def _proposals(config: Config, prompt_tokens: int) -> Iterator[list[str]]:
    """Changes, one at a time and then together; shards after them, and then an adapter."""
    optimizer, row = config.optimizer, prompt_tokens + config.sampling.max_tokens
    several = processes() > 1
    known = [
        (several and not optimizer.share_states and not optimizer.fsdp, f"{STATES}=true"),
        (not optimizer.shared_prefix, "optimizer.shared_prefix=true"),
        (optimizer.tokens_at_once > row, f"optimizer.tokens_at_once={row}"),
        (not optimizer.gradient_checkpointing, "optimizer.gradient_checkpointing=true"),
        (
            config.sampling.rows_at_once > config.group_size,
            f"sampling.rows_at_once={config.group_size}",
        ),
        (optimizer.precision == "float32", "optimizer.precision=bfloat16"),
    ]
    changes = [change for useful, change in known if useful]
    yield from ([change] for change in changes)
    yield from (changes[:count] for count in range(2, len(changes) + 1))
    if config.lora.rank:
        return
    if several and not optimizer.fsdp:
        # neither the moments' sharing nor an adapter goes with it
        sharded = [*([f"{STATES}=false"] if optimizer.share_states else []), f"{SHARDS}=true"]
        yield sharded
        yield [*(change for change in changes if not change.startswith(STATES)), *sharded]
    adapter = [*([f"{SHARDS}=false"] if optimizer.fsdp else []), f"lora.rank={RANK}"]
    yield adapter
    yield [*changes, *adapter]
