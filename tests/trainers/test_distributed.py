"""Several processes train as one does: the same rollouts, losses, gradients and parameters."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from npbench.errors import InputError
from trainers.config import as_toml
from trainers.distributed import process_group
from trainers.logs import read_log
from trainers.loop import train

CASES = {
    "grpo": {"optimizer": {"mini_batches": 2}, "loss": {"kl_coef": 0.05}},
    "gpg": {},
    "clip_cov": {"loss": {"share": 0.2, "low": 0.0}, "optimizer": {"mini_batches": 2}},
    "dmpo": {"evaluate_every": 2, "evaluation": {"questions": 3, "samples": 2}},
    "mupo": {"loss": {"embedding": "policy"}},
    "flowrl": {"lora": {"rank": 2}},
    "share_grpo": {},
    "dapo": {"dynamic_sampling": {"enabled": True, "max_rounds": 2}},
    "supervised": {
        "stages": [
            {
                "steps": 2,
                "mix": [
                    {
                        "data": {"suite": "nano", "tasks": ["vertex_cover"], "modality": "text"},
                        "targets": {"teacher": 1.0},
                        "replies": 2,
                    }
                ],
            }
        ]
    },
}
"""Methods whose credit sees the whole step, a group, or clusters; adapters, heads and rounds."""


def test_two_processes_train_as_one_or_write_no_checkpoint(
    text_model: Path, make_config, two_processes, assert_same, assert_bit_equal, tmp_path: Path
) -> None:
    configs = {
        method: make_config(
            text_model,
            method=method,
            steps=2,
            prompts_per_step=4 if "optimizer" in changes else 3,
            **changes,
        )
        for method, changes in CASES.items()
    }
    jobs = [(config, tmp_path / f"{name}-two", None) for name, config in configs.items()]
    sharing = {**CASES["dmpo"], "optimizer": {"share_states": True}}
    sharer = make_config(text_model, method="dmpo", steps=2, prompts_per_step=3, **sharing)
    jobs.append((sharer, tmp_path / "shared", None))
    sharing = {**CASES["flowrl"], "optimizer": {"share_states": True}}
    sharer = make_config(text_model, method="flowrl", steps=2, prompts_per_step=3, **sharing)
    jobs.append((sharer, tmp_path / "shared-adapter", None))
    # at the end a run that is not the same in both
    mixed = [
        make_config(text_model, steps=1, optimizer={"learning_rate": rate}) for rate in (1e-3, 1e-2)
    ]
    said = two_processes(*([*jobs, (config, tmp_path / "mixed", None)] for config in mixed))
    for line in said:
        assert line.startswith("all processes must have the same trained parameters: process ")
        assert "\n" not in line
    assert not list((tmp_path / "mixed" / "checkpoints").iterdir())
    assert_bit_equal(tmp_path / "dmpo-two", tmp_path / "shared")
    assert_bit_equal(tmp_path / "flowrl-two", tmp_path / "shared-adapter")
    for name, config in configs.items():
        train(config, tmp_path / f"{name}-one")
        assert_same(tmp_path / f"{name}-one", tmp_path / f"{name}-two")


SHARE = """
import json, sys
import torch
from trainers.config import load_config
from trainers.distributed import process_group
from trainers.shared_adamw import SharedAdamW

torch.manual_seed(0)
sizes = (7, 1, 30, 4, 20)
made = [torch.nn.Parameter(torch.randn(size)) for size in sizes]
groups = [{"params": made[:3], "rate": 1.0}, {"params": made[3:], "rate": 2.0}]
with process_group(load_config(json.loads(sys.argv[1])[0][0])):
    optimizer = SharedAdamW(groups, lr=0.1, betas=(0.9, 0.99), weight_decay=0.1)
    for number, parameter in enumerate(made):
        # one parameter never has a gradient
        parameter.grad = None if number == 1 else torch.full_like(parameter, number + 1.0)
    for rate in (0.1, 0.2):
        for group in optimizer.param_groups:
            group["lr"] = group["rate"] * rate
        optimizer.step()
    whole = optimizer.whole_state()
    print(json.dumps({
        "own": sorted(optimizer.own_state()),
        "values": [parameter.tolist() for parameter in made],
        "state": {n: {k: v.tolist() for k, v in s.items()} for n, s in whole["state"].items()}
        if whole else None,
        "groups": [group["params"] for group in whole["param_groups"]] if whole else None,
    }))
