"""The two-pass gradient on a small autoregressive model, in float64."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from trainers.losses import (
    Counts,
    dmpo_target,
    dmpo_term,
    group_relative_advantages,
    group_weights,
    grpo_loss,
    mask_from_lengths,
    row_mean,
    row_sum,
    rows_by_group,
    to_rows,
    two_pass_backward,
    weighted_scores,
    weights_as_advantages,
)

P, G, T, V = 2, 6, 9, 11
B = P * G
Loss = Callable[[Tensor], Tensor]


class TinyPolicy(nn.Module):
    """A recurrent policy over V tokens with an initial state for each prompt."""

    def __init__(self, *, dropout: float = 0.0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.start = nn.Embedding(P, 8)
        self.tokens = nn.Embedding(V, 8)
        self.cell = nn.GRU(8, 8, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(8, V)
        self.double()

    def forward(self, prompts_B: Tensor, tokens_BT: Tensor) -> Tensor:
        """Log-probability of each token given those before it."""
        first_B1H = self.start(prompts_B)[:, None]
        inputs_BTH = torch.cat([first_B1H, self.tokens(tokens_BT[:, :-1])], dim=1)
        hidden_BTH, _ = self.cell(inputs_BTH)
        log_BTV = (2.0 * self.head(self.dropout(hidden_BTH))).log_softmax(-1)
        return log_BTV.gather(-1, tokens_BT[..., None]).squeeze(-1)


class Rollouts:
    """Replies of different lengths to two prompts, in interleaved rows."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(4)
        self.prompts = torch.arange(B) % P
        self.tokens = torch.randint(V, (B, T), generator=generator)
        self.lengths = torch.randint(1, T + 1, (B,), generator=generator)
        self.index_PG = rows_by_group(self.prompts.tolist(), group_size=G)
        rewards_B = torch.rand(B, generator=generator, dtype=torch.float64).round(decimals=1)
        self.rewards_PG = rewards_B[self.index_PG]


@pytest.fixture
def rollouts() -> Rollouts:
    return Rollouts()


def scorer(
    model: TinyPolicy, rollouts: Rollouts, *, reduce: Callable[[Tensor, Tensor], Tensor] = row_mean
) -> Callable[[list[int]], Tensor]:
    """Scores of a chunk of rows, padded to the chunk's own longest reply."""

    def score(chunk: list[int]) -> Tensor:
        rows = torch.tensor(chunk)
        width = int(rollouts.lengths[rows].max())
        log_BT = model(rollouts.prompts[rows], rollouts.tokens[rows, :width])
        return reduce(log_BT, mask_from_lengths(rollouts.lengths[rows], width=width))

    return score


def forward_kl(scores_PG: Tensor, rollouts: Rollouts) -> Tensor:
    return dmpo_term(scores_PG, rollouts.rewards_PG, groups=P, alpha=0.3, form="forward-kl")


def squared(scores_PG: Tensor, rollouts: Rollouts) -> Tensor:
    return dmpo_term(scores_PG, rollouts.rewards_PG, groups=P, alpha=0.3)


def log_squared(scores_PG: Tensor, rollouts: Rollouts) -> Tensor:
    target_PG = dmpo_target(rollouts.rewards_PG, alpha=0.5).log()
    return (scores_PG.log_softmax(-1) - target_PG).square().mean()


GROUP_LOSSES = {"forward-kl": forward_kl, "mse": squared, "log-mse": log_squared}


def by_group(name: str, rollouts: Rollouts) -> Loss:
    return lambda scores_B: GROUP_LOSSES[name](scores_B[rollouts.index_PG], rollouts)


