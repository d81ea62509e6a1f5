"""All runs of a sweep, one after the other: each in a folder of its own, finished ones skipped."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npbench.errors import InputError
from trainers.checkpoints import claim_run, last_checkpoint
from trainers.config import Config
from trainers.logs import read_log
from trainers.sweeps import SweepRun

__all__ = ["RESULTS", "Progress", "read_progress", "result_rows", "results", "train_sweep"]

RESULTS = ("score", "sr", "qr", "accuracy", "accuracy_at_k", "solved_at_k", "distinct", "diversity")
"""Numbers of the last held-out evaluation that the table shows, where they are known."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is."""

    step: int
    """Steps that its last checkpoint holds."""
    steps: int
    begun: bool
    """Whether its folder is there."""

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do."""
        return self.step >= self.steps

    def __str__(self) -> str:
        """In words."""
        if self.finished:
            return "finished"
        return f"step {self.step} of {self.steps}" if self.begun else "new"


def read_progress(run: SweepRun, out: Path) -> Progress:
    """How far a run is; its folder is checked against its settings.

    Raises:
        InputError: If the folder holds something else, or a run with other settings.
    """
    folder = out / run.folder
    begun = (folder / "run.json").exists()
    claim_run(run.config, folder, resume=begun)
    last = last_checkpoint(folder)
    done = 0
    if last is not None:
        done = json.loads((last / "trainer.json").read_text(encoding="utf-8"))["step"]
    return Progress(done, run.config.steps, begun)


def train_sweep(
    runs: Sequence[SweepRun],
    out: Path,
    *,
    train: Callable[..., None],
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Trains what is not finished; every folder is checked before the first one is touched.

    Args:
        runs: The sweep's runs.
        out: The folder of their folders.
        train: Called with configuration, folder and ``resume=``.
        say: Takes a line on each run.

    Raises:
        InputError: If a run cannot be trained; those before it stay, and the same call goes on.
    """
    progress = [read_progress(run, out) for run in runs]
    for number, (run, before) in enumerate(zip(runs, progress, strict=True), start=1):
        say(f"{number} of {len(runs)}: {run.folder} ({before})")
        if before.finished:
            continue
        try:
            train(run.config, out / run.folder, resume=before.begun)
        except InputError as error:
            raise InputError(f"run {run.folder}: {error}") from error


def results(runs: Sequence[SweepRun], out: Path) -> Iterator[Mapping[str, Any]]:
    """What each run was set to and reached: its last evaluation, and its last step's reward."""
    for run in runs:
        evaluations = read_log(out / run.folder / "evaluations.jsonl")
        scalars = read_log(out / run.folder / "scalars.jsonl")
        yield {
            "folder": run.folder,
            "settings": dict(run.settings),
            "steps": _steps(run.config, scalars),
            "evaluation": evaluations[-1] if evaluations else None,
            "reward": scalars[-1].get("reward") if scalars else None,
        }


def _steps(config: Config, scalars: Sequence[Mapping[str, Any]]) -> int:
    return min(config.steps, int(scalars[-1]["step"]) + 1) if scalars else 0


def result_rows(found: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the table; a column that no run has a number for is left out."""
    shown = [name for name in RESULTS if any(_number(one, name) is not None for one in found)]
    header = ["run", "steps", "reward", *shown]
    rows = [
        [
            one["folder"],
            str(one["steps"]),
            _shown(one["reward"]),
            *(_shown(_number(one, name)) for name in shown),
        ]
        for one in found
    ]
    return header, rows


def _number(one: Mapping[str, Any], name: str) -> float | None:
    value = (one["evaluation"] or {}).get(name)
    return None if value is None else float(value)


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
