"""The rows of a verl batch by group, and what verl itself does not hand to an estimator.

verl balances lengths over processes, so rows stand in any order and groups are not contiguous. It
also pads a batch with rows that hold no token to train on, and a group loses members where a
rollout failed. So groups have any size, and rows without tokens belong to none.

P groups, G members of the largest, B rows, T tokens.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from npbench.errors import InputError

__all__ = ["BatchRows", "RaggedGroups", "VerlBatch", "rows_at_hand"]


@dataclass(frozen=True, slots=True)
class RaggedGroups:
    """Which row is which member of which group."""

    index_PG: Tensor
    """Row of each member; 0 where a group has fewer than G."""
    present_PG: Tensor
    """False there."""

    @classmethod
    def of(cls, group_of_row: Sequence[Hashable], alive_B: Tensor) -> "RaggedGroups":
        """The groups of the rows that are alive, in order of first appearance.

        Example:
            >>> import torch
            >>> groups = RaggedGroups.of(["p", "q", "p", "pad"], torch.tensor([1, 1, 1, 0]).bool())
            >>> groups.index_PG.tolist(), groups.present_PG.tolist()
            ([[0, 2], [1, 0]], [[True, True], [True, False]])
        """
        members: dict[Hashable, list[int]] = {}
        for row, (group, alive) in enumerate(zip(group_of_row, alive_B.tolist(), strict=True)):
            if alive:
                members.setdefault(group, []).append(row)
        width = max(map(len, members.values()), default=0)
        index = [[*rows, *[0] * (width - len(rows))] for rows in members.values()]
        present = [[place < len(rows) for place in range(width)] for rows in members.values()]
        shape = (len(members), width)
        return cls(
            torch.tensor(index, dtype=torch.long).reshape(shape),
            torch.tensor(present, dtype=torch.bool).reshape(shape),
        )

    def gather(self, values_B: Tensor, *, missing: float) -> Tensor:
        """Values of rows by group, ``missing`` where there is no member."""
        return values_B[self.index_PG].masked_fill(~self.present_PG, missing)

    def scatter(self, values_PG: Tensor, *, rows: int) -> Tensor:
        """Values by group at their rows, 0 for rows that are in no group."""
        values_B = values_PG.new_zeros(rows)
        values_B[self.index_PG[self.present_PG]] = values_PG[self.present_PG]
        return values_B

    def members(self) -> Iterator[Tensor]:
        """The rows of each group."""
        for index_G, present_G in zip(self.index_PG, self.present_PG, strict=True):
            yield index_G[present_G]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRows:
    """What our trainer class knows of the batch whose advantages verl is about to ask for."""

    uids: tuple[str, ...]
    """The prompt of each row, to see that these are the same rows."""
    old_logprobs_BT: Tensor | None = None
    replies: tuple[str, ...] | None = None
    truths: tuple[Any, ...] | None = None
    """``reward_model.ground_truth`` of each row."""
    step: int = 0
    steps: int = 1
    updates: int = 1
    """Optimiser steps that verl makes of this batch."""
    sequences: int = 0
    """The rows by which verl's sequence means divide: ``global_batch_size``."""
    aggregation: str = "seq-mean-token-mean"
    """verl's ``loss_agg_mode``."""
    report: dict[str, float] = field(default_factory=dict)
    """Numbers to log, which estimators have no other way to return."""


_ROWS: ContextVar[BatchRows | None] = ContextVar("npbench_verl_rows", default=None)


@contextmanager
def rows_at_hand(rows: BatchRows) -> Iterator[BatchRows]:
    """Lets our estimators see ``rows`` while verl calls them."""
    token = _ROWS.set(rows)
    try:
        yield rows
    finally:
        _ROWS.reset(token)


@dataclass(frozen=True, slots=True)
class VerlBatch:
    """A batch as an advantage estimator gets it, by group and in float64."""

    method: str
    uids: tuple[str, ...]
    groups: RaggedGroups
    rewards_PG: Tensor
    """NaN where unscorable or where there is no member."""
    mask_BT: Tensor

    @classmethod
    def of(
        cls, method: str, token_level_rewards: Tensor, response_mask: Tensor, index: Any
    ) -> "VerlBatch":
        """The batch.

        Raises:
            InputError: If there are no uids, or every group has one member.
        """
        if index is None:
            raise InputError(f"npbench_{method} needs the uid of each row, got none")
        mask_BT = response_mask.bool()
        uids = tuple(str(uid) for uid in index)
        groups = RaggedGroups.of(uids, mask_BT.any(-1))
        if groups.index_PG.numel() and groups.index_PG.shape[1] < 2:
            raise InputError(
                f"npbench_{method} needs at least 2 replies a prompt, got 1: set "
                f"actor_rollout_ref.rollout.n"
            )
        rewards_B = token_level_rewards.double().sum(-1)
        return cls(method, uids, groups, groups.gather(rewards_B, missing=torch.nan), mask_BT)

    def of_rows(self, values_PG: Tensor) -> Tensor:
        """Values by group at their rows."""
        return self.groups.scatter(values_PG, rows=len(self.mask_BT))

    def of_tokens(self, values_B: Tensor) -> Tensor:
        """Values of rows at each of their tokens."""
        return values_B[:, None].expand(self.mask_BT.shape).masked_fill(~self.mask_BT, 0.0)

    def log(self, numbers: Mapping[str, float]) -> None:
        """Hands numbers to our trainer class, if it is there."""
        rows = _ROWS.get()
        if rows is not None:
            rows.report.update({f"npbench/{name}": value for name, value in numbers.items()})

    def known(self) -> BatchRows:
        """What our trainer class knows of these rows.

        Raises:
            InputError: If another trainer class is at work, or the rows are others.
        """
        rows = _ROWS.get()
        if rows is None:
            raise InputError(
                f"npbench_{self.method} needs old log-probabilities or texts, which verl does not "
                f"pass to an estimator: set trainer.v1.trainer_mode=npbench"
            )
        if rows.uids != self.uids:
            raise InputError(
                f"npbench_{self.method} got {len(self.uids)} rows, which are not the "
                f"{len(rows.uids)} of the trainer or stand in another order"
            )
        return rows
