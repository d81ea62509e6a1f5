"""Our losses as verl's policy losses, called on workers for each micro-batch.

Rows arrive in any order and in any cut, without uids, so only what is a function of single replies
can live here; all that needs a group is in the advantages. Counts are those of verl's whole
mini-batch, so that shares of micro-batches and processes add up (verl 0.9.1,
``verl/workers/utils/losses.py``, ``ppo_loss``). KL and entropy terms are verl's own.

B rows, T tokens.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from npbench.errors import InputError
from trainers import losses
from trainers.engines.verl_settings import CONSTANT, METHODS, PREFIX, SEQUENCE, TOKEN
from trainers.losses import Aggregation, Counts
from trainers.losses.diagnostics import ratio_report
from trainers.losses.ratios import sequence_ratio

__all__ = ["LOSSES", "MODES", "PolicyLoss"]

PolicyLoss = Callable[..., tuple[Tensor, dict[str, float]]]

MODES: Mapping[str, Aggregation] = MappingProxyType(
    {TOKEN: "token-mean", SEQUENCE: "sequence-mean", CONSTANT: "constant"}
)
"""verl's ``loss_agg_mode`` and our names."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """A micro-batch as verl hands it over, checked."""

    method: str
    new_BT: Tensor
    old_BT: Tensor
    advantages_B: Tensor
    dropped_BT: Tensor
    mask_BT: Tensor
    weights_BT: Tensor | None
    counts: Counts
    mode: Aggregation
    clip_low: float
    clip_high: float
    dual_clip: float | None
    max_tokens: int | None


def _grpo(rows: _Rows) -> Tensor:
    return losses.grpo_loss(
        rows.new_BT,
        rows.old_BT,
        rows.advantages_B,
        rows.mask_BT,
        counts=rows.counts,
        clip_low=rows.clip_low,
        clip_high=rows.clip_high,
        dual_clip=rows.dual_clip,
        aggregation=rows.mode,
        max_tokens=rows.max_tokens,
        sampler_weights_BT=rows.weights_BT,
    )


def _clip_cov(rows: _Rows) -> Tensor:
    return losses.clip_cov_loss(
        rows.new_BT,
        rows.old_BT,
        rows.advantages_B,
        rows.mask_BT,
        rows.dropped_BT,
        counts=rows.counts,
        clip_low=rows.clip_low,
        clip_high=rows.clip_high,
        dual_clip=rows.dual_clip,
        aggregation=rows.mode,
        max_tokens=rows.max_tokens,
        sampler_weights_BT=rows.weights_BT,
    )


def _gspo(rows: _Rows) -> Tensor:
    return losses.gspo_loss(
        rows.new_BT,
        rows.old_BT,
        rows.advantages_B,
        rows.mask_BT,
        counts=rows.counts,
        clip_low=rows.clip_low,
        clip_high=rows.clip_high,
        form="sequence" if rows.weights_BT is None else "token",
        sampler_weights_BT=rows.weights_BT,
    )


def _gpg(rows: _Rows) -> Tensor:
    return losses.gpg_loss(rows.new_BT, rows.advantages_B, rows.mask_BT, counts=rows.counts)


def _counts(config: Any, mask_BT: Tensor) -> tuple[Counts, int]:
    """Counts of verl's mini-batch, and the number of processes whose gradients it averages.

    verl's ``global_batch_size`` counts all rows of the mini-batch, those without tokens too.
    """
    info = config.global_batch_info
    processes = int(info.get("dp_size") or 1)
    tokens, sequences = info.get("batch_num_tokens"), info.get("global_batch_size")
    if processes > 1 and (tokens is None or sequences is None):
        raise InputError(
            f"the counts of the whole mini-batch are needed on {processes} processes, got "
            f"batch_num_tokens={tokens}, global_batch_size={sequences}"
        )
    own = Counts.of(mask_BT, groups=0)
    found = Counts(
        own.tokens if tokens is None else int(tokens),
        own.sequences if sequences is None else int(sequences),
        0,
    )
    return found, processes


