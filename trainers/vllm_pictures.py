"""A prompt in the form that vLLM's engine takes: token ids and the trainer's own pixels.

Nothing is tokenised, expanded or resized a second time, so engine and trainer cannot disagree about
what a picture is.

L prompt tokens.
"""

import hashlib
from collections.abc import Iterable
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

from npbench.errors import InputError
from trainers.encoding import Prompt

__all__ = ["engine_input", "token_runs"]


def engine_input(prompt: Prompt, image_token_id: int | None) -> dict[str, Any]:
    """The engine's input for a prompt.

    Args:
        prompt: Picture tokens are there already, one for each feature of a picture.
        image_token_id: Their id.

    Raises:
        InputError: If pictures have another layout than Idefics3's or Qwen-VL's.
    """
    ids: list[int] = prompt.ids_1L[0].tolist()
    if not prompt.pictures:
        return {"type": "token", "prompt_token_ids": ids}
    from vllm.multimodal.inputs import MultiModalKwargsItems, PlaceholderRange

    assert image_token_id is not None
    pictures = {name: tensor.cpu() for name, tensor in prompt.pictures.items()}
    runs = token_runs(ids, image_token_id)
    if "image_grid_thw" in pictures:
        parts, fields = _by_grid(pictures)
        ranges = [PlaceholderRange(start, length) for start, length in runs]
    elif "pixel_attention_mask" in pictures:
        parts, fields = _as_one(pictures)
        # all tiles of all pictures are one item, with text between them
        start, end = runs[0][0], sum(runs[-1])
        mask_L = torch.tensor(ids[start:end]) == image_token_id
        ranges = [PlaceholderRange(start, end - start, is_embed=mask_L)]
    else:
        raise InputError(
            f"rollouts.backend 'vllm' knows the pictures of Idefics3 and Qwen-VL, the processor "
            f"gives {', '.join(sorted(pictures))}"
        )
    items = MultiModalKwargsItems.from_hf_inputs(parts, fields)
    if len(ranges) != len(items["image"]):
        raise InputError(
            f"a prompt must have one run of picture tokens for each of its {len(items['image'])} "
            f"pictures, got {len(ranges)}"
        )
    names = [f"{_digest(pictures)}-{number}" for number in range(len(ranges))]
    return {
        "type": "multimodal",
        "prompt_token_ids": ids,
        "mm_kwargs": items,
        "mm_hashes": {"image": names},
        "mm_placeholders": {"image": ranges},
    }


def token_runs(ids: Iterable[int], token: int) -> list[tuple[int, int]]:
    """Where a token stands, as start and length of each unbroken run.

    Example:
        >>> token_runs([7, 7, 1, 7], 7)
        [(0, 2), (3, 1)]
    """
    found = []
    place = 0
    for same, run in groupby(ids, key=lambda one: one == token):
        length = len(list(run))
        if same:
            found.append((place, length))
        place += length
    return found


def _by_grid(pictures: dict[str, Tensor]) -> tuple[Any, Any]:
    """Qwen-VL: the patches of all pictures in one list, cut by each picture's grid."""
    from vllm.multimodal.inputs import MultiModalFieldConfig

    sizes = pictures["image_grid_thw"].prod(-1)
    return pictures, {
        "pixel_values": MultiModalFieldConfig.flat_from_sizes("image", sizes),
        "image_grid_thw": MultiModalFieldConfig.batched("image", keep_on_cpu=True),
    }


def _as_one(pictures: dict[str, Tensor]) -> tuple[Any, Any]:
    """Idefics3: the tiles of a prompt side by side, in the order of their tokens."""
    from vllm.multimodal.inputs import MultiModalFieldConfig

    tiles = {name: pictures[name].squeeze(0) for name in ("pixel_values", "pixel_attention_mask")}
    count = torch.tensor([len(tiles["pixel_values"])])
    flat = MultiModalFieldConfig.flat_from_sizes("image", count)
    return {**tiles, "num_patches": count}, {
        "pixel_values": flat,
        "pixel_attention_mask": flat,
        "num_patches": MultiModalFieldConfig.batched("image", keep_on_cpu=True),
    }


def _digest(pictures: dict[str, Tensor]) -> str:
    """Of the pixels; equal pictures are encoded once whatever prompt they stand in."""
    found = hashlib.sha256()
    for name, tensor in sorted(pictures.items()):
        if name != "mm_token_type_ids":
            found.update(f"{name} {tuple(tensor.shape)}".encode())
            found.update(tensor.contiguous().numpy().tobytes())
    return found.hexdigest()
