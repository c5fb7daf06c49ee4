"""CellRule: one rule in one cell. The matcher is that of the in-process engine."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from graphtide.engine.runtime import TransactionTimes
from graphtide.kernel.batch import DIFF, TX
from graphtide.kernel.counts import COUNT_BEFORE, DELTA_VALUES
from graphtide.rules.kernel.layout import END, ORDER, SINCE
from graphtide.rules.kernel.layout import START as BEGIN
from graphtide.rules.matching.matcher import Matcher
from graphtide.rules.matching.memory import FactMemory
from graphtide.spark.delta_table import value_ids
from graphtide.spark.frontier import START
from graphtide.spark.happened import RETRACTED, event_name, event_time, from_term
from graphtide.spark.react_keys import key_cells
from graphtide.spark.reaction import FIRED, LAST, MOST_TYPES, TO_FACTS, TO_RULE
from graphtide.spark.retention import retention
from graphtide.spark.schemas import DELTAS, table_of
from graphtide.spark.text_ids import TextIds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from graphtide.engine.watch import Watch
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rules.matching.types import Matches
    from graphtide.spark.reaction import Reaction


FACTS, EVENTS, RETRACTIONS = 0, 1, 2
"""Kinds of rows."""


class FactFeed:
    """Stands in for the standing query of a rule's facts: its rows come from another stage."""

    def __init__(self, variables: Sequence[str]) -> None:
        self.variables = list(variables)
        self._waiting: list[tuple[Ints, TransactionTimes]] = []

    def put(self, net: Ints, first: int) -> None:
        """Rows that came and went, with the number of the first transaction."""
        self._waiting.append((net, TransactionTimes((), (), first)))

    def drain(self) -> list[tuple[Ints, TransactionTimes]]:
        """The rows since last asked."""
        found, self._waiting = self._waiting, []
        return found


