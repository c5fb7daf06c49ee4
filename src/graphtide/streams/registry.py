"""Registry: the streams of a graph, the windows on them, and the queries over those windows."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pyoxigraph import NamedNode

from graphtide.algebra.traverse import substitute, walk
from graphtide.algebra.windows import WINDOW_SPACE, WindowClause, WindowedQuery
from graphtide.engine.ingest import GRAPH, signed
from graphtide.engine.timers import ALL_STREAMS, Due, Phase
from graphtide.engine.watch import DEFAULT_HISTORY
from graphtide.errors import GraphtideError
from graphtide.kernel.batch import DIFF, VALUES, Ints, Longs
from graphtide.limits import Allowance
from graphtide.rdf.holders import flat_ids
from graphtide.streams import quiet, reports
from graphtide.streams import windows as win
from graphtide.streams.pruning import EVERYTHING, Asked, PruningFilter, asked_of
from graphtide.streams.publisher import EventPublisher
from graphtide.streams.query import NO_ROWS, QueryWindows
from graphtide.streams.statements import StatementLog, statement_rows
from graphtide.streams.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from graphtide.engine.events import EventBatch
    from graphtide.engine.ingest import TermLike
    from graphtide.engine.runtime import Runtime
    from graphtide.engine.watch import Query
    from graphtide.plan.patterns import Strategy
    from graphtide.rdf.terms import Term


class WindowRegistry:
    """The windows on all streams: closes them as watermarks advance, and lets queries report."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.streams: dict[str, Stream] = {}
        self._windows: dict[int, reports.PlacedWindow] = {}
        self._moving = False
        self._notices: deque[tuple[reports.WindowReader, int]] = deque()
        self._more = False  # whether something is left to close, or came while windows closed
        self._marks: list[tuple[win.WindowContent, win.WindowMark]] = []
        self._reports: deque[reports.WindowReport] = deque()
        self._ahead = -win.UNLIMITED
        """The time up to which was asked last what is due."""
        self._left: Allowance | None = None  # what the closes up to that time may take
        """Queries whose callbacks are to see their last results, and how many of these."""
        self.publisher = EventPublisher(runtime, self._is_apart, self)
        runtime.terms.holders.add(self)

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The ids of window contents, and of the constants that queries ask for."""
        for report in self._reports:
            yield report.changes[:, VALUES:]
        for _, mark in self._marks:
            if mark.statements is not None:
                yield from mark.statements.held_ids()
        for placed in self._windows.values():
            yield from placed.content.held_ids()
            yield flat_ids(
                pattern for query in placed.queries for pattern in query.windows[placed.graph]
            )

    def savepoint(self) -> reports.RegistrySavepoint:
        """What `roll_back` needs."""
        placed_windows = self._windows.values()
        queries = dict.fromkeys(query for placed in placed_windows for query in placed.queries)
        return reports.RegistrySavepoint(
            self.publisher.numbers,
            [(stream, stream.savepoint()) for stream in self.streams.values()],
            [(placed.content, placed.content.mark()) for placed in placed_windows],
            [(query, query.savepoint()) for query in queries],
            [(report, report.first, report.own.copy()) for report in self._reports],
            tuple(self._marks),
        )

    def roll_back(self, to: reports.RegistrySavepoint) -> None:
        """A piece of input was interrupted: go back to before it."""
        self._moving, self.publisher.numbers = False, to.numbers
        self._notices.clear()
        for stream, stream_savepoint in to.streams:
            stream.roll_back(stream_savepoint)
        for content, mark in to.contents:
            content.restore(mark)
        for query, query_savepoint in to.queries:
            query.roll_back(query_savepoint)
        for report, first, own in to.reports:
            report.first, report.own = first, own.copy()
        self._reports, self._marks = deque(each for each, *_ in to.reports), list(to.marks)

    @property
    def has_windows(self) -> bool:
        """Whether there are windows."""
        return bool(self._windows)

    @property
    def interrupted(self) -> bool:
        """Whether closes are not reported yet."""
        return bool(self._reports or self._marks)

    def dump(self) -> dict[str, Any]:
        """The windows by the names of their graphs, for `load`."""
        terms, quads, found = self._runtime.terms, self._runtime.store.quads(), {}
        for graph, placed in self._windows.items():
            rows = np.ascontiguousarray(quads[quads[:, GRAPH] == graph, :GRAPH])
            parts = {"pruned": placed.pruned, "triples": rows, **placed.content.dump()}
            found[terms.hidden_name(graph)] = parts
        return found

    def load(self, saved: Mapping[str, Any]) -> None:
        """Let windows that are empty go on with a saved state."""
        for graph, placed in self._windows.items():
            own = saved[self._runtime.terms.hidden_name(graph)]
            placed.pruned = own["pruned"]
            placed.content.load(own)

    def _is_apart(self) -> bool:
        """Whether events have to be taken time by time: windows close, other streams wait."""
        return self.has_windows or any(stream.waiting for stream in self.streams.values())

    def stream(self, name: str, lateness: int | None) -> Stream:
        """The stream of that name, made if need be."""
        found = self.streams.get(name)
        if found is None:
            runtime, late = self._runtime, lateness or 0
            found = Stream(name, runtime.terms, late, runtime.tick_ms, self._move, self.publisher)
            found.pass_time(runtime.schedule.raised)
            self.streams[name] = found
        elif lateness is not None and lateness != found.lateness:
            raise GraphtideError(f"the stream {name} already has lateness {found.lateness}")
        return found

    def window(
        self,
        stream: Stream,
        needed: tuple[Stream, ...],
        shape: win.WindowShape,
        graph: int,
        asked: Asked,
    ) -> reports.PlacedWindow | None:
        """Return the window of a shape on a stream, whose content is the graph of that id.

        It closes when all streams `needed` by its queries have come so far. None if there is one
        already that waits for other streams, or lacks some of what is asked for.
        """
        placed = self._windows.get(graph)
        if placed is None:
            content = win.WindowContent(shape, stream.events, stream.name)
            placed = reports.PlacedWindow(stream, needed, content, graph, stream.pruned)
            self._windows[graph] = placed
        return placed if placed.needed == needed and placed.serves(asked) else None

    def pruned(self) -> int:
        """How many triples streams have dropped, because no query can match them."""
        return sum(stream.pruned for stream in self.streams.values())

    def held(self) -> int:
        """How many quads windows have put into the store."""
        self._restore()
        contents = [placed.content for placed in self._windows.values()]
        held = sum(len(c) + (len(c.by_graph) if c.by_graph else 0) for c in contents)
        ahead = (r.changes[:, DIFF].sum() for r in self._reports if not self._is_applied(r))
        return held - int(sum(ahead))

    def event_times(self, graph: int, triple: tuple[int, ...]) -> tuple[int, ...]:
        """The times of the events in a window that have a triple."""
        placed = self._windows.get(graph)
        if placed is None:
            return ()
        held, events = placed.content.held, placed.stream.events
        same = (events.quads(held.start, held.stop)[:, :GRAPH] == triple).all(axis=1)
        return tuple(events.times(held.start, held.stop)[same].tolist())

    def add(self, query: reports.WindowReader) -> None:
        """Let a query report when one of its windows closes."""
        for number in query.windows:
            self._windows[number].queries.append(query)
        self._prune()

    def keep_readers(self, queries: Collection[reports.WindowReader]) -> None:
        """Drop what queries have left that could not be registered.

        A window without readers would retain events, and close.
        """
        for number, placed in list(self._windows.items()):
            placed.queries = [query for query in placed.queries if query in queries]
            if not placed.queries:
                del self._windows[number]
        self._prune()

    def _prune(self) -> None:
        """Set the pruning filter of each stream: what its queries can match."""
        for stream in self.streams.values():
            placed = [p for p in self._windows.values() if p.stream is stream]
            stream.filter = PruningFilter(frozenset().union(*(p.asked() for p in placed)))

    def remove(self, query: reports.WindowReader) -> None:
        """Remove a query, and the windows that only it had."""
        for number in query.windows:
            placed = self._windows[number]
            placed.queries.remove(query)
            if not placed.queries:
                del self._windows[number]
                self._clear(number)
                if placed.content.by_graph is not None:
                    self._clear(placed.content.by_graph.graph)
        self._prune()

    def _clear(self, graph: int) -> None:
        """Remove all quads of a hidden graph."""
        quads = self._runtime.store.quads()
        left = quads[quads[:, GRAPH] == graph]
        if len(left):
            self._runtime.apply_closes(np.array([self._runtime.clock]), signed(left, -1))

    def rising(self, cause: object) -> tuple[Stream, ...]:
        """Return the streams whose watermarks rise for some cause of a move of the clock."""
        if cause is ALL_STREAMS:
            return tuple(self.streams.values())
        return (cause,) if isinstance(cause, Stream) else ()

    def next_due(self, to: int, cause: object) -> Due | None:
        """Return what is due before the watermarks that rise for a cause reach a time.

        While nobody sees single closes, all of it is due at once. Rules see an event that waits for
        late ones when the clock passes its time, whichever stream moves it. (Not when it reaches
        it: what they emit then may wait itself, and would be due again and again.)
        """
        rising = self.rising(cause)
        if self.publisher.in_order:
            self._runtime.flush()  # what callbacks have written comes before what is due next
        else:
            behind = any(stream.watermark < to for stream in rising)
            return Due(to, Phase.CLOSE) if behind else None
        closes = ((placed, placed.content.next_watermark()) for placed in self._windows.values())
        dues = [
            Due(time, Phase.CLOSE)
            for placed, time in closes
            if time is not None and time <= placed.watermark(rising, to)
        ]
        if cause is ALL_STREAMS:
            waiting = [stream.first_waiting() for stream in rising]
            dues += [Due(time, Phase.EVENT) for time in waiting if time is not None]
        elif self.publisher.listening:
            unseen = [s.first_unseen() for s in self.streams.values() if s is not cause]
            dues += [Due(time, Phase.EVENT) for time in unseen if time is not None and time < to]
        first = min(dues, default=None)
        if first is None or first.time > to:
            return None
        if to != self._ahead:
            self._ahead, self._left = to, Allowance(self._runtime.limits, "flush")
        if self._left is not None and self._left.is_over():  # the next call goes on
            left, self._ahead = self._left, -win.UNLIMITED
            left.check_time()
        return first

    def run_due(self, due: Due, cause: object) -> None:
        """Close windows, or release the events that have waited until a time."""
        self.publisher.protect()
        rising = self.rising(cause)
        if not self.publisher.in_order:
            self.advance(due.time, cause)
        elif due.phase is Phase.CLOSE:
            mark = max(due.time, self._quiet_until(cause))
            for stream in rising:
                stream.watermark = max(stream.watermark, mark)
            self._move()
        elif cause is ALL_STREAMS:
            self.advance(due.time, cause)
        else:
            for stream in tuple(self.streams.values()):
                if stream is not cause and stream.first_unseen() == due.time:
                    stream.publish_until(due.time)

    def _quiet_until(self, cause: object) -> int:
        """Return up to when closes change nothing, and nothing else is due."""
        to = quiet.quiet_until(self._windows.values(), self._ahead)
        for stream in self.streams.values():
            if (time := stream.first_waiting()) is not None:
                to = min(to, time - 1)
        for follower in self._runtime.schedule.followers:
            if not isinstance(follower, Streams) and (due := follower.next_due(to, cause)):
                to = min(to, due.time - 1)
        return to

    def advance(self, to: int, cause: object = ALL_STREAMS) -> None:
        """Raise watermarks: no event before that time comes any more."""
        for stream in self.rising(cause):
            stream.advance(to)

    def _move(self) -> None:
        """Close what can be closed; events that are pushed meanwhile are queued."""
        if self._moving:
            self._more = True
            return
        self._restore()
        self._moving = True
        try:
            self._finish()
            left: Allowance | None = None  # most moves close once
            while self._close():
                self._finish()
                if not self._more or not any(placed.is_due() for placed in self._windows.values()):
                    break
                left = left or Allowance(self._runtime.limits, "flush")
                left.check_time()
                quiet.skip(self._windows.values(), self._runtime)
        finally:
            self._moving = False
        for stream in self.streams.values():
            needed = [p.content.needed() for p in self._windows.values() if p.stream is stream]
            stream.events.drop_before(*(needed[0] if len(needed) == 1 else win.oldest(needed)))

    def _close(self) -> bool:
        """Close some windows, all that close at one time together; whether there were any."""
        placed_windows = list(self._windows.values())
        watermarks = [placed.watermark() for placed in placed_windows]
        # No window may go ahead of another that has too much to close for one step.
        # One whose streams have not come so far holds none back.
        marks = [p.content.reach() for p in placed_windows]
        if self.publisher.in_order:
            marks = [p.content.next_watermark() or win.UNLIMITED for p in placed_windows]
        reached = zip(marks, watermarks, strict=True)
        reach = min((mark for mark, reached in reached if mark <= reached), default=win.UNLIMITED)
        self._more = max(watermarks, default=reach) > reach
        self._marks = [(p.content, p.content.mark()) for p in placed_windows]
        parts = zip(placed_windows, watermarks, strict=True)
        advanced = [(p, *p.content.advance(min(mark, reach))) for p, mark in parts]
        moved = [part for part in advanced if len(part[1])]
        if not moved:
            self._marks = []
            return False
        times, places = win.unite([closes for _, closes, _ in moved])
        changes = reports.merged(moved, places)
        own = reports.own_closes([placed.queries for placed, _, _ in moved], places)
        self._reports.extend(reports.reports_of(times, changes, own))
        self._marks = []
        return True

    def _finish(self) -> None:
        """Report what has closed, and what is left of reports that were interrupted."""
        self._call_back()
        while self._reports:
            self._report(self._reports[0])
            self._reports.popleft()

    def _restore(self) -> None:
        """Let windows go back to what they were, if the computing of closes was interrupted."""
        while self._marks and not self._moving:
            content, mark = self._marks[-1]
            content.restore(mark)
            self._marks.pop()

    def _is_applied(self, report: reports.WindowReport) -> bool:
        return report.first is not None and self._runtime.position > report.first

    def _report(self, report: reports.WindowReport) -> None:
        """Apply the changes of some closes, and let each query report at its own of them."""
        applied = self._is_applied(report)
        if report.first is None:
            report.first = self._runtime.position
        if not applied:
            self._runtime.apply_closes(report.times, report.changes)
        while report.own:
            query, places = next(iter(report.own.items()))
            if len(places):
                every = len(places) == len(report.times)
                query.take(report.first + places, report.times if every else report.times[places])
                self._notices.append((query, len(places)))
            del report.own[query]
            self._call_back()

    def _call_back(self) -> None:
        """Let the callbacks of queries run that have reported, when the input is through."""
        while self._notices:
            query, many = self._notices[0]
            query.call_back(many)
            self._notices.popleft()


# --- streams and the queries over them ---

ReportPolicy = Literal["close", "change"]
"""When a query reports: when a window closes, or whenever events come."""


class Streams:
    """The streams of a graph, and the windowed queries over them."""

    def __init__(self, runtime: Runtime, origin: int, alignment: win.Alignment) -> None:
        self.runtime = runtime
        self._origin = origin
        self._alignment = alignment
        self._registry = WindowRegistry(runtime)
        self.publisher = self._registry.publisher
        self.by_name = self._registry.streams
        """The streams by the text of their IRI; read only."""
        self._queries: dict[str, QueryWindows] = {}
        self._places: Mapping[str, Mapping[str, str]] = {}
        """By query and window, the graph in which a saved window was."""

    def __bool__(self) -> bool:
        return bool(self._registry.streams)

    def __iter__(self) -> Iterator[Stream]:
        return iter(self._registry.streams.values())

    @property
    def has_windows(self) -> bool:
        """Whether there are windows on any of them."""
        return self._registry.has_windows

    def stream(self, name: TermLike, lateness: int | None) -> Stream:
        """The stream of that name, made if need be."""
        text = str(name)
        iri = text[1:-1] if text.startswith("<") and text.endswith(">") else text
        return self._stream(iri, lateness)

    def _stream(self, iri: str, lateness: int | None) -> Stream:
        if not self._registry.streams:
            self.runtime.subscribe(self, eager=False)
        return self._registry.stream(iri, lateness)

    # --- what a snapshot has of them ---

    @property
    def interrupted(self) -> bool:
        """Whether closes are not reported yet."""
        return self._registry.interrupted

    def dump(self) -> dict[str, Any]:
        """Streams, windows, and what queries over windows have to put out."""
        return {
            "streams": {stream.name: stream.dump() for stream in self},
            "windows": self._registry.dump(),
            "queries": {name: query.dump() for name, query in self._queries.items()},
        }

    def begin(self, saved: Mapping[str, Any]) -> Ints:
        """Make the saved streams, also those that only rules have named; the quads of windows.

        Queries that are registered next find their windows in these.
        """
        for name, own in saved["streams"].items():
            self._stream(name, own["numbers"]["lateness"])
        self._places = {name: own["places"] for name, own in saved["queries"].items()}
        terms = self.runtime.terms
        parts: list[Ints] = [np.empty((0, 4), np.int32)]
        for name, own in saved["windows"].items():
            graph = np.full(len(own["triples"]), terms.hidden_graph(name), np.int32)
            parts.append(np.column_stack([own["triples"], graph]))
            if own["quads"] is not None:
                parts.append(statement_rows(own["quads"], self._statement_graph(name), terms))
        return np.concatenate(parts)

    def load(self, saved: Mapping[str, Any]) -> None:
        """Let streams and windows go on with a saved state, when its queries are registered."""
        self._places = {}
        for stream in self:
            stream.load(saved["streams"][stream.name])
        self._registry.load(saved["windows"])
        for name, query in self._queries.items():
            query.load(saved["queries"][name])

    # --- what the scheduler asks for; windows do not look at transactions or published events ---

    def next_due(self, to: int, cause: object) -> Due | None:
        """Return the next close of a window, or event that waits for late ones, up to a time."""
        return self._registry.next_due(to, cause)

    def run_due(self, due: Due, cause: object) -> None:
        """Close windows, or publish events."""
        self._registry.run_due(due, cause)

    def time_passed(self, to: int, cause: object) -> None:
        """Raise watermarks: no event before that time comes any more."""
        self.publisher.protect()
        for stream in self._registry.rising(cause):
            stream.pass_time(to)

    def after_transaction(self) -> None:
        """Nothing to do."""

    def admit(self, events: EventBatch) -> EventBatch:
        """All of them."""
        return events

    def can_wait(self) -> bool:
        """Whether windows report the same for any batches of events."""
        return self._alignment != "rsp4j"

    def take_events(self, events: EventBatch) -> int:
        """Events of streams reach the windows before they are published."""
        return len(events)

    taken = 0

    def go_on(self) -> bool:
        """Nothing waits for the end of a cascade."""
        return False

    def abort(self) -> None:
        """Events in windows stay."""

    def watch(
        self,
        query: WindowedQuery,
        strategy: Strategy | None,
        name: str | None,
        report: ReportPolicy,
        *,
        reevaluate: bool,
        history: int | None = DEFAULT_HISTORY,
    ) -> Query:
        """Register a query over windows; it reports from its windows' first close on."""
        self.runtime.flush()
        if reevaluate and self.runtime.storage != "all":
            raise GraphtideError(
                "evaluating again needs all quads, but this graph stores only some",
                hint='use LiveGraph(store="all"): streams leave out what no query can match',
            )
        if report not in ("close", "change"):
            raise GraphtideError(f"report={report!r} is unknown", hint='use "close" or "change"')
        try:
            return self._watch(
                query, strategy, name, report, reevaluate=reevaluate, history=history
            )
        except BaseException:
            self._registry.keep_readers(self._queries.values())
            raise

    def _watch(
        self,
        query: WindowedQuery,
        strategy: Strategy | None,
        name: str | None,
        report: ReportPolicy,
        *,
        reevaluate: bool,
        history: int | None,
    ) -> Query:
        runtime, name = self.runtime, name or query.name
        places = self._places.get(name or "", {})
        graphs: dict[Term, Term] = {}
        windows: dict[int, tuple[Stream, Asked]] = {}
        names = dict.fromkeys(clause.stream.value for clause in query.windows)
        needed = tuple(self._stream(each, None) for each in sorted(names))
        for clause in query.windows:
            root = query.select.root
            by_graph = clause.quads in walk(root)
            asked = EVERYTHING if by_graph else asked_of(root, clause.graph, self.runtime.terms)
            shape, place = self._shape(clause, report), places.get(clause.graph.value)
            name_of, placed = self._place(clause, needed, shape, asked, place)
            graphs[clause.graph] = name_of
            if by_graph:
                graphs[clause.quads] = self._statements(placed, name_of)
            before = windows.get(placed.graph, (placed.stream, frozenset()))[1]
            windows[placed.graph] = placed.stream, before | asked
        select = replace(query.select, root=substitute(query.select.root, graphs))
        if reevaluate:
            name = name or f"query{len(self._queries) + 1} over windows"
            handle = runtime.watch(NO_ROWS, name=name)
            side = QueryWindows(runtime, query, handle, windows, self._close, history, select)
        else:
            handle = runtime.watch(select, strategy=strategy, name=name)
            side = QueryWindows(runtime, query, handle, windows, self._close, history)
            side.take(win.NO_TIMES, win.NO_TIMES)
        side.events = side.events._replace(graphs=graphs, times=self._registry.event_times)
        self._registry.add(side)
        self._queries[side.name] = side
        handle.windows = side
        return handle

    def _place(
        self,
        clause: WindowClause,
        needed: tuple[Stream, ...],
        shape: win.WindowShape,
        asked: Asked,
        place: str | None,
    ) -> tuple[NamedNode, reports.PlacedWindow]:
        """A window and its graph's name: that of other queries, if it holds all that is asked.

        A window that was saved is in its own `place`.
        """
        stream = self._stream(clause.stream.value, None)
        for number in count():
            name = NamedNode(place) if place else _graph_of(clause.stream.value, shape, number)
            graph = self.runtime.terms.hidden_graph(name.value)
            placed = self._registry.window(stream, needed, shape, graph, asked)
            if placed is not None:
                return name, placed
        raise AssertionError

    def _statements(self, placed: reports.PlacedWindow, window: NamedNode) -> NamedNode:
        """The graph that holds the quads of a window's event graphs as statements."""
        graph = self._statement_graph(window.value)
        content, terms = placed.content, self.runtime.terms
        if content.by_graph is None:
            if len(content):
                raise GraphtideError(
                    "this window is in use already, without the graphs of its events",
                    hint="register queries with GRAPH inside WINDOW before the events come",
                )
            content.by_graph = StatementLog(graph, terms)
        return NamedNode(terms.hidden_name(graph))

    def _statement_graph(self, window: str) -> int:
        name = window.replace(WINDOW_SPACE, f"{WINDOW_SPACE}quads:", 1)
        return self.runtime.terms.hidden_graph(name)

    def _close(self, query: QueryWindows) -> None:
        if self._queries.pop(query.name, None) is not query:
            raise GraphtideError(f"{query.name} does not watch this graph (any more)")
        self._registry.remove(query)

    def _shape(self, clause: WindowClause, report: ReportPolicy) -> win.WindowShape:
        shape = win.window_shape(clause, self.runtime.tick_ms, self._origin, self._alignment)
        if report == "change" and isinstance(shape, win.TimeWindow):
            return win.ChangingWindow(shape.range, shape.step, self._origin)
        return shape

    def pruned(self) -> int:
        """How many triples streams have dropped, because no query can match them."""
        return self._registry.pruned()

    def held(self) -> int:
        """How many quads are in windows."""
        return self._registry.held()


def _graph_of(stream: str, shape: win.WindowShape, number: int) -> NamedNode:
    """The graph that holds a window: equal windows on one stream are one, as far as they can."""
    window = f"{shape}/{number}" if number else str(shape)
    name = f"{stream.replace('#', '%23')}#{window}".replace(" ", "").replace("'", "")
    return NamedNode(f"{WINDOW_SPACE}{name}")
