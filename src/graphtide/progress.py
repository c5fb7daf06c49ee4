"""The progress of Numba's compiler: what it compiles, and how long it takes."""

from __future__ import annotations

import sys
from contextlib import suppress
from logging import getLogger
from time import perf_counter
from typing import Final

log = getLogger(__name__)

SECONDS_OF_A_FUNCTION: Final = 0.2
"""What the compiler takes on average for each function that a loop is made of."""


class CompilerProgress:
    """How long the compiler takes, and a line for each loop that is compiled.

    The line goes to standard error if that is a terminal or `forced`; otherwise there is a record
    of the log.
    """

    def __init__(self) -> None:
        self.forced = False
        self.seconds = 0.0
        self._start: float | None = None

    def begin(self, name: str, functions: int) -> None:
        """A loop is about to be compiled that is made of so many functions."""
        self._start = perf_counter()
        text = (
            f"compiling {name}, about {functions * SECONDS_OF_A_FUNCTION:.0f} s, once; "
            "graphtide warm compiles all loops at once"
        )
        if _is_terminal():
            _say(f"\r\x1b[Kgraphtide: {text}")
        elif self.forced:
            _say(f"graphtide: {text}\n")
        else:
            log.info("%s", text)

    def end(self, name: str) -> None:
        """The loop is compiled, or could not be."""
        if self._start is None:
            return
        seconds = perf_counter() - self._start
        self._start = None
        self.seconds += seconds
        if _is_terminal():
            _say("\r\x1b[K")
        log.info("the machine code of %s took %.1f s", name, seconds)

    def total(self) -> float:
        """Seconds of compilation so far, with those of a loop that is being compiled."""
        return self.seconds + (perf_counter() - self._start if self._start is not None else 0.0)


PROGRESS: Final = CompilerProgress()


def compile_seconds() -> float:
    """Seconds that this process has compiled so far; limits on time do not count them."""
    return PROGRESS.total()


def show_progress(*, shown: bool) -> None:
    """Choose whether standard error shows what is compiled even if it is no terminal."""
    PROGRESS.forced = shown


def _is_terminal() -> bool:
    with suppress(ValueError):  # it is closed
        return sys.stderr is not None and sys.stderr.isatty()
    return False


def _say(text: str) -> None:
    with suppress(OSError, ValueError):  # standard error is closed: no reason not to compile
        sys.stderr.write(text)
        sys.stderr.flush()
