"""GraphConnection and GraphEffects: how a running program follows and changes its graph.

The only module of `rules` that touches the runtime and the streams of a live graph.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

from graphtide.algebra.nodes import SelectQuery
from graphtide.engine.events import EventBatch, typed_events
from graphtide.engine.watch import DEFAULT_HISTORY, Query
from graphtide.lang.sparql.parse import parse_standing
from graphtide.rules.actions import Actions, Insertions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from graphtide.engine.ingest import Ids
    from graphtide.engine.runtime import Subscription
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rdf.terms import Term
    from graphtide.rules.agenda import Agenda
    from graphtide.rules.change_events import ChangeSource, RowChange
    from graphtide.rules.rule_set import RuleEntry
    from graphtide.rules.runtime import RuleEngine
    from graphtide.streams.registry import Streams
    from graphtide.streams.stream import Stream


class GraphConnection:
    """A live graph as rules use it: terms, clock, standing queries, transactions, streams."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._runtime = streams.runtime
        self._subscription: Subscription | None = None
        self.terms = self._runtime.terms
        self.tick_ms = self._runtime.tick_ms

    @property
    def clock(self) -> int:
        """The time of the graph."""
        return self._runtime.clock

    @property
    def transactions(self) -> int:
        """How many transactions the graph has committed."""
        return self._runtime.transactions

    @property
    def has_windows(self) -> bool:
        """Whether windowed queries are registered."""
        return self._streams.has_windows

    @property
    def exclusive(self) -> bool:
        """Whether the program is the only subscriber, and no window is open."""
        subscription = self._subscription
        return (
            subscription is not None
            and self._runtime.is_only_follower(subscription.subscriber)
            and not self._streams.has_windows
        )

    def begin_operation(self) -> None:
        """Rules run: no term is freed until `end_operation`."""
        self._runtime.reclaimer.busy += 1

    def end_operation(self) -> None:
        """Rules have run: terms may be freed now, unless that was inside another operation."""
        self._runtime.reclaimer.busy -= 1
        self._runtime.reclaimer.check()

    def subscribe(self, subscriber: GraphSubscriber) -> None:
        """Notify a subscriber of transactions, clock moves and events."""
        self._subscription = self._runtime.subscribe(subscriber)

    def unsubscribe(self) -> None:
        """Notify it no more."""
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None

    # --- standing queries ---

    def watch(self, select: SelectQuery, name: str | None = None) -> Query:
        """A standing query whose changes are drained by rules."""
        return self._runtime.watch(select, name=name)

    def register(self, name: str, text: str) -> Query:
        """A standing query that the program declares."""
        parsed = parse_standing(text)
        if isinstance(parsed, SelectQuery):
            return self._runtime.watch(parsed, name=name, history=DEFAULT_HISTORY)
        return self._streams.watch(parsed, None, name, "close", reevaluate=False)

    # --- time, changes and events ---

    def advance(self, to: int) -> None:
        """Move the graph's clock on, if it is not there yet."""
        if to > self._runtime.clock:
            self._runtime.advance(to)

    def effective(self, quads: Mapping[Ids, bool]) -> dict[Ids, bool]:
        """Of quads to be inserted (true) or deleted, those that are not as they should be."""
        present = self._runtime.present(list(quads)) if quads else []
        return {
            quad: wanted
            for (quad, wanted), is_present in zip(quads.items(), present, strict=True)
            if is_present is not wanted
        }

    def commit(self, quads: Mapping[Ids, bool], time: int) -> None:
        """Insert and delete quads as one transaction."""
        stamp = time if time > self._runtime.clock else None
        self._runtime.commit([(1 if new else -1, quad) for quad, new in quads.items()], stamp)

    def insert_each(self, quads: Ints, firings: Longs, times: Longs) -> None:
        """Insert the quads of several firings, one transaction for each firing."""
        self._runtime.insert_each(quads, firings, times)

    def stream(self, name: str) -> Stream:
        """The stream of a name."""
        return self._streams.stream(name, None)


def query_of(query: Query) -> SelectQuery:
    """The parsed text of a standing query."""
    known = query.replannable
    assert known is not None  # noqa: S101 - no plan was pinned
    return known[0]


class Effects(Protocol):
    """What the actions of rules change outside the rule engine."""

    def begin(self) -> None:
        """A cascade begins: changes from here on may be undone."""

    def collect(self, clock: int) -> Iterable[EventBatch]:
        """The events that changes of the graph caused, a batch for each transaction."""

    def publish(self) -> bool:
        """Push emitted events to their streams; whether there were any."""

    def discard(self) -> None:
        """Drop the events that changes of the graph caused."""

    def undo(self, clock: int) -> str:
        """Undo what a cascade has changed; a clause for the error message."""

    def advance(self, to: int) -> None:
        """The clock of the engine moved on."""

    def are_independent(self, rules: Iterable[RuleEntry]) -> bool:
        """Whether no action of these rules can change what a rule matches."""

    def apply_all(self, agenda: Agenda) -> bool:
        """Apply the actions of all firings at once, if that makes no difference; whether so."""


