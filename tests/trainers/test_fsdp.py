"""Processes that shard the policy train as one does, and hold what sharding promises."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from npbench.errors import InputError
from trainers.config import differing_setting
from trainers.fsdp import shard_model
from trainers.logs import read_log
from trainers.loop import train

CASES = {
    "grpo": {
        "optimizer": {"fsdp": True, "mini_batches": 1},
        "loss": {"kl_coef": 0.05},
        "evaluate_every": 2,
        "evaluation": {"questions": 3, "samples": 2},
    },
    "mupo": {"loss": {"embedding": "policy"}, "optimizer": {"fsdp": True}},
    "flowrl": {"optimizer": {"fsdp": True, "gradient_checkpointing": True}},
    "supervised": {
        "optimizer": {"fsdp": True},
        "stages": [
            {
                "steps": 3,
                "mix": [
                    {
                        "data": {"suite": "nano", "tasks": ["vertex_cover"], "modality": "text"},
                        "targets": {"reference": 1.0},
                    }
                ],
            }
        ],
    },
}
"""A reference and evaluations, the model's own embeddings, a head beside the policy, no replies."""


@pytest.fixture
def tied_model(text_model: Path, tmp_path: Path) -> Path:
    """The text model with its embedding as head, and tensors whose rows 2 does not divide."""
    from transformers import AutoConfig, AutoModelForCausalLM

    folder = tmp_path / "text"
    shutil.copytree(text_model, folder)
    sizes = {"tie_word_embeddings": True, "intermediate_size": 65}
    config = AutoConfig.from_pretrained(text_model, **sizes)
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return folder


def test_two_processes_with_shards_train_as_one(
    text_model: Path, make_config, two_processes, assert_same, tmp_path: Path
) -> None:
    # of 3 prompts one process has 2, and of 3 held-out questions
    configs = {
        method: make_config(text_model, method=method, steps=3, prompts_per_step=3, **changes)
        for method, changes in CASES.items()
    }
    two_processes([(config, tmp_path / f"{name}-two", None) for name, config in configs.items()])
    for name, config in configs.items():
        one, two = tmp_path / f"{name}-one", tmp_path / f"{name}-two"
        train(config, one)
        assert_same(one, two)
        norms = [
            [line["gradient_norm"] for line in read_log(run / "scalars.jsonl")]
            for run in (one, two)
        ]
        assert norms[0] == pytest.approx(norms[1], rel=1e-5)
        last = [run / "checkpoints" / "last" for run in (one, two)]
        assert {path.name for path in last[0].iterdir()} == {
            path.name for path in last[1].iterdir()
        }
        for file in ("config.json", "generation_config.json"):
            assert len({(folder / file).read_text() for folder in last}) == 1
        kinds = [
            {key: weight.dtype for key, weight in load_file(folder / "model.safetensors").items()}
            for folder in last
        ]
        assert kinds[0] == kinds[1]


def test_in_bfloat16_shards_change_no_bit(
    tied_model: Path, qwen_vl_model: Path, make_config, two_processes, assert_bit_equal, tmp_path
) -> None:
    # the sums of two gradients are the same in any order; the norm's are not, so nothing is clipped
    jobs, pairs = [], []
    for model, changes in ((tied_model, {}), (qwen_vl_model, {"data": {"modality": "both"}})):
        for fsdp in (False, True):
            optimizer = {"precision": "bfloat16", "max_grad_norm": 1e6, "fsdp": fsdp}
            sections = {"optimizer": optimizer, "checkpoint_every": 1, **changes}
            config = make_config(model, prompts_per_step=3, **sections)
            jobs.append((config, tmp_path / f"{model.name}-{fsdp}", None))
        pairs.append((jobs[-2][1], jobs[-1][1]))
        jobs += [(config, tmp_path / f"{model.name}-resumed", stop) for stop in (2, "resume")]
        pairs.append((jobs[-3][1], jobs[-1][1]))
    two_processes(jobs)
    for whole, sharded in pairs:
        assert_bit_equal(whole, sharded)
        whole_lines, lines = (read_log(run / "rollouts.jsonl") for run in (whole, sharded))
        assert [line["ids"] for line in lines] == [line["ids"] for line in whole_lines]


