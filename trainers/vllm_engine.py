"""vLLM's offline engine in this process: how it is started, given weights, put to sleep and woken.

Nothing but this module and ``vllm_pictures`` knows vLLM's own names. Prompts go in as token ids and
as the pixels that the trainer's processor made, sampled ids come out as they were drawn. vLLM's
``n`` gives sample i the seed s + i; ours are hashes, so every sample is a request of its own: its
picture is encoded once (encoder cache) and its prompt computed once (prefix cache) all the same.
"""

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from npbench.errors import InputError
from trainers.adapters import merged_state
from trainers.config import Config
from trainers.encoding import Prompt
from trainers.policy import Policy
from trainers.vllm_pictures import engine_input

__all__ = ["Drawn", "Engine", "Job", "import_vllm", "start_engine"]

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


@dataclass(frozen=True, slots=True)
class Job:
    """One sample to draw."""

    prompt: Any
    """What ``engine_input`` made; the samples of a group share one."""
    seed: int
    max_tokens: int
    greedy: bool = False


@dataclass(frozen=True, slots=True)
class Drawn:
    """One sample as the engine drew it."""

    ids: tuple[int, ...]
    """The ending one included."""
    logprobs: tuple[float, ...]
    """Of the distribution it was drawn from; a greedy sample's are at temperature 1."""
    finish_reason: str


@dataclass(slots=True, kw_only=True)
class Engine:
    """A running engine that samples from a policy's distribution."""

    llm: Any
    vllm: Any
    temperature: float
    end_ids: tuple[int, ...]
    banned_ids: tuple[int, ...]
    image_token_id: int | None
    can_sleep: bool
    folder: Path | None = None
    """Where weights are left for workers of other processes; None where all are in this one."""
    close: Callable[[], None] = lambda: None
    _numbers: Iterable[int] = field(default_factory=lambda: iter(range(2**63)))

    @property
    def longest(self) -> int:
        """Tokens of prompt and reply together that the engine has room for."""
        return int(self.llm.llm_engine.model_config.max_model_len)

    def prompt(self, prompt: Prompt) -> Any:
        """A prompt in the engine's form."""
        return engine_input(prompt, self.image_token_id)

    def draw(self, jobs: Sequence[Job]) -> list[Drawn]:
        """The samples, in the order of the jobs, whatever finished first.

        Raises:
            RuntimeError: If the engine returns none for a job, or gave one up.
        """
        engine, wanted = self.llm.llm_engine, []
        for job, number in zip(jobs, self._numbers, strict=False):
            wanted.append(str(number))
            engine.add_request(wanted[-1], job.prompt, self._params(job))
        found: dict[str, Any] = {}
        while engine.has_unfinished_requests():
            found |= {output.request_id: output for output in engine.step() if output.finished}
        if missing := [name for name in wanted if name not in found]:
            raise RuntimeError(f"{len(missing)} of {len(wanted)} replies did not come back")
        return [self._drawn(found[name].outputs[0]) for name in wanted]

    def _params(self, job: Job) -> Any:
        return self.vllm.SamplingParams(
            n=1,
            seed=job.seed,
            temperature=0.0 if job.greedy else self.temperature,
            max_tokens=job.max_tokens,
            # the policy says what ends a reply, not the checkpoint's tokenizer
            stop_token_ids=list(self.end_ids),
            ignore_eos=True,
            # the trainer's distribution has no mass at all there, so neither may the engine's
            logit_bias=dict.fromkeys(self.banned_ids, -torch.inf) or None,
            logprobs=0,
            detokenize=False,
            output_kind=self.vllm.sampling_params.RequestOutputKind.FINAL_ONLY,
        )

    def _drawn(self, output: Any) -> Drawn:
        ids = tuple(output.token_ids)
        if output.finish_reason not in ("stop", "length") or not ids:
            raise RuntimeError(f"a reply ended with {output.finish_reason!r} at token {len(ids)}")
        if placeholders := set(ids) & set(self.banned_ids):
            raise RuntimeError(f"a reply holds the picture placeholder {min(placeholders)}")
        logprobs = tuple(
            float(at[token].logprob) for at, token in zip(output.logprobs, ids, strict=True)
        )
        return Drawn(ids, logprobs, output.finish_reason)

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
        if self.folder is not None:
            policy.save(self.folder)
            self.llm.collective_rpc("reload_weights", kwargs={"weights_path": str(self.folder)})
        else:
            weights = iter(_without_aliases(merged_state(policy.model)))
            self.llm.collective_rpc("reload_weights", kwargs={"weights_iterator": weights})
            if (left := next(weights, None)) is not None:
                raise RuntimeError(f"the engine did not take {left[0]} and the weights after it")
        if not torch.cuda.is_available():
            self.llm.apply_model(_pack_tied_heads)

    def reset_caches(self) -> None:
        """Forgets all that was computed under other weights: prefixes, pixels, picture features.

        Raises:
            RuntimeError: If the engine keeps some prefix.
        """
        if not self.llm.reset_prefix_cache():
            raise RuntimeError("the prefix cache could not be reset")
        self.llm.reset_mm_cache()
        self.llm.llm_engine.reset_encoder_cache()


