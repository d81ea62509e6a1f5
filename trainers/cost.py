"""What a step costs on some GPUs, on paper: a chain of drawing, judging, scoring and updating.

Replies are drawn, verified and scored, the policy is updated, and its weights go back to the
sampler. What a GPU delivers is assumed, and each figure names its source.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainers.cost_sizes import BACKWARD, Sizes, forward_flops

if TYPE_CHECKING:
    from trainers.config import Config

__all__ = [
    "H100",
    "L20",
    "Assumptions",
    "Figure",
    "Gpu",
    "StepCost",
    "Workload",
    "estimate_step",
    "generation_seconds",
    "workload_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """What a data sheet says of a GPU."""

    name: str
    flops: float
    """A second, dense bfloat16."""
    bandwidth: float
    """Bytes of memory a second."""


H100 = Gpu(name="H100 SXM 80 GB", flops=989e12, bandwidth=3.35e12)
L20 = Gpu(name="L20 48 GB", flops=119.5e12, bandwidth=0.864e12)


@dataclass(frozen=True, slots=True)
class Figure:
    """A number and where it comes from."""

    value: float
    unit: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """Everything about a run that is neither the model's shape nor in its recipe."""

    gpu: Gpu
    gpu_source: str
    training_share: Figure
    """Of the GPU's FLOPs, in matrix products that are done: recomputed ones count."""
    bandwidth_share: Figure
    decode_share: Figure
    """Of the GPU's FLOPs, in prefill and in decoding many replies at once."""
    picture_tokens: Figure
    text_tokens: Figure
    reply_tokens: Figure
    """Of a mean reply; the longest one reaches the recipe's limit."""
    other_seconds: Figure
    """Weights to the sampler, sleeping and waking, data: what is the same on any number of GPUs."""
    verify_seconds: Figure
    """CPU seconds to judge one reply."""
    verifiers: Figure
    """Processes that judge replies side by side."""

    def __post_init__(self) -> None:
        """Refuses shares outside (0, 1] and counts that make no sense."""
        for name in ("training_share", "bandwidth_share", "decode_share"):
            share = getattr(self, name).value
            if not 0 < share <= 1:
                raise ValueError(f"{name} must lie in (0, 1], got {share:g}")
        for name in ("text_tokens", "reply_tokens", "verifiers"):
            if getattr(self, name).value < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name).value:g}")

    def rows(self) -> list[tuple[str, str, str]]:
        """Name, value and source of each assumption, for a table."""
        found = [
            (
                "GPU",
                f"{self.gpu.name}: {self.gpu.flops / 1e12:,.4g} TFLOP/s bf16, "
                f"{self.gpu.bandwidth / 1e12:.3g} TB/s",
                self.gpu_source,
            )
        ]
        for name in self.__dataclass_fields__:
            figure = getattr(self, name)
            if isinstance(figure, Figure):
                value = f"{figure.value:,.4g} {figure.unit}".strip()
                found.append((name.replace("_", " "), value, figure.source))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What a run asks of a step."""

    prompts: int
    group_size: int
    """Replies to a question, over all its variants."""
    variants: int = 1
    """Prompts behind each of which every reply is trained."""
    mini_batches: int = 1
    longest_reply: int
    scorings: float
    """Passes without gradient over all rows: old and reference log-probabilities."""
    steps: int
    shared_prefix: bool
    recompute: bool
    """Gradient checkpointing: one more forward pass in the update."""
    whole_groups: bool
    """Whether a question stays on one GPU; otherwise rows are dealt out one by one."""

    @property
    def replies(self) -> int:
        """Drawn in a step."""
        return self.prompts * self.group_size

    @property
    def rows(self) -> int:
        """Trained on in a step."""
        return self.replies * self.variants


def workload_of(config: "Config") -> Workload:
    """What a configuration asks of a step of ours."""
    from trainers.methods import METHOD_TABLE

    method, parts = METHOD_TABLE[config.method], config.optimizer.mini_batches
    corrected = config.sampler_correction.rule != "none"
    scorings = 1.0 if method.needs_scores or corrected or parts > 1 else 0.0
    if method.needs_scores:
        # all mini-batches but the first are scored again, by the policy as it is then
        scorings += (parts - 1) / parts
    if method.needs_reference(config.method_settings):
        scorings += 1.0
    return Workload(
        prompts=config.prompts_per_step,
        group_size=config.group_size,
        variants=config.variants,
        mini_batches=parts,
        longest_reply=config.sampling.max_tokens,
        scorings=scorings,
        steps=config.steps,
        shared_prefix=config.optimizer.shared_prefix,
        recompute=config.optimizer.gradient_checkpointing,
        whole_groups=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCost:
    """Seconds of one step by use, and what follows."""

    gpus: int
    steps: int
    tokens: int
    """Of prompt and reply, over all rows that are trained on: the prompt once for each row."""
    reply_tokens: int
    """That are drawn."""
    generation: float
    verification: float
    scoring: float
    update: float
    other: float
    busy: float
    """Share of the GPUs that have work in the update."""

    @property
    def seconds(self) -> float:
        """Of the step."""
        return self.generation + self.verification + self.scoring + self.update + self.other

    @property
    def tokens_per_second(self) -> float:
        """On all GPUs."""
        return self.tokens / self.seconds

    @property
    def gpu_hours(self) -> float:
        """Of the run."""
        return self.seconds * self.steps * self.gpus / 3600


def estimate_step(sizes: Sizes, work: Workload, given: Assumptions, *, gpus: int) -> StepCost:
    """The cost of one step.

    Decoding is bound from below twice: the longest reply reads the weights once for each of its
    tokens whatever else is decoded, and every token of every reply has its FLOPs and reads its
    keys and values. The two are added. Prompts are prefilled once.

    Raises:
        ValueError: If there is no GPU.
    """
    if gpus < 1:
        raise ValueError(f"gpus must be at least 1, got {gpus}")
    gpu = given.gpu
    picture, text = round(given.picture_tokens.value), round(given.text_tokens.value)
    reply = round(given.reply_tokens.value)
    behind = forward_flops(
        sizes,
        picture_tokens=picture,
        text_tokens=text,
        reply_tokens=reply,
        replies=work.group_size,
        shared_prefix=work.shared_prefix,
    )
    group = behind * work.variants
    per_gpu = _most(work.prompts, gpus) if work.whole_groups else work.prompts / gpus
    part = work.prompts / work.mini_batches
    once = _most(part, gpus) if work.whole_groups else part / gpus
    rate = gpu.flops * given.training_share.value
    passes = 1 + BACKWARD + work.recompute
    return StepCost(
        gpus=gpus,
        steps=work.steps,
        tokens=work.rows * (picture + text + reply),
        reply_tokens=work.replies * reply,
        generation=generation_seconds(sizes, work, given, questions=per_gpu),
        verification=work.replies * given.verify_seconds.value / given.verifiers.value,
        scoring=work.scorings * per_gpu * group / rate,
        update=passes * work.mini_batches * once * group / rate,
        other=given.other_seconds.value,
        busy=part / gpus / once,
    )


def _most(questions: float, gpus: int) -> float:
    """Questions of the GPU that has most of them."""
    return float(math.ceil(questions / gpus))


def generation_seconds(
    sizes: Sizes, work: Workload, given: Assumptions, *, questions: float, tensor_parallel: int = 1
) -> float:
    """Seconds in which a GPU, or several that share the weights, draws replies."""
    gpu, reply = given.gpu, given.reply_tokens.value
    picture, text = round(given.picture_tokens.value), round(given.text_tokens.value)
    bandwidth = gpu.bandwidth * given.bandwidth_share.value
    rate = gpu.flops * given.decode_share.value
    prompt = forward_flops(
        sizes,
        picture_tokens=picture,
        text_tokens=text,
        reply_tokens=0,
        replies=1,
        shared_prefix=True,
    )
    prefill = questions * work.variants * prompt / rate
    floor = work.longest_reply * sizes.decoded_bytes / tensor_parallel / bandwidth
    context = picture + text + (reply + 1) / 2
    token = (2 * (sizes.layer_weights + sizes.head_weights)) / rate
    token += sizes.cache_bytes * context / bandwidth
    return prefill + floor + questions * work.group_size * reply * token
