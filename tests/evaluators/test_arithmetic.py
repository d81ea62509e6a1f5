import operator
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.arithmetic import MAX_BITS, NotRationalError, TooLargeError, rational_value

OPERATIONS = {"+": operator.add, "-": operator.sub, r"\times ": operator.mul}
LEAVES = st.integers(0, 99).map(lambda n: (str(n), Fraction(n)))


def combined(children):
    return st.one_of(
        st.tuples(children, st.sampled_from(sorted(OPERATIONS)), children).map(
            lambda row: (
                f"({row[0][0]}{row[1]}{row[2][0]})",
                OPERATIONS[row[1]](row[0][1], row[2][1]),
            )
        ),
        st.tuples(children, st.integers(1, 99)).map(
            lambda row: (rf"\frac{{{row[0][0]}}}{{{row[1]}}}", row[0][1] / row[1])
        ),
        st.tuples(children, st.integers(0, 4)).map(
            lambda row: (f"({row[0][0]})^{{{row[1] + 1}}}", row[0][1] ** (row[1] + 1))
        ),
    )


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.recursive(LEAVES, combined, max_leaves=8))
def test_random_expressions_have_the_value_of_exact_fractions(expression):
    text, value = expression
    try:
        assert rational_value(text) == value
    except TooLargeError:
        assert max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS // 4


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"3\frac{2}{5}", Fraction(17, 5)),
        (r"-3\frac12", Fraction(-7, 2)),
        ("3 2/5", Fraction(17, 5)),
        (r"3\frac{5}{2}", Fraction(15, 2)),
        (r"\frac37", Fraction(3, 7)),
        (r"\frac{250}9", Fraction(250, 9)),
        ("2^3^2", Fraction(512)),
        ("-2^2", Fraction(-4)),
        ("1/2/3", Fraction(1, 6)),
        (r"\sqrt{16}", Fraction(4)),
        (r"\sqrt[3]{27}", Fraction(3)),
        ("5!", Fraction(120)),
        ("1^{99999999999}", Fraction(1)),
        ("(-1)^{99999999999}", Fraction(-1)),
        ("2^{-3}", Fraction(1, 8)),
    ],
)
def test_notation_is_read_as_people_write_it(text, value):
    assert rational_value(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "x", "2 3", "1/0", r"\frac{1}{0}", "0^0", r"\sqrt{2}", "1,2", "(1", "1)", "2**3", "[3]"],
)
def test_what_is_no_rational_expression_is_refused(text):
    with pytest.raises(NotRationalError):
        rational_value(text)


@pytest.mark.parametrize(
    "text", ["9^{9^{9^{9}}}", "(10^{9})!", "2^{999999}", "1" * 5000, "(" * 400, "((3000!)!)!"]
)
def test_what_would_be_too_large_is_refused_before_it_is_computed(text):
    with pytest.raises(TooLargeError):
        rational_value(text)
