import math

import pytest
import torch
from torch import Tensor

from trainers.losses import (
    Counts,
    balance_weights,
    cluster_advantages,
    cosine_lambda,
    exponential_lambda,
    group_relative_advantages,
    grpo_loss,
    mupo_code_rewards,
    mupo_loss,
    mupo_rewards,
)
from trainers.losses.diagnostics import starved_share

ACCURACY = torch.tensor([[1.0, 0.0, 1.0, 0.0, 1.0, 1.0]], dtype=torch.float64)
DIVERSITY = torch.tensor(
    [[1.086824, 0.913176, 0.742166, 1.0, 0.849294, 1.021789]], dtype=torch.float64
)
CLUSTERS = torch.tensor([[0, 0, 0, 0, 1, 1]])
FORMAT = torch.full_like(ACCURACY, 0.1)
TOY = {
    0.4: (
        (1.534730, 0.1, 1.396866, 0.1, 1.439718, 1.508716),
        (0.951021, -0.863827, 0.776632, -0.863827, -0.707092, 0.707092),
    ),
    0.1: (
        (1.208682, 0.1, 1.174217, 0.1, 1.184929, 1.202179),
        (0.893149, -0.865808, 0.838468, -0.865808, -0.707049, 0.707049),
    ),
}
ALL_RIGHT = torch.tensor([[0.10, 0.22, 0.31, 0.18, 0.27]], dtype=torch.float64)
ONE_CLUSTER = torch.zeros(1, 5, dtype=torch.long)


def toy_rewards(weight: float) -> Tensor:
    return mupo_rewards(ACCURACY, FORMAT, DIVERSITY, ACCURACY == 1, weight=weight)


@pytest.mark.parametrize("weight", TOY)
def test_rewards_and_local_advantages_of_the_toy(weight: float) -> None:
    rewards, advantages = TOY[weight]
    assert toy_rewards(weight)[0].tolist() == pytest.approx(rewards, abs=1e-6)
    found = cluster_advantages(toy_rewards(weight), CLUSTERS)[0].tolist()
    assert found == pytest.approx(advantages, abs=2e-6)


def test_the_balance_weights_of_both_placements() -> None:
    group = balance_weights(CLUSTERS) / 6
    assert group[0].tolist() == pytest.approx([0.1875] * 4 + [0.75] * 2)
    response = balance_weights(CLUSTERS, placement="response") / 6
    assert response[0].tolist() == pytest.approx([0.125] * 4 + [0.25] * 2)
    assert response[0, :4].sum() == pytest.approx(0.5)
    assert response[0, 4:].sum() == pytest.approx(0.5)


def test_the_papers_placement_over_weights_small_clusters_and_drifts_in_scale() -> None:
    clusters = torch.tensor([[0] * 9 + [1] * 3 + [2] * 3])
    totals = (balance_weights(clusters) / 15)[0]
    sums = [totals[clusters[0] == k].sum().item() for k in range(3)]
    assert sums == pytest.approx([0.555556, 1.666667, 1.666667], abs=1e-6)
    assert sum(sums) == pytest.approx(3.888889, abs=1e-6)
    balanced = balance_weights(clusters, beta=0.0)[0] / 15
    assert [balanced[clusters[0] == k].sum().item() for k in range(3)] == pytest.approx([1.0] * 3)
    responses = balance_weights(clusters, placement="response")[0] / 15
    assert [responses[clusters[0] == k].sum().item() for k in range(3)] == pytest.approx(
        [1 / 3] * 3
    )


@pytest.mark.parametrize("placement", ["group", "response"])
@pytest.mark.parametrize("aggregation", ["sequence-mean", "token-mean"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_cluster_is_grpo_bit_for_bit(
    placement: str, aggregation: str, dtype: torch.dtype
) -> None:
    generator = torch.Generator().manual_seed(0)
    log_BT = -torch.rand(10, 7, generator=generator, dtype=dtype)
    old_BT = log_BT + 0.3 * torch.randn(10, 7, generator=generator, dtype=dtype)
    mask_BT = torch.arange(7)[None, :] < torch.arange(1, 11)[:, None].clamp(max=7)
    accuracy = torch.rand(2, 5, generator=generator, dtype=dtype)
    zero = torch.zeros_like(accuracy)
    rewards = mupo_rewards(accuracy, zero, zero, accuracy > 0.5, weight=0.4)
    clusters = torch.zeros(2, 5, dtype=torch.long)
    counts = Counts.of(mask_BT, groups=2)
    results = []
    for mupo in (True, False):
        leaf = log_BT.clone().requires_grad_(True)
        if mupo:
            loss = mupo_loss(
                leaf,
                old_BT,
                cluster_advantages(rewards, clusters).flatten(),
                balance_weights(clusters, placement=placement).flatten(),
                mask_BT,
                counts=counts,
                aggregation=aggregation,
            )
        else:
            loss = grpo_loss(
                leaf,
                old_BT,
                group_relative_advantages(accuracy).flatten(),
                mask_BT,
                counts=counts,
                aggregation=aggregation,
            )
        results.append((loss.detach(), torch.autograd.grad(loss, leaf)[0]))
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])
    assert results[0][1].abs().max() > 0


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        (0.4, (-1.4246, 0.0491, 1.1544, -0.4421, 0.6632)),
        (0.1, (-1.4245, 0.0491, 1.1543, -0.4421, 0.6631)),
        (0.01, (-1.4229, 0.0491, 1.1530, -0.4416, 0.6624)),
    ],
)
def test_lambda_cancels_in_a_cluster_that_is_all_right(
    weight: float, expected: tuple[float, ...]
) -> None:
    one = torch.ones_like(ALL_RIGHT)
    rewards = mupo_rewards(one, 0.1 * one, ALL_RIGHT, one == 1, weight=weight)
    found = cluster_advantages(rewards, ONE_CLUSTER)[0].tolist()
    assert found == pytest.approx(expected, abs=6e-5)


