"""One unit of a reproduction: trains an arm on a seed and evaluates its checkpoints, cell by cell.

What is finished is skipped, an interrupted training goes on to the very steps of an uninterrupted
one.
"""

import hashlib
import json
import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leaderboards.reproduction_cells import SCHEMA, Cell, Key, write_json
from leaderboards.reproduction_replies import write_replies
from leaderboards.reproduction_settings import BASE, HeldOut, Preset, arm_config, known_arms
from npbench.errors import InputError

if TYPE_CHECKING:
    from leaderboards.reproduction_evaluation import Evaluation
    from trainers.config import Config
    from trainers.policy import Policy

__all__ = ["Base", "Unit", "run_unit", "unit_weight", "weights_hash"]

TRAINED_WEIGHT = 3
"""A reply that is trained on costs about as much as so many that are only evaluated."""

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Base:
    """A checkpoint that everything starts from."""

    label: str
    source: str
    """Folder or name."""
    fingerprint: str


def weights_hash(folder: Path) -> str:
    """A hash of a checkpoint's configuration and weights, whatever its folder and times are."""
    whole = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        weights = path.suffix in (".safetensors", ".bin")
        if path.is_file() and (weights or path.name in ("config.json", "tokenizer.json")):
            with path.open("rb") as file:
                whole.update(
                    f"{path.name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode()
                )
    return whole.hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Unit:
    """One arm on one seed from one base."""

    base: Base
    arm: str
    """``base`` for the base itself."""
    seed: int
    preset: Preset
    out: Path
    origin: Mapping[str, Any]
    """``versions`` and ``commit`` of every cell."""
    keep_checkpoints: bool = False
    vectors: bool = False
    """Whether vectors of some replies are kept for the picture of the reasoning."""

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.base.label} {self.arm} seed {self.seed}"

    def cells(self) -> list[Key]:
        """Its cells."""
        steps = (0,) if self.arm == BASE else self.preset.steps()
        return [
            Key(self.base.label, self.arm, self.seed, step, split.name)
            for step in steps
            for split in self.preset.evaluation.splits
        ]

    def missing(self) -> list[Key]:
        """Its cells that are not there."""
        return [key for key in self.cells() if not key.cell(self.out).is_file()]

    def config(self) -> "Config":
        """Its training configuration; that of GRPO for the base, which is only evaluated."""
        arm = known_arms()["grpo" if self.arm == BASE else self.arm]
        return arm_config(self.preset, arm, model=self.base.source, seed=self.seed)


def _questions(split: HeldOut, preset: Preset) -> int:
    """How many questions a split has, without making them."""
    if split.benchmark:
        return split.questions or 1000
    from npbench.suites import get_suite

    suite = get_suite(split.suite)
    return split.per_task * len(split.tasks or suite.tasks) * len(split.levels or suite.levels)


def unit_weight(unit: Unit) -> tuple[int, int]:
    """All work of a unit and what is done of it, in replies."""
    preset = unit.preset
    replies = {
        split.name: _questions(split, preset) * (preset.evaluation.samples + 1)
        for split in preset.evaluation.splits
    }
    missing = set(unit.missing())
    total = sum(replies[key.split] for key in unit.cells())
    done = sum(replies[key.split] for key in unit.cells() if key not in missing)
    if unit.arm != BASE:
        config = unit.config()
        each = _step_weight(config)
        total += each * config.steps
        done += each * (_steps_done(unit) if missing else config.steps)
    return total, done


def _step_weight(config: "Config") -> int:
    return TRAINED_WEIGHT * config.prompts_per_step * config.group_size


def _run_folder(unit: Unit) -> Path:
    return unit.out / "runs" / unit.base.label / unit.arm / f"seed-{unit.seed}"


def _steps_done(unit: Unit) -> int:
    """Steps of the last checkpoint, without importing torch."""
    folder = _run_folder(unit) / "checkpoints"
    steps = [int(path.name[5:]) for path in folder.glob("step-[0-9]*") if path.is_dir()]
    return max(steps, default=0)


def run_unit(unit: Unit, progress: Progress = lambda replies: None) -> None:
    """Makes the cells of a unit that are missing.

    Args:
        unit: What to do.
        progress: Called with the number of replies that were made, trained ones times 3.

    Raises:
        InputError: If the training or an evaluation is refused.
    """
    missing = unit.missing()
    if not missing:
        return
    config = unit.config()
    if unit.arm == BASE:
        _evaluate_all(unit, config, missing, {0: unit.base.source}, progress)
        return
    run = _run_folder(unit)
    _train(unit, config, run, progress)
    columns = _write_curve(unit, run)
    checkpoints = {step: str(run / "checkpoints" / f"step-{step:06d}") for step in _steps(missing)}
    _evaluate_all(unit, config, missing, checkpoints, progress, columns)
    if not unit.keep_checkpoints:
        shutil.rmtree(run)


def _steps(keys: Sequence[Key]) -> list[int]:
    return sorted({key.step for key in keys})


