"""CP-SAT runs that depend on nothing but the model: one worker, fixed seed, deterministic time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from npbench.task import Budget, Reference, Sense, Status, better

__all__ = ["EARLY_STOP", "Outcome", "choose", "membership", "prefer", "run"]

EARLY_STOP = Budget(deterministic_time=0.02)
"""The budget of the ``heuristic`` floors that are CP-SAT stopped early, without a hint."""

SolutionT = TypeVar("SolutionT")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a CP-SAT run found."""

    values: Mapping[int, int] | None
    """Value of each variable by its index, or None if no solution was found."""
    bound: int
    optimal: bool

    def chosen(self, variables: Sequence[Any]) -> list[int] | None:
        """Positions of the booleans that are true, or None if no solution was found."""
        if self.values is None:
            return None
        return [i for i, variable in enumerate(variables) if self.values[variable.index]]

    def value(self, variable: Any) -> int:
        """The value of a variable in the solution."""
        assert self.values is not None
        return self.values[variable.index]


def membership(variables: Sequence[Any], members: Sequence[int]) -> list[tuple[Any, int]]:
    """A hint that sets the booleans at the positions ``members`` and no others."""
    wanted = set(members)
    return [(variable, int(i in wanted)) for i, variable in enumerate(variables)]


def run(
    model: Any,
    variables: Sequence[Any],
    *,
    budget: Budget,
    linearization_level: int,
    hint: Sequence[tuple[Any, int]] | None = None,
) -> Outcome:
    """Solve a CP-SAT model reproducibly.

    Args:
        model: A ``cp_model.CpModel`` with an integer objective.
        variables: The variables whose values are wanted.
        budget: Deterministic limit and seed.
        linearization_level: 0 to 2; which one suits a task is worth a factor of 10 to 600.
        hint: Starting values, if any.
    """
    from ortools.sat.python import cp_model

    if hint is not None:
        for variable, value in hint:
            model.add_hint(variable, value)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = budget.seed
    solver.parameters.max_deterministic_time = budget.deterministic_time
    solver.parameters.linearization_level = linearization_level
    solver.parameters.catch_sigint_signal = False
    status = solver.solve(model)
    assert status not in (cp_model.INFEASIBLE, cp_model.MODEL_INVALID), model.validate()
    if status == cp_model.UNKNOWN:
        return Outcome(None, 0, optimal=False)
    values = {variable.index: int(solver.value(variable)) for variable in variables}
    return Outcome(values, round(solver.best_objective_bound), optimal=status == cp_model.OPTIMAL)


def choose(
    outcome: Outcome,
    *,
    sense: Sense,
    solution: SolutionT | None,
    fallback: SolutionT,
    objective: Callable[[SolutionT], int],
    trivial_bound: int,
) -> Reference[SolutionT]:
    """The reference that a run supports: its own solution, or the fallback where it is better.

    Args:
        outcome: The run.
        sense: The task's sense.
        solution: The run's solution, None if it found none.
        fallback: A feasible solution found otherwise.
        objective: Recomputes a solution's objective from the instance.
        trivial_bound: A bound that holds without search.
    """
    start = objective(fallback)
    if outcome.values is None or solution is None:
        known = Status.OPTIMAL if start == trivial_bound else Status.FEASIBLE
        return Reference(fallback, start, trivial_bound, known)
    value = objective(solution)
    if outcome.optimal:
        return Reference(solution, value, value, Status.OPTIMAL)
    if better(sense, start, value):
        solution, value = fallback, start
    status = Status.OPTIMAL if value == outcome.bound else Status.FEASIBLE
    return Reference(solution, value, outcome.bound, status)


def prefer(
    sense: Sense, first: Reference[SolutionT], second: Reference[SolutionT]
) -> Reference[SolutionT]:
    """The better of two references, with the tighter of their two bounds."""
    winner = second if better(sense, second.objective, first.objective) else first
    bounds = (first.bound, second.bound)
    bound = max(bounds) if sense is Sense.MIN else min(bounds)
    status = Status.OPTIMAL if winner.objective == bound else Status.FEASIBLE
    return Reference(winner.solution, winner.objective, bound, status)
