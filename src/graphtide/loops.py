"""Loops that Numba compiles once, for the signature that their annotations declare.

Numba compiles a function for the types of the arguments of each call, so a read-only array or a
literal number makes it compile the same loop again. A `Loop` has one signature; Numba converts
arguments to it, and raises TypeError where it cannot.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from inspect import getfile
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numba
from numba import types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

from graphtide.arrays import BUNDLES
from graphtide.code_cache import code_folder
from graphtide.indexing import CHECKED, lower_indexes
from graphtide.interrupts import deferred_interrupts
from graphtide.locking import lock_file
from graphtide.progress import PROGRESS
from graphtide.shipped_code import CHECKED as CHECKED_FOLDER
from graphtide.shipped_code import STAMP, shipped_code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graphtide.shipped_code import ShippedCode

log = getLogger(__name__)

_ELEMENTS: Final = {
    "Ints": types.int32,
    "Longs": types.int64,
    "Bytes": types.uint8,
    "Kinds": types.int8,
    "Bools": types.boolean,
    "Floats": types.float64,
}
_SCALARS: Final = {
    "Int": types.int64,
    "int": types.int64,
    "bool": types.boolean,
    "float": types.float64,
    "Block": types.Array(types.int64, 1, "C"),
}

Signature = tuple[Any, ...]


def signature_of(function: Callable[..., Any]) -> Signature:
    """The Numba types of a function's arguments, as its annotations declare them."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    return tuple(_type(str(function.__annotations__[name])) for name in names)


def _type(annotation: str) -> Any:  # noqa: ANN401 - of Numba
    """The Numba type of an annotation: a scalar, an array, or a bundle of arrays.

    >>> _type("Int"), _type("ReadBytes1").mutable, _type("Ints2")
    (int64, False, Array(int32, 2, 'C', False, aligned=True))
    """
    name = annotation.rpartition(".")[2]
    if name in _SCALARS:
        return _SCALARS[name]
    if name in BUNDLES:
        fields = BUNDLES[name].__annotations__.values()
        parts = [_type(field.__forward_arg__) for field in fields]
        tuples: Any = types.BaseTuple
        return tuples.from_types(parts, BUNDLES[name])
    element = _ELEMENTS[name.removeprefix("Read")[:-1]]
    return types.Array(element, int(name[-1]), "C", readonly=name.startswith("Read"))


_OPTIONS: Final = {"nopython": True, "nogil": True, "_nrt": False, "no_cfunc_wrapper": True}
"""How all loops and their parts are compiled."""


class Inlined(CPUDispatcher):
    """A part of loops that is compiled for whatever types it is used with, and inlined."""

    def __init__(self, function: Callable[..., Any], *, forceinline: bool = True) -> None:
        options = _OPTIONS | {"forceinline": forceinline, "no_cpython_wrapper": True}
        super().__init__(function, targetoptions=options)

    def _insert(self, *_overload: object) -> None:
        """Keep Python from calling machine code: it does not unpack Python's arguments."""

    def _compile_for_args(self, *_arguments: object) -> Any:  # noqa: ANN401 - of Numba
        """What runs a call from Python: the function as it is, uncompiled."""
        return self.py_func


