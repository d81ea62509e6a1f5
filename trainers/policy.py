"""A transformers model as a policy: log-probabilities of replies under the sampling distribution.

The distribution is softmax(logits / temperature) over all tokens that are no picture placeholders,
in sampling and in training alike. Dropout is off everywhere: scoring and training must agree.

R replies of one prompt, T reply tokens, L prompt tokens, V vocabulary, H width of the model.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from trainers.adapters import adapter_off, adapter_state, merged_state
from trainers.encoding import Encoder, Prompt
from trainers.prefix import (
    Prefix,
    encode_prompt,
    positions_after,
    prompt_positions,
    reply_hidden,
)

__all__ = ["Policy", "pad_replies"]


def pad_replies(replies: Sequence[Tensor]) -> Tensor:
    """Replies side by side, short ones filled up with id 0; the fill is never looked at."""
    return nn.utils.rnn.pad_sequence(list(replies), batch_first=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A model, its encoder, and the distribution that replies are drawn from."""

    model: Any
    encoder: Encoder
    temperature: float
    end_ids: tuple[int, ...]
    """All ids that end a reply."""
    banned_ids: tuple[int, ...]
    """Picture and video placeholders."""
    precision: torch.dtype = torch.float32
    without_adapter: bool = False
    """The same model with its adapter switched off: the reference of a LoRA run."""

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        device: torch.device = next(self.model.parameters()).device
        return device

    def autocast(self) -> AbstractContextManager[Any]:
        """The context in which the model runs."""
        if self.precision == torch.float32:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=self.precision)

    def as_scored(self) -> AbstractContextManager[Any]:
        """The context in which the model is this policy; for scoring without gradient only."""
        return adapter_off(self.model) if self.without_adapter else nullcontext()

    def trained(self) -> list[nn.Parameter]:
        """The parameters with gradient."""
        return [p for p in self.model.parameters() if p.requires_grad]

    def scaled(self, logits: Tensor) -> Tensor:
        """Logits of the sampling distribution, in float32."""
        scaled = logits.float() / self.temperature
        if not self.banned_ids:
            return scaled
        banned = torch.tensor(self.banned_ids, device=logits.device)
        return scaled.index_fill(-1, banned, -torch.inf)

    def prefix(self, prompt: Prompt, *, hidden: bool = False) -> Prefix:
        """A prompt, run once; with gradient unless that is switched off."""
        with self.autocast():
            return encode_prompt(self.model, prompt.to(self.device), hidden=hidden)

    def logprobs(self, prefix: Prefix, replies: Sequence[Tensor]) -> Tensor:
        """Log-probability of each token of replies behind a prefix; what is padded is arbitrary."""
        tokens_RT = pad_replies(replies).to(self.device)
        first_R = self._chosen(prefix.last_logits_V.expand(len(replies), -1), tokens_RT[:, 0])
        if tokens_RT.shape[1] == 1:
            return first_R[:, None]
        with self.autocast():
            logits_RTV = reply_hidden(self.model, prefix, tokens_RT[:, :-1]).logits
        rest_RT = self._chosen(logits_RTV, tokens_RT[:, 1:])
        return torch.cat([first_R[:, None], rest_RT], dim=1)

    def plain_logprobs(self, prompt: Prompt, replies: Sequence[Tensor]) -> Tensor:
        """The same with the prompt before each reply, as most trainers have it."""
        prompt = prompt.to(self.device)
        tokens_RT = pad_replies(replies).to(self.device)
        rows, steps = tokens_RT.shape
        ids = torch.cat([prompt.ids_1L.expand(rows, -1), tokens_RT], dim=1)
        first = prompt_positions(self.model, prompt)
        starts_R = (first.max() + 1).expand(rows)
        after = positions_after(self.model, starts_R, steps)
        before = (
            first.expand(*after.shape[:-1], -1) if first.ndim == 2 else first.expand(-1, rows, -1)
        )
        with self.autocast():
            logits_RTV = self.model(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                position_ids=torch.cat([before, after], dim=-1),
                use_cache=False,
                logits_to_keep=steps + 1,
                **_repeated(prompt, rows, steps),
            ).logits
        return self._chosen(logits_RTV[:, :-1], tokens_RT)

    def side_by_side(self, prompts: Sequence[Prompt], replies: Sequence[Tensor]) -> Tensor:
        """Log-probabilities of one reply to each of several prompts, in one pass.

        Rows are filled up on the right, where no token looks; the prompts' pictures must be of one
        shape (``Prompt.shape``).
        """
        prompts = [prompt.to(self.device) for prompt in prompts]
        rows = [
            torch.cat([prompt.ids_1L[0], reply.to(self.device)])
            for prompt, reply in zip(prompts, replies, strict=True)
        ]
        ids_BS = pad_replies(rows)
        width, shortest = ids_BS.shape[1], min(prompt.length for prompt in prompts)
        lengths_B = torch.tensor([len(row) for row in rows], device=self.device)
        seen_BS = torch.arange(width, device=self.device) < lengths_B[:, None]
        positions = [self._row_positions(prompt, width) for prompt in prompts]
        with self.autocast():
            logits = self.model(
                input_ids=ids_BS,
                attention_mask=seen_BS.long(),
                position_ids=torch.cat(positions, dim=-2),
                use_cache=False,
                logits_to_keep=width - shortest + 1,
                **_beside(prompts, width),
            ).logits
        starts = [prompt.length - shortest for prompt in prompts]
        steps = max(len(reply) for reply in replies)
        places_BT = torch.tensor(starts, device=self.device)[:, None] + torch.arange(
            steps, device=self.device
        )
        places_BT = places_BT.clamp(max=logits.shape[1] - 1)
        logits_BTV = logits.gather(1, places_BT[..., None].expand(-1, -1, logits.shape[-1]))
        return self._chosen(logits_BTV, pad_replies(replies).to(self.device))

    def _row_positions(self, prompt: Prompt, width: int) -> Tensor:
        """Positions of a prompt and of all that follows it up to a width."""
        first = prompt_positions(self.model, prompt)
        start_1 = (first.max() + 1)[None]
        after = positions_after(self.model, start_1, width - prompt.length)
        before = first.expand(*after.shape[:-1], -1) if first.ndim == 2 else first
        return torch.cat([before, after], dim=-1)

    def _chosen(self, logits: Tensor, tokens: Tensor) -> Tensor:
        """Log-softmax at the chosen tokens."""
        scaled = self.scaled(logits)
        picked = scaled.gather(-1, tokens[..., None]).squeeze(-1)
        return picked - scaled.logsumexp(-1)

    def mean_hidden(self, prompt: Prompt, replies: Sequence[Tensor]) -> Tensor:
        """The mean last hidden state of each reply: the embedding ``policy``."""
        with torch.no_grad():
            prefix = self.prefix(prompt)
            tokens_RT = pad_replies(replies).to(self.device)
            with self.autocast():
                outputs = reply_hidden(
                    self.model, prefix, tokens_RT, output_hidden_states=True, logits_to_keep=1
                )
            hidden_RTH = outputs.hidden_states[-1].float()
            lengths_R = torch.tensor([len(reply) for reply in replies], device=self.device)
            kept_RT = torch.arange(tokens_RT.shape[1], device=self.device) < lengths_R[:, None]
            total_RH = hidden_RTH.masked_fill(~kept_RT[..., None], 0.0).sum(1)
            mean_RH: Tensor = total_RH / lengths_R[:, None]
            return mean_RH

    def save(self, folder: Path) -> None:
        """Writes a Hugging Face folder; an adapter is merged into its weights there."""
        adapted = bool(adapter_state(self.model))
        state = {"state_dict": merged_state(self.model)} if adapted else {}
        self.model.save_pretrained(folder, **state)
        self.encoder.save(folder)


def _repeated(prompt: Prompt, rows: int, steps: int) -> dict[str, Tensor]:
    """A prompt's pictures for each of ``rows`` rows that go on for ``steps`` tokens."""
    found = {}
    for name, tensor in prompt.pictures.items():
        if name == "mm_token_type_ids":
            # a reply is text: type 0
            found[name] = torch.nn.functional.pad(tensor, (0, steps)).expand(rows, -1)
        else:
            found[name] = tensor.repeat(rows, *[1] * (tensor.ndim - 1))
    return found


def _beside(prompts: Sequence[Prompt], width: int) -> dict[str, Tensor]:
    """The pictures of several prompts, one after the other."""
    found = {}
    for name in prompts[0].pictures:
        parts = [prompt.pictures[name] for prompt in prompts]
        if name == "mm_token_type_ids":
            parts = [nn.functional.pad(part, (0, width - part.shape[1])) for part in parts]
        found[name] = torch.cat(parts)
    return found
