"""The configuration of a checkpoint: a folder, or a name that the Hub knows."""

from difflib import get_close_matches
from pathlib import Path
from typing import Any

from evaluators.models import SHIPPED
from npbench.errors import InputError

__all__ = ["read_model_config"]


def read_model_config(source: str, *, given: str | None = None) -> Any:
    """The configuration that a checkpoint is loaded by; its weights are not looked at.

    Args:
        source: Folder or name.
        given: What the user wrote, where a folder stands for it.

    Raises:
        InputError: If there is no such checkpoint, or it is of no known kind.
    """
    from transformers import AutoConfig

    name = given or source
    folder = Path(source)
    if not folder.is_dir() and _is_path(source):
        what = "is a file; give the folder that holds it" if folder.exists() else "is not there"
        raise InputError(f"model {name!r} cannot be loaded: that folder {what}")
    try:
        return AutoConfig.from_pretrained(source)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
    if folder.is_dir():
        raise InputError(f"model {name!r} cannot be loaded: {reason}")
    close = get_close_matches(name.lower(), SHIPPED, n=1, cutoff=0.7)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    raise InputError(
        f"model {name!r} cannot be loaded: it is no folder here, and the Hub did not give it "
        f"({reason}){meant}"
    )


def _is_path(name: str) -> bool:
    """Whether a name cannot be one of the Hub's, which is NAME or OWNER/NAME."""
    return name.startswith((".", "/", "~")) or name.count("/") > 1 or Path(name).exists()
