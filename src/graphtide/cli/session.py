"""Session: standing queries and a program on one graph, and their output as changes are applied."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from time import perf_counter
from typing import TYPE_CHECKING, Final

from graphtide.algebra.nodes import SelectQuery
from graphtide.cli.inputs import STANDARD_INPUT, ChangeLog
from graphtide.engine.results import Delta, DeltaRow, TransactionTimes, WindowResult
from graphtide.errors import DataError, GraphtideError
from graphtide.kernel.batch import DIFF, TX, Ints
from graphtide.lang.sparql.parse import parse_standing
from graphtide.rdf.changes import ChangeBatch, OnError, concat_batches
from graphtide.rdf.formats.registry import find_format
from graphtide.rules.firing import MAX_LISTED
from graphtide.streams.read import has_timestamps, timestamped

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from graphtide.algebra.windows import Output
    from graphtide.engine.watch import Query
    from graphtide.graph import LiveGraph
    from graphtide.plan.patterns import Strategy
    from graphtide.rdf.terms import Term
    from graphtide.rules.program import RunningProgram
    from graphtide.rules.running.replacement import Replacement

SHOWN_ROWS: Final = 5000
"""Rows of the last deltas that a query keeps where they are shown elsewhere, too."""

# --- output ---


@dataclass(frozen=True, slots=True)
class RowOutput:
    """A delta row of a query.

    A row of a window's result has the time of the result, and as `tx` the index of the result among
    those of that time; `output` is then the query's relation-to-stream operator.
    """

    query: str
    row: DeltaRow
    output: Output | None = None

    @property
    def time(self) -> int:
        """When the answer changed."""
        return self.row.time


@dataclass(frozen=True, slots=True)
class ResultOutput:
    """A windowed query has a result; its rows follow."""

    query: str
    time: int


@dataclass(frozen=True, slots=True)
class EventOutput:
    """A complex event: a pattern has matched, from `start` to `time`."""

    pattern: str
    start: int
    time: int
    values: Mapping[str, Term]


@dataclass(frozen=True, slots=True)
class FiringOutput:
    """A rule has fired; `events` has the time of each event that it matched."""

    rule: str
    time: int
    values: Mapping[str, Term]
    events: Mapping[str, int]


SessionOutput = RowOutput | ResultOutput | EventOutput | FiringOutput


@dataclass(slots=True)
class RowTally:
    """What the deltas of a query add up to."""

    answer: int = 0
    added: int = 0
    removed: int = 0

    def add(self, diff: int) -> None:
        """Count a delta row."""
        self.answer += diff
        self.added += max(diff, 0)
        self.removed += max(-diff, 0)


@dataclass(slots=True)
class CountTally:
    """How many results of windows, firings or complex events there were, and rows in them."""

    thing: str
    count: int = 0
    rows: int | None = None


Tally = RowTally | CountTally


# --- sources of output ---


class DeltaSource:
    """The deltas of queries without windows, of all of them in the order of transactions."""

    def __init__(self, graph: LiveGraph, *, shown: bool = False) -> None:
        self._graph = graph
        self._queries: dict[str, tuple[Query, RowTally]] = {}
        self._shown = shown
        self._seen: dict[str, int] = {}

    def add(self, query: Query) -> None:
        """Collect the deltas of one more query."""
        before = query.count() - sum(int(net[:, DIFF].sum()) for net, _ in query.history())
        self._queries[query.name] = query, RowTally(before)

    def remove(self, name: str) -> None:
        """Collect the deltas of a query no more."""
        self._queries.pop(name, None)
        self._seen.pop(name, None)

    def tallies(self) -> Mapping[str, Tally]:
        """By query, what its deltas add up to."""
        return {name: tally for name, (_, tally) in self._queries.items()}

    def take(self) -> list[SessionOutput]:
        """The delta rows since the last call."""
        found: list[tuple[int, SessionOutput]] = []
        with self._graph.lock:  # ids are valid until the graph is used again
            for query, tally in self._queries.values():
                for net, stamps in self._drain(query):
                    delta = Delta(net, stamps, query.variables, self._graph.terms)
                    indexes = (net[:, TX] + stamps.first).tolist()
                    for index, row in zip(indexes, delta, strict=True):
                        tally.add(row.diff)
                        found.append((index, RowOutput(query.name, row)))
        if len(self._queries) > 1:
            found.sort(key=lambda each: each[0])
        return [row for _, row in found]

    def _drain(self, query: Query) -> list[tuple[Ints, TransactionTimes]]:
        """What is new in the history of a query; somebody who is shown it finds the last of it."""
        if not self._shown:
            return query.drain()
        with self._graph.lock:
            history = query.drain()
            first, rows = len(history), 0
            while first and rows < SHOWN_ROWS:
                first -= 1
                rows += len(history[first][0])
            query.put_back(history[first:])
            new = history[self._seen.get(query.name, 0) :]
            self._seen[query.name] = len(history) - first
        return new


class WindowSource:
    """The results of one windowed query.

    >>> from graphtide import LiveGraph
    >>> graph = LiveGraph()
    >>> window = "FROM NAMED WINDOW <ex:w> ON <ex:s> [ELEMENTS 1]"
    >>> text = f"SELECT * {window} WHERE {{ WINDOW <ex:w> {{ ?a <ex:p> ?b }} }}"
    >>> source = WindowSource(graph.watch(text, name="q"), "RSTREAM")
    >>> graph.stream("<ex:s>").push([("<ex:a>", "<ex:p>", 1)], time=5)
    >>> graph.advance(6)
    >>> result, row = source.take()
    >>> result, row.time, source.tallies()["q"].rows
    (ResultOutput(query='q', time=5), 5, 1)
    """

    def __init__(self, query: Query, output: Output) -> None:
        self._name = query.name
        self._output: Output = output
        self._tally = CountTally("result", rows=0)
        self._found: list[SessionOutput] = []
        self._time: int | None = None
        self._index = 0
        query.on_result(self._add)

    def _add(self, result: WindowResult) -> None:
        self._index = self._index + 1 if result.time == self._time else 0
        self._time = result.time
        self._tally.count += 1
        self._tally.rows = (self._tally.rows or 0) + len(result)
        self._found.append(ResultOutput(self._name, result.time))
        sign = -1 if self._output == "DSTREAM" else 1
        for row, copies in groupby(result):  # equal rows are adjacent
            found = DeltaRow(result.time, self._index, sign * sum(1 for _ in copies), row)
            self._found.append(RowOutput(self._name, found, self._output))

    def tallies(self) -> Mapping[str, Tally]:
        """How many results and rows."""
        return {self._name: self._tally}

    def take(self) -> list[SessionOutput]:
        """The results since the last call: each, then its rows."""
        found, self._found = self._found, []
        return found


class ProgramSource:
    """The complex events and firings of a running program."""

    def __init__(self, program: RunningProgram) -> None:
        self._program = program
        patterns = program.program.patterns
        self._tallies = {p.name: CountTally("complex event") for p in patterns}
        self._firings = CountTally("firing")

    def go_on(self, kept: Collection[str]) -> None:
        """The program was replaced: count the complex events of patterns that are not kept anew."""
        old, self._tallies = self._tallies, {}
        for pattern in self._program.program.patterns:
            fresh = CountTally("complex event")
            self._tallies[pattern.name] = old[pattern.name] if pattern.name in kept else fresh

    def tallies(self) -> Mapping[str, Tally]:
        """How many complex events of each pattern, and how many firings."""
        fires = {"rules": self._firings} if self._program.program.rules else {}
        return {**self._tallies, **fires}

    def take(self) -> list[SessionOutput]:
        """The complex events and firings since the last call, by time."""
        found: list[SessionOutput] = []
        for pattern, tally in self._tallies.items():
            new = _new(tally, self._program.matched(pattern))
            matches = self._program.matches(pattern, last=new)
            found += (EventOutput(pattern, m.start, m.time, m.values) for m in matches)
        new = _new(self._firings, self._program.fired)
        log = self._program.firings()
        for firing in log[len(log) - new :]:
            events = {name: end for name, (_, end) in firing.events.items()}
            found.append(FiringOutput(firing.rule, firing.time, firing.values, events))
        found.sort(key=attrgetter("time"))
        return found


def _new(tally: CountTally, total: int) -> int:
    """Count up to a total; how many are new."""
    new, tally.count = total - tally.count, total
    if new > MAX_LISTED:
        raise GraphtideError(
            f"a step gave {new:,} {tally.thing}s, and {MAX_LISTED:,} are retained",
            hint="apply smaller files of changes",
        )
    return new


# --- the session ---


class Session:
    """Applies changes to a graph, and collects the output of its queries and programs.

    An insert into a graph that has the name of a stream is an event of that stream. Where the
    output is `shown` elsewhere too, queries keep their last deltas.

    >>> from graphtide import LiveGraph
    >>> from graphtide.rdf.changes import ChangeBatch
    >>> session = Session(LiveGraph(), {"all": "SELECT * { ?s ?p ?o }"})
    >>> batch = ChangeBatch.of([(17, 0, 1, "<ex:a>", "<ex:p>", "<ex:b>", None)])
    >>> [str(found.row) for rows in session.apply([batch]) for found in rows]
    ['+ s=<ex:a> p=<ex:p> o=<ex:b>']
    >>> session.tallies["all"].answer, session.transactions
    (1, 1)
    """

    def __init__(
        self,
        graph: LiveGraph,
        queries: Mapping[str, str],
        strategy: Strategy | None = None,
        *,
        on_error: OnError = "raise",
        tick_ms: int = 1000,
        shown: bool = False,
    ) -> None:
        self.graph = graph
        self.expected: int | None = None
        self.changes = 0
        self.transactions = 0
        self.busy = 0.0
        self.feed = graph.feed(on_error=on_error)
        self._tick_ms = tick_ms
        self._deltas = DeltaSource(graph, shown=shown)
        self._windows: list[WindowSource] = []
        self._programs: list[ProgramSource] = []
        self.queries: dict[str, Query] = {}
        known = {query.name: query for query in graph.queries}
        for name, text in queries.items():
            query = known.get(name)
            if query is None:
                query = graph.watch(text, name=name, strategy=strategy, history=None)
            else:
                self._go_on(query, text)
            self._collect(query, text)

    def add_program(self, program: RunningProgram, *, new: bool = True) -> None:
        """Collect the output of a running program: its queries', patterns' and rules'.

        Of one that is not `new`, only what comes from now on.
        """
        for query in program.queries.values():
            query.retain(None)
            if not new:
                query.drain()
            self._collect(query, query.text)
        self._programs.append(ProgramSource(program))
        if not new:
            self._programs[-1].take()

    def go_on(self, program: RunningProgram, done: Replacement) -> None:
        """A program was replaced, after its output was taken: collect what it puts out now."""
        own = program.queries
        for kind, name in (*done.changed, *done.removed):
            if kind == "QUERY":
                self.queries.pop(name)
                self._deltas.remove(name)
                self._windows = [each for each in self._windows if name not in each.tallies()]
        for kind, name in (*done.changed, *done.added):
            if kind == "QUERY":
                own[name].retain(None)
                self._collect(own[name], own[name].text)
        kept = [name for kind, name in done.kept if kind == "PATTERN"]
        for source in self._programs:
            source.go_on(kept)

    def _go_on(self, query: Query, text: str) -> None:
        """Collect what a query of the store puts out from now on."""
        if query.text != text:
            raise GraphtideError(
                f"the store has another query named {query.name}",
                hint="rename the file, or close that query",
            )
        query.retain(None)
        query.drain()

    def _collect(self, query: Query, text: str) -> None:
        parsed = parse_standing(text)
        self.queries[query.name] = query
        if isinstance(parsed, SelectQuery):
            self._deltas.add(query)
        else:
            self._windows.append(WindowSource(query, parsed.output))

    @property
    def tallies(self) -> dict[str, Tally]:
        """By name, how much output there was; queries first."""
        found: dict[str, Tally] = dict(self._deltas.tallies())
        for source in self._windows:
            found |= source.tallies()
        for program in self._programs:
            found |= program.tallies()
        return {name: found[name] for name in (*self.queries, *found)}

    @property
    def rate(self) -> float:
        """Changes per second of work."""
        return self.changes / self.busy if self.busy else 0.0

    # --- changes in, output out ---

    def follow(self, log: ChangeLog) -> Iterator[list[SessionOutput]]:
        """The first answers; then the output of whole transactions, also those before an error."""
        yield self.take()
        if log.is_read_in_pieces:
            self._check_follow(log)
            for batches in log.pieces():
                yield from self.apply(batches)
        elif self.feed.streams and find_format(log.path).rdf is not None:
            yield from self._apply_rdf(log, concat_batches(log.rejects.read(log.path)))
        else:
            yield from self.apply(log.rejects.read(log.path))
        yield self.end(log.until)

    def apply(self, batches: Iterable[ChangeBatch]) -> Iterator[list[SessionOutput]]:
        """Apply whole transactions; their output in order, step by step."""
        start = perf_counter()
        for step in self.feed.steps(batches):
            self.changes += step.changes
            self.transactions += step.transactions
            found = self.take()
            self.busy += perf_counter() - start
            yield found
            start = perf_counter()
        self.busy += perf_counter() - start

    def end(self, until: int | None = None) -> list[SessionOutput]:
        """End the log: advance the clock to `until`, or to the tick after the last change."""
        self.feed.end(until)
        return self.take()

    def take(self) -> list[SessionOutput]:
        """The output since the last call, by time: windows, then answers, then the program."""
        parts = [source.take() for source in self._windows]
        parts.append(self._deltas.take())
        parts += [source.take() for source in self._programs]
        found = [each for part in parts for each in part]
        if sum(map(bool, parts)) > 1:
            found.sort(key=attrgetter("time"))
        return found

    def _apply_rdf(self, log: ChangeLog, quads: ChangeBatch) -> Iterator[list[SessionOutput]]:
        """Apply RDF: named graphs are events where the default graph gives their times."""
        source = str(log.path)
        if has_timestamps(quads, log.timestamp):
            start = perf_counter()
            terms = self.graph.terms
            times, rows, events = timestamped(quads, terms, log.timestamp, self._tick_ms, source)
            self.feed.push(times, rows, events)
            self.changes += len(times)
            self.transactions += len(set(events.tolist()))
            found = self.take()
            self.busy += perf_counter() - start
            yield found
            return
        graphs = set(quads.g.unique().to_pylist()) - {None, ""}
        if graphs and graphs.isdisjoint(self.feed.streams):
            raise DataError(
                "no graph is an event",
                source=source,
                hint=f"give each a triple with {log.timestamp} in the default graph, "
                "or name another predicate with --timestamp",
            )
        yield from self.apply([quads])

    def _check_follow(self, log: ChangeLog) -> None:
        """Reject quads with events that grow: the time of an event may be anywhere in the file."""
        if not (log.follow and self.feed.streams) or log.path == STANDARD_INPUT:
            return
        if find_format(log.path).family == "lines":
            raise GraphtideError(
                f"{log.path}: events of a file that grows are read from change logs",
                hint="write RDF Patch (.rdfp): `H time 17 .`, then `A <s> <p> <o> <stream> .`",
            )
