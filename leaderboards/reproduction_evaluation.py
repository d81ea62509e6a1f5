"""Held-out evaluation of a checkpoint: greedy and sampled replies, graded, as a cell's numbers.

All samples of several questions are decoded together behind prompts that are encoded once. The seed
of a sample depends on run seed, split, question and number alone: all arms draw with the same
random numbers.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluators.benchmark import Question, get_benchmark
from evaluators.diversity import mean_cosine_distance
from evaluators.embedders import Embedder, Unavailable, get_embedder
from evaluators.prompts import build_prompt
from evaluators.question_scores import question_floors, question_scores
from evaluators.records import SampleRecord
from evaluators.rescoring import graded
from leaderboards.reproduction_settings import HeldOut
from npbench import scoring
from npbench.errors import InputError

if TYPE_CHECKING:
    from trainers.policy import Policy
    from trainers.rollouts import Reply

__all__ = [
    "EMBEDDED",
    "Evaluation",
    "Numbers",
    "Sample",
    "evaluate",
    "held_out_questions",
    "numbers_of",
    "question_values",
]

EMBEDDED = 4
"""Questions of a split whose replies' vectors are kept for the picture of the reasoning."""
_QUESTIONS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Sample:
    """One graded reply."""

    record: SampleRecord
    task: str
    entropy: float
    vector: Sequence[float] | None
    """Of its reasoning, where it is kept."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """What follows from questions and graded replies alone."""

    metrics: Mapping[str, float | None]
    tasks: Mapping[str, Mapping[str, float | None]]
    states: Mapping[str, int]
    floors: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a checkpoint did on a split."""

    numbers: Numbers
    reasons: Mapping[str, str]
    samples: tuple[Sample, ...]
    seconds: float
    tokens: int


@lru_cache(maxsize=16)
def held_out_questions(split: HeldOut) -> tuple[Question, ...]:
    """The questions of a split, made or loaded once a process.

    Raises:
        InputError: If a name is unknown or the data cannot be had.
    """
    if split.benchmark:
        source = Path(split.folder) if split.folder else None
        benchmark = get_benchmark(split.benchmark, source=source)
        return tuple(benchmark.questions[: split.questions])
    from npbench.splits import load
    from npbench.suites import get_suite

    levels = split.levels or get_suite(split.suite).levels
    rows = load(
        split.suite,
        levels,
        "test",
        split.seed,
        per_task=split.per_task,
        tasks=split.tasks,
        modality=split.modality,
    )
    return tuple(_question(asdict(rows[i])) for i in range(len(rows)))


def _question(row: Mapping[str, Any]) -> Question:
    hard = scoring.Question.from_row(row)
    picture = row["image"]
    parts = (row["prompt"],) if picture is None else (picture, row["prompt"])
    category = {"task": hard.task.name, "group": hard.group}
    return Question(hard.id, hard.instance_id, parts, None, category, hard)


def _asked(question: Question, split: HeldOut) -> tuple[str, tuple[bytes, ...]]:
    """Text and pictures as the trainers' encoder takes them."""
    if isinstance(question.grading, scoring.Question):
        parts = question.parts
        text = "".join(part for part in parts if isinstance(part, str))
        return text, tuple(part for part in parts if isinstance(part, bytes))
    prompt = build_prompt(question.parts, prompt_format=split.prompt_format)
    text = "".join(part if isinstance(part, str) else "<image>" for part in prompt.parts)
    return text, tuple(prompt.pictures)


def evaluate(
    policy: "Policy",
    split: HeldOut,
    *,
    samples: int,
    seed: int,
    max_tokens: int,
    rows_at_once: int,
    embedder: str,
    base: "Policy",
    keep_vectors: bool,
    progress: Any = lambda replies: None,
) -> Evaluation:
    """Greedy and sampled replies to all questions of a split, graded.

    Args:
        policy: The checkpoint.
        split: The questions.
        samples: Sampled replies to each.
        seed: Of the run.
        max_tokens: Of a reply.
        rows_at_once: Replies decoded together.
        embedder: Of the reasoning: ``base``, ``sentence:NAME`` or ``none``.
        base: The untrained policy, whose hidden states ``base`` takes.
        keep_vectors: Whether vectors of the first questions' reasoning are kept.
        progress: Called with the number of replies that were made.

    Raises:
        InputError: If the questions do not fit the policy.
    """
    from trainers.rollouts import Request, TransformersBackend, sample_seed

    questions = held_out_questions(split)
    if not questions:
        raise InputError(f"split {split.name} has no question")
    backend = TransformersBackend(policy, rows_at_once)
    words: Embedder | Unavailable = (
        Unavailable("base", "hidden states of the base")
        if embedder == "base"
        else get_embedder(embedder)
    )
    started = time.perf_counter()
    found: list[Sample] = []
    values: list[Mapping[str, float | None]] = []
    for start in range(0, len(questions), _QUESTIONS_AT_ONCE):
        batch = questions[start : start + _QUESTIONS_AT_ONCE]
        prompts = [policy.encoder.encode(*_asked(question, split)) for question in batch]
        seeds = [
            tuple(sample_seed(seed, f"held-out {split.name}", q.id, i) for i in range(samples))
            for q in batch
        ]
        asked = [Request(prompt, own) for prompt, own in zip(prompts, seeds, strict=True)]
        drawn = backend.generate(asked, max_tokens=max_tokens)
        firsts = [Request(prompt, own[:1]) for prompt, own in zip(prompts, seeds, strict=True)]
        greedy = backend.generate(firsts, max_tokens=max_tokens, greedy=True)
        for number, question in enumerate(batch):
            replies = (*greedy[number], *drawn[number])
            records = [
                _record(question, split, policy, reply, sample - 1)
                for sample, reply in enumerate(replies)
            ]
            own = question_values(question, records, [reply.entropy for reply in replies], words)
            vectors = None
            if embedder == "base":
                vectors = np.asarray(
                    base.mean_hidden(prompts[number], [reply.ids for reply in drawn[number]])
                    .float()
                    .cpu()
                )
                own["reasoning_distance"] = mean_cosine_distance(vectors).value
            values.append(own)
            kept = vectors if keep_vectors and start + number < EMBEDDED else None
            found += [
                Sample(
                    record,
                    question.category.get("task", split.name),
                    reply.entropy,
                    None if kept is None or not i else [round(float(x), 4) for x in kept[i - 1]],
                )
                for i, (record, reply) in enumerate(zip(records, replies, strict=True))
            ]
        progress(len(batch) * (samples + 1))
    return Evaluation(
        numbers=numbers_of(split, questions, values, [one.record for one in found]),
        reasons=_reasons(values, words),
        samples=tuple(found),
        seconds=time.perf_counter() - started,
        tokens=sum(one.record.num_tokens or 0 for one in found),
    )