def _train(unit: Unit, config: "Config", run: Path, progress: Progress) -> None:
    """Trains, or goes on; a training that is over is left as it is."""
    from trainers.checkpoints import claim_run
    from trainers.loop import train

    begun = (run / "run.json").exists()
    claim_run(config, run, resume=begun)
    if _steps_done(unit) >= config.steps:
        return
    weight = _step_weight(config)
    try:
        train(config, run, resume=begun, progress=lambda step, numbers: progress(weight))
    except InputError as error:
        raise InputError(f"{unit.name}: {error}") from error


_LOGGED = (
    "reward", "sr", "qr", "diversity", "distinct", "entropy", "length", "truncated_share",
    "flat_share", "gradient_norm", "tokens", "seconds",
)  # fmt: skip


def _write_curve(unit: Unit, run: Path) -> Mapping[str, Sequence[float | None]]:
    """Keeps what a training logged, in six digits."""
    from trainers.logs import read_log

    lines = read_log(run / "scalars.jsonl")
    columns: dict[str, list[float | None]] = {"step": [line["step"] for line in lines]}
    for name in _LOGGED:
        if any(line.get(name) is not None for line in lines):
            columns[name] = [_rounded(line.get(name)) for line in lines]
    key = Key(unit.base.label, unit.arm, unit.seed, 0, "")
    write_json(
        key.curve(unit.out),
        {
            "schema": SCHEMA,
            "base": unit.base.label,
            "arm": unit.arm,
            "seed": unit.seed,
            "columns": columns,
        },
    )
    return columns


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


@lru_cache(maxsize=2)
def _base_policy(source: str, settings: str) -> "Policy":
    """The untrained policy, kept in memory: its hidden states embed all replies."""
    from trainers.config import read_config
    from trainers.loading import load_policy

    return load_policy(source, read_config(json.loads(settings)), trained=False)


def _kept_base(unit: Unit) -> "Policy":
    """The same object for all units of a base: seeds and methods do not enter."""
    config = arm_config(unit.preset, known_arms()["grpo"], model=unit.base.source, seed=0)
    return _base_policy(unit.base.source, config.model_dump_json())


def _evaluate_all(
    unit: Unit,
    config: "Config",
    missing: Sequence[Key],
    checkpoints: Mapping[int, str],
    progress: Progress,
    columns: Mapping[str, Sequence[float | None]] | None = None,
) -> None:
    """Evaluates the checkpoints, each cell written as soon as it is there."""
    from leaderboards.reproduction_evaluation import evaluate
    from trainers.loading import load_policy

    plan = unit.preset.evaluation
    base = _kept_base(unit)
    for step in _steps(missing):
        policy = base if step == 0 else load_policy(checkpoints[step], config, trained=False)
        for split in plan.splits:
            key = Key(unit.base.label, unit.arm, unit.seed, step, split.name)
            if key not in missing:
                continue
            found = evaluate(
                policy,
                split,
                samples=plan.samples,
                seed=unit.seed,
                max_tokens=config.sampling.max_tokens,
                rows_at_once=config.sampling.rows_at_once,
                embedder=plan.embedder,
                base=base,
                keep_vectors=unit.vectors and step in (0, config.steps),
                progress=progress,
            )
            write_replies(key.replies(unit.out), found.samples)
            _write_cell(unit, key, found, _training_cost(columns, step))


def _training_cost(
    columns: Mapping[str, Sequence[float | None]] | None, step: int
) -> dict[str, float | None]:
    """Seconds and reply tokens of the steps that made a checkpoint; none for the base."""
    if columns is None:
        return {"train_seconds": 0.0, "train_tokens": 0.0}
    return {
        f"train_{name}": math.fsum(value or 0.0 for value in columns[name][:step])
        for name in ("seconds", "tokens")
    }


def _write_cell(unit: Unit, key: Key, found: "Evaluation", cost: dict[str, float | None]) -> None:
    cell = Cell(
        base=key.base,
        arm=key.arm,
        seed=key.seed,
        step=key.step,
        split=key.split,
        protocol=unit.preset.fingerprint(),
        fingerprint=unit.base.fingerprint,
        questions=len({one.record.id for one in found.samples}),
        samples=unit.preset.evaluation.samples,
        metrics={name: _rounded(value) for name, value in found.numbers.metrics.items()},
        tasks={
            task: {name: _rounded(value) for name, value in metrics.items()}
            for task, metrics in found.numbers.tasks.items()
        },
        states=dict(found.numbers.states),
        floors={name: float(f"{value:.6g}") for name, value in found.numbers.floors.items()},
        reasons=dict(found.reasons),
        cost={
            **{name: _rounded(value) for name, value in cost.items()},
            "evaluation_seconds": _rounded(found.seconds),
            "evaluation_tokens": float(found.tokens),
        },
        versions=dict(unit.origin["versions"]),
        commit=unit.origin["commit"],
    )
    write_json(key.cell(unit.out), cell.model_dump(mode="json", by_alias=True))
