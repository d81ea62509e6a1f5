"""The backends by name; each is imported when it is asked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from evaluators.backends.base import Backend, Sampling
from npbench.errors import InputError, unknown_name
from npbench.storage import StoredSplit

__all__ = ["BACKENDS", "BackendOptions", "make_backend"]

BACKENDS: Mapping[str, str] = MappingProxyType(
    {
        "transformers": "a model of the Hub or a folder, in this process",
        "vllm": "the same by vLLM's offline engine",
        "openai": "any server with the OpenAI chat interface",
        "policy": "a solver of the NP-hard tasks; --model is its name",
        "scripted": "replies from a file; --model is the file",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendOptions:
    """What a backend may be told; each takes what concerns it and refuses the rest."""

    model: str
    sampling: Sampling
    split: StoredSplit | None = None
    """The split that the solvers answer."""
    base_urls: tuple[str, ...] = ()
    api_key: str | None = None
    concurrency: int = 32
    """Requests under way at each server."""
    timeout: float = 600.0
    """Seconds for one request to a server."""
    omit: tuple[str, ...] = ()
    """Sampling fields that a server does not know."""
    lora: Path | None = None
    device: str | None = None
    dtype: str = "auto"
    batch_size: int = 8
    """Sequences that are generated together."""
    tensor_parallel: int = 1
    min_pixels: int | None = None
    max_pixels: int | None = None


def make_backend(name: str, options: BackendOptions) -> Backend:
    """The backend called ``name``, its model found and checked.

    Raises:
        InputError: If the name is unknown, an option does not concern it, its library is not
            installed, or its model cannot be had.
    """
    if name not in BACKENDS:
        raise unknown_name("backend", name, BACKENDS)
    _refuse_foreign(name, options)
    if name == "scripted":
        from evaluators.backends.scripted import ScriptedBackend

        return ScriptedBackend(Path(options.model))
    if name == "policy":
        from evaluators.backends.solvers import SolverBackend

        if options.split is None:
            raise InputError("the policy backend answers NP-hard tasks only: give --data DIR")
        return SolverBackend(options.model, options.split)
    if name == "openai":
        from evaluators.backends.servers import ServerBackend

        return ServerBackend(
            options.model,
            options.sampling,
            options.base_urls,
            api_key=options.api_key,
            concurrency=options.concurrency,
            timeout=options.timeout,
            omit=options.omit,
            min_pixels=options.min_pixels,
            max_pixels=options.max_pixels,
        )
    if name == "vllm":
        from evaluators.backends.offline_vllm import OfflineBackend

        return OfflineBackend(
            options.model,
            options.sampling,
            lora=options.lora,
            dtype=options.dtype,
            tensor_parallel=options.tensor_parallel,
            min_pixels=options.min_pixels,
            max_pixels=options.max_pixels,
        )
    from evaluators.backends.local_models import LocalBackend

    return LocalBackend(
        options.model,
        options.sampling,
        lora=options.lora,
        device=options.device,
        dtype=options.dtype,
        batch_size=options.batch_size,
        min_pixels=options.min_pixels,
        max_pixels=options.max_pixels,
    )


def _refuse_foreign(name: str, options: BackendOptions) -> None:
    if options.base_urls and name != "openai":
        raise InputError(f"--base-url goes with the openai backend, not with {name}")
    if name == "openai" and not options.base_urls:
        raise InputError("the openai backend needs --base-url, such as http://localhost:8000/v1")
    if options.lora is not None and name not in ("transformers", "vllm"):
        raise InputError(f"--lora goes with the transformers and vllm backends, not with {name}")
