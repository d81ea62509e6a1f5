"""One step of our trainer, taken apart: drawing replies, judging them, training on them.

Seconds are the clock's on CUDA, where the device is waited for at each border; on a CPU they are
those of the process, on one thread, so that other work on the machine disturbs them less.
"""

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch
from torch.utils.flop_counter import FlopCounterMode

from trainers.config import Config
from trainers.data import Question
from trainers.encoding import Encoder
from trainers.groups import Group, collect, reward_terms
from trainers.learner import Learner
from trainers.rollouts import Backend
from trainers.updates import learn
from trainers.vllm_rollouts import rollout_backend


@dataclass(slots=True)
class Clock:
    """Seconds by use."""

    device: torch.device
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """The block's seconds, added to those of its name."""
        started = self._now()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + self._now() - started

    def _now(self) -> float:
        if self.device.type != "cuda":
            return time.process_time()
        torch.cuda.synchronize()
        return time.perf_counter()


@dataclass(frozen=True, slots=True)
class _Timed:
    """An object one of whose methods is timed; all else is the object's."""

    inner: Any
    method: str
    clock: Clock

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if name != self.method:
            return found

        def call(*given: Any, **named: Any) -> Any:
            with self.clock.timed(self.method):
                return found(*given, **named)

        return call


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Medians over steps; ``verification`` holds the decoding of replies to text, too."""

    encoding: float
    generation: float
    verification: float
    training: float
    reply_tokens: float
    """Of all replies of a step."""
    prompt_tokens: float
    """Of one prompt, picture included."""
    rows: int
    plain: float | None = None
    """Seconds of training on the same replies with the prompt before each of them."""
    flops: float | None = None
    """Of the training pass, as torch counts what is executed, masked attention included."""

    @property
    def seconds(self) -> float:
        """Of the step."""
        return self.encoding + self.generation + self.verification + self.training

    @property
    def trained_tokens(self) -> float:
        """Of prompt and reply over all rows: what a path without sharing has to pass."""
        return self.rows * self.prompt_tokens + self.reply_tokens


def attention_of_a_cpu() -> dict[Any, Any]:
    """FLOPs of the attention that torch's counter leaves out; what is masked counts, too."""

    def forward(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
        rows, heads, length, width = query
        return int(2 * rows * heads * length * key[2] * (width + value[3]))

    def backward(_: Any, query: Any, key: Any, value: Any, *__: Any, **___: Any) -> int:
        return 2 * forward(query, key, value)

    aten = torch.ops.aten
    return {
        aten._scaled_dot_product_flash_attention_for_cpu: forward,
        aten._scaled_dot_product_flash_attention_for_cpu_backward: backward,
    }


def draw(
    learner: Learner, examples: Sequence[Question], clock: Clock, backend: Backend, *, step: int
) -> list[Group]:
    """The groups of a step, their seconds on the clock."""
    config = learner.config
    with clock.timed("collect"):
        return collect(
            examples,
            config=config,
            encoder=cast(Encoder, _Timed(learner.policy.encoder, "encode", clock)),
            backend=cast(Backend, _Timed(backend, "generate", clock)),
            terms=reward_terms(config),
            step=step,
        )


def measure(learner: Learner, examples: Sequence[Question], *, steps: int) -> Step:
    """A step's medians, after one that warms up and on which FLOPs are counted.

    An engine's pushes of weights and its probes count as drawing.
    """
    with rollout_backend(learner.config, learner) as backend:
        return _measure(learner, examples, backend, steps=steps)


def _measure(
    learner: Learner, examples: Sequence[Question], backend: Backend, *, steps: int
) -> Step:
    size, plain, found = learner.config.prompts_per_step, plainly(learner), []
    for number in range(steps + 1):
        clock = Clock(learner.policy.device)
        some = examples[number * size : (number + 1) * size]
        groups = draw(learner, some, clock, backend, step=number + 1)
        # step 0 would score all rows once more, for its checks
        flops = None
        if number == 0:
            with FlopCounterMode(display=False, custom_mapping=attention_of_a_cpu()) as counter:
                learn(learner, groups, step=number + 1)
            flops = float(counter.get_total_flops())
        else:
            with clock.timed("train"):
                learn(learner, groups, step=number + 1)
        with clock.timed("plain"):
            learn(plain, groups, step=number + 1)
        replies = [reply for group in groups for reply in group.replies]
        seconds = clock.seconds
        found.append(
            Step(
                encoding=seconds["encode"],
                generation=seconds["generate"],
                verification=seconds["collect"] - seconds["encode"] - seconds["generate"],
                training=seconds.get("train", 0.0),
                plain=seconds["plain"],
                reply_tokens=sum(len(reply.ids) for reply in replies),
                prompt_tokens=statistics.mean(g.prompts[0].length for g in groups),
                rows=len(replies),
                flops=flops,
            )
        )
    counted, *timed = found
    names = ("encoding", "generation", "verification", "training", "plain", "reply_tokens")
    return replace(
        timed[0],
        **{name: statistics.median(getattr(one, name) for one in timed) for name in names},
        # replies differ a little in length from step to step
        flops=(counted.flops or 0.0)
        * statistics.median(one.trained_tokens for one in timed)
        / counted.trained_tokens,
    )


def plainly(learner: Learner) -> Learner:
    """The same learner with the prompt before each reply, as most trainers have it."""
    return changed(learner, {"optimizer": {"shared_prefix": False}})


def changed(learner: Learner, changes: dict[str, Any]) -> Learner:
    """The same learner under other settings; sections are merged."""
    values = learner.config.model_dump(exclude_unset=True)
    for name, value in changes.items():
        values[name] = {**values.get(name, {}), **value} if isinstance(value, dict) else value
    return replace(learner, config=Config.model_validate(values))


def matrix_rate(device: torch.device, dtype: torch.dtype, *, seconds: float = 1.0) -> float:
    """FLOPs a second of the best of repeated products of two square matrices."""
    width = 8192 if device.type == "cuda" else 1024
    left, right = (torch.randn(width, width, device=device).to(dtype) for _ in range(2))
    best, spent = 0.0, 0.0
    while spent < seconds:
        clock = Clock(device)
        with clock.timed("product"):
            left @ right
        took = clock.seconds["product"]
        best, spent = max(best, 2 * width**3 / took), spent + took
    return best
