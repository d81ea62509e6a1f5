"""Visual robustness: one set of instances in several styles, compared instance by instance.

Each variant of an instance, a style or the text, has the mean SR and QR of its samples. A variant's
difference is its value minus the base's on the same instance, averaged like the scores themselves:
within a task, over the tasks of a group, over groups. Pairing takes the instances' own difficulty
out, so the interval of a difference is far narrower than the two scores' intervals suggest.

References:
    Dror et al., The Hitchhiker's Guide to Testing Statistical Significance in NLP, ACL 2018.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npbench.errors import InputError, unknown_name
from npbench.metrics import macro_interval
from npbench.scoring import Question, grade

__all__ = ["TEXT", "Variant", "robustness"]

TEXT = "text"
"""The variant without a picture."""

_METRICS = ("sr", "qr")


@dataclass(frozen=True, slots=True)
class Variant:
    """A question and the way in which it shows its instance."""

    question: Question
    name: str
    """The style's label, or ``text``."""


Key = tuple[str, str, str]
"""Group, task and instance."""
Values = dict[Key, dict[str, float]]


def robustness(
    variants: Iterable[Variant], replies: Mapping[str, Sequence[str]], *, base: str
) -> dict[str, Any]:
    """Scores of each variant, and their paired differences from one of them.

    Args:
        variants: All questions of a split that shows instances in several ways.
        replies: Replies by question id.
        base: The variant from which differences are taken.

    Raises:
        InputError: If the base is unknown, or a variant shares no instance with it.
    """
    values: defaultdict[str, Values] = defaultdict(dict)
    for variant in variants:
        question = variant.question
        answers = [grade(question, reply) for reply in replies[question.id]]
        values[variant.name][question.group, question.task.name, question.instance_id] = {
            "sr": float(np.mean([answer.feasible for answer in answers])),
            "qr": float(np.mean([answer.ratio for answer in answers])),
        }
    if base not in values:
        raise unknown_name("variant", base, values)
    return {
        "base": base,
        "variants": {name: _row(name, own, base, values[base]) for name, own in values.items()},
    }


def _row(name: str, own: Values, base: str, reference: Values) -> dict[str, Any]:
    paired = [key for key in own if key in reference]
    if not paired:
        raise InputError(f"{name} and {base} share no instance")
    row: dict[str, Any] = {"n": len(own), "paired": len(paired), "ci": {}}
    difference: dict[str, Any] = {"ci": {}}
    for metric in _METRICS:
        row[metric], row["ci"][metric] = _average({key: own[key][metric] for key in own})
        change = {key: own[key][metric] - reference[key][metric] for key in paired}
        difference[metric], difference["ci"][metric] = _average(change)
    row["difference"] = None if name == base else difference
    return row


def _average(values: Mapping[Key, float]) -> tuple[float, list[float] | None]:
    """The mean over groups of the mean over tasks, with its interval over instances."""
    nested: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (group, task, _), value in values.items():
        nested[group][task].append(value)
    groups = [[np.array(row) for row in tasks.values()] for tasks in nested.values()]
    mean = float(np.mean([np.mean([row.mean() for row in group]) for group in groups]))
    interval = macro_interval(groups)
    return mean, list(interval) if interval else None
