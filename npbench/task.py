"""What a task is: a frozen record of pure functions, and the small records that they exchange."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np

from npbench.answers import Shape, parse_answer
from npbench.prompts import Modality, Wording, brief_prompt, full_prompt

if TYPE_CHECKING:
    from npbench.rendering.picture import Picture
    from npbench.rendering.styles import Style

__all__ = [
    "Budget",
    "Level",
    "Reference",
    "Sense",
    "Solver",
    "Status",
    "Task",
    "Verdict",
    "better",
    "ratio",
]

InstanceT = TypeVar("InstanceT")
SolutionT = TypeVar("SolutionT")


class Sense(StrEnum):
    """Whether a smaller or a larger objective is better."""

    MIN = "min"
    MAX = "max"


class Status(StrEnum):
    """What is known of a reference: proven optimal, or merely feasible."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a verifier says of an answer."""

    feasible: bool
    """Whether every constraint holds."""
    objective: int | None = None
    """The objective of a feasible answer, else None."""
    reason: str = ""
    """The first violated constraint, for a person to read; empty where feasible."""
    rule: str = ""
    """The violated constraint's short name, for counting; empty where feasible."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How long a reference may search: CP-SAT's deterministic time, never the clock."""

    deterministic_time: float = 2.0
    """Limit in deterministic units (one is roughly one to three seconds of one core)."""
    seed: int = 0
    """CP-SAT's random seed."""


@dataclass(frozen=True, slots=True)
class Reference(Generic[SolutionT]):
    """The best known solution of an instance and what is proven about it."""

    solution: SolutionT
    objective: int
    bound: int
    """No feasible solution is better than this; equals ``objective`` where optimal."""
    status: Status


@dataclass(frozen=True, slots=True)
class Level:
    """Sizes of one level of difficulty."""

    name: str
    params: Mapping[str, Any]
    """Size parameters: a number, or a pair (low, high) drawn uniformly, both ends included."""
    hard_share: float = 0.0
    """Share of the indices that take only instances on which greedy misses the optimum."""
    picture_size: int = 768
    """Side of the graph panel in pixels."""


Solver = Callable[[InstanceT, np.random.Generator], SolutionT]


@dataclass(frozen=True, kw_only=True)
class Task(Generic[InstanceT, SolutionT]):
    """One NP-hard optimisation task as a record of pure functions.

    ``verify`` is total: whatever object it gets as a solution, it returns a verdict and never
    raises. It shares no code with the solvers beyond the instance and its objective.
    """

    name: str
    title: str
    """The task in a few words, for pages and tables."""
    sense: Sense
    group: str
    """Group in the vision benchmark; the text category for tasks that only text has."""
    category: str
    """Category in the text benchmark; the vision group for tasks that only pictures have."""
    aliases: tuple[str, ...]
    """Names of other suites that are read as this task."""
    levels: Mapping[str, Level]
    limits: Mapping[str, tuple[int, int]]
    """Smallest and largest legal value of each size parameter."""
    families: Mapping[str, Callable[[Mapping[str, Any], np.random.Generator], InstanceT]]
    """Named instance families; each draws one instance, vertices relabelled at random."""
    flaw: Callable[[InstanceT, Reference[SolutionT]], str | None]
    """The non-triviality rule that an instance breaks, or None; the trivial answer being optimal
    is checked for every task and need not be repeated here."""
    verify: Callable[[InstanceT, object], Verdict]
    solvers: Mapping[str, Solver[InstanceT, SolutionT]]
    """``trivial``, ``random``, ``greedy``, ``heuristic``: each feasible on every instance that
    has a feasible solution."""
    reference: Callable[[InstanceT, Budget], Reference[SolutionT]]
    canonical: Callable[[InstanceT, SolutionT], Hashable]
    """Equal exactly for two spellings of one solution."""
    distance: Callable[[InstanceT, SolutionT, SolutionT], float]
    """In [0, 1], and 0 exactly where the canonical forms are equal."""
    class_key: Callable[[InstanceT], str]
    """Equal for relabelled copies of one instance."""
    encode: Callable[[InstanceT], dict[str, Any]]
    decode: Callable[[Any], InstanceT]
    """From the JSON form; raises InputError naming what is wrong."""
    shape: Shape
    """The form of the answer, which the one parser reads."""
    wording: Wording
    describe: Callable[[InstanceT], str]
    """The instance as the text prompt shows it."""
    draw: "Callable[[InstanceT, Style, int], Picture]"
    notes: Mapping[str, str] = field(default_factory=dict)
    """What each floor and family does, one sentence each, for the documentation."""

    def parse(self, reply: str) -> SolutionT:
        """The last answer of a model's reply.

        Raises:
            ParseError: If no answer of the task's form can be read.
        """
        return cast(SolutionT, parse_answer(reply, shape=self.shape))

    def prompt(self, instance: InstanceT, modality: Modality, *, brief: bool = False) -> str:
        """The question about an instance; brief ones have at most 120 words beside the data."""
        data = self.describe(instance)
        if brief:
            return brief_prompt(self.wording, modality, data=data)
        example = self.describe(self.decode(self.wording.example))
        return full_prompt(self.wording, modality, data=data, example=example)


def better(sense: Sense, first: int, second: int) -> bool:
    """Whether objective ``first`` is strictly better than ``second``."""
    return first < second if sense is Sense.MIN else first > second


def ratio(sense: Sense, *, objective: int, reference: int) -> float:
    """Quality ratio of a feasible answer: 1 at the reference, not capped.

    ``objective / reference`` for max tasks and ``reference / objective`` for min tasks. Zeros,
    which only foreign instances have: equal values give 1; a min answer of 0 under a positive
    reference gives ``reference`` (the denominator is taken as 1); a max answer under a reference
    of 0 likewise gives ``objective``, and one of 0 gives 0.

    Example:
        >>> ratio(Sense.MIN, objective=4, reference=3), ratio(Sense.MAX, objective=3, reference=4)
        (0.75, 0.75)
        >>> ratio(Sense.MIN, objective=0, reference=0)
        1.0
    """
    if objective == reference:
        return 1.0
    if sense is Sense.MIN:
        return reference / max(objective, 1)
    return objective / max(reference, 1)
