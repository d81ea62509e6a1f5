import math

import pytest
import torch
from torch import Tensor

from trainers.losses import (
    Counts,
    clip_cov_tokens,
    dapo_loss,
    dr_grpo_loss,
    group_relative_advantages,
    grpo_loss,
    gspo_loss,
    informative_groups,
    mask_from_lengths,
    overlong_punishment,
)
from trainers.losses.diagnostics import ratio_report

LENGTHS = torch.tensor([3, 5, 2, 4])


@pytest.fixture
def mask_BT() -> Tensor:
    return mask_from_lengths(LENGTHS, width=5)


@pytest.fixture
def logprobs_BT() -> Tensor:
    drawn = torch.rand(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    return -drawn - 0.1


@pytest.fixture
def advantages_B() -> Tensor:
    rewards = torch.tensor([[1.0, 0.0, 0.0, 1.0]], dtype=torch.float64)
    return group_relative_advantages(rewards)[0]


def test_on_policy_the_loss_is_about_zero_and_the_gradient_is_not(
    logprobs_BT: Tensor, advantages_B: Tensor, mask_BT: Tensor
) -> None:
    counts = Counts.of(mask_BT, groups=1)
    leaf = logprobs_BT.clone().requires_grad_(True)
    loss = grpo_loss(leaf, logprobs_BT, advantages_B, mask_BT, counts=counts)
    (gradient_BT,) = torch.autograd.grad(loss, leaf)
    assert abs(loss.item()) < 1e-15
    assert gradient_BT.norm() > 0.1
    clip = {"clip_low": 0.2, "clip_high": 0.2}
    report = ratio_report(leaf, logprobs_BT, advantages_B, mask_BT, **clip)
    assert (report.mean, report.largest, report.smallest) == (1.0, 1.0, 1.0)
    assert (report.clipped_high, report.clipped_low, report.kl_old) == (0.0, 0.0, 0.0)
    updated = leaf.detach() - 3.0 * gradient_BT
    second = ratio_report(updated, logprobs_BT, advantages_B, mask_BT, **clip)
    assert second.largest > 1.2
    assert second.smallest < 0.8
    assert second.clipped_high > 0
    assert second.clipped_low > 0
    assert second.kl_old > 0


def test_a_coefficient_without_a_reference_is_refused(
    logprobs_BT: Tensor, advantages_B: Tensor, mask_BT: Tensor
) -> None:
    counts = Counts.of(mask_BT, groups=1)
    for coefficient in (0.04, -0.1):
        with pytest.raises(ValueError, match="kl_coef must be 0"):
            grpo_loss(
                logprobs_BT,
                logprobs_BT,
                advantages_B,
                mask_BT,
                counts=counts,
                kl_coef=coefficient,
            )


def test_a_reference_with_coefficient_zero_is_grpo_bit_for_bit(
    logprobs_BT: Tensor, advantages_B: Tensor, mask_BT: Tensor
) -> None:
    counts = Counts.of(mask_BT, groups=1)
    plain = grpo_loss(logprobs_BT, logprobs_BT, advantages_B, mask_BT, counts=counts)
    other = grpo_loss(
        logprobs_BT,
        logprobs_BT,
        advantages_B,
        mask_BT,
        counts=counts,
        ref_logprobs_BT=logprobs_BT - 1,
    )
    assert torch.equal(plain, other)


def test_dr_grpo_grows_with_real_tokens_and_not_with_padding(advantages_B: Tensor) -> None:
    def loss(lengths: Tensor, width: int) -> float:
        mask_BT = mask_from_lengths(lengths, width=width)
        flat_BT = torch.full((4, width), -1.0, dtype=torch.float64)
        gains_B = advantages_B.clamp(min=0)
        counts = Counts.of(mask_BT, groups=1)
        return dr_grpo_loss(
            flat_BT, flat_BT, gains_B, mask_BT, counts=counts, max_tokens=100
        ).item()

    once = loss(LENGTHS, 5)
    assert loss(LENGTHS, 10) == once
    assert loss(2 * LENGTHS, 10) == pytest.approx(2 * once, rel=1e-12)


@pytest.mark.parametrize(
    ("advantage", "ratio", "value"),
    [
        (1.0, 1.27, -1.27),
        (1.0, 1.30, -1.28),
        (1.0, 0.50, -0.50),
        (-1.0, 0.81, 0.81),
        (-1.0, 0.79, 0.80),
        (-1.0, 1.50, 1.50),
    ],
)
def test_dapo_clips_above_at_1_28_and_below_at_0_8(
    advantage: float, ratio: float, value: float
) -> None:
    new_BT = torch.tensor([[ratio]], dtype=torch.float64).log().requires_grad_(True)
    mask_BT = torch.ones(1, 1, dtype=torch.bool)
    loss = dapo_loss(
        new_BT,
        torch.zeros(1, 1, dtype=torch.float64),
        torch.tensor([advantage], dtype=torch.float64),
        mask_BT,
        counts=Counts(1, 1, 1),
    )
    (gradient_BT,) = torch.autograd.grad(loss, new_BT)
    assert loss.item() == pytest.approx(value)
    assert bool(gradient_BT == 0) == (abs(value) != ratio)


@pytest.mark.parametrize(("clip", "value"), [(None, 5.0), (3.0, 3.0), (10.0, 5.0)])
def test_the_dual_clip_bounds_the_loss_of_a_negative_advantage(
    clip: float | None, value: float
) -> None:
    loss = dapo_loss(
        torch.tensor([[5.0]]).log(),
        torch.zeros(1, 1),
        torch.tensor([-1.0]),
        torch.ones(1, 1, dtype=torch.bool),
        counts=Counts(1, 1, 1),
        dual_clip=clip,
    )
    assert loss.item() == pytest.approx(value)


def test_overlong_replies_are_punished_softly() -> None:
    lengths = torch.tensor([1, 16384, 18432, 20480, 20481, 99999])
    assert overlong_punishment(lengths).tolist() == [0.0, 0.0, -0.5, -1.0, -1.0, -1.0]
    with pytest.raises(ValueError, match=r"cache_tokens must lie in \[1, 10\], got 11"):
        overlong_punishment(lengths, max_tokens=10, cache_tokens=11)


def test_groups_are_filtered_by_accuracy_and_not_by_the_mixed_reward() -> None:
    accuracy = torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    form = torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    assert informative_groups(accuracy).tolist() == [False, False, True]
    assert informative_groups(0.9 * accuracy + 0.1 * form).tolist() == [True, True, True]


@pytest.mark.parametrize("form", ["sequence", "token"])
@pytest.mark.parametrize(
    ("advantage", "offset", "clipped"),
    [
        (1.0, 3.9e-4, False),
        (1.0, 4.1e-4, True),
        (-1.0, -2.9e-4, False),
        (-1.0, -3.1e-4, True),
        (1.0, -3.1e-4, False),
        (-1.0, 4.1e-4, False),
    ],
)
def test_gspo_clips_sequences_at_its_own_tiny_range(
    form: str, advantage: float, offset: float, clipped: bool
) -> None:
    ratio = 1.0 + offset
    new_BT = torch.full((1, 3), ratio, dtype=torch.float64).log().requires_grad_(True)
    loss = gspo_loss(
        new_BT,
        torch.zeros(1, 3, dtype=torch.float64),
        torch.tensor([advantage], dtype=torch.float64),
        torch.ones(1, 3, dtype=torch.bool),
        counts=Counts(3, 1, 1),
        form=form,
    )
    (gradient_BT,) = torch.autograd.grad(loss, new_BT)
    assert bool((gradient_BT == 0).all()) == clipped
    bound = 1.0 + 4e-4 if advantage > 0 else 1.0 - 3e-4
    assert loss.item() == pytest.approx(-advantage * (bound if clipped else ratio), rel=1e-12)


def test_gspo_and_gspo_token_agree_in_value_and_gradient(
    logprobs_BT: Tensor, advantages_B: Tensor, mask_BT: Tensor
) -> None:
    old_BT = logprobs_BT + 0.2 * logprobs_BT.flip(1)
    results = []
    for form in ("sequence", "token"):
        leaf = logprobs_BT.clone().requires_grad_(True)
        loss = gspo_loss(
            leaf,
            old_BT,
            advantages_B,
            mask_BT,
            counts=Counts.of(mask_BT, groups=1),
            clip_low=0.1,
            clip_high=0.15,
            form=form,
        )
        results.append((loss.detach(), torch.autograd.grad(loss, leaf)[0]))
    torch.testing.assert_close(results[0], results[1], rtol=1e-13, atol=1e-15)


def test_gspo_takes_token_weights_in_its_token_form_only(
    logprobs_BT: Tensor, advantages_B: Tensor, mask_BT: Tensor
) -> None:
    arguments = (logprobs_BT, logprobs_BT, advantages_B, mask_BT)
    settings = {"counts": Counts.of(mask_BT, groups=1)}
    plain = gspo_loss(*arguments, form="token", **settings)
    half = torch.full_like(logprobs_BT, 0.5)
    weighted = gspo_loss(*arguments, form="token", sampler_weights_BT=half, **settings)
    torch.testing.assert_close(weighted, 0.5 * plain)
    with pytest.raises(ValueError, match="need form 'token'"):
        gspo_loss(*arguments, sampler_weights_BT=half, **settings)


def test_clip_ranges_out_of_bounds_are_refused(
    logprobs_BT: Tensor, advantages_B: Tensor, mask_BT: Tensor
) -> None:
    arguments = (logprobs_BT, logprobs_BT, advantages_B, mask_BT)
    counts = Counts.of(mask_BT, groups=1)
    for settings, message in (
        ({"clip_low": 1.0}, r"clip_low must lie in \[0, 1\), got 1.0"),
        ({"clip_high": -0.1}, "clip_high must not be negative, got -0.1"),
        ({"dual_clip": 1.0}, "dual_clip must be greater than 1, got 1.0"),
    ):
        with pytest.raises(ValueError, match=message):
            grpo_loss(*arguments, counts=counts, **settings)


def cov_case(tokens: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(8)
    logprobs_BT = -torch.rand(4, tokens, generator=generator, dtype=torch.float64) * 6
    old_BT = logprobs_BT + torch.randn(4, tokens, generator=generator, dtype=torch.float64) * 0.2
    advantages_B = torch.tensor([1.5, -0.5, -0.5, -0.5], dtype=torch.float64)
    return logprobs_BT, old_BT, advantages_B, torch.ones(4, tokens, dtype=torch.bool)


@pytest.mark.parametrize(("tokens", "dropped"), [(1000, 0), (1250, 1), (5000, 4)])
def test_clip_cov_drops_a_fixed_share_of_the_steps_tokens(tokens: int, dropped: int) -> None:
    found = clip_cov_tokens(*cov_case(tokens), generator=torch.Generator().manual_seed(0))
    assert int(found.sum()) == dropped


def test_clip_cov_draws_the_same_tokens_from_the_same_generator_state() -> None:
    case = cov_case(500)

    def draw(seed: int) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        return clip_cov_tokens(*case, generator=generator, share=0.01)

    assert torch.equal(draw(1), draw(1))
    assert not torch.equal(draw(1), draw(2))


def test_clip_cov_respects_its_bounds_and_leaves_clipped_tokens() -> None:
    logprobs_BT, old_BT, advantages_B, mask_BT = cov_case(500)
    found = clip_cov_tokens(
        logprobs_BT,
        old_BT,
        advantages_B,
        mask_BT,
        generator=torch.Generator(),
        share=1.0,
        low=0.5,
        high=2.0,
    )
    advantages_BT = advantages_B[:, None].expand_as(logprobs_BT)
    cov_BT = (advantages_BT - advantages_BT.mean()) * (logprobs_BT - logprobs_BT.mean())
    ratio_BT = (logprobs_BT - old_BT).exp()
    clipped_BT = ((advantages_BT > 0) & (ratio_BT > 1.2)) | ((advantages_BT < 0) & (ratio_BT < 0.8))
    inside_BT = (cov_BT > 0.5) & (cov_BT < 2.0)
    assert (inside_BT & clipped_BT).any()
    assert torch.equal(found, inside_BT & ~clipped_BT)


def test_clip_cov_refuses_shares_and_bounds_that_make_no_sense() -> None:
    case = cov_case(3)
    with pytest.raises(ValueError, match=r"share must lie in \[0, 1\], got 1.5"):
        clip_cov_tokens(*case, generator=torch.Generator(), share=1.5)
    with pytest.raises(ValueError, match=r"low must be below high=1\.0, got 2\.0"):
        clip_cov_tokens(*case, generator=torch.Generator(), low=2.0, high=1.0)


def test_flat_groups_stay_in_the_denominator_and_push_only_the_kl_term(
    logprobs_BT: Tensor, mask_BT: Tensor
) -> None:
    """Two groups of two; the first is flat."""
    rewards = torch.tensor([[0.35, 0.35], [0.0, 1.0]], dtype=torch.float64)
    advantages_B = group_relative_advantages(rewards).flatten()
    counts = Counts.of(mask_BT, groups=2)

    def gradient(**settings: object) -> Tensor:
        leaf = logprobs_BT.clone().requires_grad_(True)
        loss = grpo_loss(
            leaf,
            logprobs_BT,
            advantages_B,
            mask_BT,
            counts=counts,
            aggregation="token-mean",
            **settings,
        )
        return torch.autograd.grad(loss, leaf)[0]

    plain = gradient()
    assert (plain[:2] == 0).all()
    expected = -advantages_B[2].item() / counts.tokens
    assert counts.tokens == int(LENGTHS.sum())
    assert plain[2, 0].item() == pytest.approx(expected)
    with_kl = gradient(ref_logprobs_BT=logprobs_BT - 0.3, kl_coef=0.1)
    assert (with_kl[:2][mask_BT[:2]] != 0).all()


def test_gspo_agrees_with_an_independent_reference_on_random_masks() -> None:
    """Masks with holes and empty rows, widths equal to and different from the number of rows."""
    generator = torch.Generator().manual_seed(6)
    for trial in range(300):
        width = 4 if trial % 2 else 7
        log_BT = torch.randn(4, width, generator=generator, dtype=torch.float64)
        ratio_log_BT = torch.tensor([3.0, -3.0, 0.6])[
            torch.randint(3, (4, width), generator=generator)
        ].double()
        mask_BT = torch.rand(4, width, generator=generator) < 0.5
        mask_BT[trial % 4] = False
        advantages_B = torch.randn(4, generator=generator, dtype=torch.float64)
        total, rows = 0.0, 0
        for i in range(4):
            kept = [ratio_log_BT[i, t].item() for t in range(width) if mask_BT[i, t]]
            if kept:
                s = math.exp(sum(kept) / len(kept))
                a = advantages_B[i].item()
                total -= min(s * a, min(max(s, 0.8), 1.3) * a)
                rows += 1
        found = gspo_loss(
            log_BT,
            log_BT - ratio_log_BT,
            advantages_B,
            mask_BT,
            counts=Counts.of(mask_BT, groups=1),
            clip_low=0.2,
            clip_high=0.3,
        )
        assert found.item() == pytest.approx(total / max(rows, 1), abs=1e-12)
