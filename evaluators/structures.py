r"""Reads the shape of an answer: brackets and their members, labels in front of ``=``, ratios."""

import re
from dataclasses import dataclass
from enum import StrEnum

__all__ = [
    "Collection",
    "Labelled",
    "Shape",
    "collection",
    "equation_sides",
    "exact_part",
    "ratio_members",
    "split_label",
    "split_top_level",
]

_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(")]}")
_JOINERS = re.compile(r",?\s+(?:and|or|und)\s+|\s*[,;&]\s*|\s*\n\s*")
_MAX_MEMBERS = 100


class Shape(StrEnum):
    """What holds the members of a collection together."""

    POINT = "( )"
    BRACKETS = "[ ]"
    SET = "{ }"
    ANGLE = "< >"
    BARE = "bare"


@dataclass(frozen=True, slots=True)
class Collection:
    """Members in the order written, and the brackets around them."""

    shape: Shape
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Labelled:
    """A value and the name that it was given, as in ``h = 24``."""

    label: str | None
    """The name without blanks, or None."""
    value: str
    word: bool = False
    """Whether the name is one or more words rather than a symbol."""


def split_top_level(text: str, joiners: re.Pattern[str] = _JOINERS) -> tuple[str, ...]:
    r"""The parts of ``text`` between joiners that stand outside all brackets, empty ones left out.

    Example:
        >>> split_top_level("(1,6), (2,3)"), split_top_level("B and D")
        (('(1,6)', '(2,3)'), ('B', 'D'))
    """
    parts: list[str] = []
    depth = start = position = 0
    while position < len(text):
        character = text[position]
        if depth == 0 and (match := joiners.match(text, position)) and match.end() > position:
            parts.append(text[start:position])
            position = start = match.end()
            continue
        if character == "\\" and position + 1 < len(text) and text[position + 1].isalpha():
            position += 2
            continue
        if character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        position += 1
    parts.append(text[start:])
    parts = [part.strip() for part in parts]
    return tuple(part for part in parts if part) or ("",)


def collection(text: str) -> Collection | None:
    r"""The collection that a normalised answer writes, or None where it is a single value.

    Example:
        >>> collection("(2, 7)")
        Collection(shape=<Shape.POINT: '( )'>, members=('2', '7'))
        >>> collection(r"\{-3, 0, 3\}").members, collection("25, 4").shape, collection("(3)")
        (('-3', '0', '3'), <Shape.BARE: 'bare'>, None)
    """
    text = text.strip()
    for opening, closing, shape in (
        (r"\{", r"\}", Shape.SET),
        (r"\langle", r"\rangle", Shape.ANGLE),
        ("(", ")", Shape.POINT),
        ("[", "]", Shape.BRACKETS),
        ("{", "}", Shape.SET),
    ):
        if text.startswith(opening) and text.endswith(closing):
            inner = text[len(opening) : len(text) - len(closing)]
            if not _closes_at_end(text, opening[-1] if len(opening) < 3 else ""):
                continue
            members = split_top_level(inner)
            if len(members) > 1 or shape in {Shape.SET, Shape.BRACKETS}:
                kept = tuple(part for part in members if part)
                return Collection(shape, kept) if len(kept) <= _MAX_MEMBERS else None
    if plus_minus := _plus_minus(text):
        return plus_minus
    members = split_top_level(text)
    if 1 < len(members) <= _MAX_MEMBERS:
        return Collection(Shape.BARE, members)
    return None


def ratio_members(text: str) -> tuple[str, ...] | None:
    """The members of a ratio written with colons, or None.

    Example:
        >>> ratio_members("3:4"), ratio_members("x: 4"), ratio_members("3")
        (('3', '4'), None, None)
    """
    parts = [part.strip() for part in re.split(r"\s*:\s*|\s+to\s+", text)]
    if len(parts) < 2 or any(not re.match(r"[\d.\\({-]", part) for part in parts):
        return None
    return tuple(parts)


