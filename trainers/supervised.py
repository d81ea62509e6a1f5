"""Supervised stages: cross-entropy on given replies, in the same loop as everything else.

Which rows a step holds is a function of seed and step, so there is nothing to keep between steps.

N replies of a micro-batch, T tokens.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import torch

from npbench.errors import InputError
from npbench.perception import facts, perception_prompt, perception_reply
from npbench.prompts import Modality, brief_prompt
from npbench.rng import stream
from npbench.tasks import get_task
from trainers.config import Config
from trainers.data import Question, questions
from trainers.distributed import own, summed
from trainers.encoding import Encoder
from trainers.forest import Tree, forest_logprobs
from trainers.learner import Learner, apply_gradient
from trainers.losses import Counts, mask_from_lengths
from trainers.sections import MixSettings, StageSettings
from trainers.teachers import CAREFUL, MIXED, can_be_asked, teach

__all__ = ["READING", "Lesson", "Lessons", "imitate", "lesson_of"]

READING = (
    "The picture shows a graph with numbered vertices. Write a line for each vertex but the last: "
    "its number, and for each later vertex 1 where an edge joins the two and 0 where none does."
)
"""The prompt of the target ``edges``: perception before answers."""

_MANNERS = {"teacher": MIXED, "careful_teacher": CAREFUL}


@dataclass(frozen=True, slots=True)
class Lesson:
    """A prompt about a picture, or none, and the replies that are to be learnt."""

    prompt: str
    images: tuple[bytes, ...]
    replies: tuple[str, ...]


def lesson_of(question: Question, mix: MixSettings, rng: Any) -> Lesson:
    """What a mix asks of a question, and what is to be replied: several times by a teacher.

    Raises:
        InputError: If the question has no such target.
    """
    names, shares = list(mix.targets), np.array(list(mix.targets.values()))
    target = names[int(rng.choice(len(names), p=shares / shares.sum()))]
    if mix.ask:
        question = _as_task(question, str(rng.choice(mix.ask)))
    count = mix.replies if target in (*_MANNERS, "random") else 1
    pairs = [_prompt_and_reply(question, target, rng) for _ in range(count)]
    return Lesson(pairs[0][0], question.images, tuple(reply for _, reply in pairs))


def _as_task(question: Question, name: str) -> Question:
    """The same picture, asked for another task; its own where the other has no answer on it.

    Raises:
        InputError: If the picture of the one does not serve the other.
    """
    own, wording = question.row.get("task"), get_task(name).wording
    if own is None or wording.picture != get_task(own).wording.picture or not question.images:
        raise InputError(f"question {question.id} has no picture that could be asked for {name}")
    instance = get_task(name).decode(json.loads(question.row["instance"]))
    if name == own or not can_be_asked(name, instance):
        return question
    prompt = brief_prompt(wording, Modality.IMAGE, data="")
    return replace(question, prompt=prompt, row={**question.row, "task": name})


def _prompt_and_reply(question: Question, target: str, rng: Any) -> tuple[str, str]:
    if target == "column":
        reply = question.row.get("target")
        if not reply:
            raise InputError(f"question {question.id} has no column 'target'")
        return (question.prompt, str(reply))
    if not question.is_np:
        raise InputError(f"question {question.id} is no NP task: its target must be 'column'")
    name, instance = question.row["task"], json.loads(question.row["instance"])
    task = get_task(name)
    if target == "edges":
        if "edges" not in instance:
            raise InputError(f"question {question.id} shows no graph whose edges could be read")
        return (READING, _rows_of_edges(instance))
    if target == "perception":
        prompt = perception_prompt(name, task.wording.picture)
        return (prompt, perception_reply(facts(name, instance)))
    if target == "reference":
        return (question.prompt, _answer(question.row["reference_solution"]))
    if target in _MANNERS:
        return (question.prompt, teach(name, task.decode(instance), rng, _MANNERS[target]))
    solution = task.solvers[target](task.decode(instance), rng)
    return (question.prompt, _answer(json.dumps(solution)))


def _answer(solution: str) -> str:
    return f"Answer: {json.dumps(json.loads(solution))}"


def _rows_of_edges(instance: Mapping[str, Any]) -> str:
    """The upper triangle of the adjacency matrix, a numbered line for each row."""
    joined = {(min(edge[:2]), max(edge[:2])) for edge in instance["edges"]}
    lines = {vertex: f"{vertex}:" for vertex in range(instance["num_vertices"] - 1)}
    for first, second in combinations(range(instance["num_vertices"]), 2):
        lines[first] += str(int((first, second) in joined))
    return "\n".join(lines.values())


class Lessons:
    """The rows of all stages."""

    def __init__(self, config: Config) -> None:
        """Opens the sources of all stages."""
        self._config = config
        known: dict[str, Sequence[Question]] = {}
        for mix in (mix for stage in config.stages for mix in stage.mix):
            # stages with the same data share what has been drawn
            known.setdefault(mix.data.model_dump_json(), questions(mix.data))
        self._sources = [
            [known[mix.data.model_dump_json()] for mix in stage.mix] for stage in config.stages
        ]

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
            found.append(lesson_of(question, stage.mix[number], rng))
        return found


def imitate(learner: Learner, lessons: Sequence[Lesson], *, step: int) -> dict[str, float]:
    """One optimiser step on given replies, shared out among processes; numbers to log."""
    policy, config = learner.policy, learner.config
    trees = _trees(policy.encoder, lessons)
    lengths = [len(reply) for tree in trees for reply in tree.replies]
    counts = Counts(tokens=sum(lengths), sequences=len(lengths), groups=len(lengths))
    loss_and_right = torch.zeros(2, dtype=torch.float64)
    for batch in _micro_batches(own(trees), tokens_at_once=config.optimizer.tokens_at_once):
        logprobs_NT = forest_logprobs(policy, batch)
        lengths_N = torch.tensor([len(r) for tree in batch for r in tree.replies])
        mask_NT = mask_from_lengths(lengths_N.to(policy.device), width=logprobs_NT.shape[1])
        terms = learner.method.loss(config.method_settings, logprobs_NT, {"mask": mask_NT}, counts)
        loss = terms["cross_entropy"]
        loss.backward()  # type: ignore[no-untyped-call]
        # a token of more than even odds is certainly the most likely one
        right = (logprobs_NT.detach()[mask_NT] > -0.6931).sum()
        loss_and_right += torch.tensor([float(loss.detach()), float(right)], dtype=torch.float64)
    total, likely = summed(loss_and_right).tolist()
    norm = apply_gradient(learner, step=step)
    return {
        "loss_cross_entropy": total,
        "likely_share": likely / counts.tokens,
        "gradient_norm": norm,
        "tokens": float(counts.tokens),
    }


def _trees(encoder: Encoder, lessons: Sequence[Lesson]) -> list[Tree]:
    """The lessons as tokens; replies end with the end token."""
    end = torch.tensor([encoder.tokenizer.eos_token_id])
    return [
        Tree(
            encoder.encode(lesson.prompt, lesson.images),
            tuple(torch.cat([torch.tensor(encoder.ids(reply)), end]) for reply in lesson.replies),
        )
        for lesson in lessons
    ]


def _micro_batches(trees: Sequence[Tree], *, tokens_at_once: int) -> Iterator[list[Tree]]:
    """Trees whose pictures have one shape, sorted by width, up to a number of tokens."""

    def key(tree: Tree) -> tuple[str, int]:
        return repr(tree.prompt.shape), tree.width

    batch: list[Tree] = []
    for tree in sorted(trees, key=key):
        shape, width = key(tree)
        full = (len(batch) + 1) * width > tokens_at_once
        if batch and (full or key(batch[0])[0] != shape):
            yield batch
            batch = []
        batch.append(tree)
    if batch:
        yield batch
