"""What a checkpoint holds beside the model: optimiser, random states, and where the run is."""

import json
import random
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from npbench.errors import InputError
from trainers.adapters import adapter_state, load_adapter
from trainers.fsdp_states import load_state
from trainers.learner import Learner
from trainers.loading import sums

__all__ = ["LIBRARIES", "Position", "restore", "save_state", "sums", "write_text"]

LIBRARIES = ("npbench", "torch", "transformers", "numpy", "tokenizers")
"""Those whose versions a run notes."""


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


def write_text(path: Path, text: str) -> None:
    """Writes a file whole or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def save_state(
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
    write_text(folder / "trainer.json", json.dumps(about) + "\n")


def restore(learner: Learner, folder: Path) -> Position:
    """Puts a checkpoint's state into a learner that was loaded from it.

    Raises:
        InputError: If the reference is not the one that the run began with.
    """
    about = json.loads((folder / "trainer.json").read_text(encoding="utf-8"))
    state = torch.load(folder / "trainer.pt", map_location="cpu", weights_only=True)
    load_state(learner.optimizer, state["optimizer"])
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
    return sums(list(model.parameters()))
