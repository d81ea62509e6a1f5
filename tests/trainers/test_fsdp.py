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
        "optimizer": {
            "fsdp": True,
            "mini_batches": 3,
            "shared_prefix": False,
            "weight_decay": 0.3,
        },
        "loss": {"kl_coef": 0.05},
        "evaluate_every": 2,
        "evaluation": {"questions": 3, "samples": 2},
    },
    "mupo": {"loss": {"embedding": "policy"}, "optimizer": {"fsdp": True}},
    "supervised": {
        "optimizer": {"fsdp": True},
        "stages": [
            {
                "steps": 2,
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
"""A reference and evaluations, the model's own embeddings, no replies."""


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


def test_two_processes_with_shards_train_as_one_and_go_on_without_them(
    text_model: Path, idefics_model: Path, make_config, two_processes, assert_same, tmp_path: Path
) -> None:
    # of 3 prompts one process has 2, and of 3 held-out questions
    configs = {
        method: make_config(text_model, method=method, steps=2, prompts_per_step=3, **changes)
        for method, changes in CASES.items()
    }
    # with a head beside the policy, and rows without pictures: a process may have no gradient where
    # the other one has
    whole, sharded = (
        make_config(
            idefics_model,
            method="flowrl",
            prompts_per_step=3,
            checkpoint_every=1,
            evaluate_every=2,
            evaluation={"questions": 2, "samples": 2},
            data={"modality": "both"},
            optimizer={"fsdp": fsdp, "gradient_checkpointing": True},
        )
        for fsdp in (False, True)
    )
    one, to_one, to_two = (tmp_path / name for name in ("one", "to-one", "to-two"))
    train(whole, one)

    def stop(step: int, numbers: object) -> None:
        raise StopError

    with pytest.raises(StopError):
        train(whole, to_two, progress=stop)
    two_processes(
        [
            *((config, tmp_path / f"{name}-two", None) for name, config in configs.items()),
            (sharded, to_one, 1),
            (sharded, to_two, "resume"),
        ]
    )
    for name, config in configs.items():
        runs = tmp_path / f"{name}-one", tmp_path / f"{name}-two"
        train(config, runs[0])
        assert_same(*runs)
        norms = [
            [line["gradient_norm"] for line in read_log(run / "scalars.jsonl")] for run in runs
        ]
        assert norms[0] == pytest.approx(norms[1], rel=1e-5)
        last = [run / "checkpoints" / "last" for run in runs]
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
    assert len(read_log(to_one / "scalars.jsonl")) == 2
    train(whole, to_one, resume=True)
    assert_same(one, to_one)
    assert_same(one, to_two)


class StopError(Exception):
    """Ends a run from outside."""


SHELVED = """
import json, sys
from pathlib import Path
import trainers.fsdp
from trainers.config import load_config
from trainers.distributed import process_group
from trainers.loop import train

class Stop(Exception):
    pass

def stop(step, numbers):
    raise Stop

trainers.fsdp.SHELF = 700
jobs = json.loads(sys.argv[1])
with process_group(load_config(jobs[0][0])):
    for recipe, run, how in jobs:
        progress = {"progress": stop} if how == "stop" else {}
        try:
            train(load_config(recipe), Path(run), resume=how == "resume", **progress)
        except Stop:
            pass
"""
"""Trains with many shelves, some of one tensor, in each type."""


def test_in_bfloat16_shards_on_many_shelves_change_no_bit(
    tied_model: Path, qwen_vl_model: Path, make_config, two_processes, assert_bit_equal, tmp_path
) -> None:
    # the sums of two gradients are the same in any order; the norm's are not, so nothing is clipped
    jobs, pairs = [], []
    for model, changes in ((tied_model, {}), (qwen_vl_model, {"data": {"modality": "both"}})):
        for fsdp in (False, True):
            optimizer = {"precision": "bfloat16", "max_grad_norm": 1e6, "fsdp": fsdp}
            sections = {"optimizer": optimizer, "checkpoint_every": 1, **changes}
            config = make_config(model, steps=2, prompts_per_step=3, **sections)
            jobs.append((config, tmp_path / f"{model.name}-{fsdp}", None))
        pairs.append((jobs[-2][1], jobs[-1][1]))
        jobs += [(config, tmp_path / f"{model.name}-resumed", how) for how in ("stop", "resume")]
        pairs.append((jobs[-3][1], jobs[-1][1]))
    two_processes(jobs, worker=SHELVED)
    for whole, sharded in pairs:
        assert_bit_equal(whole, sharded)
        whole_lines, lines = (read_log(run / "rollouts.jsonl") for run in (whole, sharded))
        assert [line["ids"] for line in lines] == [line["ids"] for line in whole_lines]


def test_one_process_has_nothing_to_shard(
    text_model: Path, make_config, assert_bit_equal, tmp_path: Path
) -> None:
    for fsdp in (False, True):
        train(make_config(text_model, optimizer={"fsdp": fsdp}), tmp_path / str(fsdp))
    assert_bit_equal(tmp_path / "False", tmp_path / "True")


HELD = """
import gc, json, sys, time, weakref
from pathlib import Path
import torch
from torch.distributed.tensor import DTensor
from npbench.errors import InputError
from trainers.adapters import merged_state
from trainers.config import load_config
from trainers.distributed import first_process, process_group
from trainers.fsdp import shards_of
from trainers.fsdp_states import weights_at_rest
from trainers.learner import apply_gradient, load_learner
from trainers.loop import train

def counted():
    gc.collect()
    found = {}
    for one in gc.get_objects():
        if issubclass(type(one), torch.Tensor):
            one = one._local_tensor if type(one) is DTensor else one
            if one.device.type == "cpu":
                found[one.untyped_storage().data_ptr()] = one.untyped_storage().nbytes()
    return sum(found.values())

patience = 60.0

def held(least, most):
    # gloo's own threads let go of what was sent a moment later
    global patience
    since = time.monotonic()
    while not least <= (now := counted() - before) <= most:
        if time.monotonic() - since > patience:
            break
        time.sleep(0.02)
    patience -= time.monotonic() - since
    return now

def versions(model):
    return sum(parameter._version for parameter in model.parameters())

def save_at_rest(model, shards):
    whole, living, gather = [], [], shards.gather
    def gather_and_count(**options):
        living.append(sum(one() is not None for one in whole))
        gather(**options)
    shards.gather = gather_and_count
    version = versions(model)
    with weights_at_rest(model) as weights:
        whole = [weakref.ref(one) for one in weights.values()]
        del weights
    del shards.gather
    return {"saved": len(whole), "living": living, "same": versions(model) == version}

def fail_at_rest(model, shards):
    try:
        with weights_at_rest(model):
            raise RuntimeError("a fault of its own")
    except RuntimeError as error:
        return str(error)
    finally:
        shards.gather(moved=False)

*jobs, spoiled = json.loads(sys.argv[1])
torch.set_num_threads(1)
said = {}
before = counted()
with process_group(load_config(spoiled[0])):
    for recipe, run, bounds in jobs:
        config = load_config(recipe)
        learner = load_learner(config, config.model)
        model, shards = learner.policy.model, shards_of(learner.policy.model)
        numbers = {"loaded": held(*bounds["loaded"])}
        for parameter in learner.parameters():
            parameter.grad = torch.ones_like(parameter, dtype=torch.float32)
        numbers["pass"] = held(*bounds["pass"])
        version = versions(model)
        apply_gradient(learner, step=0)
        del parameter
        state = merged_state(model)
        numbers |= {
            "stepped": held(*bounds["stepped"]),
            "noticed": versions(model) > version,
            "state": {name: list(tensor.shape) for name, tensor in state.items()},
            "plain": not any(type(tensor) is DTensor for tensor in state.values()),
            "device": learner.policy.device.type,
        }
        del state
        if shards is not None:
            shards.rest()
            numbers["rest"] = held(*bounds["rest"])
            shards.gather(moved=False)
            numbers |= {"saving": save_at_rest(model, shards)}
            numbers |= {"failed": fail_at_rest(model, shards)}
        if first_process():
            learner.policy.save(Path(run))
        said[Path(run).name] = numbers
        del learner, model, shards

    # the first process has what it saved, the second one what all began with
    config = load_config(spoiled[0])
    source = run if first_process() else config.model
    try:
        load_learner(config, source)
    except InputError as error:
        said["mixed"] = str(error)

    def progress(step, numbers):
        # a file where the first process wants to make a folder
        if first_process():
            (Path(spoiled[1]) / "checkpoints" / ".step-000001.part").touch()

    try:
        train(config, Path(spoiled[1]), progress=progress)
    except InputError as error:
        said["spoiled"] = str(error)
print(json.dumps(said))
"""
"""What each process holds after loading, with all gradients, after a step, and at rest; and what it
says of other weights on the other process and of a checkpoint that cannot be written."""


def test_each_process_holds_its_part_and_what_a_pass_needs(
    text_model: Path, make_config, two_processes, tmp_path: Path
) -> None:
    from transformers import AutoModelForCausalLM

    start = AutoModelForCausalLM.from_pretrained(text_model, dtype=torch.float32).state_dict()
    count = sum(weight.numel() for weight in start.values())
    kept = sum(
        weight.numel() for name, weight in start.items() if "embed" in name or weight.ndim == 1
    )
    biases = sum(weight.numel() for name, weight in start.items() if name.endswith("bias"))
    # what is looked up or normalised stays in float32
    computed = {"float32": 4 * count, "bfloat16": 2 * count + 2 * (kept - biases)}
    # every tensor here has an even number of rows
    wanted = {
        name: {
            "loaded": 2 * count + whole,
            "pass": 6 * count + whole,
            "stepped": 6 * count + whole,
            "rest": 6 * count,
        }
        for name, whole in computed.items()
    }
    wanted["whole"] = {"loaded": 4 * count, "pass": 8 * count, "stepped": 12 * count}
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
            # counts of steps, buffers and the like
            {when: (size - 3000, size + 3000) for when, size in sizes.items()},
        )
        for name, sizes in wanted.items()
    ]
    spoiled = make_config(text_model, steps=1, optimizer={"fsdp": True})
    saved = 0
    for said in two_processes([*jobs, (spoiled, tmp_path / "spoiled", None)], worker=HELD):
        found = json.loads(said)
        for name, sizes in wanted.items():
            held = {when: found[name][when] for when in sizes}
            assert held == pytest.approx(sizes, abs=3000)
        for name in computed:
            one = found[name]
            assert one["state"] == {key: list(weight.shape) for key, weight in start.items()}
            assert (one["plain"], one["noticed"], one["device"]) == (True, True, "cpu")
            # nothing of what was saved lies beside the weights that are gathered again
            assert (one["saving"]["living"], one["saving"]["same"]) == ([0], True)
            saved += one["saving"]["saved"]
            assert one["failed"] == "a fault of its own"
        assert found["mixed"].startswith(
            "all processes must have the same parameters to begin with: process "
        )
        assert f"{tmp_path}/spoiled/checkpoints/step-000001 cannot be written: " in found["spoiled"]
        assert "\n" not in found["mixed"] + found["spoiled"]
    # by the first process alone
    assert saved == 2 * len(start)
    # what is pushed to a sampler is what the model computes with
    stepped, pushed = (
        AutoModelForCausalLM.from_pretrained(tmp_path / name, dtype=torch.float32).state_dict()
        for name in ("whole", "bfloat16")
    )
    for key, weight in stepped.items():
        torch.testing.assert_close(pushed[key], weight, rtol=2**-8, atol=1e-6)


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
