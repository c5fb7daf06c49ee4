"""Windows in one partition, and what queries over them emit.

Windows close by time alone, so all partitions agree on when, and each holds its own part of them. A
change of an answer is reported at the next close of one of the query's windows. Until then it is
*unreported*: a part of the durable state, since the log may be replaced by a snapshot meanwhile.
"""

from __future__ import annotations

from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from graphtide.kernel import Answer
from graphtide.kernel.batch import DIFF, TX, VALUES, Ints, Longs
from graphtide.spark.stages.consolidate import consolidated
from graphtide.spark.stages.pack import heartbeat_rows, rows_of_stream
from graphtide.spark.state import messages as msg
from graphtide.streams.pruning import EVERYTHING, Asked
from graphtide.streams.registry import WindowRegistry
from graphtide.streams.statements import StatementLog
from graphtide.streams.windows import ElementWindow, TimeWindow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graphtide.algebra.nodes import SelectQuery
    from graphtide.engine.runtime import Runtime
    from graphtide.engine.watch import Query
    from graphtide.spark.job import JobSpec
    from graphtide.spark.partition.windows import Windowed, WindowSpec
    from graphtide.spark.stages.match import QueriesPartition
    from graphtide.streams.reports import PlacedWindow
    from graphtide.streams.stream import Stream


UNREPORTED = 2**63 - 1
"""The time of deltas that are not reported yet: no window has closed since."""

NOT_YET = np.array([[UNREPORTED, 0]])


class PartitionResults:
    """When a query over windows reports in a partition, and which rows have changed by then."""

    def __init__(
        self,
        query: Query,
        windows: dict[int, Asked],
        own: Callable[[Ints], Ints],
    ) -> None:
        self.windows = windows
        self.reevaluated: SelectQuery | None = None
        self._query = query
        self._own = own
        self._closes: list[Longs] = []
        self._changed: list[tuple[Longs, Ints]] = []

    @property
    def is_settled(self) -> bool:
        """False: the driver needs each close."""
        return False

    def repeat(self, times: Longs, period: int, many: int) -> None:  # noqa: ARG002 - of readers
        """Raise, as closes are never repeated here."""
        raise AssertionError

    def savepoint(self) -> tuple[list[Longs], list[tuple[Longs, Ints]]]:
        """What `roll_back` needs."""
        return self._closes.copy(), self._changed.copy()

    def roll_back(self, to: tuple[list[Longs], list[tuple[Longs, Ints]]]) -> None:
        """A piece of input was interrupted: go back to before it."""
        self._closes, self._changed = to[0].copy(), to[1].copy()

    def take(self, numbers: Longs, times: Longs) -> None:
        """Assign changed rows to the closes that report them."""
        # All closes of one time come at once: windows of elements close several times.
        closes = np.column_stack([times, np.arange(len(times)) - np.searchsorted(times, times)])
        self._closes.append(closes)
        self._drain(numbers, np.append(closes, NOT_YET, axis=0))

    def call_back(self, many: int) -> None:
        """Do nothing: nobody registers callbacks in a partition."""

    def _drain(self, numbers: Longs, closes: Longs) -> None:
        for net, stamps in self._query.drain():
            rows = self._own(net)
            at = np.searchsorted(numbers, rows[:, TX] + stamps.first)
            self._changed.append((closes[at], rows))

    def taken(self) -> tuple[Longs, list[tuple[Longs, Ints]]]:
        """The closes since the last call; and changed rows, each with the close that reports it.

        A close is a time, and its index among those of this time.
        """
        self._drain(np.empty(0, np.int64), NOT_YET)
        closes, self._closes = self._closes, []
        changed, self._changed = self._changed, []
        return np.concatenate([np.empty((0, 2), np.int64), *closes]), changed


