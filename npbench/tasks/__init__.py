"""The fourteen tasks by name."""

from collections.abc import Mapping
from typing import Any

from npbench.errors import unknown_name
from npbench.task import Task
from npbench.tasks import (
    dominating_set,
    feedback_vertex_set,
    graph_coloring,
    knapsack,
    longest_cycle,
    maximum_clique,
    maximum_cut,
    maximum_independent_set,
    meeting_scheduling,
    minimum_bisection,
    set_cover,
    subset_sum,
    tsp,
    vertex_cover,
)

__all__ = ["TASKS", "get_task"]

TASKS: Mapping[str, Task[Any, Any]] = {
    task.name: task
    for task in (
        graph_coloring.TASK,
        feedback_vertex_set.TASK,
        vertex_cover.TASK,
        dominating_set.TASK,
        minimum_bisection.TASK,
        maximum_cut.TASK,
        maximum_clique.TASK,
        maximum_independent_set.TASK,
        tsp.TASK,
        longest_cycle.TASK,
        set_cover.TASK,
        subset_sum.TASK,
        knapsack.TASK,
        meeting_scheduling.TASK,
    )
}

_BY_ALIAS = {alias: task for task in TASKS.values() for alias in (task.name, *task.aliases)}


def get_task(name: str) -> Task[Any, Any]:
    """The task of a name or of an alias of the papers' suites.

    Raises:
        InputError: If the name is unknown; the message holds the nearest known one.

    Example:
        >>> get_task("NpHamiltonianCycle").name
        'longest_cycle'
    """
    short = name.removeprefix("bootcamp/") if isinstance(name, str) else name
    if short in _BY_ALIAS:
        return _BY_ALIAS[short]
    raise unknown_name("task", name, TASKS)
