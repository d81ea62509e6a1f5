"""Reward callables for anybody's trainer: TRL's, verl's and EasyR1's signatures, no torch.

A reply's reward is ``0.1 * format + 0 * feasibility + 1 * quality`` unless other weights are given:

- format: 1 where an answer of the task's form can be read behind an answer marker, else 0;
- feasibility: 1 where that answer keeps every constraint, else 0;
- quality: the ratio to the row's reference of a feasible answer, else 0. It is not capped: above 1
  an answer beats a reference that was not proven optimal.

Nothing a model writes raises. A broken row does: a reward of 0 for it would train on nothing.
All functions are pure and belong to the module, so they pickle and run in threads and Ray workers.

In TRL, with a split or its ``npbench export --format trl``::

    GRPOTrainer(model, reward_funcs=npbench.rewards.np_reward, train_dataset=dataset)

In verl, with the files of ``npbench export --format verl``::

    reward.custom_reward_function.path=pkg://npbench.rewards
    reward.custom_reward_function.name=compute_score

In EasyR1, with the files of ``npbench export --format easyr1``; PATH is this file::

    worker.reward.reward_function=PATH:easyr1_score

References:
    DMPO, `arXiv 2605.19461 <https://arxiv.org/abs/2605.19461>`_, 2026: the default weights.
"""

import json
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

from npbench.errors import InputError
from npbench.reward_terms import Terms, reward_terms, truth_terms

__all__ = [
    "FEASIBILITY_WEIGHT",
    "FORMAT_WEIGHT",
    "QUALITY_WEIGHT",
    "compute_score",
    "compute_score_terms",
    "easyr1_score",
    "feasibility_reward",
    "format_reward",
    "np_reward",
    "quality_reward",
]

FORMAT_WEIGHT = 0.1
FEASIBILITY_WEIGHT = 0.0
"""A flat reward for feasibility invites hacking when it is most of what there is."""
QUALITY_WEIGHT = 1.0


def np_reward(
    prompts: Sequence[Any],
    completions: Sequence[Any],
    *,
    task: Sequence[str | None],
    instance: Sequence[Any],
    reference_objective: Sequence[int | None],
    format_weight: float = FORMAT_WEIGHT,
    feasibility_weight: float = FEASIBILITY_WEIGHT,
    quality_weight: float = QUALITY_WEIGHT,
    **columns: Any,
) -> list[float | None]:
    """The rewards of a batch, as TRL calls a reward function.

    Args:
        prompts: Not looked at.
        completions: Replies as text, or as lists of chat messages of which the last one counts.
        task: The dataset's column, one entry a completion. None: the row is no NP task, and its
            reward is None, which TRL leaves out.
        instance: The dataset's column.
        reference_objective: The dataset's column.
        format_weight: Weight of the format term; set the weights by ``functools.partial``.
        feasibility_weight: Weight of the feasibility term.
        quality_weight: Weight of the quality term.
        **columns: The other columns and what TRL adds; not looked at.

    Raises:
        InputError: If a row is broken.

    Example:
        >>> column = {"task": ["subset_sum"], "instance": ['{"numbers": [1, 2, 3], "target": 3}']}
        >>> np_reward(["?"], ["Answer: [0, 1]"], reference_objective=[2], **column)
        [1.1]
        >>> chat = [{"role": "assistant", "content": "Answer: [2]"}]
        >>> np_reward(["?"], [chat], reference_objective=[2], **column)
        [0.6]
    """
    weights = {
        "format_weight": format_weight,
        "feasibility_weight": feasibility_weight,
        "quality_weight": quality_weight,
    }
    batch = _batch(completions, task, instance, reference_objective)
    return [None if terms is None else terms.total(**weights) for terms in batch]


def format_reward(
    prompts: Sequence[Any],
    completions: Sequence[Any],
    *,
    task: Sequence[str | None],
    instance: Sequence[Any],
    reference_objective: Sequence[int | None],
    **columns: Any,
) -> list[float | None]:
    """The format term alone, for trainers that weight and log rewards themselves."""
    batch = _batch(completions, task, instance, reference_objective)
    return [None if terms is None else terms.format for terms in batch]


def feasibility_reward(
    prompts: Sequence[Any],
    completions: Sequence[Any],
    *,
    task: Sequence[str | None],
    instance: Sequence[Any],
    reference_objective: Sequence[int | None],
    **columns: Any,
) -> list[float | None]:
    """The feasibility term alone."""
    batch = _batch(completions, task, instance, reference_objective)
    return [None if terms is None else terms.feasibility for terms in batch]


