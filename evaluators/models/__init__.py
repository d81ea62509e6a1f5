"""Models that we ship, by name."""

from pathlib import Path

__all__ = ["DEFAULT_MODEL", "SHIPPED", "shipped_model"]

DEFAULT_MODEL = "npbench-tiny"

_FOLDERS = {DEFAULT_MODEL: "npbench_tiny"}

SHIPPED = tuple(_FOLDERS)


def shipped_model(name: str) -> Path | None:
    """The folder of a shipped model; None where the name is not one of ours.

    Example:
        >>> shipped_model("npbench-tiny").name
        'npbench_tiny'
    """
    folder = _FOLDERS.get(name)
    return None if folder is None else Path(__file__).parent / folder
