"""What a run would do, before it does it: sizes, token counts and an estimate of the memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainers.config import Config

if TYPE_CHECKING:
    from trainers.data import Question
    from trainers.memory import Memory, ModelSize

__all__ = ["Plan", "make_plan"]

PROBES = 4
"""Questions whose prompts are measured."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A run in numbers; None where the model was not given or could not be read."""

    questions: int | None
    """None for a published set whose number of rows is not known until it is loaded."""
    rollouts_per_step: int
    rows_per_step: int
    """Training rows: more than rollouts where a reply stands behind several prompts."""
    optimizer_steps: int
    epochs: float | None
    prompt_tokens: int | None
    """The longest of a few prompts, picture tokens included."""
    tokens_per_step: int | None
    """At most, prompts counted once."""
    parameters: int | None
    trained_parameters: int | None
    """Those of the adapter, where there is one."""
    memory: "Memory | None"

    def lines(self) -> list[tuple[str, str]]:
        """Names and values for a table; what is unknown is ``-``."""
        memory = self.memory
        values: dict[str, float | None] = {
            "questions": self.questions,
            "rollouts a step": self.rollouts_per_step,
            "training rows a step": self.rows_per_step,
            "optimiser steps": self.optimizer_steps,
            "epochs": None if self.epochs is None else round(self.epochs, 3),
            "prompt tokens (longest probed)": self.prompt_tokens,
            "tokens a step, at most": self.tokens_per_step,
            "parameters": self.parameters,
            "trained parameters": self.trained_parameters,
        }
        sizes = {
            "memory estimate (GB)": None if memory is None else memory.total,
            "- weights": None if memory is None else memory.weights + memory.reference,
            "- gradients, optimiser": None if memory is None else memory.trained,
            "- logits": None if memory is None else memory.logits,
            "- activations": None if memory is None else memory.activations,
            "- or, sampling": None if memory is None else memory.sampling,
        }
        if memory is not None and memory.saving:
            sizes["- or all in all, saving"] = memory.saving
        values |= {name: None if n is None else round(n / 1e9, 3) for name, n in sizes.items()}
        return [(name, "-" if value is None else f"{value:,}") for name, value in values.items()]


def make_plan(config: Config) -> Plan:
    """The plan of a run; loads the model's configuration and tokenizer, never its weights.

    Without a model the rows of a published set are counted as its card states, so that nothing
    need be downloaded.

    Raises:
        InputError: If data or model cannot be used.
    """
    from trainers.groups import reward_terms

    reward_terms(config)
    rollouts = config.prompts_per_step * config.group_size
    rows = rollouts * config.variants
    prompt_tokens = tokens = size = memory = None
    if config.model:
        from trainers.data import questions
        from trainers.loading import located

        source = questions(config.data)
        count: int | None = len(source)
        examples = [source[i] for i in range(min(PROBES, len(source)))]
        with located(config.model, config.seed) as folder:
            model_config, prompt_tokens = _probe(config, folder, examples)
        tokens = config.prompts_per_step * config.variants * prompt_tokens
        tokens += rows * config.sampling.max_tokens
        size = _size(config, model_config)
        memory = _memory(config, size, prompt_tokens)
    else:
        count = _count(config)
    taken = config.steps * config.prompts_per_step
    return Plan(
        questions=count,
        rollouts_per_step=rollouts,
        rows_per_step=rows,
        optimizer_steps=config.steps * config.optimizer.mini_batches,
        epochs=None if count is None else taken / count,
        prompt_tokens=prompt_tokens,
        tokens_per_step=tokens,
        parameters=None if size is None else size.parameters,
        trained_parameters=None if size is None else size.adapter or size.parameters,
        memory=memory,
    )


def _count(config: Config) -> int | None:
    """The number of questions; a published set on the Hub is not loaded for it."""
    from trainers.data import questions
    from trainers.named_sets import named_set

    data = config.data
    if data.name is not None and data.folder is None:
        return named_set(data.name).rows if data.split == "train" else None
    return len(questions(data))


def _probe(config: Config, folder: str, examples: Sequence["Question"]) -> tuple[Any, int]:
    """The configuration of the model in a folder, and the tokens of the longest of some prompts."""
    from trainers.encoding import load_encoder
    from trainers.model_configs import read_model_config

    model_config = read_model_config(folder, given=config.model)
    sampling = config.sampling
    encoder = load_encoder(
        folder,
        model_config,
        chat_template=sampling.chat_template,
        min_pixels=sampling.min_pixels,
        max_pixels=sampling.max_pixels,
    )
    return model_config, max(encoder.encode(q.prompt, q.images).length for q in examples)


def _size(config: Config, model_config: Any) -> "ModelSize":
    """Sizes of the model, counted on one without memory."""
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

    from trainers.adapters import adapter_size
    from trainers.memory import ModelSize

    auto: Any = (
        AutoModelForCausalLM
        if getattr(model_config, "image_token_id", None) is None
        else AutoModelForImageTextToText
    )
    with torch.device("meta"):
        model = auto.from_config(model_config)
    text = model_config.get_text_config()
    heads, output = text.num_attention_heads, model.get_output_embeddings()
    head = getattr(text, "head_dim", None) or text.hidden_size // heads
    return ModelSize(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        adapter=adapter_size(model, config.lora) if config.lora.rank else 0,
        vocabulary=text.vocab_size,
        layers=text.num_hidden_layers,
        width=text.hidden_size,
        cache_width=head * (getattr(text, "num_key_value_heads", None) or heads),
        tied=output is not None and output.weight is model.get_input_embeddings().weight,
    )


def _memory(config: Config, size: "ModelSize", prompt_tokens: int) -> "Memory":
    import torch

    from trainers.distributed import processes
    from trainers.memory import estimate_memory
    from trainers.methods import METHOD_TABLE

    referred = METHOD_TABLE[config.method].needs_reference(config.method_settings)
    # the reference of an adapter is the model without it, unless another one is named
    second = referred and not (config.lora.rank and not config.reference)
    automatic = "cuda" if torch.cuda.is_available() else "cpu"
    return estimate_memory(
        config,
        size,
        prompt_tokens,
        second_model=second,
        processes=processes(),
        on_cpu=(automatic if config.device == "auto" else config.device) == "cpu",
    )
