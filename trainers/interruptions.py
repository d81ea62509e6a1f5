"""Interruptions that wait until what must be whole is whole."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["undisturbed"]


@contextmanager
def undisturbed() -> Iterator[None]:
    """The block that a first Ctrl-C or SIGTERM lets end before it counts; a second one breaks it.

    Raises:
        KeyboardInterrupt: At the end of the block, or in it at the second one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    noted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        noted.append(number)
        if len(noted) > 1:
            raise KeyboardInterrupt

    # one that is ignored, as behind nohup, stays so
    before = {
        number: handler
        for number in (signal.SIGINT, signal.SIGTERM)
        if callable(handler := signal.getsignal(number))
    }
    for number in before:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if noted:
        raise KeyboardInterrupt
