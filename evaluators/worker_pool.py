"""Long-lived processes for symbolic questions, each killed when it misses its deadline.

Threads cannot stop a computation and an alarm cannot interrupt C code, so a question is asked of
another process: one question at a time each, an address-space limit, a deadline, and a new process
after a kill. The caller's process survives whatever a worker does.
"""

import atexit
import functools
import json
import os
import queue
import select
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path

__all__ = ["AlgebraPool", "Answer", "Session", "default_pool"]

_DEADLINE = 3.0
_MEMORY = 1 << 30
_START_DEADLINE = 60.0
_MAX_REPLY = 64 * 1024
_REPORTS = frozenset({"equal", "different", "gold_unparsed", "answer_unparsed", "value"})


@dataclass(frozen=True, slots=True)
class Answer:
    """What the pool says of one question."""

    verdict: str
    """``equal``, ``different``, ``gold_unparsed``, ``answer_unparsed``, ``value``, ``timeout``
    or ``error``."""
    value: float | None = None
    """The number asked for, with verdict ``value``."""
    reason: str = ""
    seconds: float = 0.0
    """How long the worker took."""


class AlgebraPool:
    """Processes that compare expressions; safe to call from several threads.

    Args:
        workers: Processes at most; they start when first needed.
        deadline: Seconds for one question. Starting a process does not count.
        memory: Address space of a process in bytes.
        command: What a worker runs, for tests of misbehaving workers.

    Raises:
        ValueError: If a bound is not positive.
    """

    def __init__(
        self,
        *,
        workers: int = 1,
        deadline: float = _DEADLINE,
        memory: int = _MEMORY,
        command: tuple[str, ...] | None = None,
    ) -> None:
        """Prepares the pool; nothing starts yet."""
        if workers < 1 or deadline <= 0 or memory < 0:
            raise ValueError(
                f"workers={workers}, deadline={deadline} and memory={memory} must be positive"
            )
        self.deadline = deadline
        self._command = command or (sys.executable, "-m", "evaluators.algebra_worker")
        self._memory = memory
        self._size = workers
        self._owner = os.getpid()
        self._idle: queue.LifoQueue[_Worker | None] = queue.LifoQueue()
        self._live: set[_Worker] = set()
        self._lock = threading.Lock()
        self._refill()

    def equal(self, gold: str, answer: str) -> Answer:
        """Whether two LaTeX texts mean the same."""
        return self.ask({"op": "equal", "gold": gold, "answer": answer}, self.deadline)

    def value(self, answer: str) -> Answer:
        """The real number that a LaTeX text stands for."""
        return self.ask({"op": "value", "answer": answer}, self.deadline)

    def session(self) -> "Session":
        """Several questions that share one deadline, such as the members of a list."""
        return Session(self)

    def processes(self) -> tuple[int, ...]:
        """Process ids of the workers that run now."""
        with self._lock:
            return tuple(worker.process.pid for worker in self._live)

    def close(self) -> None:
        """Ends all workers; the next question starts new ones."""
        if self._owner != os.getpid():
            return  # the workers belong to the parent of this forked process
        with self._lock:
            workers = tuple(self._live)
            self._live.clear()
        for worker in workers:
            worker.kill()
        self._refill()

    def _refill(self) -> None:
        self._idle = queue.LifoQueue()
        for _ in range(self._size):
            self._idle.put(None)

    def ask(self, question: dict[str, str], deadline: float) -> Answer:
        """The answer to one question of the worker's protocol within ``deadline`` seconds."""
        if self._owner != os.getpid():  # a forked child must not share its parent's pipes
            self._owner = os.getpid()
            self._lock = threading.Lock()
            self._live = set()
            self._refill()
        idle = self._idle
        worker = idle.get()
        try:
            if worker is None or not worker.alive():
                worker = self._start(worker)
            answer = worker.ask(question, deadline)
            if answer.verdict in {"timeout", "error"}:
                self._drop(worker)
                worker = None
            return answer
        finally:
            idle.put(worker)

    def _start(self, old: "_Worker | None") -> "_Worker":
        if old is not None:
            self._drop(old)
        worker = _Worker(self._command, self._memory, self.deadline)
        with self._lock:
            self._live.add(worker)
        ready = worker.read(0, _START_DEADLINE)
        if ready.verdict != "ready":
            self._drop(worker)
            if ready.verdict == "missing":
                raise ImportError(
                    f"grading expressions needs: pip install 'npbench[eval]' ({ready.reason})"
                )
            raise RuntimeError(f"the algebra worker did not start: {ready.verdict} {ready.reason}")
        return worker

    def _drop(self, worker: "_Worker") -> None:
        with self._lock:
            self._live.discard(worker)
        worker.kill()


