r"""What k samples of each question say: acc@k, mean@k, pass@k, maj@k, all@k, SR@k, QR@k.

The same word means different things in different papers, so each number carries the name of its
estimator (``ESTIMATORS``). Every estimator is a function of the samples of one question; the
reported value is its mean over questions. A k above the number of samples gives None, never 1.

Greedy replies and sampled replies are never mixed: ``acc@1`` is greedy decoding, ``mean@1`` and
``pass@1`` are of the sampled policy.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from evaluators.uncertainty import Estimate, estimate

__all__ = [
    "CURVE",
    "ESTIMATORS",
    "Samples",
    "acc_at_k",
    "all_at_k",
    "best_at_k",
    "curves",
    "greedy_accuracy",
    "maj_at_k",
    "majority_answer",
    "mean_at_k",
    "pass_at_k",
]

CURVE = (1, 2, 4, 8, 16)
"""The values of k that curves are drawn over."""

ESTIMATORS: Mapping[str, str] = MappingProxyType(
    {
        "acc@1": "greedy decoding, one reply a question",
        "acc@k": "any of the first k samples is right",
        "mean@k": "mean over the first k samples",
        "pass@k": "unbiased, 1 - C(n-c, k) / C(n, k) from all n samples",
        "maj@k": "most frequent answer of the first k samples; of tied answers the one seen first",
        "all@k": "C(c, k) / C(n, k) from all n samples: all of k draws are right",
        "sr@k": "any of the first k samples is feasible",
        "qr@k": "best quality ratio of the first k samples, 0 for an infeasible one",
    }
)
"""What each metric's name stands for."""


@dataclass(frozen=True, slots=True)
class Samples:
    """The graded samples of one question, in the order of their sample index."""

    question: str
    correct: tuple[bool, ...]
    answers: tuple[str | None, ...] = ()
    """Answers to vote over, in one spelling each (``normalization.comparison_key``); None where
    none was read. Empty: no vote."""
    feasible: tuple[bool, ...] = ()
    """Of an NP-hard task; empty for others."""
    ratios: tuple[float, ...] = ()
    """Quality ratios of an NP-hard task, 0 where infeasible; empty for others."""
    cluster: str | None = None
    """The instance or problem that several questions share; by default the question itself."""

    def __post_init__(self) -> None:
        """Checks that all samples have all their values."""
        for name in ("answers", "feasible", "ratios"):
            given = len(getattr(self, name))
            if given not in (0, len(self.correct)):
                raise ValueError(
                    f"question {self.question!r}: {given} {name} for {len(self.correct)} samples"
                )


def acc_at_k(correct: Sequence[bool], k: int) -> float | None:
    """1 where any of the first k samples is right, else 0; None for k above n.

    Example:
        >>> acc_at_k([False, True, False], 2), acc_at_k([False, True], 4) is None
        (1.0, True)
    """
    return float(any(correct[:k])) if _defined(len(correct), k) else None


def mean_at_k(values: Sequence[float], k: int) -> float | None:
    """Mean of the first k values; None for k above n."""
    return math.fsum(values[:k]) / k if _defined(len(values), k) else None


def best_at_k(values: Sequence[float], k: int) -> float | None:
    """Largest of the first k values; None for k above n."""
    return float(max(values[:k])) if _defined(len(values), k) else None


def pass_at_k(num_samples: int, num_correct: int, k: int) -> float | None:
    """Probability that k of the n samples, drawn without replacement, hold a right one.

    Computed in exact integers, because factorials of large n underflow as floats.

    Args:
        num_samples: n, all samples of the question.
        num_correct: c, how many of them are right.
        k: Size of the draw; None is returned where it exceeds n.

    Raises:
        ValueError: If c does not lie in [0, n] or k is below 1.

    Example:
        >>> round(pass_at_k(8, 3, 2), 6), pass_at_k(4, 4, 8) is None
        (0.642857, True)

    References:
        Chen et al., `Evaluating Large Language Models Trained on Code
        <https://arxiv.org/abs/2107.03374>`_, 2021, equation 1.
    """
    _check_counts(num_samples, num_correct)
    if not _defined(num_samples, k):
        return None
    missed = Fraction(math.comb(num_samples - num_correct, k), math.comb(num_samples, k))
    return float(1 - missed)


def all_at_k(num_samples: int, num_correct: int, k: int) -> float | None:
    """Probability that k of the n samples, drawn without replacement, are all right.

    Raises:
        ValueError: If c does not lie in [0, n] or k is below 1.

    Example:
        >>> round(all_at_k(8, 3, 2), 6)
        0.107143
    """
    _check_counts(num_samples, num_correct)
    if not _defined(num_samples, k):
        return None
    return float(Fraction(math.comb(num_correct, k), math.comb(num_samples, k)))


