"""Smallest covers of 0..m-1 by sets given as bit masks: vertex cover, dominating set, set cover."""

from collections.abc import Sequence

import numpy as np

from npbench.errors import NoSolutionError
from npbench.references import choose, membership, run
from npbench.task import Budget, Reference, Sense

__all__ = ["greedy_cover", "random_cover", "solve_cover"]


def greedy_cover(sets: Sequence[int], size: int) -> list[int]:
    """The set with most new elements first, the lowest number among equals."""
    missing = (1 << size) - 1
    chosen: list[int] = []
    while missing:
        best = max(range(len(sets)), key=lambda j: ((sets[j] & missing).bit_count(), -j))
        if not sets[best] & missing:
            raise NoSolutionError("the sets do not cover all elements")
        chosen.append(best)
        missing &= ~sets[best]
    return sorted(chosen)


def random_cover(sets: Sequence[int], size: int, rng: np.random.Generator) -> list[int]:
    """Sets in random order, taken until everything is covered."""
    missing = (1 << size) - 1
    chosen: list[int] = []
    for j in rng.permutation(len(sets)).tolist():
        if not missing:
            break
        chosen.append(j)
        missing &= ~sets[j]
    return sorted(chosen)


def solve_cover(
    sets: Sequence[int],
    size: int,
    budget: Budget,
    *,
    hint: bool,
    linearization_level: int = 2,
) -> Reference[list[int]]:
    """A smallest cover by CP-SAT, one clause per element."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    chosen = [model.new_bool_var("") for _ in sets]
    for element in range(size):
        model.add_bool_or([chosen[j] for j, mask in enumerate(sets) if mask >> element & 1])
    model.minimize(sum(chosen))
    start = greedy_cover(sets, size)
    hints = membership(chosen, start) if hint else None
    outcome = run(model, chosen, budget=budget, linearization_level=linearization_level, hint=hints)
    return choose(
        outcome,
        sense=Sense.MIN,
        solution=outcome.chosen(chosen),
        fallback=start,
        objective=len,
        trivial_bound=min(size, 1),
    )