def test_a_run_goes_on_with_and_without_shards_and_processes(
    idefics_model: Path, make_config, two_processes, assert_same, tmp_path: Path
) -> None:
    # with rows without pictures a process may have no gradient where the other one has
    whole, sharded = (
        make_config(
            idefics_model,
            method="flowrl",
            prompts_per_step=3,
            checkpoint_every=1,
            evaluate_every=2,
            evaluation={"questions": 2, "samples": 2},
            data={"modality": "both"},
            optimizer={"fsdp": fsdp},
        )
        for fsdp in (False, True)
    )
    one, to_one, to_two = (tmp_path / name for name in ("one", "to-one", "to-two"))
    train(whole, one)

    def stop(step: int, numbers: object) -> None:
        raise StopError

    with pytest.raises(StopError):
        train(whole, to_two, progress=stop)
    two_processes([(sharded, to_one, 1), (sharded, to_two, "resume")])
    assert len(read_log(to_one / "scalars.jsonl")) == 2
    train(whole, to_one, resume=True)
    assert_same(one, to_one)
    assert_same(one, to_two)


class StopError(Exception):
    """Ends a run from outside."""


def test_one_process_has_nothing_to_shard(
    text_model: Path, make_config, assert_bit_equal, tmp_path: Path
) -> None:
    for fsdp in (False, True):
        train(make_config(text_model, optimizer={"fsdp": fsdp}), tmp_path / str(fsdp))
    assert_bit_equal(tmp_path / "False", tmp_path / "True")


HELD = """
import gc, json, sys, time
from pathlib import Path
import torch
from torch.distributed.tensor import DTensor
from trainers.adapters import merged_state
from trainers.config import load_config
from trainers.distributed import process_group
from trainers.fsdp import shards_of
from trainers.learner import apply_gradient, load_learner

def held():
    # gloo's own threads let go of what was sent a moment later
    last, since = None, time.monotonic()
    while time.monotonic() - since < 0.5:
        time.sleep(0.05)
        if (now := counted()) != last:
            last, since = now, time.monotonic()
    return last

def counted():
    gc.collect()
    found = {}
    for one in gc.get_objects():
        if issubclass(type(one), torch.Tensor):
            one = one._local_tensor if type(one) is DTensor else one
            if one.device.type == "cpu":
                found[one.untyped_storage().data_ptr()] = one.untyped_storage().nbytes()
    return sum(found.values())

def versions(model):
    return sum(parameter._version for parameter in model.parameters())

jobs = json.loads(sys.argv[1])
torch.set_num_threads(1)
said = {}
with process_group(load_config(jobs[0][0])):
    for recipe, run, _ in jobs:
        config = load_config(recipe)
        before = held()
        learner = load_learner(config, config.model)
        model, shards = learner.policy.model, shards_of(learner.policy.model)
        numbers = {"loaded": held() - before}
        for parameter in learner.parameters():
            parameter.grad = torch.ones_like(parameter, dtype=torch.float32)
        numbers["pass"] = held() - before
        version = versions(model)
        apply_gradient(learner, step=0)
        del parameter
        state = merged_state(model)
        numbers |= {
            "stepped": held() - before,
            "noticed": versions(model) > version,
            "state": {name: list(tensor.shape) for name, tensor in state.items()},
            "plain": not any(type(tensor) is DTensor for tensor in state.values()),
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "computed": sum(p.numel() * p.element_size() for p in model.parameters()),
            "buffers": sum(buffer.nbytes for buffer in model.buffers()),
            "device": learner.policy.device.type,
        }
        del state
        if shards is not None:
            with shards.at_rest():
                numbers["rest"] = held() - before
        learner.policy.save(Path(run))
        said[Path(run).name] = numbers
        del learner, model, shards
print(json.dumps(said))
"""
"""What each process holds after loading, with all gradients, after a step, and at rest."""


