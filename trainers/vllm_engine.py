"""vLLM's offline engine: how it is started, given weights, put to sleep and woken.

It runs in this process, the trainer's or the rollout server's. Nothing but this module,
``vllm_weights`` and ``vllm_pictures`` knows vLLM's own names. Prompts go in as token ids and
as the pixels that the trainer's processor made, sampled ids come out as they were drawn. vLLM's
``n`` gives sample i the seed s + i; ours are hashes, so every sample is a request of its own: its
picture is encoded once (encoder cache) and its prompt computed once (prefix cache) all the same.
"""

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from npbench.errors import InputError
from trainers.config import Config
from trainers.distributed import processes, rank
from trainers.encoding import Prompt
from trainers.policy import Policy
from trainers.vllm_jobs import Distribution, Drawn, Job, StoppedError
from trainers.vllm_pictures import engine_input
from trainers.vllm_weights import pack_tied_heads, plain_weights, stored_weights

__all__ = ["BEYOND", "OLDEST", "Engine", "Launch", "import_vllm", "launch", "start_engine"]

OLDEST, BEYOND = (0, 32), (0, 34)
"""The versions of vLLM that this is written for: from the first, below the second."""
LINE = "pip install 'vllm>={}.{},<{}.{}'".format(*OLDEST, *BEYOND)


def import_vllm() -> Any:
    """The library.

    Raises:
        InputError: If it is missing, or of a version outside the window.
    """
    try:
        import vllm
    except ImportError as error:
        raise InputError(f"rollouts.backend 'vllm' needs: {LINE} ({error})") from None
    found = re.match(r"(\d+)\.(\d+)", vllm.__version__)
    if found is None or not OLDEST <= tuple(map(int, found.groups())) < BEYOND:
        raise InputError(f"rollouts.backend 'vllm' needs: {LINE}, got vllm {vllm.__version__}")
    return vllm


