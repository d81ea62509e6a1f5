import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.comparison import compare
from evaluators.grading import Gold, State, forget, grade
from evaluators.verdicts import CONVENTIONS, AnswerType, Outcome, Stage
from evaluators.worker_pool import AlgebraPool, default_pool

FOLDER = Path(__file__).parent / "cases"


def rows_of(name):
    return [json.loads(line) for line in (FOLDER / name).read_text("utf-8").split("\n") if line]


def gold_of(case):
    return Gold(case["gold"], AnswerType(case["answer_type"]), case.get("precision"))


HANDED = rows_of("grading.jsonl")
OWN = rows_of("grading_own.jsonl")


@pytest.mark.parametrize("case", HANDED, ids=[case["id"] for case in HANDED])
def test_each_handed_pair_is_decided_rightly_and_within_the_deadline(case, pool):
    started = time.perf_counter()
    graded = grade(case["reply"], gold_of(case), pool=pool)
    assert time.perf_counter() - started < pool.deadline + 60  # the first one starts the worker
    assert graded.correct is case["expect"]
    if case["expect"]:
        assert graded.state is State.RIGHT


def test_all_handed_rows_are_here():
    assert len(HANDED) == 121


@pytest.mark.parametrize("case", OWN, ids=[f"{case['gold']}|{case['reply']}" for case in OWN])
def test_each_pair_of_our_own_is_decided_rightly(case, pool):
    assert grade(case["reply"], gold_of(case), pool=pool).correct is case["expect"]


@pytest.mark.parametrize("case", [case for case in HANDED if case["gold"] and case["expect"]],
                         ids=lambda case: case["id"])  # fmt: skip
def test_a_gold_equals_itself_as_an_answer(case, pool):
    gold = gold_of(case)
    decided = compare(gold.text, gold.text, gold.kind, pool=pool, precision=1)
    assert decided.outcome is Outcome.RIGHT


@pytest.mark.parametrize(
    ("gold", "reply", "stage"),
    [
        ("Tuesday", r"\boxed{\text{Tuesday}}", Stage.EXACT),
        ("1/2", r"\boxed{0.5}", Stage.NUMBER),
        ("(1, 2)", r"\boxed{(2, 1)}", Stage.STRUCTURE),
        ("Tuesday", r"\boxed{Monday}", Stage.TEXT),
        (r"\frac{\sqrt{5}}{5}", r"\boxed{\frac{1}{\sqrt{5}}}", Stage.EXPRESSION),
        ("1", r"\boxed{" + "1" * 600 + "}", Stage.GUARD),
        ("1", r"\boxed{9^{9^{9^9}}}", Stage.GUARD),
    ],
)
def test_the_record_names_the_stage_that_decided(gold, reply, stage, pool):
    assert grade(reply, Gold(gold), pool=pool).stage is stage


@pytest.mark.parametrize(
    ("gold", "reply", "reason"),
    [
        ("", r"\boxed{5}", "the gold is empty"),
        ("  ", r"\boxed{5}", "the gold is empty"),
        (r"\frac{3}{", r"\boxed{\frac{3}{}}", "the gold is unbalanced"),
        (r"\frac{3}{", r"\frac{3}{", "the gold is unbalanced"),
        ("2x + + )", r"\boxed{2x}", "the gold cannot be parsed"),
        ("x" * 3000, r"\boxed{x}", "longer than 2000"),
    ],
)
def test_a_broken_gold_never_scores_and_is_reported_as_its_own_fault(gold, reply, reason, pool):
    graded = grade(reply, Gold(gold), pool=pool)
    assert graded.state is State.FAILED
    assert graded.reason.startswith("gold_fault")
    assert reason in graded.reason


@pytest.mark.parametrize(
    ("reply", "truncated", "state"),
    [
        ("", False, State.EMPTY),
        ("<think>5</think> ", False, State.EMPTY),
        ("<think>5", False, State.UNPARSED),
        ("I cannot see it.", False, State.UNPARSED),
        ("<think>5", True, State.TRUNCATED),
        (r"\boxed{5}", True, State.RIGHT),
    ],
)
def test_a_reply_without_an_answer_has_a_state_of_its_own(reply, truncated, state, pool):
    assert grade(reply, Gold("5"), truncated=truncated, pool=pool).state is state


