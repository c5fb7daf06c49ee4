"""One way to compile a kernel, and the switch that turns kernels off.

A compiled function may call others of its own file only: Numba's cache notices a change of the
file that holds a function, not of the files that function calls into.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])

USE_KERNELS: Final = os.environ.get("GRAPHTIDE_NO_JIT", "") != "1"
"""False when `GRAPHTIDE_NO_JIT=1` asks for the plain-Python twins."""


def kernel(function: F) -> F:
    """Compile a function over arrays, on first call, keeping the machine code on disk."""
    return cast("F", numba.njit(cache=True, nogil=True)(function))
