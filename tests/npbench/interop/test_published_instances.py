"""Published files reach their known optima; the folder is found by NPBENCH_INSTANCES."""

import json
import os
from pathlib import Path

import pytest

from npbench.interop.instances import read_instance
from npbench.interop.tsplib import read_tour
from npbench.task import Budget, Status
from npbench.tasks import TASKS
from npbench.tasks.tsp import tour_length

FOLDER = Path(os.environ.get("NPBENCH_INSTANCES", ""))
KNOWN = (
    json.loads((FOLDER / "optima.json").read_text(encoding="utf-8"))
    if "NPBENCH_INSTANCES" in os.environ
    else {}
)
INSTANCES = [name for name in KNOWN if not name.endswith(".tour")]
TOURS = [name for name in KNOWN if name.endswith(".tour")]
GENEROUS = Budget(deterministic_time=60.0)
SLOW_FILES = {"C125.9.clq", "brock200_2.clq"}

pytestmark = pytest.mark.skipif(
    "NPBENCH_INSTANCES" not in os.environ,
    reason="NPBENCH_INSTANCES does not name a folder of published instances with optima.json",
)


def proofs():
    return [
        pytest.param(name, marks=pytest.mark.slow) if name in SLOW_FILES else name
        for name in INSTANCES
    ]


def others():
    for name in INSTANCES:
        for task in KNOWN[name].get("others", {}):
            marks = [pytest.mark.slow] if KNOWN[name]["size"] > 12 else []
            yield pytest.param(name, task, marks=marks)


@pytest.mark.parametrize("name", INSTANCES)
def test_a_file_has_the_stated_size(name):
    found = read_instance(FOLDER / name)
    known = KNOWN[name]
    assert found.task is TASKS[known["task"]]
    encoded = found.task.encode(found.instance)
    size = encoded.get("num_vertices") or len(encoded.get("distances") or encoded.get("weights"))
    assert size == known["size"]
    if "edges" in known:
        assert len(encoded["edges"]) == known["edges"]


@pytest.mark.parametrize("name", TOURS)
def test_a_published_tour_is_feasible_and_as_long_as_stated(name):
    tour = read_tour(FOLDER / name)
    cities = read_instance(FOLDER / KNOWN[name]["tour_of"]).instance
    verdict = TASKS["tsp"].verify(cities, tour)
    assert verdict.feasible, verdict.reason
    assert verdict.objective == tour_length(cities, tour) == KNOWN[name]["tour_length"]


@pytest.mark.parametrize("name", proofs())
def test_the_reference_proves_the_published_optimum(name):
    found = read_instance(FOLDER / name)
    best = found.task.reference(found.instance, GENEROUS)
    assert (best.objective, best.status) == (KNOWN[name]["optimum"], Status.OPTIMAL)
    verdict = found.task.verify(found.instance, best.solution)
    assert verdict.objective == best.objective


@pytest.mark.parametrize(("name", "task"), list(others()))
def test_other_tasks_on_the_same_graph_reach_their_optima(name, task):
    found = read_instance(FOLDER / name, task=task)
    best = found.task.reference(found.instance, GENEROUS)
    assert (best.objective, best.status) == (KNOWN[name]["others"][task], Status.OPTIMAL)
