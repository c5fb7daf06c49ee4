"""Continuous: a query over windows, and what it puts out at each close.

ISTREAM   the rows that came since the report before
DSTREAM   the rows that went
RSTREAM   all rows
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

from graphtide.engine.windows.report import Report
from graphtide.kernel.net import NET_VALUES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from graphtide.algebra.windows import WindowedQuery
    from graphtide.engine.live_graph import LiveGraph
    from graphtide.engine.watch import Watch
    from graphtide.engine.windows.stream import Stream

Row = tuple[int, ...]


class Continuous:
    """A registered windowed query. Made by `LiveGraph.watch`; ends with `LiveGraph.unwatch`."""

    def __init__(
        self,
        graph: LiveGraph,
        query: WindowedQuery,
        watch: Watch,
        windows: tuple[int, ...],
        streams: Mapping[str, Stream],
        most: int,
    ) -> None:
        self.query = query
        self.watch = watch
        self.windows = windows
        self.streams = streams
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
