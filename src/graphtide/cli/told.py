"""What queries tell of, with their names: delta rows, reports over windows; and tallies of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphtide.algebra.windows import Output
    from graphtide.engine.watch import DeltaRow


@dataclass(frozen=True, slots=True)
class NamedRow:
    """A delta row, and the name of the query whose answer it changes.

    A row of a report over windows has the report's time, and as `tx` its number among those of this
    time; `output` says what the query puts out.
    """

    query: str
    row: DeltaRow
    output: Output | None = None


@dataclass(frozen=True, slots=True)
class NamedReport:
    """A query over windows reports; the rows of the report follow."""

    query: str
    time: int


Told = NamedRow | NamedReport


@dataclass(slots=True)
class Tally:
    """What a query's deltas have added up to."""

    answer: int = 0
    more: int = 0
    fewer: int = 0

    def add(self, diff: int) -> None:
        """Count a delta row."""
        self.answer += diff
        self.more += max(diff, 0)
        self.fewer += max(-diff, 0)


@dataclass(slots=True)
class ReportTally:
    """How many reports there were, and how many rows in all of them."""

    reports: int = 0
    rows: int = 0
