"""Reads a number with what may stand around it: unit, percent sign, separators, powers."""

import re
from dataclasses import dataclass
from fractions import Fraction

from evaluators.arithmetic import NotRationalError, rational_value
from evaluators.units import Unit, split_unit

__all__ = ["Based", "Quantity", "based_number", "plain_number", "quantity"]

_APPROXIMATELY = re.compile(
    r"^(?:(?:about|approximately|approx\.?|roughly|around|exactly|nearly|only|just|circa|ca\.)\s+"
    r"|\\(?:approx|simeq|sim)\s*|[≈~]\s*|=\s*)+",
    re.IGNORECASE,
)
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_SPACED_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?: \d{3})+(?![\d,])")
_EXPONENT = re.compile(r"(?<=[\d.])\s*[eE]\s*([-+]?\d{1,6})(?![\w.])")
_TIMES_TEN = re.compile(r"(?<=\d)\s*[xX]\s*(?=10\s*\^)")
_MULTIPLIERS = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_MULTIPLIER = re.compile(rf"(?<=\d)\s*({'|'.join(_MULTIPLIERS)})s?\b", re.IGNORECASE)
_REPEATING = re.compile(r"(?<![\d.])(\d{0,20})\.(\d{0,20})\\(?:overline|bar)\s*\{(\d{1,20})\}")
_BASED = re.compile(
    r"\(?(-?[0-9A-Fa-f]+(?:\.[0-9A-Fa-f]+)?)\)?\s*_\s*(?:\{\s*(\d{1,2})\s*\}|(\d{1,2}))"
)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A rational number and what stood with it."""

    value: Fraction
    unit: Unit | None
    percent: bool
    decimal: bool
    """Whether it is written with a decimal point or a power of ten, so that it may be rounded."""


@dataclass(frozen=True, slots=True)
class Based:
    """A number written in a stated base: ``43_7``."""

    digits: str
    base: int


def plain_number(text: str) -> str:
    r"""``text`` with separators of thousands, e-notation and words for powers of ten resolved.

    Example:
        >>> plain_number("1,234.5"), plain_number("6.2e21"), plain_number("3 million")
        ('1234.5', '6.2 \\times 10^{21}', '3 \\times 10^{6}')
    """
    text = _APPROXIMATELY.sub("", text)
    text = _REPEATING.sub(_repeating, text)
    text = _THOUSANDS.sub(lambda found: found[0].replace(",", ""), text)
    text = _SPACED_THOUSANDS.sub(lambda found: found[0].replace(" ", ""), text)
    text = _EXPONENT.sub(r" \\times 10^{\1}", text)
    text = _TIMES_TEN.sub(r" \\times ", text)
    return _MULTIPLIER.sub(
        lambda found: rf" \times 10^{{{_MULTIPLIERS[found[1].lower()]}}}", text
    ).strip()


def quantity(text: str, *, glued: bool = False) -> Quantity | None:
    r"""The number that a normalised answer states, or None where it states something else.

    Args:
        text: A normalised answer.
        glued: Whether a single-letter unit may follow its number without a blank.

    Raises:
        TooLargeError: If it is a number beyond the bounds of exact arithmetic.

    Example:
        >>> quantity("35%").value, quantity("7.2 m").value, quantity("2,500").value
        (Fraction(7, 20), Fraction(36, 5), Fraction(2500, 1))
        >>> quantity("5x") is None
        True
    """
    measured = split_unit(_APPROXIMATELY.sub("", text), glued=glued)
    number = plain_number(measured.value)
    try:
        value = rational_value(number)
    except NotRationalError:
        return None
    decimal = re.search(r"\d\.\d|\.\d|10\^", number) is not None
    scale = Fraction(1, 100) if measured.percent else Fraction(1)
    return Quantity(value * scale, measured.unit, measured.percent, decimal)


def based_number(text: str) -> Based | None:
    """A number with its base as an index, or None.

    Example:
        >>> based_number("43_{7}")
        Based(digits='43', base=7)
    """
    match = _BASED.fullmatch(text)
    if match is None:
        return None
    digits = match[1].lower().lstrip("0") or "0"
    return Based(digits, int(match[2] or match[3]))


def _repeating(found: re.Match[str]) -> str:
    r"""``0.1\overline{6}`` as a fraction."""
    whole, once, again = found[1], found[2], found[3]
    ends = int((whole + once + again) or "0") - int((whole + once) or "0")
    return rf"\frac{{{ends}}}{{{'9' * len(again)}{'0' * len(once)}}}"
