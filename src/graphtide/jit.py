"""Numba decorators for the kernels, and what is seen of Numba's compiler.

Machine code is stored by Numba, in the folders that `code_cache` chooses. A loop is compiled when
it is first called; the search loop takes most of a minute. So a line on standard error says what is
compiled, if standard error is a terminal or `show_progress` was called; if not, a log record does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from inspect import getfile
from logging import getLogger
from pathlib import Path
from time import perf_counter
from typing import Any, Final, TypeVar

from graphtide.code_cache import code_folder
from graphtide.indexing import CHECKED, lower_indexes
from graphtide.shipped_code import CHECKED as CHECKED_FOLDER
from graphtide.shipped_code import STAMP, ShippedCode, shipped_code

Function = TypeVar("Function", bound=Callable[..., Any])

log = getLogger(__name__)

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

    PROGRESS.follow()
    config: Any = numba.config
    folder = code_folder(Path(getfile(function)), config.CACHE_DIR) if cache else None
    if folder is not None and CHECKED:
        folder /= CHECKED_FOLDER
    # `_nrt` switches reference counting off; Numba's stubs do not know it.
    compiler: Any = numba.njit
    with _cache_in(config, folder):
        dispatcher = compiler(
            cache=folder is not None, forceinline=forceinline, nogil=True, _nrt=nrt
        )(function)
    if folder is not None:
        stored = dispatcher._cache  # noqa: SLF001
        stored._cache_file._source_stamp = STAMP  # noqa: SLF001
        shipped = None if CHECKED else shipped_code(Path(getfile(function)), stored)
        dispatcher._cache = LenientCache(stored, shipped, counts=nrt)  # noqa: SLF001
    return dispatcher  # type: ignore[no-any-return]


@contextmanager
def _cache_in(config: Any, folder: Path | None) -> Iterator[None]:  # noqa: ANN401 - a module
    """Numba asks for its cache directory when a function is decorated, and remembers it."""
    before = config.CACHE_DIR
    if folder is not None:
        config.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        config.CACHE_DIR = before


class LenientCache:
    """A Numba cache, of which a file that cannot be read or written costs a compilation at most.

    A full disk or a damaged file must not stop the program. `counts`: the loop counts references.
    What is not stored may have been `shipped`.
    """

    def __init__(self, cache: Any, shipped: ShippedCode | None, *, counts: bool) -> None:  # noqa: ANN401 - Numba has no annotations
        self._cache = cache
        self._shipped = shipped
        self._counts = counts

    def load_overload(self, signature: object, context: object) -> object:
        """The stored machine code, or None.

        Numba would import all that it can compile first, which takes a quarter of the time to the
        first answer. Machine code needs nothing of it but the functions that count references.
        """
        try:
            if self._counts:
                from numba.core.runtime import nrt  # noqa: PLC0415 - as above

                runtime: Any = nrt
                runtime.rtsys.initialize(context)
            with self._cache._guard_against_spurious_io_errors():  # noqa: SLF001
                stored = self._cache._load_overload(signature, context)  # noqa: SLF001
                if stored is not None or self._shipped is None:
                    return stored
                return self._shipped.load(self._cache, signature, context)
        except Exception as error:  # noqa: BLE001 - unpickling a damaged file raises anything
            log.warning("cannot read machine code in %s: %r", self._cache.cache_path, error)
            with suppress(OSError):
                self._cache.flush()  # what is stored next replaces it
            return None

    def save_overload(self, signature: object, result: object) -> None:
        """Store machine code if that is possible."""
        try:
            self._cache.save_overload(signature, result)
        except OSError as error:
            log.warning("cannot store machine code in %s: %r", self._cache.cache_path, error)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever else Numba asks for
        return getattr(self._cache, name)


class CompilerProgress:
    """Shows which loop is compiled, and how many of the functions it is made of are done."""

    def __init__(self) -> None:
        self.forced = False
        self.seconds = 0.0
        self._follows = False
        self._announced = False
        self._stack: list[Any] = []
        self._parts: set[Any] = set()
        self._done: set[Any] = set()
        self._start = 0.0

    def follow(self) -> None:
        """Listen to Numba's compiler, from the first call on."""
        if not self._follows:
            from numba.core import event  # noqa: PLC0415 - as above

            self._follows = True
            events: Any = event
            events.register("numba:compile", _listener(events, self))

    def begin(self, dispatcher: Any) -> None:  # noqa: ANN401 - of Numba
        """A function begins to be compiled; inside others, if it is a helper of theirs."""
        lower_indexes()  # not before: stored machine code does not need that part of Numba
        if not self._stack:
            self._parts = _functions_of(dispatcher)
            self._start = perf_counter()
        self._stack.append(dispatcher)
        if _is_ours(self._stack[0]):
            self._show(_name(self._stack[0]), len(self._done & self._parts), len(self._parts))

    def end(self) -> None:
        """The innermost function is compiled, or has failed to."""
        dispatcher = self._stack.pop()
        self._done.add(dispatcher)
        if self._stack:
            return
        seconds = perf_counter() - self._start
        self.seconds += seconds
        if _is_ours(dispatcher):
            if _is_terminal():
                _say("\r\x1b[K")
            log.debug("compiled %s in %.1f s", _name(dispatcher), seconds)

    def under_way(self) -> float:
        """Seconds since the loop began that is being compiled; 0 if there is none."""
        return perf_counter() - self._start if self._stack else 0.0

    def _show(self, name: str, done: int, total: int) -> None:
        text = f"graphtide: compiling {name}: {done} of {total} functions are done"
        if _is_terminal():
            _say(f"\r\x1b[K{text}")
        elif self.forced and len(self._stack) == 1:
            _say(f"{text}\n")
        elif not self._announced:
            log.info(
                "compiling the inner loops, once per version, which takes a minute or two; machine "
                "code is stored in %s",
                self._stack[0]._cache.cache_path,  # noqa: SLF001
            )
        self._announced = True