def quality_reward(
    prompts: Sequence[Any],
    completions: Sequence[Any],
    *,
    task: Sequence[str | None],
    instance: Sequence[Any],
    reference_objective: Sequence[int | None],
    **columns: Any,
) -> list[float | None]:
    """The quality term alone."""
    batch = _batch(completions, task, instance, reference_objective)
    return [None if terms is None else terms.quality for terms in batch]


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str | Mapping[str, Any],
    extra_info: Mapping[str, Any] | None = None,
    *,
    format_weight: float = FORMAT_WEIGHT,
    feasibility_weight: float = FEASIBILITY_WEIGHT,
    quality_weight: float = QUALITY_WEIGHT,
    reward_router_address: str | None = None,
    reward_model_tokenizer: Any = None,
) -> float:
    """The reward of one reply, as verl calls a reward function.

    Args:
        data_source: Not looked at.
        solution_str: The reply.
        ground_truth: JSON text or a value with ``task``, ``instance``, ``reference_objective``.
        extra_info: Not looked at.
        format_weight: Weight of the format term; set the weights by verl's ``reward_kwargs``.
        feasibility_weight: Weight of the feasibility term.
        quality_weight: Weight of the quality term.
        reward_router_address: Passed by verl beside a reward model; not looked at.
        reward_model_tokenizer: Passed by verl beside a reward model; not looked at.

    Raises:
        InputError: If the ground truth is broken.

    Example:
        >>> truth = '{"task": "tsp", "instance": {"distances": [[0,1,2],[1,0,3],[2,3,0]]}, '
        >>> truth += '"reference_objective": 6}'
        >>> compute_score("npbench/tsp", "Answer: [0, 2, 1, 0]", truth)
        1.1
    """
    return _against(solution_str, ground_truth).total(
        format_weight=format_weight,
        feasibility_weight=feasibility_weight,
        quality_weight=quality_weight,
    )


def compute_score_terms(
    data_source: str,
    solution_str: str,
    ground_truth: str | Mapping[str, Any],
    extra_info: Mapping[str, Any] | None = None,
    *,
    format_weight: float = FORMAT_WEIGHT,
    feasibility_weight: float = FEASIBILITY_WEIGHT,
    quality_weight: float = QUALITY_WEIGHT,
    reward_router_address: str | None = None,
    reward_model_tokenizer: Any = None,
) -> dict[str, float]:
    """As :func:`compute_score`, with the terms beside the score for verl's logs.

    Returns:
        ``score``, ``format``, ``feasibility``, ``quality`` and ``acc``: the optimum is reached.
    """
    terms = _against(solution_str, ground_truth)
    score = terms.total(
        format_weight=format_weight,
        feasibility_weight=feasibility_weight,
        quality_weight=quality_weight,
    )
    return {"score": score, **_logged(terms), "acc": terms.optimal}


def easyr1_score(
    reward_inputs: Any,
    *,
    format_weight: float = FORMAT_WEIGHT,
    feasibility_weight: float = FEASIBILITY_WEIGHT,
    quality_weight: float = QUALITY_WEIGHT,
) -> Any:
    """The rewards of a batch, or of one reply, as EasyR1 calls a reward function.

    Args:
        reward_inputs: A list of ``{"response", "ground_truth"}`` (``reward_type=batch``), or one.
        format_weight: Weight of the format term; set the weights by ``reward_function_kwargs``.
        feasibility_weight: Weight of the feasibility term.
        quality_weight: Weight of the quality term.

    Returns:
        For each reply ``overall``, ``format``, ``feasibility``, ``quality`` and ``accuracy``: the
        optimum is reached. A list for a list.

    Raises:
        InputError: If a ground truth is broken.

    Example:
        >>> truth = {"task": "knapsack", "reference_objective": 4,
        ...          "instance": {"capacity": 2, "weights": [1, 2], "values": [3, 4]}}
        >>> scores = easyr1_score([{"response": "Answer: [0]", "ground_truth": truth}])
        >>> scores[0]["overall"], scores[0]["quality"], scores[0]["accuracy"]
        (0.85, 0.75, 0.0)
    """
    weights = {
        "format_weight": format_weight,
        "feasibility_weight": feasibility_weight,
        "quality_weight": quality_weight,
    }
    if not isinstance(reward_inputs, Mapping):
        return [easyr1_score(one, **weights) for one in reward_inputs]
    terms = _against(reward_inputs["response"], reward_inputs["ground_truth"])
    return {"overall": terms.total(**weights), **_logged(terms), "accuracy": terms.optimal}


def _batch(
    completions: Sequence[Any],
    tasks: Sequence[str | None],
    instances: Sequence[Any],
    references: Sequence[int | None],
) -> list[Terms | None]:
    """The terms of each completion, None where its row is no NP task."""
    counts = {len(completions), len(tasks), len(instances), len(references)}
    if len(counts) > 1:
        raise InputError(f"completions and columns must be equally many, got {sorted(counts)}")
    rows = zip(completions, tasks, instances, references, strict=True)
    return [
        None
        if task is None
        else reward_terms(
            _reply(completion), task=task, instance=instance, reference_objective=_known(reference)
        )
        for completion, task, instance, reference in rows
    ]


def _known(reference: Any) -> int:
    """A column's reference; where rows without one are among them it may have become a float."""
    if isinstance(reference, Integral) and not isinstance(reference, bool):
        return int(reference)
    if isinstance(reference, float) and reference.is_integer():
        return int(reference)
    raise InputError(f"reference_objective must be a whole number, got {str(reference)[:40]!r}")


def _reply(completion: Any) -> str:
    """The text of a completion: itself, or the content of the last message of a chat."""
    if isinstance(completion, str):
        return completion
    content = completion
    if isinstance(completion, Sequence) and completion and isinstance(completion[-1], Mapping):
        content = completion[-1].get("content")
    if isinstance(content, Sequence) and not isinstance(content, str):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _against(reply: Any, truth: str | Mapping[str, Any]) -> Terms:
    """The terms of a reply to the row that a ground truth holds."""
    text = truth if isinstance(truth, str) else json.dumps(truth)
    return truth_terms(_reply(reply), text)


def _logged(terms: Terms) -> dict[str, float]:
    return {
        "format": terms.format,
        "feasibility": terms.feasibility,
        "quality": terms.quality,
    }
