import math
from functools import partial

import pytest
import torch
from torch import Tensor

from trainers.losses import (
    DMPO_SETTINGS,
    Counts,
    dmpo_loss,
    dmpo_target,
    dmpo_term,
    group_relative_advantages,
    group_weights,
    grpo_loss,
    row_mean,
)
from trainers.losses.diagnostics import effective_modes, gradient_norms

REWARDS = torch.tensor([[1.1] * 3 + [0.1] * 5], dtype=torch.float64)
PHI = torch.tensor([[-0.9, -1.1, -0.7, -1.3, -0.8, -1.0, -1.2, -0.6]], dtype=torch.float64)
EQUAL = torch.full_like(PHI, -1.0)
TABLE = [
    (1.0, EQUAL, 0.00399879, [-0.002551] * 3 + [0.001531] * 5),
    (1 / 15, EQUAL, 0.02604162, [-0.006510] * 3 + [0.003906] * 5),
    (
        1.0,
        PHI,
        0.00434581,
        [-0.002664, -0.002789, -0.002146, 0.000111, 0.002152, 0.001019, 0.000336, 0.003982],
    ),
    (
        1 / 15,
        PHI,
        0.02566877,
        [-0.006627, -0.006034, -0.006986, 0.001804, 0.004943, 0.003304, 0.002207, 0.007390],
    ),
]


@pytest.mark.parametrize(("alpha", "phi", "value", "gradient"), TABLE)
def test_values_and_gradients_of_the_reference_table(
    alpha: float, phi: Tensor, value: float, gradient: list[float]
) -> None:
    found = group_weights(partial(dmpo_term, rewards_PG=REWARDS, groups=1, alpha=alpha), phi)
    assert found.value.item() == pytest.approx(value, abs=6e-9)
    assert found.weights[0].tolist() == pytest.approx(gradient, abs=6e-7)
    assert abs(found.weights.sum().item()) < 1e-15


@pytest.mark.parametrize("alpha", [1.0, 1 / 15])
def test_the_gradient_is_the_formula_of_the_paper(alpha: float) -> None:
    p, q = dmpo_target(REWARDS, alpha=alpha), PHI.softmax(-1)
    formula = (2 / 8) * q * ((q - p) - (q * (q - p)).sum())
    found = group_weights(partial(dmpo_term, rewards_PG=REWARDS, groups=1, alpha=alpha), PHI)
    torch.testing.assert_close(found.weights, formula, rtol=1e-12, atol=1e-16)


def test_the_targets_have_the_reference_values() -> None:
    assert dmpo_target(REWARDS)[0, [0, 3]].tolist() == pytest.approx([0.206637, 0.076018], abs=1e-6)
    sharp = dmpo_target(REWARDS, alpha=1 / 15)[0]
    assert sharp[0].item() == pytest.approx(1 / 3, abs=1e-6)
    assert sharp[3].item() == pytest.approx(1e-7, rel=0.05)


def test_the_forward_kl_form_has_gradient_q_minus_p() -> None:
    found = group_weights(partial(dmpo_term, rewards_PG=REWARDS, groups=1, form="forward-kl"), PHI)
    q = PHI.softmax(-1)
    torch.testing.assert_close(found.weights, q - dmpo_target(REWARDS))
    expected_q = [0.128022, 0.104816, 0.156367, 0.085816, 0.141487, 0.115839, 0.094841, 0.172812]
    assert q[0].tolist() == pytest.approx(expected_q, abs=1e-6)
    expected = [-0.078615, -0.101822, -0.050271, 0.009798, 0.065469, 0.039822, 0.018824, 0.096794]
    assert found.weights[0].tolist() == pytest.approx(expected, abs=1e-6)


MODES = [
    ((0.90, 0.91, 0.92, 0.93, 0.94, 0.95, 0.96, 0.97), (8.00, 7.56, 1.02)),
    ((0.1, 0.1, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9), (7.71, 3.41, 1.42)),
    ((1.1, *[0.1] * 7), (7.35, 1.00, 1.00)),
    ((*[1.1] * 4, *[0.1] * 4), (7.16, 4.00, 4.00)),
]


