"""The memory estimate against numbers worked out by hand."""

import json
import shutil
from pathlib import Path

import pytest

from trainers.config import Config, read_config
from trainers.loading import load_policy
from trainers.memory import ModelSize, estimate_memory
from trainers.plan import make_plan
from trainers.token_logprobs import PART

SIZE = {
    "parameters": 1_000_000,
    "vocabulary": 1_000,
    "layers": 4,
    "width": 64,
    "cache_width": 32,
}


def config_of(**sections: dict) -> Config:
    return read_config(
        {
            "method": "grpo",
            "steps": 1,
            "prompts_per_step": 3,
            "group_size": 8,
            "data": {"suite": "nano"},
            **sections,
            "sampling": {"max_tokens": 20},
            "optimizer": {"tokens_at_once": 500, **sections.get("optimizer", {})},
        }
    )


def test_full_training_in_float32() -> None:
    # 500 // (100 + 20) = 4 rows at once, 80 labelled tokens, 180 tokens with the prompt
    found = estimate_memory(config_of(), ModelSize(**SIZE), 100, second_model=True)
    assert (found.weights, found.trained, found.reference) == (4_000_000, 12_000_000, 4_000_000)
    # logits, their gradient, the softmax and its gradient: 4 * 4 * 80 * 1000
    assert found.logits == 1_280_000
    # 4 bytes * 180 tokens * width 64 * 16 * 4 layers
    assert found.activations == 2_949_120
    # 24 rows of 120 tokens: keys and values of 4 layers of 32 numbers of 4 bytes
    assert found.sampling == 24 * 120 * 2 * 4 * 32 * 4 == 2_949_120
    assert found.total == 4_000_000 + 12_000_000 + 4_000_000 + 1_280_000 + 2_949_120


