"""The one parser: the last answer of a reply, as integers, a list of integers or a list of lists.

Model output is hostile. Nothing is evaluated, the reply's size and the answer's depth and digits
are bounded, and every step is linear in the length of the reply.

What is read: text behind the last closing thinking tag; in it the last marker (``Answer:`` in any
case and decoration, ``<answer>``, a LaTeX box); behind the marker the first list, or for tours and
cycles a chain of arrows, whichever comes first. Without a marker there is no answer.
"""

import re
from enum import StrEnum

from npbench.errors import ParseError

__all__ = ["MAX_REPLY_CHARS", "Shape", "is_marked", "parse_answer"]

MAX_REPLY_CHARS = 1 << 20
"""Longer replies are refused unread."""

_MAX_DIGITS = 18


class Shape(StrEnum):
    """The form of a task's answer."""

    FLAT = "flat"
    """A list of integers."""
    PATH = "path"
    """A list of integers that may also be written with arrows."""
    NESTED = "nested"
    """A list of lists of integers."""


_WIDE = str.maketrans(
    "［］【】（）〔〕，、；：０１２３４５６７８９－−“”‘’＂＇\u00a0\u2009\u202f\u3000",
    "[][]()[],,;:0123456789--\"\"''\"'    ",
    "\ufeff\u200b\u2060",
)
_THINK = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)>|(◁/?)think▷", re.IGNORECASE)
_MARKER = re.compile(
    r"(?<![a-z])answers?[*_`\"'\s]{0,8}(?:is[*_`\"'\s]{0,8})?:|答案[*_`\s]{0,8}(?:是|为)?[*_`\s]{0,8}:"
    r"|<answer>|\\(?:boxed|fbox)\s{0,4}\{|<\|begin_of_box\|>"
    r"|^[ \t#*_>]{0,12}(?:final[ ]{1,4})?answer[ \t#*_]{0,8}$",
    re.IGNORECASE | re.MULTILINE,
)
_NOISE = re.compile(
    r"\\(?:(?:left|right|big[lr]?)(?![a-z])|,|;|!|:| )|<\|[a-z_]{1,30}\|>|[*`$]", re.IGNORECASE
)
_MATH_OPEN = re.compile(r"\\\[\s{0,9}\[|\\\[")
_MATH_CLOSE = re.compile(r"\]\s{0,9}\\\]|\\\]")
_ARROW = r"(?:-{1,3}>|={1,2}>|[→⇒➔➜⟶]|\\(?:long)?(?:right)?(?:to|arrow)(?![a-z]))"
_WORD = r"(?:vertex|vertices|node|city|cities|item|index|position|subset|set|meeting|room|[vncs])"
_NAME = rf"(?:{_WORD}(?:-|[\s_#]{{0,3}}))?"
_ITEM = rf"[\"']?{_NAME}[\"']?(?P<number>[+-]?[0-9]+)[\"']?"
_STEP = rf"[\"']?{_NAME}[\"']?(?P<number>[0-9]+)[\"']?"
_ARROWS = re.compile(_ARROW, re.IGNORECASE)
_FIRST_STEP = re.compile(rf"(?:^|(?<=[\s:(\[])){_STEP}\s*$", re.IGNORECASE)
_MIDDLE_STEP = re.compile(rf"\s*{_STEP}\s*", re.IGNORECASE)
_LAST_STEP = re.compile(rf"\s*{_STEP}(?![\w/⁄]|\.\w)", re.IGNORECASE)
_SIMPLE = re.compile(r"\[([0-9,\s]*)\]")
_TOKEN = re.compile(
    rf"\s*(?:(?P<open>[\[(])|(?P<close>[\])])|(?P<comma>[,;])|(?P<arrow>{_ARROW})|{_ITEM})",
    re.IGNORECASE,
)


def parse_answer(reply: str, *, shape: Shape) -> list[int] | list[list[int]]:
    r"""The final answer of a model's reply.

    Args:
        reply: The whole reply, thinking included.
        shape: The form that the task asks for.

    Raises:
        ParseError: If no answer of that form can be read; the message says why.

    Example:
        >>> parse_answer("First [1]? No. **Answer:** [0, v3]", shape=Shape.FLAT)
        [0, 3]
        >>> parse_answer(r"Answer: $0 \to 2 \to 1 \to 0$", shape=Shape.PATH)
        [0, 2, 1, 0]
    """
    if not isinstance(reply, str):
        raise ParseError(f"a reply must be text, got {type(reply).__name__}")
    if len(reply) > MAX_REPLY_CHARS:
        raise ParseError(f"the reply is too long: {len(reply)} characters of {MAX_REPLY_CHARS}")
    text = _without_thinking(reply)
    if not text.isascii():
        text = text.translate(_WIDE)
    end = max((marker.end() for marker in _MARKER.finditer(text)), default=None)
    if end is None:
        raise ParseError("no answer marker" if text.strip() else "the reply is empty")
    text = text[end:]
    if shape is not Shape.NESTED:
        simple = _SIMPLE.search(text)
        if simple is not None and not re.search(r"[\[(>→⇒➔➜⟶\\]", text[: simple.start()]):
            return _numbers(simple.group(1))
    text = _MATH_CLOSE.sub("]", _MATH_OPEN.sub("[", _NOISE.sub(" ", text)))
    start = text.find("[")
    arrow = _ARROWS.search(text) if shape is Shape.PATH else None
    if arrow is not None and (start < 0 or arrow.start() < start):
        return _chain(text, arrow)
    before = text[: max(start, 0)].rstrip()
    if start < 0:
        start = text.find("(")
    elif shape is Shape.NESTED and before.endswith("("):
        start = len(before) - 1
    if start < 0:
        raise ParseError("no list behind the answer marker")
    return _scan(text, start, shape)


