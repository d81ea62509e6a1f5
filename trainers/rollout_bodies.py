"""Bodies of HTTP calls: of a stated kind and a bounded length, whole or not there."""

import tempfile
from dataclasses import dataclass
from email.message import Message
from io import BufferedIOBase
from pathlib import Path

from trainers.rollout_claims import RefusedError
from trainers.rollout_wire import JSON_BYTES, JSON_TYPE, TENSORS_TYPE

__all__ = ["Body"]

CHUNK = 2**20


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a call, before any of it is read."""

    headers: Message
    stream: BufferedIOBase

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

    def json(self) -> bytes:
        """All of it.

        Raises:
            RefusedError: If it may not be read.
            ConnectionError: If it breaks off.
        """
        length = self._length(JSON_TYPE, JSON_BYTES)
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
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
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
