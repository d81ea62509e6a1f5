"""Work dealt to workers on a Ray cluster: in order, each piece once, whatever dies on the way.

Ray core actors, not Ray Data: a stream of work that can be stopped, results in the order of the
work with a bounded number ahead, and a worker that dies giving its piece back to the others are a
loop of one screen here. Ray Data would bring blocks, a planner of its own and pandas, and neither
draws its input late nor says what was lost. Ray is imported when it is asked for.
"""

import logging
import os
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

from npbench.errors import InputError

__all__ = [
    "MAX_DEATHS",
    "PATIENCE",
    "RayPool",
    "Worker",
    "WorkerError",
    "check_workers",
    "ray_session",
]

MAX_DEATHS = 3
"""Deaths of workers over one piece of work, or of one worker in a row, that end a run."""
AHEAD = 8
"""Pieces a worker that may be finished before an earlier one is."""
START_SECONDS = 600.0
"""How long a run without any worker waits for the cluster to start one."""
PATIENCE = 3600.0
"""Seconds that a worker may take over a piece of work before it counts as dead; to open, a model
to load say, it always has as many at least."""
MAX_PATIENCE = 30 * 86400.0
STORE_BYTES = 100_000_000
"""Ray's shared memory, where it is started here; what does not fit goes to the disk."""

WorkT = TypeVar("WorkT")
ResultT = TypeVar("ResultT")
WorkInT = TypeVar("WorkInT", contravariant=True)
ResultOutT = TypeVar("ResultOutT", covariant=True)


class WorkerError(InputError):
    """Workers that died too often, differ from each other or gave back something else."""


class Worker(Protocol[WorkInT, ResultOutT]):
    """Does pieces of work in a process of its own; their results depend on the work alone."""

    def statement(self) -> Mapping[str, Any]:
        """What results depend on besides the work; it must be the same for all workers."""
        ...

    def __call__(self, work: WorkInT) -> ResultOutT:
        """The result of a piece of work."""
        ...


class _Host:
    """The actor: a process that makes a worker and hands it work."""

    def where(self) -> tuple[int, str]:
        """The process and its machine, as soon as there is one."""
        return os.getpid(), socket.gethostname()

    def open(self, make: Callable[[], Worker[Any, Any]], folder: str) -> dict[str, Any]:
        """Make the worker in the driver's folder, so that relative paths mean the same."""
        with suppress(OSError):
            os.chdir(folder)
        self._worker = make()
        return dict(self._worker.statement())

    def work(self, work: Any) -> Any:
        """The result of a piece of work."""
        return self._worker(work)


@dataclass(slots=True)
class _Piece:
    number: int
    work: Any
    deaths: int = 0


@dataclass(slots=True, eq=False)
class _Seat:
    """A place for a worker; who dies in it is replaced."""

    number: int
    actor: Any
    step: str = "where"
    """What it was last asked: ``where``, ``open`` or ``work``."""
    piece: _Piece | None = None
    deadline: float | None = None
    """When its answer is due, on the monotonic clock; None while the cluster has no room for it."""
    deaths: int = 0
    """In a row, without a piece finished between them."""
    pid: int | None = None
    node: str = "no machine"

    def __str__(self) -> str:
        return f"worker {self.number} ({self.node})"


