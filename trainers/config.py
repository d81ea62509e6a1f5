"""The settings of a run: a frozen record with a TOML face; importing this does not import torch."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from evaluators.benchmarks import BENCHMARKS
from npbench.errors import InputError, unknown_name
from npbench.tasks import get_task
from trainers.method_settings import METHODS, Count, Frozen, method_settings, validated
from trainers.named_sets import NAMED_SETS, checked_split, named_set
from trainers.sections import (
    CorrectionSettings,
    DataSettings,
    DynamicSamplingSettings,
    EvaluationSettings,
    LoraSettings,
    OptimizerSettings,
    RewardSettings,
    RolloutSettings,
    SamplingSettings,
    StageSettings,
    Whole,
)

__all__ = [
    "Config",
    "as_toml",
    "differing_setting",
    "load_config",
    "read_config",
    "recipe_names",
]


class Config(Frozen):
    """All settings of a run."""

    method: str
    model: str = ""
    """Folder or name of a Hugging Face checkpoint."""
    reference: str = ""
    """The reference policy where a method wants one; the model itself where empty."""
    seed: Whole = 0
    steps: Count
    prompts_per_step: Count
    group_size: Annotated[int, Field(ge=2)]
    checkpoint_every: Whole = 0
    """0 writes one at the end only."""
    evaluate_every: Whole = 0
    keep_checkpoints: Count = 2
    log_rollouts: bool = True
    log_to: tuple[Literal["tensorboard", "wandb", "trackio"], ...] = ()
    """Trackers beside the run's own files."""
    threads: Count = 1
    device: str = "auto"
    data: DataSettings
    evaluation: EvaluationSettings = EvaluationSettings()
    sampling: SamplingSettings = SamplingSettings()
    rollouts: RolloutSettings = RolloutSettings()
    dynamic_sampling: DynamicSamplingSettings = DynamicSamplingSettings()
    sampler_correction: CorrectionSettings = CorrectionSettings()
    optimizer: OptimizerSettings = OptimizerSettings()
    lora: LoraSettings = LoraSettings()
    reward: RewardSettings = RewardSettings()
    loss: dict[str, Any] = Field(default_factory=dict)
    """The method's own settings."""
    stages: tuple[StageSettings, ...] = ()
    """Of the method ``supervised``, one after the other."""

    @property
    def stage_ends(self) -> tuple[int, ...]:
        """Steps done at the end of each stage."""
        return tuple(accumulate(stage.steps for stage in self.stages))

    @property
    def variants(self) -> int:
        """Prompts of a question: more than 1 only in Share-GRPO."""
        return int(getattr(self.method_settings, "variants", 1))

    @property
    def method_settings(self) -> Any:
        """The section ``[loss]`` as the method's record."""
        return method_settings(self.method, self.loss)


def read_config(values: Mapping[str, Any]) -> Config:
    """A checked configuration.

    Raises:
        InputError: If a key or a name is unknown, a value out of range, or settings do not fit
            together.
    """
    if "method" in values and values["method"] not in METHODS:
        raise unknown_name("method", values["method"], METHODS)
    if values.get("method") == "supervised":
        values = _with_totals(values)
    config: Config = validated(Config, values)
    if (config.method == "supervised") != bool(config.stages):
        raise InputError(
            f"stages belong to the method supervised and to no other, got {len(config.stages)} "
            f"with {config.method}"
        )
    settings = config.method_settings
    _check_data(config)
    if config.method == "mupo" and settings.clusters * settings.min_size > config.group_size:
        raise InputError(
            f"loss.clusters * loss.min_size must be at most group_size={config.group_size}, "
            f"got {settings.clusters} * {settings.min_size}"
        )
    if config.group_size % config.variants or config.group_size // config.variants < 2:
        raise InputError(
            f"group_size must be a multiple of loss.variants={config.variants} with at least 2 "
            f"replies a variant, got {config.group_size}"
        )
    if config.prompts_per_step % config.optimizer.mini_batches:
        raise InputError(
            f"optimizer.mini_batches must divide prompts_per_step={config.prompts_per_step}, "
            f"got {config.optimizer.mini_batches}"
        )
    if config.sampler_correction.rule != "none" and config.method not in _CORRECTED:
        raise InputError(
            f"sampler_correction.rule must be 'none' for {config.method}, "
            f"got {config.sampler_correction.rule!r}"
        )
    if "lm_head" in config.lora.targets:
        raise InputError("lora.targets must not hold lm_head: the head is not adapted")
    if config.lora.rank and config.optimizer.fsdp:
        raise InputError(
            f"optimizer.fsdp must be false where lora.rank={config.lora.rank} keeps the weights "
            f"frozen, got true: optimizer.share_states shares out the adapter's moments"
        )
    _check_reward(config)
    return config


def _with_totals(values: Mapping[str, Any]) -> dict[str, Any]:
    """Supervised settings with what follows from the stages: steps, and no groups."""
    stages = values.get("stages") or []
    steps = sum(stage.get("steps", 0) for stage in stages if isinstance(stage, Mapping))
    if not steps:
        raise InputError("the method supervised needs at least one of [[stages]]")
    found = {"group_size": 2, "steps": steps, **values}
    if found["steps"] != steps:
        raise InputError(f"steps must be the {steps} of all stages, got {found['steps']}")
    return found


_CORRECTED = ("grpo", "grpo_passk", "dr_grpo", "dapo", "clip_cov", "mupo")


