"""Cell: one measurement, of one query over windows of one size in one way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from graphtide.datasets.queries import query_text
from graphtide.engine.windows.shape import ChangingWindow

Part = Literal["table1", "figure6", "figure7", "figure8", "figure9"]
Mode = Literal["incremental", "incremental, one by one", "re-evaluation", "pyoxigraph"]

PARTS: Final[tuple[Part, ...]] = ("table1", "figure6", "figure7", "figure8", "figure9")

RATE: Final = 10_000
"""Triples a second of the stream. A tick of the clock is one triple."""

BATCH: Final = 1_000
"""Triples between two evaluations by pyoxigraph."""

PUSH: Final = 10_000
"""Triples that are handed to a stream at once: what comes in a second."""

LEAST_MEASURED: Final = 1_000_000
"""Triples that incremental evaluation is measured with, at least."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A query of a data set over windows of so many triples, that slide by `slide` triples.

    >>> cell = Cell("table1", "lubm", "Q5", window=100_000, slide=100_000, mode="incremental")
    >>> cell.window_s, cell.before
    (10.0, 250000)
    """

    part: Part
    data: Literal["lubm", "seas"]
    query: str
    window: int
    slide: int
    mode: Mode
    event: int = 1
    least: int = LEAST_MEASURED

    @property
    def window_s(self) -> float:
        """How long the window is, in seconds."""
        return self.window / RATE

    @property
    def before(self) -> int:
        """Triples that come before those measured by re-evaluation: whole events.

        A tumbling window holds between one and two times its length: then it is in the middle.
        """
        filled = self.window * 5 // 2 if self.slide == self.window else self.window * 3 // 2
        return -(-filled // self.event) * self.event

    @property
    def next_tumble(self) -> int:
        """Where a tumbling window next lets old triples go; a sliding one always does."""
        return 3 * self.window if self.slide == self.window else 1 << 62

    @property
    def length(self) -> int:
        """Triples that incremental evaluation is measured with."""
        return max(self.before, self.least)

    @property
    def shape(self) -> ChangingWindow:
        """Which events the window holds when."""
        return ChangingWindow(self.window, self.slide)

    @property
    def text(self) -> str:
        """The query, with its window.

        >>> cell = Cell("table1", "lubm", "Q2", window=50, slide=50, mode="incremental")
        >>> "[RANGE 50 STEP 50]" in cell.text
        True
        """
        plain = self.plain
        head, _, rest = plain.partition("SELECT")
        variables, _, body = rest.partition("WHERE")
        window = f"FROM NAMED WINDOW <ex:w> ON <ex:s> [RANGE {self.window} STEP {self.slide}]"
        select = f"REGISTER ISTREAM <ex:q> AS SELECT{variables}{window}"
        return f"{head}{select} WHERE {{ WINDOW <ex:w> {body} }}"

    @property
    def plain(self) -> str:
        """The query without a window."""
        return query_text(self.data, self.query)

    def __str__(self) -> str:
        events = f", events of {self.event}" if self.event > 1 else ""
        return f"{self.part} {self.query}, {self.window:,} triples{events}, {self.mode}"
