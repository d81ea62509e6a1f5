import math

import pytest
import torch
from torch import Tensor

from trainers.losses import (
    cluster_advantages,
    flat_groups,
    group_relative_advantages,
    mean_centred_advantages,
    pass_at_k_advantages,
    rows_by_group,
    to_rows,
)

NAN = math.nan
THREE_OF_EIGHT = (1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def group(*rewards: float) -> Tensor:
    return torch.tensor([rewards], dtype=torch.float64)


@pytest.mark.parametrize(
    ("settings", "right", "wrong"),
    [
        ({"eps": 0.0}, 1.207615, -0.724569),
        ({"eps": 1e-6}, 1.207612, -0.724567),
        ({"eps": 1e-4}, 1.207381, -0.724429),
        ({"eps": 0.0, "ddof": 0}, 1.290994, -0.774597),
    ],
)
def test_three_right_of_eight_gives_the_reference_values(
    settings: dict[str, float], right: float, wrong: float
) -> None:
    advantages = group_relative_advantages(group(*THREE_OF_EIGHT), **settings)[0].tolist()
    assert advantages == pytest.approx([right] * 3 + [wrong] * 5, abs=1e-6)


def test_without_a_deviation_the_advantage_is_the_centred_reward() -> None:
    advantages = mean_centred_advantages(group(*THREE_OF_EIGHT))[0].tolist()
    assert advantages == [0.625] * 3 + [-0.375] * 5


def test_the_mean_is_subtracted_before_the_division() -> None:
    advantages = group_relative_advantages(group(0.0, 1.0), eps=0.0)
    assert advantages.sum() == 0
    assert advantages[0].tolist() == pytest.approx([-math.sqrt(0.5), math.sqrt(0.5)])


def test_each_group_is_divided_by_its_own_deviation() -> None:
    rewards = torch.tensor([[0.0, 1.0], [0.0, 100.0]], dtype=torch.float64)
    advantages = group_relative_advantages(rewards, eps=0.0)
    torch.testing.assert_close(advantages[0], advantages[1])


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        ((1.0, NAN, 0.0, NAN), (math.sqrt(0.5), 0.0, -math.sqrt(0.5), 0.0)),
        ((1.0, NAN, NAN, NAN), (0.0, 0.0, 0.0, 0.0)),
        ((NAN, NAN, NAN, NAN), (0.0, 0.0, 0.0, 0.0)),
    ],
)
def test_unscorable_replies_get_zero_and_leave_the_others_alone(
    rewards: tuple[float, ...], expected: tuple[float, ...]
) -> None:
    advantages = group_relative_advantages(group(*rewards), eps=0.0)[0].tolist()
    assert advantages == pytest.approx(expected)


def test_rejected_replies_do_not_shift_the_baseline() -> None:
    rewards = group(1.0, 0.0, -50.0, 0.5)
    valid = torch.tensor([[True, True, False, True]])
    advantages = group_relative_advantages(rewards, valid_PG=valid)
    expected = group_relative_advantages(group(1.0, 0.0, 0.5))
    torch.testing.assert_close(advantages[:, [0, 1, 3]], expected)
    assert advantages[0, 2] == 0


@pytest.mark.parametrize("reward", [0.35, 0.4, 0.1, 1 / 3])
@pytest.mark.parametrize("size", [3, 7, 15])
def test_equal_rewards_in_float32_give_exactly_zero(reward: float, size: int) -> None:
    rewards = torch.full((1, size), reward, dtype=torch.float32)
    rewards[0, 0] = rewards[0, 0].nextafter(torch.tensor(2.0))
    for function in (group_relative_advantages, mean_centred_advantages, pass_at_k_advantages):
        assert (function(rewards) == 0).all()
    assert flat_groups(rewards).tolist() == [True]


def test_a_small_but_real_difference_is_not_flat() -> None:
    rewards = group(0.5, 0.5, 0.50001)
    assert group_relative_advantages(rewards).max() > 0.9
    assert (group_relative_advantages(rewards, equal_within=1e-4) == 0).all()


