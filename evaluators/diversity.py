r"""How different the samples of one question are: reasoning, solutions, and what it buys.

Quality is no measure of diversity: a policy can repeat one good answer. The signature of mode
collapse is a high success rate with a low quality ratio and low diversity, so the three are kept
apart. A number that cannot be had is None with a reason, never 0.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from evaluators.embedders import Embedder, Unavailable
from evaluators.extraction import find_answers
from evaluators.reasoning import split_reasoning
from npbench.task import Task

__all__ = [
    "Diversity",
    "Line",
    "ReasoningSpread",
    "SolutionSpread",
    "fitted_line",
    "mean_cosine_distance",
    "project",
    "reasoning_segment",
    "reasoning_spread",
    "solution_spread",
]

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Diversity:
    """A diversity value, or None and why."""

    value: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ReasoningSpread:
    """How far apart the reasonings of each question are."""

    embedder: str
    mean: Diversity
    """Mean over the questions that have at least two reasonings."""
    by_question: Mapping[str, Diversity]


@dataclass(frozen=True, slots=True)
class SolutionSpread:
    """How different the feasible solutions of one instance are."""

    samples: int
    feasible: int
    distinct: int
    """Feasible solutions that differ by the task's canonical form."""
    distance: Diversity
    """Mean over all pairs of feasible samples; equal ones are at distance 0."""


@dataclass(frozen=True, slots=True)
class Line:
    """A least-squares line through one point a method or question."""

    slope: float
    intercept: float
    correlation: float | None
    """Pearson's; None where the second coordinate does not vary."""
    points: int


def reasoning_segment(reply: str) -> str:
    """The text in which a reply reasons: its think block, or all of it before the final answer.

    Example:
        >>> reasoning_segment("<think>2 + 2 is 4</think>Answer: 4")
        '2 + 2 is 4'
        >>> reasoning_segment("Two and two make four. Answer: 4")
        'Two and two make four.'
    """
    split = split_reasoning(reply)
    if split.reasoning is not None:
        return split.reasoning
    found = next(iter(find_answers(split.answer)), None)
    return split.answer if found is None else split.answer[: found.start].rstrip("$*[\\ \n")


def mean_cosine_distance(vectors: Array) -> Diversity:
    """Mean of ``1 - cos`` over all pairs of rows.

    Args:
        vectors: One row a sample. A row of zeros has no direction and makes the value undefined.

    Example:
        >>> mean_cosine_distance(np.array([[1.0, 0.0], [0.0, 2.0]])).value
        1.0
    """
    rows = np.asarray(vectors, dtype=float)
    if len(rows) < 2:
        return Diversity(None, f"{len(rows)} samples have no pair")
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    if not np.isfinite(rows).all() or (norms == 0).any():
        return Diversity(None, "a sample's vector has no direction")
    rows = rows / norms
    cosines = np.clip(rows @ rows.T, -1.0, 1.0)
    return Diversity(float(np.mean(1.0 - cosines[np.triu_indices(len(rows), k=1)])))


def reasoning_spread(
    replies: Mapping[str, Sequence[str]], embedder: Embedder | Unavailable
) -> ReasoningSpread:
    """Mean pairwise cosine distance of the reasoning of each question's samples.

    Samples without any reasoning text are left out of their question.

    Args:
        replies: The replies to each question.
        embedder: What turns reasoning into vectors.
    """
    if isinstance(embedder, Unavailable):
        missing = Diversity(None, f"embedder {embedder.name}: {embedder.reason}")
        return ReasoningSpread(embedder.name, missing, dict.fromkeys(replies, missing))
    segments = {
        question: [text for text in map(reasoning_segment, row) if text]
        for question, row in replies.items()
    }
    flat = [text for row in segments.values() for text in row]
    vectors = embedder.embed(flat) if flat else np.zeros((0, 1))
    by_question = {}
    start = 0
    for question, row in segments.items():
        by_question[question] = mean_cosine_distance(vectors[start : start + len(row)])
        start += len(row)
    known = [row.value for row in by_question.values() if row.value is not None]
    mean = (
        Diversity(float(np.mean(known)))
        if known
        else Diversity(None, "no question has two samples with reasoning")
    )
    return ReasoningSpread(embedder.name, mean, by_question)


