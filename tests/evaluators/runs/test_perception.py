"""np-perception through the runner."""

import json

import pytest

from evaluators.benchmark import get_benchmark
from evaluators.perceived import Perceived, score_facts
from evaluators.prompts import build_prompt
from npbench.errors import InputError
from npbench.perception import perception_reply

DRAWN = {
    "vertices": frozenset({(0,), (1,), (2,)}),
    "edges": frozenset({(0, 1), (1, 2)}),
}
GOLD = Perceived("{}", task="maximum_clique", drawn=DRAWN)
EXACT = perception_reply(DRAWN)


def test_reading_everything_scores_one_and_a_missed_edge_less(split, npbench, script, tmp_path):
    questions = list(get_benchmark("np-perception", source=split).questions)
    assert len(questions) == 6
    lines = [{"id": q.id, "reply": perception_reply(q.grading.drawn)} for q in questions]
    lines[0]["reply"] = 'Answer: {"edges": []}'
    command = ("eval", "--benchmark", "np-perception", "--from", split, "--backend", "scripted",
               "--model", script(lines), "-k", 0, "--out", tmp_path / "run", "--json")  # fmt: skip
    overall = json.loads(npbench(*command).stdout)["overall"]
    assert overall["acc@1"] == pytest.approx(5 / 6)
    assert 5 / 6 <= overall["score"] < 1
    assert npbench("grade", tmp_path / "run").return_value == 0


@pytest.mark.parametrize(
    ("reply", "state", "score"),
    [
        (EXACT, "right", 1.0),
        (f"<think>Answer: nothing</think>{EXACT}", "right", 1.0),
        (rf"\boxed{{{EXACT.removeprefix('Answer: ')}}}", "right", 1.0),
        (f"<answer>{EXACT.removeprefix('Answer: ')}</answer>", "right", 1.0),
        ('Answer: {"vertices": [0, 1, 2], "edges": [[1, 0]]}', "wrong", (1 + 2 / 3) / 2),
        ('Answer: {"vertices": [0, 1, 2, 7], "edges": [[1, 0], [2, 1]]}', "wrong", (6 / 7 + 1) / 2),
        (f"<think>{EXACT}", "unparsed", 0.0),
        ("I see a graph.", "unparsed", 0.0),
        ("", "empty", 0.0),
    ],
)
def test_facts_are_read_behind_the_thinking_in_every_format(reply, state, score):
    scored = score_facts(reply, GOLD)
    assert scored.state == state
    assert scored.score == pytest.approx(score)


def test_a_cut_reply_is_truncated():
    assert score_facts("Answer: {", GOLD, truncated=True).state == "truncated"


def test_its_own_format_is_not_said_twice_and_gives_way(split):
    question = get_benchmark("np-perception", source=split).questions[0]
    own = build_prompt(question.parts, prompt_format="answer-line").parts[1]
    assert own.count("End your reply") == 1
    boxed = build_prompt(question.parts, prompt_format="think-boxed").parts[1]
    assert "Answer:" not in boxed
    assert "The answer has the form {" in boxed


def test_a_split_without_pictures_or_of_another_size_is_refused(split):
    with pytest.raises(InputError, match=r"has 6 pictures, --rows accepts 5"):
        get_benchmark("np-perception", source=split, rows=5)
    with pytest.raises(InputError, match="give its folder with --from"):
        get_benchmark("np-perception", source=None)
    with pytest.raises(InputError, match=r"has 12 rows, --rows accepts 5"):
        get_benchmark("nano", source=split, rows=5)