def is_marked(text: str) -> bool:
    """Whether an answer marker stands in the text.

    Example:
        >>> is_marked("Answer: [0]"), is_marked("the answer is [0]")
        (True, False)
    """
    return _MARKER.search(text) is not None


def _chain(text: str, first_arrow: re.Match[str]) -> list[int]:
    """The numbers that arrows join from the first one on; whatever follows the chain is prose."""
    first = _FIRST_STEP.search(text[: first_arrow.start()])
    if first is None:
        raise ParseError("no number stands before the first arrow")
    digits = [first.group("number")]
    arrow: re.Match[str] | None = first_arrow
    while arrow is not None:
        following = _ARROWS.search(text, arrow.end())
        step = None
        if following is not None:
            step = _MIDDLE_STEP.fullmatch(text, arrow.end(), following.start())
        if step is None:
            step = _LAST_STEP.match(text, arrow.end())
            if step is None:
                raise ParseError("the chain of arrows is cut off or holds no number at a step")
            following = None
        digits.append(step.group("number"))
        arrow = following
    return _checked(digits)


def _without_thinking(reply: str) -> str:
    """The reply without its thinking blocks; what stands before a stray closing tag is thinking."""
    if "<" not in reply and "◁" not in reply:
        return reply
    kept: list[str] = []
    position, depth = 0, 0
    for tag in _THINK.finditer(reply):
        closing = "/" in tag.group()
        if closing and depth == 0:
            kept.clear()
        elif depth == 0:
            kept.append(reply[position : tag.start()])
        depth = 0 if closing else depth + 1
        position = tag.end()
    if depth:
        raise ParseError("the thinking block never closes")
    kept.append(reply[position:])
    return "".join(kept)


def _numbers(body: str) -> list[int]:
    """The integers of a plain bracket's inside, a comma behind the last one allowed."""
    parts = [part.strip() for part in body.split(",")]
    if parts[-1] == "":
        parts.pop()
    if not all(part.isdigit() for part in parts):
        raise ParseError("an entry of the list is missing or has blanks inside")
    return _checked(parts)


def _checked(parts: list[str]) -> list[int]:
    for part in parts:
        if len(part) > _MAX_DIGITS:
            raise ParseError(f"a number of {len(part)} digits; at most {_MAX_DIGITS} are read")
    return [int(part) for part in parts]


def _scan(text: str, start: int, shape: Shape) -> list[int] | list[list[int]]:
    """The list that opens at ``start``, as the shape wants it."""
    nested = shape is Shape.NESTED
    flat: list[int] = []
    rows: list[list[int]] = []
    open_brackets: list[str] = []
    filled = False  # an entry stands since the last opening or comma
    position = start
    while True:
        token = _TOKEN.match(text, position)
        if token is None:
            rest = text[position : position + 24].strip()
            raise ParseError(f"not an integer: {rest!r}" if rest else "the list is cut off")
        position = token.end()
        kind = token.lastgroup
        depth = len(open_brackets)
        if kind == "open":
            open_brackets.append(token.group("open"))
            if depth == (2 if nested else 1):
                raise ParseError(f"the list is nested deeper than this {shape} answer may be")
            if filled:
                raise ParseError("a comma is missing between two entries")
            if depth == 1:
                rows.append([])
            filled = False
        elif kind == "close":
            if open_brackets.pop() + token.group("close") not in ("[]", "()"):
                raise ParseError("a bracket is closed by one of another kind")
            filled = True
            if depth == 1:
                return rows if nested else flat
        elif kind == "number":
            digits = token.group("number")
            if filled:
                raise ParseError("a comma is missing between two entries")
            if depth != (2 if nested else 1):
                raise ParseError("a number stands where a list is expected")
            (rows[-1] if nested else flat).append(_signed(digits))
            filled = True
            if position < len(text) and text[position] in "._/⁄½" and _glued(text, position):
                raise ParseError(f"not an integer: {text[token.start() : position + 4].strip()!r}")
        elif kind == "arrow" and shape is not Shape.PATH:
            raise ParseError("arrows are read in tours and cycles only")
        else:
            if not filled:
                raise ParseError("an entry of the list is missing")
            filled = False


def _signed(digits: str) -> int:
    _checked([digits.lstrip("+-")])
    return int(digits)


def _glued(text: str, position: int) -> bool:
    """Whether the sign at ``position`` continues a number, as in ``2.5`` or ``1/2``."""
    return position + 1 < len(text) and text[position + 1] not in " ,])\n"
