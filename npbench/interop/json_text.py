"""JSON objects read member by member, so that a complaint can name the line of a member."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npbench.errors import InputError
from npbench.interop.text import at

__all__ = ["Member", "read_members"]

_BLANK = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True, slots=True)
class Member:
    """A key of an object with its value."""

    key: str
    value: Any
    line: int
    """The line of the key."""
    start: int
    """Where the value starts in the text."""


def _no_constant(name: str) -> Any:
    raise InputError(f"NaN and infinity are no JSON numbers, got {name}")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f"the key {twice[:40]!r} stands twice in one object")
    return result


_DECODER = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_unique)


def read_members(path: Path, text: str, start: int = 0) -> list[Member]:
    """The members of the object that starts at a position of a file's text.

    Args:
        path: The file, for messages.
        text: Its whole text.
        start: 0 for the whole file; nothing may follow its object then.

    Raises:
        InputError: If the text is no JSON object, a key stands twice, or a number is NaN.
    """
    members: list[Member] = []
    keys: set[str] = set()
    line, counted = 1, 0
    place = _skip(text, start)
    if text[place : place + 1] != "{":
        raise _fault(path, text, place, "expected a JSON object")
    place = _skip(text, place + 1)
    while text[place : place + 1] != "}":
        if members:
            if text[place : place + 1] != ",":
                raise _fault(path, text, place, "expected a comma or a closing brace")
            place = _skip(text, place + 1)
        key_place = place
        key, place = _value(path, text, place)
        if not isinstance(key, str):
            raise _fault(path, text, key_place, "expected a key in quotes")
        if key in keys:
            raise _fault(path, text, key_place, f"the key {key[:40]!r} stands twice")
        keys.add(key)
        place = _skip(text, place)
        if text[place : place + 1] != ":":
            raise _fault(path, text, place, "expected a colon behind the key")
        value_place = _skip(text, place + 1)
        value, place = _value(path, text, value_place)
        line, counted = line + text.count("\n", counted, key_place), key_place
        members.append(Member(key, value, line, value_place))
        place = _skip(text, place)
    if start == 0 and text[place + 1 :].strip():
        raise _fault(path, text, _skip(text, place + 1), "nothing may follow the object")
    return members


def _value(path: Path, text: str, place: int) -> tuple[Any, int]:
    """The JSON value at a position, and where it ends."""
    try:
        return _DECODER.raw_decode(text, place)
    except json.JSONDecodeError as error:
        raise at(path, error.lineno, f"no JSON: {error.msg}") from None
    except InputError as error:
        raise at(path, _line(text, place), str(error)) from None
    except (ValueError, RecursionError) as error:
        raise at(path, _line(text, place), f"no JSON: {error}") from None


def _skip(text: str, place: int) -> int:
    match = _BLANK.match(text, place)
    return match.end() if match else place


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _fault(path: Path, text: str, place: int, problem: str) -> InputError:
    found = text[place : place + 20].split("\n")[0] or "the end"
    return at(path, _line(text, place), f"no JSON: {problem}, got {found!r}")
