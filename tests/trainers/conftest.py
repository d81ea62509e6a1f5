"""Tiny random models, built offline and saved as ordinary Hugging Face folders."""

from pathlib import Path

import pytest
import torch

CHAT = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' }}"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}{{ IMAGE }}{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}{{ '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
CORPUS = [
    "Find as many vertices as possible such that no edge joins two of them.",
    "Find as few vertices as possible such that every edge has an end among them.",
    "Answer with a list of vertex numbers. The picture shows the graph: numbered vertices, and a",
    "line for every edge. Lines that cross between vertices do not meet there. Think briefly, then",
    "end with one line of the form\nAnswer: [0, 3]\nAnswer: [1, 2, 4]",
] * 4


def _tokenizer(image_part: str, extra: tuple[str, ...]):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    special = ["<|pad|>", "<|end|>", "<|user|>", "<|assistant|>", *extra]
    core.train_from_iterator(
        CORPUS,
        trainers.BpeTrainer(
            vocab_size=256 + 150,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<|pad|>", eos_token="<|end|>"
    )
    tokenizer.chat_template = CHAT.replace("IMAGE", repr(image_part))
    return tokenizer


def _save(model, tokenizer, folder: Path) -> Path:
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(folder)
    return folder


TEXT = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 1024,
    "initializer_range": 0.2,
}


@pytest.fixture(scope="session")
def text_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A causal language model of Qwen2's shape."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    tokenizer = _tokenizer("", ())
    torch.manual_seed(0)
    config = Qwen2Config(vocab_size=len(tokenizer), tie_word_embeddings=False, **TEXT)
    folder = tmp_path_factory.mktemp("models") / "text"
    tokenizer.save_pretrained(folder)
    return _save(Qwen2ForCausalLM(config), tokenizer, folder)


@pytest.fixture(scope="session")
def idefics_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image-text-to-text model of Idefics3's shape: 16 picture tokens."""
    from transformers import (
        Idefics3Config,
        Idefics3ForConditionalGeneration,
        Idefics3ImageProcessorPil,
        Idefics3Processor,
    )

    extra = ("<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>")
    tokenizer = _tokenizer("<image>", extra)
    size = {"longest_edge": 64}
    images = Idefics3ImageProcessorPil(size=size, max_image_size=size, do_image_splitting=False)
    processor = Idefics3Processor(
        images, tokenizer, image_seq_len=16, chat_template=tokenizer.chat_template
    )
    torch.manual_seed(0)
    config = Idefics3Config(
        text_config={"model_type": "llama", "vocab_size": len(tokenizer), **TEXT},
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "image_size": 64,
            "patch_size": 8,
        },
        scale_factor=2,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        pad_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=False,
    )
    folder = tmp_path_factory.mktemp("models") / "idefics"
    processor.save_pretrained(folder)
    return _save(Idefics3ForConditionalGeneration(config), tokenizer, folder)


@pytest.fixture(scope="session")
def qwen_vl_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image-text-to-text model of Qwen2.5-VL's shape, with its 3-D positions."""
    from transformers import (
        Qwen2_5_VLConfig,
        Qwen2_5_VLForConditionalGeneration,
        Qwen2VLImageProcessorPil,
    )

    extra = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
    tokenizer = _tokenizer("<|vision_start|><|image_pad|><|vision_end|>", extra)
    images = Qwen2VLImageProcessorPil(
        patch_size=8, merge_size=2, temporal_patch_size=2, min_pixels=64 * 64, max_pixels=64 * 64
    )
    ids = {name: tokenizer.convert_tokens_to_ids(name) for name in extra}
    torch.manual_seed(0)
    config = Qwen2_5_VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "rope_parameters": {"rope_type": "default", "mrope_section": [2, 3, 3]},
            **TEXT,
        },
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 2,
            "patch_size": 8,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "window_size": 32,
            "fullatt_block_indexes": [1],
            "out_hidden_size": 32,
        },
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
        tie_word_embeddings=False,
    )
    folder = tmp_path_factory.mktemp("models") / "qwen_vl"
    tokenizer.save_pretrained(folder)
    images.save_pretrained(folder)
    return _save(Qwen2_5_VLForConditionalGeneration(config), tokenizer, folder)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


TOY_REWARDS = """
def vowels(reply, row):
    return sum(letter in "aeiou" for letter in reply) / max(len(reply), 1)


def broken(reply, row):
    return float("nan")
"""


@pytest.fixture
def toy_rewards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The import path of a module whose rewards differ between random replies."""
    folder = tmp_path / "toy"
    folder.mkdir()
    (folder / "npbench_toy_rewards.py").write_text(TOY_REWARDS)
    monkeypatch.syspath_prepend(folder)
    return "npbench_toy_rewards"


@pytest.fixture
def make_config(toy_rewards: str):
    """A function from a model's folder and changes to a small configuration."""
    from trainers.config import read_config

    def make(model: Path, *, method: str = "grpo", **changes):
        sections = {
            "data": {
                "suite": "nano",
                "tasks": ["vertex_cover"],
                "per_task": 20,
                "modality": "text" if model.name == "text" else "image",
            },
            "sampling": {"max_tokens": 10},
            "optimizer": {"learning_rate": 1e-2},
            "reward": {
                "name": "mupo" if method == "mupo" else "dmpo",
                "functions": {"vowels": f"{toy_rewards}:vowels"},
            },
            "loss": {"clusters": 2, "min_size": 2} if method == "mupo" else {},
        }
        values = {
            "method": method,
            "model": str(model),
            "steps": 3,
            "prompts_per_step": 2,
            "group_size": 4,
        }
        for name, value in changes.items():
            if isinstance(value, dict):
                sections[name] = {**sections.get(name, {}), **value}
            else:
                values[name] = value
        return read_config({**values, **sections})

    return make
