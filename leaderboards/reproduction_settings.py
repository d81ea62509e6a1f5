"""Studies and presets of ``npbench reproduce``: what is compared, and at what scale, as data.

A study says which arms (methods with their settings) are compared; a preset says everything that
all arms share: bases, seeds, training, held-out splits. Importing this does not import torch.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from npbench.errors import InputError, unknown_name

if TYPE_CHECKING:
    from trainers.config import Config

__all__ = [
    "BASE",
    "STUDIES",
    "Arm",
    "Axis",
    "EvaluationPlan",
    "HeldOut",
    "Preset",
    "Study",
    "arm_config",
    "chosen_arms",
    "differing",
    "known_arms",
    "load_preset",
    "load_study",
    "preset_names",
    "protocol_hash",
]

BASE = "base"
"""The arm that is not trained."""
STUDIES = ("table", "groups", "lambda", "dmpo", "share")

Count = Annotated[int, Field(ge=1)]
Whole = Annotated[int, Field(ge=0)]
Word = Annotated[str, Field(pattern=r"^[\w.-]+$")]
Record = TypeVar("Record", bound=BaseModel)


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Arm(_Frozen):
    """A method with what differs from the settings that all arms share."""

    label: str
    method: str
    settings: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Section of a training configuration -> its values."""


class Axis(_Frozen):
    """A setting that varies along some arms."""

    name: str
    values: Annotated[dict[str, float], Field(min_length=2)]


class Study(_Frozen):
    """Which arms are compared."""

    title: str
    baseline: str
    """The arm from which paired differences are taken."""
    arms: Annotated[tuple[str, ...], Field(min_length=1)]
    all: tuple[str, ...] = ()
    """What ``--methods all`` stands for; the same as ``arms`` where empty."""
    axes: tuple[Axis, ...] = ()


class HeldOut(_Frozen):
    """Questions that nothing was trained on: of a suite's split test, or of a benchmark."""

    name: Word
    suite: str = ""
    levels: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    per_task: Count = 100
    modality: Literal["image", "text"] | None = None
    seed: Whole = 0
    benchmark: str = ""
    folder: str = ""
    """The benchmark's data; from the Hub where empty."""
    questions: Count | None = None
    """Take the first so many questions of a benchmark."""
    prompt_format: str = "answer-line"
    """The words below the questions of a benchmark."""


class EvaluationPlan(_Frozen):
    """How base and trained checkpoints are evaluated."""

    samples: Annotated[int, Field(ge=2)]
    """Sampled replies to each question, beside the greedy one."""
    checkpoints: tuple[Count, ...] = ()
    """Steps of checkpoints that are evaluated beside the last one."""
    embedder: str = "base"
    """Of the reasoning: ``base`` (the base's own hidden states, the same for all arms),
    ``sentence:NAME``, or ``none``."""
    splits: Annotated[tuple[HeldOut, ...], Field(min_length=1)]


class Preset(_Frozen):
    """Everything that the arms of a study share."""

    marker: str = ""
    """Stands above every output; with a marker no hypothesis is tested."""
    bases: Annotated[tuple[str, ...], Field(min_length=1)]
    first_seed: Whole
    seeds: Count
    ends_only: bool = False
    """Run the first and the last arm of a study alone."""
    training: dict[str, Any]
    """A training configuration without method, model, seed and loss."""
    evaluation: EvaluationPlan

    def steps(self) -> tuple[int, ...]:
        """The checkpoints that are evaluated."""
        return tuple(sorted({*self.evaluation.checkpoints, int(self.training["steps"])}))

    def protocol(self) -> dict[str, Any]:
        """What two calls on one folder must share."""
        return self.model_dump(mode="json", include={"marker", "training", "evaluation"})

    def fingerprint(self) -> str:
        """A hash of the protocol."""
        return protocol_hash(self.protocol())


