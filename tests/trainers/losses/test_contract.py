"""One list of promises, run on every method."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import pytest
import torch
from torch import Tensor

from trainers.losses import (
    Counts,
    balance_weights,
    clip_cov_loss,
    clip_cov_tokens,
    cluster_advantages,
    dapo_loss,
    dmpo_loss,
    dmpo_term,
    dr_grpo_loss,
    flowrl_loss,
    gpg_advantages,
    gpg_alpha,
    gpg_loss,
    group_relative_advantages,
    group_weights,
    grpo_loss,
    gspo_loss,
    hierarchical_advantages,
    mean_centred_advantages,
    mupo_loss,
    pass_at_k_advantages,
    row_mean,
    rows_by_group,
    share_grpo_loss,
    weighted_scores,
)

P, G = 2, 4
B = P * G
LENGTHS = (6, 2, 4, 1, 5, 3, 6, 2)
Rows = dict[str, Tensor]


@dataclass(frozen=True)
class Batch:
    rewards: Tensor
    rows: Rows
    """Row tensors that do not depend on the rewards, "mask" among them."""

    @property
    def counts(self) -> Counts:
        return Counts.of(self.rows["mask"], groups=P)


@dataclass(frozen=True)
class Method:
    credit: Callable[[Batch], Rows]
    """Rewards -> row tensors, over the whole step."""
    loss: Callable[[Tensor, Rows, Counts], Tensor]
    """The share of these rows (for DMPO: of these whole groups)."""
    flat_is_zero: bool = True
    smooth: bool = True
    """Whether finite differences see the gradient (no stopped gradient inside)."""
    row_loss: Callable[[Tensor, Rows, Counts], Tensor] | None = None
    group_term: Callable[[Tensor, Batch], Tensor] | None = None
    """A loss of two parts: one that splits by rows, and one of all scores."""


def old_of(rows: Rows) -> tuple[Tensor, Tensor, Tensor]:
    return rows["old"], rows["advantages"], rows["mask"]


def advantages_by(function: Callable[[Tensor], Tensor]) -> Callable[[Batch], Rows]:
    return lambda batch: {"advantages": function(batch.rewards).flatten()}


def gpg_credit(batch: Batch) -> Rows:
    alpha = gpg_alpha(batch.rewards).alpha
    return {
        "advantages": gpg_advantages(batch.rewards, alpha=1.0 if alpha is None else alpha).flatten()
    }


def clip_cov_credit(batch: Batch) -> Rows:
    advantages_B = group_relative_advantages(batch.rewards).flatten()
    dropped_BT = clip_cov_tokens(
        batch.rows["logprobs"],
        batch.rows["old"],
        advantages_B,
        batch.rows["mask"],
        generator=torch.Generator().manual_seed(0),
        share=0.2,
        low=0.05,
    )
    return {"advantages": advantages_B, "dropped": dropped_BT}


def mupo_credit(batch: Batch) -> Rows:
    clusters_PG = torch.tensor([[0, 0, 1, 1], [1, 0, 1, 0]])
    return {
        "advantages": cluster_advantages(batch.rewards, clusters_PG).flatten(),
        "balance": balance_weights(clusters_PG).flatten(),
    }


def share_credit(batch: Batch) -> Rows:
    """One question, two variants, two replies each: 8 rows."""
    rewards_PMN = batch.rewards[:1].reshape(1, 2, -1)
    return {"advantages": hierarchical_advantages(rewards_PMN).flatten()}


def dmpo_credit(batch: Batch) -> Rows:
    return {
        "advantages": group_relative_advantages(batch.rewards).flatten(),
        "rewards": batch.rewards.flatten(),
    }


def dmpo_rows(logprobs_BT: Tensor, rows: Rows, counts: Counts, *, flat: str, form: str) -> Tensor:
    index_PG = rows_by_group(rows["group"].tolist(), group_size=G)
    return dmpo_loss(
        logprobs_BT,
        *old_of(rows),
        rows["rewards"][index_PG],
        index_PG,
        counts=counts,
        weight=2.0,
        flat=flat,
        form=form,
    )


def dmpo_scores(scores_B: Tensor, batch: Batch, *, flat: str, form: str) -> Tensor:
    return 2.0 * dmpo_term(
        scores_B.reshape(P, G),
        batch.rewards,
        groups=P,
        flat=flat,
        form=form,
        valid_PG=batch.rows["mask"].any(-1).reshape(P, G),
    )


def grpo_rows(logprobs_BT: Tensor, rows: Rows, counts: Counts) -> Tensor:
    return grpo_loss(logprobs_BT, *old_of(rows), counts=counts)


def dmpo(*, flat: str, form: str) -> Method:
    return Method(
        dmpo_credit,
        partial(dmpo_rows, flat=flat, form=form),
        flat_is_zero=flat == "drop",
        row_loss=grpo_rows,
        group_term=partial(dmpo_scores, flat=flat, form=form),
    )


GRPO_CREDIT = advantages_by(group_relative_advantages)
METHODS: dict[str, Method] = {
    "grpo": Method(GRPO_CREDIT, grpo_rows),
    "grpo with dual clip, sampler weights and token mean": Method(
        GRPO_CREDIT,
        lambda logprobs, rows, counts: grpo_loss(
            logprobs,
            *old_of(rows),
            counts=counts,
            dual_clip=1.2,
            aggregation="token-mean",
            sampler_weights_BT=rows["sampler"],
        ),
    ),
    "grpo with kl": Method(
        GRPO_CREDIT,
        lambda logprobs, rows, counts: grpo_loss(
            logprobs, *old_of(rows), counts=counts, ref_logprobs_BT=rows["ref"], kl_coef=0.04
        ),
        flat_is_zero=False,
    ),
    "dr_grpo": Method(
        advantages_by(mean_centred_advantages),
        lambda logprobs, rows, counts: dr_grpo_loss(
            logprobs, *old_of(rows), counts=counts, max_tokens=20
        ),
    ),
    "dapo": Method(
        GRPO_CREDIT,
        lambda logprobs, rows, counts: dapo_loss(logprobs, *old_of(rows), counts=counts),
    ),
    "dapo by group": Method(
        GRPO_CREDIT,
        lambda logprobs, rows, counts: dapo_loss(
            logprobs, *old_of(rows), counts=counts, group_tokens_B=rows["group_tokens"]
        ),
    ),
    "gspo": Method(
        GRPO_CREDIT,
        lambda logprobs, rows, counts: gspo_loss(
            logprobs, *old_of(rows), counts=counts, clip_low=0.1, clip_high=0.1
        ),
    ),
    "gspo-token": Method(
        GRPO_CREDIT,
        lambda logprobs, rows, counts: gspo_loss(
            logprobs, *old_of(rows), counts=counts, clip_low=0.1, clip_high=0.1, form="token"
        ),
        smooth=False,
    ),
    "gpg": Method(
        gpg_credit,
        lambda logprobs, rows, counts: gpg_loss(
            logprobs, rows["advantages"], rows["mask"], counts=counts
        ),
    ),
    "flowrl": Method(
        GRPO_CREDIT,
        lambda logprobs, rows, counts: flowrl_loss(
            logprobs,
            rows["old"],
            rows["ref"],
            rows["log_z"],
            rows["advantages"],
            rows["mask"],
            counts=counts,
        ),
        flat_is_zero=False,
        smooth=False,
    ),
    "clip_cov": Method(
        clip_cov_credit,
        lambda logprobs, rows, counts: clip_cov_loss(
            logprobs, *old_of(rows), rows["dropped"], counts=counts
        ),
    ),
    "grpo_passk": Method(advantages_by(pass_at_k_advantages), grpo_rows),
    "dmpo": dmpo(flat="keep", form="mse"),
    "dmpo without flat groups": dmpo(flat="drop", form="mse"),
    "dmpo forward-kl": dmpo(flat="keep", form="forward-kl"),
    "dmpo js": dmpo(flat="keep", form="js"),
    "mupo": Method(
        mupo_credit,
        lambda logprobs, rows, counts: mupo_loss(
            logprobs,
            rows["old"],
            rows["advantages"],
            rows["balance"],
            rows["mask"],
            counts=counts,
        ),
    ),
    "share_grpo": Method(
        share_credit,
        lambda logprobs, rows, counts: share_grpo_loss(logprobs, *old_of(rows), counts=counts),
    ),
}
REWARDS = ((1.0, 0.0, 0.3, 0.1), (0.2, 1.0, 1.0, 0.5))


@pytest.fixture(params=METHODS)
def method(request: pytest.FixtureRequest) -> Method:
    return METHODS[request.param]


def make_batch(
    rewards: object = REWARDS, *, width: int = 6, dtype: torch.dtype = torch.float64
) -> Batch:
    generator = torch.Generator().manual_seed(5)

    def noise(scale: float) -> Tensor:
        drawn = torch.randn(B, 8, generator=generator, dtype=torch.float64)
        return (drawn * scale)[:, :width].to(dtype)

    lengths_B = torch.tensor(LENGTHS)
    mask_BT = torch.arange(width)[None, :] < lengths_B[:, None]
    logprobs_BT = -noise(1.0).abs() - 0.1
    tokens_P = mask_BT.reshape(P, -1).sum(-1)
    rows = {
        "logprobs": logprobs_BT,
        "old": logprobs_BT + noise(0.2),
        "ref": logprobs_BT + noise(0.3),
        "sampler": 1.0 + noise(0.1),
        "mask": mask_BT,
        "log_z": noise(1.0)[:, 0],
        "group": torch.arange(B) // G,
        "group_tokens": tokens_P.repeat_interleave(G),
    }
    return Batch(torch.tensor(rewards, dtype=dtype), rows)


def with_credit(method: Method, batch: Batch) -> Rows:
    return batch.rows | method.credit(batch)


def value_and_gradient(
    method: Method, rows: Rows, counts: Counts, logprobs_BT: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    leaf = rows["logprobs"] if logprobs_BT is None else logprobs_BT
    leaf = leaf.detach().clone().requires_grad_(True)
    value = method.loss(leaf, rows, counts)
    (gradient,) = torch.autograd.grad(value, leaf)
    return value.detach(), gradient


def take(rows: Rows, index: Tensor) -> Rows:
    return {name: tensor[index] for name, tensor in rows.items()}


@pytest.mark.parametrize("width", [6, 8], ids=["B != T", "B == T"])
def test_value_and_gradient_are_finite_and_zero_exactly_where_masked(
    method: Method, width: int
) -> None:
    batch = make_batch(width=width)
    rows = with_credit(method, batch)
    value, gradient_BT = value_and_gradient(method, rows, batch.counts)
    assert value.isfinite()
    assert gradient_BT.isfinite().all()
    assert gradient_BT.abs().max() > 0
    assert (gradient_BT[~rows["mask"]] == 0).all()


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_of_any_kind_changes_nothing(method: Method, side: str) -> None:
    batch = make_batch()
    rows = with_credit(method, batch)
    value, gradient_BT = value_and_gradient(method, rows, batch.counts)
    extra = 5
    padded = dict(rows)
    for name, tensor in rows.items():
        if tensor.ndim == 2:
            fill = torch.full((B, extra), float("nan") if tensor.dtype != torch.bool else 0)
            parts = [fill.to(tensor.dtype), tensor]
            if tensor.dtype != torch.bool:
                parts[1] = tensor.masked_fill(~rows["mask"], -torch.inf)
            padded[name] = torch.cat(parts if side == "left" else parts[::-1], dim=1)
    padded_value, padded_BT = value_and_gradient(method, padded, batch.counts)
    inner_BT = padded_BT[:, extra:] if side == "left" else padded_BT[:, :-extra]
    torch.testing.assert_close(padded_value, value, rtol=1e-14, atol=1e-15)
    torch.testing.assert_close(inner_BT, gradient_BT, rtol=1e-13, atol=1e-16)
    outer_BT = padded_BT[:, :extra] if side == "left" else padded_BT[:, -extra:]
    assert (outer_BT == 0).all()


def test_row_order_changes_nothing(method: Method) -> None:
    batch = make_batch()
    rows = with_credit(method, batch)
    value, gradient_BT = value_and_gradient(method, rows, batch.counts)
    order = torch.tensor([3, 6, 0, 5, 7, 1, 4, 2])
    other_value, other_BT = value_and_gradient(method, take(rows, order), batch.counts)
    torch.testing.assert_close(other_value, value, rtol=1e-13, atol=1e-15)
    torch.testing.assert_close(other_BT, gradient_BT[order], rtol=1e-13, atol=1e-16)


@pytest.mark.parametrize("reward", [0.35, 0.4, 0.0, 1.0])
def test_equal_rewards_give_a_gradient_of_exactly_zero_where_the_method_says_so(
    method: Method, reward: float
) -> None:
    batch = make_batch([[reward] * G] * P, dtype=torch.float32)
    _, gradient_BT = value_and_gradient(method, with_credit(method, batch), batch.counts)
    assert bool((gradient_BT == 0).all()) == method.flat_is_zero


def test_rows_that_are_all_masked_give_loss_zero_and_no_gradient(method: Method) -> None:
    batch = make_batch()
    rows = with_credit(method, batch)
    rows = rows | {"mask": torch.zeros_like(rows["mask"]), "group_tokens": torch.zeros(B)}
    value, gradient_BT = value_and_gradient(method, rows, Counts.of(rows["mask"], groups=P))
    assert value == 0
    assert (gradient_BT == 0).all()


def test_a_step_of_one_token_does_not_divide_by_zero(method: Method) -> None:
    batch = make_batch()
    mask_BT = torch.zeros_like(batch.rows["mask"])
    mask_BT[1, 0] = True
    batch = replace(batch, rows=batch.rows | {"mask": mask_BT})
    value, gradient_BT = value_and_gradient(method, with_credit(method, batch), batch.counts)
    assert value.isfinite()
    assert gradient_BT.isfinite().all()


def test_a_micro_batch_without_rows_contributes_zero(method: Method) -> None:
    batch = make_batch()
    rows = take(with_credit(method, batch), torch.tensor([], dtype=torch.long))
    value, _ = value_and_gradient(method, rows, batch.counts)
    assert value == 0


def test_unscorable_rewards_poison_nothing(method: Method) -> None:
    nan = float("nan")
    batch = make_batch([[1.0, nan, 0.0, nan], [nan, nan, nan, nan]])
    value, gradient_BT = value_and_gradient(method, with_credit(method, batch), batch.counts)
    assert value.isfinite()
    assert gradient_BT.isfinite().all()


def test_a_single_scorable_reply_is_no_group(method: Method) -> None:
    nan = float("nan")
    batch = make_batch([[1.0, nan, nan, nan], [nan, nan, nan, 0.5]])
    _, gradient_BT = value_and_gradient(method, with_credit(method, batch), batch.counts)
    assert bool((gradient_BT == 0).all()) == (
        method not in (METHODS["flowrl"], METHODS["grpo with kl"])
    )


def test_groups_of_one_are_refused(method: Method) -> None:
    batch = make_batch()
    single = replace(batch, rewards=batch.rewards[:, :1])
    if method is METHODS["share_grpo"]:
        single = replace(batch, rewards=batch.rewards[:, :2])
    if method is METHODS["mupo"]:
        with pytest.raises(ValueError, match="at least 2 replies"):
            cluster_advantages(single.rewards, torch.zeros(P, 1, dtype=torch.long))
        return
    with pytest.raises(ValueError, match="at least 2 replies"):
        method.credit(single)


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.smooth])
def test_the_gradient_is_the_derivative_of_the_value(name: str) -> None:
    method = METHODS[name]
    batch = make_batch()
    rows = with_credit(method, batch)
    leaf = rows["logprobs"].clone().requires_grad_(True)
    assert torch.autograd.gradcheck(
        lambda logprobs_BT: method.loss(logprobs_BT, rows, batch.counts), (leaf,)
    )


def gradient_in_chunks(method: Method, batch: Batch, chunks: list[list[int]]) -> Tensor:
    """The step's gradient as a trainer accumulates it: chunk by chunk, counts of the whole step."""
    rows = with_credit(method, batch)
    leaf = rows["logprobs"].clone().requires_grad_(True)
    share = method.loss if method.row_loss is None else method.row_loss
    weights_B = torch.zeros(B, dtype=leaf.dtype)
    if method.group_term is not None:
        scores_B = row_mean(rows["logprobs"], rows["mask"])
        weights_B = group_weights(partial(method.group_term, batch=batch), scores_B).weights
    for chunk in chunks:
        index = torch.tensor(chunk)
        part = take(rows, index)
        loss = share(leaf[index], part, batch.counts)
        if method.group_term is not None:
            loss = loss + weighted_scores(row_mean(leaf[index], part["mask"]), weights_B[index])
        loss.backward()
    assert leaf.grad is not None
    return leaf.grad


