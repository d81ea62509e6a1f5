"""Answers as vectors: every task, equal for equal solutions, zero where nothing can be read."""

import json

import numpy as np
import pytest

from npbench.tasks import TASKS
from trainers.data import Question, questions
from trainers.embeddings import answer_features, solution_vectors
from trainers.sections import DataSettings


def question_of(task: str) -> Question:
    settings = DataSettings(suite="nano", tasks=(task,), per_task=1, modality="text")
    return questions(settings)[0]


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_features_of_its_answers(task: str) -> None:
    question = question_of(task)
    reply = f"Answer: {question.row['reference_solution']}"
    vectors = solution_vectors(question, [reply, "no answer", reply])
    assert np.array_equal(vectors[0], vectors[2])
    assert vectors[0].any() == bool(answer_features(question, reply))
    assert not vectors[1].any()


@pytest.mark.parametrize(
    ("task", "one", "two"),
    [
        ("vertex_cover", [2, 0], [0, 2]),
        ("tsp", [0, 1, 2, 3, 4, 0], [2, 1, 0, 4, 3, 2]),
        ("graph_coloring", [0, 1, 0, 1, 0], [1, 0, 1, 0, 1]),
        ("maximum_cut", [[0, 1], [2, 3]], [[3, 2], [1, 0]]),
    ],
)
def test_names_and_orders_that_do_not_matter_do_not_show(task: str, one: list, two: list) -> None:
    question = question_of(task)
    features = {answer_features(question, f"Answer: {json.dumps(answer)}") for answer in (one, two)}
    assert len(features) == 1
    assert features != {frozenset()}


def test_other_questions_are_compared_by_their_answers_text() -> None:
    question = Question("q", "1 + 1?", (), {"gold": "2"})
    vectors = solution_vectors(question, ["Answer: 2", "so the answer is \\boxed{2}", "Answer: 3"])
    assert np.array_equal(vectors[0], vectors[1])
    assert not np.array_equal(vectors[0], vectors[2])
