"""Launch recipes for verl: the papers' settings as data, and verl's command line from them.

A recipe is a TOML file with verl's own keys. ``include`` names a recipe that it changes. TOML has
no null, so the text ``null`` stands for it. The sections ``algorithm.npbench`` and
``reward.custom_reward_function.reward_kwargs`` are not in verl's schema and are added to it.
"""

import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from npbench.errors import InputError, unknown_name

__all__ = ["ADDED", "VARIABLE", "Launch", "launch", "overrides", "read_recipe", "recipe_names"]

ADDED = (
    "algorithm.npbench",
    "reward.custom_reward_function.reward_kwargs",
    "ray_kwargs.ray_init.runtime_env",
)
"""Sections that verl's schema lacks and lets a user add."""

PLUGIN = "trainers.engines.verl_plugin"
VARIABLE = "VERL_USE_EXTERNAL_MODULES"

_FOLDER = "recipes/verl"


@dataclass(frozen=True, slots=True)
class Launch:
    """A command without a shell."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    """To be added to the process's own."""


def recipe_names() -> tuple[str, ...]:
    """The recipes that are shipped; ``common`` holds what they share."""
    folder = files("trainers.engines").joinpath(_FOLDER)
    return tuple(
        sorted(
            item.name.removesuffix(".toml")
            for item in folder.iterdir()
            if item.name.endswith(".toml")
        )
    )


def read_recipe(name: str) -> dict[str, Any]:
    """The settings of a recipe by verl's dotted keys, those of what it includes first.

    Raises:
        InputError: If there is no such recipe.
    """
    if name not in recipe_names():
        raise unknown_name("recipe for verl", name, recipe_names())
    path = files("trainers.engines").joinpath(_FOLDER, f"{name}.toml")
    values = tomllib.loads(path.read_text(encoding="utf-8"))
    included = values.pop("include", None)
    found = read_recipe(included) if included is not None else {}
    return {**found, **dict(_flat(values, ""))}


def _flat(values: Mapping[str, Any], prefix: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in values.items():
        name = f"{prefix}{key}"
        found += _flat(value, f"{name}.") if isinstance(value, dict) else [(name, value)]
    return found


def overrides(values: Mapping[str, Any]) -> list[str]:
    """Hydra's overrides.

    Example:
        >>> overrides({"data.shuffle": True, "algorithm.npbench.alpha": 0.5})
        ['data.shuffle=true', '+algorithm.npbench.alpha=0.5']
    """
    return [_added(f"{key}={_hydra(value)}") for key, value in values.items()]


def _added(override: str) -> str:
    """An override with Hydra's plus sign where verl's schema lacks the section."""
    return f"+{override}" if override.startswith(tuple(f"{one}." for one in ADDED)) else override


def _hydra(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_hydra, value))}]"
    if isinstance(value, str) and not re.fullmatch(r"[A-Za-z_][\w./-]*", value):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    return str(value)


def launch(
    recipe: str,
    *,
    train: Sequence[str],
    validation: Sequence[str],
    changes: Sequence[str] = (),
    modules: str = "",
) -> Launch:
    """The command that starts verl with a recipe.

    Args:
        recipe: Its name.
        train: Parquet files of ``npbench export --format verl``; every node must see them.
        validation: The same.
        changes: Overrides in Hydra's own words, which win over the recipe.
        modules: What the variable of verl's external modules holds already.

    Raises:
        InputError: If there is no such recipe, or a change is no override.
    """
    for change in changes:
        if "=" not in change and not change.startswith("~"):
            raise InputError(f"a change must be given as key=value, got {change!r}")
    changes = [_added(change) for change in changes]
    given = {change.split("=")[0].lstrip("+~") for change in changes}
    values = {key: value for key, value in read_recipe(recipe).items() if key not in given}
    values["data.train_files"], values["data.val_files"] = list(train), list(validation)
    environment = {VARIABLE: _with_plugin(modules)}
    # a Ray that runs already has its own environment, on every node
    values[f"ray_kwargs.ray_init.runtime_env.env_vars.{VARIABLE}"] = environment[VARIABLE]
    arguments = [sys.executable, "-m", "verl.trainer.main_ppo", *overrides(values), *changes]
    return Launch(tuple(arguments), environment)


def _with_plugin(modules: str) -> str:
    names = [name for name in modules.split(",") if name]
    return ",".join(names if PLUGIN in names else [*names, PLUGIN])
