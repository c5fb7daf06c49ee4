"""`synchronized`: methods that one thread at a time runs on a live graph.

A graph has one lock, which the handles on it share: the graph, its queries, streams and programs.
A thread that holds it may call again, as callbacks and actions do. So writers wait for each other,
and a reader sees whole transactions.
"""

from __future__ import annotations

import os
import threading
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, NoReturn, ParamSpec, Protocol, TypeVar
from weakref import WeakKeyDictionary

from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import RLock

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


_Reentrant: Any = type(threading.RLock())


class GraphLock(_Reentrant):  # type: ignore[misc] # its class has no public name
    """The lock of a live graph: one that can be taken again, in the process that made the graph."""

    def __init__(self) -> None:
        _LOCKS[self] = os.getpid()


class Depth(_Reentrant):  # type: ignore[misc] # as above
    """True inside of `with depth:`, which may be nested. The graph's lock is held there.

    The block is entered and left by functions in C, so no signal is handled between the count and
    the block. Methods of Python may be interrupted before their first line: a count that they keep
    would be wrong for ever.
    """

    def __bool__(self) -> bool:
        return bool(self._is_owned())


class _ForeignLock(GraphLock):
    """The lock of a graph of another process, of whose threads none came along."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise GraphtideError(
            f"this graph belongs to process {_LOCKS[self]}, from which this one was forked",
            hint="make or open a graph in the process that uses it",
        )

    acquire = __enter__ = _refuse


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