def test_a_missed_deadline_is_a_time_out_and_not_a_wrong_answer():
    slow = AlgebraPool(deadline=0.4)
    assert slow.equal("x", "x + 1").verdict in {"different", "timeout"}  # starts the worker
    reply = r"\boxed{\sum_{j=1}^{10^{9}} \frac{1}{j^{3}} + \int_0^1 x^x dx}"
    started = time.perf_counter()
    graded = grade(reply, Gold(r"\sqrt{7}"), pool=slow)
    slow.close()
    assert graded.state is State.FAILED
    assert graded.reason.startswith("timeout")
    assert time.perf_counter() - started < 30


def test_verdicts_are_remembered_until_forgotten():
    forget()
    gold = Gold(r"\sqrt{12}")
    assert grade(r"\boxed{2\sqrt{3}}", gold).correct
    default_pool().close()
    assert grade(r"\boxed{2\sqrt{3}}", gold).correct
    assert default_pool().processes() == ()
    forget()
    assert grade(r"\boxed{2\sqrt{3}}", gold).correct
    assert len(default_pool().processes()) == 1


def test_model_text_is_never_evaluated(pool, tmp_path):
    witness = tmp_path / "witness"
    for text in (
        f"__import__('pathlib').Path('{witness}').touch()",
        f"open('{witness}', 'w')",
        rf"\input{{{witness}}}",
        f"exec(\"open('{witness}','w')\")",
    ):
        for gold in ("5", "x + 1", r"\sqrt{2}"):
            assert not grade(rf"\boxed{{{text}}}", Gold(gold), pool=pool).correct
    assert not witness.exists()


def test_a_gold_without_what_its_type_needs_is_refused():
    with pytest.raises(ValueError, match="precision"):
        Gold("3.7", AnswerType.FLOAT)
    with pytest.raises(ValueError, match=r"\[0, 15\], got 99"):
        Gold("3.7", AnswerType.FLOAT, precision=99)
    for value in (1.5, float("nan"), float("inf"), -1):
        with pytest.raises(ValueError, match="whole number"):
            Gold("3.7", AnswerType.FLOAT, precision=value)
    with pytest.raises(ValueError, match="needs options"):
        Gold("A", AnswerType.OPTION)


def test_each_convention_is_stated_in_one_line():
    assert CONVENTIONS
    assert all(text and "\n" not in text for text in CONVENTIONS.values())


def test_importing_the_grader_loads_no_heavy_library():
    program = (
        "import sys, evaluators, evaluators.grading, evaluators.metrics, evaluators.diversity, "
        "evaluators.cli\n"
        "heavy = {'torch', 'transformers', 'vllm', 'sympy', 'math_verify', 'scipy', 'sklearn'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


PIECES = st.sampled_from(
    ["1", "2", "x", "y", "+", "-", "^", "_", "{", "}", "(", ")", "[", "]", ",", ";", "=", "<", ".",
     "/", "%", "$", "\\", r"\frac", r"\sqrt", r"\pi", r"\le ", r"\infty", r"\text{", r"\{", r"\}",
     r"\pm ", " and ", " or ", " cm", "°", "!", ":", "e", "²", "½", r"\cup", r"\boxed{", "and"]
)  # fmt: skip
TEXTS = st.one_of(st.text(max_size=30), st.lists(PIECES, max_size=14).map("".join))


@pytest.fixture(scope="module")
def hasty_pool():
    pool = AlgebraPool(deadline=1.0)
    yield pool
    pool.close()


@settings(max_examples=250, deadline=None, derandomize=True, database=None)
@given(gold=TEXTS, answer=TEXTS, kind=st.sampled_from([k for k in AnswerType if k != "option"]))
def test_no_pair_raises_and_an_empty_side_never_scores(gold, answer, kind, hasty_pool):
    decided = compare(gold, answer, kind, pool=hasty_pool, precision=2)
    if not gold.strip() or not answer.strip():
        assert decided.outcome is not Outcome.RIGHT


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(
    first=st.fractions(min_value=-1000, max_value=1000, max_denominator=60),
    second=st.fractions(min_value=-1000, max_value=1000, max_denominator=60),
)
def test_fractions_are_equal_exactly_where_their_values_are(first, second, pool):
    gold = f"{first.numerator}/{first.denominator}"
    for value in (first, second):
        answer = rf"\frac{{{value.numerator}}}{{{value.denominator}}}"
        decided = compare(gold, answer, AnswerType.FREE, pool=pool)
        assert (decided.outcome is Outcome.RIGHT) == (value == first)
