"""``npbench selfcheck``: every gold must score 1 against itself, through the real grading."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from evaluators.benchmark import Benchmark, Question, get_benchmark
from evaluators.benchmarks._adapter import TableQuestions
from evaluators.golds import AnyOf, Mentions
from evaluators.grading import Gold
from evaluators.perceived import Perceived
from evaluators.records import SampleRecord
from evaluators.rescoring import graded
from npbench.console import progress_bar
from npbench.errors import InputError
from npbench.storage import open_split

__all__ = ["Failure", "gold_replies", "selfcheck", "selfcheck_command"]


@dataclass(frozen=True, slots=True)
class Failure:
    """A gold that does not score against itself."""

    id: str
    reply: str
    reason: str


def gold_replies(gold: Gold) -> tuple[str, ...]:
    r"""The replies that give exactly the gold, each of which must score 1.

    Example:
        >>> gold_replies(AnyOf("0.5", others=(Gold("1/2"),)))
        ('\\boxed{0.5}', '\\boxed{1/2}')
    """
    if isinstance(gold, Perceived):
        return (f"Answer: {gold.text}",)
    if isinstance(gold, Mentions):
        return tuple("; ".join(parts) for parts in gold.alternatives)
    texts = [gold.text]
    if isinstance(gold, AnyOf):
        texts += [other.text for other in gold.others]
    return tuple(rf"\boxed{{{text}}}" for text in texts)


def selfcheck(benchmark: Benchmark, *, source: Path | None = None) -> Iterator[Failure | None]:
    """For each question in order None, or the first failure of its gold.

    Args:
        benchmark: The questions; those of an NP-hard suite have their reference solutions as golds.
        source: The split's folder, for such a suite.
    """
    for question, replies in _asked(benchmark, source):
        failures = (_failure(benchmark, question, reply) for reply in replies)
        yield next((failure for failure in failures if failure is not None), None)


def _asked(benchmark: Benchmark, source: Path | None) -> Iterable[tuple[Question, tuple[str, ...]]]:
    if isinstance(benchmark.questions[0].grading, Gold):
        for question in benchmark.questions:
            assert isinstance(question.grading, Gold)
            yield question, gold_replies(question.grading)
        return
    assert source is not None
    rows = open_split(source).rows(("reference_solution",))
    for question, row in zip(benchmark.questions, rows, strict=True):
        yield question, (f"Answer: {row['reference_solution']}",)


def _failure(benchmark: Benchmark, question: Question, reply: str) -> Failure | None:
    sample = SampleRecord(
        benchmark=benchmark.name,
        id=question.id,
        instance_id=question.instance_id,
        decode="greedy",
        sample=0,
        seed=None,
        reply=reply,
        gold=question.gold,
    )
    verdict = graded(question, sample)
    if verdict.score == 1:
        return None
    why = [f"{verdict.state}, score {verdict.score:g}", verdict.reason, verdict.error or ""]
    return Failure(question.id, reply, "; ".join(part for part in why if part))


@click.command("selfcheck")
@click.argument("benchmark")
@click.option(
    "--from", "source", type=click.Path(path_type=Path), help="Folder of the data; else the Hub."
)
@click.option("--rows", type=click.IntRange(min=1), help="Accept this number of rows.")
def selfcheck_command(benchmark: str, source: Path | None, rows: int | None) -> None:
    """Check that every gold of BENCHMARK scores 1 against itself.

    Each gold goes through the real extraction and grading. Failures are printed one a line; with
    any of them the exit code is 1.
    """
    try:
        loaded = get_benchmark(benchmark, source=source, rows=rows)
        total = len(loaded.questions)
        failed = 0
        with progress_bar(f"selfcheck {benchmark}") as update:
            update(0, total)
            for done, failure in enumerate(selfcheck(loaded, source=source), 1):
                update(done, total)
                if failure is not None:
                    failed += 1
                    click.echo(f"{failure.id}: {failure.reply!r} scores below 1: {failure.reason}")
    except ImportError as error:
        raise InputError(str(error)) from None
    if isinstance(loaded.questions, TableQuestions):
        for entry in loaded.questions.left_out:
            click.echo(f"{entry.id} is left out: {entry.reason}")
    click.echo(f"{benchmark}: {total - failed} of {total} golds score 1 against themselves")
    if failed:
        raise click.exceptions.Exit(1)
