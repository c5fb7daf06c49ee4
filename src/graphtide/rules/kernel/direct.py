"""Calling compiled loops without a look at the types of what they are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphtide.jit import JIT

if TYPE_CHECKING:
    from collections.abc import Callable


def direct(loop: Callable[..., Any], *arguments: object) -> Callable[..., Any]:
    """The machine code of a loop for arguments of the very types of these.

    A call of the loop itself looks at each array of each argument, to choose the machine code: for
    one event that costs several times the work. Whoever calls this has to keep to the types, of
    numbers and of layouts alike.
    """
    if not JIT:
        return loop
    import numba  # noqa: PLC0415 - the twins run where Numba is not installed

    compiler: Any = loop
    chosen: Callable[..., Any] = compiler.compile(tuple(map(numba.typeof, arguments)))
    return chosen