@pytest.mark.parametrize(("rewards", "modes"), MODES)
def test_effective_modes_of_the_three_targets(
    rewards: tuple[float, ...], modes: tuple[float, ...]
) -> None:
    group = torch.tensor([rewards], dtype=torch.float64)
    found = [
        effective_modes(dmpo_target(group)).item(),
        effective_modes(dmpo_target(group, alpha=1 / 15)).item(),
        effective_modes(dmpo_target(group, alpha=1 / 15, target="advantages")).item(),
    ]
    assert found == pytest.approx(modes, abs=0.005)


@pytest.mark.parametrize(
    ("row", "values"),
    [(0, (8.2e-6, 0.0017988, 0.1088285)), (1, (0.0010523, 0.0307726, 0.0872186))],
)
def test_distances_of_the_three_targets_from_a_uniform_policy(
    row: int, values: tuple[float, ...]
) -> None:
    group = torch.tensor([MODES[row][0]], dtype=torch.float64)
    settings = [
        {"alpha": 1.0},
        {"alpha": 1 / 15},
        {"alpha": 1 / 15, "target": "advantages"},
    ]
    found = [dmpo_term(EQUAL, group, groups=1, **s).item() for s in settings]
    assert found == pytest.approx(values, abs=6e-8)


def test_a_constant_added_to_all_scores_changes_nothing() -> None:
    for form in ("mse", "forward-kl", "js"):
        first = dmpo_term(PHI, REWARDS, groups=1, form=form)
        torch.testing.assert_close(first, dmpo_term(PHI + 3.0, REWARDS, groups=1, form=form))


def test_a_reply_that_repeats_its_tokens_keeps_its_score() -> None:
    log_BT = torch.tensor([[-1.0, -2.0, -0.5]])
    once = row_mean(log_BT, torch.ones(1, 3, dtype=torch.bool))
    twice = row_mean(log_BT.repeat(1, 2), torch.ones(1, 6, dtype=torch.bool))
    torch.testing.assert_close(once, twice)


def test_flat_groups_equalise_the_scores_or_are_dropped() -> None:
    flat = torch.full((1, 8), 0.35, dtype=torch.float64)
    kept = group_weights(partial(dmpo_term, rewards_PG=flat, groups=1, flat="keep"), PHI)
    assert kept.value > 0
    assert kept.weights[0].argmax() == PHI[0].argmax()
    assert kept.weights[0].argmin() == PHI[0].argmin()
    dropped = group_weights(partial(dmpo_term, rewards_PG=flat, groups=1, flat="drop"), PHI)
    assert dropped.value == 0
    assert (dropped.weights == 0).all()


def test_a_dropped_group_stays_in_the_denominator() -> None:
    rewards = torch.cat([REWARDS, torch.full((1, 8), 0.35, dtype=torch.float64)])
    both = dmpo_term(torch.cat([PHI, PHI]), rewards, groups=2, flat="drop")
    torch.testing.assert_close(both, dmpo_term(PHI, REWARDS, groups=1) / 2)


def test_unscorable_and_empty_replies_leave_target_and_policy() -> None:
    rewards = torch.cat([REWARDS, torch.tensor([[math.nan, 5.0]], dtype=torch.float64)], dim=1)
    phi = torch.cat([PHI, torch.tensor([[9.0, 9.0]], dtype=torch.float64)], dim=1)
    valid = torch.tensor([[True] * 9 + [False]])
    for form in ("mse", "forward-kl", "js"):
        found = group_weights(
            partial(dmpo_term, rewards_PG=rewards, groups=1, form=form, valid_PG=valid), phi
        )
        small = group_weights(partial(dmpo_term, rewards_PG=REWARDS, groups=1, form=form), PHI)
        torch.testing.assert_close(found.value, small.value)
        torch.testing.assert_close(found.weights[:, :8], small.weights)
        assert (found.weights[:, 8:] == 0).all()
    assert dmpo_target(rewards, valid_PG=valid)[0, 8:].tolist() == [0.0, 0.0]


