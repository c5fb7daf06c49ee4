"""Rules: the rules of a program in one partition, on the facts and events that were sent to it."""

from __future__ import annotations

from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from graphtide.engine.results import TransactionTimes
from graphtide.kernel.batch import DIFF, TX, Ints, Longs
from graphtide.kernel.counts import COUNT_BEFORE, DELTA_VALUES
from graphtide.rdf.dictionary import TermDictionary
from graphtide.rules.expiry import closed, distances_of, end_distances, retentions
from graphtide.rules.kernel.layout import END, ORDER, SINCE
from graphtide.rules.kernel.layout import START as BEGIN
from graphtide.rules.matching.matcher import Matcher
from graphtide.rules.matching.memory import FactMemory
from graphtide.spark.partition import program
from graphtide.spark.partition.grids import key_partitions
from graphtide.spark.stages.events import event_numbers, take_messages
from graphtide.spark.state import messages as msg
from graphtide.spark.state.frontier import START

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from graphtide.engine.watch import Query
    from graphtide.rules.matching.types import Matches
    from graphtide.rules.model import EventType, Rule
    from graphtide.spark.job import JobSpec
    from graphtide.spark.state.cache import PartitionState


FACTS, EVENTS, RETRACTIONS = 0, 1, 2
"""Kinds of rows that a rule takes."""

KINDS = (msg.MessageKind.FACT, msg.MessageKind.RULE_EVENT)
"""The messages that rules take."""


def rules_batch(job: JobSpec, state: PartitionState, batch: msg.StageInput) -> msg.StageOutput:
    """Give the rules of a partition their facts and events; the firings."""
    spec = job.program
    assert spec is not None  # noqa: S101 - only programs have this stage
    messages = take_messages(state, batch, KINDS, lambda: RulesPartition(spec, state.partition))
    return msg.StageOutput(
        [msg.Sent(state.partition, messages)] if len(messages) else [], batch.frontier
    )


class RulesPartition:
    """All rules of a program in one partition; each sees the messages that are addressed to it.

    The state of the rules follows from the facts that hold, with the transaction since when, and
    from the events that are young enough to be needed. So a snapshot has just these messages.
    """

    def __init__(self, spec: program.ProgramSpec, partition: int) -> None:
        self._terms = TermDictionary()
        numbers = range(len(spec.rules))
        self.rules = [PartitionRule(spec, n, partition, self._terms) for n in numbers]
        self._rows: list[pa.Table] = []
        self._now = START.time
        self.log_rows = 0
        self.live_rows = 0

    @property
    def terms(self) -> int:
        """How many terms it knows."""
        return len(self._terms)

    def first(self) -> pa.Table:
        """Nothing: all messages come from other stages."""
        return msg.empty(msg.MESSAGES)

    def apply(self, rows: pa.Table, time: int) -> pa.Table:
        """Take messages in, in their order, then let time pass; the firings."""
        self.log_rows += len(rows)
        self._rows.append(rows)
        self._now = max(self._now, time)
        ids = rows["id"].to_numpy()
        parts = [msg.empty(msg.MESSAGES)]
        for number, rule in enumerate(self.rules):
            parts += rule.take(rows.take(np.flatnonzero(ids == number)), time)
        return pa.concat_tables(parts)

    def replay(self, rows: pa.Table, time: int) -> None:
        """Take messages in whose firings were emitted before."""
        self.apply(rows, time)

    @property
    def retained(self) -> int:
        """How many events the rules retain."""
        return sum(rule.retained for rule in self.rules)

    def snapshot(self) -> pa.Table:
        """The facts that hold and the events that may be needed, in the order they came in."""
        rows = pa.concat_tables([msg.empty(msg.MESSAGES), *self._rows]).combine_chunks()
        ids = rows["id"].to_numpy()
        needed = np.zeros(len(rows), np.bool_)
        for number, rule in enumerate(self.rules):
            mine = np.flatnonzero(ids == number)
            needed[mine] = rule.needed(rows.take(mine), self._now)
        left = rows.filter(pa.array(needed))
        self._rows = [left]
        self.log_rows = self.live_rows = len(left)
        return left


class FactFeed:
    """Stands in for the query of a rule's facts: its rows come from another stage."""

    def __init__(self, variables: Sequence[str]) -> None:
        self.variables = list(variables)
        self._waiting: list[tuple[Ints, TransactionTimes]] = []

    def put(self, net: Ints, first: int) -> None:
        """Add rows, with the index of their first transaction."""
        self._waiting.append((net, TransactionTimes((), (), first)))

    def drain(self) -> list[tuple[Ints, TransactionTimes]]:
        """The rows since the last call."""
        found, self._waiting = self._waiting, []
        return found