class PartitionWindows:
    """Streams, windows on them, and the queries over these, in the graph of a partition."""

    def __init__(self, graph: Runtime, job: JobSpec) -> None:
        self._graph = graph
        # Not the graph's own streams: those would let in one transaction after the other.
        self._registry = WindowRegistry(graph)
        names = sorted({window.stream for window in job.windows.values()})
        # The streams of a partition advance together, so each window waits for all of them.
        self._streams = tuple(self._registry.stream(name, None) for name in names)
        self._placed = {window.graph: self._place(window) for window in job.windows.values()}
        self._shapes = {placed.content.shape for placed in self._placed.values()}

    def _place(self, window: WindowSpec) -> PlacedWindow:
        terms = self._graph.terms
        stream = self._registry.stream(window.stream, None)
        graph = terms.hidden_graph(window.graph.value)
        placed = self._registry.window(stream, self._streams, window.shape, graph, EVERYTHING)
        if placed is None:
            raise AssertionError
        if window.quads is not None:
            quads = terms.hidden_graph(window.quads.value)
            placed.content.by_graph = StatementLog(quads, terms)
        return placed

    def add(
        self, windowed: Windowed, watch: Query, own: Callable[[Ints], Ints]
    ) -> PartitionResults:
        """Let a query report when one of its windows closes."""
        graphs = [self._placed[window.graph].graph for window in windowed.windows]
        reports = PartitionResults(watch, dict.fromkeys(graphs, EVERYTHING), own)
        self._registry.add(reports)
        return reports

    def take(self, events: pa.Table) -> None:
        """Add events, sorted by time; nothing closes yet."""
        terms = self._graph.terms
        for stream in self._registry.streams.values():
            rows = events.take(rows_of_stream(events["stream"], stream.name))
            quads = np.empty((len(rows), 4), np.int32)
            for column, name in enumerate("spog"):
                quads[:, column] = terms.encode_column(rows[name])
            stream.events.append(rows["time"].to_numpy(), quads, quads[:, 0] != 0)

    def advance(self, to: int) -> None:
        """Close what closes up to a time."""
        self._registry.advance(to)

    def between_closes(self, times: Longs) -> Iterator[slice]:
        """Changes of the graph, by time, in runs between which windows may close."""
        begins = np.zeros(len(times), np.bool_)
        begins[:1] = True
        for shape in self._shapes:
            closes = times
            if isinstance(shape, TimeWindow):
                closes = (times - shape.bounds(0)[1] - shape.first_close) // shape.step
            begins[1:] |= closes[1:] != closes[:-1]
        begins[1:] &= times[1:] >= self._first_event()
        starts = np.flatnonzero(begins).tolist()
        yield from map(slice, starts, [*starts[1:], len(times)])

    def _first_event(self) -> int:
        """A time before which no window can have closed."""
        moments = [stream.events.moments for stream in self._registry.streams.values()]
        if any(each.begin for each in moments):
            return -UNREPORTED
        return min((int(each.rows(0, 1)[0]) for each in moments if each.end), default=UNREPORTED)

    def __len__(self) -> int:
        """How many events may still be needed."""
        return sum(len(stream.events) for stream in self._registry.streams.values())

    def held(self) -> int:
        """How many quads the windows have put into the graph."""
        return self._registry.held()

    def snapshot(self) -> pa.Table:
        """The events that may still be needed, by time."""
        parts = [self._events(stream) for stream in self._registry.streams.values()]
        table = pa.concat_tables(parts)
        return table.take(np.argsort(table["time"].to_numpy(), kind="stable"))

    def _events(self, stream: Stream) -> pa.Table:
        """The retained events of a stream; if all were evicted, a heartbeat."""
        events, n = stream.events, len(stream.events)
        if not n:
            times = np.array([stream.watermark] if events.moments.end else [], np.int64)
            return heartbeat_rows(stream.name, times)
        steps = [w.step for w in self._shapes_on(stream) if isinstance(w, ElementWindow)]
        # Element windows count from the first event ever: stand-ins take the place of evicted ones.
        rows = np.append(np.zeros(events.begin % lcm(*steps), np.int64), np.arange(n))
        quads = events.quads(events.begin, events.end)[rows]
        texts = [msg.term_column(self._graph.terms, quads[:, column]) for column in range(4)]
        zeros, ones = np.zeros(len(rows), np.int64), np.ones(len(rows), np.int8)
        stamps = [events.times(events.begin, events.end)[rows], zeros, zeros, ones, zeros]
        names: Any = [stream.name] * len(rows)
        return msg.table_of(msg.STREAM_CHANGES, [*stamps, ones.astype(np.bool_), *texts, names])

    def _shapes_on(self, stream: Stream) -> list[object]:
        return [p.content.shape for p in self._placed.values() if p.stream is stream]


def report(
    before: pa.Table, deltas: pa.Table, engine: QueriesPartition, job: JobSpec
) -> tuple[pa.Table, pa.Table]:
    """What is emitted after a micro-batch, and what stays unreported.

    `before` is what was unreported before it.
    """
    closes = engine.closes()
    plain = {number for number, query in enumerate(job.partition_queries) if not query.windowed}
    out = [_of_queries(each, plain) for each in (before, deltas)]
    unreported = [msg.empty(msg.MESSAGES)]
    for number, query in enumerate(job.partition_queries):
        if query.windowed is None:
            continue
        own = closes[number]
        old, new = (_of_queries(each, {number}) for each in (before, deltas))
        if len(own):
            old = msg.replaced(old, "time", np.full(len(old), int(own[0, 0])))
        rows = pa.concat_tables([old, new])
        net = consolidated(
            rows, number, Answer(query.shown), query.shown, msg.TextIds(), distinct=False
        )
        waits = net["time"].to_numpy() == UNREPORTED
        reported, rest = (net.filter(pa.array(mask)) for mask in (~waits, waits))
        unreported.append(rest)
        if query.windowed.output != "RSTREAM":
            out.append(reported)
        elif len(own):
            answer = engine.answer(number)
            out += whole_answers(number, query.shown, (answer, reported, rest), own)
    return pa.concat_tables(out), pa.concat_tables(unreported)


def whole_answers(
    number: int, width: int, answers: tuple[pa.Table, pa.Table, pa.Table], closes: Longs
) -> Iterator[pa.Table]:
    """The whole answer at each close, from the current one and the deltas since."""
    answer, reported, rest = answers
    texts, net = msg.TextIds(), Answer(width)
    start = pa.concat_tables([answer, _negated(reported), _negated(rest)])
    net.step(_batch(start, width, texts))
    times, indices = reported["time"].to_numpy(), reported["tx"].to_numpy()
    for time, index in closes.tolist():
        here = (times == time) & (indices == index)
        net.step(_batch(reported.filter(pa.array(here)), width, texts))
        rows = net.rows()
        zeros = np.zeros(len(rows), np.int64)
        yield msg.delta_messages(
            number, (zeros + time, zeros + index), rows[:, -1], rows[:, :-1], texts
        )


def _batch(table: pa.Table, width: int, texts: msg.TextIds) -> Ints:
    batch = np.zeros((len(table), VALUES + width), np.int32)
    batch[:, DIFF] = table["diff"].to_numpy()
    batch[:, VALUES:] = msg.value_ids(table, width, texts)
    return batch


def _negated(deltas: pa.Table) -> pa.Table:
    """Deltas that undo these."""
    return msg.replaced(deltas, "diff", -deltas["diff"].to_numpy())


def _of_queries(deltas: pa.Table, queries: set[int]) -> pa.Table:
    """The rows of some queries."""
    return deltas.filter(pa.array(np.isin(deltas["id"].to_numpy(), list(queries))))
