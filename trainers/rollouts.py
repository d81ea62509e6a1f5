"""Replies to prompts, with the log-probabilities under which they were drawn.

Each sample has a seed of its own, a hash of run, step, prompt and sample index, from which all its
random numbers come: it does not depend on what is sampled beside it. The ids drawn here are the ids
that are trained on.

P prompts, R rows of all their replies, L prompt tokens, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from npbench.rng import digest
from trainers.encoding import Prompt
from trainers.policy import Policy
from trainers.prefix import Prefix, positions_after

__all__ = ["Backend", "Reply", "Request", "TransformersBackend", "sample_seed"]


def sample_seed(run_seed: int, step: int | str, prompt: str, sample: int) -> int:
    """The seed of one sample, in [0, 2^63)."""
    return int(digest("npbench-rollout", run_seed, step, prompt, sample)[:16], 16) >> 1


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt and the seeds of the replies wanted to it."""

    prompt: Prompt
    seeds: tuple[int, ...]

    def __post_init__(self) -> None:
        """Refuses a seed that occurs twice: two replies would be the same."""
        if len(set(self.seeds)) != len(self.seeds):
            raise ValueError(f"seeds of a group must all differ, got {self.seeds}")


@dataclass(frozen=True, slots=True)
class Reply:
    """One sampled reply."""

    ids: Tensor
    """Token ids, the ending one included, on the CPU."""
    logprobs: Tensor
    """Of the sampling distribution (temperature applied, placeholders left out), float32."""
    entropy: float
    """Mean entropy of the sampling distribution over its tokens, in nats."""
    finish_reason: str
    """``stop`` where the model ended it, ``length`` where the limit did."""
    seed: int

    @property
    def truncated(self) -> bool:
        """Whether the limit cut it off."""
        return self.finish_reason == "length"


class Backend(Protocol):
    """What draws replies; groups come back in the order asked for, whatever finished first."""

    def generate(
        self, requests: Sequence[Request], *, max_tokens: int, greedy: bool = False
    ) -> list[tuple[Reply, ...]]:
        """The replies to each request."""
        ...


@dataclass(slots=True)
class _Rows:
    """The replies under way; rows that have ended are taken out."""

    tokens: list[list[int]]
    logprobs: list[list[float]]
    entropies: list[float]
    ended: list[bool]


