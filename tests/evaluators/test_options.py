import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.grading import Gold, grade
from evaluators.options import gold_labels, read_option
from evaluators.verdicts import AnswerType

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "cases" / "multiple_choice.jsonl")
    .read_text("utf-8")
    .splitlines()
]
NUMBERS = {"A": "10", "B": "12", "C": "14", "D": "16"}
SHAPES = {"A": "square", "B": "triangle", "C": "hexagon", "D": "circle"}
YES_NO = {"A": "Yes", "B": "No"}
DRAWN = dict.fromkeys("ABCDEFGHIJ", "")
DIGITS = {"1": "x", "2": "y", "3": "z"}


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_each_handed_reply_names_its_label(case, pool):
    gold = Gold(case["gold"], AnswerType.OPTION, options=case["options"])
    graded = grade(case["reply"], gold, pool=pool)
    assert graded.extracted == case["expect_letter"]
    assert graded.correct == (case["expect_letter"] == case["gold"])


def test_all_handed_rows_are_here():
    assert len(CASES) == 62


@pytest.mark.parametrize(
    ("reply", "options", "label"),
    [
        ("The answer is **(C)**.", NUMBERS, "C"),
        ("Answer: C. 14", NUMBERS, "C"),
        ("Answer: C 14", NUMBERS, "C"),
        ("Option B", NUMBERS, "B"),
        ("The correct option is B: 12", NUMBERS, "B"),
        (r"$\boxed{\text{(B) } 12}$", NUMBERS, "B"),
        (r"\boxed{13}", NUMBERS, None),
        (r"\boxed{A, B}", NUMBERS, None),
        (r"\boxed{x = 12}", NUMBERS, "B"),
        ("Not A, B or C, so the answer is D.", NUMBERS, "D"),
        ("The answer is not A.", NUMBERS, None),
        ("The answer is not A but D.", NUMBERS, "D"),
        ("The answer is neither A nor B.", NUMBERS, None),
        ("The answer is 12 (B).", NUMBERS, "B"),
        ("The answer is 14 (B).", NUMBERS, None),
        ("The answer is 12 (option B).", NUMBERS, "B"),
        ("The answer is figure (a).", {"A": "figure (b)", "B": "figure (a)"}, "B"),
        ("A cat sat. D", NUMBERS, None),
        ("A) 10\nB) 12\nC) 14\nD) 16", NUMBERS, None),
        ("(A) 10 (B) 12 (C) 14 (D) 16", NUMBERS, None),
        ("B\n\nBecause the sum is 12.", NUMBERS, "B"),
        ("Answer: A = 30", NUMBERS, None),
        ("The answer is A, because B is smaller than C.", NUMBERS, "A"),
        (r"The answer is A. \boxed{x=99}", NUMBERS, None),
        (r"\boxed{x=3}. So the answer is (B).", NUMBERS, "B"),
        ("The answer is a because it fits.", NUMBERS, None),
        ("The answer is a hexagon, because it has six sides.", SHAPES, "C"),
        ("The answer is C (hexagon).", SHAPES, "C"),
        ("Answer: hexagonal", SHAPES, None),
        ("Yes, because they touch.", YES_NO, "A"),
        ("Yes and no.", YES_NO, None),
        ("The answer is A.", YES_NO, "A"),
        ("Answer: A, because there is no gap", YES_NO, "A"),
        ("There is a gap, so no.", YES_NO, "B"),
        ("I think the picture is odd.", DRAWN, None),
        ("The answer is I.", DRAWN, "I"),
        ("The answer is J", DRAWN, "J"),
        ("The answer is 3.5.", DIGITS, None),
        ("The answer is 1 and 3.", DIGITS, None),
        ("(3)", DIGITS, "3"),
        (r"\boxed{\frac{1}{\sqrt{2}}}", {"A": r"\frac{\sqrt{2}}{2}", "B": r"\sqrt{2}"}, "A"),
        ("Answer: 50 m", {"A": "50 cm", "B": "50 m"}, "B"),
        ("Answer: 50", {"A": "50 cm", "B": "50 m"}, None),
        ("Answer: 0.5", {"A": "0.5", "B": "1/2"}, "A"),
        ("The answer is A.", {}, None),
    ],
)
def test_our_own_replies_name_their_label(reply, options, label, pool):
    if options:
        gold = Gold(next(iter(options)), AnswerType.OPTION, options=options)
        assert grade(reply, gold, pool=pool).extracted == label
    else:
        assert read_option(reply, options, same=str.__eq__).label is None


@pytest.mark.parametrize(
    ("gold", "reply", "correct"),
    [
        ("A, C", "The answer is A and C.", True),
        ("A, C", r"\boxed{C, A}", True),
        ("A, C", r"\boxed{AC}", True),
        ("A\nC", "Answer: (A), (C)", True),
        ("A, C", "The answer is A.", False),
        ("A, C", "The answer is A, B and C.", False),
        ("(B)", "The answer is B.", True),
        ("12", "The answer is B.", True),
        ("12", "The answer is 12.", True),
        ("12", "The answer is A.", False),
    ],
)
def test_golds_are_labels_sets_of_labels_or_texts(gold, reply, correct, pool):
    graded = grade(reply, Gold(gold, AnswerType.OPTION, options=NUMBERS), pool=pool)
    assert graded.correct == correct


def test_two_options_with_the_text_of_the_gold_are_both_right(pool):
    gold = Gold("18", AnswerType.OPTION, options={"A": "15", "C": "18", "D": "18"})
    assert grade("The answer is D.", gold, pool=pool).correct
    assert grade("The answer is C.", gold, pool=pool).correct
    assert grade("The answer is 18.", gold, pool=pool).correct
    assert not grade("The answer is A.", gold, pool=pool).correct


def test_a_gold_that_names_no_option_is_a_fault_of_the_gold(pool):
    graded = grade(
        "The answer is A.", Gold("rhombus", AnswerType.OPTION, options=SHAPES), pool=pool
    )
    assert graded.state == "failed"
    assert "names no option" in graded.reason
    assert gold_labels("rhombus", SHAPES) == (frozenset(), False)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.text(alphabet="ABCDabcd ().,:*\\{}$notisaweror123", max_size=60))
def test_no_reply_raises_and_labels_are_those_of_the_question(reply):
    reading = read_option(reply, NUMBERS, same=lambda one, two: False)
    assert reading.labels <= set(NUMBERS)


@pytest.mark.parametrize("label", "ABCD")
@pytest.mark.parametrize(
    "form", ["{}", "({})", "**{}**", r"\boxed{{{}}}", "Answer: {}", "The answer is {}.", "{}."]
)
def test_every_label_is_read_from_every_plain_form(label, form):
    reply = form.format(label)
    assert read_option(reply, NUMBERS, same=lambda one, two: False).label == label
