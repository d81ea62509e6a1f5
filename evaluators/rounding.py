"""Compares an answer with a gold that is given to a number of decimals."""

from fractions import Fraction

from evaluators.arithmetic import TooLargeError
from evaluators.expressions import as_comparison, expression_value
from evaluators.quantities import Quantity, quantity
from evaluators.structures import collection, exact_part, split_label
from evaluators.units import compatible, split_unit
from evaluators.verdicts import Comparison, Outcome, Stage, wrong
from evaluators.worker_pool import Session

__all__ = ["compare_rounded"]


def compare_rounded(gold: str, answer: str, precision: int, *, session: Session) -> Comparison:
    """Whether two normalised texts round to the same number of ``precision`` decimals."""
    gold, answer = split_label(exact_part(gold)).value, split_label(exact_part(answer)).value
    try:
        expected, given = quantity(gold), None
        if expected is None:
            return Comparison(Outcome.GOLD_FAULT, Stage.NUMBER, "the gold is no number")
        given = quantity(answer) or quantity(answer, glued=True)
        if given is None:
            return _rounded_expression(expected, answer, precision, session)
        if not compatible(expected.unit, given.unit):
            return wrong(Stage.NUMBER, "the units differ")
        equal = round(float(expected.value), precision) == round(float(given.value), precision)
        if expected.percent != given.percent and not equal:
            scale = Fraction(100)
            one = expected.value * (scale if expected.percent else 1)
            two = given.value * (scale if given.percent else 1)
            equal = round(float(one), precision) == round(float(two), precision)
    except (TooLargeError, OverflowError):
        return wrong(Stage.GUARD, "a number too large to round")
    return Comparison(Outcome.RIGHT if equal else Outcome.WRONG, Stage.NUMBER)


def _rounded_expression(
    gold: Quantity, answer: str, precision: int, session: Session
) -> Comparison:
    if collection(answer) is not None:
        return wrong(Stage.STRUCTURE, "several values for one")
    given = split_unit(answer)
    if not compatible(gold.unit, given.unit):
        return wrong(Stage.NUMBER, "the units differ")
    judged = expression_value(given.value, session=session)
    if judged.value is None:
        return as_comparison(judged)
    equal = round(float(gold.value), precision) == round(judged.value, precision)
    return Comparison(Outcome.RIGHT if equal else Outcome.WRONG, Stage.EXPRESSION)
