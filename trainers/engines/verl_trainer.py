"""verl's synchronous trainer, with what our estimators need besides put within their reach.

``PPOTrainerSync._compute_advantage`` fetches rewards, masks and log-probabilities, and passes an
estimator only some of them (verl 0.9.1, ``verl/trainer/ppo/v1/trainer_base.py``). The subclass
fetches the same rows first, with replies and ground truths, keeps them at hand while verl's own
method runs, and changes nothing else.
"""

from functools import lru_cache
from importlib import import_module
from typing import Any

from npbench.errors import InputError
from trainers.engines.verl_checks import check_config
from trainers.engines.verl_groups import BatchRows, rows_at_hand

__all__ = ["TRAINER_MODE", "fetch_rows", "trainer_class"]

TRAINER_MODE = "npbench"
"""The name in verl's registry of trainers: ``trainer.v1.trainer_mode``."""

_FIELDS = ("uid", "old_log_probs", "responses", "reward_model")


def fetch_rows(trainer: Any, batch: Any) -> BatchRows:
    """What a trainer of verl's has of a batch, in the order in which it will ask for advantages.

    Raises:
        InputError: If a column is missing.
    """
    queue = import_module("verl.trainer.ppo.v1.trainer_base").tq
    data = queue.kv_batch_get(
        keys=batch.keys, partition_id=batch.partition_id, select_fields=list(_FIELDS)
    )
    missing = [name for name in _FIELDS if name not in data]
    if missing:
        raise InputError(f"verl's batch must hold {missing[0]!r} for npbench methods")
    replies = trainer.tokenizer.batch_decode(
        [ids.tolist() for ids in data["responses"].unbind()], skip_special_tokens=True
    )
    config = trainer.config
    actor, size = config.actor_rollout_ref.actor, config.data.train_batch_size
    return BatchRows(
        uids=tuple(str(uid) for uid in data.pop("uid").tolist()),
        old_logprobs_BT=data.select("old_log_probs").to_padded_tensor()["old_log_probs"],
        replies=tuple(replies),
        truths=tuple(row["ground_truth"] for row in data.pop("reward_model").tolist()),
        # verl counts its steps from 1
        step=max(int(trainer.global_steps) - 1, 0),
        steps=int(trainer.total_training_steps),
        updates=-(-int(size) // int(actor.ppo_mini_batch_size)) * int(actor.ppo_epochs),
        sequences=int(actor.ppo_mini_batch_size) * int(config.actor_rollout_ref.rollout.n),
        aggregation=str(actor.loss_agg_mode),
    )


@lru_cache(maxsize=1)
def trainer_class() -> Any:
    """The subclass, made when verl is there."""
    base: Any = import_module("verl.trainer.ppo.v1.trainer_sync").PPOTrainerSync

    class NpbenchTrainer(base):  # type: ignore[misc]
        """verl's synchronous trainer for our methods."""

        def __init__(self, config: Any) -> None:
            """Checks the configuration and starts as verl's own."""
            check_config(config)
            # any other name would select the replay buffer of the asynchronous trainers
            config.trainer.v1.trainer_mode = "sync"
            super().__init__(config)

        def _compute_advantage(self, batch: Any, metrics: dict[str, Any]) -> Any:
            with rows_at_hand(fetch_rows(self, batch)) as rows:
                found = super()._compute_advantage(batch, metrics)
            metrics.update(rows.report)
            return found

    return NpbenchTrainer
