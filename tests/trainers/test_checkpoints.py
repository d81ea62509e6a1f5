"""Checkpoints: everything in them, whole or absent; resumed runs equal to uninterrupted ones."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from npbench.errors import InputError
from trainers.checkpoints import last_checkpoint, open_run, save_checkpoint
from trainers.config import Config, as_toml, load_config
from trainers.interruptions import undisturbed
from trainers.logs import read_log
from trainers.loop import train

TIMES = {"seconds", "tokens_per_second"}


class StopError(Exception):
    """Ends a run from outside."""


def stop_after(step: int):
    def progress(done: int, numbers: object) -> None:
        if done == step:
            raise StopError

    return progress


def assert_same_end(one: Path, two: Path) -> None:
    """The same weights, optimiser, logs and rollouts."""
    a, b = (load_file(run / "checkpoints" / "last" / "model.safetensors") for run in (one, two))
    assert all(torch.equal(a[name], b[name]) for name in a)
    states = [
        torch.load(run / "checkpoints" / "last" / "trainer.pt", weights_only=True)
        for run in (one, two)
    ]
    for first, second in zip(
        states[0]["optimizer"]["state"].values(),
        states[1]["optimizer"]["state"].values(),
        strict=True,
    ):
        assert all(torch.equal(first[name], second[name]) for name in first)
    if "log_z" in states[0]:
        assert all(
            torch.equal(states[0]["log_z"][name], states[1]["log_z"][name])
            for name in states[0]["log_z"]
        )
    for name in ("scalars.jsonl", "rollouts.jsonl", "evaluations.jsonl"):
        logs = [
            [{k: v for k, v in row.items() if k not in TIMES} for row in read_log(run / name)]
            for run in (one, two)
        ]
        assert logs[0] == logs[1]


@pytest.mark.parametrize("method", ["grpo", "flowrl", "clip_cov", "mupo"])
def test_a_resumed_run_is_the_uninterrupted_one(
    method: str, text_model: Path, make_config, tmp_path: Path
) -> None:
    config = make_config(
        text_model,
        method=method,
        steps=5,
        checkpoint_every=2,
        evaluate_every=2,
        evaluation={"questions": 2, "samples": 2},
        optimizer={"schedule": "cosine", "warmup_steps": 1},
    )
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    train(config, whole)
    for step in (0, 2, 3):
        with pytest.raises(StopError):
            train(config, broken, resume=broken.exists(), progress=stop_after(step))
    train(config, broken, resume=True)
    assert_same_end(whole, broken)


@pytest.fixture
def ctrl_c():
    """A function that interrupts this process as Ctrl-C does."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: os.kill(os.getpid(), signal.SIGINT)
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("where", "call", "last"),
    [
        # a step that is being learnt from is ended, one that is being drawn is given up
        ("learn", 3, "step-000003"),
        ("_fill", 3, "step-000002"),
        ("evaluate", 3, "step-000004"),
    ],
)
def test_an_interrupted_run_keeps_its_whole_steps_and_ends_as_the_uninterrupted_one(
    where: str,
    call: int,
    last: str,
    ctrl_c,
    text_model: Path,
    make_config,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from trainers import loop

    config = make_config(
        text_model, steps=5, evaluate_every=2, evaluation={"questions": 2, "samples": 2}
    )
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    train(config, whole)
    calls, plain = [], getattr(loop, where)

    def interrupted(*given, **named):
        calls.append(1)
        if len(calls) == call:
            ctrl_c()
        return plain(*given, **named)

    with monkeypatch.context() as patched:
        patched.setattr(loop, where, interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(config, broken)
    assert len(calls) == call
    assert (broken / "checkpoints" / "last").resolve().name == last
    train(config, broken, resume=True)
    assert_same_end(whole, broken)
    links = [(run / "checkpoints" / "best").resolve().name for run in (whole, broken)]
    assert links[0] == links[1]


def test_a_second_interruption_does_not_wait(ctrl_c) -> None:
    reached = []

    def work() -> None:
        with undisturbed():
            for number in range(3):
                ctrl_c()
                reached.append(number)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert reached == [0]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_resumed_run_notes_the_settings_that_it_goes_on_with(
    text_model: Path, make_config, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    with pytest.raises(StopError):
        train(make_config(text_model, checkpoint_every=1), run, progress=stop_after(1))
    changed = make_config(text_model, checkpoint_every=1, optimizer={"share_states": True})
    train(changed, run, resume=True)
    assert load_config(str(run / "config.toml")).optimizer.share_states


def test_a_checkpoint_is_a_hugging_face_folder(
    text_model: Path, make_config, tmp_path: Path
) -> None:
    train(make_config(text_model, steps=1), tmp_path / "run")
    last = tmp_path / "run" / "checkpoints" / "last"
    model = AutoModelForCausalLM.from_pretrained(last)
    assert model.config.vocab_size == 404
    assert AutoTokenizer.from_pretrained(last).chat_template
    assert last.resolve().name == "step-000001"


def test_a_bounded_number_is_kept_and_the_best_among_them(
    text_model: Path, make_config, tmp_path: Path
) -> None:
    config = make_config(text_model, keep_checkpoints=1)
    learner, position = open_run(config, tmp_path / "run", resume=False)
    for step, metric in ((1, 0.9), (2, 0.1), (3, None), (4, 0.3)):
        position = replace(position, step=step)
        position = save_checkpoint(learner, tmp_path / "run", position, metric=metric)
    folder = tmp_path / "run" / "checkpoints"
    assert sorted(path.name for path in folder.glob("step-*")) == ["step-000001", "step-000004"]
    assert (folder / "best").resolve().name == "step-000001"
    assert (folder / "last").resolve().name == "step-000004"
    assert (position.best, position.best_step) == (0.9, 1)


def test_other_settings_are_refused_by_name(text_model: Path, make_config, tmp_path: Path) -> None:
    train(make_config(text_model, steps=1), tmp_path / "run")
    other = make_config(text_model, steps=1, sampling={"temperature": 0.5})
    with pytest.raises(InputError, match=r"sampling\.temperature is 1\.0 in the run and 0\.5 now"):
        train(other, tmp_path / "run", resume=True)


def test_a_folder_that_is_not_empty_is_left_alone(
    text_model: Path, make_config, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine.txt").write_text("keep")
    with pytest.raises(InputError, match="is not empty"):
        train(make_config(text_model), tmp_path / "run")
    with pytest.raises(InputError, match="is no run"):
        train(make_config(text_model), tmp_path / "run", resume=True)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["mine.txt"]


def test_what_a_killed_save_leaves_is_never_taken(
    text_model: Path, make_config, tmp_path: Path
) -> None:
    config = make_config(text_model, steps=3, checkpoint_every=1)
    train(config, tmp_path / "whole")
    run = tmp_path / "run"
    with pytest.raises(StopError):
        train(config, run, progress=stop_after(2))
    folder = run / "checkpoints"
    shutil.copytree(folder / "step-000002", folder / ".step-000003.part")
    (folder / ".step-000003.part" / "trainer.json").unlink()
    shutil.copytree(folder / ".step-000003.part", folder / "step-000003")
    with (run / "scalars.jsonl").open("a") as log:
        log.write('{"step": 2, "rew')
    found = last_checkpoint(run)
    assert found is not None
    assert found.name == "step-000002"
    train(config, run, resume=True)
    assert not list(folder.glob(".*"))
    assert_same_end(tmp_path / "whole", run)


@pytest.mark.parametrize("size", [1_000, 100_000])
def test_no_space_left_is_one_line_and_earlier_checkpoints_stay(
    size: int, text_model: Path, make_config, tmp_path: Path
) -> None:
    config = make_config(text_model)
    learner, position = open_run(config, tmp_path / "run", resume=False)
    save_checkpoint(learner, tmp_path / "run", replace(position, step=1), metric=None)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    # a file beyond the limit fails in the middle of being written, as on a full disk
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        with pytest.raises(InputError, match="step-000002 cannot be written") as error:
            save_checkpoint(learner, tmp_path / "run", replace(position, step=2), metric=None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "\n" not in str(error.value)
    folder = tmp_path / "run" / "checkpoints"
    assert sorted(path.name for path in folder.iterdir()) == ["last", "step-000001"]


def test_a_reference_that_has_changed_is_refused(
    text_model: Path, make_config, tmp_path: Path
) -> None:
    model = tmp_path / "text"
    shutil.copytree(text_model, model)
    config = make_config(model, steps=2, checkpoint_every=1, loss={"kl_coef": 0.1})
    with pytest.raises(StopError):
        train(config, tmp_path / "run", progress=stop_after(1))
    weights = load_file(model / "model.safetensors")
    weights["lm_head.weight"] += 1.0
    from safetensors.torch import save_file

    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"reference .* has changed"):
        train(config, tmp_path / "run", resume=True)


def run_in_process(config: Config, run: Path, toy: str, *, resume: bool) -> subprocess.Popen[bytes]:
    recipe = run.parent / "recipe.toml"
    recipe.write_text(as_toml(config))
    code = (
        "import sys; from pathlib import Path; from trainers.config import load_config; "
        "from trainers.loop import train; "
        f"train(load_config({str(recipe)!r}), Path({str(run)!r}), resume={resume})"
    )
    path = os.pathsep.join([toy, *sys.path])
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.mark.slow
def test_a_run_killed_at_any_moment_ends_as_the_uninterrupted_one(
    text_model: Path, make_config, tmp_path: Path
) -> None:
    config = make_config(text_model, steps=30, checkpoint_every=1)
    train(config, tmp_path / "whole")
    run = tmp_path / "killed"
    for moment in (0.0, 0.02, 0.05, 0.09, 0.14, None):
        process = run_in_process(config, run, str(tmp_path / "toy"), resume=run.exists())
        if moment is None:
            assert process.wait() == 0
            break
        # one checkpoint more than before, then at any moment: in a step, or while saving
        before = last_checkpoint(run)
        while process.poll() is None and last_checkpoint(run) == before:
            time.sleep(0.005)
        time.sleep(moment)
        assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert_same_end(tmp_path / "whole", run)
