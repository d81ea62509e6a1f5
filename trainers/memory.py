"""What a run holds in memory, estimated from sizes alone.

Weights and what the optimiser keeps are exact; logits follow from the shapes; activations are a
rule of thumb. Sampling, training and saving do not run at the same time: the largest of them
counts.
"""

from dataclasses import dataclass

from trainers.config import Config
from trainers.token_logprobs import PART

__all__ = ["Memory", "ModelSize", "estimate_memory"]

FLOAT = 4
"""Bytes of a float32."""
KEPT = 16
"""Activations of the model's width that a layer keeps for each token: queries, keys, values, the
attention's and the MLP's inputs and outputs, of which the MLP's are several times as wide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSize:
    """The sizes of a model that its memory depends on."""

    parameters: int
    adapter: int = 0
    """Parameters of the adapter; 0 where the whole model is trained."""
    vocabulary: int
    layers: int
    width: int
    cache_width: int
    """Numbers that a layer's keys, or values, hold for one token."""
    tied: bool = False
    """Whether the head's weight is the embedding's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Bytes by use."""

    weights: int
    """The policy's in the type they are kept in, and in bfloat16 again where that computes; a shard
    in float32 and all of them in the type that computes."""
    trained: int
    """Gradients and AdamW's two moments of what is trained; an adapter's weights, too."""
    reference: int
    """A second model, where the method has one."""
    logits: int
    """Logits of a micro-batch with their gradient, and what the log-softmax holds beside them."""
    activations: int
    """Of a micro-batch, for the backward pass."""
    sampling: int
    """Keys and values of the replies that are decoded together."""
    saving: int = 0
    """Shards at rest, and beside them the whole weights and moments that process 0 writes; 0 where
    a checkpoint takes no more of the device than a pass."""

    @property
    def total(self) -> int:
        """At the fullest: the training pass, sampling, or saving."""
        return self.total_beside(max(self.logits + self.activations, self.sampling))

    def total_beside(self, passing: int) -> int:
        """With so many bytes in use by passes and sampling."""
        return self.reference + max(self.weights + self.trained + passing, self.saving)


def estimate_memory(
    config: Config,
    size: ModelSize,
    prompt_tokens: int,
    *,
    second_model: bool,
    processes: int = 1,
    on_cpu: bool = False,
) -> Memory:
    """The memory of a run.

    Args:
        config: The run's settings.
        size: The model's sizes.
        prompt_tokens: Of the longest prompt, picture tokens included.
        second_model: Whether there is a reference beside the policy, not the policy without its
            adapter.
        processes: How many train together; they may share out the optimiser's states, or shard the
            policy.
        on_cpu: Whether the device's memory is the main memory, which takes whole what is saved of a
            sharded policy.
    """
    options = config.optimizer
    sharing = processes if options.share_states else 1
    computing = 2 if options.precision == "bfloat16" else FLOAT
    saving = 0
    if size.adapter:
        # frozen weights are kept in the type that computes, the adapter in float32
        weights = computing * size.parameters
        trained = 2 * FLOAT * size.adapter + _moments(size.adapter, sharing)
    elif options.fsdp and processes > 1:
        shard = -(-size.parameters // processes)
        # whole between steps, with the gradient; what is no linear layer, such as the embedding,
        # stays in float32
        looked_up = size.vocabulary * size.width
        weights = FLOAT * shard + computing * size.parameters + (FLOAT - computing) * looked_up
        if size.tied and computing == 2:
            # as a head it is copied by autocast
            weights += computing * looked_up
        trained = FLOAT * size.parameters + 2 * FLOAT * shard
        saving = 3 * FLOAT * (size.parameters + shard) if on_cpu else 0
    else:
        # autocast makes a copy of each float32 weight, which the backward pass needs, too
        weights = FLOAT * size.parameters + (2 * size.parameters if computing == 2 else 0)
        largest = size.vocabulary * size.width
        trained = FLOAT * size.parameters + _moments(size.parameters, sharing, largest)
    replies = config.sampling.max_tokens
    row = prompt_tokens + replies
    most = config.prompts_per_step if config.stages else config.group_size
    rows = min(max(1, config.optimizer.tokens_at_once // row), most)
    once = config.optimizer.shared_prefix and not config.stages
    tokens = rows * replies + prompt_tokens if once else rows * row
    kept = KEPT * size.layers
    if config.optimizer.gradient_checkpointing:
        # every layer's input, and one layer at a time in full
        kept = size.layers + KEPT
    cache = 2 * size.layers * size.cache_width * computing
    return Memory(
        weights=weights,
        trained=trained,
        reference=FLOAT * size.parameters if second_model else 0,
        logits=_logits(rows * replies * size.vocabulary, computing),
        activations=computing * tokens * size.width * kept,
        sampling=0 if config.stages else cache * row * _rows_decoded(config),
        saving=saving,
    )


def _moments(parameters: int, sharing: int, largest: int = 0) -> int:
    """AdamW's two, of the share of a process: at least those of the largest tensor."""
    return 2 * FLOAT * max(-(-parameters // sharing), largest)


def _logits(numbers: int, computing: int) -> int:
    """Logits and their gradient as they are, and the softmax in float32: a part, or in whole.

    In whole it is held with its gradient; of a part there are the logits, a copy divided by the
    temperature, and one without the banned tokens.
    """
    softmax = 2 * FLOAT * numbers if numbers <= PART else 3 * FLOAT * PART
    return 2 * computing * numbers + softmax


def _rows_decoded(config: Config) -> int:
    """Replies that are decoded together."""
    return min(config.prompts_per_step * config.group_size, config.sampling.rows_at_once)
