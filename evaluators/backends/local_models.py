"""Models of the Hub or a folder by transformers: left-padded batches, a seed for every sample.

A batch holds all samples of its questions: generation expands the encoded prompt, so a picture is
encoded once for its greedy and sampled replies. Each row draws from numbers of its own seed, so a
sample does not depend on what it is batched with. Shapes: B rows, V vocabulary.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from evaluators.backends.base import (
    Completion,
    ModelInfo,
    Prompt,
    Reply,
    Request,
    Sampling,
    failure,
)
from evaluators.backends.pictures import load_picture
from evaluators.checkpoints import Checkpoint, check_adapter, find_checkpoint
from npbench.errors import InputError

__all__ = ["LocalBackend"]

_DTYPES = ("auto", "bfloat16", "float16", "float32")


@dataclass(frozen=True, slots=True)
class _Row:
    """One sample to generate."""

    request: Request
    sample: int
    seed: int | None
    """None for greedy decoding."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """One question, ready for the model."""

    rows: tuple[_Row, ...]
    text: str
    pictures: tuple[Any, ...]
    max_tokens: int

    @property
    def shape(self) -> tuple[int, int, bool]:
        """What the questions of a batch have in common."""
        return len(self.rows), self.max_tokens, bool(self.pictures)


class LocalBackend:
    """A causal or an image-text-to-text model in this process."""

    name = "transformers"

    def __init__(
        self,
        model: str,
        sampling: Sampling,
        *,
        lora: Path | None = None,
        device: str | None = None,
        dtype: str = "auto",
        batch_size: int = 8,
        min_pixels: int | None = None,
        max_pixels: int | None = None,
    ) -> None:
        """Check a checkpoint and load it.

        Args:
            model: A folder or a name of the Hub.
            sampling: How replies are drawn.
            lora: An adapter to merge into the model.
            device: Where it runs; CUDA where there is one.
            dtype: The number type; ``auto`` is that of the checkpoint.
            batch_size: Rows that are generated together.
            min_pixels: Pictures below this area are enlarged.
            max_pixels: Pictures above this area are reduced.

        Raises:
            InputError: If a library, a file or the device is missing.
        """
        if dtype not in _DTYPES:
            raise InputError(f"dtype must be one of {', '.join(_DTYPES)}, got {dtype!r}")
        if batch_size < 1:
            raise InputError(f"batch size must be at least 1, got {batch_size}")
        self._checkpoint = find_checkpoint(model)
        self._lora = None if lora is None else check_adapter(lora)
        self._sampling = sampling
        self._batch_size = batch_size
        self._limits = {"min_pixels": min_pixels, "max_pixels": max_pixels}
        self._loaded = _load(self._checkpoint, lora=lora, device=device, dtype=dtype)

    def describe(self) -> ModelInfo:
        """The checkpoint, its number type, adapter and chat template."""
        libraries = ["torch", "transformers", "tokenizers"]
        return ModelInfo(
            self._checkpoint.name,
            self._checkpoint.fingerprint,
            details={
                "dtype": str(self._loaded.model.dtype).removeprefix("torch."),
                "lora": self._lora,
                "template_hash": self._checkpoint.template_hash,
            },
            versions={name: version(name) for name in libraries + (["peft"] if self._lora else [])},
        )

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """The completions in order, batch by batch; requests of one question share its batch."""
        batch: list[_Prepared] = []
        for rows in self._questions(requests):
            prepared = self._prepare(rows)
            if isinstance(prepared, Reply):
                if batch:
                    yield from self._complete(batch)
                    batch = []
                yield from (Completion(row.request, row.sample, prepared) for row in rows)
                continue
            full = (len(batch) + 1) * len(prepared.rows) > self._batch_size
            if batch and (full or batch[0].shape != prepared.shape):
                yield from self._complete(batch)
                batch = []
            batch.append(prepared)
        if batch:
            yield from self._complete(batch)

    def _questions(self, requests: Iterable[Request]) -> Iterator[tuple[_Row, ...]]:
        """The rows of each question, at most a batch of them at a time."""
        waiting: list[_Row] = []
        for request in requests:
            if waiting and waiting[0].request.id != request.id:
                yield from self._chunks(waiting)
                waiting = []
            greedy = request.decode == "greedy"
            waiting += [
                _Row(request, sample, None if greedy else seed)
                for sample, seed in zip(request.samples, request.seeds, strict=True)
            ]
        yield from self._chunks(waiting)

    def _chunks(self, rows: list[_Row]) -> Iterator[tuple[_Row, ...]]:
        for start in range(0, len(rows), self._batch_size):
            yield tuple(rows[start : start + self._batch_size])

    def _prepare(self, rows: tuple[_Row, ...]) -> _Prepared | Reply:
        """The question's text and pictures, or why it cannot be asked."""
        loaded = self._loaded
        prompt = rows[0].request.prompt
        try:
            if prompt.pictures and not self._checkpoint.sees:
                return failure(f"{self._checkpoint.name} takes no pictures")
            pictures = tuple(load_picture(picture, **self._limits) for picture in prompt.pictures)
            text = loaded.template.apply_chat_template(
                _messages(prompt, parted=self._checkpoint.sees),
                add_generation_prompt=True,
                tokenize=False,
            )
            length = loaded.encode([text], [pictures])["input_ids"].shape[1]
        except Exception as error:  # noqa: BLE001 -- the boundary at which failures become records
            return failure(error)
        room = loaded.context - length
        if room < 1:
            return failure(f"the prompt has {length} tokens, the model takes {loaded.context}")
        return _Prepared(rows, text, pictures, min(self._sampling.max_tokens, room))

    def _complete(self, batch: Sequence[_Prepared]) -> Iterator[Completion]:
        """The completions of a batch; a batch that fails is halved until its cause is alone."""
        replies: list[Reply] = []
        failed = None
        try:
            replies = self._replies(batch)
        except Exception as error:  # noqa: BLE001 -- the boundary at which failures become records
            failed = failure(error)
        # Behind the handler, so that nothing holds the memory of the batch that failed.
        if failed and len(batch) > 1:
            half = len(batch) // 2
            yield from self._complete(batch[:half])
            yield from self._complete(batch[half:])
            return
        if failed:
            replies = [failed] * len(batch[0].rows)
        rows = [row for prepared in batch for row in prepared.rows]
        for row, reply in zip(rows, replies, strict=True):
            yield Completion(row.request, row.sample, reply)

    def _replies(self, batch: Sequence[_Prepared]) -> list[Reply]:
        import torch

        from evaluators.backends.seeded import seeded_processor

        loaded, sampling = self._loaded, self._sampling
        inputs = loaded.encode(
            [prepared.text for prepared in batch], [prepared.pictures for prepared in batch]
        )
        max_tokens = batch[0].max_tokens
        seeds = [row.seed for prepared in batch for row in prepared.rows]
        with torch.inference_mode():
            output = loaded.model.generate(
                **inputs.to(loaded.model.device),
                # Every row is drawn by the processor, which leaves one token possible.
                do_sample=True,
                num_return_sequences=len(batch[0].rows),
                max_new_tokens=max_tokens,
                logits_processor=[seeded_processor(seeds, sampling, max_tokens=max_tokens)],
                **({"stop_strings": list(sampling.stop), "tokenizer": loaded.tokenizer}
                   if sampling.stop else {}),
            )  # fmt: skip
        new = output[:, inputs["input_ids"].shape[1] :].tolist()
        sizes = [
            tuple(picture.size for picture in prepared.pictures) or None
            for prepared in batch
            for _ in prepared.rows
        ]
        return [self._reply(ids, size) for ids, size in zip(new, sizes, strict=True)]

    def _reply(self, ids: list[int], sizes: tuple[tuple[int, int], ...] | None) -> Reply:
        loaded = self._loaded
        end = next((i for i, token in enumerate(ids) if token in loaded.ends), None)
        kept = ids if end is None else ids[:end]
        text = loaded.tokenizer.decode(kept, skip_special_tokens=True)
        found = [(text.find(stop), stop) for stop in self._sampling.stop if stop in text]
        stop_reason = None
        if found:
            position, stop_reason = min(found)
            text = text[:position]
            while kept and kept[-1] == loaded.tokenizer.pad_token_id:
                kept.pop()
        finished = end is not None or stop_reason is not None
        return Reply(
            text=text,
            finish_reason="stop" if finished else "length",
            stop_reason=stop_reason,
            num_tokens=len(kept),
            picture_sizes=sizes,
        )


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A model with what turns prompts into its inputs."""

    model: Any
    tokenizer: Any
    template: Any
    """The processor, or the tokenizer of a model that takes no pictures."""
    sees: bool
    context: int
    """Tokens that prompt and reply may have together."""
    ends: frozenset[int]

    def encode(self, texts: Sequence[str], pictures: Sequence[Sequence[Any]]) -> Any:
        """The model's inputs; the template has written all special tokens."""
        fixed: dict[str, Any] = {
            "padding": True,
            "return_tensors": "pt",
            "add_special_tokens": False,
        }
        if self.sees and pictures[0]:
            nested = [list(row) for row in pictures]
            return self.template(text=list(texts), images=nested, **fixed)
        return self.tokenizer(list(texts), **fixed)


