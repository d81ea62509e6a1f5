"""Where scalars go beside the run's own files: TensorBoard, Weights & Biases, trackio, by name."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from npbench.errors import InputError, unknown_name

__all__ = ["Tracker", "TrackerName", "open_trackers"]

TrackerName = Literal["tensorboard", "wandb", "trackio"]


class Tracker(Protocol):
    """Takes the numbers of a step."""

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        """Writes the numbers that a step has."""
        ...

    def close(self) -> None:
        """Finishes."""
        ...


class _TensorBoard:
    """Event files in ``RUN/tensorboard``; steps that are taken again replace those written."""

    def __init__(self, run: Path, first_step: int, settings: Mapping[str, Any]) -> None:
        writer: Any = _module("torch.utils.tensorboard", "tensorboard").SummaryWriter
        self._writer = writer(log_dir=str(run / "tensorboard"), purge_step=first_step)
        self._writer.add_text("settings", repr(dict(settings)), 0)

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class _Service:
    """A run of Weights & Biases or of trackio, whose calls are alike."""

    def __init__(self, name: str, run: Path, first_step: int, settings: Mapping[str, Any]) -> None:
        self._module = _module(name, name)
        more = {"resume": "allow"} if first_step else {}
        self._module.init(project="npbench", name=run.name, config=dict(settings), **more)

    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        self._module.log(dict(numbers), step=step)

    def close(self) -> None:
        self._module.finish()


def _module(name: str, package: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise InputError(f"log_to {package!r} needs: pip install {package}") from error


def open_trackers(
    names: Sequence[str], run: Path, *, first_step: int, settings: Mapping[str, Any]
) -> list[Tracker]:
    """The trackers of a run that goes on at ``first_step``.

    Raises:
        InputError: If a name is unknown or its package is not installed.
    """
    kinds: dict[str, Callable[[], Tracker]] = {
        "tensorboard": lambda: _TensorBoard(run, first_step, settings),
        "wandb": lambda: _Service("wandb", run, first_step, settings),
        "trackio": lambda: _Service("trackio", run, first_step, settings),
    }
    for name in names:
        if name not in kinds:
            raise unknown_name("tracker", name, get_args(TrackerName))
    return [kinds[name]() for name in names]
