"""The training loop: rollouts, rewards, credit, the two-pass gradient, an optimiser step.

Supervised stages take the place of rollouts and credit; everything else is the same. Under
``torchrun`` or ``accelerate launch`` several processes share the prompts of a step.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from trainers.checkpoints import Position, begin_run, open_run, save_checkpoint
from trainers.config import Config
from trainers.data import PromptStream, Question, held_out, questions
from trainers.distributed import NoLogs, first_process, gathered, process_group, processes
from trainers.dynamic_sampling import FilledBatch, fill_batch
from trainers.evaluation import evaluate
from trainers.groups import Group, collect, reward_terms
from trainers.interruptions import undisturbed
from trainers.learner import Learner
from trainers.logs import Logs, read_log
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

    with rollout_backend(config, learner) as backend:
        begin_run(config, run, resume=resume)
        due, shared = _evaluation_is_due(config, run, position), SharedBackend(backend)
        with (
            Logs(run, config, first_step=position.step) if first_process() else NoLogs() as logs,
            _kept(learner, run, position) as kept,
        ):
            if examples and due:
                found = evaluate(examples, learner, shared, terms)
                logs.evaluation(position.step, found)
                if position.step and _is_saved(config, position.step):
                    position = save_checkpoint(learner, run, position, metric=found["score"])
            for step in range(position.step, config.steps):
                started = time.perf_counter()
                numbers: Numbers = {}
                filled = None if lessons is not None else _fill(config, draw)
                with undisturbed():
                    kept.whole = None
                    if lessons is not None:
                        numbers |= imitate(learner, lessons.rows(step), step=step)
                    if filled is not None:
                        numbers |= learn(learner, filled.groups, step=step)
                        numbers |= batch_numbers(filled)
                    numbers |= speed(numbers, seconds=time.perf_counter() - started)
                    logs.step(step, numbers, filled.groups if filled is not None else ())
                    done = step + 1
                    kept.whole = replace(position, step=done, cursor=prompts.position)
                progress(step, numbers)
                metric = None
                if examples and _due(done, config.evaluate_every, config.steps):
                    found = evaluate(examples, learner, shared, terms)
                    logs.evaluation(done, found)
                    metric = found["score"]
                if _is_saved(config, done):
                    position = save_checkpoint(learner, run, kept.whole, metric=metric)
                    kept.saved = done


@dataclass(slots=True)
class _Kept:
    """What of a run is safe."""

    saved: int
    """Steps of the last checkpoint."""
    whole: Position | None
    """Where the learner is; None while it moves."""


@contextmanager
def _kept(learner: Learner, run: Path, position: Position) -> Iterator[_Kept]:
    """Writes a checkpoint of the steps done where an engine fails, or one process is interrupted.

    Several processes that are interrupted cannot meet any more to write one.
    """
    kept = _Kept(position.step, position)
    try:
        yield kept
    except (EngineError, KeyboardInterrupt) as error:
        together = isinstance(error, EngineError) or processes() == 1
        if together and kept.whole is not None and kept.whole.step > kept.saved:
            save_checkpoint(learner, run, kept.whole, metric=None)
            # a launcher ends all processes as soon as one of them has ended
            gathered(None)
        raise


def _is_saved(config: Config, done: int) -> bool:
    """Whether a checkpoint belongs after ``done`` steps, whatever happens."""
    return _due(done, config.checkpoint_every, config.steps) or done in config.stage_ends


def _evaluation_is_due(config: Config, run: Path, position: Position) -> bool:
    """Whether a run begins where an evaluation belongs that is not in its log."""
    if position.step == 0:
        return True
    if not _due(position.step, config.evaluate_every, config.steps):
        return False
    lines = read_log(run / "evaluations.jsonl") if first_process() else []
    return gathered(all(line["step"] != position.step for line in lines))[0]


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
