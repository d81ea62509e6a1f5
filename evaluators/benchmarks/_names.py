"""The question-answering benchmarks by name, each with the module that loads it."""

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["QUESTION_BENCHMARKS"]

QUESTION_BENCHMARKS: Mapping[str, str] = MappingProxyType(
    {
        "mathverse": "mathverse",
        "mathverse-text": "mathverse",
        "mathvista": "mathvista",
        "mathvision": "mathvision",
        "mathvision-testmini": "mathvision",
        "logicvista": "logicvista",
        "we-math": "we_math",
        "geometry3k": "geometry3k",
        "geometry3k-choice": "geometry3k",
        "mmstar": "mmstar",
        "hallusionbench": "hallusionbench",
        "hallusionbench-image": "hallusionbench",
        "mm-vet": "mm_vet",
        "mmmu": "mmmu",
        "ai2d": "ai2d",
        "aime24": "text_math",
        "aime25": "text_math",
        "amc23": "text_math",
        "math-500": "text_math",
        "minerva": "text_math",
        "olympiadbench": "olympiadbench",
    }
)
"""Name to module of this package."""
