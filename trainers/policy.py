"""A transformers model as a policy: log-probabilities of replies under the sampling distribution.

The distribution is softmax(logits / temperature) over all tokens that are no picture placeholders,
in sampling and in training alike. Dropout is off everywhere: scoring and training must agree.

R replies of one prompt, T reply tokens, L prompt tokens, V vocabulary, H width of the model.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from trainers.adapters import adapter_off, adapter_state, merged_state
from trainers.encoding import Encoder, Prompt
from trainers.fsdp import shards_of
from trainers.prefix import (
    Prefix,
    encode_prompt,
    positions_after,
    prompt_positions,
    reply_hidden,
)
from trainers.token_logprobs import scaled_logits, token_logprobs

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
        return scaled_logits(logits, temperature=self.temperature, banned_ids=self.banned_ids)

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

    def _chosen(self, logits: Tensor, tokens: Tensor) -> Tensor:
        """Log-softmax at the chosen tokens; over a large vocabulary a part at a time."""
        return token_logprobs(
            logits, tokens, temperature=self.temperature, banned_ids=self.banned_ids
        )

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

    def save(self, folder: Path, weights: Mapping[str, Tensor] | None = None) -> None:
        """Writes a Hugging Face folder; an adapter is merged into its weights there.

        Args:
            folder: Where to.
            weights: What to write instead of the weights that the model computes with.
        """
        if weights is None and (adapter_state(self.model) or shards_of(self.model)):
            weights = merged_state(self.model)
        state = {} if weights is None else {"state_dict": dict(weights)}
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
