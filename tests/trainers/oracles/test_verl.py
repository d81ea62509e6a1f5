"""Agreement with verl's pure functions, in an environment of their own (`make test-oracles`).

Every option is set by name, since verl's defaults move. Values and gradients in float64.
"""

from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from trainers.losses import (
    Counts,
    aggregate,
    clip_cov_loss,
    clip_cov_tokens,
    dapo_loss,
    gpg_advantages,
    gpg_alpha,
    gpg_loss,
    group_relative_advantages,
    grpo_loss,
    gspo_loss,
    kl_estimate,
    mask_from_lengths,
    mean_centred_advantages,
    pass_at_k_advantages,
)

pytestmark = pytest.mark.filterwarnings("ignore")

P, G, T = 3, 4, 9
B = P * G
TOLERANCE = 1e-12


@pytest.fixture(scope="module")
def verl() -> ModuleType:
    reason = "verl is not installed here; see requirements/oracles-verl.txt"
    pytest.importorskip("verl", reason=reason)
    return pytest.importorskip("verl.trainer.ppo.core_algos", reason=reason)


@pytest.fixture
def config(verl: ModuleType) -> Any:
    actor = pytest.importorskip("verl.workers.config.actor").ActorConfig
    return actor(
        strategy="fsdp",
        rollout_n=G,
        ppo_micro_batch_size_per_gpu=1,
        clip_ratio=0.2,
        clip_ratio_low=0.1,
        clip_ratio_high=0.15,
        clip_ratio_c=1.3,
    )


