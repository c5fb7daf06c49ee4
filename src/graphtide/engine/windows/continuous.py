"""Continuous: a query over windows, and what it puts out at each close.

ISTREAM   the rows that came since the report before
DSTREAM   the rows that went
RSTREAM   all rows
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from graphtide.algebra.nodes import SelectQuery, Values
from graphtide.engine.windows.explain import explain_windows
from graphtide.engine.windows.report_log import ReportLog, Run
from graphtide.kernel.batch import DIFF, TX, VALUES
from graphtide.kernel.net import NET_VALUES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from graphtide.algebra.windows import WindowedQuery
    from graphtide.engine.live_graph import LiveGraph
    from graphtide.engine.watch import Watch
    from graphtide.engine.windows.report import Report
    from graphtide.engine.windows.stream import Stream
    from graphtide.engine.windows.summary import Asked
    from graphtide.kernel.batch import Longs

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
        windows: Mapping[int, tuple[Stream, Asked]],
        most: int,
    ) -> None:
        self.query = query
        self.watch = watch
        self.windows = {number: asked for number, (_, asked) in windows.items()}
        self.streams = {stream.name: stream for stream, _ in windows.values()}
        self._graph = graph
        self._reports = ReportLog(most, self.variables, graph.terms)
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
        return self._reports.last()

    def count(self) -> int:
        """How many rows the answer has, duplicates counted, whatever is put out of them."""
        return self.watch.count()

    def on_report(self, callback: Callable[[Report], object]) -> Callable[[Report], object]:
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
        self._reports.add(Run(times, np.concatenate([[0], np.cumsum(sizes)]), rows))

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
            part = np.delete(net, np.s_[VALUES:NET_VALUES], axis=1).astype(np.int64)
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


class Reevaluated(Continuous):
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