def test_a_floor_on_the_deviation_restores_lambda() -> None:
    one = torch.ones_like(ALL_RIGHT)
    found = [
        cluster_advantages(
            mupo_rewards(one, 0.1 * one, ALL_RIGHT, one == 1, weight=weight),
            ONE_CLUSTER,
            std_floor=0.1,
        )
        for weight in (0.4, 0.1)
    ]
    torch.testing.assert_close(found[0], 4.0 * found[1])
    assert found[0].abs().max() < 1.0


def test_lambda_falls_along_a_cosine() -> None:
    found = [cosine_lambda(step, steps=400) for step in (0, 100, 200, 300, 400, 500)]
    assert found == pytest.approx([0.4, 0.356066, 0.25, 0.143934, 0.1, 0.1], abs=1e-6)
    with pytest.raises(ValueError, match="step=-1, steps=4"):
        cosine_lambda(-1, steps=4)


def test_the_released_schedule_is_exponential() -> None:
    assert exponential_lambda(0) == 0.4
    assert exponential_lambda(154) == pytest.approx(0.1, abs=1e-3)
    assert exponential_lambda(92, high=0.2, decay=7.5e-3) == pytest.approx(0.1, abs=1e-3)
    with pytest.raises(ValueError, match="step must not be negative, got -1"):
        exponential_lambda(-1)


def test_a_reply_behind_a_closed_gate_does_not_feel_its_diversity() -> None:
    wrong = ACCURACY == 0
    louder = DIVERSITY.masked_fill(wrong, math.nan)
    first = mupo_rewards(ACCURACY, FORMAT, louder, ACCURACY == 1, weight=0.4)
    assert torch.equal(first, toy_rewards(0.4))
    assert (first[wrong] == 0.1).all()


def test_a_missing_diversity_behind_an_open_gate_is_an_error_and_not_zero() -> None:
    with pytest.raises(ValueError, match="diversity must be finite where the gate is open"):
        mupo_rewards(ACCURACY, FORMAT, DIVERSITY * math.nan, ACCURACY == 1, weight=0.4)


def test_a_group_that_is_all_wrong_keeps_its_format_signal_only() -> None:
    zero = torch.zeros_like(DIVERSITY)
    rewards = mupo_rewards(zero, FORMAT, DIVERSITY, zero == 1, weight=0.4)
    assert (cluster_advantages(rewards, CLUSTERS) == 0).all()


def test_two_members_that_differ_at_all_get_the_largest_advantage() -> None:
    for gap in (1.0, 1e-3):
        rewards = torch.tensor([[1.0, 1.0 - gap]], dtype=torch.float64)
        found = cluster_advantages(rewards, torch.zeros(1, 2, dtype=torch.long))
        assert found[0].tolist() == pytest.approx([0.7071, -0.7071], abs=2e-3)


def test_the_released_reward_takes_lambda_from_accuracy() -> None:
    one = torch.ones(1, 2, dtype=torch.float64)
    accuracy = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    silent = mupo_code_rewards(accuracy, one, 0 * one, accuracy == 1, weight=0.4)
    assert silent[0].tolist() == pytest.approx([0.6, 0.1])
    loud = mupo_code_rewards(accuracy, one, 0.5 * one, accuracy == 1, weight=0.4)
    assert loud[0].tolist() == pytest.approx([1.0, 0.1])
    with pytest.raises(ValueError, match="must be at most 1"):
        mupo_code_rewards(accuracy, one, one, accuracy == 1, weight=0.95)


@pytest.mark.parametrize(
    ("size", "right", "share"),
    [(15, 0.3, 0.005), (5, 0.3, 0.17), (3, 0.3, 0.37), (15, 0.1, 0.21), (5, 0.1, 0.59)],
)
def test_local_baselines_starve_as_often_as_computed(size: int, right: float, share: float) -> None:
    draws = torch.rand(20_000, size, generator=torch.Generator().manual_seed(3))
    accuracy = (draws < right).float()
    found = starved_share(accuracy, torch.zeros_like(accuracy, dtype=torch.long))
    assert found == pytest.approx(right**size + (1 - right) ** size, abs=0.012)
    assert found == pytest.approx(share, abs=0.012)


def test_gates_clusters_and_factors_of_the_wrong_kind_are_refused() -> None:
    with pytest.raises(ValueError, match="gate must be bool of shape"):
        mupo_rewards(ACCURACY, FORMAT, ACCURACY, ACCURACY, weight=0.4)
    with pytest.raises(ValueError, match="clusters must be integers of shape"):
        balance_weights(ACCURACY)
    with pytest.raises(ValueError, match="did you mean 'response'"):
        balance_weights(CLUSTERS, placement="responses")
    one = torch.ones(1, 1)
    with pytest.raises(ValueError, match=r"balance factors must be positive, got 0\.0"):
        mupo_loss(one, one, one[0], 0 * one[0], one == 1, counts=Counts(1, 1, 1))
    with pytest.raises(ValueError, match="clusters must have shape"):
        cluster_advantages(ACCURACY, CLUSTERS[:, :2])