@dataclass(slots=True, kw_only=True)
class Engine:
    """A running engine; its weights are arbitrary until some are pushed or loaded."""

    llm: Any
    vllm: Any
    image_token_id: int | None
    can_sleep: bool
    alone: bool
    """Whether all workers are in this process, so that tensors can be handed to them."""
    folder: Path | None = None
    """Where a policy is left for workers of other processes."""
    close: Callable[[], None] = lambda: None
    _numbers: Iterable[int] = field(default_factory=lambda: iter(range(2**63)))

    @property
    def longest(self) -> int:
        """Tokens of prompt and reply together that the engine has room for."""
        return int(self.llm.llm_engine.model_config.max_model_len)

    def prompt(self, prompt: Prompt) -> Any:
        """A prompt in the engine's form."""
        return engine_input(prompt, self.image_token_id)

    def draw(
        self,
        jobs: Sequence[Job],
        distribution: Distribution,
        *,
        wanted: Callable[[], bool] = lambda: True,
    ) -> list[Drawn]:
        """The samples, in the order of the jobs, whatever finished first.

        Args:
            jobs: What to draw.
            distribution: What to draw it from.
            wanted: Asked again and again whether to go on.

        Raises:
            StoppedError: If they are no longer wanted.
            RuntimeError: If the engine returns none for a job, or gave one up.
        """
        engine, names = self.llm.llm_engine, []
        found: dict[str, Any] = {}
        try:
            for job, number in zip(jobs, self._numbers, strict=False):
                names.append(str(number))
                engine.add_request(names[-1], job.prompt, self._params(job, distribution))
            while engine.has_unfinished_requests():
                if not wanted():
                    left = len(names) - len(found)
                    raise StoppedError(f"{left} of {len(names)} replies were left undrawn")
                found |= {output.request_id: output for output in engine.step() if output.finished}
        except BaseException:
            # the next draw must not go on with these
            engine.abort_request(names)
            raise
        if missing := [name for name in names if name not in found]:
            raise RuntimeError(f"{len(missing)} of {len(names)} replies did not come back")
        return [_drawn(found[name].outputs[0], distribution) for name in names]

    def _params(self, job: Job, distribution: Distribution) -> Any:
        return self.vllm.SamplingParams(
            n=1,
            seed=job.seed,
            temperature=0.0 if job.greedy else distribution.temperature,
            max_tokens=job.max_tokens,
            # the policy says what ends a reply, not the checkpoint's tokenizer
            stop_token_ids=list(distribution.end_ids),
            ignore_eos=True,
            # the trainer's distribution has no mass at all there, so neither may the engine's
            logit_bias=dict.fromkeys(distribution.banned_ids, -torch.inf) or None,
            logprobs=0,
            detokenize=False,
            output_kind=self.vllm.sampling_params.RequestOutputKind.FINAL_ONLY,
        )

    def sleep(self) -> None:
        """Frees the GPU for the training pass: weights to main memory, no key-value cache."""
        if self.can_sleep:
            # level 2 would drop buffers too, which no push brings back
            self.llm.sleep(level=1)

    def wake(self, part: str) -> None:
        """Takes the memory of ``weights`` or of the ``kv_cache`` back."""
        if self.can_sleep:
            self.llm.wake_up(tags=[part])

    def push(self, policy: Policy) -> None:
        """The policy's weights into the running engine, an adapter merged into them."""
        if self.alone:
            self._load(plain_weights(policy.model).items())
        else:
            assert self.folder is not None
            policy.save(self.folder)
            self.load_folder(self.folder)

    def load_folder(self, folder: Path) -> None:
        """The weights of a folder's safetensors files, each by its name in the checkpoint."""
        if self.alone:
            self._load(stored_weights(folder))
        else:
            self.llm.collective_rpc("reload_weights", kwargs={"weights_path": str(folder)})
            self._loaded()

    def _load(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        left = iter(weights)
        self.llm.collective_rpc("reload_weights", kwargs={"weights_iterator": left})
        if (first := next(left, None)) is not None:
            raise RuntimeError(f"the engine did not take {first[0]} and the weights after it")
        self._loaded()

    def _loaded(self) -> None:
        if not torch.cuda.is_available():
            self.llm.apply_model(pack_tied_heads)

    def reset_caches(self) -> None:
        """Forgets all that was computed under other weights: prefixes, pixels, picture features.

        Raises:
            RuntimeError: If the engine keeps some prefix.
        """
        if not self.llm.reset_prefix_cache():
            raise RuntimeError("the prefix cache could not be reset")
        self.llm.reset_mm_cache()
        self.llm.llm_engine.reset_encoder_cache()


def _drawn(output: Any, distribution: Distribution) -> Drawn:
    """One reply as the engine gave it.

    Raises:
        RuntimeError: If it was given up, or holds what must not be drawn.
    """
    ids = tuple(output.token_ids)
    if output.finish_reason not in ("stop", "length") or not ids:
        raise RuntimeError(f"a reply ended with {output.finish_reason!r} at token {len(ids)}")
    if placeholders := set(ids) & set(distribution.banned_ids):
        raise RuntimeError(f"a reply holds the picture placeholder {min(placeholders)}")
    logprobs = tuple(
        float(at[token].logprob) for at, token in zip(output.logprobs, ids, strict=True)
    )
    return Drawn(ids, logprobs, output.finish_reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How an engine is started."""

    dtype: str
    rows: int
    """Replies that are decoded together, at most."""
    tensor_parallel: int = 1
    context: int | None = None
    memory_fraction: float
    sleep: bool = False
    beside_others: bool = False
    """Whether a launcher's other processes, in a group by now, start an engine each, too."""

    @property
    def alone(self) -> bool:
        """Whether one process is enough."""
        return self.tensor_parallel == 1


def launch(model: str, options: Launch, *, image_token_id: int | None) -> Engine:
    """A fresh engine for a model; in one process only the shape of its checkpoint is looked at.

    Raises:
        InputError: If vLLM is missing or does not start.
    """
    vllm = import_vllm()
    cuda, threads = torch.cuda.is_available(), torch.get_num_threads()
    many = options.beside_others
    # weights go over as they are, which only works inside one process
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    # the engine must not move the trainer's own threads, nor take the machine's memory
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    try:
        llm = vllm.LLM(
            model=model,
            load_format="dummy" if options.alone else "auto",
            dtype=options.dtype,
            tensor_parallel_size=options.tensor_parallel,
            max_num_seqs=options.rows,
            enable_prefix_caching=True,
            # of the distribution that is drawn from, not of the bare logits
            logprobs_mode="processed_logprobs",
            # pixels come from the trainer, so there is nothing to keep
            mm_processor_cache_gb=0,
            generation_config="vllm",
            # compiling for a CPU takes longer than it saves
            enforce_eager=not cuda,
            enable_sleep_mode=cuda and options.sleep,
            # without it an engine takes the trainer's group for one of its own
            **({"distributed_executor_backend": "external_launcher"} if many else {}),
            **({"gpu_memory_utilization": options.memory_fraction} if cuda else {}),
            **({"max_model_len": options.context} if options.context else {}),
        )
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        text = " ".join(str(error).split())[:300]
        raise InputError(f"vLLM cannot be started: {text}") from error
    torch.set_num_threads(threads)
    return Engine(
        llm=llm,
        vllm=vllm,
        image_token_id=image_token_id,
        can_sleep=cuda and options.sleep,
        alone=options.alone,
        close=llm.llm_engine.engine_core.shutdown,
    )


def start_engine(config: Config, policy: Policy) -> Engine:
    """A fresh engine of a policy's shape beside the trainer.

    Raises:
        InputError: If vLLM is missing or does not start.
    """
    settings = config.rollouts
    dtype = str(policy.precision).removeprefix("torch.")
    options = Launch(
        dtype=dtype if settings.dtype == "auto" else settings.dtype,
        rows=config.sampling.rows_at_once,
        tensor_parallel=settings.tensor_parallel,
        context=settings.context,
        memory_fraction=settings.memory_fraction,
        sleep=settings.sleep,
        beside_others=processes() > 1,
    )
    if options.beside_others:
        # the engine takes the GPU of this number, as the trainer does
        os.environ.setdefault("LOCAL_RANK", str(rank()))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="npbench-vllm-")))
        if options.alone:
            policy.model.config.save_pretrained(folder)
            policy.encoder.save(folder)
        else:
            policy.save(folder)
        engine = launch(str(folder), options, image_token_id=policy.encoder.image_token_id)
        engine.folder = folder
        stack.callback(engine.close)
        engine.close = stack.pop_all().close
    return engine