class GraphEffects:
    """Applies actions to the graph, with a journal of the cascade, and collects their events."""

    def __init__(self, graph: GraphConnection, sources: Sequence[ChangeSource]) -> None:
        self._graph = graph
        self._sources = sources
        self._journal: dict[Ids, bool] = {}
        self._outbox: list[tuple[str, list[tuple[Term, Term, Term]], int]] = []
        self._emitted: set[int] = set()

    def begin(self) -> None:
        """A cascade begins: changes from here on may be undone."""
        self._journal.clear()

    def collect(self, clock: int) -> Iterator[EventBatch]:
        """The events that changes of the graph caused, a batch for each transaction."""
        found: dict[int, list[tuple[int, RowChange]]] = {}
        for source in self._sources:
            for change in source.found.changes():
                found.setdefault(change.transaction, []).append((source.type, change))
        for transaction in sorted(found):
            events = found[transaction]
            time = max(events[0][1].time, clock)
            batch = typed_events(
                [type_ for type_, _ in events],
                [change.values for _, change in events],
                [time] * len(events),
            )
            yield replace(batch, transactions=transaction + 1, simultaneous=True)

    def discard(self) -> None:
        """Drop the events that changes of the graph caused."""
        for source in self._sources:
            for _ in source.found.changes():
                pass

    def set_present(self, quads: Mapping[Ids, bool], clock: int) -> None:
        """Insert and delete quads as one transaction; redundant changes are left out."""
        changes = self._graph.effective(quads)
        if changes:
            for quad, present in changes.items():
                self._journal.setdefault(quad, not present)
            self._graph.commit(changes, clock)

    def emit(self, stream: str, triples: list[tuple[Term, Term, Term]], time: int) -> None:
        """Push an event to a stream, once the cascade is through."""
        self._outbox.append((stream, triples, time))

    def publish(self) -> bool:
        """Push emitted events to their streams, and so to windows and other programs."""
        if not self._outbox:
            return False
        emitted, self._outbox = self._outbox, []
        for name, triples, time in emitted:
            stream = self._graph.stream(name)
            number = stream.next_number
            self._emitted.add(number)
            stream.push(triples, time=time)
            if not stream.waiting:  # the event was delivered, and passed `without_emitted`
                self._emitted.discard(number)
        return True

    def without_emitted(self, events: EventBatch) -> EventBatch:
        """Events without those that this program has emitted: its rules have seen them."""
        if not self._emitted:
            return events
        known = self._emitted.intersection(events.numbers.tolist())
        self._emitted -= known
        return events.without(known)

    def undo(self, clock: int) -> str:
        """Undo, as one transaction, what the actions of a cascade have changed."""
        self._outbox.clear()
        self.set_present(dict(self._journal), clock)
        return "; what their actions changed in the graph has been rolled back"

    def advance(self, to: int) -> None:
        """Move the graph's clock on, too."""
        self._graph.advance(to)

    def are_independent(self, rules: Iterable[RuleEntry]) -> bool:
        """Whether all rules only insert what no rule reads, and there is no other subscriber."""
        return self._graph.exclusive and all(map(_insertions, rules))

    def apply_all(self, agenda: Agenda) -> bool:
        """Insert what all firings insert, each as a transaction of its own."""
        inserted = [_insertions(share.entry) for share in agenda.shares]
        if not self._graph.exclusive or None in inserted:
            return False
        parts: list[Ints] = []
        firings: list[Longs] = []
        for number, (share, insertions) in enumerate(zip(agenda.shares, inserted, strict=True)):
            assert insertions is not None  # noqa: S101 - seen above
            own = np.flatnonzero(agenda.which == number)
            rows = share.matches.rows[agenda.row[own]]
            quads, at = insertions.quads(rows, agenda.first + own)
            parts.append(quads)
            firings.append(own[at])
        self._graph.insert_each(np.concatenate(parts), np.concatenate(firings), agenda.times())
        return True


def _insertions(entry: RuleEntry) -> Insertions | None:
    action = entry.action
    return action.insertions if isinstance(action, Actions) else None


class GraphSubscriber:
    """Passes transactions, clock moves and events of a graph on to a rule engine."""

    def __init__(self, graph: GraphConnection, engine: RuleEngine, effects: GraphEffects) -> None:
        self._graph = graph
        self._engine = engine
        self._effects = effects

    def before_time(self, time: int) -> None:
        """The graph's clock is about to move: matches that waited until then fire."""
        if not self._engine.running and time > self._engine.clock:
            self._engine.advance(time)

    def after_transaction(self) -> None:
        """A transaction was committed: the events that it caused reach the rules."""
        if not self._engine.running:
            self._engine.react(self._graph.clock)

    def take_events(self, events: EventBatch) -> None:
        """Events were published, by a stream or by `LiveGraph.publish`."""
        events = self._effects.without_emitted(events)
        many = len(events.ends)
        if self._engine.running or not many:
            self._engine.take_events(events)
        elif many > 1 and self._graph.has_windows:  # they close time by time
            begins = np.flatnonzero(np.diff(events.ends, prepend=events.ends[0] - 1)).tolist()
            for begin, end in pairwise([*begins, many]):
                self._take_from(events.slice(begin, end))
        else:
            self._take_from(events)

    def _take_from(self, events: EventBatch) -> None:
        """Take in events at the time of the first of them, for the graph too."""
        self._graph.advance(int(events.ends[0]))
        self._engine.take_events(events)
