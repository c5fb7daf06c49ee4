"""Continuous: a query over windows, and what it puts out at each close.

ISTREAM   the rows that came since the report before
DSTREAM   the rows that went
RSTREAM   all rows
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

from graphtide.algebra.nodes import SelectQuery, Values
from graphtide.engine.windows.report import Report
from graphtide.kernel.batch import DIFF, VALUES
from graphtide.kernel.net import NET_VALUES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from graphtide.algebra.windows import WindowedQuery
    from graphtide.engine.live_graph import LiveGraph
    from graphtide.engine.watch import Watch
    from graphtide.engine.windows.stream import Stream

Row = tuple[int, ...]


class Continuous:
    """A registered windowed query. Made by `LiveGraph.register`; ends with `LiveGraph.unwatch`."""

    one_by_one = False
    """Whether it has to see the graph as of every single report."""

    def __init__(
        self,
        graph: LiveGraph,
        query: WindowedQuery,
        watch: Watch,
        windows: Mapping[int, Stream],
        most: int,
    ) -> None:
        self.query = query
        self.watch = watch
        self.windows = tuple(windows)
        self.streams = {stream.name: stream for stream in windows.values()}
        self._graph = graph
        self._reports: deque[Report] = deque(maxlen=most)
        self._pending: Counter[Row] = Counter()
        self._answer: Counter[Row] = Counter()
        self._callbacks: list[Callable[[Report], object]] = []

    @property
    def name(self) -> str:
        """The query's name."""
        return self.watch.name

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns of a report."""
        return self.watch.variables

    def reports(self) -> list[Report]:
        """The reports so far, oldest first; of many, the last ones."""
        return list(self._reports)

    def last(self) -> Report | None:
        """The last report, if there was one."""
        return self._reports[-1] if self._reports else None

    def on_report(self, callback: Callable[[Report], object]) -> Callable[[Report], object]:
        """Call back with each report. Usable as a decorator."""
        self._callbacks.append(callback)
        return callback

    def explain(self) -> str:
        """The windows, what is put out, and the plan."""
        clauses = [
            f"window {w.iri} on {w.stream}: {w.kind.lower()} {w.length}, step {w.step}"
            for w in self.query.windows
        ]
        return "\n".join([f"output {self.query.output}", *clauses, self.watch.explain()])

    def take(self, closes: Sequence[tuple[int, int]]) -> None:
        """Report for closes, given as transaction numbers and times (called by the graph)."""
        changes = self._changes()
        change = next(changes, None)
        for number, time in closes:
            while change is not None and change[0] <= number:
                self._pending[change[2]] += change[1]
                change = next(changes, None)
            self._report(time)
        while change is not None:
            self._pending[change[2]] += change[1]
            change = next(changes, None)

    def _changes(self) -> Iterator[tuple[int, int, Row]]:
        """The rows of the answer that changed since last asked: transaction number, diff, row."""
        for net, stamps in self.watch.drain():
            for line in net.tolist():
                yield stamps.first + line[0], line[1], tuple(line[NET_VALUES:])

    def _report(self, time: int) -> None:
        rows = [row for row, count in self._put_out().items() for _ in range(count)]
        report = Report(time, rows, self.variables, self._graph.terms)
        self._reports.append(report)
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


class Reevaluated(Continuous):
    """A windowed query whose whole answer is worked out at every report."""

    one_by_one = True

    def __init__(
        self,
        graph: LiveGraph,
        query: WindowedQuery,
        select: SelectQuery,
        name: str,
        windows: Mapping[int, Stream],
        most: int,
    ) -> None:
        nothing = graph.watch(_NOTHING, name=name)  # holds the name, and costs nothing
        super().__init__(graph, query, nothing, windows, most)
        self._select = select
        self._before: Counter[Row] = Counter()

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns of a report."""
        return tuple(v.name for v in self._select.variables)

    def explain(self) -> str:
        """What is put out; there is no standing plan."""
        return f"output {self.query.output}\nevaluated anew at every report"

    def take(self, closes: Sequence[tuple[int, int]]) -> None:
        """Report for a close: the difference from the answer before."""
        for _, time in closes:
            rows = self._graph.rows_once(self._select)
            now: Counter[Row] = Counter()
            for line in rows.tolist():
                now[tuple(line[VALUES:])] += line[DIFF]
            self._pending = Counter(now)
            self._pending.subtract(self._before)
            self._before = now
            self._report(time)


_NOTHING = SelectQuery((), Values((), ()))
