r"""Exact value of a rational expression: digits, ``+ - * / ^ !``, fractions, perfect roots.

Nothing is evaluated by Python: a recursive-descent reader with a bounded depth works on fractions
whose size is bounded before an operation is carried out.
"""

import math
import re
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["MAX_BITS", "NotRationalError", "TooLargeError", "rational_value"]

MAX_BITS = 60_000
"""Largest size of a numerator or denominator, in bits (about 18,000 decimal digits)."""
_MAX_DEPTH = 40
_MAX_FACTORIAL = 3_000

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d*)?|\.\d+)|(?P<frac>\\frac)|(?P<root>\\sqrt)|"
    r"(?P<times>\\times|\\cdot|\*)|(?P<over>\\div|/)|(?P<symbol>[-+^!(){}\[\]]))"
)


class NotRationalError(ValueError):
    """The text is no rational expression; another stage may read it."""


class TooLargeError(ValueError):
    """The text is a rational expression whose value would exceed the bound."""


@dataclass(slots=True)
class _Reader:
    tokens: tuple[str, ...]
    position: int = 0
    depth: int = 0

    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.position += 1
        return token

    def expect(self, token: str) -> None:
        if self.take() != token:
            raise NotRationalError(f"expected {token}")


def rational_value(text: str) -> Fraction:
    r"""The exact value of ``text``.

    A whole number in front of a fraction of whole numbers is a mixed number.

    Raises:
        NotRationalError: If the text is anything but a rational expression.
        TooLargeError: If a value in it would exceed ``MAX_BITS``.

    Example:
        >>> rational_value(r"3\frac{2}{5}"), rational_value("2^{10}/4"), rational_value("-0.5")
        (Fraction(17, 5), Fraction(256, 1), Fraction(-1, 2))
    """
    reader = _Reader(_tokens(text))
    value = _sum(reader)
    if reader.peek():
        raise NotRationalError(f"unexpected {reader.peek()}")
    return value


def _tokens(text: str) -> tuple[str, ...]:
    tokens: list[str] = []
    position = 0
    text = text.strip()
    # "3 2/5" and "3 \frac25": only a mixed number may hold a blank between two numbers.
    if re.search(r"[\d.]\s+[\d.]", re.sub(r"^-?\s*\d+\s+\d+\s*/\s*\d+$", "", text)):
        raise NotRationalError("a blank inside a number")
    if mixed := re.fullmatch(r"(-?)\s*(\d+)\s+(\d+)\s*/\s*(\d+)", text):
        return ("-",) * len(mixed[1]) + ("(", mixed[2], "+", mixed[3], "/", mixed[4], ")")
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise NotRationalError(f"unexpected {text[position]!r}")
        kind = match.lastgroup
        token = match[0].strip()
        tokens.append(
            {"times": "*", "over": "/", "frac": "frac", "root": "root"}.get(kind or "", token)
        )
        position = match.end()
    return tuple(tokens)


def _sum(reader: _Reader) -> Fraction:
    reader.depth += 1
    if reader.depth > _MAX_DEPTH:
        raise TooLargeError(f"more than {_MAX_DEPTH} nested brackets")
    value = _product(reader)
    while reader.peek() in {"+", "-"}:
        sign = 1 if reader.take() == "+" else -1
        value = _checked(value + sign * _product(reader))
    reader.depth -= 1
    return value


def _product(reader: _Reader) -> Fraction:
    value = _signed(reader)
    while True:
        token = reader.peek()
        if token == "*":
            reader.take()
            value = _checked(value * _signed(reader))
        elif token == "/":
            reader.take()
            divisor = _signed(reader)
            if not divisor:
                raise NotRationalError("division by zero")
            value = _checked(value / divisor)
        elif token in {"(", "frac", "root"}:
            value = _checked(value * _power(reader))
        else:
            return value


def _signed(reader: _Reader) -> Fraction:
    sign = 1
    while reader.peek() in {"+", "-"}:
        sign = -sign if reader.take() == "-" else sign
    return sign * _power(reader)


def _power(reader: _Reader) -> Fraction:
    start = reader.position
    base = _atom(reader)
    whole_number = reader.position == start + 1 and "." not in reader.tokens[start]
    while reader.peek() == "!":
        reader.take()
        base = _factorial(base)
        whole_number = False
    if whole_number and reader.peek() == "frac":
        fraction = _mixed_part(reader)
        if fraction is not None:
            return base + fraction
    if reader.peek() != "^":
        return base
    reader.take()
    exponent = _exponent(reader)
    if exponent.denominator != 1:
        return _root_power(base, exponent)
    return _integer_power(base, exponent.numerator)


