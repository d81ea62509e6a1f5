"""The untrained beginning of npbench-tiny: Idefics3's architecture, small, with random weights.

Pictures are squared to 256 pixels and cut into 8 x 8 patches, of which 2 x 2 make one of 16 picture
tokens. The picture processor maps paper white to 0, so that what is drawn stands out from a blank
ground: with the usual mean of 0.5 the lines of a graph are learnt about ten times more slowly.
Numbers are cut digit by digit, and a pair of vertices in a list of facts is one token.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from npbench.perception import facts, perception_prompt, perception_reply
from npbench.rng import stream
from npbench.splits import load
from npbench.tasks import get_task
from trainers.teachers import TAUGHT_TASKS, teach

__all__ = ["BLANK", "make_blank"]

BLANK = "npbench-tiny-blank"
"""The name that stands for this model where a checkpoint is asked for."""

IMAGE_SIZE = 256
PATCH_SIZE = 32
SHUFFLE = 2
VOCABULARY = 1024

SPECIAL = (
    "<pad>",
    "<end_of_utterance>",
    "<|user|>",
    "<|assistant|>",
    "<|system|>",
    "<image>",
    "<fake_token_around_image>",
    "<global-img>",
)
TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}"
    "{% if message['role'] == 'assistant' %}<end_of_utterance>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
PIECES = (
    # where an answer begins, so that its first number is a token of its own
    r"Answer: \[+"
    # the vertices of an edge, of a weighted edge, and a single vertex in a list of facts
    r"|\[\d, \d(?=[,\]])|\[\d\](?:, )?"
    r"|\](?:, )?|, \d|\d|\n|[^\d\n\[\],]+|."
)


def make_blank(folder: Path, *, seed: int = 0) -> None:
    """Writes the untrained model: weights, tokenizer, chat template, picture processor.

    Args:
        folder: Where the Hugging Face folder is made.
        seed: Of the weights; tokenizer and all else do not depend on it.
    """
    from transformers import Idefics3ImageProcessorPil, Idefics3Processor

    tokenizer = _tokenizer()
    size = {"longest_edge": IMAGE_SIZE}
    images = Idefics3ImageProcessorPil(
        size=size,
        max_image_size=size,
        do_image_splitting=False,
        image_mean=[1.0, 1.0, 1.0],
        image_std=[0.25, 0.25, 0.25],
    )
    tokens = (IMAGE_SIZE // PATCH_SIZE // SHUFFLE) ** 2
    processor = Idefics3Processor(
        images, tokenizer, image_seq_len=tokens, chat_template=tokenizer.chat_template
    )
    processor.save_pretrained(folder)
    _model(tokenizer, seed).save_pretrained(folder)


def _model(tokenizer: Any, seed: int) -> Any:
    import transformers

    auto: Any = transformers
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    config = auto.Idefics3Config(
        text_config={
            "model_type": "llama",
            "vocab_size": len(tokenizer),
            "hidden_size": 160,
            "intermediate_size": 320,
            "num_hidden_layers": 4,
            "num_attention_heads": 5,
            "num_key_value_heads": 5,
            "max_position_embeddings": 1024,
            "tie_word_embeddings": True,
            "bos_token_id": None,
            **ends,
        },
        vision_config={
            "hidden_size": 128,
            "intermediate_size": 512,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "image_size": IMAGE_SIZE,
            "patch_size": PATCH_SIZE,
        },
        scale_factor=SHUFFLE,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        pad_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=True,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = auto.Idefics3ForConditionalGeneration(config)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return model


def _tokenizer() -> Any:
    import transformers
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    auto: Any = transformers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        _texts(),
        trainers.BpeTrainer(
            vocab_size=VOCABULARY,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            max_token_length=24,
            special_tokens=list(SPECIAL),
            show_progress=False,
        ),
    )
    wrapped = auto.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="<end_of_utterance>",
        padding_side="left",
        additional_special_tokens=list(SPECIAL[2:]),
        model_max_length=1024,
    )
    wrapped.chat_template = TEMPLATE
    return wrapped


def _texts() -> Iterator[str]:
    """Prompts, facts and teachers' replies of nano questions."""
    from trainers.supervised import READING

    for modality in ("image", "text"):
        for row in load("nano", "nano", "train", 0, per_task=20, modality=modality):
            task, instance = get_task(row.task), json.loads(row.instance)
            yield row.prompt
            if modality == "text":
                continue
            yield READING
            yield perception_prompt(row.task, task.wording.picture)
            yield perception_reply(facts(row.task, instance))
            if row.task in TAUGHT_TASKS:
                for draw in range(8):
                    rng = stream("npbench-tiny-tokenizer", row.id, draw)
                    yield teach(row.task, task.decode(instance), rng)
