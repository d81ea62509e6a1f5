"""Checkpoint folders are checked before anything is loaded."""

import json
import os
import struct

import pytest

from evaluators.checkpoints import check_adapter, find_checkpoint
from npbench.errors import InputError


def safetensors(path, size=16):
    header = json.dumps({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, size]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * size)


@pytest.fixture
def folder(tmp_path):
    """A folder that passes every check, for a model that takes pictures."""
    root = tmp_path / "model"
    root.mkdir()
    (root / "config.json").write_text('{"vision_config": {}}')
    (root / "tokenizer.json").write_text("{}")
    (root / "chat_template.jinja").write_text("{{ messages }}")
    (root / "preprocessor_config.json").write_text("{}")
    for shard in ("a.safetensors", "b.safetensors"):
        safetensors(root / shard)
    index = {"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}
    (root / "model.safetensors.index.json").write_text(json.dumps(index))
    return root


def test_a_whole_folder_passes(folder):
    found = find_checkpoint(str(folder))
    assert found.sees
    assert found.folder == folder


def test_templates_and_processors_may_stand_in_other_files(folder):
    (folder / "chat_template.jinja").unlink()
    (folder / "preprocessor_config.json").unlink()
    (folder / "tokenizer_config.json").write_text('{"chat_template": "x"}')
    (folder / "processor_config.json").write_text('{"image_processor": {}}')
    assert find_checkpoint(str(folder)).sees


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "config.json").unlink(), "it has no config.json"),
        (lambda f: (f / "config.json").write_text("{"), "config.json cannot be read"),
        (lambda f: (f / "config.json").write_text("[]"), "is no JSON object"),
        (lambda f: (f / "tokenizer.json").unlink(), "has no tokenizer"),
        (lambda f: (f / "chat_template.jinja").unlink(), "has no chat template"),
        (lambda f: (f / "preprocessor_config.json").unlink(), "with an image processor; copy it"),
        (lambda f: (f / "b.safetensors").unlink(), "lacks 1 of 2 weight shards, such as b.safe"),
        (lambda f: (f / "model.safetensors.index.json").unlink(), "has no weights"),
        (lambda f: (f / "model.safetensors.index.json").write_text("{}"), "lacks 0 of 0"),
        (
            lambda f: (f / "a.safetensors").write_bytes((f / "a.safetensors").read_bytes()[:-3]),
            "the file was cut",
        ),
        (
            lambda f: (f / "a.safetensors").write_text("version https://git-lfs.github.com/spec"),
            "or only a pointer to one",
        ),
        (lambda f: (f / "a.safetensors").write_bytes(b""), "or only a pointer to one"),
        (
            lambda f: (f / "a.safetensors").write_bytes(struct.pack("<Q", 3) + b"{x}" + b"0" * 9),
            "has a damaged header",
        ),
    ],
)
def test_what_is_missing_or_damaged_is_one_line(damage, message, folder):
    damage(folder)
    with pytest.raises(InputError) as caught:
        find_checkpoint(str(folder))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_adapter_and_training_shards_say_what_to_do(tmp_path):
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text('{"base_model_name_or_path": "org/base"}')
    with pytest.raises(InputError, match=f"give --model org/base --lora {adapter}"):
        find_checkpoint(str(adapter))
    with pytest.raises(InputError, match=r"has no adapter_model\.safetensors"):
        check_adapter(adapter)
    safetensors(adapter / "adapter_model.safetensors")
    assert check_adapter(adapter)
    with pytest.raises(InputError, match="is no LoRA adapter"):
        check_adapter(tmp_path)
    shards = tmp_path / "shards"
    shards.mkdir()
    (shards / "model_world_size_8_rank_0.pt").write_bytes(b"")
    with pytest.raises(InputError, match="merge it into a model first"):
        find_checkpoint(str(shards))


def test_names_that_are_no_folder(tmp_path, folder):
    with pytest.raises(InputError, match="there is no such folder"):
        find_checkpoint(str(tmp_path / "absent"))
    with pytest.raises(InputError, match="is a file"):
        find_checkpoint(str(folder / "config.json"))
    with pytest.raises(InputError, match="name is empty"):
        find_checkpoint("")


def test_new_weights_or_texts_at_the_same_path_have_another_fingerprint(folder):
    first = find_checkpoint(str(folder)).fingerprint
    assert find_checkpoint(str(folder)).fingerprint == first
    os.utime(folder / "a.safetensors", ns=(1, 1))
    second = find_checkpoint(str(folder)).fingerprint
    (folder / "chat_template.jinja").write_text("{{ other }}")
    third = find_checkpoint(str(folder)).fingerprint
    assert len({first, second, third}) == 3
