"""The logs of a run: one JSON line a step, an evaluation, a rollout; and the progress bar."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from npbench.errors import InputError
from trainers.config import Config
from trainers.groups import Group
from trainers.measures import Numbers
from trainers.trackers import open_trackers

__all__ = ["LOG_FILES", "Logs", "read_log", "training_bar"]

LOG_FILES = ("scalars.jsonl", "evaluations.jsonl", "rollouts.jsonl")


def read_log(path: Path) -> list[dict[str, Any]]:
    """The lines of a log; a last line that was cut off is left out."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    # what follows the last newline was never finished
    return [json.loads(line) for line in lines[:-1] if line]


class Logs:
    """Appends to a run's logs; lines of steps that will be taken again are removed first."""

    def __init__(self, run: Path, config: Config, *, first_step: int) -> None:
        """Opens the logs of a run that goes on at ``first_step``.

        Raises:
            InputError: If the package of a tracker is not installed.
        """
        settings = config.model_dump(mode="json")
        self._trackers = open_trackers(config.log_to, run, first_step=first_step, settings=settings)
        self._files: dict[str, IO[str]] = {}
        for name in LOG_FILES:
            path = run / name
            _drop_later(path, first_step, through=name == "evaluations.jsonl")
            self._files[name] = path.open("a", encoding="utf-8")
        self._rollouts = config.log_rollouts

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes the files."""
        for tracker in self._trackers:
            tracker.close()
        for file in self._files.values():
            file.close()

    def _write(self, name: str, line: Mapping[str, Any]) -> None:
        file = self._files[name]
        try:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            file.flush()
        except OSError as error:
            raise InputError(f"{file.name} cannot be written: {error.strerror}") from error

    def step(self, step: int, numbers: Numbers, groups: Sequence[Group]) -> None:
        """Writes a step's numbers and its rollouts."""
        if self._rollouts:
            for line in _rollout_lines(step, groups):
                self._write("rollouts.jsonl", line)
        self._write("scalars.jsonl", {"step": step, **numbers})
        self._track(step, "train", numbers)

    def evaluation(self, step: int, numbers: Numbers) -> None:
        """Writes an evaluation after ``step`` steps."""
        self._write("evaluations.jsonl", {"step": step, **numbers})
        self._track(step, "evaluation", numbers)

    def _track(self, step: int, kind: str, numbers: Numbers) -> None:
        known = {f"{kind}/{name}": v for name, v in numbers.items() if v is not None}
        for tracker in self._trackers:
            tracker.write(step, known)


def _drop_later(path: Path, first_step: int, *, through: bool) -> None:
    """Removes lines of steps from ``first_step`` on (of later ones, with ``through``)."""
    lines = read_log(path)
    limit = first_step + 1 if through and first_step else first_step
    kept = [line for line in lines if line["step"] < limit]
    part = path.with_name(path.name + ".part")
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in kept)
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def _rollout_lines(step: int, groups: Sequence[Group]) -> Iterator[dict[str, Any]]:
    for group in groups:
        for sample, (reply, text, scored) in enumerate(
            zip(group.replies, group.texts, group.scored, strict=True)
        ):
            yield {
                "step": step,
                "question": group.question.id,
                "sample": sample,
                "seed": reply.seed,
                "reply": text,
                "ids": reply.ids.tolist(),
                "logprob": float(reply.logprobs.sum()),
                "finish_reason": reply.finish_reason,
                "reward": scored.total,
                "terms": dict(scored.terms),
                "faults": dict(scored.faults),
            }


@contextmanager
def training_bar(total: int, *, done: int = 0) -> Iterator[Callable[[int, Numbers], None]]:
    """A bar on stderr with reward, SR, QR, diversity, tokens a second and time left.

    Args:
        total: Steps of the run.
        done: Those that a resumed run begins after.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("step"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total, completed=done)

        def update(step: int, numbers: Numbers) -> None:
            bar.update(task, completed=step + 1, description=_in_words(numbers))

        yield update


def _in_words(numbers: Numbers) -> str:
    shown = {"reward": "reward", "sr": "SR", "qr": "QR", "diversity": "diversity"}
    parts = [
        f"{words} {value:.3f}"
        for name, words in shown.items()
        if (value := numbers.get(name)) is not None
    ]
    speed = numbers.get("tokens_per_second")
    return "  ".join([*parts, *([] if speed is None else [f"{speed:.0f} tokens/s"])])
