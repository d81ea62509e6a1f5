"""The benchmarks by name, each with the module of this package that loads it."""

from collections.abc import Mapping
from types import MappingProxyType

from evaluators.benchmarks._names import QUESTION_BENCHMARKS

__all__ = ["BENCHMARKS"]

BENCHMARKS: Mapping[str, str] = MappingProxyType(
    {
        "np-bench": "np_bench",
        "mm-np-bench": "np_bench",
        "nano": "np_bench",
        "np-perception": "np_perception",
        **QUESTION_BENCHMARKS,
    }
)
"""Name to module; the module's ``load(name, *, source, rows)`` makes the ``Benchmark``."""
