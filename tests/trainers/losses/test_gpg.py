import math

import pytest
import torch
from torch import Tensor

from trainers.losses import gpg_advantages, gpg_alpha

THREE = [1.0] * 3 + [0.0] * 5


@pytest.fixture
def toy_PG() -> Tensor:
    """Eight groups of eight: one all right, one all wrong, six with three right."""
    return torch.tensor([[1.0] * 8, [0.0] * 8, *[THREE] * 6], dtype=torch.float64)


def test_alpha_is_the_batch_over_its_valid_part(toy_PG: Tensor) -> None:
    found = gpg_alpha(toy_PG)
    assert found.alpha == pytest.approx(1.333333, abs=1e-6)
    assert found.valid_share == 0.75


def test_verls_alpha_is_another_number_under_another_name(toy_PG: Tensor) -> None:
    assert gpg_alpha(toy_PG, rule="verl").alpha == pytest.approx(2.461538, abs=1e-6)


def test_alpha_does_not_depend_on_the_order_of_rows_or_groups(toy_PG: Tensor) -> None:
    generator = torch.Generator().manual_seed(0)
    shuffled = toy_PG[torch.randperm(8, generator=generator)]
    shuffled = shuffled[:, torch.randperm(8, generator=generator)]
    assert gpg_alpha(shuffled) == gpg_alpha(toy_PG)


def test_a_step_without_any_valid_group_is_skipped(toy_PG: Tensor) -> None:
    found = gpg_alpha(toy_PG[:2])
    assert found.alpha is None
    assert found.valid_share == 0.0


def test_unscorable_replies_count_nowhere(toy_PG: Tensor) -> None:
    toy_PG[:, 0] = math.nan
    found = gpg_alpha(toy_PG)
    assert found.alpha == pytest.approx(56 / 42)
    assert gpg_alpha(torch.full((2, 3), math.nan)).alpha is None


def test_advantages_are_centred_and_scaled_and_flat_groups_get_zero(toy_PG: Tensor) -> None:
    advantages = gpg_advantages(toy_PG, alpha=4 / 3)
    assert (advantages[:2] == 0).all()
    assert advantages[2].tolist() == pytest.approx([0.625 * 4 / 3] * 3 + [-0.375 * 4 / 3] * 5)
    halved = gpg_advantages(toy_PG, alpha=4 / 3, f_norm=2.0)
    torch.testing.assert_close(halved, advantages / 2)
    by_std = gpg_advantages(toy_PG, alpha=1.0, f_norm="std")
    assert by_std[2, 0].item() == pytest.approx(1.207615, abs=1e-6)
    assert (by_std[:2] == 0).all()


def test_a_norm_that_is_not_positive_is_refused(toy_PG: Tensor) -> None:
    with pytest.raises(ValueError, match=r"f_norm must be positive or 'std', got 0\.0"):
        gpg_advantages(toy_PG, alpha=1.0, f_norm=0.0)
