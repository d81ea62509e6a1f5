"""Our estimators as verl calls them, against plain arithmetic over lists; verl is not needed."""

import json
import math
import statistics
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from npbench.errors import InputError
from trainers import losses
from trainers.engines.verl_advantages import ESTIMATORS
from trainers.engines.verl_losses import LOSSES
from trainers.engines.verl_settings import METHODS
from trainers.losses import Counts

METHOD_NAMES = sorted(METHODS)


def estimate(name: str, ragged: Any, rewards: Tensor | None = None, **settings: Any) -> Tensor:
    """By row; each row's tokens must have one value, and padding 0."""
    advantages, returns = ESTIMATORS[f"npbench_{name}"](
        token_level_rewards=ragged.token_rewards if rewards is None else rewards,
        response_mask=ragged.mask.long(),
        index=ragged.uids,
        config={"npbench": settings},
    )
    assert torch.equal(advantages, returns)
    assert not advantages[~ragged.mask].any()
    rows = advantages[:, 0]
    assert torch.equal(advantages, rows[:, None] * ragged.mask)
    return rows


def by_group(ragged: Any, function: Callable[[list[float]], list[float]]) -> list[float]:
    """A rule for one group's rewards applied to every group, at the rows."""
    found = [0.0] * len(ragged.uids)
    for rows in ragged.members().values():
        values = function([ragged.rewards[row] for row in rows])
        for row, value in zip(rows, values, strict=True):
            found[row] = value
    return found


def z_scores(rewards: list[float]) -> list[float]:
    if max(rewards) - min(rewards) < 1e-6:
        return [0.0] * len(rewards)
    deviation = statistics.stdev(rewards) + 1e-6
    return [(reward - statistics.mean(rewards)) / deviation for reward in rewards]


def centred(rewards: list[float]) -> list[float]:
    if max(rewards) - min(rewards) < 1e-6:
        return [0.0] * len(rewards)
    return [reward - statistics.mean(rewards) for reward in rewards]


def best_only(rewards: list[float]) -> list[float]:
    first, second = sorted(rewards, reverse=True)[:2]
    lead = first - second
    if lead < 1e-6:
        return [0.0] * len(rewards)
    best = rewards.index(first)
    value = lead / (statistics.stdev(rewards) + 1e-6)
    return [value if place == best else 0.0 for place in range(len(rewards))]


@pytest.mark.parametrize(
    ("method", "rule"),
    [
        ("grpo", z_scores),
        ("gspo", z_scores),
        ("dapo", z_scores),
        ("dr_grpo", centred),
        ("grpo_passk", best_only),
    ],
)
def test_groups_of_any_order_and_size_get_the_advantages_of_arithmetic(
    ragged: Any, method: str, rule: Callable[[list[float]], list[float]]
) -> None:
    expected = by_group(ragged, rule)
    assert sum(value != 0.0 for value in expected) >= 2
    assert estimate(method, ragged).tolist() == pytest.approx(expected, abs=1e-12)


def test_gpg_scales_by_all_replies_over_those_in_groups_that_differ(ragged: Any) -> None:
    # 11 replies, of which the 3 to r are flat
    expected = [11 / 8 * value for value in by_group(ragged, centred)]
    assert estimate("gpg", ragged).tolist() == pytest.approx(expected, abs=1e-12)
    # verl's own rule divides by the 10 rewards that are not zero
    expected = [11 / 10 * value for value in by_group(ragged, centred)]
    found = estimate("gpg", ragged, rule="verl")
    assert found.tolist() == pytest.approx(expected, abs=1e-12)


def test_gpg_learns_nothing_where_every_group_is_flat(ragged: Any) -> None:
    ragged.rewards = [0.5] * len(ragged.uids)
    assert not estimate("gpg", ragged).any()


