"""The only place where seeds are mixed: a stream of its own for every instance."""

import hashlib
import json
from collections.abc import Mapping

import numpy as np

__all__ = ["digest", "instance_rng", "stream"]


def digest(*parts: object) -> str:
    """SHA-256 (hex) of the canonical JSON text of ``parts``; equal in every process and version."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def stream(*parts: object) -> np.random.Generator:
    """A PCG64 generator seeded by the first 128 bits of the digest of ``parts``."""
    return np.random.Generator(np.random.PCG64(int(digest(*parts)[:32], 16)))


def instance_rng(
    *,
    version: str,
    task: str,
    level: str,
    params: Mapping[str, object],
    split: str,
    seed: int,
    index: int,
    purpose: str = "instance",
) -> np.random.Generator:
    """The stream of one instance.

    Everything that identifies the instance is hashed, so neighbouring seeds share nothing and any
    index can be drawn alone, in any order and in any process. Modality and style do not enter:
    picture and text of an index show the same instance.

    Args:
        version: Benchmark version.
        task: Task name.
        level: Level name.
        params: The level's sizes after ``--param`` overrides.
        split: ``train``, ``validation`` or ``test``.
        seed: The user's seed.
        index: Position within (task, level, split, seed).
        purpose: Keeps the streams of one instance apart (its drawing, its random floor).
    """
    return stream("npbench", version, task, level, dict(params), split, seed, index, purpose)
