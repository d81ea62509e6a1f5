import math

import pytest
import torch

from trainers.losses.diagnostics import (
    gradient_norms,
    ratio_report,
    reward_report,
    starved_share,
    step_zero_faults,
    token_entropy,
)

NAN = math.nan


def test_the_ratio_report_counts_what_the_clip_stops() -> None:
    ratios = torch.tensor([[1.3, 1.1, 0.7, NAN], [1.3, 0.7, 0.7, 1.0]], dtype=torch.float64)
    mask_BT = ~ratios.isnan()
    advantages_B = torch.tensor([1.0, -1.0], dtype=torch.float64)
    log_BT = ratios.log()
    report = ratio_report(
        log_BT, torch.zeros_like(log_BT), advantages_B, mask_BT, clip_low=0.2, clip_high=0.28
    )
    assert report.tokens == 7
    assert report.clipped_high == pytest.approx(1 / 7)
    assert report.clipped_low == pytest.approx(2 / 7)
    assert report.mean == pytest.approx(6.8 / 7)
    assert (report.largest, report.smallest) == pytest.approx((1.3, 0.7))
    kept = ratios[mask_BT]
    assert report.kl_old == pytest.approx((kept - 1 - kept.log()).mean().item())


def test_no_tokens_are_reported_as_on_policy() -> None:
    empty = torch.zeros(1, 2)
    report = ratio_report(empty, empty, empty[:, 0], empty > 0, clip_low=0.2, clip_high=0.2)
    assert (report.tokens, report.mean, report.clipped_high) == (0, 1.0, 0.0)


def test_the_reward_report_tells_flat_groups_at_the_top_from_those_at_the_bottom() -> None:
    rewards = torch.tensor(
        [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, NAN], [0.5, NAN, NAN], [NAN, NAN, NAN]]
    )
    report = reward_report(rewards)
    assert report.mean == pytest.approx(4.5 / 9)
    assert report.unscorable_share == pytest.approx(6 / 15)
    assert report.flat_share == pytest.approx(4 / 5)
    assert report.all_top_share == pytest.approx(1 / 5)
    assert report.all_bottom_share == pytest.approx(1 / 5)
    nothing = reward_report(torch.full((1, 2), NAN))
    assert (nothing.mean, nothing.unscorable_share) == (None, 1.0)


def test_starved_clusters_are_counted_per_prompt_and_cluster() -> None:
    accuracy = torch.tensor([[1.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0]])
    clusters = torch.tensor([[0, 0, 1, 1], [0, 0, 0, 0]])
    assert starved_share(accuracy, clusters) == pytest.approx(1 / 3)


def test_entropy_is_of_the_tempered_distribution_over_kept_tokens() -> None:
    logits = torch.zeros(1, 3, 4)
    logits[0, 1, 0] = 2.0
    logits[0, 2] = NAN
    mask = torch.tensor([[True, False, False]])
    assert token_entropy(logits, mask) == pytest.approx(math.log(4))
    both = torch.tensor([[True, True, False]])
    p = (logits[0, 1] / 0.5).softmax(-1)
    expected = (math.log(4) - (p * p.log()).sum().item()) / 2
    assert token_entropy(logits, both, temperature=0.5) == pytest.approx(expected)
    assert token_entropy(logits, mask & False) == 0.0
    with pytest.raises(ValueError, match=r"temperature must be positive, got 0\.0"):
        token_entropy(logits, mask, temperature=0.0)


def test_gradient_norms_are_those_of_each_term_alone() -> None:
    x = torch.tensor([3.0, 4.0], requires_grad=True)
    unused = torch.zeros(2, requires_grad=True)
    terms = {"half": 0.5 * x.square().sum(), "sum": x.sum(), "constant": torch.zeros(())}
    norms = gradient_norms(terms, [x, unused])
    assert norms == pytest.approx({"half": 5.0, "sum": math.sqrt(2), "constant": 0.0})
    (terms["half"] + terms["sum"]).backward()
    assert x.grad is not None


def test_the_first_update_is_checked_and_each_fault_is_named() -> None:
    log_BT = torch.tensor([[-1.0, -2.0]])
    mask_BT = torch.ones(1, 2, dtype=torch.bool)
    same = step_zero_faults(
        log_BT, log_BT, mask_BT, ref_logprobs_BT=log_BT, sampler_logprobs_BT=log_BT + 0.01
    )
    assert same == ()
    faults = step_zero_faults(
        log_BT,
        log_BT - 0.1,
        mask_BT,
        ref_logprobs_BT=log_BT + 0.2,
        sampler_logprobs_BT=log_BT - math.log(2.0),
    )
    assert faults[0] == "the first update's ratio must be 1, a log ratio is 0.1"
    assert faults[1] == "the reference must equal the policy, a log ratio is 0.2"
    assert faults[2] == "the mean ratio to the sampler must be within 0.05 of 1, got 2"
