r"""The cascade that decides whether an answer equals a gold, and the stage that decided.

Stages, cheapest first: ``guard`` (empty, too long, unbalanced, too large), ``exact`` (equal after
normalisation), ``number`` (exact arithmetic), ``structure`` (lists, sets, points, ratios,
intervals, member by member), ``text`` (words are equal or not), ``expression`` (symbolic, in a
worker process). The gold comes first: it fixes what kind of thing is compared.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from evaluators.arithmetic import TooLargeError
from evaluators.expressions import Judgement, as_comparison, compare_expressions, expression_value
from evaluators.guards import MAX_ANSWER, MAX_GOLD, fault
from evaluators.intervals import Interval, is_region, region
from evaluators.normalization import DEGREE, comparison_key, is_words, normalize
from evaluators.quantities import Quantity, based_number, quantity
from evaluators.rounding import compare_rounded
from evaluators.structures import (
    Collection,
    Shape,
    collection,
    equation_sides,
    exact_part,
    ratio_members,
    split_label,
)
from evaluators.units import compatible, split_unit
from evaluators.verdicts import AnswerType, Comparison, Outcome, Stage, wrong
from evaluators.worker_pool import AlgebraPool, Session

__all__ = ["compare"]

_MAX_NESTED_MEMBERS = 4
_TOLERANCE = Fraction(1, 1_000_000)
_VARIABLE = re.compile(r"(?<![A-Za-z\\])[A-Za-z](?![A-Za-z])")
_Member = TypeVar("_Member")


@dataclass(frozen=True, slots=True)
class _Rules:
    """What stays the same while members are compared recursively."""

    session: Session
    kind: AnswerType
    depth: int = 0

    def inside(self) -> "_Rules":
        kind = self.kind if self.kind is AnswerType.EXPRESSION else AnswerType.FREE
        return _Rules(self.session, kind, self.depth + 1)


def compare(
    gold: str,
    answer: str,
    kind: AnswerType,
    *,
    pool: AlgebraPool,
    precision: int | None = None,
) -> Comparison:
    """Whether ``answer`` equals ``gold`` under the rules of the gold's type.

    Args:
        gold: The gold as its data file writes it.
        answer: An extracted answer.
        kind: The gold's type; ``option`` is decided by ``evaluators.options``.
        pool: Where symbolic questions are asked; all those of one comparison share one deadline.
        precision: Decimals that a float gold is given to.

    Raises:
        ValueError: If the type is ``option``, or ``float`` without a precision.
    """
    if kind is AnswerType.OPTION:
        raise ValueError("options are read from the whole reply, not compared as answers")
    if kind is AnswerType.FLOAT and precision is None:
        raise ValueError("a float gold needs its precision")
    if problem := fault(gold, MAX_GOLD):
        return Comparison(Outcome.GOLD_FAULT, Stage.GUARD, f"the gold is {problem}")
    if problem := fault(answer, MAX_ANSWER):
        return wrong(Stage.GUARD, f"the answer is {problem}")
    gold, answer = normalize(gold), normalize(answer)
    if not gold:
        return Comparison(Outcome.GOLD_FAULT, Stage.GUARD, "the gold is empty")
    if not answer:
        return wrong(Stage.GUARD, "the answer is empty")
    if comparison_key(gold) == comparison_key(answer):
        return Comparison(Outcome.RIGHT, Stage.EXACT)
    rules = _Rules(pool.session(), kind)
    if kind is AnswerType.FLOAT:
        assert precision is not None
        return compare_rounded(gold, answer, precision, session=rules.session)
    if kind is AnswerType.LIST or kind is AnswerType.SET:
        return _compare_typed_collection(gold, answer, rules)
    return _compare(gold, answer, rules)


def _compare(gold: str, answer: str, rules: _Rules) -> Comparison:
    """Stages exact to expression on normalised texts."""
    if rules.depth > _MAX_NESTED_MEMBERS:
        return wrong(Stage.GUARD, "brackets are nested too deeply")
    decimal = re.fullmatch(r"-?\d*\.\d+", gold) is not None
    gold, answer = exact_part(gold), exact_part(answer, rounded=decimal)
    if comparison_key(gold) == comparison_key(answer):
        return Comparison(Outcome.RIGHT, Stage.EXACT)
    stages: tuple[Callable[[str, str, _Rules], Comparison | None], ...] = (
        _regions,
        _labels,
        _bases,
        _numbers,
        _ratios,
        _collections,
        _texts,
    )
    for stage in stages:
        decided = stage(gold, answer, rules)
        if decided is not None:
            return decided
    return _expressions(gold, answer, rules)


def _regions(gold: str, answer: str, rules: _Rules) -> Comparison | None:
    if rules.kind is not AnswerType.INTERVAL and not is_region(gold):
        return None
    expected = region(gold)
    if expected is None:
        return None
    given = region(answer)
    if given is None:
        return wrong(Stage.STRUCTURE, "no set of numbers")
    if expected.variable and given.variable and expected.variable != given.variable:
        return wrong(Stage.STRUCTURE, "another variable")
    return _unordered(
        expected.intervals, given.intervals, lambda one, two: _same_interval(one, two, rules)
    )


def _same_interval(gold: Interval, answer: Interval, rules: _Rules) -> Comparison:
    if (gold.low_closed, gold.high_closed) != (answer.low_closed, answer.high_closed):
        return wrong(Stage.STRUCTURE, "an end is open on one side and closed on the other")
    return _ordered((gold.low, gold.high), (answer.low, answer.high), rules)


def _labels(gold: str, answer: str, rules: _Rules) -> Comparison | None:
    expected, given = split_label(gold), split_label(answer)
    if expected.label is None and given.label is None:
        return None
    equations = len(equation_sides(gold)) == len(equation_sides(answer)) == 2
    if equations and rules.kind is AnswerType.EXPRESSION and expected.label != given.label:
        return None  # an equation may be turned round or multiplied by a constant
    if expected.label and given.label and expected.word == given.word:
        differs = expected.label != given.label
        if expected.word:
            differs = not set(expected.label.split()) & set(given.label.split())
        if differs:
            if _VARIABLE.search(expected.value):
                return None
            return wrong(Stage.STRUCTURE, f"{given.label} is not {expected.label}")
    return _compare(expected.value, given.value, rules)


def _bases(gold: str, answer: str, rules: _Rules) -> Comparison | None:
    expected, given = based_number(gold), based_number(answer)
    if expected is None and given is None:
        return None
    same = expected is not None and expected == given
    return Comparison(
        Outcome.RIGHT if same else Outcome.WRONG,
        Stage.NUMBER,
        "" if same else "the digits or the base differ",
    )


def _numbers(gold: str, answer: str, rules: _Rules) -> Comparison | None:
    try:
        expected = quantity(gold)
    except TooLargeError as error:
        return Comparison(Outcome.GOLD_FAULT, Stage.GUARD, f"the gold holds {error}")
    try:
        given = quantity(answer)
        if given is None and expected is not None:
            given = quantity(answer, glued=True) or _worked_out(answer)
    except TooLargeError as error:
        return wrong(Stage.GUARD, f"the answer holds {error}")
    if expected is None or given is None:
        return None
    return _compare_quantities(expected, given, integer=rules.kind is AnswerType.INTEGER)


def _worked_out(answer: str) -> Quantity | None:
    """The value of ``2 + 3 = 5``, where all sides agree; None for anything else."""
    sides = equation_sides(answer)
    values = [quantity(side) for side in sides]
    last = values[-1]
    if len(sides) < 2 or last is None:
        return None
    agree = all(value is not None and value.value == last.value for value in values)
    return last if agree else None


def _compare_quantities(gold: Quantity, answer: Quantity, *, integer: bool) -> Comparison:
    if not compatible(gold.unit, answer.unit):
        return wrong(Stage.NUMBER, "the units differ")
    pairs = [(gold.value, answer.value)]
    if gold.percent != answer.percent:
        pairs.append(
            (gold.value * 100, answer.value) if gold.percent else (gold.value, answer.value * 100)
        )
    tolerance = _TOLERANCE if gold.decimal and not integer else Fraction(0)
    equal = any(abs(one - two) <= tolerance * abs(one) for one, two in pairs)
    return Comparison(Outcome.RIGHT if equal else Outcome.WRONG, Stage.NUMBER)


def _ratios(gold: str, answer: str, rules: _Rules) -> Comparison | None:
    expected, given = ratio_members(gold), ratio_members(answer)
    if expected is None:
        return None if given is None else wrong(Stage.STRUCTURE, "a ratio for a single value")
    if given is None:
        return wrong(Stage.STRUCTURE, "no ratio")
    return _ordered(expected, given, rules)


def _collections(gold: str, answer: str, rules: _Rules) -> Comparison | None:
    expected, given = collection(gold), collection(answer)
    if expected is None:
        if given is None:
            return None
        if is_words(gold):
            return wrong(Stage.TEXT, "several values for words")
        return wrong(Stage.STRUCTURE, "several values for one")
    if given is None:
        return wrong(Stage.STRUCTURE, "one value for several")
    return _compare_collections(expected, given, rules)


def _compare_collections(gold: Collection, answer: Collection, rules: _Rules) -> Comparison:
    if len(gold.members) != len(answer.members) and gold.shape is not Shape.SET:
        return wrong(Stage.STRUCTURE, f"{len(answer.members)} values for {len(gold.members)}")
    if Shape.BARE not in {gold.shape, answer.shape} and gold.shape is not answer.shape:
        return wrong(Stage.STRUCTURE, f"{answer.shape} for {gold.shape}")
    if gold.shape is Shape.BARE and answer.shape not in {Shape.BARE, Shape.SET}:
        return _ordered(gold.members, answer.members, rules)
    if gold.shape in {Shape.BARE, Shape.SET}:
        if gold.shape is Shape.SET or answer.shape is Shape.SET:
            return _same_set(gold.members, answer.members, rules)
        return _unordered(
            gold.members, answer.members, lambda one, two: _compare(one, two, rules.inside())
        )
    return _ordered(gold.members, answer.members, rules)


def _compare_typed_collection(gold: str, answer: str, rules: _Rules) -> Comparison:
    """A gold that the benchmark calls a list (ordered) or a set (unordered, nothing more)."""
    sides = []
    for text in (gold, answer):
        value = split_label(text).value
        found = collection(value)
        if found is not None and found.shape is Shape.POINT and rules.kind is AnswerType.SET:
            # "(1, 6)" alone is one ordered pair of the set, not the set.
            found = Collection(Shape.BARE, (value,))
        sides.append(found or Collection(Shape.BARE, (value,)))
    expected, given = sides
    if rules.kind is AnswerType.SET:
        if given.shape is Shape.BRACKETS and expected.shape is Shape.SET:
            return wrong(Stage.STRUCTURE, "a list for a set")
        return _same_set(expected.members, given.members, rules)
    if given.shape is Shape.SET:
        return wrong(Stage.STRUCTURE, "a set for a list")
    return _ordered(expected.members, given.members, rules)


def _texts(gold: str, answer: str, rules: _Rules) -> Comparison | None:
    """Words equal words only; a single letter is a name that symbolic algebra must not touch."""
    if rules.kind is AnswerType.EXPRESSION:
        return None
    if _text_key(gold) is not None and _text_key(gold) == _text_key(answer):
        return Comparison(Outcome.RIGHT, Stage.TEXT)
    words = [is_words(text) and not text.startswith("\\") for text in (gold, answer)]
    if any(words):
        return wrong(Stage.TEXT)
    letters = [len(text) == 1 and text.isalpha() for text in (gold, answer)]
    if all(letters):
        return wrong(Stage.TEXT)
    return None


def _text_key(text: str) -> str | None:
    """What mixed texts such as ``5:00 p.m.`` and ``S 23.5° W`` are compared by; None for LaTeX."""
    if "\\" in text or not re.search(r"[A-Za-z]", text):
        return None
    key = re.sub(rf"[\s{DEGREE}]|\.(?!\d)", "", text)
    return key.casefold() if re.search(r"[A-Za-z]{2}", key) else key


def _expressions(gold: str, answer: str, rules: _Rules) -> Comparison:
    strict = rules.kind is AnswerType.EXPRESSION
    expected = split_unit(gold, single_letters=not strict)
    given = split_unit(answer, single_letters=not strict)
    if not compatible(expected.unit, given.unit):
        return wrong(Stage.EXPRESSION, "the units differ")
    judged = compare_expressions(expected.value, given.value, session=rules.session)
    if judged.judgement is Judgement.DIFFERENT and not rules.depth:
        decimal = quantity(gold)
        if decimal is not None and decimal.decimal:
            return _compare_decimal(decimal, given.value, rules)
    return as_comparison(judged)


def _compare_decimal(gold: Quantity, answer: str, rules: _Rules) -> Comparison:
    """A decimal gold against an expression's value, under the tolerance of decimal golds."""
    judged = expression_value(answer, session=rules.session)
    if judged.value is None or not math.isfinite(judged.value):
        return wrong(Stage.EXPRESSION)
    close = abs(Fraction(judged.value) - gold.value) <= _TOLERANCE * abs(gold.value)
    return Comparison(Outcome.RIGHT if close else Outcome.WRONG, Stage.EXPRESSION)


