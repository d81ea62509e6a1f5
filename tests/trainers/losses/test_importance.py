import math

import pytest
import torch
from torch import Tensor

from trainers.losses import sampler_correction


@pytest.fixture
def ratios_BT() -> Tensor:
    return torch.tensor([[1.0, 50.0, 0.5], [2.5, 1.0, math.nan]], dtype=torch.float64)


@pytest.fixture
def mask_BT(ratios_BT: Tensor) -> Tensor:
    return ~ratios_BT.isnan()


@pytest.mark.parametrize(
    ("level", "rule", "threshold", "weights", "kept"),
    [
        ("token", "truncate", 2.0, [1.0, 2.0, 0.5, 2.0, 1.0], 3 / 5),
        ("token", "mask", 2.0, [1.0, 0.0, 0.5, 0.0, 1.0], 3 / 5),
        ("token", "mask", 3.0, [1.0, 0.0, 0.5, 2.5, 1.0], 4 / 5),
        ("sequence", "truncate", 3.0, [3.0, 3.0, 3.0, 2.5, 2.5], 2 / 5),
        ("sequence", "mask", 3.0, [0.0, 0.0, 0.0, 2.5, 2.5], 2 / 5),
    ],
)
def test_weights_are_truncated_or_masked_and_the_kept_share_is_reported(
    ratios_BT: Tensor,
    mask_BT: Tensor,
    level: str,
    rule: str,
    threshold: float,
    weights: list[float],
    kept: float,
) -> None:
    trainer_BT = ratios_BT.log() - 3.0
    found = sampler_correction(
        trainer_BT,
        torch.full_like(trainer_BT, -3.0),
        mask_BT,
        level=level,
        rule=rule,
        threshold=threshold,
    )
    assert found.weights_BT[mask_BT].tolist() == pytest.approx(weights)
    assert found.weights_BT[1, 2] == 0
    assert found.kept_share == pytest.approx(kept)
    assert found.mean_ratio == pytest.approx(55 / 5)


@pytest.mark.parametrize(("rule", "weight"), [("truncate", 3.0), ("mask", 0.0)])
def test_a_sequence_product_explodes_with_length_and_a_token_does_not(
    rule: str, weight: float
) -> None:
    biased_BT = torch.full((1, 4000), 0.001)
    mask_BT = torch.ones(1, 4000, dtype=torch.bool)
    zero_BT = torch.zeros(1, 4000)
    settings = {"rule": rule, "threshold": 3.0}
    product = sampler_correction(biased_BT, zero_BT, mask_BT, level="sequence", **settings)
    assert product.kept_share == 0
    assert (product.weights_BT == weight).all()
    token = sampler_correction(biased_BT, zero_BT, mask_BT, level="token", **settings)
    assert token.kept_share == 1
    assert token.mean_ratio == pytest.approx(1.001, abs=1e-4)


def test_log_ratios_that_overflow_the_exponential_stay_finite() -> None:
    far_BT = torch.full((1, 2), 1e4)
    mask_BT = torch.ones(1, 2, dtype=torch.bool)
    found = sampler_correction(far_BT, torch.zeros(1, 2), mask_BT)
    assert found.weights_BT.tolist() == [[2.0, 2.0]]
    assert math.isfinite(found.mean_ratio)


def test_the_weights_carry_no_gradient_and_no_tokens_are_all_kept() -> None:
    log_BT = torch.zeros(1, 2, requires_grad=True)
    found = sampler_correction(log_BT, torch.zeros(1, 2), torch.zeros(1, 2, dtype=torch.bool))
    assert not found.weights_BT.requires_grad
    assert (found.kept_share, found.mean_ratio) == (1.0, 1.0)


def test_a_threshold_below_one_and_unknown_names_are_refused() -> None:
    one = torch.zeros(1, 1)
    with pytest.raises(ValueError, match=r"threshold must be at least 1, got 0\.5"):
        sampler_correction(one, one, one == 0, threshold=0.5)
    with pytest.raises(ValueError, match="did you mean 'token'"):
        sampler_correction(one, one, one == 0, level="tokens")
    with pytest.raises(ValueError, match="did you mean 'truncate'"):
        sampler_correction(one, one, one == 0, rule="truncat")
