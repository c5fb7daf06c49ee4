"""Decorators of compiled loops, and the progress of Numba's compiler.

A loop has one signature, which its annotations declare (`graphtide.arrays`). It is compiled for it
when it is first called, unless its machine code is stored (`graphtide.code_cache`) or came with the
package (`graphtide.shipped_code`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from logging import getLogger
from time import perf_counter
from typing import Any, Final, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type)

log = getLogger(__name__)

JIT: Final = os.environ.get("GRAPHTIDE_NO_JIT", "0") in ("", "0")
"""False when `GRAPHTIDE_NO_JIT=1` selects the plain-Python twins."""

LOOPS: Final[dict[str, Any]] = {}
"""The loops of all modules that are imported, by module and name."""

BUNDLES: Final[dict[str, type]] = {}
"""The named tuples of arrays that loops take, by name."""

SECONDS_OF_A_FUNCTION: Final = 0.2
"""What the compiler takes on average for each function that a loop is made of."""


def compiled(function: Function) -> Function:
    """Compile a loop that Python calls, for the signature of its annotations; cached on disk.

    A loop allocates nothing and returns no array: without Numba's reference counting it runs about
    twice as fast. Output arrays have a given size; a loop that runs out of room returns where it
    stopped.
    """
    if not JIT:
        return function
    from graphtide.loops import Loop  # noqa: PLC0415 - the twins run where Numba is not installed

    loop = Loop(function)
    LOOPS[loop.name] = loop
    return loop  # type: ignore[return-value]


def subroutine(function: Function) -> Function:
    """Compile a part of loops that is called, not inlined; for the signature of its annotations."""
    if not JIT:
        return function
    from graphtide.loops import Subroutine  # noqa: PLC0415 - as above

    return Subroutine(function)  # type: ignore[return-value]


def inlined(function: Function) -> Function:
    """Compile a small part of loops that is always inlined into them, whatever its arguments are.

    A call that is not inlined passes every field of every array, which costs more than the work.
    """
    if not JIT:
        return function
    from graphtide.loops import Inlined  # noqa: PLC0415 - as above

    # Python never calls it: code that unpacks Python's arguments took a third of the compilation.
    return Inlined(function)  # type: ignore[return-value]


def bundle(tuple_class: Class) -> Class:
    """Declare a named tuple of arrays that loops take as one argument."""
    BUNDLES[tuple_class.__name__] = tuple_class
    return tuple_class


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
