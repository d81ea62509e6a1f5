"""Runs of question answering: votes, curves, official metrics and a judge."""

import json
from math import comb

import pytest

from evaluators.backends.base import Sampling
from evaluators.backends.scripted import ScriptedBackend
from evaluators.benchmark import Benchmark, Question
from evaluators.embedders import get_embedder
from evaluators.golds import JudgeError, judged
from evaluators.grading import Gold
from evaluators.runner import RunSettings
from evaluators.sessions import Choice, evaluate, failed_share
from evaluators.verdicts import AnswerType
from npbench.errors import InputError

GOLDS = ("7", "1/2", "B", "x+1", "")
OPTIONS = {"A": "red", "B": "blue"}


def gold(text):
    if text == "B":
        return Gold(text, AnswerType.OPTION, options=OPTIONS)
    return Gold(text)


def benchmark(golds=GOLDS, **fields):
    questions = [
        Question(
            id=f"q{i}", instance_id=f"problem {i // 2}", parts=(f"Question {i}?",), gold=text,
            category={"task": "odd" if i % 2 else "even", "group": "all", "year": "2024"},
            grading=gold(text),
        )
        for i, text in enumerate(golds)
    ]  # fmt: skip
    return Benchmark("quiz", "quiz-v1", questions, "hash", **fields)


@pytest.fixture
def quiz(tmp_path):
    """Runs scripted replies {(question, sample): reply} and gives the summary."""

    def run(replies, *, made=None, k=4, greedy=False, judge=None, out="run"):
        lines = [
            {"id": f"q{i}", "sample": sample, **(reply if isinstance(reply, dict) else
                                                 {"reply": reply})}
            for (i, sample), reply in replies.items()
        ]  # fmt: skip
        path = tmp_path / f"{out}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        settings = RunSettings(sampling=Sampling(k=k, greedy=greedy), judge="m" if judge else None)
        _, summary = evaluate(
            Choice(made or benchmark(), None, None, None, None),
            ScriptedBackend(path),
            settings,
            tmp_path / out,
            command="",
            embedder=get_embedder("none"),
            judge=judge,
        )
        return json.loads(json.dumps(summary))

    return run


def everywhere(text):
    return {(i, sample): text for i in range(5) for sample in range(4)}


def test_every_metric_of_k_samples_has_its_own_meaning(quiz):
    replies = everywhere("Answer: 0")
    replies |= {(0, 0): r"\boxed{3}", (0, 1): r"\boxed{7}", (0, 2): r"\boxed{ $7$ }"}
    replies |= {(2, sample): "Answer: B" for sample in range(4)}
    overall = quiz(replies)["overall"]
    assert overall["acc@1"] is None
    assert overall["acc@k"] == pytest.approx(2 / 5)
    assert overall["mean@k"] == pytest.approx((0.5 + 1) / 5)
    assert overall["mean@1"] == pytest.approx(1 / 5)
    assert overall["maj@k"] == pytest.approx(2 / 5)
    assert overall["all@k"] == pytest.approx(1 / 5)
    unbiased = {k: (1 - comb(2, k) / comb(4, k) + 1) / 5 for k in (1, 2, 4)}
    assert overall["pass@k"] == pytest.approx({str(k): value for k, value in unbiased.items()})
    assert overall["curves"]["acc@k"].keys() == {"1", "2", "4"}
    assert overall["sr"] is None
    assert overall["qr"] is None
    assert overall["floors"] == {}


def test_questions_are_pooled_and_an_empty_gold_is_never_right(quiz):
    replies = {(i, s): rf"\boxed{{{text}}}" for i, text in enumerate(GOLDS) for s in range(4)}
    summary = quiz(replies)
    assert summary["overall"]["mean@k"] == pytest.approx(4 / 5)
    assert summary["overall"]["states"]["failed"] == 4
    assert summary["tasks"]["even"]["mean@k"] == pytest.approx(2 / 3)
    assert summary["tasks"]["odd"]["mean@k"] == 1
    assert summary["overall"]["instances"] == 3
    assert summary["by"]["year"]["2024"]["n"] == 5
    assert failed_share(summary) == pytest.approx(1 / 5)