class PartitionRule:
    """A rule with the matcher of the in-process engine, on the keys that belong to a partition."""

    def __init__(
        self, spec: program.ProgramSpec, number: int, partition: int, terms: TermDictionary
    ) -> None:
        self._rule = rule = spec.rules[number]
        self._number, self._partition, self._partitions = number, partition, spec.partitions
        self._key = spec.rule_keys[number]
        self._terms = terms
        self._widths = {n: len(type_.parameters) for type_, n in spec.types.items()}
        self._feed = None
        facts = None
        if rule.facts is not None:
            self._feed = FactFeed([v.name for v in rule.facts.variables])
            bound = {v for condition in rule.positive for v in condition.variables}
            shared = [v for v in rule.facts.variables if v in bound]
            alone = [v for v in rule.facts.variables if v not in bound]
            facts = FactMemory(cast("Query", self._feed), [*shared, *alone], len(shared))
        self._matcher = Matcher(rule, facts, terms, spec.types, spec.longest)
        self.variables = [v.name for v in self._matcher.shape.variables]
        self._retention = retention(rule, spec.types, spec.longest)
        self._complex = [spec.types[type_] for type_ in spec.complex.values()]
        self._retracted = spec.types.get(program.RETRACTED, -1)
        self._names: dict[int, str] = {}
        self._clock = START.time
        self._order = 0
        self._transactions = 0

    @property
    def retained(self) -> int:
        """How many events it retains."""
        return self._matcher.retained

    def take(self, rows: pa.Table, time: int) -> Iterator[pa.Table]:
        """Take facts and events in, in their order, then let time pass; the firings."""
        types, stamps = rows["type"].to_numpy(), rows["time"].to_numpy()
        facts = rows["kind"].to_numpy() == msg.MessageKind.FACT
        kinds = np.where(facts, FACTS, np.where(types == self._retracted, RETRACTIONS, EVENTS))
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
        """Let time pass: matches that waited for the absence of an event fire."""
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
        """Retract events, if they are here."""
        lists: Any = rows["values"].to_pylist()
        retracted = {program.name_of_term(term) for (term,) in lists}
        for order in [order for order, name in self._names.items() if name in retracted]:
            self._matcher.retract(order)

    def _take_events(self, rows: pa.Table, types: Longs) -> Iterator[pa.Table]:
        own = (rows["seq"].to_numpy() <= 0) | np.isin(types, self._complex)
        events, firsts = event_numbers(rows, own)
        hits: dict[int, Ints] = {}
        for type_ in np.unique(types).tolist():
            mine = np.flatnonzero(types == type_)
            ids = self._ids(rows.take(mine), self._widths[type_])
            hits[type_] = np.column_stack([events[mine], ids]).astype(np.int32)
        times = rows["time"].to_numpy()[firsts]
        columns = np.empty((len(firsts), 4), np.int64)
        columns[:, END] = times
        columns[:, BEGIN] = times - rows["diff"].to_numpy()[firsts]
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
        """Store the names of events that may be retracted; evict the oldest."""
        longest = max(self._retention.values(), default=0)
        lines: Any = rows.to_pylist()
        for at, line in enumerate(lines):
            more = (int(types[at]), line["values"]) if own[at] else None
            times = program.event_times(line["time"] - line["diff"], line["time"])
            name = program.event_name(times, line["tx"], line["seq"], more)
            self._names[self._order + at] = name
        while self._names:
            oldest = next(iter(self._names))
            if program.event_span(self._names[oldest]).end + longest >= self._clock:
                break
            del self._names[oldest]

    def _fired(self, found: Matches, events: pa.Table | None) -> pa.Table:
        """Firings: values in the order of their names, and names or times of their events."""
        variables, positive = len(self.variables), len(self._rule.positive)
        order = np.argsort(self.variables, kind="stable")
        ids = found.rows[:, 1:][:, order]
        texts = self._terms.decode_column(np.ascontiguousarray(ids).reshape(-1))
        spans = found.spans[:, : 2 * positive].reshape(len(found), positive, 2)
        orders = found.spans[:, 2 * positive :: 2]
        values = np.array(texts.to_pylist(), object).reshape(len(found), variables)
        times = [program.event_times(*span) for span in spans.reshape(-1, 2).tolist()]
        events_of = np.array(times, object).reshape(len(found), positive)
        if self._retracted >= 0:
            names = [self._names.get(order, "") for order in orders.reshape(-1).tolist()]
            events_of = np.array(names, object).reshape(events_of.shape)
        table = msg.firing_messages(
            self._number, self._stamps(found, events), values.tolist(), events_of.tolist()
        )
        return table.filter(pa.array(self._owned(table, variables)))

    def _stamps(self, found: Matches, events: pa.Table | None) -> tuple[Longs, Longs, Longs]:
        """Time, tx and seq of the event that fires each; or of the end of its wait."""
        times = found.times.copy()
        txs, seqs = np.full(len(found), msg.AFTER_ALL, np.int64), np.zeros(len(found), np.int64)
        if events is not None:
            now = np.flatnonzero(found.moments % 2)
            at = found.moments[now] // 2
            for column, name in ((times, "time"), (txs, "tx"), (seqs, "seq")):
                column[now] = events[name].to_numpy()[at]
        return times, txs, seqs

    def _owned(self, table: pa.Table, width: int) -> NDArray[np.bool_]:
        """Which firings belong to this partition: an event may be here for another key."""
        names = sorted(self.variables)
        columns = [names.index(v.name) for v in self._key.variables]
        rows: Any = table["values"].combine_chunks()
        where = key_partitions(rows, width, columns, self._key.home, self._partitions)
        return np.asarray(where == self._partition)

    def _ids(self, rows: pa.Table, width: int) -> Ints:
        return msg.value_ids(rows, width, self._terms)

    def needed(self, rows: pa.Table, now: int) -> NDArray[np.bool_]:
        """Which of its rows lead to its state: the facts of now, and events that may match."""
        facts = rows["kind"].to_numpy() == msg.MessageKind.FACT
        needed = np.zeros(len(rows), np.bool_)
        if facts.any():
            at = np.flatnonzero(facts)
            needed[at] = latest_inserts(
                rows.take(at), len(self._feed.variables) if self._feed else 0
            )
        longest = max(self._retention.values(), default=0)
        for type_, ticks in (*self._retention.items(), (self._retracted, longest)):
            mine = ~facts & (rows["type"].to_numpy() == type_)
            needed |= mine & (rows["time"].to_numpy() + ticks >= now)
        return needed


