"""LoRA: what is trained, which model is the reference, and checkpoints of adapters."""

from pathlib import Path

import pytest
import torch

from npbench.errors import InputError
from trainers.checkpoints import open_run
from trainers.learner import load_learner
from trainers.logs import read_log
from trainers.loop import train

pytest.importorskip("peft")
LORA = {"rank": 4}


class StopError(Exception):
    """Ends a run from outside."""


@pytest.mark.parametrize("model", ["text_model", "idefics_model", "qwen_vl_model"])
def test_only_the_adapter_is_trained_and_the_reference_is_the_model_without_it(
    model: str, make_config, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(model)
    config = make_config(folder, lora=LORA, loss={"kl_coef": 0.1}, steps=2)
    learner = load_learner(config, config.model)
    names = {n for n, p in learner.policy.model.named_parameters() if p.requires_grad}
    assert names
    assert all("lora_" in name for name in names)
    # the first step refuses to go on unless the divergence from the reference is exactly 0
    train(config, tmp_path / "run")
    rows = read_log(tmp_path / "run" / "scalars.jsonl")
    assert rows[0]["kl_reference"] == 0.0
    assert rows[1]["kl_reference"] > 0.0


def test_an_adapters_run_resumes_bit_for_bit_and_loads_as_a_model(
    text_model: Path, make_config, tmp_path: Path
) -> None:
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM

    config = make_config(text_model, lora=LORA, steps=4, checkpoint_every=1)
    train(config, tmp_path / "whole")

    def stop(step: int, numbers: object) -> None:
        if step == 2:
            raise StopError

    with pytest.raises(StopError):
        train(config, tmp_path / "run", progress=stop)
    train(config, tmp_path / "run", resume=True)
    last = [tmp_path / name / "checkpoints" / "last" for name in ("whole", "run")]
    one, two = (load_file(folder / "model.safetensors") for folder in last)
    assert one
    assert all(torch.equal(one[name], two[name]) for name in one)
    learner, position = open_run(config, tmp_path / "run", resume=True)
    assert position.step == 4
    loaded = AutoModelForCausalLM.from_pretrained(last[0])
    ids = torch.tensor([[5, 6, 7]])
    with torch.no_grad():
        assert torch.allclose(loaded(ids).logits, learner.policy.model(ids).logits, atol=1e-5)
    start = load_file(text_model / "model.safetensors")
    assert set(start) == set(one)
    assert torch.equal(start["lm_head.weight"], one["lm_head.weight"])
    moved = "model.layers.0.mlp.up_proj.weight"
    assert not torch.equal(start[moved], one[moved])


def test_layers_that_the_model_lacks_are_refused(text_model: Path, make_config) -> None:
    config = make_config(text_model, lora={"rank": 4, "targets": ["q_proj", "qqq"]})
    with pytest.raises(InputError, match="must be linear layers of the model, got 'qqq'"):
        load_learner(config, config.model)


def test_the_head_is_never_adapted(text_model: Path, make_config) -> None:
    with pytest.raises(InputError, match="must not hold lm_head"):
        make_config(text_model, lora={"rank": 4, "targets": ["lm_head"]})
