"""The settings of each method, as frozen records; importing this does not import torch."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from npbench.errors import InputError, unknown_name

__all__ = ["METHODS", "Frozen", "MethodSettings", "method_settings", "validated"]


class Frozen(BaseModel):
    """A record that cannot be changed and refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


Share = Annotated[float, Field(ge=0.0, le=1.0)]
NonNegative = Annotated[float, Field(ge=0.0)]
Positive = Annotated[float, Field(gt=0.0)]
Count = Annotated[int, Field(ge=1)]
Tokens = Literal["sequence-mean", "token-mean", "constant", "group-token-mean"]


class MethodSettings(Frozen):
    """What every method has."""

    clip_low: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.2
    clip_high: NonNegative = 0.2


class GrpoSettings(MethodSettings):
    """GRPO, GRPO pass@k and the surrogate that DMPO, MUPO and Share-GRPO build on."""

    dual_clip: Annotated[float, Field(gt=1.0)] | None = None
    aggregation: Tokens = "sequence-mean"
    eps: NonNegative = 1e-6
    std_floor: NonNegative = 0.0


class GrpoKlSettings(GrpoSettings):
    """With a KL term to the reference."""

    kl_coef: NonNegative = 0.0
    kl_term: Literal["k2", "k3", "ratio-k1", "ratio-k3"] = "k3"


class DrGrpoSettings(MethodSettings):
    """Dr.GRPO: nothing but the clip range."""


class DapoSettings(MethodSettings):
    """DAPO."""

    clip_high: NonNegative = 0.28
    dual_clip: Annotated[float, Field(gt=1.0)] | None = None
    token_mean: Literal["batch", "group"] = "batch"
    overlong_cache_tokens: Annotated[int, Field(ge=0)] = 0
    """Tokens before the limit over which a punishment grows to -1; 0 for none."""


class GspoSettings(MethodSettings):
    """GSPO."""

    clip_low: Annotated[float, Field(ge=0.0, lt=1.0)] = 3e-4
    clip_high: NonNegative = 4e-4
    form: Literal["sequence", "token"] = "sequence"


class GpgSettings(Frozen):
    """GPG."""

    rule: Literal["paper", "verl"] = "paper"
    f_norm: Positive | Literal["std"] = 1.0


class FlowRlSettings(MethodSettings):
    """FlowRL."""

    beta: Positive = 15.0
    weight: Literal["paper", "mean", "recipe"] = "paper"
    log_z_learning_rate: Positive | None = None
    """Of the log Z head; that of the policy where None, as in the paper."""


class ClipCovSettings(MethodSettings):
    """Clip-Cov."""

    share: Share = 2e-4
    low: float = 1.0
    high: float = 5.0


class DmpoSettings(MethodSettings):
    """DMPO; the defaults are the named setting ``summary``."""

    weight: NonNegative = 0.5
    alpha: Positive = 1.0
    form: Literal["mse", "forward-kl", "js"] = "mse"
    target: Literal["rewards", "advantages"] = "rewards"
    flat: Literal["keep", "drop"] = "keep"
    aggregation: Literal["sequence-mean", "token-mean"] = "sequence-mean"


class MupoSettings(GrpoSettings):
    """MUPO."""

    clusters: Count = 3
    min_size: Count = 3
    beta: NonNegative = 1.0
    placement: Literal["group", "response"] = "group"
    lambda_high: NonNegative = 0.4
    lambda_low: NonNegative = 0.1
    schedule: Literal["cosine", "exponential"] = "cosine"
    decay: NonNegative = 9e-3
    """Of the exponential schedule."""
    starved: Literal["skip", "global", "merge"] = "skip"
    embedding: str = "solution"
    """``solution``, ``policy`` or ``sentence:NAME``."""


class ShareGrpoSettings(GrpoSettings):
    """Share-GRPO; a group holds the replies to all variants of a question."""

    variants: Count = 2
    probability: Share = 0.3
    """Chance that a variant's picture is transformed."""
    spread: Literal["responses", "rows"] = "responses"


class SupervisedSettings(Frozen):
    """Cross-entropy on given replies, a mean over the tokens of a step: nothing to set."""


METHODS: Mapping[str, type[Frozen]] = MappingProxyType(
    {
        "grpo": GrpoKlSettings,
        "dr_grpo": DrGrpoSettings,
        "dapo": DapoSettings,
        "gspo": GspoSettings,
        "gpg": GpgSettings,
        "flowrl": FlowRlSettings,
        "clip_cov": ClipCovSettings,
        "grpo_passk": GrpoKlSettings,
        "dmpo": DmpoSettings,
        "mupo": MupoSettings,
        "share_grpo": ShareGrpoSettings,
        "supervised": SupervisedSettings,
    }
)
"""All methods and their settings."""


def validated(kind: type[Frozen], values: Mapping[str, Any], *, section: str = "") -> Any:
    """A record from plain values.

    Raises:
        InputError: If a key is unknown (the message holds the nearest known one) or a value does
            not fit (the message names setting, rule and value).
    """
    try:
        return kind.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        place = [str(part) for part in first["loc"]]
        name = ".".join(([section] if section else []) + place)
        if first["type"] == "extra_forbidden":
            owner: Any = kind
            for part in first["loc"][:-1]:
                owner = _inner(owner, part)
            raise unknown_name("setting", name, _prefixed(owner, name)) from None
        message = first["msg"][:1].lower() + first["msg"][1:]
        raise InputError(f"setting {name}: {message}, got {first['input']!r}") from None


def _inner(owner: Any, part: str | int) -> Any:
    """The record behind a field of a record, or the one that a tuple is made of."""
    if isinstance(part, int):
        return get_args(owner)[0]
    return owner.model_fields[part].annotation


def _prefixed(owner: Any, name: str) -> list[str]:
    head, dot, _ = name.rpartition(".")
    return [f"{head}{dot}{field}" for field in owner.model_fields]


def method_settings(method: str, values: Mapping[str, Any]) -> Any:
    """The settings of a method from the section ``[loss]``.

    Raises:
        InputError: If the method or a setting is unknown, or a value does not fit.
    """
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    return validated(METHODS[method], values, section="loss")