class RayPool(Generic[WorkT, ResultT]):
    """Workers on Ray, started at once and ended by :meth:`close`."""

    def __init__(
        self,
        makers: Sequence[Callable[[], Worker[WorkT, ResultT]]],
        *,
        num_gpus: float = 0,
        stated: Mapping[str, Any] | None = None,
        notify: Callable[[str], None] | None = None,
        patience: float = PATIENCE,
    ) -> None:
        """Ask a connected Ray for the workers.

        Args:
            makers: Makes each worker, in its process and again after a death.
            num_gpus: GPUs that each worker has for itself.
            stated: What every worker must state; None takes it from the first one.
            notify: Told of each death in one line.
            patience: Seconds that a worker may take over a piece of work; who takes longer is
                ended and replaced like one that died.

        Raises:
            InputError: If the patience lies outside of (0, MAX_PATIENCE].
        """
        if not 0 < patience <= MAX_PATIENCE:
            raise InputError(
                f"a worker's seconds must lie in (0, {MAX_PATIENCE:.0f}], got {patience:g}"
            )
        self._patience = patience
        self._ray = _library()
        self._makers = makers
        self._num_gpus = num_gpus
        self._stated = None if stated is None else dict(stated)
        self._notify = notify
        self._actor = self._ray.remote(num_cpus=1, num_gpus=num_gpus, max_restarts=0)(_Host)
        self._waiting: dict[Any, _Seat] = {}
        self._idle: deque[_Seat] = deque()
        self._returned: deque[_Piece] = deque()
        self._finished: dict[int, Any] = {}
        self._seats = [_Seat(number, None) for number in range(len(makers))]
        for seat in self._seats:
            self._start(seat)

    @property
    def pids(self) -> list[int | None]:
        """The process of each worker, None before it has started."""
        return [seat.pid for seat in self._seats]

    def statement(self) -> dict[str, Any]:
        """What the workers state, as soon as one of them does.

        Raises:
            InputError: If a worker cannot be made.
        """
        while self._stated is None:
            self._step()
        return self._stated

    def map(self, works: Iterable[WorkT], *, ordered: bool) -> Iterator[ResultT]:
        """The results of all pieces of work, each drawn when a worker is idle.

        Args:
            works: The pieces; a piece that was drawn is always finished.
            ordered: Give results in the order of the pieces, not as they come in.

        Raises:
            InputError: If a worker cannot do its work, as it would raise here.
            WorkerError: If workers die too often, or differ.
        """
        assert not any(seat.piece for seat in self._seats), "what was left early is still worked on"
        pieces = (_Piece(number, work) for number, work in enumerate(works))
        room = AHEAD * len(self._seats)
        following, drained = 0, False
        while True:
            while self._idle:
                if self._returned:
                    piece = self._returned.popleft()
                elif drained or (ordered and len(self._finished) >= room):
                    break
                elif (drawn := next(pieces, None)) is not None:
                    piece = drawn
                else:
                    drained = True
                    break
                self._give(self._idle.popleft(), piece)
            if drained and not self._returned and not any(seat.piece for seat in self._seats):
                return
            self._step()
            started = time.monotonic()
            if not ordered:
                yield from self._finished.values()
                self._finished.clear()
            while following in self._finished:
                yield self._finished.pop(following)
                following += 1
            self._extend(time.monotonic() - started)

    def close(self) -> None:
        """End the workers."""
        for seat in self._seats:
            self._ray.kill(seat.actor)

    def __enter__(self) -> Self:
        """The pool itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the workers."""
        self.close()

    def _start(self, seat: _Seat) -> None:
        seat.actor, seat.pid, seat.node = self._actor.remote(), None, "no machine"
        self._ask(seat, "where")

    def _give(self, seat: _Seat, piece: _Piece) -> None:
        seat.piece = piece
        self._ask(seat, "work", piece.work)

    def _ask(self, seat: _Seat, step: str, *arguments: Any) -> None:
        seat.step = step
        given = max(self._patience, PATIENCE) if step == "open" else self._patience
        seat.deadline = None if step == "where" else time.monotonic() + given
        self._waiting[getattr(seat.actor, step).remote(*arguments)] = seat

    def _step(self) -> None:
        """Wait for one answer of a worker, and go on with what it says."""
        due = [seat.deadline for seat in self._waiting.values() if seat.deadline is not None]
        alive = any(seat.pid is not None for seat in self._seats)
        limit = max(0.0, min(due) - time.monotonic()) if due else None if alive else START_SECONDS
        ready, _ = self._ray.wait(list(self._waiting), num_returns=1, timeout=limit)
        if not ready and due:
            self._end_overdue()
            return
        if not ready:
            raise WorkerError(
                f"no worker started in {START_SECONDS:g} s: each needs 1 CPU and "
                f"{self._num_gpus:g} GPUs, the cluster has {_resources(self._ray)}"
            )
        seat = self._waiting.pop(ready[0])
        try:
            answer = self._ray.get(ready[0])
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, InputError):
                raise error.cause from None
            raise
        except self._ray.exceptions.RayError as error:
            self._bury(seat, _reason(error))
            return
        if seat.step == "where":
            seat.pid, seat.node = answer
            self._ask(seat, "open", self._makers[seat.number], str(Path.cwd()))
            return
        if seat.step == "open":
            self._compare(seat, answer)
        elif seat.piece is not None:
            self._finished[seat.piece.number] = answer
            seat.piece, seat.deaths = None, 0
        self._idle.append(seat)

    def _extend(self, seconds: float) -> None:
        """Put deadlines off by the time in which nobody looked for answers."""
        for seat in self._waiting.values():
            if seat.deadline is not None:
                seat.deadline += seconds

    def _end_overdue(self) -> None:
        """Bury the workers whose answers are overdue; what they may still send is not looked at."""
        now = time.monotonic()
        for answer, seat in list(self._waiting.items()):
            if seat.deadline is not None and seat.deadline <= now:
                del self._waiting[answer]
                self._bury(seat, f"no answer in {self._patience:g} s")

    def _compare(self, seat: _Seat, stated: dict[str, Any]) -> None:
        """Refuse a worker that would give other results than the rest."""
        if self._stated is None:
            self._stated = stated
        difference = _difference(self._stated, stated)
        if difference:
            raise WorkerError(f"{seat} differs from the rest of the run: {difference}")

    def _bury(self, seat: _Seat, reason: str) -> None:
        """Give the work of a dead worker back, and start another worker in its place."""
        died = str(seat)
        seat.deaths += 1
        worst, over = seat.deaths, "in a row"
        if seat.piece is not None:
            seat.piece.deaths += 1
            if seat.piece.deaths >= worst:
                worst, over = seat.piece.deaths, "over the same piece of work"
            self._returned.append(seat.piece)
            seat.piece = None
        if worst >= MAX_DEATHS:
            raise WorkerError(
                f"{worst} workers died {over}, the last was {died}: {reason}; what was finished "
                f"is kept, run the command again to go on"
            )
        if self._notify:
            self._notify(f"{died} died and is replaced: {reason}")
        # One that cannot be reached may live on; nothing that it still sends is looked at.
        self._ray.kill(seat.actor)
        self._start(seat)


