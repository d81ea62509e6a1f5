"""The sections of a run's settings, each a frozen record; importing this does not import torch."""

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from trainers.method_settings import Count, Frozen, NonNegative, Positive, Share

__all__ = [
    "CorrectionSettings",
    "DataSettings",
    "DynamicSamplingSettings",
    "EvaluationSettings",
    "LoraSettings",
    "MixSettings",
    "OptimizerSettings",
    "RewardSettings",
    "RolloutSettings",
    "SamplingSettings",
    "StageSettings",
    "Whole",
]

Whole = Annotated[int, Field(ge=0)]


class DataSettings(Frozen):
    """Where questions come from: a suite, made on the fly, a published set by name, or a folder."""

    suite: str | None = None
    levels: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    split: str = "train"
    seed: Whole = 0
    per_task: Count = 1000
    modality: Literal["image", "text", "both"] | None = None
    name: str | None = None
    """A published training set, such as ``virl39k``; with ``folder``, from a copy of its files."""
    revision: str | None = None
    """Branch, tag or commit of a published set on the Hub."""
    folder: str | None = None
    """A split of ``npbench generate``, or a ``datasets`` folder with prompt, images, answer."""
    columns: dict[str, str] = Field(default_factory=dict)
    """Of a folder: prompt, images, image, answer, id or target -> its own name for it."""
    prompt_format: Literal["plain", "answer-line", "think-boxed", "answer-tag"] = "plain"
    """The words below each prompt of a folder or published set that ask for a form of answer."""


Target = Literal[
    "reference",
    "heuristic",
    "greedy",
    "random",
    "trivial",
    "teacher",
    "careful_teacher",
    "edges",
    "perception",
    "column",
]


def _reference_alone() -> dict[Target, float]:
    return {"reference": 1.0}


class MixSettings(Frozen):
    """One source of supervised rows, and what is asked of them."""

    data: DataSettings
    targets: Annotated[dict[Target, Positive], Field(min_length=1)] = Field(
        default_factory=_reference_alone
    )
    """Kind of reply -> its share: a solver's answer, a randomised teacher's with its words, a more
    careful one's, the edges as bits, np-perception's list of facts, or the data's own column
    ``target``."""
    replies: Count = 1
    """How many of a random teacher's replies are learnt at once, behind one prompt."""
    ask: tuple[str, ...] = ()
    """Tasks of which one is asked of a picture, at random, instead of its own."""
    weight: Positive = 1.0


class StageSettings(Frozen):
    """A stretch of supervised steps with one mix of sources."""

    steps: Count
    mix: Annotated[tuple[MixSettings, ...], Field(min_length=1)]
    restart: bool = False
    """Warm-up and schedule of the learning rate begin anew with this stage."""


class EvaluationSettings(Frozen):
    """Held-out questions; their split is ``validation`` unless a name or folder is given."""

    questions: Count = 32
    samples: Count = 8
    seed: Whole = 0
    name: str | None = None
    """A published set whose held-out split is evaluated on; with ``folder``, from a copy of it."""
    folder: str | None = None
    """Without name and folder the suite of ``[data]``; a run without a suite has to give one."""
    benchmarks: dict[str, str] = Field(default_factory=dict)
    """Benchmark -> folder of its data, empty for the Hub: before the first step, training questions
    that are among its own are counted."""


class SamplingSettings(Frozen):
    """How replies are drawn."""

    temperature: Positive = 1.0
    max_tokens: Count = 64
    rows_at_once: Count = 256
    """Replies that are decoded together, at most."""
    chat_template: bool = True
    """False puts the bare prompt before a model that has no chat template."""
    min_pixels: Count | None = None
    max_pixels: Count | None = None
    truncated: Literal["count", "mask", "zero"] = "count"
    """Replies cut off by the limit: trained on like others, left out, or given reward 0."""