def test_a_floor_on_the_deviation_bounds_the_advantage() -> None:
    rewards = group(0.5, 0.5, 0.5001)
    assert group_relative_advantages(rewards).max() > 1
    floored = group_relative_advantages(rewards, std_floor=1e-2)
    torch.testing.assert_close(floored, (rewards - rewards.mean()) / (1e-2 + 1e-6))


def test_a_group_of_one_is_refused() -> None:
    for function in (group_relative_advantages, mean_centred_advantages, pass_at_k_advantages):
        with pytest.raises(ValueError, match="at least 2 replies, got G=1"):
            function(group(1.0))


def test_infinite_rewards_are_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        group_relative_advantages(group(1.0, math.inf))


def test_interleaved_rows_find_their_group_and_the_way_back() -> None:
    rewards_B = torch.tensor([1.0, 10.0, 0.0, 30.0], dtype=torch.float64)
    index_PG = rows_by_group(["p", "q", "p", "q"], group_size=2)
    advantages_B = to_rows(group_relative_advantages(rewards_B[index_PG]), index_PG)
    order = torch.tensor([3, 0, 2, 1])
    names = ["q", "p", "p", "q"]
    other_PG = rows_by_group(names, group_size=2)
    permuted_B = to_rows(group_relative_advantages(rewards_B[order][other_PG]), other_PG)
    torch.testing.assert_close(permuted_B, advantages_B[order])
    assert advantages_B.sign().tolist() == [1, -1, -1, 1]


def test_a_group_that_is_not_whole_is_refused() -> None:
    with pytest.raises(ValueError, match="group 'q' must be whole with 2 rows, got 1"):
        rows_by_group(["p", "q", "p"], group_size=2)


@pytest.mark.parametrize(
    ("rewards", "best"),
    [
        ((1.0, 0.5, 0.0, 0.0), (1.044464, 0.0, 0.0, 0.0)),
        ((0.0, 0.5, 0.0, 1.0), (0.0, 0.0, 0.0, 1.044464)),
        ((1.0, 1.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)),
        ((NAN, 0.5, 0.0, 1.0), (0.0, 0.0, 0.0, 1.0)),
    ],
)
def test_pass_at_k_rewards_the_lead_of_the_best_reply_only(
    rewards: tuple[float, ...], best: tuple[float, ...]
) -> None:
    advantages = pass_at_k_advantages(group(*rewards))[0].tolist()
    assert advantages == pytest.approx(best, abs=3e-6)
    assert sum(a != 0 for a in advantages) <= 1


@pytest.mark.parametrize("starved", ["skip", "global", "merge"])
def test_one_cluster_is_the_whole_group_bit_for_bit(starved: str) -> None:
    rewards = torch.rand(5, 7, generator=torch.Generator().manual_seed(0))
    rewards[2] = 0.35
    local = cluster_advantages(rewards, torch.zeros(5, 7, dtype=torch.long), starved=starved)
    assert torch.equal(local, group_relative_advantages(rewards))


def test_flat_clusters_are_skipped_merged_or_measured_against_the_whole_group() -> None:
    rewards = group(1.0, 1.0, 0.0, 0.0, 1.0, 0.0)
    clusters = torch.tensor([[0, 0, 1, 1, 2, 2]])
    skipped = cluster_advantages(rewards, clusters)[0]
    assert skipped[:4].tolist() == [0.0] * 4
    assert skipped[4:].tolist() == pytest.approx([math.sqrt(0.5), -math.sqrt(0.5)], abs=1e-5)
    merged = cluster_advantages(rewards, clusters, starved="merge")[0]
    torch.testing.assert_close(merged[:4], group_relative_advantages(rewards[:, :4])[0])
    torch.testing.assert_close(merged[4:], skipped[4:])
    overall = cluster_advantages(rewards, clusters, starved="global")[0]
    torch.testing.assert_close(overall[:4], group_relative_advantages(rewards)[0, :4])
    torch.testing.assert_close(overall[4:], skipped[4:])


def test_an_unknown_rule_for_starved_clusters_names_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean 'merge'"):
        cluster_advantages(group(1.0, 0.0), torch.zeros(1, 2, dtype=torch.long), starved="merg")