def question_values(
    question: Question,
    records: Sequence[SampleRecord],
    entropies: Sequence[float],
    words: Embedder | Unavailable,
) -> dict[str, float | None]:
    """Every metric of one question from its graded replies, the greedy one first.

    Args:
        question: The question.
        records: Its graded replies.
        entropies: Mean entropy of each reply's tokens.
        words: What embeds the reasoning.
    """
    own = dict(question_scores(question, records[0], records[1:], embedder=words).values)
    sampled = records[1:]
    own["entropy"] = float(np.mean(entropies[1:]))
    own["length"] = float(np.mean([record.num_tokens for record in sampled]))
    own["truncated"] = float(np.mean([record.finish_reason == "length" for record in sampled]))
    return own


def numbers_of(
    split: HeldOut,
    questions: Sequence[Question],
    values: Sequence[Mapping[str, float | None]],
    records: Sequence[SampleRecord],
) -> Numbers:
    """The numbers of a cell.

    Args:
        split: Of these questions.
        questions: In order.
        values: Of :func:`question_values`, in the same order.
        records: All graded replies.
    """
    tasks = [question.category.get("task", split.name) for question in questions]
    floors = [question_floors(question) for question in questions]
    return Numbers(
        metrics=_means(values),
        tasks={
            task: _means([own for own, name in zip(values, tasks, strict=True) if name == task])
            for task in dict.fromkeys(tasks)
        },
        states=dict(sorted(Counter(record.state.value for record in records).items())),
        floors={name: float(np.mean([one[name] for one in floors])) for name in sorted(floors[0])},
    )


def _record(
    question: Question, split: HeldOut, policy: "Policy", reply: "Reply", sample: int
) -> SampleRecord:
    """The graded record of a reply; sample -1 is the greedy one."""
    greedy = sample < 0
    record = SampleRecord(
        benchmark=split.benchmark or split.suite,
        id=question.id,
        instance_id=question.instance_id,
        decode="greedy" if greedy else "sampled",
        sample=max(sample, 0),
        seed=None if greedy else reply.seed,
        reply=policy.encoder.decode(reply.ids.tolist()),
        finish_reason=reply.finish_reason,
        num_tokens=len(reply.ids),
        gold=question.gold,
    )
    return graded(question, record)


_DROPPED = (
    "score", "mean@1", "maj@k", "all@k", "acc@k", "mean@k", "sr_at_k", "qr_at_k",
    # of one sampled reply, where acc@1 is the greedy one
    "acc@k 1",
)  # fmt: skip


def _means(values: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """The mean of each metric over the questions that have it; ``acc@k 4`` becomes ``acc@4``."""
    found: dict[str, float | None] = {}
    for name in dict.fromkeys(name for own in values for name in own if name not in _DROPPED):
        known = [value for own in values if (value := own.get(name)) is not None]
        metric, _, k = name.partition("@k ")
        found[f"{metric}@{k}" if k else name] = float(np.mean(known)) if known else None
    return found


def _reasons(
    values: Sequence[Mapping[str, float | None]], words: Embedder | Unavailable
) -> dict[str, str]:
    """Why a diversity is null."""
    means = _means(values)
    found = {}
    if means.get("reasoning_distance") is None:
        found["reasoning_distance"] = "no question has two replies with a direction"
        if isinstance(words, Unavailable) and words.name != "base":
            found["reasoning_distance"] = f"embedder {words.name}: {words.reason}"
    if "solution_distance" in means and means["solution_distance"] is None:
        found["solution_distance"] = "no question has two feasible replies"
    return found
