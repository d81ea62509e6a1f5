"""A batch as verl has it: rows of three groups shuffled, of unequal size, one row of padding."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor

from trainers.engines.verl_groups import BatchRows, rows_at_hand

T = 7
UIDS = ("q", "p", "r", "q", "pad", "p", "r", "q", "p", "r", "p", "q")
"""Four replies to p and q, three to r, and a row that verl added."""
TRUTH = {
    "task": "maximum_independent_set",
    "instance": {"num_vertices": 6, "edges": [[0, 1], [2, 3], [4, 5]]},
    "reference_objective": 3,
    "reference_status": "optimal",
}


@dataclass
class Ragged:
    """The batch; rewards as token scores at each reply's last token."""

    uids: tuple[str, ...]
    lengths: list[int]
    rewards: list[float]
    new: Tensor
    old: Tensor
    config: dict[str, Any] = field(default_factory=dict)

    @property
    def mask(self) -> Tensor:
        return torch.arange(T)[None, :] < torch.tensor(self.lengths)[:, None]

    @property
    def token_rewards(self) -> Tensor:
        scores = torch.zeros(len(self.uids), T, dtype=torch.float64)
        for row, length in enumerate(self.lengths):
            scores[row, max(length - 1, 0)] = self.rewards[row]
        return scores

    def members(self) -> dict[str, list[int]]:
        """Rows with tokens by prompt, written without the code under test."""
        found: dict[str, list[int]] = {}
        for row, uid in enumerate(self.uids):
            if self.lengths[row]:
                found.setdefault(uid, []).append(row)
        return found


@pytest.fixture
def ragged() -> Ragged:
    generator = torch.Generator().manual_seed(3)
    lengths = [7, 3, 5, 1, 0, 6, 2, 4, 7, 3, 5, 2]
    # r is flat, and 0.1 + 0.8 is not 0.9 in binary
    rewards = [1.1, 0.6, 0.9, 0.1, 0.0, 1.1, 0.1 + 0.8, 0.35, 0.0, 0.9, 0.1, 0.1]
    drawn = torch.randn(2, len(UIDS), T, generator=generator, dtype=torch.float64)
    new = -drawn[0].abs() - 0.1
    return Ragged(UIDS, lengths, rewards, new, new + 0.3 * drawn[1])


@pytest.fixture
def replies() -> tuple[str, ...]:
    """Answers of two clear kinds for each prompt; an edge joins 0 and 1. Padding has none."""
    answers = {
        0: "[0, 2, 4]",
        7: "[0, 2, 5]",
        3: "[1, 3]",
        11: "[1, 3, 5]",
        1: "[0, 2, 4]",
        5: "[0, 2]",
        8: "[0, 1]",
        10: "[0, 1, 3]",
        2: "[0, 2, 4]",
        9: "[0, 2, 5]",
        6: "[1, 3, 5]",
    }
    return tuple(f"Answer: {answers[row]}" if row in answers else "" for row in range(12))


@pytest.fixture
def known(ragged: Ragged, replies: tuple[str, ...]) -> Iterator[Callable[..., BatchRows]]:
    """Puts what our trainer class knows within reach of the estimators."""
    opened: list[Any] = []

    def know(**changes: Any) -> BatchRows:
        values = {
            "uids": ragged.uids,
            "old_logprobs_BT": ragged.old,
            "replies": replies,
            "truths": (TRUTH,) * len(ragged.uids),
            "steps": 10,
            "sequences": 11,
        }
        manager = rows_at_hand(BatchRows(**{**values, **changes}))
        opened.append(manager)
        return manager.__enter__()

    yield know
    for manager in reversed(opened):
        manager.__exit__(None, None, None)


class Section(dict[str, Any]):
    """A section of a configuration as omegaconf has it: keys are attributes as well."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


@pytest.fixture
def configured() -> Callable[..., Any]:
    """verl's configuration with what the checks look at, from dotted keys."""

    def build(**changes: Any) -> Any:
        values = {
            "algorithm.adv_estimator": "npbench_grpo",
            "algorithm.rollout_correction.rollout_is": None,
            "algorithm.rollout_correction.bypass_mode": False,
            "actor_rollout_ref.actor.policy_loss.loss_mode": "npbench_grpo",
            "actor_rollout_ref.actor.loss_agg_mode": "seq-mean-token-mean",
            "actor_rollout_ref.actor.loss_scale_factor": None,
            "actor_rollout_ref.actor.ppo_mini_batch_size": 4,
            "actor_rollout_ref.actor.ppo_epochs": 1,
            "actor_rollout_ref.rollout.n": 4,
            "data.train_batch_size": 4,
            "data.max_response_length": 64,
            **changes,
        }
        root = Section()
        for name, value in values.items():
            *sections, key = name.split(".")
            place = root
            for section in sections:
                place = place.setdefault(section, Section())
            place[key] = value
        return root

    return build


@pytest.fixture
def actor() -> Callable[..., Any]:
    """The part of verl's ActorConfig that a policy loss reads."""

    def build(**changes: Any) -> Any:
        values = {
            "clip_ratio_low": 0.2,
            "clip_ratio_high": 0.2,
            "clip_ratio_c": None,
            "loss_scale_factor": None,
            "global_batch_info": {},
        }
        return Section({**values, **changes})

    return build
