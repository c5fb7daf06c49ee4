"""Numba decorators for the kernels, and the invalidation of Numba's on-disk cache.

Numba's cache notices changes of the file that holds a function, but not of the files whose helpers
or constants were inlined into it. Stale machine code would give wrong answers, so it is removed
here, by a digest of all sources of a folder, before anything is compiled.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

JIT: Final = os.environ.get("GRAPHTIDE_NO_JIT", "0") in ("", "0")
"""False when `GRAPHTIDE_NO_JIT=1` selects the plain-Python twins."""


def compiled(function: Function) -> Function:
    """Compile a loop that allocates nothing and returns no array; cached on disk.

    Without Numba's reference counting it runs about twice as fast. Output arrays have a given size;
    a loop that runs out of room returns where it stopped.
    """
    return _njit(function, cache=True, forceinline=False, nrt=False)


def allocating(function: Function) -> Function:
    """Compile a loop that allocates arrays; cached on disk."""
    return _njit(function, cache=True, forceinline=False, nrt=True)


def inlined(function: Function) -> Function:
    """Compile a small helper that is always inlined into the compiled loops that call it.

    A call that is not inlined passes every field of every array, which costs more than the work.
    """
    return _njit(function, cache=False, forceinline=True, nrt=False)


def _njit(function: Function, *, cache: bool, forceinline: bool, nrt: bool) -> Function:
    if not JIT:
        return function
    import numba  # noqa: PLC0415 - the twins run where Numba is not installed

    # `_nrt` switches reference counting off; Numba's stubs do not know it.
    compiler: Any = numba.njit
    options = {"cache": cache, "forceinline": forceinline, "nogil": True, "_nrt": nrt}
    return compiler(**options)(function)  # type: ignore[no-any-return]


def drop_stale_code(folder: Path, *inlined_from: Path) -> bool:
    """Remove the cached machine code of a folder if its sources have changed; whether they had.

    `inlined_from` are other folders whose helpers are inlined into this one's loops.
    """
    digest = hashlib.sha256()
    for sources in (folder, *inlined_from):
        for source in sorted(sources.rglob("*.py")):
            digest.update(source.read_bytes())
    stamp = folder / "__pycache__" / "sources.sha256"
    with suppress(OSError):
        if stamp.exists() and stamp.read_text() == digest.hexdigest():
            return False
        for code in folder.rglob("__pycache__/*.nb[ic]"):
            code.unlink(missing_ok=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(digest.hexdigest())
    return True


if JIT:
    for _folder in ("kernel", "rdf"):
        drop_stale_code(Path(__file__).parent / _folder)