PROGRESS: Final = CompilerProgress()


def compile_seconds() -> float:
    """How long this process has compiled so far; limits on time do not count it."""
    return PROGRESS.seconds + PROGRESS.under_way()


def show_progress(*, shown: bool) -> None:
    """Whether to say what is compiled on standard error even if that is no terminal."""
    PROGRESS.forced = shown


def _listener(events: Any, progress: CompilerProgress) -> object:  # noqa: ANN401 - a module
    class CompilerListener(events.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:  # noqa: ANN401
            progress.begin(event.data["dispatcher"])

        def on_end(self, _event: object) -> None:
            progress.end()

    return CompilerListener()


def _functions_of(dispatcher: Any) -> set[Any]:  # noqa: ANN401 - of Numba
    """A loop and the compiled functions that it calls, directly or not."""
    parts: set[Any] = set()
    ahead = [dispatcher]
    while ahead:
        part = ahead.pop()
        if part not in parts:
            parts.add(part)
            names = part.py_func.__code__.co_names
            called = [part.py_func.__globals__.get(name) for name in names]
            ahead.extend(each for each in called if isinstance(each, type(dispatcher)))
    return parts


def _is_ours(dispatcher: Any) -> bool:  # noqa: ANN401 - of Numba
    return str(dispatcher.py_func.__module__).startswith("graphtide.")


def _name(dispatcher: Any) -> str:  # noqa: ANN401 - of Numba
    function = dispatcher.py_func
    return f"{function.__module__.removeprefix('graphtide.')}.{function.__qualname__}"


def _is_terminal() -> bool:
    with suppress(ValueError):  # it is closed
        return sys.stderr is not None and sys.stderr.isatty()
    return False


def _say(text: str) -> None:
    with suppress(OSError, ValueError):  # nobody listens: no reason not to compile
        sys.stderr.write(text)
        sys.stderr.flush()
