import json

import pytest

from evaluators.backends import BackendOptions, make_backend
from evaluators.backends.base import Sampling
from evaluators.embedders import get_embedder
from evaluators.families import Mark, Place, hallusion, mm_vet, official, shares, we_math
from evaluators.grading import State
from evaluators.records import SampleRecord
from evaluators.runner import RunSettings
from evaluators.sessions import Choice, evaluate


def marks(scores, judged=False):
    return {name: Mark(float(score), judged) for name, score in scores.items()}


@pytest.fixture
def we_math_places():
    """Five problems of two steps and one of three, with the letters R and W of each question."""

    def make(problems):
        places, scores = [], {}
        for problem, letters in problems.items():
            steps = len(letters) - 1
            for key, letter in zip([*range(1, steps + 1), "multi"], letters, strict=True):
                name = f"{problem}/{key}"
                places.append(Place(name, problem, {"key": f"{steps}steps_{key}"}))
                if letter != "?":
                    scores[name] = letter == "R"
        return places, marks(scores)

    return make


def test_the_four_classes_of_we_math_are_those_computed_by_hand(we_math_places):
    problems = {"1": "RRR", "2": "RRW", "3": "RWW", "4": "RWR", "5": "WWR", "6": "RRRR"}
    metrics = we_math(*we_math_places(problems))
    strict = [metrics[f"{name} strict"] for name in ("CM", "IG", "IK", "RM")]
    loose = [metrics[f"{name} loose"] for name in ("CM", "IG", "IK", "RM")]
    assert strict == [2 / 6, 1 / 6, 1 / 6, 2 / 6]
    assert loose == [3 / 6, 1 / 6, 1 / 6, 1 / 6]
    assert metrics["score strict"] == pytest.approx(2.5 / 6)
    assert metrics["score loose"] == pytest.approx(3.5 / 6)
    assert (metrics["RM rate strict"], metrics["RM rate loose"]) == (0.5, 0.25)
    assert metrics["accuracy"] == pytest.approx(13 / 19)
    assert [metrics[f"S{n}"] for n in "123"] == pytest.approx([9 / 13, 3 / 5, 1])
    assert (metrics["problems"], metrics["problems left out"]) == (6, 0)


def test_a_rate_of_nothing_is_undefined(we_math_places):
    metrics = we_math(*we_math_places({"1": "WWW"}))
    assert metrics["RM rate strict"] is None
    assert metrics["score strict"] == 0
    assert metrics["S3"] is None


def test_a_problem_that_is_not_whole_is_left_out_and_counted(we_math_places):
    places, scores = we_math_places({"1": "RRR", "2": "RR?"})
    for present in (places, places[:-1]):
        metrics = we_math(present, scores)
        assert (metrics["problems"], metrics["problems left out"]) == (1, 1)
        assert metrics["CM strict"] == 1


@pytest.fixture
def hallusion_places():
    ids = ["VD/a/1/0/0/0", "VD/a/1/0/0/1", "VD/a/2/0/1/0", "VD/a/2/0/1/1", "VS/a/0/0/0/0",
           "VS/a/1/0/1/0", "VD/b/1/0/0/0"]  # fmt: skip
    return [Place(name, name.rpartition("/")[0], {}) for name in ids]


def test_the_three_accuracies_of_hallusionbench_are_those_computed_by_hand(hallusion_places):
    wrong = {"VD/a/1/0/0/1", "VS/a/1/0/1/0"}
    metrics = hallusion(
        hallusion_places, marks({p.id: p.id not in wrong for p in hallusion_places})
    )
    assert metrics["aAcc"] == pytest.approx(5 / 7)
    assert metrics["fAcc"] == 2 / 4
    assert metrics["qAcc"] == 2 / 4
    assert metrics["mean of aAcc, fAcc, qAcc"] == pytest.approx((5 / 7 + 1) / 3)
    assert (metrics["figures"], metrics["question groups"]) == (4, 4)


def test_a_failed_judge_makes_no_group_wrong(hallusion_places):
    wrong = {"VD/a/1/0/0/1", "VS/a/1/0/1/0"}
    scores = {p.id: p.id not in wrong for p in hallusion_places if p.id != "VD/a/2/0/1/0"}
    metrics = hallusion(hallusion_places, marks(scores))
    assert metrics["aAcc"] == pytest.approx(4 / 6)
    assert metrics["fAcc"] == 1 / 3
    assert metrics["qAcc"] == 1 / 3


def test_shares_break_down_and_average_with_equal_weight():
    places = [
        Place("1", "1", {"kind": "a", "skills": "x, y"}),
        Place("2", "2", {"kind": "a", "skills": "y"}),
        Place("3", "3", {"kind": "b", "skills": "x"}),
        Place("4", "4", {"kind": "b", "skills": "y"}),
        Place("5", "5", {"kind": "b", "skills": "y"}),
    ]
    scores = marks({"1": 1, "2": 1, "3": 1, "4": 0, "5": 0})
    metrics = shares("kind", "skills", each=("skills",), macro=("kind",))(places, scores)
    assert metrics == {
        "accuracy": 3 / 5,
        "kind=a": 1.0,
        "kind=b": pytest.approx(1 / 3),
        "macro over kind": pytest.approx(2 / 3),
        "skills=x": 1.0,
        "skills=y": 0.5,
    }