class CellRule:
    """A rule's matcher, fed with the facts and events of the keys that belong to a cell."""

    def __init__(self, reaction: Reaction, number: int, cell: int, terms: TermDictionary) -> None:
        self._rule = rule = reaction.rules[number]
        self._number, self._cell, self._cells = number, cell, reaction.cells
        self._key = reaction.rule_keys[number]
        self._terms = terms
        self._widths = {n: len(type_.parameters) for type_, n in reaction.types.items()}
        self._feed = None
        facts = None
        if rule.facts is not None:
            self._feed = FactFeed([v.name for v in rule.facts.variables])
            bound = {v for condition in rule.positive for v in condition.variables}
            shared = [v for v in rule.facts.variables if v in bound]
            alone = [v for v in rule.facts.variables if v not in bound]
            facts = FactMemory(cast("Watch", self._feed), [*shared, *alone], len(shared))
        self._matcher = Matcher(rule, facts, terms, reaction.types)
        self.variables = [v.name for v in self._matcher.shape.variables]
        self._retention = retention(rule, reaction.types)
        self._complex = [reaction.types[type_] for type_ in reaction.complex.values()]
        self._retracted = reaction.types.get(RETRACTED, -1)
        self._names: dict[int, str] = {}
        self._clock = START.time
        self._order = 0
        self._transactions = 0

    @property
    def kept(self) -> int:
        """How many events it keeps."""
        return self._matcher.retained

    def take(self, rows: pa.Table, time: int) -> Iterator[pa.Table]:
        """Take in facts and events in their order, then let time pass up to a moment."""
        types = rows["query"].to_numpy() - (TO_RULE + self._number * MOST_TYPES)
        kinds = np.where(types < 0, FACTS, np.where(types == self._retracted, RETRACTIONS, EVENTS))
        stamps = rows["time"].to_numpy()
        begins = np.ones(len(rows), np.bool_)
        begins[1:] = (kinds[1:] != kinds[:-1]) | (
            (kinds[1:] == FACTS) & (stamps[1:] != stamps[:-1])
        )
        starts = np.flatnonzero(begins).tolist()
        for begin, end in pairwise([*starts, len(rows)]):
            part = rows.slice(begin, end - begin)
            yield from self._pass(int(stamps[begin]))
            if kinds[begin] == FACTS:
                self._take_facts(part)
            elif kinds[begin] == RETRACTIONS:
                self._retract(part)
            else:
                yield from self._take_events(part, types[begin:end])
        yield from self._pass(time)

    def _pass(self, time: int) -> Iterator[pa.Table]:
        """Time goes on: what waited for nothing to happen fires."""
        if time > self._clock:
            self._clock = time
            found = self._matcher.advance(time)
            if len(found):
                yield self._fired(found, None)

    def _take_facts(self, rows: pa.Table) -> None:
        assert self._feed is not None  # noqa: S101 - only such rules are sent facts
        width = len(self._feed.variables)
        tx, diff = rows["tx"].to_numpy(), rows["diff"].to_numpy()
        net = np.zeros((len(rows), DELTA_VALUES + width), np.int32)
        net[1:, TX] = np.cumsum(tx[1:] != tx[:-1])
        net[:, DIFF] = diff
        net[:, COUNT_BEFORE] = diff < 0
        net[:, DELTA_VALUES:] = self._ids(rows, width)
        self._feed.put(net, self._transactions)
        self._transactions += int(net[-1, TX]) + 1
        self._matcher.catch_up()

    def _retract(self, rows: pa.Table) -> None:
        """Forget events, if they are here."""
        lists: Any = rows["row"].to_pylist()
        gone = {from_term(term) for (term,) in lists}
        for order in [order for order, name in self._names.items() if name in gone]:
            self._matcher.retract(order)

    def _take_events(self, rows: pa.Table, types: Longs) -> Iterator[pa.Table]:
        own = (rows["diff"].to_numpy() <= 0) | np.isin(types, self._complex)
        events, firsts = event_numbers(rows, own)
        hits: dict[int, Ints] = {}
        for type_ in np.unique(types).tolist():
            mine = np.flatnonzero(types == type_)
            ids = self._ids(rows.take(mine), self._widths[type_])
            places = events[mine].astype(np.int32)
            hits[type_] = np.column_stack([places, ids]).astype(np.int32)
        times = rows["time"].to_numpy()[firsts]
        columns = np.empty((len(firsts), 4), np.int64)
        columns[:, BEGIN] = columns[:, END] = times
        columns[:, ORDER] = np.arange(self._order, self._order + len(firsts))
        columns[:, SINCE] = self._transactions
        if self._retracted >= 0:
            self._note_names(rows.take(firsts), types[firsts], own[firsts])
        self._order += len(firsts)
        found = self._matcher.take(hits, columns)
        self._clock = max(self._clock, int(times[-1]))
        if len(found):
            yield self._fired(found, rows.take(firsts))

    def _note_names(self, rows: pa.Table, types: Longs, own: NDArray[np.bool_]) -> None:
        """Remember what events are called that may be retracted; forget the oldest."""
        longest = max(self._retention.values(), default=0)
        lines: Any = rows.to_pylist()
        for at, line in enumerate(lines):
            more = (int(types[at]), line["row"]) if own[at] else None
            name = event_name(line["time"], line["tx"], line["diff"], more)
            self._names[self._order + at] = name
        while self._names:
            oldest = next(iter(self._names))
            if event_time(self._names[oldest]) + longest >= self._clock:
                break
            del self._names[oldest]

    def _fired(self, found: Matches, events: pa.Table | None) -> pa.Table:
        """Firings: stamps, values in order of their names, when each event was."""
        variables, positive = len(self.variables), len(self._rule.positive)
        order = np.argsort(self.variables, kind="stable")
        ids = found.rows[:, 1:][:, order]
        texts = self._terms.decode_column(np.ascontiguousarray(ids).reshape(-1))
        ends = found.spans[:, 1 : 2 * positive : 2]
        orders = found.spans[:, 2 * positive :: 2]
        values = np.array(texts.to_pylist(), object).reshape(len(found), variables)
        whens = ends.astype(str).astype(object)
        if self._retracted >= 0:
            names = [self._names.get(order, "") for order in orders.reshape(-1).tolist()]
            whens = np.array(names, object).reshape(whens.shape)
        rows = [[*row, *when] for row, when in zip(values.tolist(), whens.tolist(), strict=True)]
        stamps = self._stamps(found, events)
        numbers = np.full(len(found), FIRED + self._number, np.int32)
        table = table_of(DELTAS, [numbers, *stamps, rows])
        return table.filter(pa.array(self._owned(table, variables + positive)))

    def _stamps(self, found: Matches, events: pa.Table | None) -> tuple[Longs, Longs, Longs]:
        """Time, transaction and place of the event that fires each; or of the end of its wait."""
        times = found.times.copy()
        txs, places = np.full(len(found), LAST, np.int64), np.zeros(len(found), np.int64)
        if events is not None:
            now = np.flatnonzero(found.moments % 2)
            at = found.moments[now] // 2
            for column, name in ((times, "time"), (txs, "tx"), (places, "diff")):
                column[now] = events[name].to_numpy()[at]
        return times, txs, places

    def _owned(self, table: pa.Table, width: int) -> NDArray[np.bool_]:
        """Which firings belong to this cell: an event may be here for the sake of another key."""
        names = sorted(self.variables)
        columns = [names.index(v.name) for v in self._key.variables]
        rows: Any = table["row"].combine_chunks()
        where = key_cells(rows, width, columns, self._key.home, self._cells)
        return np.asarray(where == self._cell)

    def _ids(self, rows: pa.Table, width: int) -> Ints:
        return value_ids(rows, width, self._terms)

    def needed(self, rows: pa.Table, now: int) -> NDArray[np.bool_]:
        """Which of its rows lead to what it knows: the facts of now, and events that may match."""
        query = rows["query"].to_numpy()
        facts = query == TO_FACTS + self._number
        kept = np.zeros(len(rows), np.bool_)
        if facts.any():
            at = np.flatnonzero(facts)
            kept[at] = latest_inserts(rows.take(at), len(self._feed.variables) if self._feed else 0)
        longest = max(self._retention.values(), default=0)
        for type_, ticks in (*self._retention.items(), (self._retracted, longest)):
            mine = query == TO_RULE + self._number * MOST_TYPES + type_
            kept |= mine & (rows["time"].to_numpy() + ticks >= now)
        return kept


def event_numbers(rows: pa.Table, own: NDArray[np.bool_]) -> tuple[Longs, Longs]:
    """The event of each row, and the first row of each event.

    All that one graph event matches is one event; rows that are `own` are an event each.
    """
    time, tx, place = (rows[name].to_numpy() for name in ("time", "tx", "diff"))
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = (time[1:] != time[:-1]) | (tx[1:] != tx[:-1]) | (place[1:] != place[:-1])
    begins[1:] |= own[1:] | own[:-1]
    return np.cumsum(begins) - 1, np.flatnonzero(begins)


def latest_inserts(rows: pa.Table, width: int) -> NDArray[np.bool_]:
    """Which rows are the inserts of what is there in the end."""
    ids = value_ids(rows, width, TextIds())
    found = np.zeros(len(rows), np.bool_)
    last = np.zeros(1, np.int64)
    if width:
        _, last = np.unique(ids[::-1], axis=0, return_index=True)
    found[len(rows) - 1 - last] = True
    return np.asarray(found & (rows["diff"].to_numpy() > 0))
