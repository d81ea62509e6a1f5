"""Checkpoints with everything in them, written whole or not at all.

``RUN/checkpoints/step-000010`` is a Hugging Face folder that also holds ``trainer.pt`` and
``trainer.json``. It is written under another name and renamed when it is complete, so a folder of
that name is whole. ``last`` and ``best`` are links. Checkpoints lie between steps, so no rollout is
under way; whatever is random is a function of seed and step.
"""

import json
import os
import platform
import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError

from npbench.errors import InputError
from trainers.adapters import adapter_state, load_adapter
from trainers.config import Config, as_toml, differing_setting
from trainers.distributed import check_equal, first_process, processes
from trainers.learner import Learner, load_learner
from trainers.shared_adamw import whole_state

__all__ = ["Position", "claim_run", "last_checkpoint", "open_run", "save_checkpoint"]

LIBRARIES = ("npbench", "torch", "transformers", "numpy", "tokenizers")


@dataclass(frozen=True, slots=True)
class Position:
    """Where a run is."""

    step: int = 0
    """Steps done."""
    cursor: int = 0
    """Questions taken from the stream."""
    best: float | None = None
    """The best held-out score so far."""
    best_step: int | None = None


def last_checkpoint(run: Path) -> Path | None:
    """The newest whole checkpoint of a run; None where there is none."""
    whole = [path for path in _steps(run) if (path / "trainer.json").exists()]
    return whole[-1] if whole else None


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
    found = differing_setting(before, config.model_dump(mode="json"))
    if found:
        raise InputError(f"{run} cannot be resumed with other settings: {found}")
    return last_checkpoint(run)


def open_run(config: Config, run: Path, *, resume: bool) -> tuple[Learner, Position]:
    """The learner of a run at its last checkpoint, or a fresh one; the folder is set up.

    Raises:
        InputError: If the folder cannot be used or the model cannot be loaded; nothing is written.
    """
    checkpoint = claim_run(config, run, resume=resume)
    # a checkpoint of an adapter holds the merged model: the frozen one is where it always was
    frozen = config.lora.rank > 0
    source = config.model if checkpoint is None or frozen else str(checkpoint)
    learner = load_learner(config, source)
    position = Position() if checkpoint is None else _restore(learner, checkpoint)
    check_equal("step to begin with", position.step)
    if not first_process():
        return learner, position
    (run / "checkpoints").mkdir(parents=True, exist_ok=True)
    for unfinished in (run / "checkpoints").glob(".*.part"):
        shutil.rmtree(unfinished)
    if not resume:
        about = {
            "schema": 1,
            "config": config.model_dump(mode="json"),
            "versions": {name: version(name) for name in LIBRARIES},
            "python": platform.python_version(),
        }
        (run / "config.toml").write_text(as_toml(config), encoding="utf-8")
        _write(run / "run.json", json.dumps(about, indent=1) + "\n")
    return learner, position


def _write(path: Path, text: str) -> None:
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


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
        check_equal("trained parameters", _sums(learner.parameters()))
    optimizer = whole_state(learner.optimizer)
    if metric is not None and (position.best is None or metric > position.best):
        position = replace(position, best=metric, best_step=position.step)
    if not first_process():
        return position
    folder = run / "checkpoints"
    target = folder / f"step-{position.step:06d}"
    part = folder / f".{target.name}.part"
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        learner.policy.save(part)
        _save_state(learner, optimizer, part, position)
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
    return position


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


def _save_state(
    learner: Learner, optimizer: dict[str, Any], folder: Path, position: Position
) -> None:
    """All but the model, which is there already; ``trainer.json`` is the mark of completion."""
    state: dict[str, Any] = {
        "optimizer": optimizer,
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }
    state["adapter"] = adapter_state(learner.policy.model)
    if learner.log_z is not None:
        state["log_z"] = learner.log_z.state_dict()
    if learner.reference is not None and not learner.reference.without_adapter:
        state["reference"] = _fingerprint(learner.reference.model)
    torch.save(state, folder / "trainer.pt")
    kind, words, *rest = np.random.get_state()  # noqa: NPY002
    about = {
        "schema": 1,
        "step": position.step,
        "cursor": position.cursor,
        "best": position.best,
        "best_step": position.best_step,
        "config": learner.config.model_dump(mode="json"),
        "versions": {name: version(name) for name in LIBRARIES},
        "python_rng": random.getstate(),
        "numpy_rng": [kind, np.asarray(words).tolist(), *rest],
    }
    _write(folder / "trainer.json", json.dumps(about) + "\n")


def _restore(learner: Learner, folder: Path) -> Position:
    """Puts a checkpoint's state into a learner that was loaded from it.

    Raises:
        InputError: If the reference is not the one that the run began with.
    """
    about = json.loads((folder / "trainer.json").read_text(encoding="utf-8"))
    state = torch.load(folder / "trainer.pt", map_location="cpu", weights_only=True)
    learner.optimizer.load_state_dict(state["optimizer"])
    if learner.config.lora.rank:
        load_adapter(learner.policy.model, state["adapter"])
    if learner.log_z is not None:
        learner.log_z.load_state_dict(state["log_z"])
    reference = learner.reference
    if "reference" in state and reference and state["reference"] != _fingerprint(reference.model):
        raise InputError(
            f"the reference {learner.config.reference or learner.config.model} has changed since "
            f"{folder} was written"
        )
    torch.set_rng_state(state["torch"])
    if state["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["cuda"])
    kind, words, numbers = about["python_rng"]
    random.setstate((kind, tuple(words), numbers))
    np.random.set_state(tuple(about["numpy_rng"]))  # noqa: NPY002
    return Position(about["step"], about["cursor"], about["best"], about["best_step"])


def _fingerprint(model: torch.nn.Module) -> list[float]:
    """Sums over all parameters that differ between any two models in practice."""
    return _sums(list(model.parameters()))


def _sums(parameters: Sequence[torch.nn.Parameter]) -> list[float]:
    with torch.no_grad():
        first = sum(float(p.double().sum()) for p in parameters)
        second = sum(float(p.double().square().sum()) for p in parameters)
    return [first, second]
