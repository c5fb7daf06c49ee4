"""WindowQuery: a query over windows, and what it puts out at each close.

ISTREAM   the rows that came since the report before
DSTREAM   the rows that went
RSTREAM   all rows
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphtide.algebra.nodes import SelectQuery, Values
from graphtide.kernel.batch import DIFF, TX, VALUES
from graphtide.kernel.counts import DELTA_VALUES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from graphtide.algebra.windows import WindowClause, WindowedQuery
    from graphtide.engine.live_graph import LiveGraph
    from graphtide.engine.watch import Watch
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.terms import Term
    from graphtide.streams.pruning import Asked
    from graphtide.streams.stream import Stream


# --- WindowResult: what a windowed query puts out when a window closes.


class WindowResult:
    """The rows of one report; equal rows are repeated."""

    __slots__ = ("_rows", "_terms", "_variables", "time")

    def __init__(
        self,
        time: int,
        rows: Sequence[tuple[int, ...]],
        variables: tuple[str, ...],
        terms: TermDictionary,
    ) -> None:
        self.time = time
        self._rows = rows
        self._variables = variables
        self._terms = terms

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[dict[str, Term | None]]:
        decode = self._terms.decode
        for row in self._rows:
            yield {
                name: decode(i) if i else None for name, i in zip(self._variables, row, strict=True)
            }

    def __str__(self) -> str:
        lines = [" ".join(f"{name}={term}" for name, term in row.items()) for row in self]
        return "\n".join([f"at {self.time}", *(f"  {line}" for line in lines)])

    def __repr__(self) -> str:
        return f"<Report at {self.time}: {len(self)} rows>"


# --- ResultLog: the last reports of a query, kept as columns: most are never looked at.


class ResultRun(NamedTuple):
    """Reports one after the other: their times, where the rows of each begin, and all rows."""

    times: Longs
    starts: Longs
    rows: Ints

    def last(self, count: int) -> ResultRun:
        """The last so many of them."""
        if count >= len(self.times):
            return self
        starts = self.starts[-count - 1 :]
        rows = self.rows[starts[0] :].copy()
        return ResultRun(self.times[-count:].copy(), starts - starts[0], rows)


class ResultLog:
    """Up to `most` reports, oldest first; of more, the last ones.

    >>> from graphtide.rdf.dictionary import TermDictionary
    >>> log = ResultLog(2, ("x",), TermDictionary())
    >>> rows = np.array([[7], [8], [9]], np.int32)
    >>> log.add(ResultRun(np.array([1, 2, 3]), np.array([0, 1, 1, 3]), rows))
    >>> list(log)
    [<Report at 2: 0 rows>, <Report at 3: 2 rows>]
    """

    def __init__(self, most: int, variables: tuple[str, ...], terms: TermDictionary) -> None:
        self._most = most
        self._variables = variables
        self._terms = terms
        self._runs: deque[ResultRun] = deque()
        self._held = 0

    def add(self, run: ResultRun) -> None:
        """Keep some reports, and let the oldest go."""
        run = run.last(self._most)
        self._runs.append(run)
        self._held += len(run.times)
        while self._held - len(self._runs[0].times) >= self._most:
            self._held -= len(self._runs.popleft().times)

    def add_one(self, time: int, rows: list[tuple[int, ...]]) -> WindowResult:
        """Keep one report; the report."""
        listed = np.array(rows, np.int32).reshape(len(rows), len(self._variables))
        self.add(ResultRun(np.array([time]), np.array([0, len(rows)]), listed))
        return WindowResult(time, rows, self._variables, self._terms)

    def __len__(self) -> int:
        return min(self._held, self._most)

    def __iter__(self) -> Iterator[WindowResult]:
        surplus = self._held - len(self)
        for run in list(self._runs):
            for place in range(surplus, len(run.times)):
                yield self._report(run, place)
            surplus = 0

    def last(self) -> WindowResult | None:
        """The last report, if there was one."""
        return self._report(self._runs[-1], -1) if self._runs else None

    def _report(self, run: ResultRun, place: int) -> WindowResult:
        place %= len(run.times)
        rows = run.rows[run.starts[place] : run.starts[place + 1]]
        found = [tuple(row) for row in rows.tolist()]
        return WindowResult(int(run.times[place]), found, self._variables, self._terms)


# --- Explain: what a query over windows puts out and what it looks at, in words.

SECOND = 1000


def explain_windows(query: WindowedQuery) -> str:
    """What is put out, and a line for each window.

    >>> from graphtide.lang.sparql.parse import parse_standing
    >>> window = "FROM NAMED WINDOW <ex:w> ON <ex:s> [RANGE PT10S STEP PT0.5S]"
    >>> text = f"SELECT ?a {window} WHERE {{ WINDOW <ex:w> {{ ?a <ex:p> ?b }} }}"
    >>> print(explain_windows(parse_standing(text)))
    output RSTREAM
    window <ex:w> on <ex:s>: range 10 s, step 500 ms
    """
    lines = [f"window {w.iri} on {w.stream}: {_extent(w)}" for w in query.windows]
    return "\n".join([f"output {query.output}", *lines])


def _extent(window: WindowClause) -> str:
    length, step = (_length(n, in_time=window.in_time) for n in (window.length, window.step))
    return f"{window.kind.lower()} {length}, step {step}"


def _length(number: int, *, in_time: bool) -> str:
    if not in_time:
        return str(number)
    return f"{number // SECOND} s" if number % SECOND == 0 else f"{number} ms"


Row = tuple[int, ...]


class WindowQuery:
    """A registered windowed query. Made by `LiveGraph.register`; ends with `LiveGraph.unwatch`."""

    one_by_one = False
    """Whether it has to see the graph as of every single report."""

    def __init__(
        self,
        graph: LiveGraph,
        query: WindowedQuery,
        watch: Watch,
        windows: Mapping[int, tuple[Stream, Asked]],
        most: int,
    ) -> None:
        self.query = query
        self.watch = watch
        self.windows = {number: asked for number, (_, asked) in windows.items()}
        self.streams = {stream.name: stream for stream, _ in windows.values()}
        self._graph = graph
        self._reports = ResultLog(most, self.variables, graph.terms)
        self._pending: Counter[Row] = Counter()
        self._answer: Counter[Row] = Counter()
        self._callbacks: list[Callable[[WindowResult], object]] = []

    @property
    def name(self) -> str:
        """The query's name."""
        return self.watch.name

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns of a report."""
        return self.watch.variables

    def reports(self) -> list[WindowResult]:
        """The reports so far, oldest first; of many, the last ones."""
        return list(self._reports)

    def last(self) -> WindowResult | None:
        """The last report, if there was one."""
        return self._reports.last()

    def count(self) -> int:
        """How many rows the answer has, duplicates counted, whatever is put out of them."""
        return self.watch.count()

    def on_report(
        self, callback: Callable[[WindowResult], object]
    ) -> Callable[[WindowResult], object]:
        """Call back with each report. Usable as a decorator."""
        self._callbacks.append(callback)
        return callback

    def explain(self) -> str:
        """The windows, what is put out, and the plan."""
        return f"{explain_windows(self.query)}\n{self.watch.explain()}"

    def take(self, numbers: Longs, times: Longs) -> None:
        """Report for closes, given as transaction numbers and times (called by the graph)."""
        changes = self._changes()
        one_by_one = self._callbacks or self._pending or self.query.output == "RSTREAM"
        at = np.searchsorted(numbers, changes[:, TX])
        if one_by_one or not _each_reports(numbers, at, changes):
            self._take_each(numbers, times, changes)
            return
        sign = 1 if self.query.output == "ISTREAM" else -1
        counts = np.maximum(sign * changes[:, DIFF], 0)
        rows = np.repeat(changes[:, VALUES:], counts, axis=0).astype(np.int32)
        sizes = np.bincount(at, counts, minlength=len(times)).astype(np.int64)
        self._reports.add(ResultRun(times, np.concatenate([[0], np.cumsum(sizes)]), rows))

    def _take_each(self, numbers: Longs, times: Longs, changes: Longs) -> None:
        """As `take`, report by report: for callbacks, or where transactions lie between reports."""
        rows = iter(changes.tolist())
        row = next(rows, None)
        for number, time in zip(numbers.tolist(), times.tolist(), strict=True):
            while row is not None and row[TX] <= number:
                self._pending[tuple(row[VALUES:])] += row[DIFF]
                row = next(rows, None)
            self._report(time)
        while row is not None:
            self._pending[tuple(row[VALUES:])] += row[DIFF]
            row = next(rows, None)

    def _changes(self) -> Longs:
        """The rows of the answer that changed since last asked: transaction number, diff, row."""
        parts: list[Longs] = [np.empty((0, VALUES + len(self.variables)), np.int64)]
        for net, stamps in self.watch.drain():
            part = np.delete(net, np.s_[VALUES:DELTA_VALUES], axis=1).astype(np.int64)
            part[:, TX] += stamps.first
            parts.append(part)
        return np.concatenate(parts)

    def _report(self, time: int) -> None:
        rows = [row for row, count in self._put_out().items() for _ in range(count)]
        report = self._reports.add_one(time, rows)
        for callback in self._callbacks:
            callback(report)

    def _put_out(self) -> Counter[Row]:
        pending, self._pending = self._pending, Counter()
        match self.query.output:
            case "ISTREAM":
                return +pending
            case "DSTREAM":
                return -pending
            case _:
                self._answer.update(pending)
                self._answer = +self._answer
                return self._answer


class Reevaluated(WindowQuery):
    """A windowed query whose whole answer is worked out at every report."""

    one_by_one = True

    def __init__(
        self,
        graph: LiveGraph,
        query: WindowedQuery,
        select: SelectQuery,
        name: str,
        windows: Mapping[int, tuple[Stream, Asked]],
        most: int,
    ) -> None:
        self._select = select
        nothing = graph.watch(_NOTHING, name=name)  # holds the name, and costs nothing
        super().__init__(graph, query, nothing, windows, most)
        self._before: Counter[Row] = Counter()

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns of a report."""
        return tuple(v.name for v in self._select.variables)

    def count(self) -> int:
        """How many rows the answer had at the last report."""
        return self._before.total()

    def explain(self) -> str:
        """What is put out; there is no standing plan."""
        return f"output {self.query.output}\nevaluated anew at every report"

    def take(self, numbers: Longs, times: Longs) -> None:  # noqa: ARG002 - all is seen anew
        """Report for a close: the difference from the answer before."""
        for time in times.tolist():
            rows = self._graph.rows_once(self._select)
            now: Counter[Row] = Counter()
            for line in rows.tolist():
                now[tuple(line[VALUES:])] += line[DIFF]
            self._pending = Counter(now)
            self._pending.subtract(self._before)
            self._before = now
            self._report(time)


def _each_reports(numbers: Longs, at: Longs, changes: Longs) -> bool:
    """Whether all changes belong to transactions with a report of their own."""
    if not len(changes):
        return True
    return bool(at[-1] < len(numbers) and (numbers[at] == changes[:, TX]).all())


_NOTHING = SelectQuery((), Values((), ()))
