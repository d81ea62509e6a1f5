"""Errors that a user can cause: each is one line that names the thing, the rule and the value."""

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "GenerationError",
    "InputError",
    "NoSolutionError",
    "ParseError",
    "PictureError",
    "unknown_name",
]


class InputError(ValueError):
    """Wrong usage or bad input; the command line prints its one line and exits with 2."""


class ParseError(ValueError):
    """A reply in which no answer of the task's form can be read."""


class PictureError(InputError):
    """An instance that cannot be drawn legibly within the largest picture."""


class NoSolutionError(InputError):
    """An instance that has no feasible solution."""


class GenerationError(InputError):
    """A level on which no instance passed the checks within the bounded number of draws."""


def unknown_name(kind: str, name: object, known: Iterable[str]) -> InputError:
    """The error for a name outside ``known``, with the nearest known one.

    Example:
        >>> print(unknown_name("task", "tps", ["tsp", "knapsack"]))
        unknown task 'tps'; did you mean 'tsp'? known: tsp, knapsack
    """
    names = list(known)
    close = get_close_matches(str(name).lower(), names, n=1, cutoff=0.5)
    hint = f"; did you mean '{close[0]}'?" if close else ";"
    return InputError(f"unknown {kind} {str(name)!r}{hint} known: {', '.join(names)}")
