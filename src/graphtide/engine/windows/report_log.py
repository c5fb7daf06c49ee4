"""ReportLog: the last reports of a query, kept as columns: most are never looked at."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphtide.engine.windows.report import Report

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rdf.dictionary import TermDictionary


class Run(NamedTuple):
    """Reports one after the other: their times, where the rows of each begin, and all rows."""

    times: Longs
    starts: Longs
    rows: Ints

    def last(self, count: int) -> Run:
        """The last so many of them."""
        if count >= len(self.times):
            return self
        starts = self.starts[-count - 1 :]
        rows = self.rows[starts[0] :].copy()
        return Run(self.times[-count:].copy(), starts - starts[0], rows)


class ReportLog:
    """Up to `most` reports, oldest first; of more, the last ones.

    >>> from graphtide.rdf import TermDictionary
    >>> log = ReportLog(2, ("x",), TermDictionary())
    >>> rows = np.array([[7], [8], [9]], np.int32)
    >>> log.add(Run(np.array([1, 2, 3]), np.array([0, 1, 1, 3]), rows))
    >>> list(log)
    [<Report at 2: 0 rows>, <Report at 3: 2 rows>]
    """

    def __init__(self, most: int, variables: tuple[str, ...], terms: TermDictionary) -> None:
        self._most = most
        self._variables = variables
        self._terms = terms
        self._runs: deque[Run] = deque()
        self._held = 0

    def add(self, run: Run) -> None:
        """Keep some reports, and let the oldest go."""
        run = run.last(self._most)
        self._runs.append(run)
        self._held += len(run.times)
        while self._held - len(self._runs[0].times) >= self._most:
            self._held -= len(self._runs.popleft().times)

    def add_one(self, time: int, rows: list[tuple[int, ...]]) -> Report:
        """Keep one report; the report."""
        listed = np.array(rows, np.int32).reshape(len(rows), len(self._variables))
        self.add(Run(np.array([time]), np.array([0, len(rows)]), listed))
        return Report(time, rows, self._variables, self._terms)

    def __len__(self) -> int:
        return min(self._held, self._most)

    def __iter__(self) -> Iterator[Report]:
        surplus = self._held - len(self)
        for run in list(self._runs):
            for place in range(surplus, len(run.times)):
                yield self._report(run, place)
            surplus = 0

    def last(self) -> Report | None:
        """The last report, if there was one."""
        return self._report(self._runs[-1], -1) if self._runs else None

    def _report(self, run: Run, place: int) -> Report:
        place %= len(run.times)
        rows = run.rows[run.starts[place] : run.starts[place + 1]]
        found = [tuple(row) for row in rows.tolist()]
        return Report(int(run.times[place]), found, self._variables, self._terms)
