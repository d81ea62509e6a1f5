"""Supervised stages: cross-entropy on given replies, in the same loop as everything else.

Which rows a step holds is a function of seed and step, so there is nothing to keep between steps.

B rows of a step, R rows of a micro-batch, T tokens.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import torch

from npbench.errors import InputError
from npbench.rng import stream
from npbench.tasks import get_task
from trainers.config import Config
from trainers.data import Question, questions
from trainers.encoding import Prompt
from trainers.learner import Learner, apply_gradient
from trainers.losses import Counts, mask_from_lengths
from trainers.sections import StageSettings

__all__ = ["READING", "Lesson", "Lessons", "imitate", "target_reply"]

READING = (
    "The picture shows a graph with numbered vertices. For each pair of vertices in the order 0-1, "
    "0-2, ..., 1-2, ... write 1 where an edge joins them and 0 where none does."
)
"""The prompt of the target ``edges``: perception before answers."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """A question and the reply that is to be learnt."""

    question: Question
    prompt: str
    reply: str


def target_reply(question: Question, target: str, rng: Any) -> Lesson:
    """What is to be replied to a question.

    Raises:
        InputError: If the question has no such target.
    """
    if target == "column":
        reply = question.row.get("target")
        if not reply:
            raise InputError(f"question {question.id} has no column 'target'")
        return Lesson(question, question.prompt, str(reply))
    if not question.is_np:
        raise InputError(f"question {question.id} is no NP task: its target must be 'column'")
    instance = json.loads(question.row["instance"])
    if target == "edges":
        if "edges" not in instance:
            raise InputError(f"question {question.id} shows no graph whose edges could be read")
        joined = {(min(edge[:2]), max(edge[:2])) for edge in instance["edges"]}
        pairs = combinations(range(instance["num_vertices"]), 2)
        return Lesson(question, READING, "".join(str(int(pair in joined)) for pair in pairs))
    if target == "reference":
        return Lesson(question, question.prompt, _answer(question.row["reference_solution"]))
    task = get_task(question.row["task"])
    solution = task.solvers[target](task.decode(instance), rng)
    return Lesson(question, question.prompt, _answer(json.dumps(solution)))


def _answer(solution: str) -> str:
    return f"Answer: {json.dumps(json.loads(solution))}"


class Lessons:
    """The rows of all stages."""

    def __init__(self, config: Config) -> None:
        """Opens the sources of all stages."""
        self._config = config
        self._sources = [[questions(mix.data) for mix in stage.mix] for stage in config.stages]

    def _stage(self, step: int) -> tuple[StageSettings, list[Sequence[Question]]]:
        for stage, sources in zip(self._config.stages, self._sources, strict=True):
            if step < stage.steps:
                return stage, sources
            step -= stage.steps
        raise ValueError(f"step must lie in the stages, it is {step} beyond them")

    def rows(self, step: int) -> list[Lesson]:
        """The rows of a step, each drawn from the stage's mix by its weights."""
        stage, sources = self._stage(step)
        weights = [mix.weight for mix in stage.mix]
        shares = [weight / sum(weights) for weight in weights]
        rng = stream("npbench-train", "lessons", self._config.seed, step)
        found = []
        for _ in range(self._config.prompts_per_step):
            number = int(rng.choice(len(sources), p=shares))
            source = sources[number]
            question = source[int(rng.integers(len(source)))]
            found.append(target_reply(question, stage.mix[number].target, rng))
        return found


def imitate(learner: Learner, lessons: Sequence[Lesson], *, step: int) -> dict[str, float]:
    """One optimiser step on given replies; numbers to log."""
    encoder, policy, config = learner.policy.encoder, learner.policy, learner.config
    end = torch.tensor([encoder.tokenizer.eos_token_id])
    prompts = [encoder.encode(lesson.prompt, lesson.question.images) for lesson in lessons]
    replies = [torch.cat([torch.tensor(encoder.ids(lesson.reply)), end]) for lesson in lessons]
    tokens = sum(len(reply) for reply in replies)
    counts = Counts(tokens=tokens, sequences=len(replies), groups=len(replies))
    total = right = 0.0
    for rows in _micro_batches(prompts, replies, tokens_at_once=config.optimizer.tokens_at_once):
        chosen = [replies[row] for row in rows]
        logprobs_RT = policy.side_by_side([prompts[row] for row in rows], chosen)
        lengths_R = torch.tensor([len(reply) for reply in chosen], device=policy.device)
        mask_RT = mask_from_lengths(lengths_R, width=logprobs_RT.shape[1])
        terms = learner.method.loss(config.method_settings, logprobs_RT, {"mask": mask_RT}, counts)
        loss = terms["cross_entropy"]
        loss.backward()  # type: ignore[no-untyped-call]
        total += float(loss.detach())
        # a token of more than even odds is certainly the most likely one
        right += float((logprobs_RT.detach()[mask_RT] > -0.6931).sum())
    norm = apply_gradient(learner, step=step)
    return {
        "loss_cross_entropy": total,
        "likely_share": right / tokens,
        "gradient_norm": norm,
        "tokens": float(tokens),
    }


def _micro_batches(
    prompts: Sequence[Prompt], replies: Sequence[torch.Tensor], *, tokens_at_once: int
) -> Iterator[list[int]]:
    """Rows whose pictures have one shape, sorted by length, up to a number of tokens."""

    def key(row: int) -> tuple[str, int]:
        return repr(prompts[row].shape), prompts[row].length + len(replies[row])

    batch: list[int] = []
    for row in sorted(range(len(prompts)), key=key):
        shape, width = key(row)
        full = (len(batch) + 1) * width > tokens_at_once
        if batch and (full or key(batch[0])[0] != shape):
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch
