"""The shell around a run: benchmarks chosen and narrowed, runs made, graded again and compared."""

import platform
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from evaluators.backends.base import Backend
from evaluators.benchmark import Benchmark, Question, get_benchmark
from evaluators.embedders import Embedder, Unavailable
from evaluators.golds import Judge
from evaluators.grading import State
from evaluators.rescoring import GRADERS, regraded
from evaluators.run_folder import MANIFEST, RunFolder, SampleIndex, read_manifest, scan
from evaluators.runner import Outcome, RunSettings, make_manifest, run
from evaluators.summary import summarize
from npbench.errors import InputError

__all__ = ["Choice", "choose", "evaluate", "failed_share", "grade_again"]

SUMMARY = "summary.json"


@dataclass(frozen=True, slots=True)
class Choice:
    """Which questions a run asks; what a manifest says of them and finds them by."""

    benchmark: Benchmark
    source: str | None
    modality: str | None
    limit: int | None
    rows: int | None


def choose(
    name: str | None,
    *,
    source: Path | None,
    modality: str | None = None,
    limit: int | None = None,
    rows: int | None = None,
) -> Choice:
    """The questions of a benchmark, all of them or some.

    Args:
        name: The benchmark; None is that of the split in ``source``.
        source: A folder of the data.
        modality: Keep the questions of this modality alone.
        limit: Keep the first so many.
        rows: The number of rows that the data may have instead of the official one.

    Raises:
        InputError: If there is no such benchmark, data or question.
    """
    if name is None:
        from evaluators.benchmarks.np_bench import split_benchmark

        if source is None:
            raise InputError("give --data DIR or --benchmark NAME")
        benchmark = split_benchmark(source)
    else:
        benchmark = get_benchmark(name, source=source, rows=rows)
    if limit is not None and limit < 1:
        raise InputError(f"limit must be at least 1, got {limit}")
    questions: Sequence[Question] = benchmark.questions
    if modality is not None:
        shown = [question.category.get("modality") for question in questions]
        chosen = [number for number, found in enumerate(shown) if found == modality]
        if not chosen:
            known = sorted({found for found in shown if found is not None})
            raise InputError(
                f"{benchmark.name} has no question of modality {modality!r}; it has: "
                f"{', '.join(known) or 'none named'}"
            )
        questions = _Chosen(questions, chosen[:limit])
    elif limit is not None:
        questions = _Chosen(questions, range(min(limit, len(questions))))
    if not questions:
        raise InputError(f"{benchmark.name} has no questions")
    where = str(source.resolve()) if source is not None else None
    return Choice(replace(benchmark, questions=questions), where, modality, limit, rows)


class _Chosen(Sequence[Any]):
    """Some questions of a benchmark, each taken from it when it is asked for."""

    def __init__(self, questions: Sequence[Question], numbers: Sequence[int]) -> None:
        self._questions = questions
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._questions[number] for number in self._numbers[index]]
        return self._questions[self._numbers[index]]


def evaluate(
    choice: Choice,
    backend: Backend,
    settings: RunSettings,
    out: Path,
    *,
    command: str,
    embedder: Embedder | Unavailable,
    judge: Judge | None = None,
    progress: Callable[[int, int], None] | None = None,
    stopping: Callable[[], None] | None = None,
) -> tuple[Outcome, dict[str, Any] | None]:
    """Run an evaluation in a folder, or finish one; the summary is None where it is not whole.

    A judge is asked when all replies are there, so that it never holds up the model.

    Raises:
        InputError: If the folder holds another run or anything else.
    """
    manifest = make_manifest(
        choice.benchmark,
        backend.describe(),
        settings,
        backend=backend.name,
        command=command,
        commit=_commit(),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        benchmark_notes={
            "limit": choice.limit,
            "accepted_rows": choice.rows,
            "modality": choice.modality,
            "source": choice.source,
        },
        versions={"python": platform.python_version(), "npbench": version("npbench")},
    )
    with RunFolder(out) as folder:
        index = folder.claim(manifest)
        outcome = run(
            choice.benchmark,
            backend,
            settings,
            folder,
            index,
            progress=progress,
            stopping=stopping,
        )
        if outcome.interrupted or outcome.done < outcome.total:
            return outcome, None
        if judge is not None:
            made = regraded(folder, scan(folder.samples), choice.benchmark, judge=judge)
            folder.rewrite(made)
        found = scan(folder.samples)
        found.torn = index.torn
        summary = summarize(choice.benchmark, folder, found, read_manifest(out), embedder=embedder)
        folder.write_json(SUMMARY, summary)
    return outcome, summary


def grade_again(
    out: Path,
    *,
    source: Path | None,
    embedder: Embedder | Unavailable,
    judge: Judge | None = None,
    judged_by: str | None = None,
    only: State | None = None,
) -> dict[str, Any]:
    """Grade all replies of a run afresh and summarise it.

    Args:
        out: The run.
        source: Where the data lies now; None takes the folder that the manifest names.
        embedder: For the diversity of reasoning.
        judge: Asked where the official metric has one.
        judged_by: What the manifest says of the judge.
        only: Grade the samples in this state alone.

    Raises:
        InputError: If there is no run, its data differs from what was asked, or samples lack.
    """
    manifest = read_manifest(out)
    stated = manifest["benchmark"]
    given = source or (Path(stated["source"]) if stated["source"] else None)
    benchmark = choose(
        stated["name"],
        source=given,
        modality=stated["modality"],
        limit=stated["limit"],
        rows=stated["accepted_rows"],
    ).benchmark
    if benchmark.dataset_hash != stated["dataset_hash"]:
        raise InputError(
            f"the data in {given} is not what {out} was asked: its hash is "
            f"{benchmark.dataset_hash[:16]}, the run's {str(stated['dataset_hash'])[:16]}"
        )
    if only is not None and (manifest["grader"], manifest["judge"]) != (GRADERS, judged_by):
        raise InputError(
            f"{out} was graded by {manifest['grader']} and the judge {manifest['judge']}: grade "
            f"all of it, or use the same"
        )
    with RunFolder(out) as folder:
        folder.hold()
        index = scan(folder.samples)
        _refuse_foreign(out, index, benchmark)
        chosen = None if only is None else (only,)
        folder.rewrite(regraded(folder, index, benchmark, judge=judge, only=chosen))
        if only is None:
            manifest = {**manifest, "grader": GRADERS, "judge": judged_by}
        folder.write_json(MANIFEST, manifest)
        summary = summarize(benchmark, folder, scan(folder.samples), manifest, embedder=embedder)
        folder.write_json(SUMMARY, summary)
    return summary


def _refuse_foreign(out: Path, index: SampleIndex, benchmark: Benchmark) -> None:
    """Samples of other questions would be lost when all are written again."""
    known = {question.id for question in benchmark.questions}
    foreign = sorted({key[0] for key in index.entries if key[0] not in known})
    if foreign:
        raise InputError(
            f"{out} holds samples of {len(foreign)} questions that {benchmark.name} does not have, "
            f"such as {foreign[0]!r}; take them out of samples.jsonl first"
        )


def failed_share(summary: Mapping[str, Any]) -> float:
    """The share of samples of a run that failed or could not be judged."""
    rates = summary["overall"]["rates"]
    return float(rates["failed"] + rates["judge_failed"])


def _commit() -> str | None:
    """The commit of this code where it is a checkout."""
    root = Path(__file__).resolve().parents[1]
    if not (root / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
