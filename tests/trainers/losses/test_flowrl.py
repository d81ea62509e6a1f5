import math

import pytest
import torch
from torch import Tensor

from trainers.losses import Counts, LogZHead, flowrl_loss, group_relative_advantages

ONE = torch.ones(1, 1, dtype=torch.bool)


def single(value: float) -> Tensor:
    return torch.tensor([value], dtype=torch.float64)


def test_the_loss_vanishes_at_the_target_distribution() -> None:
    lengths = [4, 7]
    mask_BT = torch.arange(7)[None, :] < torch.tensor(lengths)[:, None]
    ref_BT = -torch.rand(2, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rewards_B = torch.tensor([0.7, -0.7], dtype=torch.float64)
    log_z_B = torch.tensor([1.5, 1.5], dtype=torch.float64)
    # log pi = log pi_ref + |y| (beta r - log Z), spread evenly over the tokens
    target_BT = ref_BT + (15.0 * rewards_B - log_z_B)[:, None]
    arguments = (ref_BT, log_z_B, rewards_B, mask_BT)
    counts = Counts.of(mask_BT, groups=1)
    assert flowrl_loss(target_BT, target_BT, *arguments, counts=counts).item() < 1e-25
    away_BT = target_BT + 0.1
    assert flowrl_loss(away_BT, away_BT, *arguments, counts=counts).item() == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("weight", "ratio", "expected"),
    [
        ("paper", 10.0, 1.2),
        ("paper", 0.1, 0.8),
        ("paper", 1.1, 1.1),
        ("recipe", 10.0, 10.0),
        ("recipe", 1e9, math.exp(10)),
        ("mean", 10.0, 1.2),
    ],
)
def test_the_clip_of_the_weight_really_binds(weight: str, ratio: float, expected: float) -> None:
    new_BT = single(ratio).log()[None, :]
    loss = flowrl_loss(
        new_BT,
        torch.zeros_like(new_BT),
        new_BT,
        single(2.0),
        single(0.0),
        ONE,
        counts=Counts(1, 1, 1),
        weight=weight,
    )
    assert loss.item() == pytest.approx(4.0 * expected)


@pytest.mark.parametrize(
    ("beta", "log_z", "optimum"),
    [
        (1.0, 0.335780, (0.424837, 0.075163, 0.075163, 0.424837)),
        (15.0, 12.297234, (0.5, 2.6e-12, 2.6e-12, 0.5)),
    ],
)
def test_log_z_and_policy_converge_on_the_enumerable_toy(
    beta: float, log_z: float, optimum: tuple[float, ...]
) -> None:
    """Four one-token answers, uniform reference, rewards 1, 0, 0, 1."""
    rewards_B = group_relative_advantages(torch.tensor([[1.0, 0.0, 0.0, 1.0]]).double(), eps=0.0)[0]
    assert rewards_B[0].item() == pytest.approx(0.866025, abs=1e-6)
    logits = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    z = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [logits, z],
        max_iter=500,
        tolerance_grad=1e-14,
        tolerance_change=1e-18,
        line_search_fn="strong_wolfe",
    )
    mask_BT = torch.ones(4, 1, dtype=torch.bool)

    def closure() -> Tensor:
        optimiser.zero_grad()
        log_BT = logits.log_softmax(-1)[:, None]
        loss = flowrl_loss(
            log_BT,
            log_BT.detach(),
            torch.full_like(log_BT, -math.log(4)),
            z.expand(4),
            rewards_B,
            mask_BT,
            counts=Counts(4, 4, 1),
            beta=beta,
        )
        loss.backward()
        return loss

    optimiser.step(closure)
    assert z.item() == pytest.approx(log_z, abs=1e-5)
    found = logits.detach().softmax(-1).tolist()
    assert found == pytest.approx(optimum, rel=0.02, abs=1e-9)


def test_flat_groups_are_anchored_to_the_reference() -> None:
    new_BT = torch.full((1, 1), -1.0, dtype=torch.float64, requires_grad=True)
    loss = flowrl_loss(
        new_BT,
        new_BT.detach(),
        torch.full((1, 1), -2.0, dtype=torch.float64),
        single(0.0),
        single(0.0),
        ONE,
        counts=Counts(1, 1, 1),
    )
    assert torch.autograd.grad(loss, new_BT)[0].item() == pytest.approx(2.0)


def test_the_head_ignores_padding_and_all_its_parameters_learn() -> None:
    torch.manual_seed(0)
    head = LogZHead(8).eval()
    hidden = torch.randn(2, 5, 8)
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    junk = hidden.masked_fill(~mask[..., None], math.nan)
    assert torch.equal(head(junk, mask), head(hidden, mask))
    short = head(hidden[1:, :3], mask[1:, :3])
    torch.testing.assert_close(short, head(hidden, mask)[1:])
    head(hidden, mask).square().sum().backward()
    gradients = {name: p.grad for name, p in head.named_parameters()}
    assert all(g is not None and g.isfinite().all() for g in gradients.values())
    assert len(gradients) == 10


def test_the_head_survives_a_checkpoint_and_refuses_an_empty_prompt() -> None:
    first, second = LogZHead(4).eval(), LogZHead(4).eval()
    hidden, mask = torch.ones(1, 2, 4), torch.ones(1, 2, dtype=torch.bool)
    second.load_state_dict(first.state_dict())
    assert torch.equal(first(hidden, mask), second(hidden, mask))
    with pytest.raises(ValueError, match="at least 1 token"):
        first(hidden, ~mask)
    with pytest.raises(ValueError, match="mask must be bool of shape"):
        first(hidden, mask[:, :1])