class Rows:
    """Random rollouts whose ratios reach every branch of the clip."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(11)
        self.lengths = torch.randint(1, T + 1, (B,), generator=generator)
        self.mask = mask_from_lengths(self.lengths, width=T)
        drawn = torch.randn(3, B, T, generator=generator, dtype=torch.float64)
        self.new = -drawn[0].abs() - 0.1
        self.old = self.new + 0.3 * drawn[1]
        self.ref = self.new + 0.5 * drawn[2]
        rewards = torch.rand(P, G, generator=generator, dtype=torch.float64)
        rewards[1] = 0.5
        self.rewards_PG = rewards
        self.counts = Counts.of(self.mask, groups=P)
        self.advantages_B = group_relative_advantages(rewards).flatten()

    @property
    def advantages_BT(self) -> Tensor:
        return self.advantages_B[:, None] * self.mask

    def verls_length_weights(self) -> Tensor:
        """Verl adds 1e-8 to the length of a row in its sequence mean."""
        lengths_B = self.lengths.double()
        return (lengths_B / (lengths_B + 1e-8))[:, None].expand(B, T)

    def rewards_at_the_end(self) -> Tensor:
        scores_BT = torch.zeros(B, T, dtype=torch.float64)
        scores_BT[torch.arange(B), self.lengths - 1] = self.rewards_PG.flatten()
        return scores_BT


@pytest.fixture
def rows() -> Rows:
    return Rows()


def groups() -> np.ndarray:
    return np.repeat(np.arange(P), G)


def same_value_and_gradient(ours: Any, theirs: Any, start_BT: Tensor) -> None:
    results = []
    for function in (ours, theirs):
        leaf = start_BT.clone().requires_grad_(True)
        value = function(leaf)
        results.append((value.detach(), torch.autograd.grad(value, leaf)[0]))
    (value, gradient), (their_value, their_gradient) = results
    assert their_gradient.abs().max() > 0
    torch.testing.assert_close(value, their_value, rtol=TOLERANCE, atol=TOLERANCE)
    torch.testing.assert_close(gradient, their_gradient, rtol=TOLERANCE, atol=TOLERANCE)
    print(
        f"verl: value {(value - their_value).abs():.1e}, "
        f"gradient {(gradient - their_gradient).abs().max():.1e}"
    )


@pytest.mark.parametrize(
    ("mode", "theirs", "settings", "extra"),
    [
        ("token-mean", "token-mean", {}, {}),
        ("sequence-mean", "seq-mean-token-mean", {}, {}),
        ("constant", "seq-mean-token-sum-norm", {"max_tokens": 31}, {"loss_scale_factor": 31}),
    ],
)
def test_aggregation(
    verl: ModuleType,
    rows: Rows,
    mode: str,
    theirs: str,
    settings: dict[str, int],
    extra: dict[str, int],
) -> None:
    mask_BT = rows.mask & (torch.arange(B) != 2)[:, None]
    counts = Counts.of(mask_BT, groups=P)
    ours = aggregate(rows.new, mask_BT, mode=mode, counts=counts, **settings)
    other = verl.agg_loss(rows.new, mask_BT.double(), theirs, **extra)
    # verl adds 1e-8 to the length of a row
    torch.testing.assert_close(ours, other, rtol=1e-7, atol=0.0)


def test_advantages(verl: ModuleType, rows: Rows) -> None:
    for function, by_std in ((group_relative_advantages, True), (mean_centred_advantages, False)):
        theirs, _ = verl.compute_grpo_outcome_advantage(
            rows.rewards_at_the_end(),
            rows.mask.double(),
            groups(),
            epsilon=1e-6,
            norm_adv_by_std_in_grpo=by_std,
        )
        ours = function(rows.rewards_PG).flatten()[:, None] * rows.mask
        torch.testing.assert_close(ours, theirs, rtol=TOLERANCE, atol=TOLERANCE)


def test_pass_at_k_advantages(verl: ModuleType, rows: Rows) -> None:
    theirs, _ = verl.compute_grpo_passk_outcome_advantage(
        rows.rewards_at_the_end(),
        rows.mask.double(),
        groups(),
        epsilon=1e-6,
        config={"norm_adv_by_std_in_grpo": True},
    )
    ours = pass_at_k_advantages(rows.rewards_PG).flatten()[:, None] * rows.mask
    torch.testing.assert_close(ours, theirs, rtol=TOLERANCE, atol=TOLERANCE)


def test_gpg_advantages_under_verls_own_alpha(verl: ModuleType, rows: Rows) -> None:
    rows.rewards_PG[0] = torch.tensor([1.0, 0.0, 0.0, 1.0], dtype=torch.float64)
    theirs, _ = verl.compute_gpg_outcome_advantage(
        rows.rewards_at_the_end(), rows.mask.double(), groups()
    )
    alpha = gpg_alpha(rows.rewards_PG, rule="verl").alpha
    assert alpha == pytest.approx(12 / 10)
    ours = gpg_advantages(rows.rewards_PG, alpha=alpha).flatten()[:, None] * rows.mask
    # verl divides in float32
    torch.testing.assert_close(ours, theirs, rtol=1e-7, atol=1e-12)


def test_grpo_and_dapo_with_a_dual_clip(verl: ModuleType, rows: Rows, config: Any) -> None:
    def theirs(new_BT: Tensor, mode: str) -> Tensor:
        loss, _ = verl.compute_policy_loss_vanilla(
            rows.old, new_BT, rows.advantages_BT, rows.mask.double(), mode, config
        )
        return loss

    clips = {"clip_low": 0.1, "clip_high": 0.15, "dual_clip": 1.3}
    arguments = (rows.old, rows.advantages_B, rows.mask)
    same_value_and_gradient(
        lambda new: dapo_loss(new, *arguments, counts=rows.counts, **clips),
        lambda new: theirs(new, "token-mean"),
        rows.new,
    )
    same_value_and_gradient(
        lambda new: grpo_loss(
            new,
            *arguments,
            counts=rows.counts,
            sampler_weights_BT=rows.verls_length_weights(),
            **clips,
        ),
        lambda new: theirs(new, "seq-mean-token-mean"),
        rows.new,
    )


def test_gspo(verl: ModuleType, rows: Rows, config: Any) -> None:
    def theirs(new_BT: Tensor) -> Tensor:
        loss, _ = verl.compute_policy_loss_gspo(
            rows.old,
            new_BT,
            rows.advantages_BT,
            rows.mask.double(),
            "seq-mean-token-mean",
            config,
        )
        return loss

    arguments = (rows.old, rows.advantages_B, rows.mask)
    clips = {"clip_low": 0.1, "clip_high": 0.15}
    same_value_and_gradient(
        lambda new: gspo_loss(
            new,
            *arguments,
            counts=rows.counts,
            form="token",
            sampler_weights_BT=rows.verls_length_weights(),
            **clips,
        ),
        theirs,
        rows.new,
    )
    sequence = gspo_loss(rows.new, *arguments, counts=rows.counts, **clips)
    torch.testing.assert_close(sequence, theirs(rows.new), rtol=1e-7, atol=1e-12)


def test_gpg_loss(verl: ModuleType, rows: Rows, config: Any) -> None:
    def theirs(new_BT: Tensor) -> Tensor:
        loss, _ = verl.compute_policy_loss_gpg(
            rows.old, new_BT, rows.advantages_BT, rows.mask.double(), "token-mean", config
        )
        return loss

    same_value_and_gradient(
        lambda new: gpg_loss(new, rows.advantages_B, rows.mask, counts=rows.counts),
        theirs,
        rows.new,
    )


def test_clip_cov_where_all_open_tokens_are_dropped(
    verl: ModuleType, rows: Rows, config: Any
) -> None:
    """With a share of 1 the draw takes every candidate, so both libraries must agree."""
    object.__setattr__(config.policy_loss, "clip_cov_ratio", 1.0)
    object.__setattr__(config.policy_loss, "clip_cov_lb", 0.1)
    object.__setattr__(config.policy_loss, "clip_cov_ub", 2.0)

    def theirs(new_BT: Tensor) -> Tensor:
        loss, _ = verl.compute_policy_loss_clip_cov(
            rows.old, new_BT, rows.advantages_BT, rows.mask.double(), "token-mean", config
        )
        return loss

    clips = {"clip_low": 0.1, "clip_high": 0.15}
    arguments = (rows.old, rows.advantages_B, rows.mask)
    dropped_BT = clip_cov_tokens(
        rows.new, *arguments, generator=torch.Generator(), share=1.0, low=0.1, high=2.0, **clips
    )
    assert 0 < int(dropped_BT.sum()) < rows.counts.tokens
    same_value_and_gradient(
        lambda new: clip_cov_loss(new, *arguments, dropped_BT, counts=rows.counts, **clips),
        theirs,
        rows.new,
    )


@pytest.mark.parametrize("estimator", ["k1", "k2", "k3"])
def test_kl_estimators(verl: ModuleType, rows: Rows, estimator: str) -> None:
    same_value_and_gradient(
        lambda new: kl_estimate(new, rows.ref, rows.mask, estimator=estimator).sum(),
        lambda new: (verl.kl_penalty(new, rows.ref, estimator) * rows.mask).sum(),
        rows.new,
    )
