"""Random weights in the shape of Qwen2.5-VL, from the tiny to the true 3B, without a download.

The sizes are those of ``trainers.cost``; the tokenizer is npbench-tiny's with Qwen's picture
tokens, so only its first thousand of 152k words ever stand in a prompt, which changes no shape.
"""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from evaluators.models import shipped_model
from trainers.cost_sizes import QWEN_VL_3B, Sizes
from trainers.data import Question

SIDE = 28
"""Pixels of a picture token's side: two patches of 14."""

TINY = Sizes(
    name="Qwen2.5-VL, shrunken",
    width=64,
    mlp=176,
    layers=2,
    heads=2,
    kv_heads=1,
    vocabulary=1040,
    tied=True,
    vision_width=32,
    vision_mlp=80,
    vision_layers=2,
    vision_heads=2,
    full_attention=(1,),
)
SIZES = {"qwen-tiny": TINY, "qwen-3b": QWEN_VL_3B}
VISION = ("<|vision_start|>", "<|image_pad|>", "<|vision_end|>", "<|video_pad|>")


def qwen_config(sizes: Sizes, tokens: dict[str, int]) -> Any:
    """The configuration of a model of these sizes; ``tokens`` holds the ids of ``VISION``."""
    from transformers import Qwen2_5_VLConfig

    start, image, end, video = (tokens[name] for name in VISION)
    eighth = sizes.head_width // 8
    rest = (sizes.head_width // 2 - eighth) // 2
    return Qwen2_5_VLConfig(
        text_config={
            "vocab_size": sizes.vocabulary,
            "bos_token_id": None,
            "eos_token_id": None,
            "hidden_size": sizes.width,
            "intermediate_size": sizes.mlp,
            "num_hidden_layers": sizes.layers,
            "num_attention_heads": sizes.heads,
            "num_key_value_heads": sizes.kv_heads,
            "max_position_embeddings": 128_000,
            "rms_norm_eps": 1e-6,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 1_000_000.0,
                "mrope_section": [eighth, rest, rest],
            },
        },
        vision_config={
            "depth": sizes.vision_layers,
            "hidden_size": sizes.vision_width,
            "intermediate_size": sizes.vision_mlp,
            "num_heads": sizes.vision_heads,
            "out_hidden_size": sizes.width,
            "patch_size": sizes.patch,
            "spatial_merge_size": sizes.merge,
            "window_size": sizes.window,
            "fullatt_block_indexes": list(sizes.full_attention),
        },
        vision_start_token_id=start,
        image_token_id=image,
        vision_end_token_id=end,
        video_token_id=video,
        tie_word_embeddings=sizes.tied,
    )


def build_qwen(folder: Path, sizes: Sizes, *, device: str) -> Path:
    """Writes a random model, its tokenizer and its picture processor; bfloat16 past a billion."""
    from transformers import (
        AutoTokenizer,
        PreTrainedTokenizerFast,
        Qwen2_5_VLForConditionalGeneration,
        Qwen2VLImageProcessorPil,
    )

    own: Any = AutoTokenizer.from_pretrained(str(shipped_model("npbench-tiny")))
    # a new one, since the old one names Idefics3's processor
    make: Any = PreTrainedTokenizerFast
    tokenizer: Any = make(
        tokenizer_object=own.backend_tokenizer, pad_token=own.pad_token, eos_token=own.eos_token
    )
    tokenizer.add_special_tokens({"additional_special_tokens": list(VISION)})
    tokenizer.chat_template = own.chat_template.replace("<image>", "".join(VISION[:3]))
    if len(tokenizer) > sizes.vocabulary:
        raise ValueError(
            f"the vocabulary must hold the tokenizer's {len(tokenizer)} words, "
            f"got {sizes.vocabulary}"
        )
    tokens = {name: tokenizer.convert_tokens_to_ids(name) for name in VISION}
    pictures = Qwen2VLImageProcessorPil(
        patch_size=sizes.patch,
        merge_size=sizes.merge,
        temporal_patch_size=2,
        min_pixels=SIDE**2,
        max_pixels=128**2 * SIDE**2,
    )
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    if sizes.parameters > 1e9:
        torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(device):
            model: Any = Qwen2_5_VLForConditionalGeneration(qwen_config(sizes, tokens))
    finally:
        torch.set_default_dtype(before)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    tokenizer.save_pretrained(folder)
    pictures.save_pretrained(folder)
    model.save_pretrained(folder)
    return folder


def with_side(question: Question, side: int) -> Question:
    """The question with its pictures scaled to ``side`` picture tokens a side."""
    found = []
    for data in question.images:
        buffer = io.BytesIO()
        picture = Image.open(io.BytesIO(data)).convert("RGB")
        picture.resize((side * SIDE, side * SIDE)).save(buffer, "PNG")
        found.append(buffer.getvalue())
    return replace(question, images=tuple(found))
