"""Verdicts on the samples of a run: nothing but the question and the reply decides."""

import json
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice

from evaluators.benchmark import Benchmark, Question
from evaluators.golds import Judge, score_reply
from evaluators.grading import GRADER_VERSION, Gold, State
from evaluators.perceived import Perceived, score_facts
from evaluators.records import SampleRecord
from evaluators.run_folder import RunFolder, SampleIndex
from npbench import scoring
from npbench.errors import ParseError

__all__ = ["GRADERS", "graded", "regraded"]

GRADERS = f"grading {GRADER_VERSION}, npbench.scoring of the benchmark's version"
"""What a manifest says of the graders."""


_NOT_GRADED = (State.FAILED, State.JUDGE_FAILED)
_JUDGED_AT_ONCE = 8
_QUESTIONS_AHEAD = 64


def graded(question: Question, record: SampleRecord, *, judge: Judge | None = None) -> SampleRecord:
    """The record with a fresh verdict; an old one is never read.

    A sample without a reply stays failed. Whatever a grader raises makes the sample failed with
    the error's text and keeps its reply, which can be graded again.

    Args:
        question: What was asked.
        record: A sample of it.
        judge: Asked where the official metric has a judge; None leaves all to the rules.
    """
    bare = replace(
        record,
        state=State.FAILED,
        extracted=None,
        extract_stage=None,
        score=0.0,
        acc=0,
        objective=None,
        grade_stage=None,
        reason="",
        rule="",
        error=record.error if record.reply is None else None,
    )
    if record.reply is None:
        return bare
    try:
        if isinstance(question.grading, Gold):
            return _answered(question.grading, bare, record.reply, judge)
        return _solved(question.grading, bare, record.reply)
    except Exception as error:  # noqa: BLE001 -- the boundary at which failures become records
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return replace(bare, error=f"not graded: {text}")


def _answered(gold: Gold, record: SampleRecord, reply: str, judge: Judge | None) -> SampleRecord:
    truncated = record.finish_reason == "length"
    if isinstance(gold, Perceived):
        scored = score_facts(reply, gold, truncated=truncated)
    else:
        scored = score_reply(reply, gold, truncated=truncated, judge=judge)
    return replace(
        record,
        state=scored.state,
        extracted=scored.extracted,
        extract_stage=scored.extract_stage,
        score=scored.score,
        acc=int(scored.state is State.RIGHT),
        grade_stage=scored.stage,
        reason=scored.reason,
        error=f"not graded: {scored.reason}" if scored.state in _NOT_GRADED else None,
    )


def _solved(question: scoring.Question, record: SampleRecord, reply: str) -> SampleRecord:
    """The verdict of the task's parser and verifier."""
    task = question.task
    try:
        solution = task.parse(reply)
    except ParseError as error:
        state = State.UNPARSED if reply.strip() else State.EMPTY
        state = State.TRUNCATED if record.finish_reason == "length" else state
        return replace(record, state=state, grade_stage="parser", reason=str(error))
    answer = scoring.grade(question, reply)
    verdict = task.verify(question.instance, solution)
    return replace(
        record,
        state=State(answer.state),
        extracted=json.dumps(solution),
        extract_stage="parser",
        score=answer.ratio,
        acc=int(answer.optimal),
        objective=verdict.objective,
        grade_stage="verifier",
        reason=verdict.reason,
        rule=verdict.rule,
    )


def regraded(
    folder: RunFolder,
    index: SampleIndex,
    benchmark: Benchmark,
    *,
    judge: Judge | None = None,
    only: Collection[State] | None = None,
) -> Iterator[SampleRecord]:
    """All samples of a run with fresh verdicts, question by question.

    Args:
        folder: The run.
        index: Its samples.
        benchmark: What was asked.
        judge: Asked about several samples at once.
        only: Grade the samples in these states alone and leave the others as they are.
    """
    keys = index.by_question()

    def again(pair: tuple[Question, SampleRecord]) -> SampleRecord:
        question, record = pair
        if only is not None and record.state not in only:
            return record
        return graded(question, record, judge=judge)

    pairs = (
        (question, record)
        for question in benchmark.questions
        for record in folder.records(index, keys.get(question.id, []))
    )
    if judge is None:
        yield from map(again, pairs)
        return
    with ThreadPoolExecutor(_JUDGED_AT_ONCE) as pool:
        while ahead := list(islice(pairs, _QUESTIONS_AHEAD)):
            yield from pool.map(again, ahead)