def test_each_process_holds_its_part_and_what_a_pass_needs(
    text_model: Path, make_config, two_processes, tmp_path: Path
) -> None:
    from transformers import AutoModelForCausalLM

    names = ("float32", "bfloat16", "whole")
    jobs = [
        (
            make_config(
                text_model,
                optimizer={
                    "precision": "bfloat16" if name == "bfloat16" else "float32",
                    "fsdp": name != "whole",
                },
            ),
            tmp_path / name,
            None,
        )
        for name in names
    ]
    for said in two_processes(jobs, worker=HELD):
        found = json.loads(said)
        whole = found["whole"]
        count = whole["parameters"]
        # counts of steps and the like
        room = whole["buffers"] + 2000
        assert whole["loaded"] == pytest.approx(4 * count, abs=room)
        assert whole["pass"] == pytest.approx(8 * count, abs=room)
        assert whole["stepped"] == pytest.approx(12 * count, abs=room)
        for name in ("float32", "bfloat16"):
            one = found[name]
            # every tensor here has an even number of rows
            assert one["loaded"] == pytest.approx(2 * count + one["computed"], abs=room)
            assert one["pass"] == pytest.approx(6 * count + one["computed"], abs=room)
            assert one["stepped"] == pytest.approx(6 * count + one["computed"], abs=room)
            assert one["rest"] == pytest.approx(6 * count, abs=room)
            assert one["state"] == whole["state"]
            assert (one["plain"], one["noticed"], one["device"]) == (True, True, "cpu")
        assert found["float32"]["computed"] == 4 * count
        linear = count - sum(
            shape[0] * shape[-1] if len(shape) > 1 else shape[0]
            for key, shape in whole["state"].items()
            if "embed" in key or "norm" in key
        )
        assert found["bfloat16"]["computed"] == 4 * count - 2 * linear
    # what is pushed to a sampler is what the model computes with
    start, pushed = (
        AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).state_dict()
        for folder in (tmp_path / "whole", tmp_path / "bfloat16")
    )
    for key, weight in start.items():
        torch.testing.assert_close(pushed[key], weight, rtol=2**-8, atol=1e-6)


SPOILED = """
import json, sys
from pathlib import Path
from npbench.errors import InputError
from trainers.config import load_config
from trainers.loop import train

((recipe, run, _),) = json.loads(sys.argv[1])

def progress(step, numbers):
    # a file where the first process wants to make a folder
    (Path(run) / "checkpoints" / ".step-000001.part").touch()

try:
    train(load_config(recipe), Path(run), progress=progress)
except InputError as error:
    print(error)
"""
"""Trains one step, after which no checkpoint can be written."""


def test_a_checkpoint_that_cannot_be_written_is_one_line_on_each_process(
    text_model: Path, make_config, two_processes, tmp_path: Path
) -> None:
    config = make_config(text_model, steps=1, optimizer={"fsdp": True})
    first, second = two_processes([(config, tmp_path / "run", None)], worker=SPOILED)
    assert first.startswith(f"{tmp_path}/run/checkpoints/step-000001 cannot be written: ")
    assert second.startswith("process 1 of 2 cannot go on with the others (")
    assert "\n" not in first + second


def test_what_cannot_be_sharded_is_refused_in_one_line(text_model: Path, make_config) -> None:
    for changes, message in (
        (
            {"optimizer": {"fsdp": True, "share_states": True}},
            "setting optimizer.fsdp: must be false beside share_states, as it shares the moments "
            "out, too, got True",
        ),
        (
            {"optimizer": {"fsdp": True}, "lora": {"rank": 4}},
            "optimizer.fsdp must be false where lora.rank=4 keeps the weights frozen, got true: "
            "optimizer.share_states shares out the adapter's moments",
        ),
    ):
        with pytest.raises(InputError) as error:
            make_config(text_model, **changes)
        assert str(error.value) == message


def test_a_number_without_rows_cannot_be_sharded() -> None:
    model = torch.nn.Module()
    model.scale = torch.nn.Parameter(torch.ones(()))
    with pytest.raises(InputError, match=r"optimizer\.fsdp must be false .* dimension, got scale"):
        shard_model(model, device=torch.device("cpu"), precision=torch.float32)


def test_gradients_in_float32_of_weights_in_bfloat16_need_a_torch_that_has_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trainers.fsdp.Tensor", object)
    model, device = torch.nn.Linear(2, 2), torch.device("cpu")
    with pytest.raises(InputError, match=r"optimizer\.fsdp needs torch>=2\.10 where .*bfloat16"):
        shard_model(model, device=device, precision=torch.bfloat16)


def test_runs_of_earlier_versions_had_no_shards(text_model: Path, make_config) -> None:
    now = make_config(text_model).model_dump(mode="json")
    before = {**now, "optimizer": {k: v for k, v in now["optimizer"].items() if k != "fsdp"}}
    assert differing_setting(before, now) is None
    sharded = make_config(text_model, optimizer={"fsdp": True}).model_dump(mode="json")
    assert differing_setting(before, sharded) == "optimizer.fsdp is false in the run and true now"
