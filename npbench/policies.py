"""The five solvers as policies: they answer a split as a model would, in the answer format."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from npbench.errors import unknown_name
from npbench.generation import customised, get_level
from npbench.rng import instance_rng, stream
from npbench.splits import COLUMNS
from npbench.storage import StoredSplit
from npbench.task import Budget, Status, Task
from npbench.tasks import TASKS

__all__ = ["SOLVER_NAMES", "as_reply", "policy_replies", "require_solver", "solve_instance"]

SOLVER_NAMES = ("trivial", "random", "greedy", "heuristic", "reference")


def as_reply(solution: Any) -> str:
    """A solution in the format that the prompts ask for."""
    return f"Answer: {json.dumps(solution)}"


def policy_replies(split: StoredSplit, solver: str) -> Iterator[dict[str, Any]]:
    """One response per row: ``{"id", "sample", "reply"}``.

    ``reference`` repeats the stored reference solution; ``random`` and ``heuristic`` use the
    streams that gave the stored floors, so scores of these policies equal the floors.

    Raises:
        InputError: If the solver is unknown.
    """
    require_solver(solver)
    return _replies(split, solver)


def _replies(split: StoredSplit, solver: str) -> Iterator[dict[str, Any]]:
    given: Mapping[str, Any] = split.manifest["parameters"]["params"]
    params = {name: tuple(v) if isinstance(v, list) else v for name, v in given.items()}
    columns = tuple(name for name in COLUMNS if name not in ("image", "layout", "prompt"))
    for row in split.rows(columns):
        task = TASKS[row["task"]]
        if solver == "reference":
            solution = json.loads(row["reference_solution"])
        else:
            level = customised(task, get_level(task, row["level"]), params)
            rng = instance_rng(
                version=row["version"],
                task=task.name,
                level=level.name,
                params=level.params,
                split=row["split"],
                seed=row["seed"],
                index=row["index"],
                purpose=solver,
            )
            solution = task.solvers[solver](task.decode(json.loads(row["instance"])), rng)
        yield {"id": row["id"], "sample": 0, "reply": as_reply(solution)}


def solve_instance(
    task: Task[Any, Any], instance: Any, solver: str, *, name: str
) -> dict[str, Any]:
    """A solution with its objective, status and bound (None but for the reference).

    Args:
        task: The task.
        instance: The decoded instance.
        solver: One of ``SOLVER_NAMES``.
        name: Fixes the stream of the random solver.

    Raises:
        InputError: If the solver is unknown.
        NoSolutionError: If the instance has no feasible solution.
    """
    require_solver(solver)
    if solver == "reference":
        best = task.reference(instance, Budget())
        return {
            "solution": best.solution,
            "objective": best.objective,
            "status": best.status.value,
            "bound": best.bound,
        }
    solution = task.solvers[solver](instance, stream("solve", solver, name))
    verdict = task.verify(instance, solution)
    assert verdict.feasible, verdict.reason
    return {
        "solution": solution,
        "objective": verdict.objective,
        "status": Status.FEASIBLE.value,
        "bound": None,
    }


def require_solver(solver: str) -> None:
    """Refuse an unknown solver with the nearest known name.

    Raises:
        InputError: If the name is unknown.
    """
    if solver not in SOLVER_NAMES:
        raise unknown_name("solver", solver, SOLVER_NAMES)
