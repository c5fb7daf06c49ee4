"""Decorators of compiled loops.

A loop has one signature, which its annotations declare (`graphtide.arrays`). It is compiled for it
when it is first called, unless its machine code is stored (`graphtide.code_cache`) or came with the
package (`graphtide.shipped_code`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

JIT: Final = os.environ.get("GRAPHTIDE_NO_JIT", "0") in ("", "0")
"""False when `GRAPHTIDE_NO_JIT=1` selects the plain-Python twins."""

LOOPS: Final[dict[str, Any]] = {}
"""The loops of all modules that are imported, by module and name."""


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
