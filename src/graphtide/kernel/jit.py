"""One place that decides whether loops are compiled, and how."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

JIT = os.environ.get("GRAPHTIDE_NO_JIT", "0") in ("", "0")


def compiled(function: Function) -> Function:
    """Compile a loop once and keep the machine code on disk, so that later starts are quick.

    A loop allocates nothing and returns no array: without reference counting inside, it runs about
    twice as fast. Output has a given size; a loop that runs out of room says where it stopped.
    """
    return _njit(function, cache=True, forceinline=False)


def inlined(function: Function) -> Function:
    """Compile a small helper that only other compiled loops call, and fold it into them.

    A call that is not folded in passes every field of every array, which costs more than the work.
    """
    return _njit(function, cache=False, forceinline=True)


def _njit(function: Function, *, cache: bool, forceinline: bool) -> Function:
    if not JIT:
        return function
    from numba import njit

    options = {"cache": cache, "forceinline": forceinline, "nogil": True, "_nrt": False}
    return njit(**options)(function)  # type: ignore[no-any-return]
