"""One step of training on whole groups by the two-pass gradient.

Pass 1 scores all rows without gradient where the method, several mini-batches or the checks of the
first step want it; credit is given to whole groups; pass 2 back-propagates each micro-batch's share
of the loss. The result does not depend on how rows are cut, nor on how many processes share them.

B rows of a step, R rows of a micro-batch, T tokens, L prompt tokens, H width of the model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from npbench.errors import InputError
from npbench.rng import digest
from trainers.batches import Batch, Chunk, Section, make_batch
from trainers.clusters import Clusters, find_clusters
from trainers.config import Config
from trainers.distributed import gathered, merged, summed
from trainers.groups import Group
from trainers.learner import Learner, apply_gradient
from trainers.losses import Counts, LogZHead, kl_estimate, sampler_correction
from trainers.losses.diagnostics import ratio_report, step_zero_faults
from trainers.methods import Scores
from trainers.policy import Policy
from trainers.prefix import Shared
from trainers.shared_rollouts import is_near
from trainers.tally import Tally

__all__ = ["Pass", "accumulate", "complete_rows", "learn", "score"]


@torch.no_grad()
def score(policy: Policy, batch: Batch, config: Config) -> Tensor:
    """Log-probabilities of all rows without gradient, on the CPU; 0 beyond a reply's end."""
    with policy.as_scored():
        return summed(_score(policy, batch, config))


def _score(policy: Policy, batch: Batch, config: Config) -> Tensor:
    found_BT = torch.zeros(batch.mask_BT.shape)
    for section in _near(batch):
        shared = config.optimizer.shared_prefix
        prefix = policy.prefix(section.prompt) if shared else None
        for chunk in section.chunks(tokens_at_once=config.optimizer.tokens_at_once):
            if prefix is None:
                logprobs_RT = policy.plain_logprobs(section.prompt, chunk.replies)
            else:
                logprobs_RT = policy.logprobs(prefix, chunk.replies)
            found_BT[chunk.rows, : chunk.width] = logprobs_RT.float().cpu()
    return found_BT


def _near(batch: Batch) -> list[Section]:
    """The rows that this process has to compute."""
    return [section for section in batch.sections if is_near(section.prompt)]


@dataclass(frozen=True, slots=True)
class Pass:
    """What the gradient pass leaves: numbers to log, and the log-probabilities it saw."""

    tally: Tally
    logprobs_BT: Tensor


def complete_rows(
    rows: Mapping[str, Tensor], batch: Batch, scores: Scores, config: Config
) -> dict[str, Tensor]:
    """A method's rows with what all losses may ask for."""
    length_P = torch.zeros(len(batch.groups), dtype=torch.long)
    group_B = batch.reply_B // config.group_size
    length_P.index_add_(0, group_B, batch.mask_BT.sum(-1))
    found = {
        **rows,
        "mask": batch.mask_BT,
        "group_tokens": length_P[group_B],
        "max_tokens": torch.full((len(batch.mask_BT),), scores.max_tokens),
    }
    if scores.old_BT is not None:
        found["old"] = scores.old_BT
    settings = config.sampler_correction
    if settings.rule != "none" and scores.old_BT is not None:
        found["sampler_weights"] = sampler_correction(
            scores.old_BT,
            batch.sampler_BT,
            batch.mask_BT,
            level=settings.level,
            rule=settings.rule,
            threshold=settings.threshold,
        ).weights_BT
    return found


def accumulate(learner: Learner, batch: Batch, rows: Mapping[str, Tensor], counts: Counts) -> Pass:
    """Adds the gradient of this process's share of the loss, one micro-batch at a time."""
    config, policy, method = learner.config, learner.policy, learner.method
    seen = Pass(Tally(), torch.zeros(batch.mask_BT.shape))
    for section in _near(batch):
        shared = None
        if config.optimizer.shared_prefix or method.needs_log_z:
            shared = Shared(policy.prefix(section.prompt, hidden=method.needs_log_z))
        for chunk in section.chunks(tokens_at_once=config.optimizer.tokens_at_once):
            logprobs_RT = _logprobs(learner, section, chunk, shared)
            given = _rows_of(rows, chunk, policy.device)
            given.setdefault("old", logprobs_RT.detach())
            if learner.log_z is not None and shared is not None:
                given["log_z"] = _log_z(learner.log_z, shared).expand(len(chunk.rows))
            terms = method.loss(config.method_settings, logprobs_RT, given, counts)
            _note(seen, chunk, logprobs_RT, given, terms, config)
            torch.stack(list(terms.values())).sum().backward()  # type: ignore[no-untyped-call]
        if shared is not None:
            shared.finish()
    return seen


def _logprobs(learner: Learner, section: Section, chunk: Chunk, shared: Shared | None) -> Tensor:
    if shared is not None and learner.config.optimizer.shared_prefix:
        return learner.policy.logprobs(shared.prefix, chunk.replies)
    return learner.policy.plain_logprobs(section.prompt, chunk.replies)


def _log_z(head: LogZHead, shared: Shared) -> Tensor:
    hidden_1LH = shared.prefix.hidden_1LH
    assert hidden_1LH is not None
    mask_1L = torch.ones(hidden_1LH.shape[:2], dtype=torch.bool, device=hidden_1LH.device)
    log_z_1: Tensor = head(hidden_1LH.float(), mask_1L)
    return log_z_1


def _rows_of(rows: Mapping[str, Tensor], chunk: Chunk, device: torch.device) -> dict[str, Tensor]:
    """The rows of a micro-batch, as wide as its longest reply."""
    found = {}
    for name, values in rows.items():
        part = values[chunk.rows]
        found[name] = (part if part.ndim == 1 else part[:, : chunk.width]).to(device)
    return found