def _ordered(gold: tuple[str, ...], answer: tuple[str, ...], rules: _Rules) -> Comparison:
    if len(gold) != len(answer):
        return wrong(Stage.STRUCTURE, f"{len(answer)} values for {len(gold)}")
    for one, two in zip(gold, answer, strict=True):
        member = _compare(one, two, rules.inside())
        if member.outcome is not Outcome.RIGHT:
            return _of_member(member)
    return Comparison(Outcome.RIGHT, Stage.STRUCTURE)


def _same_set(gold: tuple[str, ...], answer: tuple[str, ...], rules: _Rules) -> Comparison:
    """Every member of each side equals one of the other; repeats do not count."""
    matched: set[int] = set()
    for one in gold:
        found = False
        for place, two in enumerate(answer):
            member = _compare(one, two, rules.inside())
            if member.outcome in {Outcome.TIMEOUT, Outcome.ERROR, Outcome.GOLD_FAULT}:
                return _of_member(member)
            if member.outcome is Outcome.RIGHT:
                found = True
                matched.add(place)
        if not found:
            return wrong(Stage.STRUCTURE, f"{one} is missing")
    if len(matched) < len(answer):
        extra = next(two for place, two in enumerate(answer) if place not in matched)
        return wrong(Stage.STRUCTURE, f"{extra} is too much")
    return Comparison(Outcome.RIGHT, Stage.STRUCTURE)


def _unordered(
    gold: tuple[_Member, ...],
    answer: tuple[_Member, ...],
    same: Callable[[_Member, _Member], Comparison],
) -> Comparison:
    """Each member of one side equals its own member of the other."""
    if len(gold) != len(answer):
        return wrong(Stage.STRUCTURE, f"{len(answer)} values for {len(gold)}")
    left = list(answer)
    for one in gold:
        for place, two in enumerate(left):
            member = same(one, two)
            if member.outcome is Outcome.RIGHT:
                del left[place]
                break
            if member.outcome is not Outcome.WRONG:
                return _of_member(member)
        else:
            return wrong(Stage.STRUCTURE, f"{one} is missing")
    return Comparison(Outcome.RIGHT, Stage.STRUCTURE)


def _of_member(member: Comparison) -> Comparison:
    return Comparison(member.outcome, Stage.STRUCTURE, member.reason)