def _load(checkpoint: Checkpoint, *, lora: Path | None, device: str | None, dtype: str) -> _Loaded:
    try:
        import torch
        from transformers import (
            AutoModelForCausalLM,
            AutoModelForImageTextToText,
            AutoProcessor,
            AutoTokenizer,
            GenerationConfig,
        )
    except ImportError as error:
        raise InputError(
            f"the transformers backend needs: pip install 'npbench[train]' ({error})"
        ) from None
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise InputError(f"device {device} is asked for and torch sees no GPU")
    kinds: Mapping[bool, tuple[Any, Any]] = {
        True: (AutoModelForImageTextToText, AutoProcessor),
        False: (AutoModelForCausalLM, AutoTokenizer),
    }
    model_kind, template_kind = kinds[checkpoint.sees]
    try:
        template = template_kind.from_pretrained(checkpoint.folder)
        model = model_kind.from_pretrained(checkpoint.folder, dtype=dtype)
        model = _adapted(model, lora).to(device).eval()
    except (OSError, ValueError, KeyError, RuntimeError, ImportError) as error:
        text = " ".join(str(error).split())[:300]
        raise InputError(f"{checkpoint.name} cannot be loaded: {text}") from None
    if checkpoint.sees and not hasattr(template, "image_processor"):
        raise InputError(f"{checkpoint.name}: its processor has no image processor")
    tokenizer = template.tokenizer if checkpoint.sees else template
    tokenizer.padding_side = "left"
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    stated = model.generation_config.eos_token_id
    ends = [stated] if isinstance(stated, int) else list(stated or [])
    if tokenizer.eos_token_id is not None:
        ends.append(tokenizer.eos_token_id)
    # Nothing but the special tokens is taken from the checkpoint's own settings: temperature,
    # penalties and lengths are those of the run.
    settings: Any = GenerationConfig
    model.generation_config = settings(
        bos_token_id=model.generation_config.bos_token_id,
        eos_token_id=sorted(set(ends)) or None,
        pad_token_id=tokenizer.pad_token_id,
        do_sample=True,
        temperature=1.0,
        top_p=1.0,
        top_k=0,
        repetition_penalty=1.0,
    )
    return _Loaded(
        model=model,
        tokenizer=tokenizer,
        template=template,
        sees=checkpoint.sees,
        context=getattr(model.config.get_text_config(), "max_position_embeddings", None) or 1 << 40,
        ends=frozenset(ends),
    )


def _adapted(model: Any, lora: Path | None) -> Any:
    if lora is None:
        return model
    try:
        from peft import PeftModel  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise InputError("a LoRA adapter needs: pip install peft") from None
    return PeftModel.from_pretrained(model, str(lora)).merge_and_unload()


def _messages(prompt: Prompt, *, parted: bool) -> list[dict[str, Any]]:
    """The chat of a prompt; a template for text alone takes text instead of parts."""

    def content(parts: Sequence[str | bytes]) -> Any:
        if not parted:
            return "\n".join(part for part in parts if isinstance(part, str))
        return [
            {"type": "text", "text": part} if isinstance(part, str) else {"type": "image"}
            for part in parts
        ]

    system = (
        [] if prompt.system is None else [{"role": "system", "content": content([prompt.system])}]
    )
    return [*system, {"role": "user", "content": content(prompt.parts)}]