def gradient_of(model: nn.Module) -> Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def whole(name: str, rollouts: Rollouts, reduce: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    model = TinyPolicy()
    score = scorer(model, rollouts, reduce=reduce)
    by_group(name, rollouts)(score(list(range(B)))).backward()
    return gradient_of(model)


CHUNKS = {
    "one reply each": [[i] for i in range(B)],
    "pairs across groups": [[i, i + 1] for i in range(0, B, 2)],
    "five and seven": [list(range(5)), list(range(5, B))],
    "everything": [list(range(B))],
}


@pytest.mark.parametrize("reduce", [row_mean, row_sum], ids=["mean", "sum"])
@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("name", GROUP_LOSSES)
def test_two_passes_give_the_whole_groups_gradient(
    rollouts: Rollouts, name: str, chunks: str, reduce: Callable[[Tensor, Tensor], Tensor]
) -> None:
    model = TinyPolicy()
    found = two_pass_backward(
        scorer(model, rollouts, reduce=reduce), CHUNKS[chunks], by_group(name, rollouts)
    )
    expected = whole(name, rollouts, reduce)
    error = (gradient_of(model) - expected).norm() / expected.norm()
    assert error < 1e-12
    assert found.weights.shape == (B,)


def test_row_order_and_more_padding_change_nothing(rollouts: Rollouts) -> None:
    order = torch.randperm(B, generator=torch.Generator().manual_seed(1))
    other = Rollouts()
    junk = torch.full((B, 4), V - 1)
    other.prompts = rollouts.prompts[order]
    other.tokens = torch.cat([rollouts.tokens, junk], dim=1)[order]
    other.lengths = rollouts.lengths[order]
    other.index_PG = rows_by_group(other.prompts.tolist(), group_size=G)
    other.rewards_PG = to_rows(rollouts.rewards_PG, rollouts.index_PG)[order][other.index_PG]
    model = TinyPolicy()

    def score(chunk: list[int]) -> Tensor:
        rows = torch.tensor(chunk)
        log_BT = model(other.prompts[rows], other.tokens[rows])
        return row_mean(log_BT, mask_from_lengths(other.lengths[rows], width=T + 4))

    two_pass_backward(score, CHUNKS["pairs across groups"], by_group("mse", other))
    expected = whole("mse", rollouts, row_mean)
    assert (gradient_of(model) - expected).norm() / expected.norm() < 1e-12


def test_two_processes_with_a_group_each_add_up(rollouts: Rollouts) -> None:
    total = torch.zeros(())
    for rank in range(2):
        model = TinyPolicy()
        rows = rollouts.index_PG[rank].tolist()
        rewards_1G = rollouts.rewards_PG[rank : rank + 1]
        loss = partial(
            lambda scores_B, rewards: dmpo_term(scores_B[None], rewards, groups=P, alpha=0.3),
            rewards=rewards_1G,
        )
        chunks = [rows] if rank == 0 else [[row] for row in rows]
        two_pass_backward(scorer(model, rollouts), chunks, loss)
        total = total + gradient_of(model)
    expected = whole("mse", rollouts, row_mean)
    assert (total - expected).norm() / expected.norm() < 1e-12


def test_a_softmax_inside_micro_batches_that_split_groups_is_wrong(rollouts: Rollouts) -> None:
    model = TinyPolicy()
    score = scorer(model, rollouts)
    for group, rewards_G in zip(rollouts.index_PG, rollouts.rewards_PG, strict=True):
        for start in range(0, G, 2):
            members = group[start : start + 2].tolist()
            part = dmpo_term(
                score(members)[None],
                rewards_G[None, start : start + 2],
                groups=P * G // 2,
                alpha=0.3,
                form="forward-kl",
            )
            part.backward()
    naive, expected = gradient_of(model), whole("forward-kl", rollouts, row_mean)
    cosine = torch.nn.functional.cosine_similarity(naive, expected, dim=0).item()
    assert cosine < 0.95


def test_the_same_gradient_goes_through_the_advantage_channel(rollouts: Rollouts) -> None:
    model = TinyPolicy()
    scores_B = scorer(model, rollouts)(list(range(B)))
    weights_B = group_weights(by_group("forward-kl", rollouts), scores_B).weights
    p, q = dmpo_target(rollouts.rewards_PG, alpha=0.3), scores_B[rollouts.index_PG].softmax(-1)
    advantages_B = weights_as_advantages(weights_B, sequences=B)
    expected = to_rows((G * (p - q)).detach(), rollouts.index_PG)
    torch.testing.assert_close(advantages_B, expected)
    mask_BT = mask_from_lengths(rollouts.lengths, width=T)
    log_BT = model(rollouts.prompts, rollouts.tokens)
    counts = Counts.of(mask_BT, groups=P)
    grpo_loss(log_BT, log_BT.detach(), advantages_B, mask_BT, counts=counts).backward()
    expected = whole("forward-kl", rollouts, row_mean)
    assert (gradient_of(model) - expected).norm() / expected.norm() < 1e-12


def test_a_loss_of_both_kinds_accumulates_row_by_row(rollouts: Rollouts) -> None:
    """GRPO by rows plus the group term by weights equals both at once."""
    advantages_B = to_rows(group_relative_advantages(rollouts.rewards_PG), rollouts.index_PG)
    mask_BT = mask_from_lengths(rollouts.lengths, width=T)
    counts = Counts.of(mask_BT, groups=P)
    gradients = []
    for chunks in ([list(range(B))], CHUNKS["one reply each"]):
        model = TinyPolicy()
        with torch.no_grad():
            old_BT = model(rollouts.prompts, rollouts.tokens)
        scores_B = row_mean(old_BT, mask_BT)
        weights_B = group_weights(by_group("mse", rollouts), scores_B).weights
        for chunk in chunks:
            rows = torch.tensor(chunk)
            log_BT = model(rollouts.prompts[rows], rollouts.tokens[rows])
            arguments = (old_BT[rows], advantages_B[rows], mask_BT[rows])
            loss = grpo_loss(log_BT, *arguments, counts=counts)
            scores = row_mean(log_BT, mask_BT[rows])
            (loss + 2.0 * weighted_scores(scores, weights_B[rows])).backward()
        gradients.append(gradient_of(model))
    assert (gradients[0] - gradients[1]).norm() / gradients[0].norm() < 1e-12


def test_dropout_between_the_passes_is_refused(rollouts: Rollouts) -> None:
    model = TinyPolicy(dropout=0.3)
    arguments = (scorer(model, rollouts), CHUNKS["everything"], by_group("mse", rollouts))
    with pytest.raises(ValueError, match="is dropout on"):
        two_pass_backward(*arguments)
    model.eval()
    two_pass_backward(*arguments)
    assert gradient_of(model).norm() > 0


def test_what_is_no_group_loss_is_refused() -> None:
    scores = torch.zeros(3)
    with pytest.raises(ValueError, match=r"one number, got shape \(3,\)"):
        group_weights(lambda s: s, scores)
    with pytest.raises(ValueError, match="must depend on the scores"):
        group_weights(lambda s: torch.zeros(()), scores)
    with pytest.raises(ValueError, match="at least 1 chunk"):
        two_pass_backward(lambda chunk: chunk, [], lambda s: s.sum())
    with pytest.raises(ValueError, match=r"the scores' shape \(3,\), got \(2,\)"):
        weighted_scores(scores, scores[:2])
    with pytest.raises(ValueError, match=r"index's shape \(1, 3\), got \(3,\)"):
        to_rows(scores, torch.arange(3)[None])
    with pytest.raises(ValueError, match="group_size must be at least 2, got 1"):
        rows_by_group(["p"], group_size=1)


def test_weights_can_be_taken_inside_no_grad() -> None:
    with torch.no_grad():
        found = group_weights(lambda s: s.square().sum(), torch.tensor([1.0, 2.0]))
    assert found.weights.tolist() == [2.0, 4.0]
    assert found.value == 5.0
