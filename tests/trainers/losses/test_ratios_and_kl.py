import math

import pytest
import torch
from torch import Tensor

from trainers.losses import Counts, kl_estimate, kl_loss
from trainers.losses.ratios import (
    sequence_product_log_ratio,
    sequence_ratio,
    sequence_token_ratio,
    token_ratio,
)

LOGITS = (0.0, 0.5, -0.3, 0.8, -1.0)
REVERSE = (-0.056282, 0.044991, -0.078841, 0.172325, -0.082193)
FORWARD = (-0.032859, 0.075570, -0.076179, 0.171980, -0.138512)
GRADIENTS = {"k2": REVERSE, "ratio-k1": REVERSE, "ratio-k3": REVERSE, "k3": FORWARD}


def rows_of(values: list[list[float]]) -> tuple[Tensor, Tensor]:
    width = max(map(len, values))
    padded = [row + [math.nan] * (width - len(row)) for row in values]
    tensor = torch.tensor(padded, dtype=torch.float64)
    return tensor, ~tensor.isnan()


def test_sequence_ratios_have_the_toy_values() -> None:
    log_BT, mask_BT = rows_of([[0.3, -0.1, 0.1], [-0.2, 0.1]])
    zero_BT = torch.zeros_like(log_BT)
    s_B = sequence_ratio(log_BT, zero_BT, mask_BT)
    assert s_B.tolist() == pytest.approx([1.105171, 0.951229], abs=1e-6)
    product_B = sequence_product_log_ratio(log_BT, zero_BT, mask_BT).exp()
    assert product_B.tolist() == pytest.approx([1.349859, 0.904837], abs=1e-6)
    spread_BT = sequence_token_ratio(log_BT, zero_BT, mask_BT)
    torch.testing.assert_close(spread_BT, s_B[:, None].expand_as(spread_BT))


def test_ratios_are_exactly_one_on_policy_and_at_masked_tokens() -> None:
    log_BT, mask_BT = rows_of([[-0.3, -2.1, -0.1], [-0.2, -1.1]])
    assert (token_ratio(log_BT, log_BT, mask_BT) == 1).all()
    assert (sequence_ratio(log_BT, log_BT, mask_BT) == 1).all()
    assert token_ratio(log_BT, log_BT - 1.0, mask_BT)[1, 2] == 1


def test_extreme_ratios_stay_finite() -> None:
    far_BT, mask_BT = rows_of([[500.0, -500.0]])
    ratios = token_ratio(far_BT, torch.zeros_like(far_BT), mask_BT)
    assert ratios[0].tolist() == pytest.approx([math.exp(20), math.exp(-20)])


def every_token(logits_V: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Log-probabilities of each of the V tokens as V rows of one token, and their reference."""
    log_V = logits_V.log_softmax(-1)
    return log_V[:, None], torch.full((5, 1), -math.log(5), dtype=torch.float64), log_V.exp()


def expected_gradient(term: str) -> list[float]:
    """E over the policy's own tokens of the gradient of one token's term, by enumeration."""
    logits_V = torch.tensor(LOGITS, dtype=torch.float64, requires_grad=True)
    log_V1, ref_V1, probability_V = every_token(logits_V)
    mask = torch.ones(1, 1, dtype=torch.bool)
    total = sum(
        probability_V[v].detach()
        * kl_loss(
            log_V1[v : v + 1],
            log_V1[v : v + 1].detach(),
            ref_V1[v : v + 1],
            mask,
            counts=Counts(1, 1, 1),
            term=term,
        )
        for v in range(5)
    )
    (gradient_V,) = torch.autograd.grad(total, logits_V)
    return gradient_V.tolist()


@pytest.mark.parametrize("term", GRADIENTS)
def test_expected_gradients_of_the_kl_terms_by_enumeration(term: str) -> None:
    assert expected_gradient(term) == pytest.approx(GRADIENTS[term], abs=1e-6)


@pytest.mark.parametrize("term", GRADIENTS)
def test_expected_gradients_of_the_kl_terms_by_sampling(term: str) -> None:
    logits_V = torch.tensor(LOGITS, dtype=torch.float64, requires_grad=True)
    log_V = logits_V.log_softmax(-1)
    count = 400_000
    drawn = torch.multinomial(
        log_V.exp().detach(), count, replacement=True, generator=torch.Generator().manual_seed(1)
    )
    log_B1 = log_V[drawn][:, None]
    loss = kl_loss(
        log_B1,
        log_B1.detach(),
        torch.full_like(log_B1, -math.log(5)),
        torch.ones_like(log_B1, dtype=torch.bool),
        counts=Counts(count, count, 1),
        term=term,
    )
    (gradient_V,) = torch.autograd.grad(loss, logits_V)
    assert gradient_V.tolist() == pytest.approx(GRADIENTS[term], abs=3e-3)


def test_the_two_divergences_and_the_unbiased_values() -> None:
    log_V1, ref_V1, probability_V = every_token(torch.tensor(LOGITS, dtype=torch.float64))
    mask = torch.ones(5, 1, dtype=torch.bool)
    for estimator in ("k1", "k3"):
        values = kl_estimate(log_V1, ref_V1, mask, estimator=estimator)[:, 0]
        assert float((probability_V * values).sum()) == pytest.approx(0.157257, abs=1e-6)
    forward = kl_estimate(ref_V1, log_V1, mask, estimator="k1")[:, 0].mean()
    assert float(forward) == pytest.approx(0.179477, abs=1e-6)


def test_k3_is_never_negative_and_zero_for_equal_policies() -> None:
    a = -torch.rand(50, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    mask = torch.ones(50, 4, dtype=torch.bool)
    assert (kl_estimate(a, a.flip(0), mask, estimator="k3") >= 0).all()
    for estimator in ("k1", "k2", "k3"):
        assert (kl_estimate(a, a, mask, estimator=estimator) == 0).all()


def test_k1_in_the_loss_is_refused_because_its_gradient_vanishes() -> None:
    one = torch.zeros(1, 1)
    with pytest.raises(ValueError, match="must not be 'k1': its expected gradient is 0"):
        kl_loss(one, one, one, one == 0, counts=Counts(1, 1, 1), term="k1")
    logits_V = torch.tensor(LOGITS, dtype=torch.float64, requires_grad=True)
    log_V1, ref_V1, probability_V = every_token(logits_V)
    values = kl_estimate(log_V1, ref_V1, torch.ones(5, 1, dtype=torch.bool), estimator="k1")[:, 0]
    (gradient_V,) = torch.autograd.grad((probability_V.detach() * values).sum(), logits_V)
    assert gradient_V.abs().max() < 1e-15


def test_an_unknown_kl_term_names_the_known_ones() -> None:
    one = torch.zeros(1, 1)
    with pytest.raises(ValueError, match="known: k2, k3, ratio-k1, ratio-k3"):
        kl_loss(one, one, one, one == 0, counts=Counts(1, 1, 1), term="k3+")
