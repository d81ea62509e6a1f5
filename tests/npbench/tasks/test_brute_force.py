"""Three opinions on each task: the verifier, the reference and an oracle that tries everything."""

import json
import random
import subprocess
import sys

import numpy as np
import pytest

from npbench.errors import InputError, NoSolutionError
from npbench.generation import SPLITS, draw_instance, get_level
from npbench.task import Budget, Sense, Status
from npbench.tasks import TASKS

SOLVERS = ("trivial", "random", "greedy", "heuristic")

every_task = pytest.mark.parametrize("name", list(TASKS))


@every_task
def test_the_pool_holds_at_least_forty_different_solvable_instances(name, pools):
    assert len({repr(data) for data, _ in pools[name]}) >= 40


@every_task
def test_the_verifier_agrees_with_the_oracle_on_good_and_broken_answers(name, pools, oracles):
    task, rng = TASKS[name], random.Random(f"candidates of {name}")
    kinds = {True: 0, False: 0}
    for data, _ in pools[name]:
        instance = task.decode(data)
        for answer in oracles.candidates(name, data, rng, 64):
            expected = oracles.judge(name, data, answer)
            verdict = task.verify(instance, answer)
            kinds[verdict.feasible] += 1
            assert (verdict.feasible, verdict.objective) == (expected is not None, expected), (
                f"{answer!r} on {data}: {verdict}"
            )
            assert bool(verdict.reason) != verdict.feasible
    assert min(kinds.values()) >= 100, "the candidates show one side only"


@every_task
def test_the_verifier_reads_tuples_as_lists_and_leaves_the_answer_alone(name, pools, oracles):
    task, rng = TASKS[name], random.Random(f"tuples of {name}")
    for data, _ in pools[name][::4]:
        instance = task.decode(data)
        for answer in oracles.candidates(name, data, rng, 16):
            before = repr(answer)
            expected = task.verify(instance, answer)
            tuples = tuple(tuple(part) if isinstance(part, list) else part for part in answer)
            verdict = task.verify(instance, tuples)
            assert (verdict.feasible, verdict.objective) == (expected.feasible, expected.objective)
            assert repr(answer) == before


@every_task
def test_the_reference_is_the_proven_optimum(name, pools, references, oracles):
    task = TASKS[name]
    for (data, best), reference in zip(pools[name], references[name], strict=True):
        found = (reference.objective, reference.bound, reference.status)
        assert found == (best, best, Status.OPTIMAL), f"on {data}"
        verdict = task.verify(task.decode(data), reference.solution)
        assert (verdict.feasible, verdict.objective) == (True, best), f"on {data}: {verdict}"
        assert oracles.judge(name, data, reference.solution) == best


@every_task
def test_each_solver_is_feasible_and_never_beats_the_optimum(name, pools, oracles):
    task = TASKS[name]
    worst = max if task.sense is Sense.MIN else min
    for data, best in pools[name]:
        for solver in SOLVERS:
            solution = task.solvers[solver](task.decode(data), np.random.default_rng(7))
            value = oracles.judge(name, data, solution)
            assert value is not None, f"{solver} answers {solution} on {data}"
            assert worst(value, best) == value, f"{solver} beats the optimum of {data}"


@pytest.mark.parametrize("name", ["longest_cycle", "subset_sum"])
def test_an_instance_without_a_feasible_answer_is_said_to_have_none(name, hopeless, oracles):
    task, rng = TASKS[name], random.Random(f"hopeless {name}")
    assert len(hopeless[name]) >= 5
    for data in hopeless[name]:
        instance = task.decode(data)
        with pytest.raises(NoSolutionError, match=r"\S"):
            task.reference(instance, Budget())
        for solver in SOLVERS:
            with pytest.raises(NoSolutionError, match=r"\S"):
                task.solvers[solver](instance, np.random.default_rng(7))
        for answer in oracles.candidates(name, data, rng, 64):
            assert not task.verify(instance, answer).feasible