def majority_answer(answers: Sequence[str | None]) -> int | None:
    """Position of the first sample that gave the most frequent answer, None where none answers.

    Samples without an answer do not vote. Of tied answers the one seen first wins, so that the
    vote depends on nothing but the samples.

    Example:
        >>> majority_answer(["7", None, "5", "5"]), majority_answer(["7", "5", "5", "7"])
        (2, 0)
    """
    votes: dict[str, int] = {}
    for answer in answers:
        if answer is not None:
            votes[answer] = votes.get(answer, 0) + 1
    if not votes:
        return None
    most = max(votes.values())
    winner = next(answer for answer, count in votes.items() if count == most)
    return list(answers).index(winner)


def maj_at_k(answers: Sequence[str | None], correct: Sequence[bool], k: int) -> float | None:
    """1 where the majority answer of the first k samples is right, else 0; None for k above n.

    Raises:
        ValueError: If the two sequences differ in length.
    """
    if len(answers) != len(correct):
        raise ValueError(f"{len(answers)} answers for {len(correct)} samples")
    if not _defined(len(answers), k):
        return None
    winner = majority_answer(answers[:k])
    return 0.0 if winner is None else float(correct[winner])


def greedy_accuracy(
    correct: Mapping[str, bool], *, clusters: Mapping[str, str] | None = None
) -> Estimate | None:
    """acc@1: the share of questions whose greedy reply is right; None without questions."""
    clusters = clusters or {}
    return estimate(
        [float(right) for right in correct.values()],
        [clusters.get(question, question) for question in correct],
    )


def curves(
    questions: Sequence[Samples], *, ks: Sequence[int] = CURVE, seed: int = 0
) -> dict[str, dict[int, Estimate | None]]:
    """Each metric at each k, with standard errors and intervals clustered by question.

    Metrics whose values no question has (votes, feasibility, ratios) are left out.

    Args:
        questions: All questions of a benchmark or task, with equally many samples.
        ks: Where the curves are evaluated.
        seed: Seed of the bootstrap.

    Raises:
        ValueError: If questions differ in their number of samples or in what they hold.
    """
    if not questions:
        return {}
    n = len(questions[0].correct)
    for row in questions:
        if len(row.correct) != n:
            raise ValueError(
                f"question {row.question!r} has {len(row.correct)} samples, "
                f"{questions[0].question!r} has {n}"
            )
    metrics: dict[str, Callable[[Samples, int], float | None]] = {
        "acc@k": lambda row, k: acc_at_k(row.correct, k),
        "mean@k": lambda row, k: mean_at_k(row.correct, k),
        "pass@k": lambda row, k: pass_at_k(n, sum(row.correct), k),
        "all@k": lambda row, k: all_at_k(n, sum(row.correct), k),
    }
    if _all_hold(questions, "answers"):
        metrics["maj@k"] = lambda row, k: maj_at_k(row.answers, row.correct, k)
    if _all_hold(questions, "feasible"):
        metrics["sr@k"] = lambda row, k: acc_at_k(row.feasible, k)
    if _all_hold(questions, "ratios"):
        metrics["qr@k"] = lambda row, k: best_at_k(row.ratios, k)
    names = [row.question if row.cluster is None else row.cluster for row in questions]
    return {
        name: {k: _mean_over(questions, metric, k, names, seed) for k in ks}
        for name, metric in metrics.items()
    }


def _mean_over(
    questions: Sequence[Samples],
    metric: Callable[[Samples, int], float | None],
    k: int,
    clusters: Sequence[str],
    seed: int,
) -> Estimate | None:
    values = [metric(row, k) for row in questions]
    known = [value for value in values if value is not None]
    return estimate(known, clusters, seed=seed) if len(known) == len(values) else None


def _all_hold(questions: Sequence[Samples], name: str) -> bool:
    held = [bool(getattr(row, name)) for row in questions if row.correct]
    if any(held) and not all(held):
        lacking = next(row.question for row in questions if not getattr(row, name))
        raise ValueError(f"question {lacking!r} has no {name}, others have")
    return bool(held) and all(held)


def _defined(num_samples: int, k: int) -> bool:
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    return k <= num_samples


def _check_counts(num_samples: int, num_correct: int) -> None:
    if not 0 <= num_correct <= num_samples:
        raise ValueError(
            f"num_correct must lie in [0, num_samples={num_samples}], got {num_correct}"
        )
