"""An engine behind an address, with the surface of one in this process.

Token ids and the trainer's own pixels go over, ids and log-probabilities come back. A thread says
every few seconds that the run is alive, so that nobody else gets the server between two draws.
"""

import os
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field

from torch import Tensor

from trainers.config import Config
from trainers.encoding import Prompt
from trainers.policy import Policy
from trainers.rollout_client import Line, open_client
from trainers.rollout_wire import (
    DRAW_BYTES,
    PART_BYTES,
    PROTOCOL,
    ClaimCall,
    Claimed,
    Done,
    DrawCall,
    DrawJob,
    DrawnReplies,
    DrawPrompt,
    PartCall,
    PushCall,
    packed,
    parts_of,
)
from trainers.vllm_jobs import Distribution, Drawn, EngineError, Job
from trainers.vllm_weights import plain_weights

__all__ = ["RemoteEngine", "claim_engine", "draw_body", "draws_of"]

CALL_BYTES, CALL_JOBS = 4 * PART_BYTES, 8192
"""Of prompts in one call, unless one has more, and its samples."""


@dataclass(slots=True, kw_only=True)
class RemoteEngine:
    """A server that this run holds."""

    line: Line
    longest: int
    """Tokens of prompt and reply together that the server has room for."""
    patience: float
    """Seconds of silence after which the server may be another run's."""
    _over: threading.Event = field(default_factory=threading.Event)

    def prompt(self, prompt: Prompt) -> Prompt:
        """A prompt as it goes over."""
        return prompt

    def draw(self, jobs: Sequence[Job], distribution: Distribution) -> list[Drawn]:
        """The samples, in the order of the jobs.

        Raises:
            EngineError: If the server does not give them.
        """
        return [drawn for some in draws_of(jobs) for drawn in self._drawn(some, distribution)]

    def _drawn(self, jobs: Sequence[Job], distribution: Distribution) -> list[Drawn]:
        body = draw_body(jobs, distribution)
        if len(body) > DRAW_BYTES:
            raise EngineError(
                f"a prompt must have at most {DRAW_BYTES} bytes, mostly pixels, got {len(body)}: "
                f"lower sampling.max_pixels"
            )
        found = self.line.ask("draw", DrawnReplies, body).replies
        if len(found) != len(jobs):
            raise EngineError(f"the server must give {len(jobs)} replies, got {len(found)}")
        return [Drawn(one.ids, one.logprobs, one.finish_reason) for one in found]

    def sleep(self) -> None:
        """The server's memory is its own: there is nothing to give back."""

    def wake(self, part: str) -> None:
        """The server never slept."""

    def push(self, policy: Policy) -> None:
        """The policy's weights to the server, an adapter merged into them."""
        weights = plain_weights(policy.model)
        parts = list(parts_of(weights))
        self.line.ask("push", Done, PushCall(parts=len(parts)))
        for number, names in enumerate(parts):
            part = packed(PartCall(number=number), {name: weights[name] for name in names})
            self.line.ask("part", Done, part)
        self.line.ask("load", Done, Done())

    def reset_caches(self) -> None:
        """Makes the server forget all that was computed under other weights."""
        self.line.ask("reset", Done, Done())

    def close(self) -> None:
        """Gives the server back, if it is still there."""
        self._over.set()
        with closing(self.line.client), suppress(EngineError):
            self.line.ask("release", Done, Done())

    def keep(self) -> None:
        """Says again and again that the run is alive, until it ends or has lost the server."""
        with open_client() as client:
            line = Line(self.line.address, client, self.line.claim)
            while not self._over.wait(self.patience / 6):
                try:
                    line.ask("alive", Done, Done())
                except EngineError:
                    # the next call of the run itself says what is wrong, if anything still is
                    continue


def claim_engine(config: Config, policy: Policy) -> RemoteEngine:
    """The engine at ``rollouts.address``, for this run alone until it is closed.

    Raises:
        EngineError: If the server cannot be reached or is another run's, or its model is another.
    """
    assert config.rollouts.address is not None
    line = Line(config.rollouts.address, open_client())
    call = ClaimCall(
        protocol=PROTOCOL,
        holder=f"process {os.getpid()} on {socket.gethostname()} ({config.method})"[:200],
        weights={name: tuple(one.shape) for name, one in plain_weights(policy.model).items()},
    )
    try:
        found = line.ask("claim", Claimed, call)
    except EngineError:
        line.client.close()
        raise
    line.claim = found.claim
    engine = RemoteEngine(line=line, longest=found.longest, patience=found.patience)
    threading.Thread(target=engine.keep, daemon=True, name="npbench-rollouts-alive").start()
    return engine


def draws_of(
    jobs: Sequence[Job], *, most_bytes: int = CALL_BYTES, most_jobs: int = CALL_JOBS
) -> Iterator[list[Job]]:
    """Jobs that go over together, in their order; a prompt's pixels count once."""
    some: list[Job] = []
    seen: set[int] = set()
    room = most_bytes
    for job in jobs:
        size = 8 * job.prompt.length + sum(one.nbytes for one in job.prompt.pictures.values())
        new = id(job.prompt) not in seen
        if some and (len(some) == most_jobs or (new and size > room)):
            yield some
            some, seen, room, new = [], set(), most_bytes, True
        if new:
            seen.add(id(job.prompt))
            room -= size
        some.append(job)
    if some:
        yield some


def draw_body(jobs: Sequence[Job], distribution: Distribution) -> bytes:
    """A draw as it goes over: each prompt once with its pixels, however many samples it has."""
    places: dict[int, int] = {}
    prompts: list[DrawPrompt] = []
    tensors: dict[str, Tensor] = {}
    for job in jobs:
        if id(job.prompt) not in places:
            number = places[id(job.prompt)] = len(prompts)
            pictures: Mapping[str, Tensor] = job.prompt.pictures
            prompts.append(
                DrawPrompt(ids=tuple(job.prompt.ids_1L[0].tolist()), pictures=tuple(pictures))
            )
            tensors |= {f"{number}.{name}": tensor for name, tensor in pictures.items()}
    call = DrawCall(
        temperature=distribution.temperature,
        end_ids=distribution.end_ids,
        banned_ids=distribution.banned_ids,
        prompts=tuple(prompts),
        jobs=tuple(
            DrawJob(
                prompt=places[id(job.prompt)],
                seed=job.seed,
                max_tokens=job.max_tokens,
                greedy=job.greedy,
            )
            for job in jobs
        ),
    )
    return packed(call, tensors)
