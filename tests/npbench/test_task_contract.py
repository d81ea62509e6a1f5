"""Promises that every task keeps."""

import json

import numpy as np
import pytest

from npbench.errors import InputError
from npbench.generation import FLOORS, customised, draw_instance, get_level
from npbench.prompts import Modality
from npbench.rendering.legibility import flaws
from npbench.rendering.styles import STYLES, get_style
from npbench.task import Budget, Status, better
from npbench.tasks import TASKS, get_task

PICTURE_LEVELS = ("nano", "l1", "l2", "l3")


@pytest.fixture(params=list(TASKS))
def task(request):
    return TASKS[request.param]


@pytest.fixture(params=PICTURE_LEVELS)
def drawn(task, request):
    return draw_instance(
        task, task.levels[request.param], version="test", split="train", seed=1, index=0
    )


def test_an_instance_survives_its_json_form(task, drawn):
    data = json.loads(json.dumps(task.encode(drawn.instance)))
    assert task.decode(data) == drawn.instance


def test_the_reference_is_proven_feasible_and_as_good_as_it_says(task, drawn):
    best = drawn.reference
    verdict = task.verify(drawn.instance, best.solution)
    assert verdict.feasible
    assert verdict.objective == best.objective == best.bound
    assert best.status is Status.OPTIMAL


def test_every_floor_is_feasible_and_none_beats_the_optimum(task, drawn):
    assert set(drawn.floors) == set(FLOORS) == set(task.solvers)
    for objective in drawn.floors.values():
        assert not better(task.sense, objective, drawn.reference.objective)
    assert better(task.sense, drawn.reference.objective, drawn.floors["trivial"])


def test_the_same_solver_call_gives_the_same_solution(task, drawn):
    for solver in task.solvers.values():
        first, second = (solver(drawn.instance, np.random.default_rng(3)) for _ in range(2))
        assert first == second


def test_a_reference_run_is_repeatable(task, drawn):
    first, second = (task.reference(drawn.instance, Budget(seed=5)) for _ in range(2))
    assert first == second
    assert first.objective == drawn.reference.objective


def test_the_reference_printed_as_an_answer_is_read_back(task, drawn):
    solution = drawn.reference.solution
    read = task.parse(f"Some thoughts.\nAnswer: {json.dumps(solution)}")
    assert task.canonical(drawn.instance, read) == task.canonical(drawn.instance, solution)


def test_two_equal_solutions_have_distance_zero(task, drawn):
    solution = drawn.reference.solution
    assert task.distance(drawn.instance, solution, solution) == 0


def test_the_example_of_the_prompt_is_feasible(task):
    instance = task.decode(task.wording.example)
    verdict = task.verify(instance, task.wording.example_answer)
    assert verdict.feasible, verdict.reason


def test_prompts_end_by_asking_for_the_answer_line(task, drawn):
    for modality in Modality:
        full = task.prompt(drawn.instance, modality)
        assert full.endswith("Answer: YOUR ANSWER")
        brief = task.prompt(drawn.instance, modality, brief=True)
        assert "\nAnswer: " in brief


def test_a_picture_prompt_holds_no_instance_data(task, drawn):
    assert task.describe(drawn.instance) not in task.prompt(drawn.instance, Modality.IMAGE)
    assert task.describe(drawn.instance) in task.prompt(drawn.instance, Modality.TEXT)


def test_a_brief_prompt_has_at_most_120_words_beside_the_data(task):
    drawn = draw_instance(task, task.levels["nano"], version="test", split="train", seed=1, index=0)
    picture = task.prompt(drawn.instance, Modality.IMAGE, brief=True)
    text = task.prompt(drawn.instance, Modality.TEXT, brief=True)
    assert len(picture.split()) <= 120
    assert len(text.replace(task.describe(drawn.instance), "").split()) <= 120


def test_every_picture_proves_its_own_legibility(task, drawn):
    for style in STYLES:
        picture = task.draw(drawn.instance, get_style(style), 512)
        assert flaws(picture.layout) == []
        assert json.loads(json.dumps(picture.layout)) == picture.layout


def test_every_family_draws_legal_instances_at_the_smallest_and_largest_sizes(task):
    rng = np.random.default_rng(0)
    for level in task.levels.values():
        for end in (0, 1):
            params = {
                name: value[end]
                for name, value in level.params.items()
                if name in task.limits and not isinstance(value, int)
            }
            sized = customised(task, level, params)
            for family, draw in task.families.items():
                instance = draw(sized.params, rng)
                assert task.decode(task.encode(instance)) == instance, family


def test_sizes_outside_the_limits_are_refused_with_the_limits(task):
    level = get_level(task, "l1")
    for name, (low, high) in task.limits.items():
        for value in (low - 1, high + 1):
            with pytest.raises(
                InputError, match=rf"{name} of {task.name} must lie in \[{low}, {high}\]"
            ):
                customised(task, level, {name: value})


def test_every_alias_finds_its_task(task):
    for alias in (*task.aliases, f"bootcamp/{task.aliases[0]}"):
        assert get_task(alias) is task


def test_an_unknown_task_is_answered_with_the_nearest_name():
    with pytest.raises(InputError, match="unknown task 'vertex_covr'; did you mean 'vertex_cover'"):
        get_task("vertex_covr")


def test_bad_instances_are_refused_in_one_line(task):
    for data in (None, [], {}, {"num_vertices": "5", "edges": []}, {"numbers": [], "target": 3}):
        with pytest.raises(InputError) as caught:
            task.decode(data)
        assert "\n" not in str(caught.value)