def test_the_rule_of_mm_vet_goes_under_a_name_of_its_own():
    places = [
        Place("1", "1", {"capability": "ocr,math", "combination": "math,ocr"}),
        Place("2", "2", {"capability": "ocr", "combination": "ocr"}),
    ]
    by_rule = mm_vet(places, marks({"1": 0.5, "2": 1}))
    assert by_rule["mmvet_rule"] == 0.75
    assert "mmvet" not in by_rule
    assert (by_rule["capability=ocr"], by_rule["capability=math"]) == (0.75, 0.5)
    assert by_rule["combination=math,ocr"] == 0.5
    by_judge = mm_vet(places, marks({"1": 0.4, "2": 0.8}, judged=True))
    assert by_judge["mmvet"] == pytest.approx(0.6)
    assert "mmvet_rule" not in by_judge


@pytest.fixture
def record():
    def make(identity, decode, sample, score, state=State.WRONG, stage="exact"):
        return SampleRecord(
            benchmark="b", id=identity, instance_id=identity, decode=decode, sample=sample,
            seed=None, reply="r", state=state, score=score, grade_stage=stage,
        )  # fmt: skip

    return make


def test_greedy_and_sampled_replies_are_never_mixed_and_samples_are_averaged(record):
    places = [Place("1", "1", {}), Place("2", "2", {}), Place("not asked", "3", {})]
    records = [
        record("1", "greedy", 0, 1.0),
        record("2", "greedy", 0, 0.0),
        record("1", "sampled", 0, 0.0),
        record("2", "sampled", 0, 0.0),
        record("1", "sampled", 1, 1.0),
        record("2", "sampled", 1, 1.0),
    ]
    assert official(shares(), places, records) == {
        "greedy": {"accuracy": 0.5, "unscored": 0},
        "sampled": {"accuracy": 0.5, "unscored": 0},
    }
    assert official(shares(), places, []) == {}


def test_a_sample_whose_judge_failed_is_counted_and_not_averaged(record):
    places = [Place("1", "1", {}), Place("2", "2", {})]
    records = [
        record("1", "greedy", 0, 1.0, stage="judge"),
        record("2", "greedy", 0, 0.0, State.JUDGE_FAILED, "judge"),
    ]
    assert official(shares(), places, records)["greedy"] == {"accuracy": 1.0, "unscored": 1}


def test_a_sample_that_failed_to_be_made_counts_as_0(record):
    places = [Place("1", "1", {}), Place("2", "2", {})]
    records = [record("1", "greedy", 0, 1.0), record("2", "greedy", 0, 0.0, State.FAILED)]
    assert official(shares(), places, records)["greedy"]["accuracy"] == 0.5


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("mathverse", "version=Vision Only", 1.0),
        ("mathvista", "answer_type=float", 1.0),
        ("mathvista", "skills=numeric commonsense", 1.0),
        ("mathvision", "level=5", 1.0),
        ("logicvista", "skill=inductive", 1.0),
        ("we-math", "CM strict", 1.0),
        ("mmstar", "macro over l2_category", 1.0),
        ("hallusionbench", "qAcc", 1.0),
        ("mm-vet", "capability=spat", 1.0),
        ("mmmu", "discipline=Science", 1.0),
        ("math-500", "level=4", 1.0),
        ("olympiadbench", "type=Interval", 1.0),
    ],
)
def test_each_benchmark_reports_its_family_of_a_run_that_is_all_right(
    fixture_of, record, name, key, value
):
    benchmark = fixture_of(name)
    records = [record(q.id, "greedy", 0, 1.0, State.RIGHT) for q in benchmark.questions]
    assert benchmark.aggregate(records)["greedy"][key] == value


@pytest.mark.parametrize("name", ["mathverse", "logicvista", "mmmu"])
def test_every_question_counts_once_wherever_its_task_stands(fixture_of, name, tmp_path):
    benchmark = fixture_of(name)
    replies = tmp_path / "replies.jsonl"
    lines = [json.dumps({"id": q.id, "reply": f"Answer: {q.gold}"}) for q in benchmark.questions]
    replies.write_text("\n".join(lines) + "\n", encoding="utf-8")
    sampling = Sampling(greedy=True, k=0)
    backend = make_backend("scripted", BackendOptions(model=str(replies), sampling=sampling))
    _, summary = evaluate(
        Choice(benchmark, None, None, None, None),
        backend,
        RunSettings(sampling=sampling),
        tmp_path / "run",
        command="test",
        embedder=get_embedder("none"),
    )
    count = len(benchmark.questions)
    assert summary["overall"]["n"] == summary["overall"]["samples"] == count
    assert sum(row["n"] for row in summary["groups"].values()) == count
    assert sum(row["n"] for row in summary["tasks"].values()) == count
