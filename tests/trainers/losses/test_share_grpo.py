import pytest
import torch
from torch import Tensor

from trainers.losses import (
    Counts,
    group_relative_advantages,
    hierarchical_advantages,
    share_grpo_loss,
    shared_rows,
)

REWARDS = torch.tensor([[[1, 1, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]]], dtype=torch.float64)


def test_the_toy_has_the_reference_values() -> None:
    found = hierarchical_advantages(REWARDS, eps=0.0)[0]
    off, own = found[0, :, 1], found[0, :, 0]
    assert off[0].item() == pytest.approx(1.658312, abs=1e-6)
    assert off[2].item() == pytest.approx(-0.552771, abs=1e-6)
    assert own[0].item() == pytest.approx(2.949306, abs=1e-6)
    first, second = own - off, found[1, :, 1] - found[1, :, 0]
    assert first[[0, 2]].tolist() == pytest.approx([1.290994, -0.645497], abs=1e-6)
    assert second[[0, 2]].tolist() == pytest.approx([2.041241, -0.408248], abs=1e-6)


def test_the_local_advantage_stands_on_the_diagonal_only() -> None:
    found = hierarchical_advantages(REWARDS.expand(3, 2, 6))
    overall = group_relative_advantages(REWARDS.reshape(1, 12)).reshape(2, 6)
    for j in range(2):
        torch.testing.assert_close(found[1, j, :, 1 - j], overall[j])
        local = group_relative_advantages(REWARDS[0, j][None])[0]
        torch.testing.assert_close(found[1, j, :, j] - overall[j], local)


def test_one_variant_gives_twice_grpo() -> None:
    rewards = REWARDS[:, :1]
    found = hierarchical_advantages(rewards)[0, 0, :, 0]
    torch.testing.assert_close(found, 2 * group_relative_advantages(rewards[0])[0])


def test_the_released_code_takes_the_deviation_over_repeated_rows() -> None:
    by_reply = hierarchical_advantages(REWARDS, eps=0.0)[0, :, :, 0][1]
    by_row = hierarchical_advantages(REWARDS, eps=0.0, spread="rows")[0, :, :, 0][1]
    assert (by_reply / by_row).tolist() == pytest.approx([0.978019] * 6, abs=1e-6)


def test_a_locally_flat_variant_of_a_mixed_question_still_learns() -> None:
    rewards = torch.tensor([[[1.0, 1.0], [0.0, 0.0]]])
    found = hierarchical_advantages(rewards)
    assert (found[0, 0] > 0).all()
    assert (found[0, 1] < 0).all()
    assert (hierarchical_advantages(torch.full((1, 2, 3), 0.35)) == 0).all()


def test_every_reply_stands_under_every_variant() -> None:
    rows = shared_rows(questions=3, variants=2, replies=6)
    assert len(rows) == 3 * 6 * 2**2
    assert len(set(rows)) == len(rows)
    flat = hierarchical_advantages(REWARDS.expand(3, 2, 6)).flatten()
    shaped = hierarchical_advantages(REWARDS.expand(3, 2, 6))
    for number, row in enumerate(rows):
        place = (row.question, row.sampled_under, row.reply, row.scored_under)
        assert flat[number] == shaped[place]
    for size in ("questions", "variants", "replies"):
        with pytest.raises(ValueError, match=f"{size} must be at least 1, got 0"):
            shared_rows(**{"questions": 1, "variants": 1, "replies": 1, size: 0})


def test_old_log_probabilities_are_those_under_the_scoring_variant() -> None:
    """A tabular policy over (variant, token): on-policy every ratio is 1, off the diagonal too."""
    logits_MV = torch.randn(2, 5, generator=torch.Generator().manual_seed(0)).double()
    tokens = {(0, 0): 3, (0, 1): 1, (1, 0): 4, (1, 1): 0}
    rows = shared_rows(questions=1, variants=2, replies=2)

    def score(logits: Tensor, *, under_sampler: bool) -> Tensor:
        log_MV = logits.log_softmax(-1)
        return torch.stack(
            [
                log_MV[
                    row.sampled_under if under_sampler else row.scored_under,
                    tokens[row.sampled_under, row.reply],
                ]
                for row in rows
            ]
        )[:, None]

    advantages_B = hierarchical_advantages(
        torch.tensor([[[1.0, 0.0], [0.3, 0.8]]], dtype=torch.float64)
    ).flatten()
    mask_BT = torch.ones(8, 1, dtype=torch.bool)
    leaf = logits_MV.clone().requires_grad_(True)
    new_BT = score(leaf, under_sampler=False)
    counts = Counts.of(mask_BT, groups=1)
    right = share_grpo_loss(new_BT, new_BT.detach(), advantages_B, mask_BT, counts=counts)
    assert right.item() == pytest.approx(-advantages_B.mean().item())
    (gradient,) = torch.autograd.grad(right, leaf, retain_graph=True)
    sampler = score(logits_MV, under_sampler=True)
    wrong = share_grpo_loss(new_BT, sampler, advantages_B, mask_BT, counts=counts)
    (other,) = torch.autograd.grad(wrong, leaf)
    assert gradient.abs().max() > 0
    assert not torch.allclose(gradient, other)


def test_shapes_and_names_are_checked() -> None:
    with pytest.raises(ValueError, match=r"rewards must have shape \(P, M, N\), got \(2, 6\)"):
        hierarchical_advantages(REWARDS[0])
    with pytest.raises(ValueError, match="did you mean 'responses'"):
        hierarchical_advantages(REWARDS, spread="response")