def _pack_tied_heads(model: nn.Module) -> None:
    """On a CPU layers compute with packed copies, and a reload leaves a tied head its old one."""
    for layer in model.modules():
        packed: Any = layer
        if hasattr(layer, "cpu_linear") and packed.weight.numel():
            packed.quant_method.process_weights_after_loading(layer)


def _without_aliases(state: dict[str, Tensor]) -> list[tuple[str, Tensor]]:
    """Each tensor once: a tied head is the embedding under a second name."""
    seen: set[tuple[int, torch.Size]] = set()
    found = []
    for name, tensor in state.items():
        if (key := (tensor.data_ptr(), tensor.shape)) not in seen:
            seen.add(key)
            found.append((name, tensor.detach()))
    return found


def start_engine(config: Config, policy: Policy) -> Engine:
    """A fresh engine of a policy's shape; its weights are arbitrary until they are pushed.

    Raises:
        InputError: If vLLM is missing or does not start.
    """
    vllm = import_vllm()
    settings = config.rollouts
    cuda, alone = torch.cuda.is_available(), settings.tensor_parallel == 1
    # weights go over as they are, which only works inside one process
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    # the engine must not move the trainer's own threads, nor take the machine's memory
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    place = tempfile.TemporaryDirectory(prefix="npbench-vllm-")
    folder = Path(place.name)
    if alone:
        policy.model.config.save_pretrained(folder)
        policy.encoder.save(folder)
    else:
        policy.save(folder)
    dtype = str(policy.precision).removeprefix("torch.")
    try:
        llm = vllm.LLM(
            model=str(folder),
            load_format="dummy" if alone else "auto",
            dtype=dtype if settings.dtype == "auto" else settings.dtype,
            tensor_parallel_size=settings.tensor_parallel,
            max_num_seqs=config.sampling.rows_at_once,
            enable_prefix_caching=True,
            # of the distribution that is drawn from, not of the bare logits
            logprobs_mode="processed_logprobs",
            # pixels come from the trainer, so there is nothing to keep
            mm_processor_cache_gb=0,
            generation_config="vllm",
            # compiling for a CPU takes longer than it saves
            enforce_eager=not cuda,
            enable_sleep_mode=cuda and settings.sleep,
            **({"gpu_memory_utilization": settings.memory_fraction} if cuda else {}),
            **({"max_model_len": settings.context} if settings.context else {}),
        )
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        place.cleanup()
        text = " ".join(str(error).split())[:300]
        raise InputError(f"vLLM cannot be started: {text}") from error
    torch.set_num_threads(config.threads)

    def close() -> None:
        llm.llm_engine.engine_core.shutdown()
        place.cleanup()

    return Engine(
        llm=llm,
        vllm=vllm,
        temperature=policy.temperature,
        end_ids=policy.end_ids,
        banned_ids=policy.banned_ids,
        image_token_id=policy.encoder.image_token_id,
        can_sleep=cuda and settings.sleep,
        folder=None if alone else folder,
        close=close,
    )
