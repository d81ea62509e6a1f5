"""The training loop: rollouts, rewards, credit, the two-pass gradient, an optimiser step.

Supervised stages take the place of rollouts and credit; everything else is the same. Under
``torchrun`` or ``accelerate launch`` several processes share the prompts of a step.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch

from trainers.checkpoints import Position, open_run, save_checkpoint
from trainers.config import Config
from trainers.data import PromptStream, Question, held_out, questions
from trainers.distributed import NoLogs, first_process, gathered, process_group
from trainers.dynamic_sampling import FilledBatch, fill_batch
from trainers.evaluation import evaluate
from trainers.groups import Group, collect, reward_terms
from trainers.learner import Learner
from trainers.logs import Logs
from trainers.measures import Numbers, batch_numbers, speed
from trainers.shared_rollouts import SharedBackend, draw_groups
from trainers.supervised import Lessons, imitate
from trainers.updates import learn
from trainers.vllm_rollouts import EngineError, check_backend, rollout_backend

__all__ = ["train"]


def train(
    config: Config,
    run: Path,
    *,
    resume: bool = False,
    progress: Callable[[int, Numbers], None] = lambda step, numbers: None,
) -> None:
    """Trains a policy and leaves its checkpoints and logs in the folder ``run``.

    Args:
        config: All settings.
        run: An empty or missing folder; with ``resume`` that of an interrupted run.
        resume: Goes on from the last checkpoint, to the very steps of the uninterrupted run.
        progress: Called after each step with its number and what was logged.

    Raises:
        InputError: If data, model or folder are unusable, or an invariant of the first step does
            not hold.
    """
    torch.set_num_threads(config.threads)
    check_backend(config)
    with process_group(config):
        _train(config, run, resume=resume, progress=progress)


def _train(
    config: Config, run: Path, *, resume: bool, progress: Callable[[int, Numbers], None]
) -> None:
    source, terms = questions(config.data), reward_terms(config)
    lessons = Lessons(config) if config.stages else None
    examples = held_out(config) if config.evaluate_every else []
    learner, position = open_run(config, run, resume=resume)
    prompts = PromptStream(source, seed=config.seed, position=position.cursor)

    def draw(count: int) -> list[Group]:
        return draw_groups(list(prompts.take(count)), collect_own)

    def collect_own(some: Sequence[Question]) -> list[Group]:
        return collect(
            some,
            config=config,
            encoder=learner.policy.encoder,
            backend=backend,
            terms=terms,
            step=step,
        )

    with (
        rollout_backend(config, learner) as backend,
        Logs(run, config, first_step=position.step) if first_process() else NoLogs() as logs,
    ):
        shared = SharedBackend(backend)
        if examples and position.step == 0:
            logs.evaluation(0, evaluate(examples, learner, shared, terms))
        for step in range(position.step, config.steps):
            started = time.perf_counter()
            numbers: Numbers = {}
            if lessons is not None:
                groups: tuple[Group, ...] = ()
                numbers |= imitate(learner, lessons.rows(step), step=step)
            else:
                before = replace(position, step=step, cursor=prompts.position)
                with _kept(learner, run, before, saved=position.step):
                    filled = _fill(config, draw)
                groups = filled.groups
                numbers |= learn(learner, groups, step=step)
                numbers |= batch_numbers(filled)
            numbers |= speed(numbers, seconds=time.perf_counter() - started)
            logs.step(step, numbers, groups)
            progress(step, numbers)
            done, metric = step + 1, None
            if examples and _due(done, config.evaluate_every, config.steps):
                found = evaluate(examples, learner, shared, terms)
                logs.evaluation(done, found)
                metric = found["score"]
            if _due(done, config.checkpoint_every, config.steps) or done in config.stage_ends:
                position = replace(position, step=done, cursor=prompts.position)
                position = save_checkpoint(learner, run, position, metric=metric)


@contextmanager
def _kept(learner: Learner, run: Path, position: Position, *, saved: int) -> Iterator[None]:
    """Writes a checkpoint of the steps done where the engine fails before the next one."""
    try:
        yield
    except EngineError:
        if position.step > saved:
            save_checkpoint(learner, run, position, metric=None)
            # a launcher ends all processes as soon as one of them has ended
            gathered(None)
        raise


def _due(done: int, every: int, steps: int) -> bool:
    """Whether something is to happen after ``done`` steps: every so many, and at the end."""
    return done == steps or (every > 0 and done % every == 0)


def _fill(config: Config, draw: Callable[[int], list[Group]]) -> FilledBatch[Group]:
    """A step's groups; with dynamic sampling, those whose accuracy is not constant."""
    settings, size = config.dynamic_sampling, config.prompts_per_step
    if not settings.enabled:
        groups = tuple(draw(size))
        return FilledBatch(groups, rounds=1, drawn=len(groups), flat=0, shortage=0)
    return fill_batch(
        draw,
        lambda group: group.accuracy,
        size=size,
        max_rounds=settings.max_rounds,
        shortage=settings.shortage,
    )
