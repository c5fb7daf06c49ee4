"""`Workers`: the threads among which a graph divides its work.

Compiled loops release the interpreter lock, so that threads run beside each other. The thread that
calls takes a part of the work itself.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar

from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Result = TypeVar("Result")

MAX_THREADS = 60
"""Threads at most: one thread stores the quads, so that more have nothing to do."""

WORTH = 1024
"""Changes that are worth a thread; with fewer, the calling thread does everything."""


class Workers:
    """A number of threads, the calling one included; the others are started when first needed.

    They end with `close`, and also when nothing refers to this object any more.

    >>> workers = Workers(2)
    >>> workers.run([lambda _: "here", lambda _: "beside"])
    ['here', 'beside']
    >>> workers.close()
    """

    def __init__(self, threads: int) -> None:
        if not 1 <= threads <= MAX_THREADS:
            raise GraphtideError(
                f"threads={threads} is not possible", hint=f"use 1 to {MAX_THREADS}"
            )
        self.threads = threads
        self.worth = WORTH
        self._pool: ThreadPoolExecutor | None = None
        self._closed = False

    def run(self, tasks: Sequence[Callable[[Event], Result]]) -> list[Result]:
        """Do all tasks, the first one in the calling thread; their results in order.

        A task gets an event that is set when another one has failed or was interrupted: it may end
        then. The first error is raised when all of them have ended.
        """
        stop = Event()
        if self._closed or len(tasks) < 2:
            return [task(stop) for task in tasks]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads - 1, "graphtide")
        beside: list[Future[Result]] = []
        try:
            for task in tasks[1:]:  # one by one: those before an interrupt are waited for
                run: Any = copy_context().run  # the limits in force hold there, too
                beside.append(self._pool.submit(run, _stopping, task, stop))
            first = _stopping(tasks[0], stop)
        except BaseException:
            stop.set()
            wait(beside)
            raise
        return [first, *(each.result() for each in wait_for(beside, stop))]

    def close(self) -> None:
        """End the threads; from now on, the calling thread does everything."""
        pool, self._pool, self._closed = self._pool, None, True
        if pool is not None:
            pool.shutdown()


def wait_for(beside: list[Future[Result]], stop: Event) -> list[Future[Result]]:
    """Wait until all have ended, those with an error first; an interrupt stops them."""
    try:
        wait(beside)
    except BaseException:
        stop.set()
        wait(beside)
        raise
    for each in beside:
        if (error := each.exception()) is not None:
            raise error
    return beside


def _stopping(task: Callable[[Event], Result], stop: Event) -> Result:
    """Do a task; if it fails, the others may end."""
    try:
        return task(stop)
    except BaseException:
        stop.set()
        raise
