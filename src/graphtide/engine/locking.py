"""`synchronized`: methods that one thread at a time runs on a live graph.

A graph has one lock, which the handles on it share: the graph, its queries, streams and programs.
A thread that holds it may call again, as callbacks and actions do. So writers wait for each other,
and a reader sees whole transactions.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import RLock

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


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
