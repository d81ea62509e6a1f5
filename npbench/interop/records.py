"""What a reader returns: an instance with its task, and what its file says of it."""

from dataclasses import dataclass
from typing import Any

from npbench.task import Task

__all__ = ["ForeignInstance"]


@dataclass(frozen=True, slots=True)
class ForeignInstance:
    """One instance of a file in a foreign format."""

    name: str
    """Its key in the file; the file's name without its ending where it holds one instance."""
    task: Task[Any, Any]
    instance: Any
    """Decoded by the task."""
    reference: int | None = None
    """The objective that the file states, counted as ours; a heuristic's value, never a proof."""
    prompt: str | None = None
    image: bytes | None = None
