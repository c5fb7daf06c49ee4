"""`synchronized`: methods that one thread at a time runs on a live graph.

A graph has one lock, which the handles on it share: the graph, its queries, streams and programs.
A thread that holds it may call again, as callbacks and actions do. So writers wait for each other,
and a reader sees whole transactions.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from contextlib import suppress
from contextvars import ContextVar, copy_context
from functools import partial, wraps
from time import monotonic
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Generic,
    NoReturn,
    ParamSpec,
    Protocol,
    TypeVar,
)
from weakref import WeakKeyDictionary

from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import RLock

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


_Reentrant: Any = type(threading.RLock())


PATIENCE: Final = 0.005
"""Seconds between two looks of a read that waits whether another one has run it."""

NESTED: Final = 8
"""Reads that run inside of each other, at most."""

_LEVEL: ContextVar[int] = ContextVar("level", default=0)
"""How deep the read of this context is nested in other reads."""


class GraphLock(_Reentrant):  # type: ignore[misc] # its class has no public name
    """The lock of a live graph: one that can be taken again, in the process that made the graph.

    A read that takes long runs the reads that wait, each time when it checks its limits. So a short
    read does not wait for the end of a long one, and no change comes between the parts of either.
    """

    def __init__(self) -> None:
        _LOCKS[self] = os.getpid()
        self._reading = Depth()
        self._waiting: deque[_Read[Any]] = deque()
        # As with the lock itself, no signal is handled between the functions in C and the block.
        self._at_once = _attempt(partial(self.acquire, False), self.__exit__)
        self._soon = _attempt(partial(self.acquire, True, PATIENCE), self.__exit__)

    def read(self, begin: Callable[[], object], answer: Callable[[], Result]) -> Result:
        """Run a read of the graph. Returns what `answer` returns.

        `begin` takes in what waits. It is left out inside of another read, which has done so: that
        may free terms whose ids the other read has.
        """
        if self._is_owned():
            if not self._reading:
                begin()
            return answer()
        read: _Read[Result] | None = None
        attempt = self._at_once
        try:
            while read is None or not read.is_done:
                free = False
                try:
                    with attempt as free:
                        if free and (read is None or not read.is_done):
                            self._withdraw(read)
                            begin()
                            with self._reading:
                                return answer()
                except RuntimeError as error:
                    if free:
                        raise
                    if error.__context__ is not None:  # an interrupt came just then
                        raise error.__context__ from None
                if read is None:
                    read, attempt = _Read(answer), self._soon
                    self._waiting.append(read)
        finally:
            self._withdraw(read)
        return read.result()

    def _withdraw(self, read: _Read[Any] | None) -> None:
        if read is not None and read in self._waiting:
            with suppress(ValueError):  # the read that holds the lock has taken it meanwhile
                self._waiting.remove(read)

    def run_waiting(self) -> float:
        """Run all waiting reads within the current one. Returns the seconds they took."""
        if not self._waiting or not self._reading or _LEVEL.get() >= NESTED:
            return 0.0
        start = monotonic()
        for read in tuple(self._waiting):
            self._withdraw(read)
            read.run(_LEVEL.get() + 1)
        return monotonic() - start


class Depth(_Reentrant):  # type: ignore[misc] # as above
    """True inside of `with depth:`, which may be nested. The graph's lock is held there.

    The block is entered and left by functions in C, so no signal is handled between the count and
    the block. Methods of Python may be interrupted before their first line: a count that they keep
    would be wrong for ever.
    """

    def __bool__(self) -> bool:
        return bool(self._is_owned())


def _attempt(enter: Callable[[], bool], leave: Callable[..., None]) -> Any:  # noqa: ANN401
    """Return a context manager for a lock that may not be free: then its block gets False.

    It raises RuntimeError after such a block. As with the lock itself, no signal is handled between
    the functions in C and the block.
    """
    methods = {"__enter__": staticmethod(enter), "__exit__": staticmethod(leave)}
    return type("Attempt", (), methods)()


class _Read(Generic[Result]):
    """A read that waits for the lock of its graph, or for another read that runs it."""

    def __init__(self, answer: Callable[[], Result]) -> None:
        self._answer = answer
        self._context = copy_context()
        self._found: list[Result] = []
        self._error: Exception | None = None

    @property
    def is_done(self) -> bool:
        """Whether another read has run it to its end."""
        return bool(self._found) or self._error is not None

    def run(self, level: int) -> None:
        """Run it in the thread of another read; after an interrupt there, it still waits."""

        def answer() -> None:
            _LEVEL.set(level)
            self._found.append(self._answer())

        try:
            self._context.run(answer)
        except Exception as error:  # noqa: BLE001 - raised where it waits
            self._error = error

    def result(self) -> Result:
        """Returns what another read has found; raises what it has met."""
        if self._error is not None:
            raise self._error
        return self._found[0]


class _ForeignLock(GraphLock):
    """The lock of a graph of another process, of whose threads none came along."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise GraphtideError(
            f"this graph belongs to process {_LOCKS[self]}, from which this one was forked",
            hint="make or open a graph in the process that uses it",
        )

    acquire = __enter__ = read = _refuse


_LOCKS: Final[WeakKeyDictionary[GraphLock, int]] = WeakKeyDictionary()
"""By lock, the process of its graph."""


def _after_fork() -> None:
    """Let the graphs of the process that has forked be refused: a lock may be held by a thread."""
    for lock in list(_LOCKS):
        lock.__class__ = _ForeignLock


os.register_at_fork(after_in_child=_after_fork)


class Locked(Protocol):
    """An object with the lock of its graph."""

    @property
    def lock(self) -> RLock:
        """The lock."""


Owner = TypeVar("Owner", bound=Locked)


def synchronized(
    method: Callable[Concatenate[Owner, Parameters], Result],
) -> Callable[Concatenate[Owner, Parameters], Result]:
    """Run a method while holding the lock of its graph.

    >>> from threading import RLock
    >>> class Counter:
    ...     lock = RLock()
    ...
    ...     @synchronized
    ...     def add(self, one, two):
    ...         return one + two
    >>> Counter().add(1, two=2)
    3
    """

    @wraps(method)
    def locked(self: Owner, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        with self.lock:
            return method(self, *args, **kwargs)

    return locked
