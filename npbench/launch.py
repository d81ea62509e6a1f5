"""How the processes of a launcher were started: ``torchrun`` and its like say it by environment."""

import os

from npbench.errors import InputError

__all__ = ["environment_number", "must_be_alone", "processes"]


def environment_number(name: str, default: int) -> int:
    """An integer of the environment.

    Raises:
        InputError: If it is no number.
    """
    text = os.environ.get(name) or str(default)
    if not text.isdecimal():
        raise InputError(f"the environment variable {name} must be a whole number, got {text!r}")
    return int(text)


def processes() -> int:
    """How many processes a launcher started to work together; 1 without a launcher."""
    return max(environment_number("WORLD_SIZE", 1), 1)


def must_be_alone(what: str, instead: str) -> None:
    """Refuses several processes where each would do, and write, the same.

    Args:
        what: What was started.
        instead: What to do in place of it.

    Raises:
        InputError: If a launcher started more than one.
    """
    if processes() > 1:
        raise InputError(f"{what} must run in 1 process, got {processes()}: {instead}")
