"""What a standing query needs of the graph around it, of its windows and of its past."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from graphtide.engine import explanations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graphtide.algebra.nodes import SelectQuery
    from graphtide.engine.locking import GraphLock
    from graphtide.engine.results import Delta, TransactionTimes, WindowResult
    from graphtide.engine.scheduler import Scheduler
    from graphtide.engine.watch import Query
    from graphtide.kernel.batch import Ints
    from graphtide.plan.explain import NodeFacts
    from graphtide.plan.order import Pin
    from graphtide.plan.patterns import Strategy
    from graphtide.rdf.terms import Term


@dataclass(frozen=True, slots=True)
class CacheSize:
    """What a query stores in memory besides the shared quads: entries in its nodes, and bytes."""

    entries: int
    bytes: int


class AskedQuery(NamedTuple):
    """What a user asked for: the query, and a strategy and join tree if they were given."""

    select: SelectQuery
    strategy: Strategy | None = None
    pinned: Pin | None = None


class QueryHost(explanations.ExplainingHost, Protocol):
    """The runtime that a query is registered with, as far as the query needs it."""

    lock: GraphLock
    schedule: Scheduler
    past: QueryPast | None
    done: int
    """How many transactions have been applied."""
    facade: Callable[[], Any]
    """Gives the live graph above it, as long as that exists."""

    def flush(self) -> None:
        """Apply buffered changes."""

    def drained(self, query: Query, taken: list[tuple[Ints, TransactionTimes]]) -> None:
        """Deltas are about to be taken out of the history of a query."""

    def notify_each(self, query: Query) -> None:
        """From now on a query has callbacks: apply transaction by transaction."""

    def replan(self, query: Query) -> bool:
        """Plan a query again."""

    def close_query(self, query: Query) -> None:
        """End a query."""

    def plan_facts(self, query: Query, rows: int, *, actual: bool | None) -> NodeFacts:
        """Expected, actual and stored rows per plan node."""

    def cache_size(self, query: Query) -> CacheSize:
        """What a query's nodes store."""


class QueryCursor(Protocol):
    """The deltas of a query, from where a consumer last acknowledged."""

    acknowledged: int
    """The sequence number up to which it has; less than -1 before it has any."""

    def deltas(self) -> Iterator[Delta]:
        """The deltas that are not acknowledged, oldest first."""

    def ack(self, delta: Delta | int | None = None) -> None:
        """Acknowledge everything up to a delta, or to its `seq`; by default all that was read."""

    def release(self) -> None:
        """Forget where the consumer is."""


class DroppedToken(NamedTuple):
    """A partial match of a pattern that was dropped: its begin, values, when and why."""

    start: int
    values: dict[str, Term]
    time: int
    why: str


class QueryPast(Protocol):
    """The past of queries, as a store has it."""

    def changes(self, query: Query, start: int, end: int) -> Iterator[Delta]:
        """The deltas from a time up to another."""

    def cursor(self, query: Query, name: str) -> QueryCursor:
        """The cursor of that name."""

    def dropped_tokens(self, program: str, pattern: str) -> list[DroppedToken]:
        """The tokens of a pattern that were dropped, oldest first."""

    def host_after(self, transactions: int) -> explanations.ExplainingHost:
        """The graph as it was after so many transactions."""

    def since(self, query: Query, seq: int) -> Iterator[Delta]:
        """The deltas after a sequence number."""


class WindowSide(Protocol):
    """The windows of a query, as far as the query needs them."""

    def results(self) -> list[WindowResult]:
        """The retained results, oldest first."""

    @property
    def evicted(self) -> int:
        """How many rows of results are not retained any more."""

    def last(self) -> WindowResult | None:
        """The last result."""

    def on_result(self, callback: Callable[[WindowResult], object]) -> None:
        """Call back with every result."""

    def explain(self, plan: str) -> str:
        """Windows and output in words, and the plan."""

    def count(self, rows: int) -> int:
        """How many rows the answer has, if the maintained one has so many."""

    events: explanations.WindowEvents
    """What explanations need of the windows."""

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns of a result."""

    def close(self) -> None:
        """End the windows."""
