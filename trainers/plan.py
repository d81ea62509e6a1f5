"""What a run would do, before it does it: sizes, token counts and an estimate of the memory."""

from dataclasses import dataclass
from typing import Any

from npbench.errors import InputError
from trainers.config import Config

__all__ = ["Plan", "make_plan"]

PROBES = 4
"""Questions whose prompts are measured."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A run in numbers; None where the model was not given or could not be read."""

    questions: int
    rollouts_per_step: int
    rows_per_step: int
    """Training rows: more than rollouts where a reply stands behind several prompts."""
    optimizer_steps: int
    epochs: float
    prompt_tokens: int | None
    """The longest of a few prompts, picture tokens included."""
    tokens_per_step: int | None
    """At most, prompts counted once."""
    parameters: int | None
    memory_gigabytes: float | None
    """Parameters, gradients, AdamW's moments, the reference, and the logits of a micro-batch."""

    def lines(self) -> list[tuple[str, str]]:
        """Names and values for a table; what is unknown is ``-``."""
        values = {
            "questions": self.questions,
            "rollouts a step": self.rollouts_per_step,
            "training rows a step": self.rows_per_step,
            "optimiser steps": self.optimizer_steps,
            "epochs": round(self.epochs, 3),
            "prompt tokens (longest probed)": self.prompt_tokens,
            "tokens a step, at most": self.tokens_per_step,
            "parameters": self.parameters,
            "memory estimate (GB)": self.memory_gigabytes,
        }
        return [(name, "-" if value is None else f"{value:,}") for name, value in values.items()]


def make_plan(config: Config) -> Plan:
    """The plan of a run; loads the model's configuration and tokenizer, never its weights.

    Raises:
        InputError: If data or model cannot be used.
    """
    from trainers.data import questions
    from trainers.groups import reward_terms

    reward_terms(config)
    source = questions(config.data)
    rollouts = config.prompts_per_step * config.group_size
    steps = config.steps * config.optimizer.mini_batches
    epochs = config.steps * config.prompts_per_step / len(source)
    prompt_tokens = tokens = parameters = None
    memory = None
    if config.model:
        model_config, longest = _probe(config, [source[i] for i in range(min(PROBES, len(source)))])
        prompt_tokens = longest
        prompts = config.prompts_per_step * config.variants
        rows = rollouts * config.variants
        tokens = prompts * longest + rows * config.sampling.max_tokens
        parameters = _count_parameters(model_config)
        memory = round(_memory(config, model_config, parameters, longest) / 1e9, 3)
    return Plan(
        len(source),
        rollouts,
        rollouts * config.variants,
        steps,
        epochs,
        prompt_tokens,
        tokens,
        parameters,
        memory,
    )


def _probe(config: Config, examples: list[Any]) -> tuple[Any, int]:
    from transformers import AutoConfig

    from trainers.encoding import load_encoder

    try:
        model_config: Any = AutoConfig.from_pretrained(config.model)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"model {config.model!r} cannot be loaded: {reason}") from None
    sampling = config.sampling
    encoder = load_encoder(
        config.model,
        model_config,
        chat_template=sampling.chat_template,
        min_pixels=sampling.min_pixels,
        max_pixels=sampling.max_pixels,
    )
    return model_config, max(encoder.encode(q.prompt, q.images).length for q in examples)


def _count_parameters(model_config: Any) -> int:
    """Counted on a model without memory."""
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

    auto: Any = (
        AutoModelForCausalLM
        if getattr(model_config, "image_token_id", None) is None
        else AutoModelForImageTextToText
    )
    with torch.device("meta"):
        model = auto.from_config(model_config)
    return sum(parameter.numel() for parameter in model.parameters())


def _memory(config: Config, model_config: Any, parameters: int, prompt_tokens: int) -> float:
    """Bytes: float32 parameters, gradients and two moments, a reference, logits and states."""
    from trainers.methods import METHOD_TABLE

    copies = 4 + METHOD_TABLE[config.method].needs_reference(config.method_settings)
    text = model_config.get_text_config()
    rows = max(1, config.optimizer.tokens_at_once // (prompt_tokens + config.sampling.max_tokens))
    rows = min(rows, config.group_size)
    labelled = rows * config.sampling.max_tokens
    # logits, scaled logits and their gradient in float32
    logits = 3 * 4 * labelled * text.vocab_size
    # about 16 activations of the model's width a layer and token are kept for the backward pass
    states = 4 * 16 * text.num_hidden_layers * text.hidden_size * (labelled + prompt_tokens)
    size: float = 4.0 * copies * parameters + logits + states
    return size
