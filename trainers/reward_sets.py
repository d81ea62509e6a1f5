"""Which terms make a reward: named sets for NP tasks, and a user's own function by import path."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType

from npbench.errors import InputError, unknown_name
from trainers.reward_terms import (
    FORMATS,
    GATES,
    Term,
    accuracy,
    correctness,
    feasibility,
    np_engine,
    quality,
)

__all__ = ["REWARDS", "RewardTerm", "load_term", "reward_named"]


@dataclass(frozen=True, slots=True)
class RewardTerm:
    """One term of a reward."""

    name: str
    function: Term
    weight: float = 1.0
    """Factor in the total; a term of weight 0 is computed and logged only."""


REWARDS: Mapping[str, tuple[RewardTerm, ...]] = MappingProxyType(
    {
        "dmpo": (
            RewardTerm("format", FORMATS["answer-line"], 0.1),
            RewardTerm("quality", quality),
        ),
        "mupo": (
            RewardTerm("accuracy", quality),
            RewardTerm("format", FORMATS["answer-line"], 0.1),
            RewardTerm("gate", GATES["feasible"], 0.0),
        ),
        "mupo-optimal-gate": (
            RewardTerm("accuracy", quality),
            RewardTerm("format", FORMATS["answer-line"], 0.1),
            RewardTerm("gate", GATES["optimal"], 0.0),
        ),
        "np-engine": (RewardTerm("np_engine", np_engine),),
        "optimal": (
            RewardTerm("format", FORMATS["answer-line"], 0.1),
            RewardTerm("accuracy", accuracy),
            RewardTerm("feasibility", feasibility, 0.0),
        ),
        "correct": (
            RewardTerm("accuracy", correctness),
            RewardTerm("format", FORMATS["boxed"], 0.1),
            RewardTerm("gate", correctness, 0.0),
        ),
    }
)
"""Named rewards.

On NP tasks: ``dmpo`` is 0.1 for the answer line + the quality ratio, 0 where infeasible. ``mupo``
is the same, with the ratio as accuracy and feasibility as the gate of the diversity reward, which
:func:`trainers.rewards.add_term` adds once the replies are clustered; the magnitudes of MUPO's own
terms are not printed in its paper. ``np-engine`` is the older reward of NP-Engine; ``optimal`` is
right or wrong. On questions with one right answer: ``correct`` is 0.1 for the box + correctness,
which is MUPO's gate there too.
"""


def reward_named(name: str) -> tuple[RewardTerm, ...]:
    """The terms of a named reward.

    Raises:
        InputError: If the name is unknown; the message holds the nearest known one.
    """
    if name not in REWARDS:
        raise unknown_name("reward", name, REWARDS)
    return REWARDS[name]


def load_term(path: str) -> Term:
    """A user's own term, from ``package.module:function``.

    The function takes the reply and the row, and returns a number or None.

    Raises:
        InputError: If the path has another form, or nothing callable is there.
    """
    module_name, colon, function_name = path.partition(":")
    if not colon or not module_name or not function_name:
        raise InputError(
            f"a reward function must be given as package.module:function, got {path!r}"
        )
    try:
        module = import_module(module_name)
    except ImportError as error:
        raise InputError(
            f"the reward module {module_name!r} cannot be imported: {error}"
        ) from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise InputError(
            f"{module_name!r} must hold a function {function_name!r}, got {function!r}"
        )
    term: Term = function
    return term