def _values_of_rows(method: str, advantages_BT: Tensor, mask_BT: Tensor) -> tuple[Tensor, Tensor]:
    """The advantage of each reply, and the tokens where it is 0 instead.

    Raises:
        InputError: If a reply has several: then another estimator is at work.
    """
    kept_BT = advantages_BT.masked_fill(~mask_BT, 0.0)
    place_B1 = kept_BT.abs().argmax(-1, keepdim=True)
    advantages_B1 = kept_BT.gather(-1, place_B1)
    dropped_BT = mask_BT & (kept_BT == 0.0) & (advantages_B1 != 0.0)
    other_BT = mask_BT & ~dropped_BT & ~(kept_BT == advantages_B1)
    if method != "clip_cov":
        other_BT = other_BT | dropped_BT
    if bool(other_BT.any()):
        raise InputError(
            f"{PREFIX}{method} needs one advantage for all tokens of a reply, got several: set "
            f"algorithm.adv_estimator={PREFIX}{method}"
        )
    return advantages_B1.squeeze(-1), dropped_BT


def _rows(
    method: str,
    old_log_prob: Tensor,
    log_prob: Tensor,
    advantages: Tensor,
    response_mask: Tensor,
    loss_agg_mode: str,
    config: Any,
    weights_BT: Tensor | None,
) -> tuple[_Rows, int]:
    allowed = METHODS[method].aggregations
    if loss_agg_mode not in allowed:
        raise InputError(
            f"actor_rollout_ref.actor.loss_agg_mode must be {' or '.join(allowed)} for "
            f"{PREFIX}{method}, got {loss_agg_mode}"
        )
    if weights_BT is not None and not METHODS[method].corrected:
        raise InputError(
            f"algorithm.rollout_correction.rollout_is must be null for {PREFIX}{method}"
        )
    if loss_agg_mode == CONSTANT and config.loss_scale_factor is None:
        # verl would fall back to the padded width of the tensor
        raise InputError(
            f"actor_rollout_ref.actor.loss_scale_factor must be the generation limit for "
            f"{CONSTANT}, got null"
        )
    mask_BT = response_mask.bool()
    counts, processes = _counts(config, mask_BT)
    advantages_B, dropped_BT = _values_of_rows(method, advantages, mask_BT)
    rows = _Rows(
        method,
        log_prob,
        old_log_prob,
        advantages_B,
        dropped_BT,
        mask_BT,
        weights_BT,
        counts,
        MODES[loss_agg_mode],
        float(config.clip_ratio_low),
        float(config.clip_ratio_high),
        None if config.clip_ratio_c is None else float(config.clip_ratio_c),
        None if config.loss_scale_factor is None else int(config.loss_scale_factor),
    )
    return rows, processes


def _report(rows: _Rows) -> dict[str, float]:
    """Share of clipped tokens (replies in GSPO) and the k3 estimate of KL(old || new)."""
    with torch.no_grad():
        report = ratio_report(
            rows.new_BT,
            rows.old_BT,
            rows.advantages_B,
            rows.mask_BT,
            clip_low=rows.clip_low,
            clip_high=rows.clip_high,
        )
        clipped = report.clipped_high + report.clipped_low
        if rows.method == "gspo":
            ratios_B = sequence_ratio(rows.new_BT, rows.old_BT, rows.mask_BT)
            high_B = (rows.advantages_B > 0) & (ratios_B > 1.0 + rows.clip_high)
            low_B = (rows.advantages_B < 0) & (ratios_B < 1.0 - rows.clip_low)
            clipped = float((high_B | low_B).double().mean())
    found = {"actor/ppo_kl_k3": report.kl_old}
    return found if rows.method == "gpg" else {**found, "actor/pg_clipfrac": clipped}


def _policy_loss(method: str, loss: Callable[[_Rows], Tensor]) -> PolicyLoss:
    def compute(
        old_log_prob: Tensor,
        log_prob: Tensor,
        advantages: Tensor,
        response_mask: Tensor,
        loss_agg_mode: str = TOKEN,
        config: Any = None,
        rollout_is_weights: Tensor | None = None,
        **others: Any,
    ) -> tuple[Tensor, dict[str, float]]:
        rows, processes = _rows(
            method,
            old_log_prob,
            log_prob,
            advantages,
            response_mask,
            loss_agg_mode,
            config,
            rollout_is_weights,
        )
        # verl averages gradients over its processes, and these are shares of one sum
        return loss(rows) * processes, _report(rows)

    return compute


_OWN = {"gspo": _gspo, "gpg": _gpg, "clip_cov": _clip_cov}

LOSSES: Mapping[str, PolicyLoss] = MappingProxyType(
    {PREFIX + method: _policy_loss(method, _OWN.get(method, _grpo)) for method in METHODS}
)
"""By the name that ``actor_rollout_ref.actor.policy_loss.loss_mode`` selects."""
