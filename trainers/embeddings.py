"""Vectors of replies for clustering and diversity: of their answers, or of their reasoning.

N replies of one question, D dimensions.
"""

import itertools
import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluators.embedders import Embedder, Unavailable, get_embedder
from evaluators.extraction import find_answers
from npbench import solutions
from npbench.errors import InputError, ParseError
from npbench.tasks import get_task
from trainers.data import Question
from trainers.segments import reasoning_segment

__all__ = ["answer_features", "sentence_vectors", "solution_vectors"]

Features = frozenset[Hashable]
Array = NDArray[np.float64]


def _members(solution: Any) -> Features:
    return frozenset(solution)


def _rows(solution: Any) -> Features:
    return frozenset(tuple(row) for row in solution)


def _edges(solution: Any) -> Features:
    return frozenset((min(u, v), max(u, v)) for u, v in itertools.pairwise(solution))


def _alike(solution: Any) -> Features:
    """Pairs of vertices of one colour, so that names of colours do not matter."""
    pairs = itertools.combinations(range(len(solution)), 2)
    return frozenset((u, v) for u, v in pairs if solution[u] == solution[v])


def _together(solution: Any) -> Features:
    """Pairs of vertices on one side, so that the order of the sides does not matter."""
    return frozenset(
        pair for side in solution for pair in itertools.combinations(sorted(set(side)), 2)
    )


_FEATURES: Mapping[Callable[..., float], Callable[[Any], Features]] = {
    solutions.set_distance: _members,
    solutions.row_distance: _rows,
    solutions.cycle_distance: _edges,
    solutions.colouring_distance: _alike,
    solutions.side_distance: _together,
}


def answer_features(question: Question, reply: str) -> Features:
    """What a reply's answer is made of, feasible or not; empty where none can be read.

    On NP tasks: chosen vertices or items, edges of a tour, pairs that share a colour or a side. On
    other questions: the answer's text.
    """
    if not question.is_np:
        found = next(iter(find_answers(reply)), None)
        return frozenset() if found is None else frozenset([found.text])
    task = get_task(question.row["task"])
    try:
        solution = task.parse(reply)
    except ParseError:
        return frozenset()
    return _FEATURES[task.distance](solution)


def solution_vectors(question: Question, replies: Sequence[str]) -> Array:
    """Indicator vectors of the replies' answers over all features that occur among them."""
    features = [answer_features(question, reply) for reply in replies]
    names = {name: place for place, name in enumerate(sorted(set().union(*features), key=_key))}
    vectors = np.zeros((len(replies), max(len(names), 1)))
    for vector, found in zip(vectors, features, strict=True):
        for name in found:
            vector[names[name]] = 1.0
    return vectors


def _key(feature: Hashable) -> str:
    return json.dumps(feature)


def sentence_vectors(name: str) -> Callable[[Sequence[str]], Array]:
    """A function from replies to vectors of their reasoning segments.

    Raises:
        InputError: If the embedder cannot be had; the message says why.
    """
    found: Embedder | Unavailable = get_embedder(name)
    if isinstance(found, Unavailable):
        raise InputError(f"loss.embedding {name!r} cannot be used: {found.reason}")
    embed = found.embed
    return lambda replies: np.asarray(
        embed([reasoning_segment(reply) for reply in replies]), dtype=np.float64
    )