def test_a_group_without_any_scorable_reply_is_silent() -> None:
    nothing = torch.full((1, 8), math.nan, dtype=torch.float64)
    for form in ("mse", "forward-kl", "js"):
        found = group_weights(partial(dmpo_term, rewards_PG=nothing, groups=1, form=form), PHI)
        assert found.value == 0
        assert (found.weights == 0).all()


def test_the_bounds_of_the_paper_hold_for_groups_of_eight() -> None:
    one_hot = torch.tensor([[1000.0] + [0.0] * 7], dtype=torch.float64)
    found = group_weights(partial(dmpo_term, rewards_PG=one_hot, groups=1), EQUAL)
    assert found.value.item() == pytest.approx(7 / 64, abs=1e-9)
    assert found.weights.abs().max().item() == pytest.approx(0.02734, abs=1e-5)


def rows_of_group() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    log_BT = PHI.reshape(8, 1).expand(8, 4).clone()
    old_BT = log_BT + 0.01
    advantages_B = group_relative_advantages(REWARDS)[0]
    return log_BT, old_BT, advantages_B, torch.ones(8, 4, dtype=torch.bool)


def test_weight_zero_is_grpo_bit_for_bit() -> None:
    arguments = rows_of_group()
    counts = Counts.of(arguments[-1], groups=1)
    index = torch.arange(8).reshape(1, 8)
    for width in (torch.float32, torch.float64):
        log_BT = arguments[0].to(width).requires_grad_(True)
        rest = (arguments[1].to(width), arguments[2].to(width), arguments[3])
        zero = dmpo_loss(log_BT, *rest, REWARDS, index, counts=counts, weight=0.0)
        plain = grpo_loss(log_BT, *rest, counts=counts)
        assert torch.equal(zero, plain)
        assert torch.equal(
            torch.autograd.grad(zero, log_BT)[0], torch.autograd.grad(plain, log_BT)[0]
        )


@pytest.mark.parametrize(("settings", "times"), [("summary", 118), ("replication", 11.6)])
def test_the_term_is_much_smaller_than_grpos_and_both_norms_can_be_logged(
    settings: str, times: float
) -> None:
    _, _, advantages_B, mask_BT = rows_of_group()
    log_BT = torch.full((8, 4), -1.0, dtype=torch.float64, requires_grad=True)
    chosen = DMPO_SETTINGS[settings]
    norms = gradient_norms(
        {
            "grpo": grpo_loss(
                log_BT, log_BT.detach(), advantages_B, mask_BT, counts=Counts(32, 8, 1)
            ),
            "dmpo": chosen.weight
            * dmpo_term(
                row_mean(log_BT, mask_BT).reshape(1, 8),
                REWARDS,
                groups=1,
                alpha=chosen.alpha,
                target=chosen.target,
                flat=chosen.flat,
            ),
        },
        [log_BT],
    )
    assert norms["grpo"] / norms["dmpo"] == pytest.approx(times, rel=5e-3)


def test_a_split_group_and_wrong_settings_are_refused() -> None:
    log_BT, old_BT, advantages_B, mask_BT = rows_of_group()
    counts = Counts.of(mask_BT, groups=1)
    half = torch.arange(4).reshape(1, 4)
    with pytest.raises(ValueError, match="a group must not be split"):
        dmpo_loss(log_BT, old_BT, advantages_B, mask_BT, REWARDS[:, :4], half, counts=counts)
    for settings, message in (
        ({"alpha": 0.0}, r"alpha must be positive, got 0\.0"),
        ({"form": "kl"}, "unknown form of DMPO 'kl'"),
        ({"target": "reward"}, "did you mean 'rewards'"),
        ({"flat": "skip"}, "unknown rule for flat groups 'skip'"),
        ({"groups": 0}, "groups must be at least 1, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            dmpo_term(PHI, REWARDS, **{"groups": 1, **settings})
    with pytest.raises(ValueError, match="weight must not be negative, got -1"):
        dmpo_loss(
            log_BT,
            old_BT,
            advantages_B,
            mask_BT,
            REWARDS,
            torch.arange(8).reshape(1, 8),
            counts=counts,
            weight=-1.0,
        )
