"""GraphConnection and GraphEffects: how a running program follows and changes its graph.

The only module of `rules` that touches the runtime and the streams of a live graph.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from graphtide.algebra.nodes import SelectQuery
from graphtide.engine import storage
from graphtide.engine.events import EventBatch, typed_events
from graphtide.engine.transaction import is_unsettled
from graphtide.engine.watch import DEFAULT_HISTORY, Query
from graphtide.lang.sparql.parse import parse_standing
from graphtide.rules.actions import Actions, Insertions, given_graph

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from graphtide.engine.ingest import Ids, ObjectLike, TermLike
    from graphtide.engine.query_host import DroppedToken
    from graphtide.engine.timers import Subscription
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.limits import Limits
    from graphtide.rdf.terms import Term
    from graphtide.rules.agenda import Agenda
    from graphtide.rules.change_events import ChangeSource, RowChange
    from graphtide.rules.firing import Firing
    from graphtide.rules.rule_set import RuleEntry
    from graphtide.rules.runtime import RuleEngine
    from graphtide.streams.registry import Streams
    from graphtide.streams.stream import Stream

    Triple = tuple[TermLike, TermLike, ObjectLike]


class GraphConnection:
    """A live graph as rules use it: terms, clock, standing queries, transactions, streams."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._runtime = streams.runtime
        self._subscription: Subscription | None = None
        self.schedule = self._runtime.schedule
        self.terms = self._runtime.terms
        self.tick_ms = self._runtime.tick_ms
        self.internal: list[Query] = []
        """The standing queries that only rules read."""

    @property
    def clock(self) -> int:
        """The time of the graph."""
        return self._runtime.clock

    @property
    def position(self) -> int:
        """How many transactions and closes of windows the graph has applied."""
        return self._runtime.position

    @property
    def limits(self) -> Limits:
        """The limits of the graph."""
        return self._runtime.limits

    @property
    def has_windows(self) -> bool:
        """Whether windowed queries are registered."""
        return self._streams.has_windows

    @property
    def takes_events_apart(self) -> bool:
        """True if something may be due between two events: the close of a window, or an event."""
        return self._streams.publisher.apart

    @property
    def exclusive(self) -> bool:
        """Whether the program is the only subscriber, and no window is open."""
        subscription = self._subscription
        return (
            subscription is not None
            and self._runtime.eager == (subscription.follower,)
            and not self._runtime.queries.with_callbacks
            and not self._streams.has_windows
        )

    def follow(self, engine: RuleEngine) -> None:
        """Let a rule engine follow the graph: its transactions, its clock and its events."""
        self._subscription = self._runtime.subscribe(engine)

    def unfollow(self) -> None:
        """It follows no more."""
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None

    def dropped_tokens(self, program: str, pattern: str) -> list[DroppedToken] | None:
        """The tokens of a pattern that were dropped, if the graph has a store."""
        past = self._runtime.past
        return None if past is None else past.dropped_tokens(program, pattern)

    def reclaim(self) -> None:
        """The end of what a user has called: terms may be freed here."""
        self._runtime.reclaim()

    def pass_on(self, to: GraphConnection, engine: RuleEngine) -> None:
        """Let the engine of another connection follow the graph in the place of this one's."""
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            subscription.pass_to(engine)
        to._subscription = subscription

    def given(
        self, functions: Mapping[str, Callable[..., object]]
    ) -> Mapping[str, Callable[..., object]]:
        """Functions of CALL, which get the graph if they have a parameter for it."""
        return given_graph(functions, self._runtime.facade())

    def successor(self) -> GraphConnection:
        """Another connection to the same graph."""
        return GraphConnection(self._streams)

    # --- standing queries ---

    def check(self, select: SelectQuery) -> None:
        """Raise what `watch` would raise, if it cannot maintain a query."""
        runtime = self._runtime
        runtime.queries.plan(select, storage.strategy_for(runtime.store, None))
        storage.check_complete(runtime.store)

    def watch(self, select: SelectQuery, name: str | None = None) -> Query:
        """A standing query whose changes are drained by rules."""
        query = self._runtime.watch(select, name=name or self._free_name())
        self.internal.append(query)
        return query

    def _free_name(self) -> str:
        """A name that no query of a user gets: a store may register them in another order."""
        known, number = {query.name for query in self._runtime.queries}, 1
        while f"changes {number}" in known:
            number += 1
        return f"changes {number}"

    def register(self, name: str, text: str) -> Query:
        """A standing query that the program declares."""
        parsed = parse_standing(text)
        if isinstance(parsed, SelectQuery):
            return self._runtime.watch(parsed, name=name, history=DEFAULT_HISTORY)
        return self._streams.watch(parsed, None, name, "close", reevaluate=False)

    # --- time, changes and events ---

    def advance(self, to: int) -> None:
        """Move the graph's clock on."""
        self._runtime.tick(to)

    def settle(self) -> None:
        """Take in the events that wait until somebody looks, and what an interrupt has left."""
        if is_unsettled(self._runtime):
            with self._runtime.lock:
                self._runtime.flush()

    def defer(self, triples: Sequence[Triple], time: int | None) -> bool:
        """Buffer an event, if its engine is the only one; False if it has to come at once."""
        return len(self._runtime.eager) == 1 and self._streams.publisher.defer(triples, time)

    def publish(self, events: EventBatch, engine: RuleEngine) -> None:
        """Publish events to one rule engine only."""
        self._runtime.publish(events, (engine,))

    def effective(self, quads: Mapping[Ids, bool]) -> dict[Ids, bool]:
        """Of quads to be inserted (true) or deleted, those that are not as they should be."""
        present = self._runtime.present(list(quads)) if quads else []
        return {
            quad: wanted
            for (quad, wanted), is_present in zip(quads.items(), present, strict=True)
            if is_present is not wanted
        }

    def commit(self, quads: Mapping[Ids, bool]) -> None:
        """Insert and delete quads as one transaction."""
        self._runtime.commit([(1 if new else -1, quad) for quad, new in quads.items()], None)

    def insert_each(self, quads: Ints, firings: Longs, times: Longs) -> None:
        """Insert the quads of several firings, one transaction for each firing."""
        self._runtime.insert_each(quads, firings, times)

    def stream(self, name: str) -> Stream:
        """The stream of a name."""
        return self._streams.stream(name, None)