class Session:
    """Questions to a pool that share one deadline, counted over the time that they take."""

    def __init__(self, pool: AlgebraPool) -> None:
        """Starts with the pool's whole deadline."""
        self._pool = pool
        self._left = pool.deadline

    def equal(self, gold: str, answer: str) -> Answer:
        """Whether two LaTeX texts mean the same."""
        return self._ask({"op": "equal", "gold": gold, "answer": answer})

    def value(self, answer: str) -> Answer:
        """The real number that a LaTeX text stands for."""
        return self._ask({"op": "value", "answer": answer})

    def _ask(self, question: dict[str, str]) -> Answer:
        if self._left <= 0:
            return Answer("timeout", reason=f"no verdict within {self._pool.deadline:g} s")
        answer = self._pool.ask(question, self._left)
        self._left -= answer.seconds
        return answer


class _Worker:
    """One process and the pipe to it."""

    def __init__(self, command: tuple[str, ...], memory: int, deadline: float) -> None:
        root = str(Path(__file__).resolve().parent.parent)
        path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH", "")) if part)
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={
                **os.environ,
                "PYTHONPATH": path,
                "OMP_NUM_THREADS": "1",
                "NPBENCH_WORKER_MEMORY": str(memory),
                "NPBENCH_WORKER_SECONDS": str(int(deadline) + 5),
            },
        )
        self._count = 0

    def alive(self) -> bool:
        return self.process.poll() is None

    def ask(self, question: dict[str, str], deadline: float) -> Answer:
        self._count += 1
        line = json.dumps({"id": self._count, **question}) + "\n"
        pipe = self.process.stdin
        assert pipe is not None
        try:
            pipe.write(line.encode())
            pipe.flush()
        except OSError as error:
            return Answer("error", reason=f"the worker ended: {error}")
        started = time.monotonic()
        answer = self.read(self._count, deadline)
        return replace(answer, seconds=time.monotonic() - started)

    def read(self, identifier: int, deadline: float) -> Answer:
        """The reply to one question; anything else on the pipe is an error."""
        pipe = self.process.stdout
        assert pipe is not None
        ends = time.monotonic() + deadline
        poller = select.poll()
        poller.register(pipe, select.POLLIN | select.POLLHUP)
        received = b""
        while not received.endswith(b"\n"):
            left = ends - time.monotonic()
            if left <= 0 or not poller.poll(left * 1000):
                return Answer("timeout", reason=f"no verdict within {deadline:g} s")
            chunk = os.read(pipe.fileno(), 4096)
            received += chunk
            if not chunk:
                return Answer("error", reason="the worker ended without a verdict")
            if len(received) > _MAX_REPLY:
                return Answer("error", reason="the worker wrote too much")
        return _parsed_reply(received, identifier)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:  # what was still buffered for a dead process
                    continue


def _parsed_reply(received: bytes, identifier: int) -> Answer:
    try:
        reply = json.loads(received)
        verdict, reason = str(reply["verdict"]), str(reply.get("reason", ""))
        value = float(reply["value"]) if verdict == "value" else None
        matches = reply["id"] == identifier
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return Answer("error", reason=f"the worker wrote garbage: {type(error).__name__}")
    known = verdict in _REPORTS if identifier else verdict in {"ready", "missing"}
    if not matches or not known:
        return Answer("error", reason=reason or "the worker answered another question")
    return Answer(verdict, value, reason)


@functools.cache
def default_pool() -> AlgebraPool:
    """The pool that grading uses: one worker per processor this process may use, at most four."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    pool = AlgebraPool(workers=min(4, usable or 1))
    atexit.register(pool.close)
    return pool
