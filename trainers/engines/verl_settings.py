"""Settings of our methods in verl's configuration, under ``algorithm.npbench``.

They are those of ``[loss]`` in our own recipes but for what verl has a place of its own for, and
for what cannot be had there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import Field

from npbench.errors import InputError, unknown_name
from trainers.method_settings import Count, Frozen, method_settings, validated

__all__ = [
    "METHODS",
    "PREFIX",
    "Extras",
    "VerlMethod",
    "VerlSettings",
    "method_of",
    "read_settings",
]

PREFIX = "npbench_"
"""Our names in verl's registries are this and the method's."""

TOKEN, SEQUENCE, CONSTANT = "token-mean", "seq-mean-token-mean", "seq-mean-token-sum-norm"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerlMethod:
    """What a method needs of verl."""

    aggregations: tuple[str, ...] = (TOKEN, SEQUENCE, CONSTANT)
    """The ``loss_agg_mode`` it may have."""
    one_update: bool = False
    """Exact only where a batch of rollouts is one optimiser step."""
    corrected: bool = True
    """Whether weights of ``rollout_correction`` have a meaning."""
    extras: tuple[str, ...] = ()


METHODS: Mapping[str, VerlMethod] = MappingProxyType(
    {
        "grpo": VerlMethod(),
        "dr_grpo": VerlMethod(aggregations=(CONSTANT,)),
        "dapo": VerlMethod(aggregations=(TOKEN,), extras=("max_tokens",)),
        "gspo": VerlMethod(aggregations=(SEQUENCE,)),
        "gpg": VerlMethod(aggregations=(TOKEN,), corrected=False),
        "grpo_passk": VerlMethod(),
        "clip_cov": VerlMethod(one_update=True, extras=("seed",)),
        "dmpo": VerlMethod(aggregations=(TOKEN, SEQUENCE), one_update=True, corrected=False),
        "mupo": VerlMethod(extras=("gate", "seed")),
    }
)
"""The methods that verl's hooks can carry."""

_IMPOSSIBLE = {
    "flowrl": "it trains a head for log Z on the prompt's hidden states, which no hook reaches",
    "share_grpo": "it scores a reply behind other prompts than its own, which no hook reaches",
    "supervised": "it has no groups; verl has a trainer of its own for it",
}

_PLACES = {
    "clip_low": "actor_rollout_ref.actor.clip_ratio_low",
    "clip_high": "actor_rollout_ref.actor.clip_ratio_high",
    "dual_clip": "actor_rollout_ref.actor.clip_ratio_c",
    "aggregation": "actor_rollout_ref.actor.loss_agg_mode",
    "kl_coef": "actor_rollout_ref.actor.kl_loss_coef",
    "kl_term": "actor_rollout_ref.actor.kl_loss_type",
}

_ABSENT = {
    "form": {"gspo": "sequence and token form have the same gradient; verl's hook takes tokens"},
    "token_mean": {"dapo": "groups are split before verl asks for the loss"},
}


class Extras(Frozen):
    """What our own recipes have in other sections."""

    gate: Literal["feasible", "optimal", "correct"] = "feasible"
    """Where MUPO's diversity reward counts."""
    seed: Annotated[int, Field(ge=0)] = 0
    max_tokens: Count | None = None
    """The generation limit, which DAPO's overlong punishment counts back from."""


@dataclass(frozen=True, slots=True)
class VerlSettings:
    """A method's settings, and those that are of no method."""

    method: Any
    extras: Extras


def method_of(name: str) -> str:
    """The method behind one of our names in verl's registries.

    Example:
        >>> method_of("npbench_gspo")
        'gspo'

    Raises:
        InputError: If it is no name of ours, or of a method that verl cannot carry.
    """
    method = str(name).removeprefix(PREFIX)
    if method in _IMPOSSIBLE:
        raise InputError(f"{name} cannot run in verl: {_IMPOSSIBLE[method]}")
    if method == name or method not in METHODS:
        raise unknown_name("npbench method in verl", name, [PREFIX + known for known in METHODS])
    return method


def read_settings(method: str, values: Mapping[str, Any]) -> VerlSettings:
    """A method's settings from the section ``algorithm.npbench``.

    Raises:
        InputError: If a key is unknown, belongs elsewhere in verl or cannot be had there, or a
            value does not fit.
    """
    own = dict(values)
    for key in own:
        if key in _PLACES:
            raise InputError(f"algorithm.npbench.{key} has a place in verl: set {_PLACES[key]}")
        if method in _ABSENT.get(key, ()):
            raise InputError(f"algorithm.npbench.{key} cannot be set: {_ABSENT[key][method]}")
    allowed = METHODS[method].extras
    extras = {key: own.pop(key) for key in allowed if key in own}
    try:
        settings = method_settings(method, own)
        found = validated(Extras, extras, section="loss")
    except InputError as error:
        raise InputError(str(error).replace("loss.", "algorithm.npbench.")) from None
    if getattr(settings, "embedding", None) == "policy":
        raise InputError(
            "algorithm.npbench.embedding 'policy' cannot be had in verl, whose hidden states reach "
            "no hook; take 'solution' or 'sentence:NAME'"
        )
    if getattr(settings, "overlong_cache_tokens", 0) and found.max_tokens is None:
        raise InputError(
            "algorithm.npbench.overlong_cache_tokens needs algorithm.npbench.max_tokens"
        )
    return VerlSettings(settings, found)