def test_dapo_punishes_long_replies_before_it_compares_them(ragged: Any) -> None:
    plain = list(ragged.rewards)
    ragged.rewards = [
        reward + max(min((4 - length) / 3, 0.0), -1.0)
        for reward, length in zip(plain, ragged.lengths, strict=True)
    ]
    expected = by_group(ragged, z_scores)
    ragged.rewards = plain
    found = estimate("dapo", ragged, overlong_cache_tokens=3, max_tokens=7)
    assert found.tolist() == pytest.approx(expected, abs=1e-12)
    assert not torch.allclose(found, estimate("dapo", ragged))


def test_an_unscorable_reply_gets_nothing_and_shifts_no_baseline(ragged: Any) -> None:
    unscorable = ragged.uids.index("p")
    ragged.rewards[unscorable] = math.nan
    found = estimate("grpo", ragged)
    others = [row for row in ragged.members()["p"] if row != unscorable]
    expected = z_scores([ragged.rewards[row] for row in others])
    assert found[unscorable] == 0.0
    assert found[others].tolist() == pytest.approx(expected, abs=1e-12)
    assert found.isfinite().all()


def test_advantages_have_the_type_of_the_rewards(ragged: Any) -> None:
    advantages, _ = ESTIMATORS["npbench_grpo"](
        ragged.token_rewards.float(), ragged.mask, index=ragged.uids, config=None
    )
    assert advantages.dtype == torch.float32


def softmax(values: list[float]) -> list[float]:
    powers = [math.exp(value - max(values)) for value in values]
    return [power / sum(powers) for power in powers]


@pytest.mark.parametrize("mode", ["seq-mean-token-mean", "token-mean"])
@pytest.mark.parametrize("flat", ["keep", "drop"])
def test_dmpo_through_micro_batches_that_split_groups_has_the_gradient_of_whole_groups(
    ragged: Any, known: Any, actor: Any, mode: str, flat: str
) -> None:
    known(aggregation=mode)
    rows = estimate("dmpo", ragged, weight=2.0, alpha=0.5, flat=flat)
    mask, size = ragged.mask, len(ragged.uids)
    # verl's padding counts in no mean: 11 rows as the fixture tells the estimator
    info = {"dp_size": 1, "batch_num_tokens": int(mask.sum()), "global_batch_size": 11}
    through_verl = ragged.old.clone().requires_grad_(True)
    for part in torch.arange(size).split(5):
        loss, _ = LOSSES["npbench_dmpo"](
            old_log_prob=ragged.old[part],
            log_prob=through_verl[part],
            advantages=(rows[:, None] * mask)[part],
            response_mask=mask[part],
            loss_agg_mode=mode,
            config=actor(global_batch_info=info, clip_ratio_high=0.28),
        )
        loss.backward()

    # the loss itself, written out for whole groups
    direct = ragged.old.clone().requires_grad_(True)
    z_values = by_group(ragged, z_scores)
    total = torch.zeros((), dtype=torch.float64)
    for rows_of_group in ragged.members().values():
        rewards = [ragged.rewards[row] for row in rows_of_group]
        means = []
        for row in rows_of_group:
            length = ragged.lengths[row]
            ratios = (direct[row, :length] - ragged.old[row, :length]).exp()
            weight = 1 / (11 * length) if mode == "seq-mean-token-mean" else 1 / int(mask.sum())
            total = total - weight * z_values[row] * ratios.sum()
            means.append(direct[row, :length].mean())
        if flat == "drop" and max(rewards) - min(rewards) < 1e-6:
            continue
        target = torch.tensor(softmax([reward / 0.5 for reward in rewards]), dtype=torch.float64)
        policy = torch.stack(means).softmax(0)
        total = total + 2.0 * ((target - policy) ** 2).mean() / 3
    total.backward()
    assert through_verl.grad is not None
    assert direct.grad is not None
    assert direct.grad.abs().max() > 1e-3
    torch.testing.assert_close(through_verl.grad, direct.grad, rtol=1e-10, atol=1e-13)


