"""Difficulty is measured: it rises with the level, and greedy does not solve the harder levels."""

import pytest

from npbench.generation import draw_instance
from npbench.task import ratio
from npbench.tasks import TASKS

INSTANCES = 40


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_greedy_solves_fewer_instances_at_l3_than_at_l1_and_at_most_half_from_l2_on(name):
    task = TASKS[name]
    solved, quality = {}, {}
    for level in ("l1", "l2", "l3"):
        drawn = [
            draw_instance(
                task, task.levels[level], version="test", split="train", seed=0, index=index
            )
            for index in range(INSTANCES)
        ]
        pairs = [(row.floors["greedy"], row.reference.objective) for row in drawn]
        solved[level] = sum(greedy == best for greedy, best in pairs) / INSTANCES
        quality[level] = sum(
            ratio(task.sense, objective=greedy, reference=best) for greedy, best in pairs
        )
        assert all(row.reference.status == "optimal" for row in drawn)
    assert solved["l2"] <= 0.5
    assert solved["l3"] <= 0.5
    assert (solved["l3"], quality["l3"]) < (solved["l1"], quality["l1"])
