import pytest
import torch
from torch import Tensor

from trainers.losses import Counts, aggregate, mask_from_lengths

LENGTHS = torch.tensor([2, 20])


@pytest.fixture
def losses_BT() -> Tensor:
    return torch.tensor([1.0, 2.0], dtype=torch.float64)[:, None].expand(2, 20)


@pytest.fixture
def mask_BT() -> Tensor:
    return mask_from_lengths(LENGTHS, width=20)


EXPECTED = [
    ("token-mean", 42 / 22, {}),
    ("sequence-mean", 1.5, {}),
    ("constant", 1.05, {"max_tokens": 20}),
    ("group-token-mean", 1.5, {}),
]


@pytest.mark.parametrize(("mode", "expected", "settings"), EXPECTED)
@pytest.mark.parametrize("chunks", [[[0, 1]], [[0], [1]], [[1], [], [0]]])
def test_the_toy_values_do_not_depend_on_micro_batches(
    losses_BT: Tensor,
    mask_BT: Tensor,
    mode: str,
    expected: float,
    settings: dict[str, int],
    chunks: list[list[int]],
) -> None:
    counts = Counts.of(mask_BT, groups=2)
    total = sum(
        float(
            aggregate(
                losses_BT[chunk],
                mask_BT[chunk],
                mode=mode,
                counts=counts,
                group_tokens_B=LENGTHS[chunk],
                **settings,
            )
        )
        for chunk in (torch.tensor(c, dtype=torch.long) for c in chunks)
    )
    assert total == pytest.approx(expected, rel=1e-12)


def test_a_sequence_mean_in_micro_batches_of_one_is_not_a_token_mean(
    losses_BT: Tensor, mask_BT: Tensor
) -> None:
    counts = Counts.of(mask_BT, groups=1)
    rows = [
        float(
            aggregate(losses_BT[i : i + 1], mask_BT[i : i + 1], mode="sequence-mean", counts=counts)
        )
        for i in range(2)
    ]
    assert rows == [0.5, 1.0]


def test_processes_with_few_tokens_are_not_favoured() -> None:
    mask_BT = mask_from_lengths(torch.tensor([10, 100]), width=100)
    losses_BT = torch.zeros(2, 100)
    losses_BT[0] = 1.0
    counts = Counts.of(mask_BT[:1], groups=1) + Counts.of(mask_BT[1:], groups=1)
    assert counts == Counts(tokens=110, sequences=2, groups=2)
    parts = [
        aggregate(losses_BT[i : i + 1], mask_BT[i : i + 1], mode="token-mean", counts=counts)
        for i in range(2)
    ]
    assert float(sum(parts)) == pytest.approx(10 / 110)


@pytest.mark.parametrize(("truncated", "expected"), [(3, 1.0), (4, 0.0)])
def test_masked_replies_leave_the_denominators(truncated: int, expected: float) -> None:
    cut_B = torch.arange(4) < truncated
    mask_BT = mask_from_lengths(torch.tensor([5, 5, 5, 2]), width=5, truncated_B=cut_B)
    losses_BT = torch.ones(4, 5, requires_grad=True)
    counts = Counts.of(mask_BT, groups=1)
    for mode in ("token-mean", "sequence-mean"):
        loss = aggregate(losses_BT, mask_BT, mode=mode, counts=counts)
        (gradient_BT,) = torch.autograd.grad(loss, losses_BT)
        assert loss.item() == pytest.approx(expected)
        assert gradient_BT.isfinite().all()
        assert (gradient_BT[~mask_BT] == 0).all()


def test_the_constant_and_the_group_tokens_are_required(losses_BT: Tensor, mask_BT: Tensor) -> None:
    counts = Counts.of(mask_BT, groups=1)
    with pytest.raises(ValueError, match="needs max_tokens >= 1, got None"):
        aggregate(losses_BT, mask_BT, mode="constant", counts=counts)
    with pytest.raises(ValueError, match="needs group_tokens, got None"):
        aggregate(losses_BT, mask_BT, mode="group-token-mean", counts=counts)
    with pytest.raises(TypeError, match="counts"):
        aggregate(losses_BT, mask_BT, mode="token-mean")


def test_an_unknown_mode_names_the_nearest(losses_BT: Tensor, mask_BT: Tensor) -> None:
    with pytest.raises(ValueError, match="did you mean 'token-mean'"):
        aggregate(losses_BT, mask_BT, mode="token_mean", counts=Counts(1, 1, 1))


def test_negative_counts_are_refused() -> None:
    with pytest.raises(ValueError, match=r"counts\.tokens must not be negative, got -1"):
        Counts(-1, 0, 0)


def test_masks_come_from_lengths_and_keep_the_end_of_sequence_token() -> None:
    pad = end = 0
    tokens_BT = torch.tensor([[7, 8, end, pad], [7, end, pad, pad]])
    mask_BT = mask_from_lengths(torch.tensor([3, 2]), width=4)
    assert tokens_BT[mask_BT].tolist() == [7, 8, end, 7, end]
    with pytest.raises(ValueError, match=r"lengths must lie in \[0, width=4\], got 2 to 5"):
        mask_from_lengths(torch.tensor([2, 5]), width=4)