def test_dmpos_term_is_reported(ragged: Any, known: Any) -> None:
    rows = known()
    estimate("dmpo", ragged, alpha=0.5)
    expected = 0.0
    for members in ragged.members().values():
        target = softmax([ragged.rewards[row] / 0.5 for row in members])
        policy = softmax([float(ragged.old[row, : ragged.lengths[row]].mean()) for row in members])
        gaps = [(p - q) ** 2 for p, q in zip(target, policy, strict=True)]
        expected += statistics.mean(gaps) / 3
    assert rows.report["npbench/dmpo_term"] == pytest.approx(expected, rel=1e-9)


def test_clip_cov_drops_tokens_of_the_band_over_the_whole_step(ragged: Any, known: Any) -> None:
    rows = known()
    advantages, _ = ESTIMATORS["npbench_clip_cov"](
        ragged.token_rewards,
        ragged.mask,
        index=ragged.uids,
        config={"npbench": {"share": 0.1, "low": 0.1, "high": 2.0}},
    )
    values = torch.tensor(by_group(ragged, z_scores), dtype=torch.float64)[:, None] * ragged.mask
    tokens = int(ragged.mask.sum())
    logprobs = ragged.old.masked_fill(~ragged.mask, 0.0)
    cov = (values - values.sum() / tokens) * (logprobs - logprobs.sum() / tokens)
    band = ragged.mask & (cov > 0.1) & (cov < 2.0)
    dropped = ragged.mask & (advantages == 0.0) & (values != 0.0)
    assert rows.report["npbench/dropped_tokens"] == int(0.1 * tokens)
    assert int(dropped.sum()) == int((band & (values != 0.0) & dropped).sum()) > 0
    kept = ~dropped
    torch.testing.assert_close(advantages[kept], values[kept], rtol=1e-9, atol=1e-12)


def cosine(one: set[int], other: set[int]) -> float:
    return 1.0 - len(one & other) / math.sqrt(len(one) * len(other))


def test_mupo_compares_replies_with_their_own_kind_and_rewards_distance(
    ragged: Any, known: Any, replies: tuple[str, ...]
) -> None:
    """The kinds are plain to see, and in p the gate is shut for one of them."""
    rows = known(step=5)
    found = estimate("mupo", ragged, clusters=2, min_size=1, gate="feasible", seed=7)
    weight = 0.1 + 0.15 * (1 + math.cos(math.pi * 5 / 10))
    pairs = [([0, 7], [3, 11]), ([1, 5], [8, 10]), ([2, 9], [6])]
    answers = {row: set(json.loads(reply[8:])) for row, reply in enumerate(replies) if reply}
    expected = [0.0] * len(ragged.uids)
    for clusters in pairs:
        for own, other in (clusters, clusters[::-1]):
            total = []
            for row in own:
                distance = statistics.mean(cosine(answers[row], answers[one]) for one in other)
                feasible = not {0, 1} <= answers[row]
                total.append(ragged.rewards[row] + feasible * weight * distance)
            size = len(own) + len(other)
            balance = size * (size / (2 * len(own))) / len(own)
            for row, value in zip(own, z_scores(total) if len(own) > 1 else [0.0], strict=True):
                expected[row] = value * balance
    assert sum(value != 0.0 for value in expected) == 10
    assert found.tolist() == pytest.approx(expected, abs=1e-9)
    assert rows.report["npbench/mupo_lambda"] == pytest.approx(weight)
    assert rows.report["npbench/short_groups"] == 0.0


def test_mupo_counts_groups_that_lost_too_many_replies(ragged: Any, known: Any) -> None:
    rows = known()
    estimate("mupo", ragged, clusters=2, min_size=2)
    # three replies to r do not make two clusters of two
    assert rows.report["npbench/short_groups"] == 1.0


def test_mupo_with_one_cluster_is_grpo(ragged: Any, known: Any) -> None:
    known()
    assert torch.equal(estimate("mupo", ragged, clusters=1, min_size=1), estimate("grpo", ragged))


