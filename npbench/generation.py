"""One instance of a split: drawn, checked, solved, and alone determined by its identity.

A draw is refused where it belongs to another split, breaks a rule of non-triviality, or is wanted
greedy-hard and is not. Draws are bounded; then the next family is tried, then a GenerationError
names the task, the level and the rule that refused most draws.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from npbench.errors import GenerationError, InputError, NoSolutionError, unknown_name
from npbench.rng import instance_rng
from npbench.task import Budget, Level, Reference, Status, Task, better

__all__ = [
    "FLOORS",
    "SPLITS",
    "Drawn",
    "customised",
    "draw_instance",
    "get_level",
    "size_problem",
    "split_of",
]

SPLITS = ("train", "validation", "test")
FLOORS = ("trivial", "random", "greedy", "heuristic")

MAX_SOLVED = 120
"""Draws of one family that may reach the solver before the next family is tried."""
MAX_DRAWS = 3000
"""Draws of one family in all."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """An accepted instance with everything that is known of it."""

    instance: Any
    family: str
    class_key: str
    reference: Reference[Any]
    floors: Mapping[str, int]
    """Objective of each floor's solution."""
    hard: bool
    """Whether only an instance on which greedy misses the optimum was accepted."""
    draws: int
    """How many draws it took."""


def split_of(class_key: str) -> str:
    """The split that all relabelled copies of an instance belong to: 70, 10 and 20 % of classes."""
    bucket = int(class_key, 16) % 100
    return "train" if bucket < 70 else "validation" if bucket < 80 else "test"


def get_level(task: Task[Any, Any], name: str) -> Level:
    """A task's level.

    Raises:
        InputError: If the task has no such level.
    """
    if name not in task.levels:
        raise unknown_name(f"level of {task.name}", name, task.levels)
    return task.levels[name]


def size_problem(task: Task[Any, Any], name: str, value: int | tuple[int, int]) -> str | None:
    """Why a size parameter is illegal, or None."""
    low, high = task.limits[name]
    ends = (value, value) if isinstance(value, int) else value
    if not isinstance(ends, tuple) or [type(end) for end in ends] != [int, int]:
        return f"{name} of {task.name} must be an integer or a pair of them, got {value!r:.60}"
    if ends[0] > ends[1]:
        return f"{name} must be given as LOW-HIGH, got {ends[0]}-{ends[1]}"
    for end in ends:
        if not low <= end <= high:
            return f"{name} of {task.name} must lie in [{low}, {high}], got {end}"
    return None


def customised(
    task: Task[Any, Any], level: Level, params: Mapping[str, int | tuple[int, int]]
) -> Level:
    """The level with other sizes, and then without its share of greedy-hard draws.

    Raises:
        InputError: If the task has no such parameter or the size is out of range.
    """
    for name, value in params.items():
        if name not in task.limits:
            raise unknown_name(f"parameter of {task.name}", name, task.limits)
        if isinstance(level.params.get(name), int) and not isinstance(value, int):
            raise InputError(f"{name} of {task.name} takes one number, got {value[0]}-{value[1]}")
        problem = size_problem(task, name, value)
        if problem:
            raise InputError(problem)
    if not params:
        return level
    return replace(level, params={**level.params, **params}, hard_share=0.0)


def draw_instance(
    task: Task[Any, Any],
    level: Level,
    *,
    version: str,
    split: str,
    seed: int,
    index: int,
    budget: Budget | None = None,
) -> Drawn:
    """The instance of one index.

    Args:
        task: The task.
        level: Its level, possibly with customised sizes.
        version: Benchmark version.
        split: ``train``, ``validation`` or ``test``.
        seed: The user's seed.
        index: Position within (task, level, split, seed).
        budget: The reference's limit.

    Raises:
        GenerationError: If no draw passes the checks.
    """
    identity: dict[str, Any] = {
        "version": version,
        "task": task.name,
        "level": level.name,
        "params": level.params,
        "split": split,
        "seed": seed,
        "index": index,
    }
    rng = instance_rng(**identity)
    hard = bool(rng.random() < level.hard_share)
    names = list(task.families)
    refusals: Counter[str] = Counter()
    draws = 0
    for position in rng.permutation(len(names)).tolist():
        family, solved = names[position], 0
        for _ in range(MAX_DRAWS):
            if solved == MAX_SOLVED:
                break
            draws += 1
            instance = task.families[family](level.params, rng)
            key = task.class_key(instance)
            if split_of(key) != split:
                refusals[f"its class belongs to another split than {split}"] += 1
                continue
            rule, floors = _cheap_check(task, instance)
            if rule is None:
                solved += 1
                best = task.reference(instance, budget or Budget())
                rule = _costly_check(task, instance, best, floors, hard=hard)
            if rule is not None:
                refusals[rule] += 1
                continue
            for name in ("random", "heuristic"):
                purpose = instance_rng(**identity, purpose=name)
                solution = task.solvers[name](instance, purpose)
                floors[name] = _objective(task, instance, name, solution)
                if better(task.sense, floors[name], best.objective):
                    best = _improved(task, best, floors[name], solution)
            return Drawn(instance, family, key, best, floors, hard, draws)
    rule, count = refusals.most_common(1)[0]
    raise GenerationError(
        f"{task.name} at level {level.name}: none of {draws} draws was accepted for index {index} "
        f"of {split} seed {seed}; most often ({count} times) because {rule}"
    )


def _cheap_check(task: Task[Any, Any], instance: Any) -> tuple[str | None, dict[str, int]]:
    """The rule that an unsolved instance breaks, or None with the first two floors."""
    rng = instance_rng(
        version="", task=task.name, level="", params={}, split="", seed=0, index=0, purpose="floor"
    )
    try:
        return None, {
            name: _objective(task, instance, name, task.solvers[name](instance, rng))
            for name in ("trivial", "greedy")
        }
    except NoSolutionError as error:
        return str(error), {}


def _objective(task: Task[Any, Any], instance: Any, name: str, solution: Any) -> int:
    """Objective of a solver's solution, which the verifier must accept."""
    verdict = task.verify(instance, solution)
    if not verdict.feasible or verdict.objective is None:
        raise AssertionError(f"the {name} floor of {task.name} is infeasible: {verdict.reason}")
    return verdict.objective


def _improved(
    task: Task[Any, Any], best: Reference[Any], objective: int, solution: Any
) -> Reference[Any]:
    """An unproven reference replaced by a floor's better solution."""
    if best.status is Status.OPTIMAL:
        raise AssertionError(f"a floor of {task.name} beats a proven optimum")
    status = Status.OPTIMAL if objective == best.bound else Status.FEASIBLE
    return Reference(solution, objective, best.bound, status)


def _costly_check(
    task: Task[Any, Any],
    instance: Any,
    best: Reference[Any],
    floors: Mapping[str, int],
    *,
    hard: bool,
) -> str | None:
    """The rule that a solved instance breaks, or None."""
    verdict = task.verify(instance, best.solution)
    if not verdict.feasible or verdict.objective != best.objective:
        raise AssertionError(f"the reference of {task.name} fails its verifier: {verdict}")
    for name, objective in floors.items():
        if best.status is Status.OPTIMAL and better(task.sense, objective, best.objective):
            raise AssertionError(f"the {name} floor of {task.name} beats a proven optimum")
    if best.objective == 0:
        return "its optimum is 0"
    if not better(task.sense, best.objective, floors["trivial"]):
        return "the trivial answer is optimal"
    if hard and not better(task.sense, best.objective, floors["greedy"]):
        return "greedy is optimal on it and a greedy-hard instance is wanted"
    return task.flaw(instance, best)
