"""What a configuration of verl must hold for our methods; each fault is one line.

Works on verl's composed configuration (omegaconf) without importing verl.
"""

from typing import Any

from npbench.errors import InputError
from trainers.engines.verl_settings import (
    CONSTANT,
    METHODS,
    PREFIX,
    VerlMethod,
    VerlSettings,
    method_of,
    read_settings,
)

__all__ = ["check_config"]


def check_config(config: Any) -> str:
    """The method that a configuration runs.

    Args:
        config: verl's whole configuration.

    Raises:
        InputError: If estimator and loss are not of one method, a setting is unknown or has another
            place, or the method would not be what its name says.
    """
    method = method_of(config.algorithm.adv_estimator)
    actor = config.actor_rollout_ref.actor
    loss = actor.policy_loss.loss_mode
    if loss != PREFIX + method:
        raise InputError(
            f"actor_rollout_ref.actor.policy_loss.loss_mode must be {PREFIX}{method} like "
            f"algorithm.adv_estimator, got {loss}"
        )
    section = config.algorithm.get("npbench") or {}
    settings = read_settings(method, {key: section[key] for key in section})
    needs = METHODS[method]
    if actor.loss_agg_mode not in needs.aggregations:
        raise InputError(
            f"actor_rollout_ref.actor.loss_agg_mode must be {' or '.join(needs.aggregations)} for "
            f"{PREFIX}{method}, got {actor.loss_agg_mode}"
        )
    if actor.loss_agg_mode == CONSTANT and actor.loss_scale_factor is None:
        raise InputError(
            f"actor_rollout_ref.actor.loss_scale_factor must be the generation limit for "
            f"{CONSTANT}, got null"
        )
    replies = int(config.actor_rollout_ref.rollout.n)
    if replies < 2:
        raise InputError(f"actor_rollout_ref.rollout.n must be at least 2, got {replies}")
    _check_settings(method, settings, config, replies=replies)
    _check_updates(method, needs, config)
    return method


def _check_settings(method: str, settings: VerlSettings, config: Any, *, replies: int) -> None:
    own = settings.method
    if method == "mupo" and own.clusters * own.min_size > replies:
        raise InputError(
            f"algorithm.npbench.clusters * min_size must be at most "
            f"actor_rollout_ref.rollout.n={replies}, got {own.clusters} * {own.min_size}"
        )
    limit = settings.extras.max_tokens
    if limit is not None and limit != config.data.max_response_length:
        raise InputError(
            f"algorithm.npbench.max_tokens must be "
            f"data.max_response_length={config.data.max_response_length}, got {limit}"
        )


def _check_updates(method: str, needs: VerlMethod, config: Any) -> None:
    actor, correction = config.actor_rollout_ref.actor, config.algorithm.rollout_correction
    batch, part, epochs = config.data.train_batch_size, actor.ppo_mini_batch_size, actor.ppo_epochs
    if needs.one_update and (part != batch or epochs != 1):
        raise InputError(
            f"{PREFIX}{method} is exact for one optimiser step a batch: "
            f"actor_rollout_ref.actor.ppo_mini_batch_size must be data.train_batch_size={batch} "
            f"and ppo_epochs 1, got {part} and {epochs}"
        )
    if correction is None:
        return
    if correction.rollout_is is not None and not needs.corrected:
        raise InputError(
            f"algorithm.rollout_correction.rollout_is must be null for {PREFIX}{method}, got "
            f"{correction.rollout_is}"
        )
    if correction.bypass_mode and (needs.one_update or method == "gspo"):
        raise InputError(
            f"algorithm.rollout_correction.bypass_mode must be false for {PREFIX}{method}, whose "
            f"old log-probabilities must be the trainer's and not the sampler's"
        )
