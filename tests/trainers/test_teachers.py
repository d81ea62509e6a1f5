"""Teachers answer feasibly, in many ways, mostly not optimally, and what they say is true."""

import json
import re

import numpy as np
import pytest

from npbench.errors import InputError
from npbench.splits import load
from npbench.tasks import get_task
from trainers.teachers import CAREFUL, GRAPH_TASKS, MIXED, TAUGHT_TASKS, Manner, teach

DRAWS = 16


def instances(task: str, count: int) -> list[tuple[object, dict, float]]:
    rows = load("nano", "nano", "validation", 5, per_task=count, tasks=[task], modality="text")
    return [
        (
            get_task(task).decode(json.loads(r.instance)),
            json.loads(r.instance),
            r.reference_objective,
        )
        for r in rows
    ]


@pytest.mark.parametrize("task", TAUGHT_TASKS)
def test_a_teacher_is_feasible_diverse_and_not_optimal(task: str) -> None:
    rng = np.random.default_rng(0)
    optimal, distinct, forms = [], [], set()
    for instance, _, best in instances(task, 8):
        answers = set()
        for _ in range(DRAWS):
            words, _, answer = teach(task, instance, rng).rpartition("Answer: ")
            verdict = get_task(task).verify(instance, json.loads(answer))
            assert verdict.feasible, (task, answer, verdict.reason)
            optimal.append(verdict.objective == best)
            answers.add(answer)
            forms.add(re.sub(r"[\d, ]+", "", words))
        distinct.append(len(answers))
    assert np.mean(optimal) < 0.75
    assert np.mean(distinct) > 4
    assert len(forms) >= 4


def test_a_careful_teacher_is_feasible_and_its_answers_rarely_fit_another_graph() -> None:
    elsewhere = {name: [] for name in ("mixed", "careful")}
    for task in GRAPH_TASKS:
        rows = [instance for instance, _, _ in instances(task, 24)]
        pairs = [
            (one, other)
            for one in rows
            for other in rows
            if one is not other and one.num_vertices == other.num_vertices
        ]
        for name, manner in (("mixed", MIXED), ("careful", CAREFUL)):
            rng = np.random.default_rng(2)
            for one, other in pairs:
                answer = json.loads(teach(task, one, rng, manner).rpartition("Answer: ")[2])
                assert get_task(task).verify(one, answer).feasible, (task, answer)
                elsewhere[name].append(get_task(task).verify(other, answer).feasible)
    assert np.mean(elsewhere["careful"]) < 0.4 < np.mean(elsewhere["mixed"])


@pytest.mark.parametrize("manner", [MIXED, CAREFUL], ids=["mixed", "careful"])
@pytest.mark.parametrize("task", TAUGHT_TASKS)
def test_what_a_teacher_says_is_true(task: str, manner: Manner) -> None:
    rng = np.random.default_rng(1)
    said = set()
    for instance, plain, _ in instances(task, 4):
        for _ in range(40):
            words, _, answer = teach(task, instance, rng, manner).rpartition("Answer: ")
            for sentence in re.findall(r"[^.]+\.", words):
                said.add(check(sentence.strip(), plain, json.loads(answer)))
    assert None not in said
    assert len(said) >= 3


def check(sentence: str, plain: dict, answer: list) -> str | None:
    """The form of a sentence whose statement holds; an AssertionError where it does not."""
    numbers = [int(n) for n in re.findall(r"\d+", sentence)]
    edges = {frozenset(edge[:2]) for edge in plain.get("edges", ())}
    vertices = range(plain.get("num_vertices", 0))
    form = sentence.split(" ", maxsplit=1)[0] if not sentence[0].isdigit() else "number"
    if form == "Degrees":
        assert numbers == [sum(v in edge for edge in edges) for v in vertices]
    elif form == "Pick":
        assert sorted(numbers) == answer
    elif form == "Leave" or form == "Miss":
        assert numbers == [v for v in vertices if v not in answer]
    elif form == "Class" or form == "Together":
        assert len({answer[v] for v in numbers}) == 1
    elif form == "With":
        assert numbers[1:] == [v for v in answer[0] if v != 0]
    elif form == "Heaviest":
        heaviest = max(edge[2] for edge in plain["edges"])
        assert [*numbers, heaviest] in plain["edges"]
    elif form == "From":
        assert answer[0] == numbers[0]
    elif form == "Nearest":
        row = plain["distances"][numbers[0]]
        assert row[numbers[1]] == min(d for v, d in enumerate(row) if v != numbers[0])
    elif "joins" in sentence:
        assert set(numbers[1:]) == {v for v in vertices if frozenset((numbers[0], v)) in edges}
    elif "after" in sentence:
        assert numbers[1:] == [v for v in range(numbers[0]) if {v, numbers[0]} in edges]
    elif "steps" in sentence:
        assert numbers[0] == len(answer) - 1
    elif "goes alone" in sentence:
        assert answer[0] == [0]
    elif sentence != "Go round.":
        return None
    return form


def test_the_same_generator_gives_the_same_reply() -> None:
    instance, _, _ = instances("tsp", 1)[0]
    replies = {teach("tsp", instance, np.random.default_rng(3)) for _ in range(3)}
    assert len(replies) == 1


def test_a_task_without_a_teacher_is_named() -> None:
    with pytest.raises(InputError, match="unknown task with a teacher 'knapsack'"):
        teach("knapsack", None, np.random.default_rng(0))
