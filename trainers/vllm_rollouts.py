"""Rollouts by vLLM, beside the trainer or behind an address, under the weights of the last update.

Each call wakes the engine, brings its weights up to date where the policy's have changed, forgets
what was computed under the old ones, proves on a fixed prompt that both sides agree, draws, and
puts the engine to sleep. An engine that dies or disagrees stops the run between two steps.

R replies of one prompt, T reply tokens.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from npbench.errors import InputError
from trainers.config import Config
from trainers.distributed import first_process, processes, together
from trainers.encoding import Prompt
from trainers.learner import Learner
from trainers.policy import Policy
from trainers.remote_engine import RemoteEngine, claim_engine
from trainers.rollout_client import check_server
from trainers.rollouts import Backend, Reply, Request, TransformersBackend
from trainers.shared_rollouts import FirstDraws
from trainers.vllm_engine import Engine, import_vllm, start_engine
from trainers.vllm_jobs import Distribution, Drawn, EngineError, Job

__all__ = ["EngineError", "VllmBackend", "check_backend", "rollout_backend"]

PROBE_TOKENS = 16
"""Length of the reply on which engine and trainer are compared after a push."""


def check_backend(config: Config) -> None:
    """Looks for what a run's rollouts need, before anything is written.

    Raises:
        InputError: If vLLM is wanted and missing, or of a version outside its window; or a server
            is named and not there.
    """
    if config.rollouts.address is not None:
        # the others of several processes need not be able to reach it
        if first_process():
            check_server(config.rollouts.address)
    elif config.rollouts.backend == "vllm":
        import_vllm()


@contextmanager
def rollout_backend(config: Config, learner: Learner) -> Iterator[Backend]:
    """What a run's replies are drawn with; an engine lives, or is held, until the block ends.

    Raises:
        InputError: If an engine does not start, or a server cannot be had.
    """
    policy = learner.policy
    if config.rollouts.backend == "transformers":
        yield TransformersBackend(policy, config.sampling.rows_at_once)
        return
    if config.rollouts.address is not None:
        with _served(config, policy) as backend:
            yield backend
        return
    engine = start_engine(config, policy)
    try:
        yield VllmBackend(policy, engine, tolerance=config.rollouts.tolerance)
    finally:
        engine.close()


@contextmanager
def _served(config: Config, policy: Policy) -> Iterator[Backend]:
    """A server, which the first of several processes holds for all.

    Raises:
        EngineError: On all processes, if it cannot be had.
    """
    engine = None
    with together():
        if first_process():
            engine = claim_engine(config, policy)
    if engine is None:
        yield FirstDraws(None)
        return
    try:
        backend = VllmBackend(policy, engine, tolerance=config.rollouts.tolerance)
        yield backend if processes() == 1 else FirstDraws(backend)
    finally:
        engine.close()


@dataclass(slots=True)
class VllmBackend:
    """Sampling by an engine whose weights follow the policy's.

    A reply's entropy is estimated from the tokens drawn, as the mean of -log p: the engine keeps no
    distributions. Of a greedy reply it is not known, NaN.
    """

    policy: Policy
    engine: Engine | RemoteEngine
    tolerance: float = 0.05
    """Nats a token by which engine and trainer may differ in the mean: room for bfloat16."""
    pushed: int | None = None
    """Which of the policy's weights the engine has."""
    checked: Prompt | None = None
    """The fixed prompt: the first that was ever asked for, with its pictures."""

    def generate(
        self, requests: Sequence[Request], *, max_tokens: int, greedy: bool = False
    ) -> list[tuple[Reply, ...]]:
        """The replies to each request.

        Raises:
            EngineError: If the engine fails, or disagrees with the trainer after a push.
        """
        if not requests:
            return []
        self.checked = self.checked or requests[0].prompt
        with _failures_named():
            self._wake()
            found = self._draw(requests, max_tokens, greedy=greedy)
            self.engine.sleep()
        return found

    def _wake(self) -> None:
        """The order matters: memory for weights, the weights, the rest, and no old cache."""
        engine, version = self.engine, _version(self.policy)
        engine.wake("weights")
        stale = version != self.pushed
        if stale:
            engine.push(self.policy)
        engine.wake("kv_cache")
        engine.reset_caches()
        if stale:
            self._probe()
            # what the probe leaves would let later draws depend on it
            engine.reset_caches()
            self.pushed = version

    def _probe(self) -> None:
        """Compares log-probabilities on the fixed prompt.

        Raises:
            EngineError: If they differ by more than the tolerance.
        """
        assert self.checked is not None
        ((reply,),) = self._draw([Request(self.checked, (0,))], PROBE_TOKENS)
        ours_T = self._scored(self.checked, reply.ids)
        gap = float((ours_T - reply.logprobs).abs().mean())
        if not gap <= self.tolerance:
            raise EngineError(
                f"engine and trainer must agree to rollouts.tolerance={self.tolerance:g} nats a "
                f"token after a push of weights, they differ by {gap:.3g}"
            )

    def _draw(
        self, requests: Sequence[Request], max_tokens: int, *, greedy: bool = False
    ) -> list[tuple[Reply, ...]]:
        longest = max(request.prompt.length for request in requests)
        if longest + max_tokens > self.engine.longest:
            raise EngineError(
                f"the engine must have room for {longest} prompt and {max_tokens} reply tokens, "
                f"got {self.engine.longest}; raise rollouts.context, or a server's --context"
            )
        jobs = [
            Job(prompt, seed, max_tokens, greedy)
            for request, prompt in zip(requests, map(self._input, requests), strict=True)
            for seed in request.seeds
        ]
        drawn = iter(self.engine.draw(jobs, Distribution.of(self.policy)))
        return [
            tuple(self._reply(request, seed, next(drawn), greedy=greedy) for seed in request.seeds)
            for request in requests
        ]

    def _input(self, request: Request) -> object:
        return self.engine.prompt(request.prompt)

    def _reply(self, request: Request, seed: int, drawn: Drawn, *, greedy: bool) -> Reply:
        ids_T, logprobs_T = torch.tensor(drawn.ids), torch.tensor(drawn.logprobs)
        entropy = -float(logprobs_T.mean())
        if greedy:
            logprobs_T, entropy = self._scored(request.prompt, ids_T), float("nan")
        return Reply(ids_T, logprobs_T, entropy, drawn.finish_reason, seed)

    @torch.no_grad()
    def _scored(self, prompt: Prompt, ids_T: Tensor) -> Tensor:
        """The trainer's log-probabilities of a reply."""
        logprobs_RT = self.policy.logprobs(self.policy.prefix(prompt), [ids_T])
        return logprobs_RT[0].float().cpu()


def _version(policy: Policy) -> int:
    """Grows with every change of a parameter; torch counts them, so no caller can forget to."""
    return sum(parameter._version for parameter in policy.model.parameters())


@contextmanager
def _failures_named() -> Iterator[None]:
    """The boundary at which whatever an engine raises becomes one line."""
    resume = "the run stops and can go on from its last checkpoint with --resume"
    try:
        yield
    except EngineError as error:
        raise EngineError(f"{error}; {resume}") from error
    except InputError:
        raise
    except Exception as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise EngineError(f"the vLLM engine failed ({text}); {resume}") from error
