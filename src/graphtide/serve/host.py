"""Host: the graph that a server serves, and the threads in which its calls run.

A live graph has one lock and its calls may take long, so none of them runs on the event loop.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from graphtide.engine.watch import Query
    from graphtide.graph import LiveGraph
    from graphtide.rules.program import RunningProgram

P = ParamSpec("P")
T = TypeVar("T")

THREADS: Final = 8
"""Calls of the graph that run or wait for its lock at the same time; others wait in a queue."""


class Host:
    """A live graph behind a server.

    `state` is for routes that keep something for the lifetime of the server.
    """

    def __init__(self, graph: LiveGraph, *, threads: int = THREADS) -> None:
        self.graph: Final = graph
        self.state: Final[dict[str, Any]] = {}
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="graphtide-serve")

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

    def close(self) -> None:
        """Wait for the calls that run, then write what is left to the store."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self.graph.close()
