"""vLLM's offline engine: chats with pictures, a request of its own for every sample."""

from collections.abc import Iterable, Iterator
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

from evaluators.backends.base import (
    Completion,
    ModelInfo,
    Reply,
    Request,
    Sampling,
    failure,
)
from evaluators.backends.pictures import load_picture
from evaluators.checkpoints import check_adapter, find_checkpoint
from npbench.errors import InputError

__all__ = ["OfflineBackend"]

_MOST_PICTURES = 16
_REQUESTS = 64
"""Questions that are handed to the engine at a time; it batches their samples itself."""

_Sample = tuple[Request, int, int, Any]
"""Request, sample, seed and messages."""


class OfflineBackend:
    """A model in vLLM's engine, in this process or its workers."""

    name = "vllm"

    def __init__(
        self,
        model: str,
        sampling: Sampling,
        *,
        lora: Path | None = None,
        dtype: str = "auto",
        tensor_parallel: int = 1,
        min_pixels: int | None = None,
        max_pixels: int | None = None,
    ) -> None:
        """Check a checkpoint and start the engine.

        Args:
            model: A folder or a name of the Hub.
            sampling: How replies are drawn.
            lora: An adapter to put on the model.
            dtype: The number type; ``auto`` is that of the checkpoint.
            tensor_parallel: GPUs that share the model.
            min_pixels: Pictures below this area are enlarged.
            max_pixels: Pictures above this area are reduced.

        Raises:
            InputError: If vLLM or a file is missing, or the engine does not start.
        """
        try:
            import torch
            import vllm  # type: ignore[import-not-found, unused-ignore]
        except ImportError as error:
            raise InputError(
                f"the vllm backend needs: pip install 'npbench[vllm]' ({error})"
            ) from None
        self._vllm = vllm
        self._checkpoint = find_checkpoint(model)
        self._lora = None if lora is None else check_adapter(lora)
        self._adapter = None
        if lora is not None:
            from vllm.lora.request import (  # type: ignore[import-not-found, unused-ignore]
                LoRARequest,
            )

            self._adapter = LoRARequest("adapter", 1, str(lora.resolve()))
        self._sampling = sampling
        self._limits = {"min_pixels": min_pixels, "max_pixels": max_pixels}
        pictures = {"limit_mm_per_prompt": {"image": _MOST_PICTURES}}
        try:
            self._engine = vllm.LLM(
                model=str(self._checkpoint.folder),
                dtype=dtype,
                tensor_parallel_size=tensor_parallel,
                enable_lora=lora is not None,
                # Compiling for a CPU takes longer than it saves.
                enforce_eager=not torch.cuda.is_available(),
                # A prompt in parts rewinds its generator, which those of a CPU cannot do.
                enable_chunked_prefill=None if torch.cuda.is_available() else False,
                # Nothing is taken from the checkpoint's own sampling settings.
                generation_config="vllm",
                **(pictures if self._checkpoint.sees else {}),
            )
        except (OSError, ValueError, RuntimeError, ImportError) as error:
            text = " ".join(str(error).split())[:300]
            raise InputError(f"{model} cannot be loaded by vLLM: {text}") from None

    def describe(self) -> ModelInfo:
        """The checkpoint, its adapter and its chat template."""
        return ModelInfo(
            self._checkpoint.name,
            self._checkpoint.fingerprint,
            details={
                "dtype": str(self._engine.llm_engine.model_config.dtype).removeprefix("torch."),
                "lora": self._lora,
                "template_hash": self._checkpoint.template_hash,
            },
            versions={
                "vllm": self._vllm.__version__,
                **{name: version(name) for name in ("torch", "transformers")},
            },
        )

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """The completions in order, some questions at a time."""
        stream = iter(requests)
        while chunk := list(islice(stream, _REQUESTS)):
            ready: list[_Sample] = []
            failed: dict[int, Reply] = {}
            for number, request in enumerate(chunk):
                try:
                    messages = self._messages(request)
                except Exception as error:  # noqa: BLE001 -- the boundary of failures
                    failed[number] = failure(error)
                    continue
                ready += [
                    (request, sample, seed, messages)
                    for sample, seed in zip(request.samples, request.seeds, strict=True)
                ]
            made = self._complete(ready)
            for number, request in enumerate(chunk):
                if number in failed:
                    yield from (Completion(request, s, failed[number]) for s in request.samples)
                else:
                    yield from islice(made, len(request.samples))

    def _messages(self, request: Request) -> list[dict[str, Any]]:
        prompt = request.prompt
        if prompt.pictures and not self._checkpoint.sees:
            raise ValueError(f"{self._checkpoint.name} takes no pictures")
        content = [
            {"type": "text", "text": part}
            if isinstance(part, str)
            else {"type": "image_pil", "image_pil": load_picture(part, **self._limits)}
            for part in prompt.parts
        ]
        user: dict[str, Any] = {"role": "user", "content": content}
        return [{"role": "system", "content": prompt.system}, user] if prompt.system else [user]

    def _complete(self, samples: list[_Sample]) -> Iterator[Completion]:
        """The completions of samples; where the engine refuses them they are halved."""
        if not samples:
            return
        try:
            outputs = self._engine.chat(
                [messages for _, _, _, messages in samples],
                [
                    self._params(None if request.decode == "greedy" else seed)
                    for request, _, seed, _ in samples
                ],
                use_tqdm=False,
                lora_request=self._adapter,
            )
        except Exception as error:  # noqa: BLE001 -- the boundary at which failures become records
            self._forget()
            if len(samples) > 1:
                half = len(samples) // 2
                yield from self._complete(samples[:half])
                yield from self._complete(samples[half:])
            else:
                request, sample, _, _ = samples[0]
                yield Completion(request, sample, failure(error))
            return
        for (request, sample, _, messages), output in zip(samples, outputs, strict=True):
            yield Completion(request, sample, _reply(output.outputs[0], messages))

    def _forget(self) -> None:
        """Takes what a failed call left in the engine out of it, or it would be tried for ever."""
        engine = self._engine.llm_engine
        states = getattr(engine.output_processor, "request_states", {})
        engine.abort_request(list(states), internal=True)

    def _params(self, seed: int | None) -> Any:
        drawn = self._sampling
        if seed is None:
            return self._vllm.SamplingParams(
                n=1, temperature=0.0, max_tokens=drawn.max_tokens, stop=list(drawn.stop)
            )
        return self._vllm.SamplingParams(
            n=1,
            seed=seed,
            temperature=drawn.temperature,
            top_p=drawn.top_p,
            top_k=drawn.top_k,
            min_p=drawn.min_p,
            repetition_penalty=drawn.repetition_penalty,
            max_tokens=drawn.max_tokens,
            stop=list(drawn.stop),
        )


def _reply(output: Any, messages: list[dict[str, Any]]) -> Reply:
    pictures = [part["image_pil"] for part in messages[-1]["content"] if "image_pil" in part]
    if output.finish_reason == "abort":
        return failure("the engine gave the request up")
    stopped = output.stop_reason
    return Reply(
        text=output.text,
        finish_reason=output.finish_reason,
        stop_reason=stopped if isinstance(stopped, str) else None,
        num_tokens=len(output.token_ids),
        picture_sizes=tuple(picture.size for picture in pictures) or None,
    )
