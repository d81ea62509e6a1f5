r"""Separates a value from the unit behind it or the currency in front of it.

A unit that only one side names is ignored; two sides that name different units differ. A single
letter is a unit only behind a blank and a value without variables, so ``5x`` keeps its x.
"""

import re
from dataclasses import dataclass

from evaluators.normalization import DEGREE

__all__ = ["Measured", "Unit", "compatible", "split_unit"]

_NAMES: dict[str, str] = {
    "mm": "mm millimeter millimeters millimetre millimetres",
    "cm": "cm cms centimeter centimeters centimetre centimetres",
    "dm": "dm decimeter decimeters decimetre decimetres",
    "m": "m meter meters metre metres",
    "km": "km kms kilometer kilometers kilometre kilometres",
    "in": "in inch inches",
    "ft": "ft foot feet",
    "yd": "yd yds yard yards",
    "mi": "mi mile miles",
    "g": "g gram grams",
    "mg": "mg milligram milligrams",
    "kg": "kg kgs kilogram kilograms",
    "t": "ton tons tonne tonnes",
    "lb": "lb lbs pound pounds",
    "oz": "oz ounce ounces",
    "s": "s sec secs second seconds",
    "ms": "ms millisecond milliseconds",
    "min": "min mins minute minutes",
    "h": "h hr hrs hour hours",
    "day": "day days",
    "week": "week weeks",
    "month": "month months",
    "year": "yr yrs year years",
    "l": "l L liter liters litre litres",
    "ml": "ml mL milliliter milliliters millilitre millilitres",
    "gal": "gal gallon gallons",
    "N": "N newton newtons",
    "J": "J joule joules",
    "kJ": "kJ kilojoule kilojoules",
    "W": "W watt watts",
    "V": "V volt volts",
    "A": "A amp amps ampere amperes",
    "K": "K kelvin kelvins",
    "Pa": "Pa pascal pascals",
    "kPa": "kPa",
    "atm": "atm",
    "Hz": "Hz hertz",
    "mol": "mol mole moles",
    "eV": "eV",
    "degree": f"{DEGREE} degree degrees deg",
    "celsius": f"{DEGREE}C celsius Celsius",
    "fahrenheit": f"{DEGREE}F fahrenheit Fahrenheit",
    "radian": "radian radians rad rads",
    "dollar": r"dollar dollars USD usd \$ $",
    "cent": "cent cents ¢",
    "euro": "euro euros EUR €",
    "sterling": "GBP £",
    "yen": "yen JPY ¥",
    "rupee": "rupee rupees ₹",
    "mph": "mph",
    "acre": "acre acres",
    "hectare": "hectare hectares ha",
    "%": "% percent",
    "": "unit units",
}
_CANONICAL = {spelling: name for name, words in _NAMES.items() for spelling in words.split()}
_ALTERNATIVES = "|".join(
    re.escape(spelling) + ("(?![A-Za-z])" if spelling[-1].isalpha() else "")
    for spelling in sorted(_CANONICAL, key=len, reverse=True)
)
_POWER_WORD = r"(?:square|sq\.?|cubic|cu\.?)"
_EXPONENT = r"\s*\^\s*\{?\s*(-?\d)\s*\}?"
_ONE = rf"(?:{_POWER_WORD}\s*)?(?:{_ALTERNATIVES})(?:{_EXPONENT}|\s+(?:squared|cubed))?"
_KNOWN = re.compile(
    rf"(?P<open>\{{?)\s*(?P<unit>{_ONE}(?:\s*(?:/|\bper\b|\\cdot|\s)\s*{_ONE}){{0,3}})\s*(?P<close>\}}?)"
    rf"(?P<power>{_EXPONENT})?\s*$"
)
_STARTS = re.compile(rf"(?<![\\^_])(?:(?<![A-Za-z])|(?={{)){{?\s*(?={_POWER_WORD}|{_ALTERNATIVES})")
_PART = re.compile(
    rf"(?P<per>/|\bper\b)?\s*(?:\\cdot)?\s*(?P<word>{_POWER_WORD})?\s*(?P<name>{_ALTERNATIVES})"
    rf"(?:{_EXPONENT})?(?P<after>\s+(?:squared|cubed))?"
)
_WORDS = re.compile(r"(?<=[\d)}\]])\s+(?P<words>[A-Za-z]{2,}(?:[\s\-]+[A-Za-z]{2,}){0,3})$")
_OPERATION_NAMES = (
    "and or to pi times plus minus squared cubed over half halves third thirds quarter quarters "
    "fourths dozen hundred thousand million billion trillion mod modulo base by through factorial "
    "choose if when where sin cos tan log ln exp sqrt is are not but for with infinity"
)
_OPERATIONS = frozenset(_OPERATION_NAMES.split())
_BRACKETED = re.compile(r"\s*\(\s*([A-Za-z°]{2,}(?:\s+[A-Za-z]{2,}){0,2})\s*\)$")
_CURRENCY = re.compile(
    r"^(?P<sign>[-+]?)\s*(?P<unit>(?:US)?\\?\$|[€£¥₹]|(?:USD|EUR|GBP)\s)"
    r"\s*(?=[\d.\\-])"
)
_LETTERS = re.compile(r"(?<![A-Za-z\\])[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit as a set of words, with their powers where all of them are known."""

    words: frozenset[str]
    known: bool
    """Whether every word is a unit of the table rather than the name of what is counted."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A value's text and the unit that stood with it."""

    value: str
    unit: Unit | None = None
    percent: bool = False


def compatible(first: Unit | None, second: Unit | None) -> bool:
    """Whether two units can belong to equal quantities: one is missing, or both are the same."""
    if first is None or second is None:
        return True
    if first.known and second.known:
        return first.words == second.words
    return bool(first.words & second.words)


def split_unit(text: str, *, single_letters: bool = True, glued: bool = False) -> Measured:
    r"""``text`` without its unit, and the unit.

    Args:
        text: A normalised answer.
        single_letters: Whether a lone letter behind a blank can be a unit.
        glued: Whether that letter may follow its number without a blank.

    Example:
        >>> split_unit("16\\pi cm^{2}").value, split_unit("5x").value, split_unit("35%").percent
        ('16\\pi', '5x', True)
        >>> split_unit("\\$24.60").value, split_unit("12 apples").value
        ('24.60', '12')
    """
    unit: Unit | None = None
    currency = _CURRENCY.match(text)
    if currency:
        unit = Unit(frozenset({_CANONICAL.get(currency["unit"].strip()[-1], "dollar")}), known=True)
        text = currency["sign"] + text[currency.end() :]
    text = _BRACKETED.sub(r" \1", text)
    for start in _STARTS.finditer(text):
        match = _KNOWN.match(text, start.start())
        value = text[: start.start()].rstrip()
        if match is None or not value or bool(match["open"]) != bool(match["close"]):
            continue
        if not re.search(r"(?:[\d)}\].!'%|]|\\pi|[A-Za-z])$", value):
            continue
        if re.search(r"\\(?!pi$)[A-Za-z]+$|\\frac\s*\{[^{}]*\}$", value):
            continue
        name = match["unit"].strip()
        if len(name) == 1 and name.isalpha():
            separate = text[len(value)].isspace() or bool(match["open"])
            if not single_letters or _LETTERS.search(value) or not (separate or glued):
                continue
        return _measured(value, match, unit)
    words = _WORDS.search(text)
    if words and not _OPERATIONS & set(words["words"].lower().replace("-", " ").split()):
        named = frozenset(
            _CANONICAL.get(word, word.lower().rstrip("s"))
            for word in re.split(r"[\s\-]+", words["words"])
        )
        return Measured(text[: words.start()].rstrip(), Unit(named, known=False))
    return Measured(text, unit)


def _measured(value: str, match: re.Match[str], currency: Unit | None) -> Measured:
    words = set()
    percent = False
    outer = re.search(r"-?\d", match["power"] or "")
    for part in _PART.finditer(match["unit"]):
        name = _CANONICAL[part["name"]]
        if name == "%":
            percent = True
            continue
        word = (part["word"] or "") + (part["after"] or "").strip()
        exponent = 3 if word.startswith("cu") else 2 if word.startswith("s") else 1
        digits = re.search(r"\^\s*\{?\s*(-?\d)", part[0])
        if digits:
            exponent = int(digits[1])
        if outer:
            exponent *= int(outer[0])
        if part["per"]:
            exponent = -exponent
        if name:
            words.add(name if exponent == 1 else f"{name}^{exponent}")
    if words & {"celsius", "fahrenheit"}:
        words.discard("degree")
    unit = Unit(frozenset(words), known=True) if words else currency
    return Measured(value, unit, percent)