def test_mupo_does_not_depend_on_the_order_of_rows(ragged: Any, known: Any) -> None:
    rows = known()
    settings = {"clusters": 2, "min_size": 1, "seed": 3}
    found = estimate("mupo", ragged, **settings)
    order = [5, 0, 11, 3, 1, 4, 2, 8, 10, 6, 9, 7]
    assert rows.replies is not None
    known(
        uids=tuple(ragged.uids[row] for row in order),
        replies=tuple(rows.replies[row] for row in order),
    )
    for name in ("rewards", "lengths", "uids"):
        setattr(ragged, name, [getattr(ragged, name)[row] for row in order])
    ragged.uids = tuple(ragged.uids)
    torch.testing.assert_close(estimate("mupo", ragged, **settings), found[order])


@pytest.mark.parametrize(
    ("method", "changes", "message"),
    [
        ("dmpo", None, "set trainer.v1.trainer_mode=npbench"),
        ("mupo", None, "set trainer.v1.trainer_mode=npbench"),
        ("clip_cov", None, "set trainer.v1.trainer_mode=npbench"),
        ("dmpo", {"updates": 4}, "is exact for one optimiser step a batch, got 4"),
        ("clip_cov", {"updates": 2}, "is exact for one optimiser step a batch, got 2"),
        ("dmpo", {"uids": ("p",) * 12}, "stand in another order"),
        ("dmpo", {"old_logprobs_BT": None}, "needs old log-probabilities, got none"),
        ("mupo", {"replies": None}, "needs the replies and their ground truths"),
    ],
)
def test_what_is_missing_is_said_in_one_line(
    ragged: Any, known: Any, method: str, changes: dict[str, Any] | None, message: str
) -> None:
    if changes is not None:
        known(**changes)
    with pytest.raises(InputError, match=message) as caught:
        estimate(method, ragged)
    assert "\n" not in str(caught.value)


def test_groups_of_one_and_rows_without_uid_are_refused(ragged: Any) -> None:
    ragged.uids = tuple(map(str, range(12)))
    with pytest.raises(InputError, match=r"at least 2 replies a prompt, got 1: set actor_rollout"):
        estimate("grpo", ragged)
    with pytest.raises(InputError, match="needs the uid of each row"):
        ESTIMATORS["npbench_grpo"](ragged.token_rewards, ragged.mask, config=None)


def test_a_member_alone_gets_nothing_where_others_have_groups(ragged: Any) -> None:
    ragged.uids = ("alone", *ragged.uids[1:])
    assert estimate("grpo", ragged)[0] == 0.0


@pytest.mark.parametrize("method", METHOD_NAMES)
def test_estimator_and_loss_fit_together_for_every_method(
    ragged: Any, known: Any, actor: Any, method: str
) -> None:
    mode = METHODS[method].aggregations[0]
    known(aggregation=mode)
    settings = {"clusters": 2, "min_size": 1} if method == "mupo" else {}
    advantages, _ = ESTIMATORS[f"npbench_{method}"](
        ragged.token_rewards, ragged.mask, index=ragged.uids, config={"npbench": settings}
    )
    leaf = ragged.old.clone().requires_grad_(True)
    loss, metrics = LOSSES[f"npbench_{method}"](
        ragged.old, leaf, advantages, ragged.mask, mode, actor(loss_scale_factor=T)
    )
    loss.backward()
    assert leaf.grad is not None
    assert leaf.grad.abs().max() > 0
    assert not leaf.grad[~ragged.mask].any()
    assert all(math.isfinite(value) for value in metrics.values())


T = 7


