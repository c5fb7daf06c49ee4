"""Ctrl-C that waits until a block has ended, where an exception in its middle would do harm."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Let Ctrl-C take effect at the end of a block, once, however often it comes.

    Whatever handles it without the block handles it then. Only the main thread is interrupted, so
    other threads have nothing to defer.
    """
    before = signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or not callable(before):
        yield
        return
    noted: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        noted.append(number)

    # An interrupt before this call raises, and nothing has changed; one after it is noted.
    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if noted:
            before(signal.SIGINT, None)