def solution_spread(
    task: Task[Any, Any], instance: object, solutions: Sequence[object]
) -> SolutionSpread:
    """Distinct solutions and their mean pairwise distance, by the task's own definitions.

    Args:
        task: Says what is feasible, what is the same, and how far apart two solutions are.
        instance: An instance of the task.
        solutions: Parsed answers of all samples that have one; infeasible ones are counted only.
    """
    feasible = [row for row in solutions if task.verify(instance, row).feasible]
    forms: list[Hashable] = [task.canonical(instance, row) for row in feasible]
    pairs = [
        0.0 if forms[one] == forms[two] else task.distance(instance, feasible[one], feasible[two])
        for one, two in combinations(range(len(feasible)), 2)
    ]
    distance = (
        Diversity(float(np.mean(pairs)))
        if pairs
        else Diversity(None, f"{len(feasible)} feasible samples have no pair")
    )
    return SolutionSpread(len(solutions), len(feasible), len(set(forms)), distance)


def fitted_line(diversity: Sequence[float], accuracy: Sequence[float]) -> Line | None:
    """Least-squares line of accuracy (acc@4, say) against diversity.

    None where there are fewer than two points or all have the same diversity.

    Raises:
        ValueError: If the two sequences differ in length.

    Example:
        >>> line = fitted_line([0.1, 0.2, 0.3], [0.4, 0.5, 0.6])
        >>> round(line.slope, 6), round(line.intercept, 6), round(line.correlation, 6)
        (1.0, 0.3, 1.0)
    """
    if len(diversity) != len(accuracy):
        raise ValueError(f"{len(diversity)} diversities for {len(accuracy)} accuracies")
    x, y = np.asarray(diversity, dtype=float), np.asarray(accuracy, dtype=float)
    if len(x) < 2 or np.ptp(x) == 0:
        return None
    dx, dy = x - x.mean(), y - y.mean()
    slope = float(dx @ dy / (dx @ dx))
    spread = float(np.sqrt((dx @ dx) * (dy @ dy)))
    correlation = float(dx @ dy) / spread if spread > 0 else None
    return Line(slope, float(y.mean() - slope * x.mean()), correlation, len(x))


def project(vectors: Array, *, method: str = "tsne", seed: int = 0) -> Array:
    """Points in the plane for a picture: one row a sample, two columns.

    Args:
        vectors: One row a sample.
        method: ``tsne`` or ``pca``.
        seed: Seed of the projection.

    Raises:
        ValueError: If the method is unknown or there are fewer than three samples.
        ImportError: If scikit-learn is not installed.
    """
    projectors: dict[str, Callable[[Array, int], Array]] = {"tsne": _tsne, "pca": _pca}
    if method not in projectors:
        raise ValueError(f"method must be tsne or pca, got {method!r}")
    rows = np.asarray(vectors, dtype=float)
    if len(rows) < 3:
        raise ValueError(f"a projection needs at least 3 samples, got {len(rows)}")
    try:
        return projectors[method](rows, seed)
    except ImportError as error:
        raise ImportError(f"the {method} projection needs: pip install scikit-learn") from error


def _tsne(rows: Array, seed: int) -> Array:
    from sklearn.manifold import (  # type: ignore[import-not-found, import-untyped, unused-ignore]
        TSNE,
    )

    perplexity = min(30.0, (len(rows) - 1) / 3)
    model = TSNE(n_components=2, perplexity=perplexity, init="random", random_state=seed)
    return np.asarray(model.fit_transform(rows))


def _pca(rows: Array, seed: int) -> Array:
    from sklearn.decomposition import (  # type: ignore[import-not-found, import-untyped, unused-ignore]
        PCA,
    )

    points = np.asarray(
        PCA(n_components=min(2, rows.shape[1]), random_state=seed).fit_transform(rows)
    )
    return points if points.shape[1] == 2 else np.pad(points, ((0, 0), (0, 1)))
