"""What one optimiser step trains on: prompts with the rows that stand behind them, and numbers.

P questions, G replies of a question, B training rows, T tokens. Each reply stands once, behind its
own prompt; in Share-GRPO it stands behind every variant of its question.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from trainers.config import Config
from trainers.encoding import Prompt
from trainers.groups import Group
from trainers.losses import Counts, mask_from_lengths, rows_by_group
from trainers.policy import pad_replies

__all__ = ["Batch", "Chunk", "Section", "make_batch"]


@dataclass(frozen=True, slots=True)
class Section:
    """A prompt, and the training rows that stand behind it."""

    prompt: Prompt
    replies: tuple[Tensor, ...]
    first_row: int

    def chunks(self, *, tokens_at_once: int) -> "Iterator[Chunk]":
        """The rows in micro-batches, short replies first, at least one row each."""
        order = sorted(range(len(self.replies)), key=lambda row: len(self.replies[row]))
        rows: list[int] = []
        for row in order:
            width = self.prompt.length + len(self.replies[row])
            if rows and (len(rows) + 1) * width > tokens_at_once:
                yield self._chunk(rows)
                rows = []
            rows.append(row)
        yield self._chunk(rows)

    def _chunk(self, rows: Sequence[int]) -> "Chunk":
        replies = tuple(self.replies[row] for row in rows)
        return Chunk(replies, torch.tensor(rows) + self.first_row)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some rows of one section."""

    replies: tuple[Tensor, ...]
    rows: Tensor
    """Their numbers in the batch."""

    @property
    def width(self) -> int:
        """Tokens of the longest."""
        return max(len(reply) for reply in self.replies)


@dataclass(frozen=True, slots=True)
class Batch:
    """Whole groups as tensors, on the CPU."""

    groups: tuple[Group, ...]
    sections: tuple[Section, ...]
    rewards_PG: Tensor
    """NaN where unscorable, or where the reply is left out."""
    mask_BT: Tensor
    """Tokens to train on."""
    sampler_BT: Tensor
    """The sampler's log-probabilities, 0 beyond a reply's end."""
    reply_B: Tensor
    """Each row's reply, numbered p * G + i."""

    @property
    def counts(self) -> Counts:
        """Counts of the whole optimiser step."""
        return Counts.of(self.mask_BT, groups=len(self.groups))

    def by_group(self) -> Tensor:
        """The row of each reply as index_PG, where each reply stands in one row."""
        size = self.rewards_PG.shape[1]
        return rows_by_group((self.reply_B // size).tolist(), group_size=size)

    def of_replies(self, values_PG: Tensor) -> Tensor:
        """Values of replies at their rows."""
        return values_PG.flatten()[self.reply_B]

    def terms(self, name: str) -> Tensor:
        """One reward term, before its weight; NaN where it could not be scored."""
        return _numbers([[one.terms[name] for one in group.scored] for group in self.groups])


def _numbers(values: list[list[float | None]]) -> Tensor:
    return torch.tensor([[float("nan") if v is None else v for v in row] for row in values])


def make_batch(groups: Sequence[Group], config: Config) -> Batch:
    """The training rows of whole groups.

    Unscorable replies, and truncated ones where they are to be left out, have no token in the mask
    and enter no baseline and no count.
    """
    totals = []
    for group in groups:
        row: list[float | None] = []
        for reply, one in zip(group.replies, group.scored, strict=True):
            cut = config.sampling.truncated if reply.truncated else "count"
            row.append({"count": one.total, "mask": None, "zero": 0.0}[cut])
        totals.append(row)
    rewards_PG = _numbers(totals)
    sections: list[Section] = []
    reply_of_row: list[int] = []
    rows: list[tuple[Tensor, Tensor]] = []
    size = config.group_size
    for number, group in enumerate(groups):
        for prompt in group.prompts:
            ids = tuple(reply.ids for reply in group.replies)
            sections.append(Section(prompt, ids, len(rows)))
            rows += [(reply.ids, reply.logprobs) for reply in group.replies]
            reply_of_row += [number * size + i for i in range(size)]
    reply_B = torch.tensor(reply_of_row)
    lengths_B = torch.tensor([len(ids) for ids, _ in rows])
    mask_BT = mask_from_lengths(
        lengths_B,
        width=int(lengths_B.max()),
        truncated_B=rewards_PG.flatten()[reply_B].isnan(),
    )
    sampler_BT = pad_replies([logprobs for _, logprobs in rows])
    return Batch(tuple(groups), tuple(sections), rewards_PG, mask_BT, sampler_BT, reply_B)
