"""Several replies to one prompt in one row: prompt and picture are encoded once for all of them.

A tree is a prompt and a branch for each of its replies. No branch sees another one, and positions
go on behind the prompt, so every log-probability is that of the reply alone. Trees of different
prompts stand side by side in a batch; the two-pass gradient of groups has no use for them, since
it shares the prompt by its keys and values.

N replies in all, B trees, S tokens of the widest tree, T tokens of the longest reply, V vocabulary,
H width of the model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from trainers.encoding import Prompt
from trainers.policy import Policy, pad_replies
from trainers.prefix import positions_after, prompt_positions
from trainers.token_logprobs import token_logprobs

__all__ = ["Tree", "forest_logprobs"]


@dataclass(frozen=True, slots=True)
class Tree:
    """A prompt and replies to it, each of at least one token."""

    prompt: Prompt
    replies: tuple[Tensor, ...]

    @property
    def width(self) -> int:
        """Tokens of its row.

        The last prompt token stands before each reply; a reply's last token predicts nothing and
        is left out.
        """
        return self.prompt.length - 1 + sum(len(reply) for reply in self.replies)


def forest_logprobs(policy: Policy, trees: Sequence[Tree]) -> Tensor:
    """Log-probabilities of all replies, shape (N, T); what is padded is arbitrary.

    Args:
        policy: The model and its sampling distribution.
        trees: Trees whose pictures are of one shape (``Prompt.shape``).
    """
    device = policy.device
    width = max(tree.width for tree in trees)
    rows = [_row(policy, tree, width) for tree in trees]
    branch_BS = torch.stack([row.branch_S for row in rows])
    with policy.autocast():
        hidden_BSH = policy.model.model(
            input_ids=torch.stack([row.ids_S for row in rows]).to(device),
            attention_mask=_bias(branch_BS).to(device),
            position_ids=torch.cat([row.positions for row in rows], dim=-2).to(device),
            use_cache=False,
            **_pictures(trees, width, device),
        ).last_hidden_state
        replies = [reply for tree in trees for reply in tree.replies]
        steps = max(len(reply) for reply in replies)
        tree_N = torch.tensor([number for number, row in enumerate(rows) for _ in row.starts])
        start_N = torch.tensor([start for row in rows for start in row.starts])
        place_NT = (start_N[:, None] + torch.arange(steps)).clamp(max=width - 1)
        head: Any = policy.model.get_output_embeddings()
        logits_NTV = head(hidden_BSH[tree_N[:, None].to(device), place_NT.to(device)])
    return token_logprobs(
        logits_NTV,
        pad_replies(replies).to(device),
        temperature=policy.temperature,
        banned_ids=policy.banned_ids,
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """One tree as tokens, filled up on the right."""

    ids_S: Tensor
    branch_S: Tensor
    """0 in the prompt, 1, 2, ... in the branches, -1 where filled up."""
    positions: Tensor
    starts: tuple[int, ...]
    """Where the first token of each reply is predicted."""


def _row(policy: Policy, tree: Tree, width: int) -> _Row:
    prompt_L, last = tree.prompt.ids_1L[0], tree.prompt.length - 1
    before = prompt_positions(policy.model, tree.prompt)
    ids, branches, places = [prompt_L[:last]], [torch.zeros(last)], [before[..., :last]]
    starts, start = [], last
    for number, reply in enumerate(tree.replies, start=1):
        ids += [prompt_L[last:], reply[:-1]]
        branches.append(torch.full((len(reply),), float(number)))
        after = positions_after(policy.model, (before.max() + 1)[None], len(reply) - 1)
        places += [before[..., last:], after]
        starts.append(start)
        start += len(reply)
    rest = width - start
    return _Row(
        ids_S=pad(torch.cat(ids), (0, rest)),
        branch_S=pad(torch.cat(branches), (0, rest), value=-1.0),
        positions=pad(torch.cat(places, dim=-1), (0, rest)),
        starts=tuple(starts),
    )


def _bias(branch_BS: Tensor) -> Tensor:
    """What each token may look at, (B, 1, S, S): the past in the prompt and in its own branch."""
    width = branch_BS.shape[1]
    own = branch_BS[:, :, None] == branch_BS[:, None, :]
    seen = (own | (branch_BS[:, None, :] == 0)) & torch.ones(width, width, dtype=torch.bool).tril()
    return torch.zeros(seen.shape).masked_fill_(~seen, torch.finfo(torch.float32).min)[:, None]


def _pictures(trees: Sequence[Tree], width: int, device: torch.device) -> dict[str, Tensor]:
    """The pictures of the trees, one after the other."""
    found = {}
    for name in trees[0].prompt.pictures:
        parts = [tree.prompt.pictures[name] for tree in trees]
        if name == "mm_token_type_ids":
            parts = [pad(part, (0, width - part.shape[1])) for part in parts]
        found[name] = torch.cat(parts).to(device)
    return found
