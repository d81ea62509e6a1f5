"""Our rewards as verl calls a reward function: one reply and its ground truth at a time; no torch.

verl's reward loop is per reply and asynchronous; no reward sees the other replies of its prompt.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

from npbench.errors import InputError, unknown_name
from trainers.reward_sets import reward_named
from trainers.reward_terms import Term, accuracy, correctness, feasibility

__all__ = ["compute_score", "gate_opens", "truth_row"]

_GATES = {"feasible": feasibility, "optimal": accuracy, "correct": correctness}


def truth_row(truth: Any) -> dict[str, Any]:
    """The dataset row that a ground truth stands for.

    Args:
        truth: JSON text or a value with ``task``, ``instance`` and ``reference_objective`` (what
            ``npbench export --format verl`` writes), or with ``gold``; any other text is the gold
            of a question with one right answer.

    Example:
        >>> truth_row("42")
        {'gold': '42'}

    Raises:
        InputError: If a value has neither.
    """
    data = truth
    if isinstance(truth, str):
        try:
            data = json.loads(truth)
        except (ValueError, RecursionError):
            return {"gold": truth}
        if not isinstance(data, dict):
            return {"gold": truth}
    if not isinstance(data, Mapping):
        raise InputError(f"ground_truth must be text or an object, got {type(truth).__name__}")
    row = dict(data)
    if "gold" in row:
        return row
    for key in ("task", "instance", "reference_objective"):
        if key not in row:
            raise InputError(f"ground_truth has no {key!r}, and no 'gold' either")
    instance = row["instance"]
    row["instance"] = instance if isinstance(instance, str) else json.dumps(instance)
    row.setdefault("reference_status", "feasible")
    return row


def gate_opens(reply: str, truth: Any, *, gate: str) -> bool:
    """Whether MUPO's diversity reward counts for a reply.

    Raises:
        InputError: If the gate does not fit the row.
    """
    if gate not in _GATES:
        raise unknown_name("gate", gate, _GATES)
    row = truth_row(truth)
    _check_kind(row, wants_gold=gate == "correct", what=f"algorithm.npbench.gate={gate}")
    return _value(_GATES[gate], reply, row) == 1.0


def _check_kind(row: Mapping[str, Any], *, wants_gold: bool, what: str) -> None:
    if wants_gold != ("gold" in row):
        asked = "a gold answer" if wants_gold else "an NP task"
        raise InputError(f"{what} is for rows with {asked}, got a row with {sorted(row)}")


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Any = None,
    *,
    reward: str = "dmpo",
    reward_router_address: str | None = None,
    reward_model_tokenizer: Any = None,
) -> dict[str, float]:
    """A named reward of ours for one reply, with its terms.

    In verl: ``reward.custom_reward_function.path=pkg://trainers.engines.verl``, ``name`` this
    function's. For NP tasks without our other methods, ``npbench.rewards`` needs no torch.

    Args:
        data_source: Not looked at.
        solution_str: The reply. Nothing a model writes raises.
        ground_truth: See :func:`truth_row`.
        extra_info: Not looked at.
        reward: A name from :data:`trainers.reward_sets.REWARDS`, set by ``reward_kwargs``.
        reward_router_address: Passed by verl beside a reward model; not looked at.
        reward_model_tokenizer: The same.

    Returns:
        ``score``, the total; ``acc``, right or proven optimal; and each term before its weight. NaN
        where a reply cannot be scored, which is not wrong: our estimators leave it out of every
        baseline and give it advantage 0, verl's own do not.

    Raises:
        InputError: If the name is unknown, or the row is broken or of the other kind.

    Example:
        >>> truth = {"task": "knapsack", "reference_objective": 4,
        ...          "instance": {"capacity": 2, "weights": [1, 2], "values": [3, 4]}}
        >>> compute_score("npbench/knapsack", "Answer: [0]", truth)
        {'score': 0.85, 'acc': 0.0, 'format': 1.0, 'quality': 0.75}
    """
    row = truth_row(ground_truth)
    terms = reward_named(reward)
    of_gold = any(term.function is correctness for term in terms)
    _check_kind(row, wants_gold=of_gold, what=f"reward {reward!r}")
    values = {term.name: _value(term.function, solution_str, row) for term in terms}
    weighted = [term.weight * values[term.name] for term in terms if term.weight]
    right = _value(correctness if of_gold else accuracy, solution_str, row)
    return {"score": math.fsum(weighted), "acc": right, **values}


def _value(term: Term, reply: str, row: Mapping[str, Any]) -> float:
    """A term's value; our terms raise where the row is broken, never for what a reply says."""
    try:
        value = term(reply, row)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"ground_truth is broken: {error}") from error
    return math.nan if value is None else float(value)