def test_processes_that_share_the_moments_keep_weights_and_gradients_whole() -> None:
    config = config_of(optimizer={"share_states": True})
    found = [
        estimate_memory(config, ModelSize(**SIZE), 100, second_model=False, processes=count)
        for count in (1, 4)
    ]
    assert [one.trained for one in found] == [12_000_000, 4_000_000 + 8_000_000 // 4]
    assert [one.weights for one in found] == [4_000_000, 4_000_000]
    whole = estimate_memory(config_of(), ModelSize(**SIZE), 100, second_model=False, processes=4)
    assert whole.trained == 12_000_000


@pytest.mark.parametrize(
    ("precision", "weights"),
    [
        ("float32", 4_000_000 // 4 + 4_000_000),
        # the embedding of 1000 tokens of width 64 is looked up in float32
        ("bfloat16", 4_000_000 // 4 + 2_000_000 + 2 * 64_000),
    ],
)
def test_processes_that_shard_have_whole_weights_and_gradients_in_a_pass_alone(
    precision: str, weights: int
) -> None:
    config = config_of(optimizer={"fsdp": True, "precision": precision})
    found = estimate_memory(config, ModelSize(**SIZE), 100, second_model=False, processes=4)
    assert (found.weights, found.trained) == (weights, 4_000_000 + 8_000_000 // 4)
    alone = config_of(optimizer={"precision": precision})
    assert estimate_memory(config, ModelSize(**SIZE), 100, second_model=False) == estimate_memory(
        alone, ModelSize(**SIZE), 100, second_model=False
    )


def test_a_tied_head_is_copied_to_bfloat16_beside_the_shards() -> None:
    for precision, more in (("float32", 0), ("bfloat16", 2 * 64_000)):
        config = config_of(optimizer={"fsdp": True, "precision": precision})
        plain, tied = (
            estimate_memory(
                config, ModelSize(**SIZE, tied=tied), 100, second_model=False, processes=4
            )
            for tied in (False, True)
        )
        assert tied.total - plain.total == tied.weights - plain.weights == more


def test_saving_a_sharded_policy_takes_whole_weights_and_moments_of_the_main_memory() -> None:
    config = config_of(optimizer={"fsdp": True, "precision": "bfloat16", "tokens_at_once": 1})
    gpu, cpu = (
        estimate_memory(
            config, ModelSize(**SIZE), 100, second_model=True, processes=4, on_cpu=on_cpu
        )
        for on_cpu in (False, True)
    )
    # the reference stays: 12 bytes a parameter whole, and 12 of each fourth one
    assert (gpu.saving, cpu.saving) == (0, 15_000_000)
    assert gpu.total < cpu.total == 4_000_000 + 15_000_000
    roomy = config_of(optimizer={"fsdp": True, "tokens_at_once": 100_000})
    passing = estimate_memory(
        roomy, ModelSize(**SIZE), 100, second_model=True, processes=4, on_cpu=True
    )
    kept = passing.weights + passing.trained + passing.reference
    assert passing.total == kept + passing.logits + passing.activations > cpu.total
    for options in ({"fsdp": True}, {"share_states": True}):
        count = 1 if "fsdp" in options else 4
        found = estimate_memory(
            config_of(optimizer=options),
            ModelSize(**SIZE),
            100,
            second_model=True,
            processes=count,
            on_cpu=True,
        )
        assert found.saving == 0


def test_an_adapter_in_bfloat16_has_the_only_gradients_and_moments() -> None:
    config = config_of(optimizer={"precision": "bfloat16"}, lora={"rank": 4})
    found = estimate_memory(config, ModelSize(**SIZE, adapter=10_000), 100, second_model=False)
    assert (found.weights, found.trained, found.reference) == (2_000_000, 160_000, 0)
    # logits and gradient in bfloat16, the softmax and its gradient in float32
    assert found.logits == 2 * 2 * 80_000 + 2 * 4 * 80_000
    assert found.activations == 2_949_120 // 2


def test_full_training_in_bfloat16_keeps_float32_and_copies() -> None:
    config = config_of(optimizer={"precision": "bfloat16"})
    found = estimate_memory(config, ModelSize(**SIZE), 100, second_model=False)
    assert (found.weights, found.trained) == (6_000_000, 12_000_000)


def test_prompts_count_for_each_row_without_a_shared_prefix_and_inputs_when_recomputed() -> None:
    plain = {"shared_prefix": False}
    found = estimate_memory(config_of(optimizer=plain), ModelSize(**SIZE), 100, second_model=False)
    # 4 rows of 120 tokens
    assert found.activations == 4 * 480 * 64 * 16 * 4
    config = config_of(optimizer={"gradient_checkpointing": True})
    found = estimate_memory(config, ModelSize(**SIZE), 100, second_model=False)
    # an input a layer, and one layer's 16
    assert found.activations == 4 * 180 * 64 * (4 + 16)


def test_a_large_vocabulary_is_never_held_in_float32() -> None:
    size = ModelSize(**{**SIZE, "vocabulary": 152_064})
    config = config_of(optimizer={"precision": "bfloat16", "tokens_at_once": 100_000})
    found = estimate_memory(config, size, 5, second_model=False)
    numbers = 8 * 20 * 152_064
    assert numbers <= PART
    assert found.logits == 2 * 2 * numbers + 2 * 4 * numbers
    longer = config.model_copy(
        update={"sampling": config.sampling.model_copy(update={"max_tokens": 2048})}
    )
    found = estimate_memory(longer, size, 5, second_model=False)
    # 2.5 billion numbers: 10 GB in bfloat16 with their gradient, and 0.4 GB of float32
    assert found.logits == 2 * 2 * 8 * 2048 * 152_064 + 3 * 4 * PART


@pytest.mark.parametrize("targets", [[], ["q_proj"]])
def test_the_plan_counts_what_is_trained(targets: list[str], text_model: Path, make_config) -> None:
    pytest.importorskip("peft")
    config = make_config(text_model, lora={"rank": 4, "targets": targets}, loss={"kl_coef": 0.1})
    plan = make_plan(config)
    policy = load_policy(str(text_model), config)
    assert plan.trained_parameters == sum(p.numel() for p in policy.trained())
    total = sum(p.numel() for p in policy.model.parameters())
    assert plan.parameters == total - plan.trained_parameters
    assert plan.memory is not None
    # the reference is the model without its adapter
    assert plan.memory.reference == 0
    whole = make_plan(make_config(text_model, loss={"kl_coef": 0.1}))
    assert whole.trained_parameters == whole.parameters == plan.parameters
    assert whole.memory is not None
    assert whole.memory.reference == 4 * whole.parameters
    assert dict(plan.lines())["trained parameters"] == f"{plan.trained_parameters:,}"


def test_the_plan_knows_a_tied_head_and_the_device(
    text_model: Path, make_config, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tied = tmp_path / "text"
    shutil.copytree(text_model, tied)
    about = json.loads((tied / "config.json").read_text())
    (tied / "config.json").write_text(json.dumps({**about, "tie_word_embeddings": True}))
    monkeypatch.setenv("WORLD_SIZE", "2")
    looked_up = about["vocab_size"] * about["hidden_size"]
    optimizer = {"fsdp": True, "precision": "bfloat16"}
    for model, copies in ((text_model, 0), (tied, 1)):
        for device in ("cpu", "cuda"):
            plan = make_plan(make_config(model, device=device, optimizer=optimizer))
            assert plan.memory is not None
            assert plan.parameters is not None
            shard = -(-plan.parameters // 2)
            assert plan.memory.weights == (
                4 * shard + 2 * plan.parameters + (2 + 2 * copies) * looked_up
            )
            saving = 12 * (plan.parameters + shard) if device == "cpu" else 0
            assert plan.memory.saving == saving
            assert ("- or all in all, saving" in dict(plan.lines())) == (device == "cpu")


def test_a_published_set_is_planned_without_loading_it() -> None:
    config = read_config(
        {
            "method": "grpo",
            "steps": 100,
            "prompts_per_step": 100,
            "group_size": 2,
            "data": {"name": "virl39k"},
        }
    )
    plan = make_plan(config)
    assert (plan.questions, plan.epochs) == (38_870, pytest.approx(10_000 / 38_870))
    unknown = make_plan(
        config.model_copy(
            update={"data": config.data.model_copy(update={"name": "openr1-math-46k"})}
        )
    )
    assert dict(unknown.lines())["questions"] == "-"