def _difference(one: Mapping[str, Any], other: Mapping[str, Any], prefix: str = "") -> str | None:
    """The first field in which two statements disagree, with both values."""
    for name in sorted({*one, *other}):
        first, second = one.get(name), other.get(name)
        if isinstance(first, Mapping) and isinstance(second, Mapping):
            if inner := _difference(first, second, f"{prefix}{name}."):
                return inner
        elif first != second:
            return f"its {prefix}{name} is {second!r}, theirs {first!r}"
    return None


def _reason(error: BaseException) -> str:
    """What Ray says of a death, without its advice."""
    text = " ".join(str(error).split())
    detail = text.rpartition("Worker exit detail: ")[2]
    return detail.partition(" Some common causes")[0][:200].rstrip(". ")


def _resources(ray: Any) -> str:
    found = ray.cluster_resources()
    return f"{found.get('CPU', 0):g} CPUs and {found.get('GPU', 0):g} GPUs"


def check_workers(workers: int) -> int:
    """The number of workers, where it is one.

    Raises:
        InputError: If it lies outside of [1, 1024].
    """
    if not 1 <= workers <= 1024:
        raise InputError(f"workers must lie in [1, 1024], got {workers}")
    return workers


@contextmanager
def ray_session(address: str | None, *, workers: int) -> Iterator[Any]:
    """Ray, connected: that of the caller, a running cluster or one of this machine's own.

    Args:
        address: ``auto`` or HOST:PORT of a running cluster; None starts Ray here and ends it.
        workers: How many a Ray that is started here has room for.

    Raises:
        InputError: If Ray is not installed, or no cluster is found.
    """
    check_workers(workers)
    ray = _library()
    if ray.is_initialized():
        yield ray
        return
    if address is not None and address != "auto":
        _reach(address)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    here = {
        "address": "local",
        "num_cpus": workers,
        "object_store_memory": STORE_BYTES,
        "include_dashboard": False,
    }
    if address is None:
        # Workers are the run itself here; Ray would let everything else go before them.
        os.environ.setdefault("RAY_worker_niceness", "0")
    with _kept_handler():
        try:
            ray.init(**(here if address is None else {"address": address}), **quiet)
        except (OSError, ValueError, RuntimeError) as error:
            text = " ".join(str(error).split())[:200]
            where = "here" if address is None else f"at {address}"
            raise InputError(f"Ray {where} cannot be had: {text}") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _reach(address: str) -> None:
    """Refuse an address where nobody listens: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise InputError(
            f"--address takes auto or HOST:PORT, got {address!r}; run the command on a machine of "
            f"the cluster"
        )
    try:
        socket.create_connection((host, int(port)), timeout=10.0).close()
    except (OSError, OverflowError) as error:
        raise InputError(f"Ray at {address} cannot be reached: {error}") from None


@contextmanager
def _kept_handler() -> Iterator[None]:
    """Keep what a polite kill does: Ray would make it an exit that looks like any other."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _library() -> Any:
    # Read when Ray is imported: nothing is sent home, and none of its own remarks, such as those
    # on deaths, is printed on standard output, where results go.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    try:
        import ray  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise InputError("--engine ray needs: pip install 'npbench[ray]'") from None
    return ray