def _note(
    seen: Pass,
    chunk: Chunk,
    logprobs_RT: Tensor,
    rows: Mapping[str, Tensor],
    terms: Mapping[str, Tensor],
    config: Config,
) -> None:
    """Writes down what a micro-batch shows; squares of gradients by log-probability add up."""
    seen.logprobs_BT[chunk.rows, : chunk.width] = logprobs_RT.detach().float().cpu()
    tally = seen.tally
    for name, term in terms.items():
        tally.add(f"loss_{name}", float(term.detach()))
        if len(terms) > 1 and term.requires_grad:
            (gradient_RT,) = torch.autograd.grad(term, logprobs_RT, retain_graph=True)
            tally.add(f"square_{name}", float(gradient_RT.double().square().sum()))
    _note_ratios(seen.tally, logprobs_RT.detach(), rows, config)


@torch.no_grad()
def _note_ratios(
    tally: Tally, logprobs_RT: Tensor, rows: Mapping[str, Tensor], config: Config
) -> None:
    """Ratios to the old policy, and divergence from the reference."""
    settings, mask_RT = config.method_settings, rows["mask"]
    found = ratio_report(
        logprobs_RT,
        rows["old"],
        rows["advantages"],
        mask_RT,
        clip_low=getattr(settings, "clip_low", 0.0),
        clip_high=getattr(settings, "clip_high", 0.0),
    )
    for name in ("mean", "clipped_high", "clipped_low", "kl_old"):
        tally.mean(f"ratio_{name}", getattr(found, name), weight=found.tokens)
    if "ref" in rows and found.tokens:
        divergence_RT = kl_estimate(logprobs_RT, rows["ref"], mask_RT)
        tally.mean("kl_reference", float(divergence_RT.sum()) / found.tokens, weight=found.tokens)


def learn(learner: Learner, groups: Sequence[Group], *, step: int) -> dict[str, float]:
    """All optimiser steps on one step's groups; numbers to log.

    Raises:
        InputError: If an invariant of the first step does not hold.
    """
    config, method = learner.config, learner.method
    total = Tally()
    size = -(-len(groups) // config.optimizer.mini_batches)
    parts = [make_batch(groups[i : i + size], config) for i in range(0, len(groups), size or 1)]
    wanted = method.needs_scores or config.sampler_correction.rule != "none"
    pre_scored = wanted or len(parts) > 1 or step == 0
    before = [score(learner.policy, part, config) if pre_scored else None for part in parts]
    for number, (batch, old_BT) in enumerate(zip(parts, before, strict=True)):
        moved = number > 0 and method.needs_scores
        scores = Scores(
            now_BT=score(learner.policy, batch, config) if moved else old_BT,
            old_BT=old_BT,
            generator=_generator(config.seed, step, number),
            progress=(step, config.steps),
            max_tokens=config.sampling.max_tokens,
            clusters=_clusters(learner, batch, step) if method.needs_clusters else (),
        )
        credit = method.credit(config.method_settings, batch, scores)
        rows = complete_rows(credit.rows, batch, scores, config)
        if learner.reference is not None:
            rows["ref"] = score(learner.reference, batch, config)
        seen = accumulate(learner, batch, rows, batch.counts)
        if step == 0 and number == 0:
            _check_first_step(summed(seen.logprobs_BT), rows, batch, config)
        for tally in gathered(seen.tally):
            total.merge(tally)
        total.mean("gradient_norm", apply_gradient(learner, step=step), weight=1)
        for name, value in credit.report.items():
            total.mean(name, value, weight=1)
    return total.numbers()


def _clusters(learner: Learner, batch: Batch, step: int) -> tuple[Clusters, ...]:
    """The clusters of all questions, each found where its pictures are."""
    near = {n: group for n, group in enumerate(batch.groups) if is_near(group.prompts[0])}
    part = replace(batch, groups=tuple(near.values()))
    found = find_clusters(learner.policy, part, learner.config, step=step)
    return tuple(merged(dict(zip(near, found, strict=True))))


def _generator(seed: int, step: int, number: int) -> torch.Generator:
    """The source of a method's own draws, a function of run, step and mini-batch."""
    mixed = int(digest("npbench-credit", seed, step, number)[:15], 16)
    return torch.Generator().manual_seed(mixed)


SAMPLER_TOLERANCE = 0.05
"""Nats a token by which sampler and trainer may differ in the mean: room for bfloat16."""


def _check_first_step(
    logprobs_BT: Tensor, rows: Mapping[str, Tensor], batch: Batch, config: Config
) -> None:
    """Refuses to go on where the run's first update shows that something is wrong."""
    faults = list(
        step_zero_faults(
            logprobs_BT,
            rows["old"],
            batch.mask_BT,
            ref_logprobs_BT=None if config.reference else rows.get("ref"),
        )
    )
    # behind other prompts than their own, replies have other log-probabilities by design
    if config.variants == 1 and bool(batch.mask_BT.any()):
        # not the mean ratio: that is 1 in expectation for any two policies
        gap = float((logprobs_BT - batch.sampler_BT)[batch.mask_BT].abs().mean())
        if not gap <= SAMPLER_TOLERANCE:
            faults.append(
                f"log-probabilities of sampler and trainer must agree to {SAMPLER_TOLERANCE:g} a "
                f"token, they differ by {gap:.3g}"
            )
    if faults:
        raise InputError(f"the first step is not as it must be: {'; '.join(faults)}")
