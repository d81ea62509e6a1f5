import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.extraction import ExtractStage, extract, tidy
from evaluators.normalization import unwrap_text
from evaluators.reasoning import split_reasoning

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "cases" / "extraction.jsonl")
    .read_text("utf-8")
    .splitlines()
]


def as_compared(text):
    return None if text is None else tidy(unwrap_text(tidy(text)))


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_each_handed_reply_gives_its_final_answer(case):
    assert as_compared(extract(case["reply"]).text) == as_compared(case["expect"])


def test_all_handed_rows_are_here():
    assert len(CASES) == 38


@pytest.mark.parametrize(
    ("reply", "expect", "stage"),
    [
        (r"$\boxed{2}$, $\boxed{6}$", "2, 6", "box"),
        (r"\boxed{2}, \boxed{}, \boxed{6}", "2, 6", "box"),
        (r"\boxed{2} and \boxed{6}", "6", "box"),
        (r"\boxed{\boxed{5}}", "5", "box"),
        (r"\boxed{\text{the area is } \boxed{5}}", "5", "box"),
        (r"\boxed{4} and then \boxed{\frac{1}{", "4", "box"),
        (r"\fbox{12}", "12", "box"),
        (r"The answer is $\boxed{\frac{1}{2", None, "none"),
        (r"\boxed{...}", None, "none"),
        (r"\boxed{\text{}}", None, "none"),
        ("Answer: 5\n\\boxed{", "5", "cue"),
        ("<answer>7</answer> <answer> </answer>", "7", "answer_tag"),
        ("<ANSWER>The answer is 7.</ANSWER>", "7", "answer_tag"),
        ("<answer>7", None, "none"),
        (r"<answer>\boxed{}</answer>", None, "none"),
        (r"The answer is \boxed{}", None, "none"),
        (r"Answer: \boxed", None, "none"),
        (r"\boxed", None, "none"),
        (r"At first the answer is 5. The answer is \boxed{}.", "5", "cue"),
        (r"the answer is $\$5$.", r"\$5", "cue"),
        ("The answer is 10 because each edge is doubled.", "10", "cue"),
        ("The answer is 7, not 5.", "7", "cue"),
        ("Answer: 12. This answer is correct.", "12", "cue"),
        ("The answer is 12. The answer is correct.", "12", "cue"),
        ("**Final Answer**\n\n$x=5$", "x=5", "cue"),
        ("The final answer is: \\( 5 \\).", "5", "cue"),
        ("The answer to part (b) is 5.", "5", "cue"),
        ("The answer is\n\\[\n x = 4\n\\]", "x = 4", "cue"),
        ("The answer is approx. 5 cm.", "approx. 5 cm", "cue"),
        ("**Answer: 5**", "5", "cue"),
        ("ANSWER: 5<|im_end|>", "5", "cue"),
        ("right triangle", "right triangle", "whole"),
        ("1/8", "1/8", "whole"),
        (r"\[ \frac{1}{8} \]", r"\frac{1}{8}", "whole"),
        ("Both options are fine.", None, "none"),
        ("First 3, then 4.\nSo 12 in all.", None, "none"),
        ("What is the answer?", None, "none"),
        ("<thinking>\\boxed{3}</thinking>4", "4", "whole"),
        ("Answer: 4 <think> no \\boxed{5}", None, "none"),
    ],
)
def test_our_own_replies_give_their_answer_and_stage(reply, expect, stage):
    extraction = extract(reply)
    assert (extraction.text, extraction.stage) == (expect, stage)


def test_a_missing_answer_has_a_reason_and_a_found_one_has_none():
    assert extract("").reason == "the reply is empty"
    assert "never closes" in extract("<think> 5").reason
    assert extract(r"\boxed{5}").reason == ""


def test_reasoning_is_split_from_what_follows_it():
    split = split_reasoning("<think>2 + 2 = 4</think>\n\nFour.<|im_end|>")
    assert (split.reasoning, split.answer, split.closed) == ("2 + 2 = 4", "Four.", True)
    assert split_reasoning("no tags").reasoning is None
    assert split_reasoning("so 4</think>4").reasoning == "so 4"


HOSTILE = {
    "cues": "answer: " * 50_000,
    "open tags": "<answer>" * 50_000,
    "closing tags": "</answer>" * 50_000,
    "open boxes": r"\boxed{" * 50_000,
    "nested boxes": r"\boxed{" * 50_000 + "}" * 50_000,
    "adjacent boxes": r"\boxed{1}, " * 40_000,
    "empty boxes": r"\boxed{}" * 20_000 + r"\boxed{1}" + r"\boxed{}" * 20_000 + r"\boxed{2}",
    "one dollar": "answer is $" + ". " * 200_000,
    "blanks": "answer is " + " " * 400_000 + "x",
    "commas in a box": r"\boxed{" + "," * 400_000 + "}",
    "displays": "the answer is" + r"\[" * 100_000,
    "wrappers": r"\boxed{" + r"\text{" * 50_000 + "}" * 50_001,
    "think tags": "<think>" * 60_000,
    "emphasis": "Answer: " + "`*_" * 100_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_long_hostile_replies_come_back_quickly(name):
    started = time.perf_counter()
    extract(HOSTILE[name])
    assert time.perf_counter() - started < 30  # a step that is not linear takes minutes


PIECES = st.sampled_from(
    [r"\boxed{", "}", "{", "\\", "$", "<think>", "</think>", "<answer>", "</answer>", "answer is ",
     "Answer: ", "\n", " ", ".", ",", "5", "x", r"\text{", r"\[", r"\]", "**", "final answer", "é"]
)  # fmt: skip


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=25).map("".join)))
def test_no_reply_raises_and_an_answer_is_never_blank(reply):
    extraction = extract(reply)
    assert extraction.text is None or extraction.text.strip()
    assert (extraction.text is None) == (extraction.stage is ExtractStage.NONE)


@given(st.integers(-(10**9), 10**9), st.text(alphabet="abc {}$.\n", max_size=30))
@settings(max_examples=100, deadline=None, derandomize=True, database=None)
def test_a_box_is_read_whatever_prose_surrounds_it(number, prose):
    prose = re.sub(r"[{}]", "", prose)
    assert extract(rf"{prose}\boxed{{{number}}} {prose}").text == str(number)
