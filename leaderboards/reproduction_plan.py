"""What a call of ``npbench reproduce`` has to do: units in order, and the folder's manifest."""

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from leaderboards.reproduction_cells import (
    MANIFEST,
    BaseOrigin,
    Call,
    Manifest,
    read_manifest,
)
from leaderboards.reproduction_runs import Base, Unit
from leaderboards.reproduction_settings import BASE, Preset, differing
from npbench.errors import InputError

__all__ = ["make_manifest", "make_units", "origin", "with_call"]

_LIBRARIES = ("npbench", "torch", "transformers", "tokenizers", "numpy", "ortools", "pillow")


def origin(commit: str | None) -> dict[str, Any]:
    """What every cell says of the code that made it."""
    versions = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            raise InputError("training needs: pip install 'npbench[train,eval]'") from None
    return {"commit": commit, "versions": versions}


def make_manifest(
    out: Path, preset_name: str, preset: Preset, bases: Sequence[Base], studies: Sequence[str]
) -> Manifest:
    """The manifest of a folder after this call: what it has and what is added.

    Raises:
        InputError: If the folder holds something else, another protocol or another base of a name.
    """
    origins = {
        base.label: BaseOrigin(source=Path(base.source).name, fingerprint=base.fingerprint)
        for base in bases
    }
    if not (out / MANIFEST).exists():
        if out.exists() and any(path.name != ".lock" for path in out.iterdir()):
            raise InputError(f"{out} is not empty and no reproduction; choose another folder")
        return Manifest(
            preset=preset_name,
            protocol=preset.protocol(),
            protocol_hash=preset.fingerprint(),
            bases=origins,
            studies=tuple(dict.fromkeys(studies)),
            calls=(),
        )
    old = read_manifest(out)
    if old.collected:
        raise InputError(f"{out} is a collected folder; give the one that it was made from")
    found = differing(old.protocol, preset.protocol())
    if found:
        raise InputError(f"{out} was made by another protocol: {found}")
    for label, base in origins.items():
        known = old.bases.get(label)
        if known is not None and known.fingerprint != base.fingerprint:
            raise InputError(f"base {label} has other weights than it had in {out}")
    return old.model_copy(
        update={
            "bases": {**old.bases, **origins},
            "studies": tuple(dict.fromkeys((*old.studies, *studies))),
        }
    )


def with_call(manifest: Manifest, command: str, about: Mapping[str, Any], started: str) -> Manifest:
    """The manifest with one more call."""
    call = Call(command=command, started=started, **about)
    return manifest.model_copy(update={"calls": (*manifest.calls, call)})


def make_units(
    preset: Preset,
    bases: Sequence[Base],
    arms: Sequence[str],
    seeds: Sequence[int],
    *,
    out: Path,
    about: Mapping[str, Any],
    keep_checkpoints: bool,
) -> list[Unit]:
    """The units, seed by seed: after each seed all methods have been compared once more."""
    return [
        Unit(
            base=base,
            arm=arm,
            seed=seed,
            preset=preset,
            out=out,
            origin=about,
            keep_checkpoints=keep_checkpoints,
            vectors=seed == seeds[0],
        )
        for seed in seeds
        for base in bases
        for arm in (BASE, *arms)
    ]