def _mixed_part(reader: _Reader) -> Fraction | None:
    """The fraction of a mixed number, or None where the text multiplies instead."""
    start = reader.position
    reader.take()
    parts = []
    for _ in range(2):
        first = reader.position
        value = _argument(reader)
        plain = reader.tokens[first : reader.position]
        if any(not token.isdigit() for token in plain if token not in {"{", "}"}):
            reader.position = start
            return None
        parts.append(value)
    if not parts[1] or parts[0] >= parts[1]:
        reader.position = start
        return None
    return parts[0] / parts[1]


def _exponent(reader: _Reader) -> Fraction:
    reader.depth += 1
    if reader.depth > _MAX_DEPTH:
        raise TooLargeError(f"more than {_MAX_DEPTH} nested powers")
    if reader.peek() in {"{", "("}:
        value = _group(reader)
        if reader.peek() == "^":
            reader.take()
            value = _integer_power(value, _whole(_exponent(reader)))
    else:
        value = _signed(reader)
    reader.depth -= 1
    return value


def _atom(reader: _Reader) -> Fraction:
    token = reader.peek()
    if token in {"(", "{", "["}:
        if token == "[":
            raise NotRationalError("square brackets")
        return _group(reader)
    if token == "frac":
        reader.take()
        numerator = _argument(reader)
        denominator = _argument(reader)
        if not denominator:
            raise NotRationalError("division by zero")
        return _checked(numerator / denominator)
    if token == "root":
        reader.take()
        degree = 2
        if reader.peek() == "[":
            reader.take()
            degree = _whole(_sum(reader))
            reader.expect("]")
        if not 2 <= degree <= 64:
            raise NotRationalError("the index of the root")
        return _exact_root(_argument(reader), degree)
    if token[:1].isdigit() or token.startswith("."):
        return _number(reader.take())
    raise NotRationalError(f"unexpected {token or 'end'}")


def _argument(reader: _Reader) -> Fraction:
    """An argument of a command: a group, or one digit of a longer number (shorthand)."""
    if reader.peek() == "{":
        return _group(reader)
    token = reader.peek()
    if not token.isdigit():
        raise NotRationalError("a command without its argument")
    if len(token) > 1:
        split = (token[0], token[1:])
        reader.tokens = (
            *reader.tokens[: reader.position],
            *split,
            *reader.tokens[reader.position + 1 :],
        )
    return _number(reader.take())


def _group(reader: _Reader) -> Fraction:
    closing = {"(": ")", "{": "}"}[reader.take()]
    value = _sum(reader)
    reader.expect(closing)
    return value


def _number(token: str) -> Fraction:
    whole, _, decimals = token.partition(".")
    if (len(whole) + len(decimals)) * 3.33 > MAX_BITS or len(token) > 4_000:
        raise TooLargeError("a number of more than 4,000 digits")
    return Fraction(int((whole + decimals) or "0"), 10 ** len(decimals))


def _checked(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise TooLargeError(f"a value of more than {MAX_BITS} bits")
    return value


def _whole(value: Fraction) -> int:
    if value.denominator != 1:
        raise NotRationalError("a whole number is needed")
    return value.numerator


def _factorial(value: Fraction) -> Fraction:
    number = _whole(value)
    if number < 0:
        raise NotRationalError("factorial of a negative number")
    if number > _MAX_FACTORIAL:
        raise TooLargeError(f"factorial of a number above {_MAX_FACTORIAL}")
    return Fraction(math.factorial(number))


def _integer_power(base: Fraction, exponent: int) -> Fraction:
    if base in {0, 1, -1}:
        if base == 0 and exponent <= 0:
            raise NotRationalError("zero to a power that is not positive")
        return base ** (exponent % 2 if base else 1)
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if abs(exponent) * bits > MAX_BITS:
        raise TooLargeError(f"a power of more than {MAX_BITS} bits")
    return Fraction(base**exponent)


def _root_power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator > 64:
        raise NotRationalError("an irrational power")
    return _integer_power(_exact_root(base, exponent.denominator), exponent.numerator)


def _exact_root(value: Fraction, degree: int) -> Fraction:
    if value < 0:
        raise NotRationalError("the root of a negative number")
    parts = [_integer_root(value.numerator, degree), _integer_root(value.denominator, degree)]
    if parts[0] is None or parts[1] is None:
        raise NotRationalError("an irrational root")
    return Fraction(parts[0], parts[1])


def _integer_root(number: int, degree: int) -> int | None:
    if degree == 2:
        root = math.isqrt(number)
        return root if root * root == number else None
    low, high = 0, 1 << (number.bit_length() // degree + 1)
    while low < high:
        middle = (low + high) // 2
        if middle**degree < number:
            low = middle + 1
        else:
            high = middle
    return low if low**degree == number else None
