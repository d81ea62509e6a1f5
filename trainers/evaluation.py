"""Held-out evaluation during training: k samples of each question under the run's distribution."""

from collections.abc import Sequence

import numpy as np

from trainers.data import Question
from trainers.groups import collect
from trainers.learner import Learner
from trainers.measures import Numbers, group_numbers
from trainers.reward_sets import RewardTerm
from trainers.rollouts import Backend

__all__ = ["evaluate"]


def evaluate(
    examples: Sequence[Question], learner: Learner, backend: Backend, terms: Sequence[RewardTerm]
) -> Numbers:
    """Means over all samples, and the best of a question's k.

    The seeds depend on run and question alone: every evaluation of a run draws with the same random
    numbers. ``score`` is what the best checkpoint is chosen by: ``accuracy``, on NP questions the
    quality ratio.
    """
    config = learner.config
    groups = collect(
        examples,
        config=config,
        encoder=learner.policy.encoder,
        backend=backend,
        terms=terms,
        step="evaluation",
        samples=config.evaluation.samples,
    )
    numbers = group_numbers(groups)
    best = [max((q or 0.0) for q in group.accuracy) for group in groups]
    solved = [any((q or 0.0) >= 1.0 for q in group.accuracy) for group in groups]
    numbers["accuracy_at_k"] = float(np.mean(best))
    numbers["solved_at_k"] = float(np.mean(solved))
    numbers["score"] = numbers["accuracy"]
    return numbers
