"""Every loss of this package behind one interface: credit over whole groups, then a loss of rows.

``credit`` sees the groups of an optimiser step and gives each training row what its loss needs;
``loss`` gives the share that any rows have in the step's loss, so the loop cuts rows as it likes.
What is a function of a whole group (DMPO's softmax) becomes weights of rows in ``credit``: the
two-pass gradient.

P questions, G replies of a question, B rows, T tokens.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from trainers import losses
from trainers.batches import Batch
from trainers.clusters import Clusters, mupo_credit
from trainers.losses import Counts

__all__ = ["METHOD_TABLE", "Credit", "Method", "Scores"]

Rows = Mapping[str, Tensor]
"""By name, one value or one line of tokens for each row; always ``mask`` and ``old``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """What was computed without gradient before an optimiser step."""

    now_BT: Tensor | None
    """Log-probabilities under the policy, where the method wants them."""
    old_BT: Tensor | None
    """The same before the step's first update; None where they are those of the gradient pass."""
    generator: torch.Generator
    """Seeded by run, step and mini-batch: its state need not be kept."""
    progress: tuple[int, int]
    """Step, and steps in all."""
    max_tokens: int
    clusters: tuple[Clusters, ...] = ()


@dataclass(frozen=True, slots=True)
class Credit:
    """What the rows get, and numbers to log."""

    rows: Rows
    report: Mapping[str, float] = field(default_factory=dict)


