"""A row of a data set under our names of its columns, and how its cells are read."""

import ast
import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npbench.errors import InputError

__all__ = ["LeftOut", "Row", "interleaved", "literal_list"]

_MAX_LITERAL = 20_000
_NUMBERED = re.compile(r"<image[ _]?(\d{1,2})>")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A row that is no question, and why."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Row:
    """One row; a cell is asked for under our name of its column."""

    number: int
    """Position in the table, from 0."""
    values: Mapping[str, Any]
    folder: Path | None
    """What relative paths of pictures start from."""

    def text(self, name: str) -> str:
        """A cell as text: empty for null, and a whole number without its decimals."""
        value = self.values.get(name)
        if value is None:
            return ""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise InputError(f"{name} must be text, got {value!r:.60}")
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        return str(value)

    def needed(self, name: str) -> str:
        """A cell's text, which must not be blank."""
        text = self.text(name)
        if not text.strip():
            raise InputError(f"{name} is empty")
        return text

    def texts(self, name: str) -> tuple[str, ...]:
        """The texts of a list, or of a list written as text; empty for null."""
        value = self.values.get(name)
        if isinstance(value, str):
            value = literal_list(value)
            if value is None:
                raise InputError(f"{name} must be a list, got {self.values[name]!r:.60}")
        if not isinstance(value, list | None):
            raise InputError(f"{name} must be a list, got {value!r:.60}")
        return tuple(str(member) for member in value or ())

    def field(self, name: str, key: str) -> str:
        """A member of a cell that holds named values, as text; empty for null."""
        value = self.values.get(name)
        if not isinstance(value, Mapping) or key not in value:
            raise InputError(f"{name} must hold {key!r}, got {value!r:.60}")
        member = value[key]
        return ", ".join(map(str, member)) if isinstance(member, list) else str(member or "")

    def picture(self, name: str) -> bytes | None:
        """The encoded picture of a cell, None where the cell has none."""
        return _picture(self.values.get(name), name, self.folder)

    def needed_picture(self, name: str) -> bytes:
        """The encoded picture of a cell, which must have one."""
        picture = self.picture(name)
        if picture is None:
            raise InputError(f"{name} holds no picture")
        return picture

    def pictures(self, name: str) -> tuple[bytes, ...]:
        """The encoded pictures of a list."""
        value = self.values.get(name)
        if not isinstance(value, list):
            raise InputError(f"{name} must be a list of pictures, got {value!r:.60}")
        found = [_picture(member, name, self.folder) for member in value]
        return tuple(picture for picture in found if picture is not None)


def literal_list(text: str) -> list[Any] | None:
    """The list that a text is in Python's notation; None where it is none.

    Example:
        >>> literal_list("['a', 'b']"), literal_list("[0, 1)") is None
        (['a', 'b'], True)
    """
    if not text.strip().startswith("[") or len(text) > _MAX_LITERAL:
        return None
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def interleaved(text: str, pictures: Mapping[int, bytes]) -> tuple[str | bytes, ...]:
    """The text cut at its numbered picture tokens, each picture in the place of its number.

    The order of the tokens decides and a picture may stand twice; one that no token names is not
    shown, unless there is no token at all: then all stand in front.

    Raises:
        InputError: If a token's picture is missing.

    Example:
        >>> interleaved("See <image 2>, then <image 1>.", {1: b"one", 2: b"two"})
        ('See ', b'two', ', then ', b'one', '.')
    """
    pieces = _NUMBERED.split(text)
    if len(pieces) == 1:
        return (*(pictures[number] for number in sorted(pictures)), text)
    parts: list[str | bytes] = []
    for position, piece in enumerate(pieces):
        if position % 2 == 0:
            parts += [piece] if piece else []
            continue
        if int(piece) not in pictures:
            raise InputError(f"the text shows picture {piece}, which is missing")
        parts.append(pictures[int(piece)])
    return tuple(parts)


def _picture(value: Any, name: str, folder: Path | None) -> bytes | None:
    """The bytes of a picture that a cell holds: as such, with a path, as a path, or not at all."""
    if isinstance(value, Mapping) and {"bytes", "path"} & set(value):
        value = value.get("bytes") or value.get("path")
    if value is None or value == "" or value == b"":
        return None
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise InputError(f"{name} must be a picture, got {value!r:.60}")
    return _from_file(value, name, folder)


def _from_file(path: str, name: str, folder: Path | None) -> bytes:
    if path.startswith("data:image/"):
        return base64.b64decode(path.partition(",")[2])
    if folder is None:
        raise InputError(f"{name} is the path {path!r}, which the Hub does not resolve")
    file = (folder / path).resolve()
    if not file.is_relative_to(folder.resolve()):
        raise InputError(f"{name} lies outside the folder: {path!r}")
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"{name} {path!r} cannot be read: {error.strerror}") from None
