"""Made-up reproductions: numbers by a rule, as results in memory or as a folder on disk."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from leaderboards.reproduction_cells import Cell, Curve, Key, Manifest, Results, write_json
from leaderboards.reproduction_command import reproduce_command
from leaderboards.reproduction_settings import load_preset

MEASURES = (
    "sr", "qr", "acc@1", "acc@4", "pass@1", "pass@4", "pass@16", "qr@16", "entropy", "length",
    "solution_distance", "reasoning_distance", "distinct_feasible",
)  # fmt: skip
Rule = Callable[[str, int, str, str], float]


def noise(arm: str, seed: int, split: str, measure: str) -> float:
    """A number that depends on everything and on nothing in particular."""
    words = np.frombuffer(f"{arm} {seed} {split} {measure}".encode(), dtype=np.uint8)
    return float(np.random.default_rng(words.astype(int)).random())


@pytest.fixture
def made_up():
    """A function that makes results of the preset cpu by a rule."""

    def make(
        rule: Rule = noise,
        *,
        arms: Sequence[str] = ("base", "grpo", "dmpo", "dmpo-replication", "mupo"),
        seeds: Sequence[int] = tuple(range(100, 108)),
        bases: Sequence[str] = ("late",),
        studies: Sequence[str] = ("table",),
        marker: str = "",
    ) -> Results:
        preset = load_preset("cpu").model_copy(update={"marker": marker})
        splits = [split.name for split in preset.evaluation.splits]
        cells = {}
        for base in bases:
            for arm in arms:
                for seed in seeds:
                    for step in (0,) if arm == "base" else preset.steps():
                        for split in splits:
                            cell = _cell(rule, preset.fingerprint(), base, arm, seed, step, split)
                            cells[cell.key] = cell
        curves = tuple(
            Curve(base, arm, seed, _columns(rule, arm, seed))
            for base in bases
            for arm in arms
            if arm != "base"
            for seed in seeds
        )
        manifest = Manifest(
            preset="cpu",
            protocol=preset.protocol(),
            protocol_hash=preset.fingerprint(),
            bases={base: {"source": base, "fingerprint": "f" * 32} for base in bases},
            studies=tuple(studies),
            calls=(),
        )
        return Results(manifest, cells, curves)

    return make


def _cell(rule: Rule, protocol: str, base: str, arm: str, seed: int, step: int, split: str) -> Cell:
    return Cell(
        base=base,
        arm=arm,
        seed=seed,
        step=step,
        split=split,
        protocol=protocol,
        fingerprint="f" * 32,
        questions=10,
        samples=16,
        metrics={m: rule(arm, seed, split, m) for m in MEASURES},
        tasks={},
        states={"right": 1},
        floors={"random": 0.5, "greedy": 0.9},
        reasons={},
        cost={"train_seconds": 1.0, "train_tokens": 2.0},
        versions={},
        commit=None,
    )


def _columns(rule: Rule, arm: str, seed: int) -> dict[str, list[float | None]]:
    steps = range(25)
    return {
        "step": list(steps),
        **{
            name: [rule(arm, seed, f"step {step}", name) for step in steps]
            for name in ("reward", "diversity", "qr")
        },
    }


@pytest.fixture
def written(tmp_path: Path):
    """A function that writes results as a folder, without replies."""

    def write(results: Results, name: str = "made-up") -> Path:
        folder = tmp_path / name
        write_json(folder / "study.json", results.manifest.model_dump(mode="json", by_alias=True))
        for key, cell in results.cells.items():
            write_json(key.cell(folder), cell.model_dump(mode="json", by_alias=True))
        for curve in results.curves:
            key = Key(curve.base, curve.arm, curve.seed, 0, "")
            content = {"base": curve.base, "arm": curve.arm, "seed": curve.seed}
            write_json(key.curve(folder), {"schema": 1, **content, "columns": curve.columns})
        return folder

    return write


@pytest.fixture(scope="session")
def blank_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The untrained tiny vision-language model."""
    from trainers.blank import make_blank

    folder = tmp_path_factory.mktemp("models") / "blank"
    make_blank(folder)
    return folder


SMALL = {
    "marker": "test: not evidence",
    "bases": ["blank"],
    "first_seed": 3,
    "seeds": 1,
    "training": {
        "steps": 2,
        "prompts_per_step": 1,
        "group_size": 2,
        "checkpoint_every": 1,
        "data": {"suite": "nano", "tasks": ["vertex_cover"], "per_task": 2},
        "sampling": {"max_tokens": 5},
        "optimizer": {"learning_rate": 1e-3},
    },
    "evaluation": {
        "samples": 2,
        "checkpoints": [1],
        "splits": [
            {"name": "in-domain", "suite": "nano", "tasks": ["vertex_cover"], "per_task": 2},
            {
                "name": "text",
                "suite": "nano",
                "tasks": ["maximum_clique"],
                "per_task": 1,
                "modality": "text",
            },
        ],
    },
}


def _write_preset(folder: Path, name: str, changes: dict) -> Path:
    values = {**json.loads(json.dumps(SMALL)), **changes}
    path = folder / f"{name}.toml"
    path.write_text("\n".join(_toml(values)) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def small_preset(tmp_path: Path):
    """A function from changes to the file of a preset that runs in seconds."""

    def write(name: str = "small", **changes) -> Path:
        return _write_preset(tmp_path, name, changes)

    return write


@pytest.fixture(scope="session")
def tiny_reproduction(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reproduction from npbench-tiny, which answers rightly and wrongly, on few questions."""
    folder = tmp_path_factory.mktemp("reproduction")
    training = {**SMALL["training"], "sampling": {"max_tokens": 48}}
    preset = _write_preset(folder, "small", {"training": training})
    words = ["--preset", str(preset), "--base", "npbench-tiny", "--methods", "grpo"]
    result = CliRunner().invoke(
        reproduce_command, [*words, "--out", str(folder / "out")], standalone_mode=False
    )
    if result.exception is not None:
        raise result.exception
    return folder / "out"


def _toml(values: dict) -> list[str]:
    return [f"{key} = {_inline(value)}" for key, value in values.items()]


def _inline(value) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_inline(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value)
