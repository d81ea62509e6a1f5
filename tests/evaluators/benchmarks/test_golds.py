from fractions import Fraction

import pytest

from evaluators.golds import AnyOf, JudgedGold, JudgeError, Mentions, Near, Protocol, score_reply
from evaluators.grading import Gold, State


def always(score):
    return lambda gold, reply: score


def never(gold, reply):
    raise AssertionError("the judge is not to be asked")


def broken(gold, reply):
    raise JudgeError("4 attempts: HTTP 500")


def test_any_spelling_of_a_gold_with_alternatives_is_right():
    gold = AnyOf("0.03", others=(Gold("0.04"),))
    scores = [score_reply(rf"\boxed{{{x}}}", gold).score for x in ("0.03", "0.04", "0.05")]
    assert scores == [1, 1, 0]
    assert score_reply("", gold).state is State.EMPTY


def test_a_number_may_miss_by_the_stated_error_and_no_more():
    gold = Near("2.5", tolerance=Fraction("0.1"))
    for answer, score in (("2.6", 1), ("2.4", 1), ("2.61", 0), ("x", 0), ("10^{99999999}", 0)):
        assert score_reply(rf"\boxed{{{answer}}}", gold).score == score
    assert score_reply("I cannot see what it is.", gold).state is State.UNPARSED


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("A Cat and a dog.", 1),
        ("A cat.", 0.5),
        ("A concatenation of dogs.", 0),
        ("It costs 1,200 dollars.", 1),
        ("It costs 12000 or 1200.5 dollars.", 0),
        ("<think>cat, dog</think> A bird.", 0),
    ],
)
def test_parts_are_found_as_whole_words_or_equal_numbers(reply, score):
    gold = Mentions("x", alternatives=(("cat", "dog"), ("1200",)))
    assert score_reply(reply, gold).score == score


def test_an_answer_that_never_came_is_empty_or_truncated():
    gold = Mentions("x", alternatives=(("cat",),))
    assert score_reply("<think>cat", gold).state is State.EMPTY
    assert score_reply("<think>cat", gold, truncated=True).state is State.TRUNCATED


def test_the_judge_rescues_what_the_rule_does_not_read():
    gold = JudgedGold("north-east", asked="Which way?")
    assert score_reply("It points up and right.", gold).score == 0
    scored = score_reply("It points up and right.", gold, judge=always(1.0))
    assert (scored.state, scored.score, scored.stage) == (State.RIGHT, 1.0, "judge")
    assert score_reply("It points up.", gold, judge=always(0.0)).state is State.WRONG


def test_the_judge_is_not_asked_where_the_rule_is_enough_or_there_is_no_answer():
    gold = JudgedGold("12")
    assert score_reply(r"\boxed{12}", gold, judge=never).score == 1
    assert score_reply("", gold, judge=never).state is State.EMPTY
    assert score_reply("<think>12", gold, judge=never).score == 0
    cut = score_reply("I begin by", gold, truncated=True, judge=never)
    assert cut.state is State.TRUNCATED
    assert score_reply(r"\boxed{13}", Gold("12"), judge=never).state is State.WRONG


def test_a_score_is_always_the_judges():
    gold = Mentions("cat", protocol=Protocol.SCORE, alternatives=(("cat",),))
    assert score_reply("A cat.", gold, judge=always(0.3)).score == 0.3
    assert score_reply("A cat.", gold, judge=always(1.0)).state is State.RIGHT


def test_a_judge_that_fails_makes_no_reply_wrong():
    scored = score_reply(r"\boxed{13}", JudgedGold("12"), judge=broken)
    assert scored.state is State.JUDGE_FAILED
    assert scored.extracted == "13"
    assert scored.reason == "4 attempts: HTTP 500"
