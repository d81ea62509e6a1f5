"""Who may use a rollout server: one run at a time, for as long as it is heard from."""

import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

from trainers.rollout_wire import PROTOCOL, ClaimCall, Message

__all__ = ["Claim", "Claims", "RefusedError", "Shapes", "lost"]

Shapes = Mapping[str, tuple[int, ...]]


class RefusedError(Exception):
    """A call that is not answered, with an HTTP status and one line."""

    def __init__(self, status: int, line: str) -> None:
        """What is said to the caller."""
        super().__init__(line)
        self.status = status


def lost() -> RefusedError:
    """What the holder of an older claim is told."""
    return RefusedError(
        409,
        "the run no longer holds the server, which was restarted or given to another run: its "
        "weights are not the run's",
    )


@dataclass(slots=True, kw_only=True)
class Claim:
    """A run that holds the server."""

    name: str
    """A secret of server and run."""
    holder: str
    folder: Path
    """Bodies of its calls, and the parts of a push; there until nothing is done for it any more."""
    since: float
    seen: float
    """When it was last heard from."""
    parts: int = 0
    """Announced for the push under way; 0 where there is none."""
    came: int = 0
    """Parts that came over."""
    tensors: set[str] = field(default_factory=set)
    """Names of what was in them."""
    whole: bool = False
    """Whether the engine has its weights, all of them."""
    under_way: Future[Message] | None = None
    """What the engine does for it."""

    @property
    def pushed(self) -> Path:
        """Where the parts of a push are."""
        return self.folder / "weights"

    @property
    def busy(self) -> bool:
        """Whether the engine is or will be at work for it."""
        return self.under_way is not None and not self.under_way.done()

    def check_idle(self) -> None:
        """Raises RefusedError where a call is under way."""
        if self.under_way is not None:
            raise RefusedError(409, "one call must end before the next one begins")

    def check_part(self, number: int, shapes: Shapes, model: Shapes) -> None:
        """Raises RefusedError where a part is not the next one, or holds what is not to come."""
        if not number == self.came < self.parts:
            raise RefusedError(
                409,
                f"parts of a push must come in order, {self.parts} were announced, got number "
                f"{number} after {self.came}",
            )
        if not shapes:
            raise RefusedError(400, "a part must hold tensors, got none")
        for name, shape in shapes.items():
            if name not in model:
                raise RefusedError(400, f"a push must hold the model's tensors, got {name}")
            if shape != model[name]:
                raise RefusedError(
                    400, f"{name} must have the shape {list(model[name])}, got {list(shape)}"
                )
            if name in self.tensors:
                raise RefusedError(400, f"a push must hold each tensor once, got {name} twice")

    def check_whole(self, model: Shapes) -> None:
        """Raises RefusedError where parts or tensors of a push are missing."""
        if not self.parts or self.came != self.parts:
            raise RefusedError(409, f"a push must have its {self.parts} parts, got {self.came}")
        if missing := sorted(model.keys() - self.tensors):
            raise RefusedError(
                400,
                f"a push must hold the {len(model)} tensors of the model, {missing[0]} is missing",
            )


class Claims:
    """The claim of a server, if there is one."""

    def __init__(
        self,
        shapes: Shapes,
        *,
        patience: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nobody has it yet.

        Args:
            shapes: Names and shapes of all tensors of the server's model.
            patience: Seconds of silence after which a holder may be replaced.
            clock: Seconds that never go backwards.
        """
        self.shapes, self.patience, self._clock = dict(shapes), patience, clock
        self.lock = threading.Lock()
        self._claim: Claim | None = None
        self._place = tempfile.TemporaryDirectory(prefix="npbench-rollouts-")

    def close(self) -> None:
        """Removes what was kept on the disk."""
        self._place.cleanup()

    def give(self, call: ClaimCall) -> Claim:
        """The server to a run, if it is free.

        Raises:
            RefusedError: If another run holds it, or the run's model is another one.
        """
        if call.protocol != PROTOCOL:
            raise RefusedError(
                409,
                f"both sides must speak protocol {PROTOCOL}, the run speaks {call.protocol}: "
                f"install one version of npbench",
            )
        if found := _difference(self.shapes, call.weights):
            raise RefusedError(409, f"server and run must have the same model: {found}")
        now = self._clock()
        with self.lock:
            before = self._claim
            if before is not None and now - before.seen < self.patience:
                raise RefusedError(
                    409,
                    f"the server must be free, {before.holder} has held it for "
                    f"{now - before.since:.0f} s and was heard of {now - before.seen:.0f} s ago; "
                    f"it is free when that run ends, or is silent for {self.patience:.0f} s",
                )
            self._claim = claim = Claim(
                name=secrets.token_urlsafe(24),
                holder="".join(letter for letter in call.holder if letter.isprintable()),
                folder=Path(tempfile.mkdtemp(dir=self._place.name)),
                since=now,
                seen=now,
            )
        if before is not None:
            self.tidy(before)
        return claim

    def held(self, name: str) -> Claim:
        """The claim of that name, which was just heard from.

        Raises:
            RefusedError: If it is not the current one.
        """
        with self.lock:
            claim = self._claim
            if claim is None or not secrets.compare_digest(claim.name.encode(), name.encode()):
                raise lost()
            claim.seen = self._clock()
            return claim

    def is_current(self, claim: Claim) -> bool:
        """Whether nobody took its place."""
        return self._claim is claim

    def release(self, claim: Claim) -> None:
        """Frees the server."""
        with self.lock:
            if self._claim is claim:
                self._claim = None
        self.tidy(claim)

    def tidy(self, claim: Claim) -> None:
        """Removes what a claim that is over has on the disk, unless the engine may still read it.

        It is called when a claim ends, and whenever the engine is done with a call.
        """
        with self.lock:
            over = self._claim is not claim and not claim.busy
        if over:
            shutil.rmtree(claim.folder, ignore_errors=True)


def _difference(expected: Shapes, got: Shapes) -> str | None:
    """The first tensor that one side lacks, or that has another shape."""
    for name in sorted(expected.keys() | got.keys()):
        pair = expected.get(name), got.get(name)
        if pair[0] != pair[1]:
            ours, theirs = ("nothing" if one is None else str(list(one)) for one in pair)
            return (
                f"{name} is {ours} in the server's {len(expected)} tensors and {theirs} in the "
                f"run's {len(got)}"
            )
    return None
