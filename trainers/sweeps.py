"""Sweeps: a recipe and settings that take several values each, shipped like recipes."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

from npbench.errors import InputError, unknown_name
from trainers.config import Config, load_config

__all__ = ["SweepRun", "load_sweep", "sweep_names"]


@dataclass(frozen=True, slots=True)
class SweepRun:
    """One configuration of a sweep."""

    folder: str
    """Name of the run's folder below the sweep's, such as ``weight-0.3_alpha-1.0``."""
    settings: Mapping[str, Any]
    """What the sweep set."""
    config: Config


def sweep_names() -> tuple[str, ...]:
    """The sweeps that are shipped: the papers' ablations, each also on the tiny model."""
    folder = files("trainers") / "recipes" / "sweeps"
    return tuple(sorted(item.name.removesuffix(".toml") for item in folder.iterdir()))


def load_sweep(name: str, changes: Sequence[str] = ()) -> tuple[SweepRun, ...]:
    """The configurations of a sweep: every combination of its values.

    Args:
        name: A shipped sweep, or a file ending in .toml with ``recipe`` and ``[settings]``.
        changes: ``key=value`` changes of all of them.

    Example:
        >>> [run.folder for run in load_sweep("tiny-dmpo-divergence")]
        ['form-mse', 'form-forward-kl']

    Raises:
        InputError: If there is no such sweep or a setting is wrong.
    """
    recipe, settings = _read(name)
    found = []
    for chosen in product(*settings.values()):
        values = dict(zip(settings, chosen, strict=True))
        pairs = [f"{key}={json.dumps(value)}" for key, value in values.items()]
        found.append(SweepRun(_folder(values), values, load_config(recipe, [*pairs, *changes])))
    _check_folders(name, found)
    return tuple(found)


def _check_folders(name: str, runs: Sequence[SweepRun]) -> None:
    """Refuses two runs that would share a folder, such as those of models ``a/b`` and ``a-b``."""
    taken: dict[str, SweepRun] = {}
    for run in runs:
        other = taken.setdefault(run.folder, run)
        if other is not run:
            raise InputError(
                f"sweep {name} would train {json.dumps(other.settings)} and "
                f"{json.dumps(run.settings)} in one folder, {run.folder}"
            )


def _read(name: str) -> tuple[str, dict[str, list[Any]]]:
    """The recipe of a sweep, and the values of each setting."""
    if name.endswith(".toml"):
        try:
            text = Path(name).read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(f"{name} cannot be read: {error.strerror}") from None
    elif name in sweep_names():
        folder = files("trainers") / "recipes" / "sweeps"
        text = (folder / f"{name}.toml").read_text(encoding="utf-8")
    else:
        raise unknown_name("sweep", name, sweep_names())
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name} is no TOML file: {error}") from None
    for key in content:
        if key not in ("recipe", "settings"):
            raise unknown_name("key of a sweep", key, ("recipe", "settings"))
    recipe, settings = content.get("recipe"), content.get("settings")
    if not isinstance(recipe, str) or not isinstance(settings, dict) or not settings:
        raise InputError(f"sweep {name} must hold a recipe and [settings] with values")
    for key, values in settings.items():
        if not isinstance(values, list) or not values:
            raise InputError(f"setting {key} of sweep {name} must be a list of values")
        try:
            written = {json.dumps(value) for value in values}
        except TypeError as error:  # a date or a time, which TOML knows and no setting is
            raise InputError(f"setting {key} of sweep {name}: {error}") from None
        if len(written) != len(values):
            raise InputError(f"setting {key} of sweep {name} has a value twice")
    return recipe, settings


def _folder(values: Mapping[str, Any]) -> str:
    """The settings' own names and values; whole names where two end alike."""
    short = [key.rpartition(".")[2] for key in values]
    names = short if len(set(short)) == len(short) else list(values)
    parts = (f"{name}-{_word(v)}" for name, v in zip(names, values.values(), strict=True))
    return "_".join(parts)


def _word(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return re.sub(r"[^\w.+-]+", "-", text).strip("-")
