"""Reports of queries over windows, kept as they come until somebody takes them."""

from __future__ import annotations

from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from graphtide.cli.told import NamedReport, NamedRow, ReportTally
from graphtide.engine.watch import DeltaRow

if TYPE_CHECKING:
    from graphtide.cli.told import Told
    from graphtide.streams.query import WindowQuery, WindowResult


class Heard:
    """What one query over windows reports.

    >>> from graphtide import LiveGraph
    >>> graph = LiveGraph()
    >>> window = "FROM NAMED WINDOW <ex:w> ON <ex:s> [ELEMENTS 1]"
    >>> text = f"SELECT * {window} WHERE {{ WINDOW <ex:w> {{ ?a <ex:p> ?b }} }}"
    >>> heard = Heard(graph.register(text, name="q"))
    >>> graph.stream("<ex:s>").push([("<ex:a>", "<ex:p>", 1)], time=5)
    >>> graph.advance(6)
    >>> report, row = heard.take()
    >>> report, row.row.time, heard.tally.rows
    (NamedReport(query='q', time=5), 5, 1)
    """

    def __init__(self, query: WindowQuery) -> None:
        self.tally = ReportTally()
        self._told: list[Told] = []
        self._last: tuple[int, int] | None = None
        query.on_report(partial(self._hear, query))

    def _hear(self, query: WindowQuery, report: WindowResult) -> None:
        time, output = report.time, query.query.output
        same = self._last is not None and self._last[0] == time
        number = self._last[1] + 1 if self._last is not None and same else 0
        self._last = time, number
        self.tally.reports += 1
        self.tally.rows += len(report)
        self._told.append(NamedReport(query.name, time))
        sign = -1 if output == "DSTREAM" else 1
        for row, copies in groupby(report):  # equal rows stand together
            found = DeltaRow(time, number, sign * sum(1 for _ in copies), row)
            self._told.append(NamedRow(query.name, found, output))

    def take(self) -> list[Told]:
        """The reports since last asked: each, then its rows."""
        told, self._told = self._told, []
        return told
