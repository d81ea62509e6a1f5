"""Checkpoints with everything in them, written whole or not at all.

``RUN/checkpoints/step-000010`` is a Hugging Face folder that also holds ``trainer.pt`` and
``trainer.json``. It is written under another name and renamed when it is complete, so a folder of
that name is whole. ``last`` and ``best`` are links. Checkpoints lie between steps, so no rollout is
under way; whatever is random is a function of seed and step.
"""

import json
import os
import platform
import shutil
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from torch import Tensor

from npbench.errors import InputError
from trainers.config import Config, as_toml, differing_setting
from trainers.distributed import check_equal, first_process, processes, stop_together
from trainers.fsdp_states import weights_at_rest
from trainers.learner import Learner, load_learner
from trainers.run_state import LIBRARIES, Position, restore, save_state, sums, write_text
from trainers.shared_adamw import whole_state

__all__ = [
    "Position",
    "begin_run",
    "claim_run",
    "last_checkpoint",
    "open_run",
    "save_checkpoint",
    "steps_of",
]

SHARING = ("share_states", "fsdp")
"""Settings of the optimiser that may change between a run and its resumption."""


def last_checkpoint(run: Path) -> Path | None:
    """The newest whole checkpoint of a run; None where there is none."""
    whole = [path for path in _steps(run) if (path / "trainer.json").exists()]
    return whole[-1] if whole else None


def steps_of(checkpoint: Path) -> int:
    """The steps that a run had done when it wrote a checkpoint."""
    return int(checkpoint.name.removeprefix("step-"))


def _steps(run: Path) -> list[Path]:
    return sorted((run / "checkpoints").glob("step-" + "[0-9]" * 6))


def claim_run(config: Config, run: Path, *, resume: bool) -> Path | None:
    """Checks that a run may be written there, and gives the checkpoint to go on from, if any.

    Of several processes the first one checks: it may have begun to write when the others look.

    Raises:
        InputError: If a new run's folder is not empty, or a resumed one's settings differ.
    """
    stated = run / "run.json"
    if not first_process():
        return last_checkpoint(run) if resume else None
    if not resume:
        if run.exists() and any(run.iterdir()):
            raise InputError(f"{run} is not empty; go on with --resume {run} or choose another")
        return None
    if not stated.exists():
        raise InputError(f"{run} is no run: it has no run.json")
    before = json.loads(stated.read_text(encoding="utf-8"))["config"]
    now = config.model_dump(mode="json")
    # how memory is shared out changes neither the run nor its checkpoints
    now["optimizer"] |= {name: before["optimizer"].get(name, False) for name in SHARING}
    found = differing_setting(before, now)
    if found:
        raise InputError(f"{run} cannot be resumed with other settings: {found}")
    return last_checkpoint(run)


def open_run(config: Config, run: Path, *, resume: bool) -> tuple[Learner, Position]:
    """The learner of a run at its last checkpoint, or a fresh one; nothing is written.

    Raises:
        InputError: If the folder cannot be used or the model cannot be loaded.
    """
    # one that shards and one that does not would wait for each other
    check_equal("optimizer.fsdp", config.optimizer.fsdp)
    checkpoint = claim_run(config, run, resume=resume)
    # a checkpoint of an adapter holds the merged model: the frozen one is where it always was
    frozen = config.lora.rank > 0
    source = config.model if checkpoint is None or frozen else str(checkpoint)
    learner = load_learner(config, source)
    position = Position() if checkpoint is None else restore(learner, checkpoint)
    check_equal("step to begin with", position.step)
    return learner, position


def begin_run(config: Config, run: Path, *, resume: bool) -> None:
    """Sets a run's folder up, or notes with which settings it goes on; the first process does.

    Raises:
        InputError: If it cannot be written.
    """
    if not first_process():
        return
    try:
        _begin_run(config, run, resume=resume)
    except OSError as error:
        raise InputError(f"{run} cannot be written: {error.strerror or error}") from error


def _begin_run(config: Config, run: Path, *, resume: bool) -> None:
    (run / "checkpoints").mkdir(parents=True, exist_ok=True)
    for unfinished in (run / "checkpoints").glob(".*.part"):
        shutil.rmtree(unfinished)
    write_text(run / "config.toml", as_toml(config))
    if not resume:
        about = {
            "schema": 1,
            "config": config.model_dump(mode="json"),
            "versions": {name: version(name) for name in LIBRARIES},
            "python": platform.python_version(),
        }
        write_text(run / "run.json", json.dumps(about, indent=1) + "\n")


def save_checkpoint(
    learner: Learner, run: Path, position: Position, *, metric: float | None
) -> Position:
    """Writes a checkpoint, moves the links, removes what is beyond the bounded number.

    Of several processes the first one writes, once all have shown that they hold the same.

    Args:
        learner: What to keep.
        run: The run's folder.
        position: Where the run is.
        metric: The held-out score at this step, where it was measured.

    Returns:
        The position, with the best score brought up to date.

    Raises:
        InputError: If it cannot be written, for want of space say; earlier ones stay.
    """
    if processes() > 1:
        check_equal("trained parameters", sums(learner.parameters()))
    optimizer = whole_state(learner.optimizer)
    if metric is not None and (position.best is None or metric > position.best):
        position = replace(position, best=metric, best_step=position.step)
    failure = None
    with weights_at_rest(learner.policy.model) as weights:
        try:
            if first_process():
                _write_checkpoint(learner, run, position, weights, optimizer)
        except InputError as error:
            failure = error
        # whole moments must not lie beside weights that are gathered again
        del weights, optimizer
    stop_together(failure)
    return position


def _write_checkpoint(
    learner: Learner,
    run: Path,
    position: Position,
    weights: Mapping[str, Tensor] | None,
    optimizer: dict[str, Any],
) -> None:
    """Writes a checkpoint, moves the links, removes what is beyond the bounded number.

    Raises:
        InputError: If it cannot be written.
    """
    folder = run / "checkpoints"
    target = folder / f"step-{position.step:06d}"
    part = folder / f".{target.name}.part"
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        learner.policy.save(part, weights)
        save_state(learner, optimizer, part, position)
        for path in [*part.iterdir(), part]:
            _to_disk(path)
        if target.exists():
            shutil.rmtree(target)
        part.rename(target)
        _to_disk(folder)
    # a full disk comes as each library's own error
    except (OSError, RuntimeError, SafetensorError) as error:
        shutil.rmtree(part, ignore_errors=True)
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"{target} cannot be written: {reason}") from error
    _link(folder / "last", target.name)
    if position.best_step == position.step:
        _link(folder / "best", target.name)
    _remove_old(run, learner.config, position)


def _to_disk(path: Path) -> None:
    """Waits until a file or folder is on the disk, so that a rename never comes before it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _link(link: Path, target: str) -> None:
    fresh = link.with_name(f".{link.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(link)


def _remove_old(run: Path, config: Config, position: Position) -> None:
    """Removes all but the newest, the best and those at the end of a stage."""
    kept = {f"step-{step:06d}" for step in (position.best_step, *config.stage_ends) if step}
    for path in _steps(run)[: -config.keep_checkpoints]:
        if path.name not in kept:
            shutil.rmtree(path)
