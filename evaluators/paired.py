"""Two runs on the same questions: the paired difference of every metric that both have."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evaluators.grading import State
from evaluators.records import SampleRecord
from evaluators.run_folder import SAMPLES, RunFolder, read_manifest, scan
from evaluators.uncertainty import compare_runs
from npbench.errors import InputError

__all__ = ["compare_folders", "settings_that_differ"]

_COMPARABLE = ("prompt_format", "prompt_hash", "system_prompt", "pixels", "sampling", "grader")
"""Fields of a manifest that make two scores incomparable where they differ."""

_FEASIBLE = (State.RIGHT, State.FEASIBLE)


def settings_that_differ(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """Why two runs may differ besides the model: the fields with both values."""
    return [
        f"{name}: {first.get(name)} against {second.get(name)}"
        for name in _COMPARABLE
        if first.get(name) != second.get(name)
    ]


def compare_folders(first: Path, second: Path) -> dict[str, Any]:
    """The first run minus the second, paired by question, clustered by instance.

    Returns:
        ``runs``, ``differing`` settings, and ``metrics``: for each its value in both runs and the
        difference with interval and p-value, pooled over questions.

    Raises:
        InputError: If the runs asked different questions, or have no metric in common.
    """
    manifests = [read_manifest(folder) for folder in (first, second)]
    asked = [manifest["benchmark"] for manifest in manifests]
    for name in ("name", "version", "dataset_hash"):
        if asked[0][name] != asked[1][name]:
            raise InputError(
                f"the runs asked different questions: benchmark.{name} is {asked[0][name]} in "
                f"{first} and {asked[1][name]} in {second}"
            )
    (one, clusters), (two, _) = _values(first), _values(second)
    metrics: dict[str, Any] = {}
    for name in one:
        if name not in two:
            continue
        try:
            difference = compare_runs(one[name], two[name], clusters=clusters)
        except ValueError as error:
            raise InputError(f"{first} and {second} cannot be compared: {error}") from None
        metrics[name] = {
            "first": _mean(one[name]),
            "second": _mean(two[name]),
            **asdict(difference),
        }
    if not metrics:
        raise InputError(f"{first} and {second} have no metric in common")
    return {
        "runs": [str(first), str(second)],
        "models": [manifest["model"]["name"] for manifest in manifests],
        "differing": settings_that_differ(*manifests),
        "metrics": metrics,
    }


def _values(folder: Path) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """Each metric's value by question, and the cluster of each question."""
    run = RunFolder(folder)
    index = scan(folder / SAMPLES)
    metrics: dict[str, dict[str, float]] = {}
    clusters: dict[str, str] = {}
    for question, keys in index.by_question().items():
        records = run.records(index, keys)
        clusters[question] = records[0].instance_id
        for name, value in _of_question(records).items():
            metrics.setdefault(name, {})[question] = value
    return metrics, clusters


def _of_question(records: Sequence[SampleRecord]) -> dict[str, float]:
    greedy = [record for record in records if record.decode == "greedy"]
    sampled = [record for record in records if record.decode == "sampled"]
    values = {}
    if greedy:
        values["acc@1"] = float(greedy[0].acc)
    if sampled:
        values["mean@k"] = _average(sampled, lambda record: float(record.acc))
        values["acc@k"] = float(any(record.acc for record in sampled))
    if records[0].gold is None:
        counted = sampled or greedy
        values["sr"] = _average(counted, lambda record: float(record.state in _FEASIBLE))
        values["qr"] = _average(counted, lambda record: record.score)
        values["qr_at_k"] = max(record.score for record in counted)
    return values


def _average(records: Sequence[SampleRecord], value: Callable[[SampleRecord], float]) -> float:
    return sum(map(value, records)) / len(records)


def _mean(values: Mapping[str, float]) -> float:
    return sum(values.values()) / len(values)