class Subroutine(Inlined):
    """A part of loops that they call; it has one signature."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function, forceinline=False)

    def compile(self, _given: Any) -> Any:  # noqa: ANN401 - of Numba
        """Compile the one signature."""
        return _compile_once(self, super().compile)


def _compile_once(dispatcher: Any, compiler: Callable[[Signature], object]) -> Any:  # noqa: ANN401 - of Numba
    """Compile a function for its one signature, unless it is. Returns its entry point."""
    signature = signature_of(dispatcher.py_func)
    if signature not in dispatcher.overloads:
        compiler(signature)
        dispatcher.disable_compile()
    return dispatcher.overloads[signature].entry_point


class Loop(CPUDispatcher):
    """A loop that Python calls. Its machine code is stored, and may have come with the package."""

    _cache: Any

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function, targetoptions=dict(_OPTIONS))
        module = function.__module__.removeprefix("graphtide.")
        self.name = f"{module}.{function.__qualname__}"
        source = Path(getfile(function))
        config: Any = numba.config
        folder = code_folder(source, config.CACHE_DIR)
        self.stored: StoredCode | None = None
        if folder is None:
            lower_indexes()
            return
        if CHECKED:
            folder /= CHECKED_FOLDER
        with _cache_in(config, folder):
            self.enable_caching()
        cache: Any = self._cache
        cache._cache_file._source_stamp = STAMP  # noqa: SLF001
        shipped = None if CHECKED else shipped_code(source, cache)
        self._cache = self.stored = StoredCode(self, cache, shipped)

    def compile(self, given: Any) -> Any:  # noqa: ANN401 - of Numba
        """Load or compile the loop; raise TypeError if the first arguments do not fit.

        An exception in the middle of LLVM's Python code makes it free memory twice.
        """
        with global_compiler_lock, deferred_interrupts():
            try:
                entry = _compile_once(self, super().compile)
            finally:
                if self.stored is not None:
                    self.stored.close()
        typing: Any = self.typingctx
        for number, (have, want) in enumerate(zip(given, signature_of(self.py_func), strict=True)):
            if typing.can_convert(have, want) is None:
                raise TypeError(f"argument {number} of {self.name} is {have}, and must be {want}")
        return entry

    def prepare(self) -> None:
        """Load or compile the loop before it is called."""
        self.compile(signature_of(self.py_func))


@contextmanager
def _cache_in(config: Any, folder: Path) -> Iterator[None]:  # noqa: ANN401 - a module
    """Numba asks for its cache directory when a function is decorated, and remembers it."""
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        config.CACHE_DIR = before


class StoredCode:
    """The stored machine code of a loop, in place of Numba's cache.

    A file that cannot be read or written costs a compilation at most: a full disk or a damaged file
    does not stop the program. A lock keeps a second process from compiling what one compiles.
    """

    def __init__(self, loop: Loop, cache: Any, shipped: ShippedCode | None) -> None:  # noqa: ANN401 - of Numba
        self._loop = loop
        self._cache = cache
        self._shipped = shipped
        self._lock: Any = None

    def load_overload(self, signature: Signature, context: object) -> object:
        """The machine code; None if the loop has to be compiled, by this process alone."""
        found = self._load(signature, context)
        if found is None:
            PROGRESS.begin(self._loop.name, len(_functions_of(self._loop)))
            if self._acquire():
                found = self._load(signature, context)  # what another process compiled meanwhile
        if found is None:
            lower_indexes()  # not before: stored machine code does not need that part of Numba
        return found

    def _load(self, signature: Signature, context: object) -> object:
        """The stored code, or that of the package, or None.

        Numba would import all that it can compile first, which takes a quarter of the time to the
        first answer. Loops need nothing of it.
        """
        try:
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

    def save_overload(self, signature: Signature, result: object) -> None:
        """Store machine code if that is possible."""
        try:
            self._cache.save_overload(signature, result)
        except OSError as error:
            log.warning("cannot store machine code in %s: %r", self._cache.cache_path, error)

    def close(self) -> None:
        """End what `load_overload` began: the lock, and the line that says what is compiled."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        PROGRESS.end(self._loop.name)

    def _acquire(self) -> bool:
        """Wait until no other process compiles the loop; False if no file can be locked."""
        with suppress(OSError):
            folder = Path(self._cache.cache_path)
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = lock_file(folder / f"{self._loop.py_func.__name__}.lock", wait=True)
            return True
        return False

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever else Numba asks for
        return getattr(self._cache, name)


def _functions_of(loop: Loop) -> set[Any]:
    """A loop and the compiled functions that it calls, directly or not."""
    parts: set[Any] = set()
    ahead: list[Any] = [loop]
    while ahead:
        part = ahead.pop()
        if part not in parts:
            parts.add(part)
            called = [part.py_func.__globals__.get(name) for name in part.py_func.__code__.co_names]
            ahead.extend(each for each in called if isinstance(each, CPUDispatcher))
    return parts