@pytest.mark.parametrize(
    "chunks",
    [
        [[0, 1, 2, 3], [4, 5, 6, 7]],
        [[0, 5], [7, 2], [1, 6], [3, 4]],
        [[i] for i in range(8)],
        [[0, 2, 6], [1, 3, 4, 5, 7]],
    ],
    ids=["2 x 4", "4 x 2", "8 x 1", "two processes, 16 and 13 tokens"],
)
def test_micro_batches_and_processes_add_up_to_the_whole_step(
    method: Method, chunks: list[list[int]]
) -> None:
    batch = make_batch()
    _, whole_BT = value_and_gradient(method, with_credit(method, batch), batch.counts)
    split_BT = gradient_in_chunks(method, batch, chunks)
    torch.testing.assert_close(split_BT, whole_BT, rtol=1e-12, atol=1e-15)


def test_advantages_of_another_shape_are_refused(method: Method) -> None:
    batch = make_batch(width=8)
    rows = with_credit(method, batch)
    rows["advantages"] = rows["advantages"][:, None]
    with pytest.raises(ValueError, match="one value a row"):
        method.loss(rows["logprobs"], rows, batch.counts)


def test_a_mask_of_integers_is_refused(method: Method) -> None:
    batch = make_batch()
    rows = with_credit(method, batch)
    rows["mask"] = rows["mask"].long()
    with pytest.raises(ValueError, match="mask must be a bool tensor"):
        method.loss(rows["logprobs"], rows, batch.counts)


def test_three_optimiser_steps_are_bit_equal_when_repeated(method: Method) -> None:
    def train() -> Tensor:
        batch = make_batch(dtype=torch.float32)
        rows = with_credit(method, batch)
        parameter = rows["logprobs"].clone().requires_grad_(True)
        optimiser = torch.optim.AdamW([parameter], lr=1e-2)
        for _ in range(3):
            optimiser.zero_grad()
            method.loss(parameter, rows, batch.counts).backward()
            optimiser.step()
        return parameter.detach()

    first, second = train(), train()
    assert torch.equal(first, second)
    assert not torch.equal(first, make_batch(dtype=torch.float32).rows["logprobs"])
