"""The five solvers of the NP-hard tasks as a backend: they answer a split as a model would."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from evaluators.backends.base import Completion, ModelInfo, Reply, Request, complete
from npbench.errors import unknown_name
from npbench.policies import SOLVER_NAMES, as_reply, policy_replies
from npbench.splits import COLUMNS
from npbench.storage import StoredSplit
from npbench.tasks import TASKS

__all__ = ["SolverBackend"]

_NEEDED = tuple(name for name in COLUMNS if name not in ("image", "layout", "prompt"))


@dataclass(frozen=True, slots=True)
class _OneRow(StoredSplit):
    """A split of which one row is looked at."""

    only: dict[str, Any]

    def rows(self, columns: tuple[str, ...] = COLUMNS) -> Iterator[dict[str, Any]]:
        """The one row."""
        yield {name: self.only[name] for name in columns}


class SolverBackend:
    """A solver's answers to the rows of a split.

    Greedy replies are the stored floors, so their scores equal the floors. Sampled replies of the
    random and heuristic solvers are drawn from each sample's seed; those of the others repeat.
    """

    name = "policy"

    def __init__(self, solver: str, split: StoredSplit) -> None:
        """A solver for a split.

        Raises:
            InputError: If the solver is unknown.
        """
        if solver not in SOLVER_NAMES:
            raise unknown_name("solver", solver, SOLVER_NAMES)
        self._solver = solver
        self._split = split

    def describe(self) -> ModelInfo:
        """The solver, as this version has it."""
        return ModelInfo(
            self._solver,
            f"solver {self._solver} of {self._split.manifest['version']}",
            versions={name: version(name) for name in ("numpy", "ortools")},
        )

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Answers in the order of the requests, which is that of the split."""
        rows = self._split.rows(_NEEDED)
        row: dict[str, Any] = {"id": None}
        for request in requests:
            while row["id"] != request.id:
                row = next(rows)
            yield from complete(request, partial(self._answers, row))

    def _answers(self, row: dict[str, Any], request: Request) -> Sequence[Reply]:
        one = _OneRow(self._split.folder, self._split.manifest, row)
        if request.decode == "greedy" or self._solver in ("trivial", "greedy", "reference"):
            text = next(policy_replies(one, self._solver))["reply"]
            return [Reply(text=text, finish_reason="stop")] * len(request.samples)
        task = TASKS[row["task"]]
        instance = task.decode(json.loads(row["instance"]))
        solve = task.solvers[self._solver]
        solutions = [solve(instance, np.random.default_rng(seed)) for seed in request.seeds]
        return [Reply(text=as_reply(found), finish_reason="stop") for found in solutions]