_SYMBOL = r"(?:\\?[A-Za-z]|\\[A-Za-z]+)(?:_(?:\{[^{}]*\}|\w))?'*(?:\([a-z]\)|\^\{-1\}\([a-z]\))?"
_NAME = re.compile(
    rf"(?:{_SYMBOL}|m?\s*\\(?:angle|triangle|overline|overrightarrow|widehat|hat|vec|bar)\s*"
    r"\{?[A-Z]{1,4}\}?|\|?[A-Z]{2,4}\|?|\\(?:sin|cos|tan)\s*\{?[A-Za-z]\}?)"
)
_WORD_NAME = re.compile(
    r"(?:the\s+)?[A-Za-z]{2,}(?:[\s\-'/]+(?:[A-Za-z]+|\([A-Za-z]+\)))*", re.IGNORECASE
)
_EQUALS = re.compile(r"(?<![<>!\\:])\s*=\s*(?!=)")
_SENTENCE = re.compile(
    r"^(?=.{0,80}?\b(?:is|are|equals)\s)(?:[A-Za-z'\-]+\s+){1,8}?(?:is|are|equals)\s+(?:equal\s+to\s+)?"
    r"(?P<value>\S.*)$",
    re.IGNORECASE,
)
_COLON = re.compile(r"^(?P<label>[A-Za-z][A-Za-z ]{1,40}):\s*(?P<value>\S.*)$")
_NAMED_POINT = re.compile(r"^(?P<label>[A-Z])\s*(?P<value>\([^()]*,[^()]*\))$")
_MEMBERSHIP = re.compile(r"^(?P<label>[a-zA-Z])\s*\\in(?![A-Za-z])\s*(?P<value>\S.*)$")


def split_label(text: str) -> Labelled:
    r"""The name and the value of an assignment; label None where the answer is none.

    An equation between expressions is no assignment: ``x + y = 5`` keeps both sides.

    Example:
        >>> split_label("h=24"), split_label("9=t").value
        (Labelled(label='h', value='24', word=False), '9')
        >>> split_label("Area =16\\pi"), split_label("x + y = 5").label
        (Labelled(label='area', value='16\\pi', word=True), None)
    """
    for pattern in (_NAMED_POINT, _MEMBERSHIP):
        if match := pattern.match(text):
            return Labelled(match["label"], match["value"])
    if match := _COLON.match(text):
        return Labelled(match["label"].casefold(), match["value"], word=True)
    if match := _SENTENCE.match(text):
        label = text[: match.start("value")].casefold()
        return Labelled(label, match["value"], word=True)
    if len(split_top_level(text)) > 1:  # the members of a bare list have labels of their own
        return Labelled(None, text)
    sides = equation_sides(text)
    if len(sides) < 2 or not all(sides):
        return Labelled(None, text)
    for name, value in ((sides[0], sides[-1]), (sides[-1], sides[0])):
        if _NAME.fullmatch(name):
            constant = re.search(r"(?<![A-Za-z\\])[A-Za-z]", value) is None
            if constant or (value is sides[-1] and len(sides) == 2):
                return Labelled("".join(name.split()), value)
        elif _WORD_NAME.fullmatch(name):
            return Labelled(" ".join(name.split()).casefold(), value, word=True)
    return Labelled(None, text)


def equation_sides(text: str) -> tuple[str, ...]:
    """What stands between the equals signs of ``text`` outside brackets.

    Example:
        >>> equation_sides("a = 2 + 3 = 5"), equation_sides("7")
        (('a', '2 + 3', '5'), ('7',))
    """
    return split_top_level(text, _EQUALS)


def exact_part(text: str, *, rounded: bool = False) -> str:
    r"""The exact side of ``a \approx b``, which is the first unless that is only a name.

    Args:
        text: A normalised answer.
        rounded: Whether the rounded side is wanted instead.

    Example:
        >>> exact_part("10\\pi \\approx 31.4"), exact_part("x \\approx 3.1")
        ('10\\pi', 'x = 3.1')
    """
    parts = [part.strip() for part in re.split(r"\\(?:approx|simeq)(?![A-Za-z])", text)]
    if len(parts) != 2 or not all(parts):
        return text
    if _NAME.fullmatch(parts[0]) or _WORD_NAME.fullmatch(parts[0]):
        return f"{parts[0]} = {parts[1]}"
    if re.search(r"(?<![A-Za-z\\])[A-Za-z]", parts[0]):
        return text
    return parts[1] if rounded else parts[0]


def _plus_minus(text: str) -> Collection | None:
    r"""Both readings of a single ``\pm``."""
    if len(re.findall(r"\\pm(?![A-Za-z])", text)) != 1 or r"\mp" in text:
        return None
    if len(split_top_level(text)) > 1:
        return None
    before, after = re.split(r"\\pm(?![A-Za-z])", text)
    members = tuple(f"{before}{sign}{after}".strip() for sign in "+-")
    return Collection(Shape.BARE, tuple(member.removeprefix("+").strip() for member in members))


def _closes_at_end(text: str, opening: str) -> bool:
    """Whether the bracket that opens ``text`` is closed by its last character."""
    if not opening:
        return True
    depth = 0
    for position, character in enumerate(text):
        if character == opening:
            depth += 1
        elif character == _OPENING[opening]:
            depth -= 1
            if depth == 0 and position < len(text) - 1:
                return False
    return depth == 0