def query_of(query: Query) -> SelectQuery:
    """The parsed text of a standing query."""
    return query.asked.select


class Effects(Protocol):
    """What the actions of rules change outside the rule engine."""

    def collect(self, clock: int) -> Iterable[EventBatch]:
        """The events that changes of the graph caused, a batch for each transaction."""

    def publish(self) -> bool:
        """Push emitted events to their streams; whether there were any."""

    def without_emitted(self, events: EventBatch) -> EventBatch:
        """Events without those that this program has emitted: its rules have seen them."""

    def discard(self) -> None:
        """Drop emitted events, and the events that changes of the graph caused."""

    def undo(self) -> str:
        """Undo what a cascade has changed; a clause for the error message."""

    def are_independent(self, rules: Iterable[RuleEntry]) -> bool:
        """Whether no action of these rules can change what a rule matches."""

    def apply_all(self, agenda: Agenda) -> bool:
        """Apply the actions of all firings at once, if that makes no difference; whether so."""

    def savepoint(self) -> EffectsSavepoint:
        """What `roll_back` needs."""

    def roll_back(self, to: EffectsSavepoint) -> None:
        """A piece of input was interrupted: go back to a savepoint."""


EmittedEvent = tuple[int, str, "list[tuple[Term, Term, Term]]"]
"""The depth of its action, its stream, and its triples."""

EffectsSavepoint = tuple[tuple[EmittedEvent, ...], frozenset[int]]
"""Emitted events that are not published, and the numbers of those that are."""


class GraphEffects:
    """Applies actions to the graph, with a journal of the cascade, and collects their events."""

    def __init__(self, graph: GraphConnection, sources: Sequence[ChangeSource]) -> None:
        self._graph = graph
        self._sources = sources
        self._outbox: deque[EmittedEvent] = deque()
        self._emitted: set[int] = set()

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
        """Drop emitted events, and the events that changes of the graph caused."""
        self._outbox.clear()
        for source in self._sources:
            for _ in source.found.changes():
                pass

    def savepoint(self) -> EffectsSavepoint:
        """What `roll_back` needs."""
        return tuple(self._outbox), frozenset(self._emitted)

    def roll_back(self, to: EffectsSavepoint) -> None:
        """A piece of input was interrupted: go back to a savepoint."""
        self._outbox, self._emitted = deque(to[0]), set(to[1])

    def set_present(self, quads: Mapping[Ids, bool]) -> None:
        """Insert and delete quads as one transaction; redundant changes are left out."""
        changes = self._graph.effective(quads)
        if changes:
            journal = self._graph.schedule.journal
            for quad, present in changes.items():
                journal.setdefault(quad, not present)
            self._graph.commit(changes)

    def is_known(self, error: Exception) -> bool:
        """Whether it is certain what an action that failed has changed: nothing."""
        return self._graph.schedule.is_known(error)

    def emit(self, stream: str, triples: list[tuple[Term, Term, Term]]) -> None:
        """Push an event to a stream, once the effects before it are worked off."""
        self._outbox.append((self._graph.schedule.depth, stream, triples))

    def publish(self) -> bool:
        """Push emitted events to their streams, and so to windows and other programs."""
        schedule, some = self._graph.schedule, bool(self._outbox)
        while self._outbox:
            schedule.depth, name, triples = self._outbox.popleft()
            stream = self._graph.stream(name)
            number = stream.next_number
            self._emitted.add(number)
            stream.push(triples, time=schedule.clock)
            if not stream.waiting:  # the event was delivered, and passed `without_emitted`
                self._emitted.discard(number)
        return some

    @property
    def emitted(self) -> list[int]:
        """The numbers of emitted events that wait in their streams."""
        return sorted(self._emitted)

    @emitted.setter
    def emitted(self, numbers: Iterable[int]) -> None:
        self._emitted = set(numbers)

    def without_emitted(self, events: EventBatch) -> EventBatch:
        """Events without those that this program has emitted: its rules have seen them."""
        if not self._emitted:
            return events
        known = self._emitted.intersection(events.numbers.tolist())
        if not known:
            return events
        self._emitted -= known
        return events.without(known)

    def undo(self) -> str:
        """Undo, as one transaction, what the actions of a cascade have changed."""
        self.set_present(dict(self._graph.schedule.journal))
        return "; what their actions changed in the graph has been rolled back"

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
            quads, at = insertions.quads(rows, partial(_firing_at, agenda, own))
            parts.append(quads)
            firings.append(own[at])
        self._graph.insert_each(np.concatenate(parts), np.concatenate(firings), agenda.times())
        return True


def _firing_at(agenda: Agenda, places: Longs, place: int) -> Firing:
    return agenda[int(places[place])]


def _insertions(entry: RuleEntry) -> Insertions | None:
    action = entry.action
    return action.insertions if isinstance(action, Actions) else None