def protocol_hash(protocol: Mapping[str, Any]) -> str:
    """The hash by which cells name a protocol."""
    text = json.dumps(protocol, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _record(kind: type[Record], values: Any, where: str) -> Record:
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{where}: {place}: {first['msg'].lower()}") from None


def _toml(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where} is no TOML file: {error}") from None


@cache
def known_arms() -> Mapping[str, Arm]:
    """All arms by name."""
    text = (files("leaderboards") / "studies" / "arms.toml").read_text(encoding="utf-8")
    return {name: _record(Arm, arm, f"arm {name}") for name, arm in _toml(text, "arms").items()}


def load_study(name: str) -> Study:
    """The study of a name.

    Raises:
        InputError: If the name is unknown.
    """
    if name not in STUDIES:
        raise unknown_name("study", name, STUDIES)
    text = (files("leaderboards") / "studies" / f"{name}.toml").read_text(encoding="utf-8")
    study = _record(Study, _toml(text, name), f"study {name}")
    named = (study.baseline, *study.arms, *study.all, *(a for x in study.axes for a in x.values))
    for arm in named:
        if arm not in known_arms():
            raise unknown_name(f"arm in study {name}", arm, known_arms())
    return study


def preset_names() -> tuple[str, ...]:
    """The presets that are shipped."""
    folder = files("leaderboards") / "studies" / "presets"
    return tuple(sorted(item.name.removesuffix(".toml") for item in folder.iterdir()))


def load_preset(name: str) -> Preset:
    """A shipped preset, or one in a file that ends in ``.toml``.

    Raises:
        InputError: If there is none, or a setting is wrong.
    """
    if name.endswith(".toml"):
        try:
            text = Path(name).read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(f"{name} cannot be read: {error.strerror}") from None
    elif name in preset_names():
        folder = files("leaderboards") / "studies" / "presets"
        text = (folder / f"{name}.toml").read_text(encoding="utf-8")
    else:
        raise unknown_name("preset", name, preset_names())
    preset = _record(Preset, _toml(text, name), f"preset {name}")
    _check_preset(preset, name)
    return preset


def _check_preset(preset: Preset, name: str) -> None:
    for key in ("method", "model", "seed", "loss", "stages"):
        if key in preset.training:
            raise InputError(f"preset {name}: training.{key} is the arm's, not the preset's")
    names = [split.name for split in preset.evaluation.splits]
    if len(set(names)) != len(names):
        raise InputError(f"preset {name}: two splits have one name: {', '.join(names)}")
    for split in preset.evaluation.splits:
        if bool(split.suite) == bool(split.benchmark):
            raise InputError(f"preset {name}: split {split.name} needs a suite or a benchmark")
    config = arm_config(preset, known_arms()["grpo"], model="", seed=0)
    for step in preset.evaluation.checkpoints:
        every = config.checkpoint_every
        if step > config.steps or not every or step % every:
            raise InputError(
                f"preset {name}: evaluation.checkpoints must be multiples of "
                f"training.checkpoint_every={every} up to steps={config.steps}, got {step}"
            )


def chosen_arms(study: Study, preset: Preset, methods: Sequence[str] = ()) -> tuple[str, ...]:
    """The arms to run.

    Args:
        study: The study.
        preset: May shorten the list.
        methods: Names of arms or of methods (all of the study's arms of that method), or ``all``;
            the study's own list where empty.

    Raises:
        InputError: If a name is neither.
    """
    every = study.all or study.arms
    if not methods:
        return (study.arms[0], study.arms[-1]) if preset.ends_only else study.arms
    if "all" in methods:
        return every
    arms = known_arms()
    usual = (*study.arms, *(name for name in every if name not in study.arms))
    found: dict[str, None] = {}
    for wanted in methods:
        of_method = [name for name in usual if arms[name].method == wanted]
        matching = of_method or [name for name in usual if name == wanted]
        if not matching:
            known = dict.fromkeys([*usual, *(arms[name].method for name in usual), "all"])
            raise unknown_name("method", wanted, known)
        found |= dict.fromkeys(matching)
    return tuple(name for name in usual if name in found)


def arm_config(preset: Preset, arm: Arm, *, model: str, seed: int) -> "Config":
    """The training configuration of an arm: the preset's with what the arm sets.

    All checkpoints are kept until they are evaluated.

    Raises:
        InputError: If the settings do not fit together.
    """
    from trainers.config import read_config

    values: dict[str, Any] = json.loads(json.dumps(preset.training))
    for section, content in arm.settings.items():
        values[section] = {**values.get(section, {}), **content}
    steps, every = int(values.get("steps", 1)), int(values.get("checkpoint_every", 0))
    values |= {"keep_checkpoints": steps // every + 2 if every else 2, "log_rollouts": False}
    return read_config({**values, "method": arm.method, "model": model, "seed": seed})


def differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    """The first setting in which two protocols disagree, in words."""
    from trainers.config import differing_setting

    found = differing_setting(old, new)
    return found and re.sub(r" in the run and (.*) now$", r" in the folder and \1 now", found)
