"""An engine for one run at a time: the weights that it was given, and draws from them.

A draw is answered only to the run that holds the server, and only from weights that came over
whole. Calls arrive in many threads, the engine is used by the one that runs ``work``.
"""

import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from contextlib import suppress
from math import prod
from pathlib import Path
from queue import SimpleQueue

import torch
from torch import Tensor

from npbench.errors import InputError
from trainers.encoding import Prompt
from trainers.rollout_bodies import from_file, shapes_in_file
from trainers.rollout_claims import Claim, Claims, RefusedError, lost
from trainers.rollout_wire import (
    ClaimCall,
    Claimed,
    Done,
    DrawCall,
    DrawnReplies,
    DrawnReply,
    Message,
    PartCall,
    PushCall,
)
from trainers.vllm_engine import Engine
from trainers.vllm_jobs import Distribution, Job, StoppedError

__all__ = ["RolloutServer"]

HEADER = 2**10
"""Bytes that a tensor's name, type and place may take in the header of a part, and its call."""


class RolloutServer:
    """A running engine and what a run may ask of it."""

    def __init__(self, engine: Engine, claims: Claims, *, hold: float = 15.0) -> None:
        """Nobody uses it yet.

        Args:
            engine: Its weights do not matter.
            claims: Who may use it.
            hold: Seconds after which a caller is told that its call is still under way.
        """
        self.engine, self.claims, self._hold = engine, claims, hold
        self._jobs: SimpleQueue[tuple[Claim, Future[Message], Callable[[], Message]] | None]
        self._jobs = SimpleQueue()
        self._broke_off = False
        """Whether the last load left the engine with half of the weights."""

    def work(self) -> None:
        """Does what is asked of the engine, one thing after the other, until ``stop``."""
        while (item := self._jobs.get()) is not None:
            claim, future, job = item
            try:
                if not self.claims.is_current(claim):
                    raise lost()
                future.set_result(job())
            except RefusedError as error:
                future.set_exception(error)
            except StoppedError:
                future.set_exception(lost())
            except InputError as error:
                future.set_exception(RefusedError(400, str(error)))
            except Exception as error:  # noqa: BLE001 -- the boundary at which failures become answers
                text = " ".join(f"{type(error).__name__}: {error}".split())[:300]
                status = 400 if isinstance(error, ValueError) else 500
                future.set_exception(RefusedError(status, f"the engine failed ({text})"))
            finally:
                self.claims.tidy(claim)

    def stop(self) -> None:
        """Lets ``work`` return when it is done with what it does."""
        self._jobs.put(None)

    def claim(self, call: ClaimCall) -> Claimed:
        """Gives the server to a run, if it is free."""
        claim = self.claims.give(call)
        return Claimed(claim=claim.name, longest=self.engine.longest, patience=self.claims.patience)

    def release(self, claim: Claim) -> Done:
        """Frees the server; a draw under way is given up."""
        self.claims.release(claim)
        return Done()

    def push(self, claim: Claim, call: PushCall) -> Done:
        """The beginning of a push: from now on there are no weights to draw from.

        Raises:
            RefusedError: If it has more parts than tensors.
        """
        if call.parts > (most := len(self.claims.shapes)):
            raise RefusedError(
                400, f"a push must have at most {most} parts, one a tensor, got {call.parts}"
            )
        with self.claims.lock:
            claim.check_idle()
            claim.whole, claim.parts, claim.came, claim.tensors = False, call.parts, 0, set()
            shutil.rmtree(claim.pushed, ignore_errors=True)
            claim.pushed.mkdir()
        return Done()

    def part(self, claim: Claim, body: Path) -> Done:
        """Keeps some of the weights.

        Raises:
            RefusedError: If it is not the next part, or holds what is not the model's.
        """
        call, shapes = shapes_in_file(body, PartCall)
        with self.claims.lock:
            claim.check_idle()
            claim.check_part(call.number, shapes, self.claims.shapes)
            most = HEADER + sum(8 * prod(shape) + HEADER for shape in shapes.values())
            if (size := body.stat().st_size) > most:
                raise RefusedError(
                    413, f"a part of these tensors must have at most {most} bytes, got {size}"
                )
            body.rename(claim.pushed / f"part-{call.number:06d}.safetensors")
            claim.came += 1
            claim.tensors |= shapes.keys()
        return Done()

    def load(self, claim: Claim) -> Message | None:
        """The end of a push: the engine takes the weights if all came over."""

        def job() -> Done:
            claim.check_whole(self.claims.shapes)
            self._load(claim.pushed)
            claim.whole, claim.parts = True, 0
            shutil.rmtree(claim.pushed, ignore_errors=True)
            return Done()

        return self._begin(claim, job)

    def _load(self, folder: Path) -> None:
        if self._broke_off:
            # vLLM goes on where the last load broke off, and fails once, before it begins anew
            with suppress(Exception):
                self.engine.load_folder(folder)
                self._broke_off = False
                return
        self._broke_off = True
        self.engine.load_folder(folder)
        self._broke_off = False

    def reset(self, claim: Claim) -> Message | None:
        """Forgets what was computed under other weights."""

        def job() -> Done:
            self.engine.reset_caches()
            return Done()

        return self._begin(claim, job)

    def draw(self, claim: Claim, body: Path) -> Message | None:
        """The samples of a call.

        Raises:
            RefusedError: If it names prompts or pictures that it does not hold.
        """
        call, tensors = from_file(body, DrawCall)
        prompts = _prompts(call, tensors)
        last = max(job.prompt for job in call.jobs)
        if last >= len(prompts):
            raise RefusedError(400, f"a job's prompt must be below {len(prompts)}, got {last}")

        def job() -> DrawnReplies:
            if not claim.whole:
                raise RefusedError(409, "weights must be pushed whole before anything is drawn")
            return self._drawn(claim, call, prompts)

        return self._begin(claim, job)

    def _drawn(self, claim: Claim, call: DrawCall, prompts: list[Prompt]) -> DrawnReplies:
        inputs = [self.engine.prompt(prompt) for prompt in prompts]
        drawn = self.engine.draw(
            [Job(inputs[one.prompt], one.seed, one.max_tokens, one.greedy) for one in call.jobs],
            Distribution(
                temperature=call.temperature, end_ids=call.end_ids, banned_ids=call.banned_ids
            ),
            wanted=lambda: self.claims.is_current(claim),
        )
        replies = (
            DrawnReply(ids=one.ids, logprobs=one.logprobs, finish_reason=one.finish_reason)
            for one in drawn
        )
        return DrawnReplies(replies=tuple(replies))

    def _begin(self, claim: Claim, job: Callable[[], Message]) -> Message | None:
        with self.claims.lock:
            claim.check_idle()
            claim.under_way = future = Future[Message]()
        self._jobs.put((claim, future, job))
        return self.wait(claim)

    def wait(self, claim: Claim) -> Message | None:
        """The answer to the call under way; None where it goes on.

        Raises:
            RefusedError: If that is what it came to, or there is none.
        """
        if (future := claim.under_way) is None:
            raise RefusedError(409, "no call is under way")
        if not wait_for([future], timeout=self._hold).done:
            return None
        with self.claims.lock:
            if claim.under_way is future:
                claim.under_way = None
        return future.result()


def _prompts(call: DrawCall, tensors: Mapping[str, Tensor]) -> list[Prompt]:
    """The prompts of a call; raises RefusedError where a picture is missing."""
    found = []
    for number, prompt in enumerate(call.prompts):
        names = {name: f"{number}.{name}" for name in prompt.pictures}
        if missing := [key for key in names.values() if key not in tensors]:
            raise RefusedError(400, f"the body must hold the tensor {missing[0]}")
        pictures = {name: tensors[key] for name, key in names.items()}
        found.append(Prompt(torch.tensor([prompt.ids]), pictures))
    return found
