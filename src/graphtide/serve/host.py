"""Host: the graph that a server serves, and the threads in which its calls run.

A live graph has one lock and its calls may take long, so none of them runs on the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, ParamSpec, TypeVar

from graphtide.errors import GraphtideError
from graphtide.limits import cancel_with
from graphtide.serve.metrics import ServerMetrics

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request

    from graphtide.engine.watch import Query
    from graphtide.graph import LiveGraph
    from graphtide.rules.program import RunningProgram

P = ParamSpec("P")
T = TypeVar("T")

LOG: Final = logging.getLogger("graphtide.serve")
HANG_UP_SECONDS: Final = 0.2
"""Seconds between two looks whether a client is still there."""

THREADS: Final = 8
"""Calls of the graph that run or wait for its lock at the same time; others wait in a queue."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What clients may ask for; time and memory of queries are in the `Limits` of the graph."""

    body_bytes: int = 64 << 20
    """Bytes of a request's body."""

    body_seconds: float = 60
    """Seconds in which a request's body must come."""

    rows: int = 1_000_000
    """Rows of an answer."""

    subscriptions: int = 100
    """Subscriptions of one client."""

    history: int = 20_000
    """Delta rows that a subscribed query retains, for readers that come back; a store has all."""

    unsent_bytes: int = 4 << 20
    """Bytes that wait for a subscriber; one that lets more pile up is disconnected."""

    heartbeat_seconds: float = 15
    """Seconds between two signs of life to subscribers."""

    idle_seconds: float = 600
    """Seconds after which a subscription that nobody reads ends, unless it has a cursor."""


class Written(NamedTuple, Generic[T]):
    """What a change returned, and the graph's transactions and time after it."""

    result: T
    transactions: int
    time: int

    def stamp(self) -> dict[str, int]:
        """Its last transaction, as the sequence number of deltas, and its time."""
        return {"tx": self.transactions - 1, "time": self.time}


class Host:
    """A live graph behind a server."""

    def __init__(
        self,
        graph: LiveGraph,
        *,
        settings: ServerSettings | None = None,
    ) -> None:
        self.graph: Final = graph
        self.settings: Final = settings or ServerSettings()
        self.metrics: Final = ServerMetrics()
        self.changed: Final = asyncio.Event()
        """Set on the event loop after each change that came through the server."""
        self.durable: Final = is_durable(graph)
        self.read_only: Final = self.durable and graph.store.read_only
        """Whether another process writes to the store; the server then follows it."""
        self.behind: str | None = None
        """Why the store can no longer be followed, if so."""
        self._closing: list[Callable[[], object]] = []
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="graphtide-serve")

    @property
    def programs(self) -> list[RunningProgram]:
        """The programs that run on the graph."""
        return list(self.graph.programs)

    def queries(self) -> Mapping[str, Query]:
        """The standing queries by name."""
        return {query.name: query for query in self.graph.queries}

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function of the graph in a thread; the limits of the graph hold there."""
        loop, context = asyncio.get_running_loop(), copy_context()
        return await loop.run_in_executor(
            self._pool, lambda: context.run(function, *args, **kwargs)
        )

    async def call_for(
        self, request: Request, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a query for a client; it is cancelled when the client hangs up."""
        gone = Event()

        def run() -> T:
            cancel_with(gone)
            if gone.is_set():
                raise GraphtideError("the client went away")
            return function(*args, **kwargs)

        async def watch() -> None:
            while not await request.is_disconnected():  # noqa: ASYNC110 - it has no event
                await asyncio.sleep(HANG_UP_SECONDS)
            gone.set()

        watching = asyncio.create_task(watch())
        try:
            return await self.call(run)
        finally:
            watching.cancel()

    async def write(
        self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> Written[T]:
        """Change the graph; with a store, wait until that is on disk."""

        def change() -> Written[T]:
            with self.graph.lock:
                result = function(*args, **kwargs)
                written = Written(result, self.graph.transactions, self.graph.clock)
            if self.durable:
                self.graph.flush()
            return written

        written = await self.call(change)
        self.changed.set()
        return written

    async def follow(self) -> None:
        """Take in what the writer of the store has written since, if this is a reader.

        What cannot be taken in ends this: the answers stay as they were, and `behind` says so.
        """
        if not self.read_only or self.behind is not None:
            return
        try:
            await self.call(self.graph.follow)
        except GraphtideError as error:
            self.behind = error.message
            LOG.warning("the store can no longer be followed: %s", error)

    def at_close(self, function: Callable[[], object]) -> None:
        """Call a function when the server ends."""
        self._closing.append(function)

    def close(self) -> None:
        """Wait for the calls that run, then write what is left to the store."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        for function in self._closing:
            function()
        self.graph.close()


def is_durable(graph: LiveGraph) -> bool:
    """Whether a graph has a store."""
    try:
        return graph.store is not None
    except GraphtideError:
        return False