def test_an_open_think_block_and_reasoning_kept_apart_are_not_answers(quiz):
    replies = everywhere("Answer: 0")
    replies[0, 0] = {"reply": r"<think> maybe \boxed{7}", "finish_reason": "length"}
    replies[0, 1] = {"reply": r"<think> maybe \boxed{7}"}
    replies[0, 2] = {"reply": "", "reasoning": r"so \boxed{7}", "finish_reason": "length"}
    replies[0, 3] = {"reply": "", "reasoning": r"so \boxed{7}"}
    overall = quiz(replies)["overall"]
    states = overall["states"]
    assert overall["acc@k"] == 0
    assert (states["truncated"], states["unparsed"], states["empty"]) == (2, 5, 1)


def test_an_official_family_sees_every_graded_sample(quiz):
    def family(records):
        return {"samples": len(records), "right": sum(record.acc for record in records)}

    replies = everywhere("Answer: B")
    assert quiz(replies, made=benchmark(aggregate=family))["official"] == {
        "samples": 20, "right": 4,
    }  # fmt: skip


def test_a_judges_failure_is_a_state_and_never_a_wrong_answer(quiz):
    made = benchmark(("a cat", "a dog"))
    made = Benchmark(
        "quiz", "quiz-v1",
        [Question(q.id, q.instance_id, q.parts, q.gold, q.category, judged(q.grading, asked="?"))
         for q in made.questions],
        "hash",
    )  # fmt: skip

    def judge(asked, reply):
        if "mute" in reply:
            raise JudgeError("no verdict in 'hm'")
        return float("feline" in reply)

    replies = {(i, s): "Answer: a fish" for i in range(2) for s in range(4)}
    replies |= {(0, 0): "Answer: a feline", (1, 1): "Answer: a mute dog", (1, 2): "Answer: a dog"}
    by_rule = quiz(replies, made=made, out="rule")["overall"]
    with_judge = quiz(replies, made=made, judge=judge, out="judge")
    assert by_rule["states"]["right"] == 1
    assert with_judge["overall"]["states"]["right"] == 2
    assert with_judge["overall"]["states"]["judge_failed"] == 1
    assert with_judge["manifest"]["judge"] == "m"
    assert failed_share(with_judge) == pytest.approx(1 / 8)


def test_a_prompt_that_changed_refuses_to_resume(quiz, tmp_path):
    replies = everywhere("Answer: 0")
    quiz(replies)
    path = tmp_path / "run" / "samples.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({**line, "prompt_hash": "old"}) + "\n" for line in lines))
    with pytest.raises(InputError, match="the run asked q0 with another prompt"):
        quiz(replies)


def test_two_questions_with_one_id_are_refused(quiz):
    first = benchmark().questions
    made = Benchmark("quiz", "v", [*first, first[0]], "hash")
    with pytest.raises(InputError, match="two questions of quiz have the id q0"):
        quiz(everywhere("x"), made=made)


def test_a_backend_that_loses_a_sample_is_an_error_and_not_a_smaller_denominator(quiz, tmp_path):
    class Losing:
        name = "scripted"

        def __init__(self, backend):
            self.describe = backend.describe
            self.answer = backend.generate

        def generate(self, requests):
            for number, completion in enumerate(self.answer(requests)):
                if number != 3:
                    yield completion

    path = tmp_path / "script.jsonl"
    path.write_text("".join(json.dumps({"id": f"q{i}", "reply": "x"}) + "\n" for i in range(5)))
    with pytest.raises(RuntimeError, match="the backend lost 1 of 5 samples"):
        evaluate(
            Choice(benchmark(), None, None, None, None),
            Losing(ScriptedBackend(path)),
            RunSettings(sampling=Sampling(k=0)),
            tmp_path / "run",
            command="",
            embedder=get_embedder("none"),
        )
