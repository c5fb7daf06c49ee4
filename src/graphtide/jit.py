"""One place that decides whether loops are compiled, and how.

Numba keeps machine code on disk, but notices only changes of the file that holds a function, not of
the files whose helpers or constants were folded into it. Machine code of other sources than those
at hand would be a wrong answer waiting, so it is removed here before anything is compiled.
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
"""False when `GRAPHTIDE_NO_JIT=1` asks for the plain-Python twins."""


def compiled(function: Function) -> Function:
    """Compile a loop once and keep the machine code on disk, so that later starts are quick.

    A loop allocates nothing and returns no array: without reference counting inside, it runs about
    twice as fast. Output has a given size; a loop that runs out of room says where it stopped.
    """
    return _njit(function, cache=True, forceinline=False, nrt=False)


def allocating(function: Function) -> Function:
    """Compile a loop that makes arrays of its own while it runs."""
    return _njit(function, cache=True, forceinline=False, nrt=True)


def inlined(function: Function) -> Function:
    """Compile a small helper that only other compiled loops call, and fold it into them.

    A call that is not folded in passes every field of every array, which costs more than the work.
    """
    return _njit(function, cache=False, forceinline=True, nrt=False)


def _njit(function: Function, *, cache: bool, forceinline: bool, nrt: bool) -> Function:
    if not JIT:
        return function
    import numba  # noqa: PLC0415 - the twins run where Numba is not installed

    # Numba's stubs do not know `_nrt`, which switches reference counting off.
    compiler: Any = numba.njit
    options = {"cache": cache, "forceinline": forceinline, "nogil": True, "_nrt": nrt}
    return compiler(**options)(function)  # type: ignore[no-any-return]


def drop_stale_code(folder: Path, *folded: Path) -> bool:
    """Remove the machine code in a folder and below if its sources have changed since.

    `folded` names other folders, whose helpers are inlined into this one's loops.
    """
    digest = hashlib.sha256()
    for place in (folder, *folded):
        for source in sorted(place.rglob("*.py")):
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