class RolloutSettings(Frozen):
    """What draws the replies: the trained model itself, or vLLM beside it."""

    backend: Literal["transformers", "vllm"] = "transformers"
    memory_fraction: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.4
    """Of each GPU, for vLLM's weights and key-value cache together."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Of vLLM's weights; ``auto`` is ``optimizer.precision``."""
    tensor_parallel: Count = 1
    """GPUs that share vLLM's weights; with more than 1 they are pushed through a folder."""
    context: Count | None = None
    """Longest prompt and reply together, in tokens; the model's own limit where None."""
    sleep: bool = True
    """On CUDA, give vLLM's memory back while the model is trained."""
    tolerance: Positive = 0.05
    """Nats a token by which vLLM and the trainer may differ after a push of weights."""
    address: str | None = None
    """Of ``npbench serve-rollouts``, such as ``http://127.0.0.1:8765``; None starts vLLM in the
    trainer's process. Memory, type, GPUs and context are the server's own there."""

    @field_validator("address")
    @classmethod
    def _served(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None:
            return None
        if not value.startswith(("http://", "https://")):
            raise PydanticCustomError("address", "must start with http:// or https://")
        if info.data.get("backend") != "vllm":
            raise PydanticCustomError("address", "must be left away unless the backend is 'vllm'")
        for name in ("memory_fraction", "dtype", "tensor_parallel", "context", "sleep"):
            if name in info.data and info.data[name] != cls.model_fields[name].default:
                raise PydanticCustomError(
                    "address", f"must be left away with rollouts.{name}, which is the server's own"
                )
        return value.rstrip("/")


class DynamicSamplingSettings(Frozen):
    """DAPO's dynamic sampling, with a bound."""

    enabled: bool = False
    max_rounds: Count = 10
    shortage: Literal["flat", "short"] = "flat"


class CorrectionSettings(Frozen):
    """Importance weights between sampler and trainer."""

    rule: Literal["none", "truncate", "mask"] = "none"
    level: Literal["token", "sequence"] = "token"
    threshold: Annotated[float, Field(ge=1.0)] = 2.0


class OptimizerSettings(Frozen):
    """AdamW and how a step's gradient is computed."""

    learning_rate: Positive = 1e-6
    weight_decay: NonNegative = 0.0
    beta1: Share = 0.9
    beta2: Share = 0.999
    warmup_steps: Whole = 0
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    max_grad_norm: Positive = 1.0
    mini_batches: Count = 1
    """Optimiser steps per step of rollouts."""
    tokens_at_once: Count = 16384
    """Bound on the tokens of a micro-batch, its prompt counted once for each reply."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """``bfloat16`` computes in it and keeps parameters in float32."""
    attention: Literal["sdpa", "eager", "flash_attention_2"] = "sdpa"
    """The implementation of transformers; ``eager`` is fastest for tiny models in bfloat16."""
    shared_prefix: bool = True
    gradient_checkpointing: bool = False
    """Compute each layer twice and keep none of its activations; the gradient is the same."""
    share_states: bool = False
    """Of several processes each keeps the moments of its own parameters (ZeRO, stage 1)."""
    fsdp: bool = False
    """Of several processes each keeps its part of weights, summed gradients and moments (FSDP2); in
    a pass it has beside them all weights, in the type of ``precision``, and its own gradients."""

    @field_validator("fsdp")
    @classmethod
    def _alone(cls, value: bool, info: ValidationInfo) -> bool:
        if value and info.data.get("share_states"):
            raise PydanticCustomError(
                "fsdp", "must be false beside share_states, as it shares the moments out, too"
            )
        return value


class LoraSettings(Frozen):
    """An adapter instead of the whole model."""

    rank: Whole = 0
    """0 trains all parameters."""
    alpha: Positive = 32.0
    targets: tuple[str, ...] = ()
    """Names of layers; all linear ones but the head where empty."""


class RewardSettings(Frozen):
    """A named reward, and terms of one's own by import path."""

    name: str = "dmpo"
    functions: dict[str, str] = Field(default_factory=dict)
    """Name of a term -> ``package.module:function``, added with its weight."""
    weights: dict[str, float] = Field(default_factory=dict)
    """Weights of those terms, 1 where not given."""
    timeout: Positive | None = None
    failure_limit: Share = 0.5