def test_a_set_cover_with_an_element_in_no_subset_is_refused_on_reading(hopeless):
    assert len(hopeless["set_cover"]) >= 5
    for data in hopeless["set_cover"]:
        with pytest.raises(InputError, match="element"):
            TASKS["set_cover"].decode(data)


def test_every_instance_of_the_other_tasks_has_a_feasible_answer(hopeless):
    assert {name for name in TASKS if hopeless[name]} == {
        "longest_cycle",
        "subset_sum",
        "set_cover",
    }


@every_task
def test_drawn_instances_carry_the_proven_optimum_and_honest_floors(name, oracles):
    task = TASKS[name]
    worst = max if task.sense is Sense.MIN else min
    for index in range(6):
        drawn = draw_instance(
            task,
            get_level(task, "nano"),
            version="oracle",
            split=SPLITS[index % 3],
            seed=11,
            index=index,
        )
        best = oracles.optimum(name, task.encode(drawn.instance))
        assert drawn.reference.objective == best
        assert set(drawn.floors) == set(SOLVERS)
        assert all(worst(floor, best) == floor for floor in drawn.floors.values())
        assert drawn.floors["trivial"] != best


@every_task
def test_the_json_form_of_an_instance_survives_reading_and_writing(name, pools):
    task = TASKS[name]
    for data, _ in pools[name]:
        instance = task.decode(data)
        written = task.encode(instance)
        assert json.loads(json.dumps(written)) == written
        assert task.decode(written) == instance


@every_task
@pytest.mark.parametrize("limit", [1e-9, 1e-5, 1e-3])
def test_a_reference_that_runs_out_of_time_is_feasible_and_its_bound_holds(name, limit, pools):
    task = TASKS[name]
    worst = max if task.sense is Sense.MIN else min
    for data, best in pools[name][::3]:
        instance = task.decode(data)
        found = task.reference(instance, Budget(deterministic_time=limit))
        verdict = task.verify(instance, found.solution)
        assert (verdict.feasible, verdict.objective) == (True, found.objective), verdict.reason
        assert worst(found.objective, best) == found.objective, f"better than {best} on {data}"
        assert worst(found.bound, best) == best, f"bound {found.bound} of {best} on {data}"
        if found.status is Status.OPTIMAL:
            assert found.objective == found.bound == best


@every_task
def test_a_reference_that_meets_its_bound_is_called_optimal(name, pools):
    task = TASKS[name]
    for data, _ in pools[name][::3]:
        for limit in (1e-9, 1e-5):
            found = task.reference(task.decode(data), Budget(deterministic_time=limit))
            met = found.objective == found.bound
            assert met == (found.status is Status.OPTIMAL), f"{found} on {data}"


LARGE_NUMBERS = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
import numpy as np
from npbench.task import Budget
from npbench.tasks import TASKS
task = TASKS[sys.argv[1]]
instance = task.decode(json.loads(sys.argv[2]))
if sys.argv[3] == "reference":
    solution = task.reference(instance, Budget()).solution
else:
    solution = task.solvers[sys.argv[3]](instance, np.random.default_rng(0))
verdict = task.verify(instance, solution)
assert verdict.feasible, verdict
"""
LARGE = {
    "subset_sum": {"numbers": [10**9, 1, 10**9 - 1], "target": 10**9},
    "knapsack": {"capacity": 10**11, "weights": [10**11 - 9, 7, 10**10], "values": [9, 9, 9]},
}


@pytest.mark.parametrize("solver", ["reference", *SOLVERS])
@pytest.mark.parametrize("name", list(LARGE))
def test_large_numbers_do_not_exhaust_the_memory(name, solver):
    """Three numbers are three numbers: a table as long as the target or capacity is not needed."""
    code = [sys.executable, "-c", LARGE_NUMBERS, name, json.dumps(LARGE[name]), solver]
    done = subprocess.run(code, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-400:]