CreditFunction = Callable[[Any, Batch, Scores], Credit]
LossFunction = Callable[[Any, Tensor, Rows, Counts], Mapping[str, Tensor]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One method."""

    credit: CreditFunction
    loss: LossFunction
    """From log-probabilities with gradient and the same rows to the terms of the loss, by name."""
    needs_scores: bool = False
    needs_reference: Callable[[Any], bool] = lambda settings: False
    needs_log_z: bool = False
    needs_clusters: bool = False


def _advantages(of: Callable[[Any, Batch], Tensor]) -> CreditFunction:
    def credit(settings: Any, batch: Batch, scores: Scores) -> Credit:
        return Credit({"advantages": batch.of_replies(of(settings, batch))})

    return credit


def _z_scores(settings: Any, batch: Batch) -> Tensor:
    eps, floor = getattr(settings, "eps", 1e-6), getattr(settings, "std_floor", 0.0)
    return losses.group_relative_advantages(batch.rewards_PG, eps=eps, std_floor=floor)


def _pass_at_k(settings: Any, batch: Batch) -> Tensor:
    return losses.pass_at_k_advantages(
        batch.rewards_PG, eps=settings.eps, std_floor=settings.std_floor
    )


def _surrogate(settings: Any, rows: Rows) -> dict[str, Any]:
    """The arguments that the clipped losses share."""
    return {
        "clip_low": settings.clip_low,
        "clip_high": settings.clip_high,
        "sampler_weights_BT": rows.get("sampler_weights"),
    }


def _token_options(settings: Any, rows: Rows) -> dict[str, Any]:
    return {
        **_surrogate(settings, rows),
        "dual_clip": settings.dual_clip,
        "aggregation": settings.aggregation,
        "max_tokens": _limit(rows),
    }


def _limit(rows: Rows) -> int:
    """The generation limit, which every row carries."""
    return int(rows["max_tokens"][0])


def _grpo(settings: Any, logprobs_BT: Tensor, rows: Rows, counts: Counts) -> Mapping[str, Tensor]:
    loss = losses.grpo_loss(
        logprobs_BT,
        rows["old"],
        rows["advantages"],
        rows["mask"],
        counts=counts,
        group_tokens_B=rows["group_tokens"],
        **_token_options(settings, rows),
    )
    if "ref" not in rows:
        return {"policy": loss}
    divergence = settings.kl_coef * losses.kl_loss(
        logprobs_BT,
        rows["old"],
        rows["ref"],
        rows["mask"],
        counts=counts,
        term=settings.kl_term,
        aggregation=settings.aggregation,
        max_tokens=_limit(rows),
        group_tokens_B=rows["group_tokens"],
    )
    return {"policy": loss, "kl": divergence}


def _dr_grpo(
    settings: Any, logprobs_BT: Tensor, rows: Rows, counts: Counts
) -> Mapping[str, Tensor]:
    loss = losses.dr_grpo_loss(
        logprobs_BT,
        rows["old"],
        rows["advantages"],
        rows["mask"],
        counts=counts,
        max_tokens=_limit(rows),
        **_surrogate(settings, rows),
    )
    return {"policy": loss}


def _dapo_credit(settings: Any, batch: Batch, scores: Scores) -> Credit:
    rewards_PG = batch.rewards_PG
    if settings.overlong_cache_tokens:
        lengths = [[len(reply.ids) for reply in group.replies] for group in batch.groups]
        rewards_PG = rewards_PG + losses.overlong_punishment(
            torch.tensor(lengths),
            max_tokens=scores.max_tokens,
            cache_tokens=settings.overlong_cache_tokens,
        )
    return Credit({"advantages": batch.of_replies(losses.group_relative_advantages(rewards_PG))})


def _dapo(settings: Any, logprobs_BT: Tensor, rows: Rows, counts: Counts) -> Mapping[str, Tensor]:
    loss = losses.dapo_loss(
        logprobs_BT,
        rows["old"],
        rows["advantages"],
        rows["mask"],
        counts=counts,
        dual_clip=settings.dual_clip,
        group_tokens_B=rows["group_tokens"] if settings.token_mean == "group" else None,
        **_surrogate(settings, rows),
    )
    return {"policy": loss}


def _gspo(settings: Any, logprobs_BT: Tensor, rows: Rows, counts: Counts) -> Mapping[str, Tensor]:
    loss = losses.gspo_loss(
        logprobs_BT,
        rows["old"],
        rows["advantages"],
        rows["mask"],
        counts=counts,
        clip_low=settings.clip_low,
        clip_high=settings.clip_high,
        form=settings.form,
    )
    return {"policy": loss}


def _gpg_credit(settings: Any, batch: Batch, scores: Scores) -> Credit:
    found = losses.gpg_alpha(batch.rewards_PG, rule=settings.rule)
    advantages_PG = torch.zeros_like(batch.rewards_PG)
    # without any informative group there is no alpha and nothing to learn
    if found.alpha is not None:
        advantages_PG = losses.gpg_advantages(
            batch.rewards_PG, alpha=found.alpha, f_norm=settings.f_norm
        )
    report = {"gpg_alpha": found.alpha or 0.0, "gpg_valid_share": found.valid_share}
    return Credit({"advantages": batch.of_replies(advantages_PG)}, report)


def _gpg(settings: Any, logprobs_BT: Tensor, rows: Rows, counts: Counts) -> Mapping[str, Tensor]:
    loss = losses.gpg_loss(logprobs_BT, rows["advantages"], rows["mask"], counts=counts)
    return {"policy": loss}


def _flowrl(settings: Any, logprobs_BT: Tensor, rows: Rows, counts: Counts) -> Mapping[str, Tensor]:
    loss = losses.flowrl_loss(
        logprobs_BT,
        rows["old"],
        rows["ref"],
        rows["log_z"],
        rows["advantages"],
        rows["mask"],
        counts=counts,
        beta=settings.beta,
        clip_low=settings.clip_low,
        clip_high=settings.clip_high,
        weight=settings.weight,
    )
    return {"flow": loss}


def _clip_cov_credit(settings: Any, batch: Batch, scores: Scores) -> Credit:
    advantages_B = batch.of_replies(_z_scores(settings, batch))
    assert scores.now_BT is not None
    assert scores.old_BT is not None
    dropped_BT = losses.clip_cov_tokens(
        scores.now_BT,
        scores.old_BT,
        advantages_B,
        batch.mask_BT,
        generator=scores.generator,
        share=settings.share,
        low=settings.low,
        high=settings.high,
        clip_low=settings.clip_low,
        clip_high=settings.clip_high,
    )
    report = {"dropped_tokens": float(dropped_BT.sum())}
    return Credit({"advantages": advantages_B, "dropped": dropped_BT}, report)


def _clip_cov(
    settings: Any, logprobs_BT: Tensor, rows: Rows, counts: Counts
) -> Mapping[str, Tensor]:
    loss = losses.clip_cov_loss(
        logprobs_BT,
        rows["old"],
        rows["advantages"],
        rows["mask"],
        rows["dropped"],
        counts=counts,
        **_surrogate(settings, rows),
    )
    return {"policy": loss}


def _dmpo_credit(settings: Any, batch: Batch, scores: Scores) -> Credit:
    assert scores.now_BT is not None
    index_PG = batch.by_group()
    found = losses.group_weights(
        lambda scores_PG: losses.dmpo_term(
            scores_PG,
            batch.rewards_PG,
            groups=len(batch.groups),
            alpha=settings.alpha,
            form=settings.form,
            target=settings.target,
            flat=settings.flat,
            valid_PG=batch.mask_BT.any(-1)[index_PG],
        ),
        losses.row_mean(scores.now_BT, batch.mask_BT)[index_PG],
    )
    rows = {
        "advantages": batch.of_replies(_z_scores(settings, batch)),
        "term_weights": losses.to_rows(found.weights, index_PG),
    }
    return Credit(rows, {"dmpo_term": float(found.value)})


def _dmpo(settings: Any, logprobs_BT: Tensor, rows: Rows, counts: Counts) -> Mapping[str, Tensor]:
    policy = losses.grpo_loss(
        logprobs_BT,
        rows["old"],
        rows["advantages"],
        rows["mask"],
        counts=counts,
        clip_low=settings.clip_low,
        clip_high=settings.clip_high,
        aggregation=settings.aggregation,
    )
    scores_B = losses.row_mean(logprobs_BT, rows["mask"])
    matching = settings.weight * losses.weighted_scores(scores_B, rows["term_weights"])
    return {"policy": policy, "matching": matching}


def _mupo_credit(settings: Any, batch: Batch, scores: Scores) -> Credit:
    return Credit(*mupo_credit(settings, batch, scores.clusters, progress=scores.progress))


def _mupo(settings: Any, logprobs_BT: Tensor, rows: Rows, counts: Counts) -> Mapping[str, Tensor]:
    loss = losses.mupo_loss(
        logprobs_BT,
        rows["old"],
        rows["advantages"],
        rows["balance"],
        rows["mask"],
        counts=counts,
        group_tokens_B=rows["group_tokens"],
        **_token_options(settings, rows),
    )
    return {"policy": loss}


def _share_credit(settings: Any, batch: Batch, scores: Scores) -> Credit:
    variants = settings.variants
    rewards_PMN = batch.rewards_PG.reshape(len(batch.groups), variants, -1)
    advantages_PMNM = losses.hierarchical_advantages(
        rewards_PMN, eps=settings.eps, std_floor=settings.std_floor, spread=settings.spread
    )
    # rows stand by question, variant of the prompt, variant sampled under, reply
    return Credit({"advantages": advantages_PMNM.permute(0, 3, 1, 2).flatten()})


def _share(settings: Any, logprobs_BT: Tensor, rows: Rows, counts: Counts) -> Mapping[str, Tensor]:
    loss = losses.share_grpo_loss(
        logprobs_BT,
        rows["old"],
        rows["advantages"],
        rows["mask"],
        counts=counts,
        **_token_options(settings, rows),
    )
    return {"policy": loss}


def _no_credit(settings: Any, batch: Batch, scores: Scores) -> Credit:
    raise ValueError("supervised rows have no group to give credit to")


def _cross_entropy(
    settings: Any, logprobs_BT: Tensor, rows: Rows, counts: Counts
) -> Mapping[str, Tensor]:
    loss = losses.aggregate(-logprobs_BT, rows["mask"], mode="token-mean", counts=counts)
    return {"cross_entropy": loss}


def _with_kl(settings: Any) -> bool:
    return bool(settings.kl_coef > 0.0)


METHOD_TABLE: Mapping[str, Method] = MappingProxyType(
    {
        "grpo": Method(credit=_advantages(_z_scores), loss=_grpo, needs_reference=_with_kl),
        "dr_grpo": Method(
            credit=_advantages(
                lambda settings, batch: losses.mean_centred_advantages(batch.rewards_PG)
            ),
            loss=_dr_grpo,
        ),
        "dapo": Method(credit=_dapo_credit, loss=_dapo),
        "gspo": Method(credit=_advantages(_z_scores), loss=_gspo),
        "gpg": Method(credit=_gpg_credit, loss=_gpg),
        "flowrl": Method(
            credit=_advantages(_z_scores),
            loss=_flowrl,
            needs_reference=lambda settings: True,
            needs_log_z=True,
        ),
        "clip_cov": Method(credit=_clip_cov_credit, loss=_clip_cov, needs_scores=True),
        "grpo_passk": Method(credit=_advantages(_pass_at_k), loss=_grpo, needs_reference=_with_kl),
        "dmpo": Method(credit=_dmpo_credit, loss=_dmpo, needs_scores=True),
        "mupo": Method(credit=_mupo_credit, loss=_mupo, needs_clusters=True),
        "share_grpo": Method(credit=_share_credit, loss=_share),
        "supervised": Method(credit=_no_credit, loss=_cross_entropy),
    }
)
"""All methods by name."""
