"""Sweeps: a recipe and settings that take several values each, shipped like recipes."""

import json
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from itertools import product

from npbench.errors import unknown_name
from trainers.config import Config, load_config

__all__ = ["load_sweep", "sweep_names"]


def sweep_names() -> tuple[str, ...]:
    """The sweeps that are shipped: the papers' ablations, each also on the tiny model."""
    folder = files("trainers") / "recipes" / "sweeps"
    return tuple(sorted(item.name.removesuffix(".toml") for item in folder.iterdir()))


def load_sweep(name: str, changes: tuple[str, ...] = ()) -> Mapping[str, Config]:
    """The configurations of a sweep: every combination of its values, by what was set.

    Args:
        name: A shipped sweep.
        changes: ``key=value`` changes of all of them.

    Example:
        >>> list(load_sweep("tiny-dmpo-divergence"))
        ['loss.form="mse"', 'loss.form="forward-kl"']

    Raises:
        InputError: If there is no such sweep or a setting is wrong.
    """
    if name not in sweep_names():
        raise unknown_name("sweep", name, sweep_names())
    path = files("trainers") / "recipes" / "sweeps" / f"{name}.toml"
    values = tomllib.loads(path.read_text(encoding="utf-8"))
    settings = values["settings"]
    found = {}
    for chosen in product(*settings.values()):
        pairs = [f"{key}={json.dumps(v)}" for key, v in zip(settings, chosen, strict=True)]
        found[" ".join(pairs)] = load_config(values["recipe"], [*pairs, *changes])
    return found
