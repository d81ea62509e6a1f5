"""Text files read strictly: UTF-8 only, and every complaint names the file and the line."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from npbench.errors import InputError

__all__ = ["SourceLine", "at", "located", "read_lines", "read_text", "whole_number"]

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of a file with its number."""

    number: int
    """Counted from 1."""
    text: str
    """Without its end of line."""


def at(path: Path, line: int, problem: str) -> InputError:
    """The error for a problem on a line of a file."""
    return InputError(f"{path} line {line}: {problem}")


@contextmanager
def located(path: Path, line: int, what: str = "") -> Iterator[None]:
    """Inside, an InputError gets the file, the line and the thing in front of its message."""
    try:
        yield
    except InputError as error:
        raise at(path, line, f"{what}: {error}" if what else str(error)) from None


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, a byte order mark at its start removed.

    Raises:
        InputError: If the file cannot be read, is not UTF-8 or holds a NUL byte.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise at(path, line, f"the text must be UTF-8, got byte 0x{raw[error.start]:02x}") from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise at(path, line, "the text must be UTF-8, got a NUL byte as in UTF-16 files")
    return text


def read_lines(path: Path) -> list[SourceLine]:
    """The lines of a UTF-8 file.

    Raises:
        InputError: As for ``read_text``, or if the file is empty.
    """
    text = read_text(path)
    if not text.strip():
        raise at(path, 1, "the file is empty")
    return [
        SourceLine(number, line.removesuffix("\r"))
        for number, line in enumerate(text.removesuffix("\n").split("\n"), 1)
    ]


def whole_number(word: str, name: str, *, low: int, high: int = 10**12) -> int:
    """The integer that a word of a file spells.

    Args:
        word: Digits, a sign allowed in front; nothing else is a whole number.
        name: What it is, for the message.
        low: Smallest legal value.
        high: Largest legal value.

    Raises:
        InputError: If the word is no integer in [low, high].

    Example:
        >>> whole_number("12", "the capacity", low=0)
        12
    """
    if not _WHOLE.fullmatch(word):
        raise InputError(f"{name} must be an integer, got {word[:40]!r}")
    value = int(word)
    if not low <= value <= high:
        raise InputError(f"{name} must lie in [{low}, {high}], got {value}")
    return value
