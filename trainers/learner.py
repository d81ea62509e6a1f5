"""What is trained: policy, log Z head and optimiser, and the reference beside them."""

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from npbench.errors import InputError
from trainers.config import Config
from trainers.distributed import agree_on_gradients, failures_named, processes, sum_gradients
from trainers.fsdp import shards_of
from trainers.fsdp_states import clip_shards
from trainers.loading import load_policy
from trainers.losses import LogZHead
from trainers.methods import METHOD_TABLE, Method
from trainers.policy import Policy
from trainers.shared_adamw import SharedAdamW

__all__ = ["Learner", "apply_gradient", "learning_rate", "load_learner"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner:
    """Everything that a checkpoint has to bring back."""

    config: Config
    policy: Policy
    reference: Policy | None
    log_z: LogZHead | None
    optimizer: torch.optim.Optimizer

    @property
    def method(self) -> Method:
        """The run's method."""
        return METHOD_TABLE[self.config.method]

    def parameters(self) -> list[nn.Parameter]:
        """All that is trained, as it is in a pass: whole."""
        head = [] if self.log_z is None else list(self.log_z.parameters())
        return [*self.policy.trained(), *head]


def load_learner(config: Config, source: str) -> Learner:
    """A learner whose policy comes from ``source``, with a fresh optimiser.

    Raises:
        InputError: If a checkpoint cannot be loaded.
    """
    method, settings = METHOD_TABLE[config.method], config.method_settings
    policy = load_policy(source, config)
    reference = None
    if method.needs_reference(settings):
        if config.lora.rank and not config.reference:
            # the model that the run began with is the trained one without its adapter
            reference = replace(policy, without_adapter=True)
        else:
            reference = load_policy(config.reference or config.model, config, trained=False)
    options, shards = config.optimizer, shards_of(policy.model)
    trained = policy.trained() if shards is None else shards.trained
    groups: list[dict[str, Any]] = [{"params": trained, "rate": options.learning_rate}]
    log_z = None
    if method.needs_log_z:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            width = policy.model.config.get_text_config().hidden_size
            # dropout would make the two passes disagree
            log_z = LogZHead(width, dropout=0.0).to(policy.device)
        rate = settings.log_z_learning_rate or options.learning_rate
        groups.append({"params": list(log_z.parameters()), "rate": rate})
    adamw = SharedAdamW if options.share_states and processes() > 1 else torch.optim.AdamW
    optimizer = adamw(
        groups,
        lr=options.learning_rate,
        betas=(options.beta1, options.beta2),
        weight_decay=options.weight_decay,
    )
    return Learner(
        config=config, policy=policy, reference=reference, log_z=log_z, optimizer=optimizer
    )


def learning_rate(config: Config, step: int) -> float:
    """The factor on the learning rate at a step: warm-up from 1/W, then the schedule to 0.

    Supervised stages that restart it have a warm-up and a schedule of their own.

    Example:
        >>> from trainers.config import read_config
        >>> values = dict(method="grpo", steps=5, prompts_per_step=1, group_size=2)
        >>> config = read_config({**values, "data": {"suite": "nano"}, "optimizer": {
        ...     "warmup_steps": 2, "schedule": "linear"}})
        >>> [round(learning_rate(config, step), 3) for step in range(5)]
        [0.5, 1.0, 1.0, 0.667, 0.333]
    """
    options = config.optimizer
    step, steps = _since_restart(config, step)
    if step < options.warmup_steps:
        return (step + 1) / options.warmup_steps
    done = (step - options.warmup_steps) / max(steps - options.warmup_steps, 1)
    if options.schedule == "linear":
        return 1.0 - done
    return 0.5 * (1.0 + math.cos(math.pi * done)) if options.schedule == "cosine" else 1.0


def _since_restart(config: Config, step: int) -> tuple[int, int]:
    """Where a step lies in its stretch of one schedule, and how long that stretch is."""
    begins = (0, *config.stage_ends)
    starts = [0] + [at for at, stage in zip(begins, config.stages, strict=False) if stage.restart]
    begun = max(start for start in starts if start <= step)
    end = min((start for start in starts if start > step), default=config.steps)
    return step - begun, end - begun


def apply_gradient(learner: Learner, *, step: int) -> float:
    """One optimiser step on what has gathered in all processes; the norm before clipping.

    Raises:
        InputError: If the gradient is not finite; the parameters are left as they are.
    """
    norm = _sum_and_clip(learner)
    if not math.isfinite(norm):
        raise InputError(f"the gradient at step {step} must be finite, its norm is {norm}")
    factor = learning_rate(learner.config, step)
    for group in learner.optimizer.param_groups:
        group["lr"] = group["rate"] * factor
    learner.optimizer.step()
    learner.optimizer.zero_grad(set_to_none=True)
    if (shards := shards_of(learner.policy.model)) is not None:
        with failures_named():
            shards.gather(moved=True)
    return norm


def _sum_and_clip(learner: Learner) -> float:
    """Gives the optimiser's parameters the clipped sum of all processes; the norm before that."""
    limit, shards = learner.config.optimizer.max_grad_norm, shards_of(learner.policy.model)
    if shards is None:
        parameters = learner.parameters()
        sum_gradients(parameters)
        return float(nn.utils.clip_grad_norm_(parameters, limit))
    if learner.log_z is not None:
        sum_gradients(list(learner.log_z.parameters()))
    agree_on_gradients(learner.policy.trained())
    with failures_named():
        shards.reduce()
    return clip_shards(learner.optimizer, limit)
