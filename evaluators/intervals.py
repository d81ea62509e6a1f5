r"""Reads sets of real numbers: intervals, unions, and inequalities in one variable."""

import re
from dataclasses import dataclass

from evaluators.structures import split_top_level

__all__ = ["Interval", "Region", "is_region", "region"]

_RELATION = re.compile(r"(\\le(?![A-Za-z])|\\ge(?![A-Za-z])|<|>)")
_UNION = re.compile(r"\s*\\(?:cup|lor|vee)(?![A-Za-z])\s*|,?\s+or\s+|\s+U\s+")
_BOTH = re.compile(r"\s*\\(?:land|wedge)(?![A-Za-z])\s*|,?\s+and\s+")
_VARIABLE = re.compile(r"\\?[A-Za-z]+(?:_\{?\w\}?)?(?:\([a-z]\))?")
_INFINITE = {r"\infty": 1, r"-\infty": -1, r"- \infty": -1}
_MEMBER = re.compile(r"^(?P<variable>\\?[A-Za-z]+)\s*\\in(?![A-Za-z])\s*")
_ALL = re.compile(r"\\mathbb\s*\{?\s*R\s*\}?|\\R|all real numbers|all reals", re.IGNORECASE)
_HOLE = re.compile(
    r"(?P<variable>\\?[A-Za-z]+)\s*\\ne(?![A-Za-z])\s*(?P<end>[^,]+)"
    r"|\\mathbb\s*\{?\s*R\s*\}?\s*(?:\\setminus|\\backslash|-)\s*\\\{(?P<left_out>[^,{}]+)\\\}"
)
_BUILDER = re.compile(
    r"^\\?\{\s*(?P<variable>[A-Za-z])\s*(?:\\in\s*\\mathbb\s*\{?R\}?\s*)?(?:\||\\mid|:)\s*"
    r"(?P<rule>.*?)\\?\}$"
)


@dataclass(frozen=True, slots=True)
class Interval:
    r"""All numbers between two ends; an infinite end is written ``\infty`` or ``-\infty``."""

    low: str
    high: str
    low_closed: bool
    high_closed: bool


@dataclass(frozen=True, slots=True)
class Region:
    """A union of intervals, and the variable's name where an inequality gave one."""

    intervals: tuple[Interval, ...]
    variable: str | None


def is_region(text: str) -> bool:
    r"""Whether an answer can only mean a set of numbers: inequality, half-open or infinite end.

    Example:
        >>> is_region("(-4, 3]"), is_region("x > 3"), is_region("(2, 7)")
        (True, True, False)
    """
    if region(text) is None:
        return False
    half_open = re.search(r"\([^()\[\]]*\]|\[[^()\[\]]*\)", text) is not None
    marks = half_open or r"\infty" in text or r"\cup" in text
    whole = _ALL.fullmatch(text) or _HOLE.fullmatch(text)
    return bool(marks or _RELATION.search(text) or whole)


def region(text: str) -> Region | None:
    r"""The set of numbers that a normalised answer describes, or None.

    Example:
        >>> region("x \\ge 5") == Region((Interval("5", r"\infty", True, False),), "x")
        True
        >>> region("-4 < x \\le 3").intervals == region("(-4, 3]").intervals
        True
    """
    text = text.strip()
    if builder := _BUILDER.match(text):
        text = builder["rule"].strip()
    if hole := _HOLE.fullmatch(text):
        name, end = hole["variable"] or "x", hole["end"] or hole["left_out"]
        around = region(f"{name} < {end} or {name} > {end}")
        return around and Region(around.intervals, hole["variable"])
    variable: str | None = None
    if member := _MEMBER.match(text):
        variable = member["variable"]
        text = text[member.end() :]
    intervals: list[Interval] = []
    for part in split_top_level(text, _UNION):
        pieces = [_piece(piece) for piece in split_top_level(part, _BOTH)]
        known = [piece for piece in pieces if piece is not None]
        if not known or len(known) < len(pieces):
            return None
        names = {name for _, name in known if name is not None} | ({variable} - {None})
        if len(names) > 1:
            return None
        variable = next(iter(names), None)
        common = _intersection([interval for interval, _ in known])
        if common is None:
            return None
        intervals.append(common)
    return Region(tuple(intervals), variable)


def _piece(text: str) -> tuple[Interval, str | None] | None:
    if _ALL.fullmatch(text):
        return Interval(r"-\infty", r"\infty", low_closed=False, high_closed=False), None
    bracketed = re.fullmatch(r"([(\[])(.*)([)\]])", text)
    if bracketed:
        ends = split_top_level(bracketed[2], re.compile(r"\s*[,;]\s*"))
        if len(ends) != 2 or not all(ends):
            return None
        return (
            Interval(_end(ends[0]), _end(ends[1]), bracketed[1] == "[", bracketed[3] == "]"),
            None,
        )
    parts = [part.strip() for part in _RELATION.split(text)]
    if len(parts) == 3:
        return _half_line(parts[0], parts[1], parts[2])
    if len(parts) == 5:
        left, first, name, second, right = parts
        if not _is_variable(name) or (first in {"<", r"\le"}) != (second in {"<", r"\le"}):
            return None
        low_side = (left, first == r"\le", second == r"\le", right)
        if first in {">", r"\ge"}:
            low_side = (right, second == r"\ge", first == r"\ge", left)
        low, low_closed, high_closed, high = low_side
        return Interval(_end(low), _end(high), low_closed, high_closed), name
    return None


def _half_line(left: str, relation: str, right: str) -> tuple[Interval, str] | None:
    if _is_variable(right) and not _is_variable(left):
        mirrored = {"<": ">", ">": "<", r"\le": r"\ge", r"\ge": r"\le"}
        left, relation, right = right, mirrored[relation], left
    if not _is_variable(left) or not right or _is_variable(right):
        return None
    end = _end(right)
    if relation in {">", r"\ge"}:
        return Interval(end, r"\infty", relation == r"\ge", high_closed=False), left
    return Interval(r"-\infty", end, low_closed=False, high_closed=relation == r"\le"), left


def _intersection(parts: list[Interval]) -> Interval | None:
    """The common part of a lower and an upper half line; a single part is itself."""
    if len(parts) == 1:
        return parts[0]
    lower = [part for part in parts if part.high == r"\infty"]
    upper = [part for part in parts if part.low == r"-\infty"]
    if len(parts) != 2 or len(lower) != 1 or len(upper) != 1:
        return None
    return Interval(lower[0].low, upper[0].high, lower[0].low_closed, upper[0].high_closed)


def _is_variable(text: str) -> bool:
    return _VARIABLE.fullmatch(text) is not None and text not in {r"\infty", r"\pi", "e"}


def _end(text: str) -> str:
    text = " ".join(text.split())
    sign = _INFINITE.get(text)
    return text if sign is None else (r"\infty" if sign > 0 else r"-\infty")
