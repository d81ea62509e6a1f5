"""From a question to token ids and the pictures that belong to them, one prompt at a time.

A prompt is never padded, truncated or put beside another one here, so a picture cannot get to the
wrong row.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from npbench.errors import InputError

__all__ = ["Encoder", "Prompt", "load_encoder"]

PLACEHOLDER = "<image>"
"""Where a picture stands in a prompt's text; without it pictures come before the text."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """Token ids of one prompt and the tensors of its pictures."""

    ids_1L: Tensor
    pictures: Mapping[str, Tensor]
    """What the model's forward takes beside the ids: pixels, grids, token types."""

    @property
    def length(self) -> int:
        """Tokens, picture tokens included."""
        return int(self.ids_1L.shape[1])

    @property
    def shape(self) -> tuple[object, ...]:
        """Equal for prompts whose pictures may stand in one tensor."""
        kinds = sorted((name, tuple(p.shape[1:])) for name, p in self.pictures.items())
        return tuple(kind for kind in kinds if kind[0] != "mm_token_type_ids")

    def to(self, device: torch.device) -> "Prompt":
        """The same on another device."""
        pictures = {name: tensor.to(device) for name, tensor in self.pictures.items()}
        return Prompt(self.ids_1L.to(device), pictures)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """A checkpoint's tokenizer and, for a vision-language model, its picture processor."""

    tokenizer: Any
    processor: Any = None
    """The whole processor where transformers can build it."""
    pictures: Any = None
    """The bare picture processor where it cannot (Qwen's needs torchvision for videos)."""
    image_token_id: int | None = None
    chat_template: bool = True

    @property
    def reads_pictures(self) -> bool:
        """Whether prompts may hold pictures."""
        return self.processor is not None or self.pictures is not None

    def encode(self, text: str, images: Sequence[bytes] = ()) -> Prompt:
        """The prompt of a question, ready for a reply.

        Raises:
            InputError: If there are pictures and the model reads none, or their number is not that
                of the placeholders.
        """
        from PIL import Image

        if images and not self.reads_pictures:
            raise InputError("the model reads no pictures, but the data has some: use text rows")
        opened = [Image.open(io.BytesIO(image)).convert("RGB") for image in images]
        if not self.chat_template:
            if images:
                raise InputError("sampling.chat_template must be true for rows with pictures")
            return Prompt(self.tokenizer(text, return_tensors="pt")["input_ids"], {})
        content = _content(text, opened)
        if self.processor is None and self.pictures is None:
            content = text
        messages = [{"role": "user", "content": content}]
        if self.processor is not None:
            return self._by_processor(messages, opened)
        words = self.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
        return self._by_parts(words, opened)

    def _by_processor(self, messages: list[dict[str, Any]], images: list[Any]) -> Prompt:
        found = dict(
            self.processor.apply_chat_template(
                messages,
                add_generation_prompt=True,
                tokenize=True,
                return_dict=True,
                return_tensors="pt",
            )
        )
        ids_1L = found.pop("input_ids")
        found.pop("attention_mask", None)
        return Prompt(ids_1L, found if images else {})

    def _by_parts(self, words: str, images: list[Any]) -> Prompt:
        """Qwen's layout: one picture token for each merged patch, and token types."""
        if not images:
            ids_1L = self.tokenizer(words, return_tensors="pt", add_special_tokens=False)
            return Prompt(ids_1L["input_ids"], {})
        seen = dict(self.pictures(images=images, return_tensors="pt"))
        merged = self.pictures.merge_size**2
        counts = [int(grid.prod()) // merged for grid in seen["image_grid_thw"]]
        ids: list[int] = []
        for token in self.tokenizer(words, add_special_tokens=False)["input_ids"]:
            ids += [token] * (counts.pop(0) if token == self.image_token_id and counts else 1)
        ids_1L = torch.tensor([ids])
        types_1L = torch.eq(ids_1L, self.image_token_id or -1).to(torch.int32)
        return Prompt(ids_1L, {**seen, "mm_token_type_ids": types_1L})

    def ids(self, reply: str) -> list[int]:
        """The token ids of a given reply, without special tokens."""
        found: list[int] = self.tokenizer(reply, add_special_tokens=False)["input_ids"]
        return found

    def decode(self, ids: Sequence[int]) -> str:
        """The text of a reply, without special tokens."""
        text: str = self.tokenizer.decode(list(ids), skip_special_tokens=True)
        return text

    def save(self, folder: Path) -> None:
        """Writes what belongs beside the model."""
        for part in (self.processor, self.pictures, self.tokenizer):
            if part is not None:
                part.save_pretrained(folder)


def _content(text: str, images: list[Any]) -> Any:
    """Text and pictures in their order."""
    if not images:
        return [{"type": "text", "text": text}]
    pieces = text.split(PLACEHOLDER)
    if len(pieces) == 1:
        shown = [{"type": "image", "image": image} for image in images]
        return [*shown, {"type": "text", "text": text}]
    if len(pieces) != len(images) + 1:
        raise InputError(
            f"a prompt must hold one {PLACEHOLDER} for each picture, got {len(pieces) - 1} for "
            f"{len(images)} pictures"
        )
    content: list[dict[str, Any]] = []
    for number, piece in enumerate(pieces):
        if number:
            content.append({"type": "image", "image": images[number - 1]})
        if piece:
            content.append({"type": "text", "text": piece})
    return content


def load_encoder(
    model: str,
    model_config: Any,
    *,
    chat_template: bool = True,
    min_pixels: int | None = None,
    max_pixels: int | None = None,
) -> Encoder:
    """The encoder of a checkpoint.

    Raises:
        InputError: If a chat template is wanted and there is none, or no picture processor can be
            built.
    """
    import transformers

    auto: Any = transformers

    tokenizer: Any = auto.AutoTokenizer.from_pretrained(model)
    image_token_id = getattr(model_config, "image_token_id", None)
    processor: Any = None
    pictures: Any = None
    if image_token_id is not None:
        limits = {"min_pixels": min_pixels, "max_pixels": max_pixels}
        given = {name: value for name, value in limits.items() if value is not None}
        try:
            processor = auto.AutoProcessor.from_pretrained(model, **given)
        except ImportError:
            # the stock Qwen processors ask for torchvision, for videos only
            pictures = auto.AutoImageProcessor.from_pretrained(model, **given)
            if not hasattr(pictures, "merge_size"):
                raise InputError(
                    f"the processor of {model} needs: pip install torchvision"
                ) from None
        else:
            if getattr(processor, "image_processor", None) is None:
                raise InputError(f"{model} has no picture processor that transformers can build")
    owner = tokenizer if processor is None else processor
    if chat_template and not getattr(owner, "chat_template", None):
        raise InputError(
            f"{model} has no chat template; set sampling.chat_template=false for bare prompts"
        )
    return Encoder(
        tokenizer=tokenizer,
        processor=processor,
        pictures=pictures,
        image_token_id=image_token_id,
        chat_template=chat_template,
    )