def latest_inserts(rows: pa.Table, width: int) -> NDArray[np.bool_]:
    """Which rows are the inserts of what is there in the end."""
    ids = msg.value_ids(rows, width, msg.TextIds())
    found = np.zeros(len(rows), np.bool_)
    last = np.zeros(1, np.int64)
    if width:
        _, last = np.unique(ids[::-1], axis=0, return_index=True)
    found[len(rows) - 1 - last] = True
    return np.asarray(found & (rows["diff"].to_numpy() > 0))


def retention(rule: Rule, types: Mapping[EventType, int], lasting: int = 0) -> dict[int, float]:
    """By event type, for how many ticks its events are needed to rebuild the state of a rule.

    That is as long as the rule retains them, and longer where events must not happen: a match that
    waits is found again from its events, and one that was spoilt has to be spoilt again. Types that
    are never needed are missing.
    """
    names = [condition.name for condition in rule.events]
    ticks = {each.event: each.ticks for each in retentions(names, rule.test, lasting)}
    positive = {
        c.name: max(_known(ticks[c.name]), _waits(rule, c.name, lasting)) for c in rule.positive
    }
    longest = max(positive.values(), default=-inf)
    found: dict[int, float] = {}
    for condition in rule.events:
        needed = positive.get(condition.name, -inf)
        if condition.negated:
            needed = max(0, _known(ticks[condition.name])) + longest
        # Waits are those of instants: each test of the way may be met as much later, and earlier.
        needed += 2 * lasting * len(names)
        if needed >= 0:
            type_ = types[condition.type]
            found[type_] = max(found.get(type_, 0), needed)
    return found


def _known(ticks: float | None) -> float:
    return -inf if ticks is None else ticks


def _waits(rule: Rule, event: str, lasting: int) -> float:
    """How long a match may wait after one of its events for others that must not come."""
    names = [condition.name for condition in rule.events]
    distances = end_distances(names, rule.test, lasting) if lasting else closed(names, rule.test)
    bounds = distances_of(rule.test)
    return max(
        (
            distances[event, other.name].high + bounds[other.name, denied.name].high
            for other in rule.positive
            for denied in rule.negative
            if (other.name, denied.name) in bounds
        ),
        default=-inf,
    )
