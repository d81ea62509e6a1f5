"""Bodies of HTTP calls: of a stated kind and a bounded length, whole or not there."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message as Headers
from io import BufferedIOBase
from pathlib import Path
from threading import Semaphore
from typing import Any, TypeVar

from pydantic import ValidationError
from torch import Tensor

from trainers.rollout_claims import RefusedError, Shapes
from trainers.rollout_wire import JSON_TYPE, TENSORS_TYPE, Message

__all__ = ["AT_ONCE", "Body", "from_file", "shapes_in_file"]

CHUNK = 2**20
AT_ONCE = 4
"""Bodies that are received at the same time."""

M = TypeVar("M", bound=Message)


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a call, before any of it is read."""

    headers: Headers
    stream: BufferedIOBase
    room: Semaphore
    """Of ``AT_ONCE``."""

    def _length(self, kind: str, limit: int) -> int:
        """Its length.

        Raises:
            RefusedError: If it is of another kind, too long, or of no stated length.
        """
        # a page in a browser cannot send these kinds to a server that does not invite it
        if self.headers.get_content_type() != kind:
            raise RefusedError(415, f"the body must be {kind}")
        text = self.headers.get("Content-Length", "")
        if "Transfer-Encoding" in self.headers or not (text.isascii() and text.isdecimal()):
            raise RefusedError(411, "the length of the body must be stated")
        if len(text) > 15 or int(text) > limit:
            raise RefusedError(413, f"the body must have at most {limit} bytes")
        return int(text)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Room for it; raises RefusedError where there is none."""
        if not self.room.acquire(blocking=False):
            raise RefusedError(503, f"at most {AT_ONCE} calls may be on their way at a time")
        try:
            yield
        finally:
            self.room.release()

    def json(self, limit: int) -> bytes:
        """All of it.

        Raises:
            RefusedError: If it may not be read.
            ConnectionError: If it breaks off.
        """
        length = self._length(JSON_TYPE, limit)
        with self._turn():
            found = self.stream.read(length)
        if len(found) != length:
            raise ConnectionError("cut off")
        return found

    def file(self, folder: Path, limit: int) -> Path:
        """All of it, on the disk as it came.

        Raises:
            RefusedError: If it may not be read.
            ConnectionError: If it breaks off; no file is left.
        """
        left = self._length(TENSORS_TYPE, limit)
        with self._turn(), tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            path = Path(file.name)
            try:
                while left:
                    chunk = self.stream.read(min(left, CHUNK))
                    if not chunk:
                        raise ConnectionError("cut off")
                    file.write(chunk)
                    left -= len(chunk)
            except BaseException:
                path.unlink(missing_ok=True)
                raise
        return path


def from_file(path: Path, kind: type[M]) -> tuple[M, dict[str, Tensor]]:
    """What was packed; tensors are read from the file as they are used.

    Raises:
        RefusedError: If the file is none of its kind.
        ValidationError: If its call is another one.
    """
    with _opened(path) as file:
        return _call(file, kind), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def shapes_in_file(path: Path, kind: type[M]) -> tuple[M, Shapes]:
    """What was packed, of its tensors the shapes only.

    Raises:
        RefusedError: If the file is none of its kind.
        ValidationError: If its call is another one.
    """
    with _opened(path) as file:
        shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
        return _call(file, kind), shapes


def _call(file: Any, kind: type[M]) -> M:
    return kind.model_validate_json((file.metadata() or {}).get("call", ""))


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A safetensors file of a client's making, whose words may still be wrong."""
    from safetensors import safe_open

    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except (ValidationError, OSError):
        raise
    except Exception as error:  # noqa: BLE001 -- the boundary at which whatever is in a body becomes an answer
        raise RefusedError(400, f"the body is no safetensors file: {error}") from None