"""
"""Two steps of a shared AdamW, and what each process keeps of it."""


def test_each_process_keeps_the_moments_of_its_own_parameters_alone(
    text_model: Path, make_config, two_processes
) -> None:
    said = two_processes([(make_config(text_model), Path("unused"), None)], worker=SHARE)
    first, second = (json.loads(line) for line in said)
    # 30 + 1 and 20 + 7 + 4 numbers; parameter 1 was never stepped
    assert (first["own"], second["own"]) == ([2], [0, 3, 4])
    assert first["values"] == second["values"]
    torch.manual_seed(0)
    made = [torch.nn.Parameter(torch.randn(size)) for size in (7, 1, 30, 4, 20)]
    groups = [{"params": made[:3], "rate": 1.0}, {"params": made[3:], "rate": 2.0}]
    plain = torch.optim.AdamW(groups, lr=0.1, betas=(0.9, 0.99), weight_decay=0.1)
    for number, parameter in enumerate(made):
        parameter.grad = None if number == 1 else torch.full_like(parameter, number + 1.0)
    for rate in (0.1, 0.2):
        for group in plain.param_groups:
            group["lr"] = group["rate"] * rate
        plain.step()
    assert first["values"] == [parameter.tolist() for parameter in made]
    known = plain.state_dict()
    assert first["groups"] == [group["params"] for group in known["param_groups"]]
    assert first["state"] == {
        str(number): {name: value.tolist() for name, value in state.items()}
        for number, state in known["state"].items()
    }
    assert second["state"] is None


def test_a_run_goes_on_with_another_number_of_processes(
    idefics_model: Path, make_config, two_processes, assert_same, tmp_path: Path
) -> None:
    # with rows without pictures a process may have no gradient where the other one has
    config = make_config(
        idefics_model,
        method="flowrl",
        steps=3,
        prompts_per_step=3,
        checkpoint_every=1,
        evaluate_every=2,
        evaluation={"questions": 2, "samples": 2},
        data={"modality": "both"},
        optimizer={"share_states": True},
    )
    whole, to_one, to_two = (tmp_path / name for name in ("whole", "to-one", "to-two"))
    train(config, whole)

    def stop(step: int, numbers: object) -> None:
        raise StopError

    with pytest.raises(StopError):
        train(config, to_two, progress=stop)
    two_processes([(config, to_one, 1), (config, to_two, "resume")])
    assert len(read_log(to_one / "scalars.jsonl")) == 2
    train(config, to_one, resume=True)
    assert_same(whole, to_one)
    assert_same(whole, to_two)


class StopError(Exception):
    """Ends a run from outside."""


MEET = """
import json, sys
from npbench.errors import InputError
from trainers.config import load_config
from trainers.distributed import check_equal, first_process, gathered, process_group

with process_group(load_config(json.loads(sys.argv[1])[0][0])):
    for meet in (lambda: check_equal("answer", first_process()), lambda: gathered(1)):
        try:
            print(meet())
        except InputError as error:
            print(error)
        if not first_process():
            sys.exit()
"""
"""Two processes that disagree; then one of them ends."""


def test_processes_that_disagree_or_are_lost_are_named_in_one_line(
    text_model: Path, make_config, two_processes
) -> None:
    said = two_processes([(make_config(text_model), Path("unused"), None)], worker=MEET)
    assert said[1] == (
        "all processes must have the same answer: process 1 has False, process 0 has True"
    )
    disagree, lost = said[0].splitlines()
    assert disagree.endswith("process 0 has True, process 1 has False")
    assert lost.startswith("process 0 of 2 cannot go on with the others (")
    assert lost.endswith("the run can go on from its last checkpoint with --resume")


def test_the_command_runs_under_torchrun(
    text_model: Path, make_config, assert_same, tmp_path: Path
) -> None:
    config = make_config(text_model, steps=1)
    recipe, run = tmp_path / "recipe.toml", tmp_path / "run"
    recipe.write_text(as_toml(config))
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    path = os.pathsep.join([str(tmp_path / "toy"), *sys.path])
    done = subprocess.run(
        [sys.executable, *launch, "-m", "npbench", "train", "--recipe", recipe, "--out", run],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == [str(run / "checkpoints" / "last")]
    assert [line["step"] for line in read_log(run / "scalars.jsonl")] == [0]
    train(config, tmp_path / "one")
    assert_same(tmp_path / "one", run)


@pytest.mark.parametrize(
    ("changes", "variables", "message"),
    [
        ({"prompts_per_step": 1}, {}, "prompts_per_step must be at least the 2 processes, got 1"),
        ({"device": "cuda:0"}, {}, "device must be auto, cuda or cpu in 2 processes, got 'cuda:0'"),
        (
            {"rollouts": {"backend": "vllm", "tensor_parallel": 4}},
            {},
            "rollouts.tensor_parallel must be 1 in 2 processes, .* got 4",
        ),
        (
            {},
            {"ACCELERATE_USE_FSDP": "true"},
            r"accelerate must start plain processes \(--multi_gpu\), got FSDP: optimizer.fsdp=true",
        ),
        (
            {},
            {"ACCELERATE_MIXED_PRECISION": "bf16"},
            "accelerate's mixed precision must be 'no', got 'bf16': set optimizer.precision",
        ),
        ({}, {"RANK": "one"}, "the environment variable RANK must be a whole number, got 'one'"),
        ({}, {}, "WORLD_SIZE=2 asks for several processes, but MASTER_ADDR is not set"),
    ],
)
def test_what_cannot_be_shared_out_is_refused_in_one_line(
    changes: dict,
    variables: dict[str, str],
    message: str,
    text_model: Path,
    make_config,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = make_config(text_model, **changes)
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    for name, value in {"WORLD_SIZE": "2", "RANK": "0", **variables}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=message) as error, process_group(config):
        pass
    assert "\n" not in str(error.value)


def test_a_sweep_is_refused_in_several_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from trainers.cli import train_command

    monkeypatch.setenv("WORLD_SIZE", "2")
    arguments = ["--sweep", "tiny-mupo-groups", "--out", "sweep"]
    with pytest.raises(InputError, match="a sweep must run in 1 process, got 2"):
        CliRunner().invoke(train_command, arguments, catch_exceptions=False)
