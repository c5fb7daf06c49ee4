"""Conditions on NOW(), the graph's clock: rows that come and go when their time has come.

Between two turning points of its comparisons a condition does not change. So for each row the times
at which its outcome turns are known in advance, and nothing has to be done until the first of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Protocol

from graphtide.algebra.clock import comparisons
from graphtide.engine.dataflow.conditions import argument_columns
from graphtide.errors import ExpressionError, UnsupportedError
from graphtide.functions import datetimes
from graphtide.functions.evaluate import compile_expression
from graphtide.functions.values import effective_boolean
from graphtide.kernel.batch import DIFF, TX, VALUES, Ints, Longs, make_batch
from graphtide.rdf.holders import flat_ids

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.algebra.expressions import Expression
    from graphtide.algebra.variables import Schema
    from graphtide.functions.logic import Row as TermRow
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.terms import Term

Row = tuple[int, ...]


class TimeSource(Protocol):
    """Whatever has the time."""

    clock: int


@dataclass(slots=True)
class Now:
    """The time as operators see it; without a clock, there is none."""

    source: TimeSource | None = None
    tick_ms: int = 1000

    @property
    def tick(self) -> int:
        """The current time in ticks."""
        if self.source is None:
            raise UnsupportedError(
                "NOW cannot be evaluated here: there is no clock",
                hint="watch the query on a LiveGraph",
            )
        return self.source.clock


@dataclass(slots=True)
class TimedRows:
    """The rows with the same arguments: whether they are in the answer, and when that turns."""

    holds: bool
    turns: list[int]
    rows: Counter[Row] = field(default_factory=Counter)


class DueRows:
    """d(σ(R)) = σ(dR) at the current time; and when the clock moves, the rows that turn."""

    def __init__(
        self, condition: Expression, schema: Schema, terms: TermDictionary, now: Now
    ) -> None:
        self._now = now
        self._terms = terms
        self._width = len(schema)
        self._arguments = argument_columns(condition, schema)
        self._moment: Term = datetimes.moment_of(0, now.tick_ms)
        self._value = compile_expression(condition, None, {"NOW": lambda: self._moment})
        self._sides = [
            (compile_expression(other), ahead) for other, ahead in comparisons(condition)
        ]
        self._due: dict[Row, TimedRows] = {}
        self._heap: list[tuple[int, Row]] = []

    def step(self, batch: Ints) -> Ints:
        """The changed rows for which the condition holds now."""
        out: list[Row] = []
        for line in batch.tolist():
            row = tuple(line[VALUES:])
            key = tuple(line[at] for _, at in self._arguments)
            due = self._due.get(key)
            if due is None:
                due = self._due[key] = self._predicted(key)
                self._wait(key, due)
            due.rows[row] += line[DIFF]
            if not due.rows[row]:
                del due.rows[row]
                if not due.rows:
                    del self._due[key]
            if due.holds:
                out.append((line[TX], line[DIFF], *row))
        return make_batch(out, self._width)

    def next_turn(self) -> int | None:
        """The next time at which rows turn."""
        while self._heap:
            tick, key = self._heap[0]
            due = self._due.get(key)
            if due is not None and due.turns and due.turns[0] == tick:
                return tick
            heappop(self._heap)  # its rows are gone
        return None

    def turn(self) -> Ints:
        """The rows that come and go by the current time."""
        out: list[Row] = []
        while (tick := self.next_turn()) is not None and tick <= self._now.tick:
            key = heappop(self._heap)[1]
            due = self._due[key]
            del due.turns[0]
            due.holds = not due.holds
            sign = 1 if due.holds else -1
            out += [(0, sign * count, *row) for row, count in due.rows.items()]
            self._wait(key, due)
        return make_batch(out, self._width)

    def _wait(self, key: Row, due: TimedRows) -> None:
        if due.turns:
            heappush(self._heap, (due.turns[0], key))

    def _predicted(self, key: Row) -> TimedRows:
        """Whether the condition holds now for some arguments, and when that turns."""
        row: TermRow = {
            var: self._terms.decode(term)
            for (var, _), term in zip(self._arguments, key, strict=True)
            if term
        }
        now = self._now.tick
        points = sorted({tick for tick in self._turning_points(row) if tick > now})
        outcomes = [self._holds(row, tick) for tick in (now, *points)]
        turns = [t for t, a, b in zip(points, outcomes, outcomes[1:], strict=False) if a != b]
        return TimedRows(outcomes[0], turns)

    def _turning_points(self, row: TermRow) -> Iterator[int]:
        for other, ahead in self._sides:
            try:
                yield from datetimes.turning_ticks(other(row), ahead, self._now.tick_ms)
            except ExpressionError:  # then the comparison is an error at all times
                continue

    def _holds(self, row: TermRow, tick: int) -> bool:
        self._moment = datetimes.moment_of(tick, self._now.tick_ms)
        try:
            return effective_boolean(self._value(row))
        except ExpressionError:
            return False

    def held_ids(self) -> Iterator[Longs]:
        """The ids of all rows."""
        yield flat_ids(row for due in self._due.values() for row in due.rows)

    def sizes(self) -> dict[str, int]:
        """Rows held."""
        return {"rows": sum(len(due.rows) for due in self._due.values())}

    @property
    def nbytes(self) -> int:
        """Bytes held, about: rows are Python objects."""
        return self.sizes()["rows"] * 400
