"""Groups: a question, the replies to it (or to its variants), and what the replies are worth."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from npbench.errors import InputError
from npbench.rng import stream
from trainers.config import Config
from trainers.data import Question
from trainers.encoding import Encoder, Prompt
from trainers.reward_sets import RewardTerm, load_term, reward_named
from trainers.reward_terms import correctness, judge
from trainers.rewards import Scored, score_replies
from trainers.rollouts import Backend, Reply, Request, sample_seed
from trainers.transforms import vary
from trainers.variants import template_variants

__all__ = ["Group", "collect", "reward_terms", "variants_of"]


@dataclass(frozen=True, slots=True)
class Group:
    """One question with all its replies; it is never split."""

    question: Question
    prompts: tuple[Prompt, ...]
    """The question's variants; one, but for Share-GRPO."""
    replies: tuple[Reply, ...]
    """Those of the first variant first."""
    texts: tuple[str, ...]
    scored: tuple[Scored, ...]
    accuracy: tuple[float | None, ...]
    """Quality ratio on NP tasks, correctness on others: what dynamic sampling looks at."""
    feasible: tuple[bool | None, ...]
    """None on questions that are no NP tasks."""


def reward_terms(config: Config) -> tuple[RewardTerm, ...]:
    """The terms of a run: those of a named reward, and the user's own.

    Raises:
        InputError: If a name or an import path is wrong.
    """
    settings = config.reward
    own = tuple(
        RewardTerm(name, load_term(path), settings.weights.get(name, 1.0))
        for name, path in settings.functions.items()
    )
    return (*reward_named(settings.name), *own)


def variants_of(
    question: Question, config: Config, *, step: int | str
) -> tuple[tuple[str, tuple[bytes, ...]], ...]:
    """Prompt and pictures of each variant of a question, the original first.

    Raises:
        InputError: If a question that is no NP task has too few rewordings in ``variants``.
    """
    original = (question.prompt, question.images)
    if config.variants == 1:
        return (original,)
    rng = stream("npbench-train", "variants", config.seed, step, question.id)
    if question.is_np:
        task = str(question.row["task"])
        words = template_variants(task, question.prompt, variants=config.variants, rng=rng)
    else:
        words = tuple(question.row.get("variants") or ())[: config.variants]
        if len(words) < config.variants:
            raise InputError(
                f"question {question.id} has {len(words)} variants, {config.variants} wanted; "
                f"make them with: npbench rewrite"
            )
    probability = config.method_settings.probability
    found = [original]
    for prompt in words[1:]:
        if len(question.images) != 1:
            found.append((prompt, question.images))
            continue
        from PIL import Image

        picture = Image.open(io.BytesIO(question.images[0])).convert("RGB")
        varied = vary(picture, prompt, rng, probability=probability)
        buffer = io.BytesIO()
        varied.image.save(buffer, "PNG")
        found.append((varied.prompt, (buffer.getvalue(),)))
    return tuple(found)


def collect(
    questions: Sequence[Question],
    *,
    config: Config,
    encoder: Encoder,
    backend: Backend,
    terms: Sequence[RewardTerm],
    step: int | str,
    samples: int | None = None,
) -> list[Group]:
    """Samples and scores the replies to some questions.

    Args:
        questions: They must differ.
        config: The run's settings.
        encoder: From text and pictures to ids.
        backend: What samples.
        terms: The reward's terms.
        step: Enters every seed.
        samples: Replies to one prompt; those of training where None. With a number there are no
            variants.

    Raises:
        InputError: If a reward term fails too often.
    """
    limit = config.sampling.max_tokens
    requests: list[Request] = []
    prompts: list[tuple[Prompt, ...]] = []
    for question in questions:
        shown = (
            variants_of(question, config, step=step)
            if samples is None
            else ((question.prompt, question.images),)
        )
        encoded = tuple(encoder.encode(text, images) for text, images in shown)
        prompts.append(encoded)
        each = config.group_size // len(encoded) if samples is None else samples
        for number, prompt in enumerate(encoded):
            seeds = tuple(
                sample_seed(config.seed, step, question.id, number * each + i) for i in range(each)
            )
            requests.append(Request(prompt, seeds))
    found = iter(backend.generate(requests, max_tokens=limit))
    groups = []
    for question, encoded in zip(questions, prompts, strict=True):
        replies = tuple(reply for _ in encoded for reply in next(found))
        texts = tuple(encoder.decode(reply.ids.tolist()) for reply in replies)
        groups.append(_scored(question, encoded, replies, texts, config, terms))
    return groups


def _scored(
    question: Question,
    prompts: tuple[Prompt, ...],
    replies: tuple[Reply, ...],
    texts: tuple[str, ...],
    config: Config,
    terms: Sequence[RewardTerm],
) -> Group:
    settings = config.reward
    try:
        batch = score_replies(
            texts,
            [question.row] * len(texts),
            terms,
            timeout=settings.timeout,
            failure_limit=settings.failure_limit,
        )
    except ValueError as error:
        raise InputError(f"question {question.id}: {error}") from error
    return Group(
        question,
        prompts,
        replies,
        texts,
        batch.scored,
        tuple(map(_accuracy, [question] * len(texts), texts, batch.scored)),
        tuple(_feasible(question.row, text) if question.is_np else None for text in texts),
    )


def _accuracy(question: Question, text: str, scored: Scored) -> float | None:
    if question.is_np:
        return judge(text, question.row).quality
    if "accuracy" in scored.terms:
        return scored.terms["accuracy"]
    return correctness(text, question.row)


def _feasible(row: Mapping[str, object], text: str) -> bool:
    return judge(text, row).feasible