def direct_loss(method: str, new: Tensor, ragged: Any, values: Tensor, mask: Tensor) -> Tensor:
    """The loss of our own trainer over the whole batch."""
    arguments = (new, ragged.old, values, mask)
    counts = Counts.of(mask, groups=3)
    if method == "dapo":
        return losses.dapo_loss(*arguments, counts=counts, clip_low=0.1, clip_high=0.3)
    if method == "gspo":
        return losses.gspo_loss(*arguments, counts=counts, clip_low=0.1, clip_high=0.3)
    if method == "gpg":
        return losses.gpg_loss(new, values, mask, counts=counts)
    if method == "dr_grpo":
        return losses.dr_grpo_loss(
            *arguments, counts=counts, clip_low=0.1, clip_high=0.3, max_tokens=T
        )
    return losses.grpo_loss(*arguments, counts=counts, clip_low=0.1, clip_high=0.3)


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize(
    ("method", "mode"),
    [
        ("grpo", "seq-mean-token-mean"),
        ("dapo", "token-mean"),
        ("dr_grpo", "seq-mean-token-sum-norm"),
        ("gspo", "seq-mean-token-mean"),
        ("gpg", "token-mean"),
    ],
)
def test_micro_batches_and_processes_add_up_to_our_own_trainers_loss(
    ragged: Any, actor: Any, method: str, mode: str, processes: int
) -> None:
    mask = ragged.mask
    values = torch.tensor(by_group(ragged, z_scores), dtype=torch.float64)
    info = {
        "dp_size": processes,
        "batch_num_tokens": torch.tensor(int(mask.sum())),
        "global_batch_size": 11,
    }
    config = actor(
        global_batch_info=info, clip_ratio_low=0.1, clip_ratio_high=0.3, loss_scale_factor=T
    )
    leaf = ragged.new.clone().requires_grad_(True)
    value = torch.zeros((), dtype=torch.float64)
    for part in torch.randperm(12, generator=torch.Generator().manual_seed(1)).split(5):
        loss, _ = LOSSES[f"npbench_{method}"](
            ragged.old[part],
            leaf[part],
            (values[:, None] * mask)[part],
            mask[part],
            mode,
            config,
        )
        # verl averages gradients over its processes
        value = value + loss / processes
    value.backward()
    other = ragged.new.clone().requires_grad_(True)
    expected = direct_loss(method, other, ragged, values, mask)
    expected.backward()
    assert other.grad is not None
    assert other.grad.abs().max() > 1e-3
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(leaf.grad, other.grad, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("method", "mode", "changes", "message"),
    [
        ("dapo", "seq-mean-token-mean", {}, "loss_agg_mode must be token-mean for npbench_dapo"),
        ("gspo", "token-mean", {}, "must be seq-mean-token-mean for npbench_gspo, got token-mean"),
        ("grpo", "token-sum", {}, "got token-sum"),
        ("dr_grpo", "seq-mean-token-sum-norm", {}, "loss_scale_factor must be the generation"),
        (
            "grpo",
            "token-mean",
            {"global_batch_info": {"dp_size": 2}},
            "needed on 2 processes, got batch_num_tokens=None",
        ),
    ],
)
def test_a_loss_refuses_what_would_make_it_another(
    ragged: Any, actor: Any, method: str, mode: str, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        LOSSES[f"npbench_{method}"](
            ragged.old,
            ragged.new,
            ragged.mask.double(),
            ragged.mask,
            mode,
            actor(**changes),
        )


def test_a_loss_refuses_advantages_of_tokens_and_weights_that_it_cannot_use(
    ragged: Any, actor: Any
) -> None:
    advantages = torch.arange(84.0, dtype=torch.float64).reshape(12, 7)
    with pytest.raises(InputError, match=r"one advantage for all tokens.*npbench_grpo"):
        LOSSES["npbench_grpo"](
            ragged.old, ragged.new, advantages, ragged.mask, "token-mean", actor()
        )
    with pytest.raises(InputError, match="rollout_is must be null for npbench_gpg"):
        LOSSES["npbench_gpg"](
            ragged.old,
            ragged.new,
            ragged.mask.double(),
            ragged.mask,
            "token-mean",
            actor(),
            rollout_is_weights=torch.ones(12, 7),
        )