@dataclass(frozen=True, slots=True)
class TransformersBackend:
    """Sampling with the trained model itself: nothing to synchronise."""

    policy: Policy
    rows_at_once: int = 256

    def generate(
        self, requests: Sequence[Request], *, max_tokens: int, greedy: bool = False
    ) -> list[tuple[Reply, ...]]:
        """The replies to each request, a bounded number of rows at a time.

        A group that is larger than the bound is drawn in parts, whole ones otherwise.
        """
        found: list[list[Reply]] = [[] for _ in requests]
        batch: list[tuple[int, Request]] = []

        def draw() -> None:
            parts = [part for _, part in batch]
            replies = self._generate(parts, max_tokens, greedy=greedy) if parts else []
            for (number, _), drawn in zip(batch, replies, strict=True):
                found[number] += drawn
            batch.clear()

        for number, request in enumerate(requests):
            for start in range(0, len(request.seeds), self.rows_at_once):
                seeds = request.seeds[start : start + self.rows_at_once]
                if sum(len(one.seeds) for _, one in batch) + len(seeds) > self.rows_at_once:
                    draw()
                batch.append((number, Request(request.prompt, seeds)))
        draw()
        return [tuple(replies) for replies in found]

    @torch.no_grad()
    def _generate(
        self, requests: Sequence[Request], max_tokens: int, *, greedy: bool
    ) -> list[tuple[Reply, ...]]:
        policy = self.policy
        prefixes = [policy.prefix(request.prompt) for request in requests]
        counts = [len(request.seeds) for request in requests]
        seeds = [seed for request in requests for seed in request.seeds]
        draws_RT = torch.stack([_draws(seed, max_tokens) for seed in seeds]).to(policy.device)
        rows = _Rows(
            [[] for _ in seeds], [[] for _ in seeds], [0.0] * len(seeds), [False] * len(seeds)
        )
        logits_RV = torch.stack([p.last_logits_V for p in prefixes]).repeat_interleave(
            torch.tensor(counts, device=policy.device), dim=0
        )
        cache, seen_RL, starts_R = _joined(prefixes, counts)
        alive = list(range(len(seeds)))
        for step in range(max_tokens):
            chosen_R = self._choose(logits_RV, draws_RT[:, step], rows, alive, greedy=greedy)
            keep = [place for place, row in enumerate(alive) if not rows.ended[row]]
            if not keep or step + 1 == max_tokens:
                break
            if len(keep) < len(alive):
                kept = torch.tensor(keep, device=policy.device)
                cache.batch_select_indices(kept)
                chosen_R, draws_RT = chosen_R[kept], draws_RT[kept]
                seen_RL, starts_R = seen_RL[kept], starts_R[kept]
                alive = [alive[place] for place in keep]
            seen_RL = torch.cat([seen_RL, seen_RL.new_ones(len(alive), 1)], dim=1)
            with policy.autocast():
                logits_RV = policy.model(
                    input_ids=chosen_R[:, None],
                    attention_mask=seen_RL,
                    position_ids=positions_after(policy.model, starts_R, 1, offset=step),
                    cache=cache,
                    use_cache=True,
                ).logits[:, -1]
        replies = iter(
            Reply(
                torch.tensor(rows.tokens[row]),
                torch.tensor(rows.logprobs[row]),
                rows.entropies[row] / len(rows.tokens[row]),
                "stop" if rows.ended[row] else "length",
                seeds[row],
            )
            for row in range(len(seeds))
        )
        return [tuple(next(replies) for _ in range(count)) for count in counts]

    def _choose(
        self, logits_RV: Tensor, draws_R: Tensor, rows: _Rows, alive: list[int], *, greedy: bool
    ) -> Tensor:
        """The next token of each row, written down."""
        log_RV = self.policy.scaled(logits_RV).log_softmax(-1)
        probs_RV = log_RV.exp()
        if greedy:
            chosen_R = log_RV.argmax(-1)
        else:
            # the first token at which the distribution function exceeds the row's own number;
            # one of probability 0 is never the first
            cumulated_RV = probs_RV.double().cumsum(-1)
            aim_R1 = draws_R[:, None] * cumulated_RV[:, -1:]
            chosen_R = torch.searchsorted(cumulated_RV, aim_R1, right=True).squeeze(-1)
            chosen_R = chosen_R.clamp(max=log_RV.shape[-1] - 1)
        picked = log_RV.gather(-1, chosen_R[:, None]).squeeze(-1).tolist()
        entropies = torch.special.entr(probs_RV).sum(-1).tolist()
        for row, token, logprob, entropy in zip(
            alive, chosen_R.tolist(), picked, entropies, strict=True
        ):
            rows.tokens[row].append(token)
            rows.logprobs[row].append(logprob)
            rows.entropies[row] += entropy
            rows.ended[row] = token in self.policy.end_ids
        return chosen_R


def _draws(seed: int, count: int) -> Tensor:
    """All random numbers of a sample, one for each token that it may have."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(count, generator=generator, dtype=torch.float64)


def _joined(prefixes: Sequence[Prefix], counts: Sequence[int]) -> tuple[Any, Tensor, Tensor]:
    """One cache for all replies of all prompts, padded on the left; its mask; first positions."""
    from transformers import DynamicCache

    device = prefixes[0].last_logits_V.device
    width = max(prefix.length for prefix in prefixes)
    repeats = torch.tensor(counts, device=device)
    cache = DynamicCache()
    for layer in range(len(prefixes[0].keys_values)):
        for_layer = [
            torch.cat(
                [
                    torch.nn.functional.pad(
                        prefix.keys_values[layer][part], (0, 0, width - prefix.length, 0)
                    )
                    for prefix in prefixes
                ]
            ).repeat_interleave(repeats, dim=0)
            for part in (0, 1)
        ]
        cache.update(for_layer[0], for_layer[1], layer)
    lengths_P = torch.tensor([prefix.length for prefix in prefixes], device=device)
    seen_PL = (torch.arange(width, device=device) >= width - lengths_P[:, None]).long()
    starts_P = torch.tensor([prefix.next_position for prefix in prefixes], device=device)
    return cache, seen_PL.repeat_interleave(repeats, dim=0), starts_P.repeat_interleave(repeats)