def _check_data(config: Config) -> None:
    for data in [config.data, *(mix.data for stage in config.stages for mix in stage.mix)]:
        _check_source(data)
    for name in (name for stage in config.stages for mix in stage.mix for name in mix.ask):
        get_task(name)
    evaluation = config.evaluation
    own = evaluation.folder is not None or evaluation.name is not None
    if config.data.suite is None and config.evaluate_every and not own:
        raise InputError(
            "evaluate_every needs evaluation.folder or evaluation.name where data has no suite"
        )
    if evaluation.name is not None and named_set(evaluation.name).held_out is None:
        known = ", ".join(name for name, one in NAMED_SETS.items() if one.held_out)
        raise InputError(
            f"evaluation.name must be a set with a held-out split, got {evaluation.name!r}; "
            f"known: {known}"
        )
    for name in evaluation.benchmarks:
        if name not in BENCHMARKS:
            raise unknown_name("benchmark in evaluation.benchmarks", name, BENCHMARKS)


def _check_source(data: DataSettings) -> None:
    known = ("prompt", "images", "image", "answer", "id", "target")
    for name in data.columns:
        if name not in known:
            raise unknown_name("column in data.columns", name, known)
    if (data.suite is None) == (data.folder is None and data.name is None):
        raise InputError(
            f"data must name either a suite or a folder or published set (name), got "
            f"suite={data.suite!r}, folder={data.folder!r}, name={data.name!r}"
        )
    if data.name is not None:
        checked_split(data.name, data.split)
    elif data.revision is not None:
        raise InputError(f"data.revision belongs to data.name, got {data.revision!r} without one")
    if data.suite is not None:
        if data.prompt_format != "plain":
            raise InputError(
                f"data.prompt_format belongs to a folder or published set, got "
                f"{data.prompt_format!r} with a suite"
            )
        from npbench.splits import Request

        Request.make(
            suite=data.suite,
            split=data.split,
            seed=data.seed,
            per_task=data.per_task,
            levels=data.levels,
            tasks=data.tasks,
            modality=data.modality,
        )


def _check_reward(config: Config) -> None:
    from trainers.reward_sets import reward_named

    names = {term.name for term in reward_named(config.reward.name)}
    if config.method == "mupo" and not {"accuracy", "format", "gate"} <= names:
        raise InputError(
            f"reward.name must be one with accuracy, format and gate for mupo, "
            f"got {config.reward.name!r}"
        )
    for name in config.reward.functions:
        if name in names:
            raise InputError(f"reward.functions must have new names, got {name!r}")
    for name in config.reward.weights:
        if name not in config.reward.functions:
            raise unknown_name("term in reward.weights", name, config.reward.functions)


def recipe_names() -> tuple[str, ...]:
    """The recipes that are shipped."""
    folder = files("trainers") / "recipes"
    return tuple(
        sorted(
            item.name.removesuffix(".toml")
            for item in folder.iterdir()
            if item.name.endswith(".toml")
        )
    )


def load_config(recipe: str, changes: Sequence[str] = ()) -> Config:
    """The configuration of a shipped recipe or a TOML file, with ``key=value`` changes.

    Raises:
        InputError: If there is no such recipe or file, or a setting is wrong.
    """
    if recipe.endswith(".toml"):
        try:
            text = Path(recipe).read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(f"{recipe} cannot be read: {error.strerror}") from None
    elif recipe in recipe_names():
        text = (files("trainers") / "recipes" / f"{recipe}.toml").read_text(encoding="utf-8")
    else:
        raise unknown_name("recipe", recipe, recipe_names())
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{recipe} is no TOML file: {error}") from None
    for change in changes:
        _apply(values, change)
    return read_config(values)


def _apply(values: dict[str, Any], change: str) -> None:
    """Puts one ``section.key=value`` into the plain values."""
    name, sign, text = change.partition("=")
    if not sign or not name.strip():
        raise InputError(f"--set must be given as key=value, got {change!r}")
    try:
        value = tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        # a bare word, such as a path or a method's name
        value = text.strip()
    *sections, key = name.strip().split(".")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise InputError(f"--set {name}: {section!r} is a value, not a section")
    values[key] = value


def as_toml(config: Config) -> str:
    """The configuration as TOML, defaults included; what is None is left out."""
    plain = config.model_dump(mode="json", exclude_none=True)
    top = [f"{key} = {_value(v)}" for key, v in plain.items() if not isinstance(v, dict)]
    lines = list(top)
    for section, content in plain.items():
        if isinstance(content, dict):
            lines += ["", f"[{section}]"]
            lines += [f"{key} = {_value(value)}" for key, value in content.items()]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{json.dumps(key)} = {_value(item)}" for key, item in value.items())
        return f"{{{inner}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value)


_LATER: dict[str, dict[str, Any]] = {
    "rollouts": RolloutSettings().model_dump(mode="json"),
    "optimizer": {"share_states": False, "fsdp": False},
}
"""Settings that runs of earlier versions lack: they had what is the default now."""


def differing_setting(old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    """The first setting in which two configurations disagree, with both values.

    Where a rollout server is does not count: it may have moved.

    Example:
        >>> differing_setting({"a": {"b": 1}}, {"a": {"b": 2}})
        'a.b is 1 in the run and 2 now'
    """
    later = {key: {**_LATER[key], **old.get(key, {})} for key in _LATER if key in new}
    return _first_difference(_unplaced({**old, **later}), _unplaced(new))


def _unplaced(values: Mapping[str, Any]) -> dict[str, Any]:
    rollouts = values.get("rollouts")
    if rollouts is None:
        return dict(values)
    return {**values, "rollouts": {**rollouts, "address": None}}


def _first_difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    for key in [*old, *(key for key in new if key not in old)]:
        before, after = old.get(key), new.get(key)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            inner = _first_difference(before, after)
            if inner:
                return f"{key}.{inner}"
        elif before != after:
            return f"{key} is {json.dumps(before)} in the run and {json.dumps(after)} now"
    return None
