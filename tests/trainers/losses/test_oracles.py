"""Every loss against a slow float64 loop written from the paper's equation.

The oracles know nothing of masks, tensors of tokens or counts: they take a list of replies, each a
list of scalars, one per token. Value and gradient agree to 1e-9.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

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
    dr_grpo_loss,
    flowrl_loss,
    gpg_advantages,
    gpg_alpha,
    gpg_loss,
    group_relative_advantages,
    grpo_loss,
    gspo_loss,
    hierarchical_advantages,
    kl_loss,
    mask_from_lengths,
    mean_centred_advantages,
    mupo_loss,
    pass_at_k_advantages,
    share_grpo_loss,
    shared_rows,
)

P, G, T = 2, 4, 7
B = P * G
LENGTHS = (7, 3, 5, 1, 4, 6, 2, 7)
REWARDS = ((1.0, 0.0, 0.3, 0.1), (0.2, 1.0, 0.9, 0.5))
Reply = list[Tensor]


@dataclass(frozen=True)
class Case:
    logprobs: Tensor
    old: Tensor
    ref: Tensor
    mask: Tensor
    log_z: Tensor

    def ragged(self, tensor: Tensor) -> list[Reply]:
        return [[row[t] for t in range(n)] for row, n in zip(tensor, LENGTHS, strict=True)]

    @property
    def counts(self) -> Counts:
        return Counts.of(self.mask, groups=P)


@pytest.fixture(params=range(3))
def case(request: pytest.FixtureRequest) -> Case:
    generator = torch.Generator().manual_seed(100 + request.param)

    def noise(scale: float) -> Tensor:
        return torch.randn(B, T, generator=generator, dtype=torch.float64) * scale

    logprobs_BT = -noise(1.0).abs() - 0.05
    return Case(
        logprobs_BT.requires_grad_(True),
        logprobs_BT.detach() + noise(0.3),
        logprobs_BT.detach() + noise(0.4),
        mask_from_lengths(torch.tensor(LENGTHS), width=T),
        noise(1.0)[:, 0].requires_grad_(True),
    )


def agree(ours: Tensor, oracle: Tensor, *inputs: Tensor) -> None:
    torch.testing.assert_close(ours, oracle, rtol=1e-9, atol=1e-12)
    mine = torch.autograd.grad(ours, inputs)
    theirs = torch.autograd.grad(oracle, inputs)
    for left, right in zip(mine, theirs, strict=True):
        assert right.abs().max() > 0
        torch.testing.assert_close(left, right, rtol=1e-9, atol=1e-12)


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def sample_std(values: Sequence[float]) -> float:
    centre = mean(values)
    return math.sqrt(sum((v - centre) ** 2 for v in values) / (len(values) - 1))


def z_scores(values: Sequence[float]) -> list[float]:
    return [(v - mean(values)) / (sample_std(values) + 1e-6) for v in values]


def constant(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


def clipped(ratio: Tensor, advantage: float, low: float, high: float) -> Tensor:
    """min(r A, clip(r) A) by cases."""
    if advantage >= 0:
        return ratio * advantage if ratio <= 1 + high else constant((1 + high) * advantage)
    return ratio * advantage if ratio >= 1 - low else constant((1 - low) * advantage)


def ppo_terms(
    new: list[Reply], old: list[Reply], advantages: Sequence[float], low: float, high: float
) -> list[Reply]:
    return [
        [clipped(torch.exp(a - b), advantage, low, high) for a, b in zip(x, y, strict=True)]
        for x, y, advantage in zip(new, old, advantages, strict=True)
    ]


def total(terms: Sequence[Tensor]) -> Tensor:
    result = torch.zeros((), dtype=torch.float64)
    for term in terms:
        result = result + term
    return result


def all_z_scores() -> list[float]:
    return [a for group in REWARDS for a in z_scores(group)]


def rewards_tensor() -> Tensor:
    return torch.tensor(REWARDS, dtype=torch.float64)


def test_grpo_with_its_kl_term_is_the_equation_of_deepseekmath(case: Case) -> None:
    beta = 0.04
    terms = ppo_terms(case.ragged(case.logprobs), case.ragged(case.old), all_z_scores(), 0.2, 0.2)
    objective = torch.zeros((), dtype=torch.float64)
    for new, ref, reply in zip(
        case.ragged(case.logprobs), case.ragged(case.ref), terms, strict=True
    ):
        kl = [torch.exp(r - n) - (r - n) - 1 for n, r in zip(new, ref, strict=True)]
        objective = objective + (total(reply) - beta * total(kl)) / len(reply) / B
    ours = grpo_loss(
        case.logprobs,
        case.old,
        group_relative_advantages(rewards_tensor()).flatten(),
        case.mask,
        counts=case.counts,
        ref_logprobs_BT=case.ref,
        kl_coef=beta,
    )
    agree(ours, -objective, case.logprobs)


def test_grpo_with_a_dual_clip_bounds_negative_advantages(case: Case) -> None:
    dual = 1.1
    objective = torch.zeros((), dtype=torch.float64)
    for new, old, advantage in zip(
        case.ragged(case.logprobs), case.ragged(case.old), all_z_scores(), strict=True
    ):
        terms = []
        for a, b in zip(new, old, strict=True):
            term = clipped(torch.exp(a - b), advantage, 0.2, 0.2)
            if advantage < 0 and term < dual * advantage:
                term = constant(dual * advantage)
            terms.append(term)
        objective = objective + total(terms) / len(terms) / B
    ours = grpo_loss(
        case.logprobs,
        case.old,
        group_relative_advantages(rewards_tensor()).flatten(),
        case.mask,
        counts=case.counts,
        dual_clip=dual,
    )
    agree(ours, -objective, case.logprobs)


def test_dr_grpo_divides_by_a_constant_and_not_by_the_deviation(case: Case) -> None:
    limit = 50
    advantages = [r - mean(group) for group in REWARDS for r in group]
    terms = ppo_terms(case.ragged(case.logprobs), case.ragged(case.old), advantages, 0.2, 0.2)
    objective = total([total(reply) / limit for reply in terms]) / B
    ours = dr_grpo_loss(
        case.logprobs,
        case.old,
        mean_centred_advantages(rewards_tensor()).flatten(),
        case.mask,
        counts=case.counts,
        max_tokens=limit,
    )
    agree(ours, -objective, case.logprobs)


@pytest.mark.parametrize("by_group", [False, True])
def test_dapo_is_a_token_mean_with_a_higher_upper_clip(case: Case, by_group: bool) -> None:
    terms = ppo_terms(case.ragged(case.logprobs), case.ragged(case.old), all_z_scores(), 0.2, 0.28)
    if by_group:
        groups = [terms[:G], terms[G:]]
        objective = total(
            [total([total(r) for r in group]) / sum(map(len, group)) for group in groups]
        )
        objective = objective / P
        tokens_B = torch.tensor([sum(LENGTHS[:G])] * G + [sum(LENGTHS[G:])] * G)
    else:
        objective = total([total(r) for r in terms]) / sum(LENGTHS)
        tokens_B = None
    ours = dapo_loss(
        case.logprobs,
        case.old,
        group_relative_advantages(rewards_tensor()).flatten(),
        case.mask,
        counts=case.counts,
        group_tokens_B=tokens_B,
    )
    agree(ours, -objective, case.logprobs)


def geometric_ratio(new: Reply, old: Reply) -> Tensor:
    return torch.exp(total([a - b for a, b in zip(new, old, strict=True)]) / len(new))


def test_gspo_clips_the_geometric_mean_of_the_ratios(case: Case) -> None:
    low, high = 0.05, 0.08
    objective = total(
        [
            clipped(geometric_ratio(new, old), advantage, low, high)
            for new, old, advantage in zip(
                case.ragged(case.logprobs), case.ragged(case.old), all_z_scores(), strict=True
            )
        ]
    )
    ours = gspo_loss(
        case.logprobs,
        case.old,
        group_relative_advantages(rewards_tensor()).flatten(),
        case.mask,
        counts=case.counts,
        clip_low=low,
        clip_high=high,
    )
    agree(ours, -objective / B, case.logprobs)


def test_gspo_token_stops_the_gradient_of_the_sequence_ratio(case: Case) -> None:
    low, high = 0.05, 0.08
    objective = torch.zeros((), dtype=torch.float64)
    for new, old, advantage in zip(
        case.ragged(case.logprobs), case.ragged(case.old), all_z_scores(), strict=True
    ):
        s = geometric_ratio(new, old).item()
        terms = [clipped(s * torch.exp(a) / math.exp(a.item()), advantage, low, high) for a in new]
        objective = objective + total(terms) / len(terms) / B
    ours = gspo_loss(
        case.logprobs,
        case.old,
        group_relative_advantages(rewards_tensor()).flatten(),
        case.mask,
        counts=case.counts,
        clip_low=low,
        clip_high=high,
        form="token",
    )
    agree(ours, -objective, case.logprobs)


def test_gpg_is_a_plain_policy_gradient_scaled_by_alpha(case: Case) -> None:
    rewards = (REWARDS[0], (1.0, 1.0, 1.0, 1.0))
    alpha = 8 / (8 - 4)
    advantages = [alpha * (r - mean(group)) for group in rewards for r in group]
    objective = total(
        [
            total(new) * advantage
            for new, advantage in zip(case.ragged(case.logprobs), advantages, strict=True)
        ]
    )
    rewards_PG = torch.tensor(rewards, dtype=torch.float64)
    scale = gpg_alpha(rewards_PG).alpha
    assert scale is not None
    ours = gpg_loss(
        case.logprobs,
        gpg_advantages(rewards_PG, alpha=scale).flatten(),
        case.mask,
        counts=case.counts,
    )
    agree(ours, -objective / sum(LENGTHS), case.logprobs)


@pytest.mark.parametrize("weight", ["paper", "mean", "recipe"])
def test_flowrl_is_a_weighted_squared_residual(case: Case, weight: str) -> None:
    beta, low, high = 15.0, 0.2, 0.2
    losses = []
    for new, old, ref, log_z, r in zip(
        case.ragged(case.logprobs),
        case.ragged(case.old),
        case.ragged(case.ref),
        case.log_z,
        all_z_scores(),
        strict=True,
    ):
        log_w = sum(a.item() - b.item() for a, b in zip(new, old, strict=True))
        if weight == "mean":
            log_w /= len(new)
        w = math.exp(log_w)
        if weight != "recipe":
            w = min(max(w, 1 - low), 1 + high)
        residual = log_z + total(new) / len(new) - beta * r - total(ref) / len(ref)
        losses.append(w * residual**2)
    ours = flowrl_loss(
        case.logprobs,
        case.old,
        case.ref,
        case.log_z,
        group_relative_advantages(rewards_tensor()).flatten(),
        case.mask,
        counts=case.counts,
        weight=weight,
    )
    agree(ours, total(losses) / B, case.logprobs, case.log_z)


def test_clip_cov_drops_tokens_of_high_covariance(case: Case) -> None:
    low, high, share = 0.2, 2.0, 0.5
    advantages = all_z_scores()
    tokens = [
        (i, t, new.item(), old.item(), advantages[i])
        for i, (news, olds) in enumerate(
            zip(case.ragged(case.logprobs), case.ragged(case.old), strict=True)
        )
        for t, (new, old) in enumerate(zip(news, olds, strict=True))
    ]
    mean_a = mean([a for *_, a in tokens])
    mean_l = mean([n for _, _, n, _, _ in tokens])
    open_tokens = set()
    for i, t, n, o, a in tokens:
        ratio = math.exp(n - o)
        already = (a > 0 and ratio > 1.2) or (a < 0 and ratio < 0.8)
        if low < (a - mean_a) * (n - mean_l) < high and not already:
            open_tokens.add((i, t))
    advantages_B = group_relative_advantages(rewards_tensor()).flatten()
    dropped_BT = clip_cov_tokens(
        case.logprobs,
        case.old,
        advantages_B,
        case.mask,
        generator=torch.Generator().manual_seed(3),
        share=share,
        low=low,
        high=high,
    )
    chosen = {(int(i), int(t)) for i, t in dropped_BT.nonzero()}
    assert chosen <= open_tokens
    assert len(chosen) == min(int(share * len(tokens)), len(open_tokens)) > 0
    terms = ppo_terms(case.ragged(case.logprobs), case.ragged(case.old), advantages, 0.2, 0.2)
    objective = total(
        [
            term
            for i, reply in enumerate(terms)
            for t, term in enumerate(reply)
            if (i, t) not in chosen
        ]
    )
    ours = clip_cov_loss(
        case.logprobs, case.old, advantages_B, case.mask, dropped_BT, counts=case.counts
    )
    agree(ours, -objective / len(tokens), case.logprobs)


def test_grpo_passk_trains_the_best_reply_only(case: Case) -> None:
    advantages = []
    for group in REWARDS:
        first, second = sorted(group, reverse=True)[:2]
        best = (first - second) / (sample_std(group) + 1e-6)
        advantages += [best if r == first else 0.0 for r in group]
    terms = ppo_terms(case.ragged(case.logprobs), case.ragged(case.old), advantages, 0.2, 0.2)
    objective = total([total(reply) / len(reply) for reply in terms]) / B
    ours = grpo_loss(
        case.logprobs,
        case.old,
        pass_at_k_advantages(rewards_tensor()).flatten(),
        case.mask,
        counts=case.counts,
    )
    agree(ours, -objective, case.logprobs)


def kl_divergence(p: Sequence[Tensor], q: Sequence[Tensor]) -> Tensor:
    return total([a * torch.log(a / b) for a, b in zip(p, q, strict=True)])


@pytest.mark.parametrize("form", ["mse", "forward-kl", "js"])
@pytest.mark.parametrize(("target", "alpha"), [("rewards", 1.0), ("advantages", 1 / 15)])
def test_dmpo_adds_a_distance_between_two_softmaxes(
    case: Case, form: str, target: str, alpha: float
) -> None:
    weight = 0.7
    terms = ppo_terms(case.ragged(case.logprobs), case.ragged(case.old), all_z_scores(), 0.2, 0.2)
    loss = -total([total(reply) / len(reply) for reply in terms]) / B
    replies = case.ragged(case.logprobs)
    for number, group in enumerate(REWARDS):
        values = group if target == "rewards" else z_scores(group)
        highest = max(values)
        p = [torch.tensor(math.exp((v - highest) / alpha), dtype=torch.float64) for v in values]
        p = [x / total(p) for x in p]
        phi = [total(r) / len(r) for r in replies[number * G : (number + 1) * G]]
        q = [torch.exp(x) / total([torch.exp(y) for y in phi]) for x in phi]
        if form == "mse":
            distance = total([(a - b) ** 2 for a, b in zip(p, q, strict=True)]) / G
        elif form == "forward-kl":
            distance = kl_divergence(p, q)
        else:
            m = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
            distance = (kl_divergence(p, m) + kl_divergence(q, m)) / 2
        loss = loss + weight * distance / P
    ours = dmpo_loss(
        case.logprobs,
        case.old,
        group_relative_advantages(rewards_tensor()).flatten(),
        case.mask,
        rewards_tensor(),
        torch.arange(B).reshape(P, G),
        counts=case.counts,
        weight=weight,
        alpha=alpha,
        form=form,
        target=target,
    )
    agree(ours, loss, case.logprobs)


@pytest.mark.parametrize("placement", ["group", "response"])
@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_mupo_weighs_local_advantages_by_cluster(case: Case, placement: str, beta: float) -> None:
    labels = ((0, 0, 0, 1), (1, 1, 0, 0))
    objective = torch.zeros((), dtype=torch.float64)
    new, old = case.ragged(case.logprobs), case.ragged(case.old)
    for number, (group, marks) in enumerate(zip(REWARDS, labels, strict=True)):
        for k in (0, 1):
            members = [i for i in range(G) if marks[i] == k]
            w = (G / (2 * len(members))) ** beta
            local = [group[i] for i in members]
            advantages = z_scores(local) if len(local) > 1 else [0.0]
            for i, advantage in zip(members, advantages, strict=True):
                row = number * G + i
                reply = ppo_terms([new[row]], [old[row]], [advantage], 0.2, 0.2)[0]
                share = w / len(members) if placement == "group" else w / G
                objective = objective + share * total(reply) / len(reply) / P
    clusters_PG = torch.tensor(labels)
    ours = mupo_loss(
        case.logprobs,
        case.old,
        cluster_advantages(rewards_tensor(), clusters_PG).flatten(),
        balance_weights(clusters_PG, beta=beta, placement=placement).flatten(),
        case.mask,
        counts=case.counts,
    )
    agree(ours, -objective, case.logprobs)


def test_share_grpo_sums_over_both_variants_of_the_question(case: Case) -> None:
    variants, replies = 2, 2
    rewards = ((1.0, 0.2), (0.0, 0.7))
    pooled = [r for variant in rewards for r in variant]
    overall, local = z_scores(pooled), [z_scores(variant) for variant in rewards]
    new, old = case.ragged(case.logprobs), case.ragged(case.old)
    place = {
        (row.sampled_under, row.reply, row.scored_under): number
        for number, row in enumerate(shared_rows(questions=1, variants=variants, replies=replies))
    }
    objective = torch.zeros((), dtype=torch.float64)
    for i in range(replies):
        for j in range(variants):
            for k in range(variants):
                advantage = overall[j * replies + i] + (local[j][i] if j == k else 0.0)
                row = place[j, i, k]
                reply = ppo_terms([new[row]], [old[row]], [advantage], 0.2, 0.2)[0]
                objective = objective + total(reply) / len(reply) / (replies * variants**2)
    rewards_PMN = torch.tensor([rewards], dtype=torch.float64)
    ours = share_grpo_loss(
        case.logprobs,
        case.old,
        hierarchical_advantages(rewards_PMN).flatten(),
        case.mask,
        counts=case.counts,
    )
    agree(ours, -objective, case.logprobs)


@pytest.mark.parametrize("term", ["k2", "k3", "ratio-k1", "ratio-k3"])
def test_kl_terms_are_their_formulas(case: Case, term: str) -> None:
    loss = torch.zeros((), dtype=torch.float64)
    for news, olds, refs in zip(
        case.ragged(case.logprobs), case.ragged(case.old), case.ragged(case.ref), strict=True
    ):
        for n, o, r in zip(news, olds, refs, strict=True):
            x = n - r
            value = {"k2": x * x / 2, "k3": 1 / torch.exp(x) - 1 + x}.get(term.split("-")[-1], x)
            loss = loss + (value * torch.exp(n - o) if term.startswith("ratio") else value)
    ours = kl_loss(
        case.logprobs,
        case.old,
        case.ref,
        case.mask,
        counts=case.counts,
        term=term,
        aggregation="token-mean",
    )
    agree(ours, loss / sum(LENGTHS), case.logprobs)
