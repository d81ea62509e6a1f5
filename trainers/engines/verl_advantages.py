"""Our advantages as verl's estimators, called on the driver over the whole batch.

verl hands an estimator the rewards, the mask and the uid of each row, and nothing else (verl 0.9.1,
``verl/trainer/ppo/ray_trainer.py``, ``compute_advantage``). What DMPO, Clip-Cov and MUPO need
besides comes from our trainer class (:mod:`trainers.engines.verl_trainer`). Rewards become float64
here; what is returned has their own type again.

P groups, G members of the largest, B rows, T tokens.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from npbench.errors import InputError
from npbench.rng import digest
from trainers import losses
from trainers.engines.verl_clusters import mupo_advantages
from trainers.engines.verl_groups import BatchRows, VerlBatch
from trainers.engines.verl_settings import PREFIX, SEQUENCE, VerlSettings, read_settings

__all__ = ["ESTIMATORS", "Estimator"]

Estimator = Callable[..., tuple[Tensor, Tensor]]
CreditFunction = Callable[[VerlSettings, VerlBatch], Tensor]
"""From settings and batch to the advantage of each row or token."""


def _z_scores(settings: VerlSettings, batch: VerlBatch) -> Tensor:
    advantages_PG = losses.group_relative_advantages(
        batch.rewards_PG,
        eps=getattr(settings.method, "eps", 1e-6),
        std_floor=getattr(settings.method, "std_floor", 0.0),
    )
    return batch.of_rows(advantages_PG)


def _dr_grpo(settings: VerlSettings, batch: VerlBatch) -> Tensor:
    return batch.of_rows(losses.mean_centred_advantages(batch.rewards_PG))


def _pass_at_k(settings: VerlSettings, batch: VerlBatch) -> Tensor:
    advantages_PG = losses.pass_at_k_advantages(
        batch.rewards_PG, eps=settings.method.eps, std_floor=settings.method.std_floor
    )
    return batch.of_rows(advantages_PG)


def _dapo(settings: VerlSettings, batch: VerlBatch) -> Tensor:
    rewards_PG = batch.rewards_PG
    if settings.method.overlong_cache_tokens:
        lengths_PG = batch.groups.gather(batch.mask_BT.sum(-1).double(), missing=0.0)
        rewards_PG = rewards_PG + losses.overlong_punishment(
            lengths_PG,
            max_tokens=settings.extras.max_tokens or 0,
            cache_tokens=settings.method.overlong_cache_tokens,
        )
    return batch.of_rows(losses.group_relative_advantages(rewards_PG))


def _gpg(settings: VerlSettings, batch: VerlBatch) -> Tensor:
    found = losses.gpg_alpha(batch.rewards_PG, rule=settings.method.rule)
    batch.log({"gpg_alpha": found.alpha or 0.0, "gpg_valid_share": found.valid_share})
    if found.alpha is None:
        # every group is flat: there is no alpha and nothing to learn
        return torch.zeros(len(batch.mask_BT), dtype=torch.float64)
    advantages_PG = losses.gpg_advantages(
        batch.rewards_PG, alpha=found.alpha, f_norm=settings.method.f_norm
    )
    return batch.of_rows(advantages_PG)


def _old_logprobs(batch: VerlBatch) -> tuple[BatchRows, Tensor]:
    """What the trainer knows, and the old log-probabilities, of a batch that is one step."""
    rows = batch.known()
    if rows.updates != 1:
        raise InputError(
            f"{PREFIX}{batch.method} is exact for one optimiser step a batch, got {rows.updates}: "
            f"set actor_rollout_ref.actor.ppo_mini_batch_size=data.train_batch_size, ppo_epochs=1"
        )
    if rows.old_logprobs_BT is None:
        raise InputError(f"{PREFIX}{batch.method} needs old log-probabilities, got none")
    return rows, rows.old_logprobs_BT.double()


def _clip_cov(settings: VerlSettings, batch: VerlBatch) -> Tensor:
    """Advantages that are 0 at the dropped tokens, which stay in the denominator.

    verl's own ``clip_cov`` draws inside each micro-batch, at least one token a call; here means,
    counts and draw are over the whole step, as in the paper.
    """
    rows, old_BT = _old_logprobs(batch)
    advantages_B = _z_scores(settings, batch)
    seed = int(digest("npbench-verl", "clip-cov", settings.extras.seed, rows.step)[:15], 16)
    dropped_BT = losses.clip_cov_tokens(
        old_BT,
        old_BT,
        advantages_B,
        batch.mask_BT,
        generator=torch.Generator().manual_seed(seed),
        share=settings.method.share,
        low=settings.method.low,
        high=settings.method.high,
    )
    batch.log({"dropped_tokens": float(dropped_BT.sum())})
    return batch.of_tokens(advantages_B).masked_fill(dropped_BT, 0.0)


def _dmpo(settings: VerlSettings, batch: VerlBatch) -> Tensor:
    """GRPO's advantage, minus lambda dL_DM/dphi_i times what verl will divide row i by.

    At the first update every ratio is 1, so a token's advantage is its weight in the gradient: the
    whole gradient is that of L_GRPO + lambda L_DM, groups whole, whatever the micro-batches. The
    value that verl logs as its loss is not that of L; ``npbench/dmpo_term`` is L_DM.
    """
    rows, old_BT = _old_logprobs(batch)
    method = settings.method
    scores_B = losses.row_mean(old_BT, batch.mask_BT)
    found = losses.group_weights(
        lambda scores_PG: losses.dmpo_term(
            scores_PG,
            batch.rewards_PG,
            groups=max(len(batch.rewards_PG), 1),
            alpha=method.alpha,
            form=method.form,
            target=method.target,
            flat=method.flat,
            valid_PG=batch.groups.present_PG,
        ),
        batch.groups.gather(scores_B, missing=0.0),
    )
    batch.log({"dmpo_term": float(found.value)})
    weights_B = batch.of_rows(found.weights)
    if rows.aggregation == SEQUENCE:
        divisors_B = torch.full_like(weights_B, float(rows.sequences))
    else:
        lengths_B = batch.mask_BT.sum(-1)
        divisors_B = lengths_B.sum() / lengths_B.clamp(min=1).double()
    matching_B: Tensor = method.weight * divisors_B * weights_B
    return _z_scores(settings, batch) - matching_B


_CREDITS: Mapping[str, CreditFunction] = {
    "grpo": _z_scores,
    "dr_grpo": _dr_grpo,
    "dapo": _dapo,
    "gspo": _z_scores,
    "gpg": _gpg,
    "grpo_passk": _pass_at_k,
    "clip_cov": _clip_cov,
    "dmpo": _dmpo,
    "mupo": mupo_advantages,
}


def _section(config: Any) -> dict[str, Any]:
    """``algorithm.npbench`` as plain values; verl passes its section ``algorithm``."""
    own = config.get("npbench") if config is not None else None
    return {} if own is None else {key: own[key] for key in own}


def _estimator(method: str, credit: CreditFunction) -> Estimator:
    def estimate(
        token_level_rewards: Tensor,
        response_mask: Tensor,
        index: Any = None,
        config: Any = None,
        **others: Any,
    ) -> tuple[Tensor, Tensor]:
        settings = read_settings(method, _section(config))
        batch = VerlBatch.of(method, token_level_rewards, response_mask, index)
        values = credit(settings, batch)
        advantages_BT = batch.of_tokens(values) if values.ndim == 1 else values
        advantages_BT = advantages_BT.to(token_level_rewards.dtype)
        return advantages_BT, advantages_BT

    return estimate


ESTIMATORS: Mapping[str, Estimator] = MappingProxyType(
    {PREFIX + method: _estimator(method, credit) for method, credit in _CREDITS.items()}
)
"""By the name that ``algorithm.adv_estimator`` selects. Advantages and returns are the same."""
