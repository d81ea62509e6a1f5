"""A benchmark as a record: its questions, how they are graded, and what it alone counts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from evaluators.benchmarks import BENCHMARKS
from evaluators.grading import Gold
from evaluators.records import SampleRecord
from npbench import scoring
from npbench.errors import unknown_name

__all__ = ["Benchmark", "Question", "get_benchmark", "no_extra_metrics"]


@dataclass(frozen=True, slots=True)
class Question:
    """One question: what is shown, what is right, and where it counts."""

    id: str
    instance_id: str
    """The problem that several questions may share: the cluster of every interval."""
    parts: tuple[str | bytes, ...]
    """Text and encoded pictures, in the order in which they are shown."""
    gold: str | None
    """The right answer as the data has it, None for NP-hard tasks."""
    category: Mapping[str, str]
    """``task`` and ``group`` for the averages, and what else results are broken down by."""
    grading: Gold | scoring.Question


def no_extra_metrics(records: Sequence[SampleRecord]) -> Mapping[str, Any]:
    """No metrics beside those that every benchmark has."""
    return {}


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Questions in their order, and the metrics that only this benchmark has."""

    name: str
    version: str
    """A change of a question, a prompt or a gold comes with a new version."""
    questions: Sequence[Question]
    dataset_hash: str
    aggregate: Callable[[Sequence[SampleRecord]], Mapping[str, Any]] = no_extra_metrics
    """The official metric families, from all graded samples."""


def get_benchmark(name: str, *, source: Path | None, rows: int | None = None) -> Benchmark:
    """The benchmark called ``name``.

    Its module ``evaluators.benchmarks.<module>`` is imported now, and its function
    ``load(name, *, source, rows)`` makes the benchmark.

    Args:
        name: A name of ``evaluators.benchmarks.BENCHMARKS``.
        source: A folder of the data; None takes it from the Hub.
        rows: The number of rows to accept; None accepts the official one only.

    Raises:
        InputError: If the name is unknown or the data is not what it should be.
    """
    if name not in BENCHMARKS:
        raise unknown_name("benchmark", name, BENCHMARKS)
    module = import_module(f"evaluators.benchmarks.{BENCHMARKS[name]}")
    benchmark: Benchmark = module.load(name, source=source, rows=rows)
    return benchmark
