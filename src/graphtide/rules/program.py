"""Programs at work: the queries, events and rules of a .tide program on a live graph."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from graphtide.algebra.nodes import SelectQuery
from graphtide.engine.watch import Watch
from graphtide.errors import GraphtideError
from graphtide.lang.sparql.parse import parse_standing
from graphtide.lang.sparql.scanner import name_hint
from graphtide.lang.tide.ast import CallFunction, QueryChange, QueryUpdate, StateChange
from graphtide.lang.tide.program import Program
from graphtide.rules.actions import Actions
from graphtide.rules.agenda import ConflictSet
from graphtide.rules.change_events import (
    ChangeEvents,
    RowChanges,
    RowTracker,
    RowUpdates,
    StateChanges,
)
from graphtide.rules.compile import Compiler, only_inserts
from graphtide.rules.detection import detect
from graphtide.rules.runtime import MOST_FIRINGS, Moment, RuleEngine
from graphtide.streams.events import make_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from pyoxigraph import NamedNode

    from graphtide.algebra.expressions import Var
    from graphtide.engine.ingest import Ids, ObjectLike, TermLike
    from graphtide.engine.live_graph import LiveGraph
    from graphtide.errors import ActionError
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rdf.terms import Term
    from graphtide.rules.actions import Insertions
    from graphtide.rules.agenda import Activation, Agenda, Resolver
    from graphtide.rules.detection import ComplexEvent
    from graphtide.rules.matching.types import Ids as Triple
    from graphtide.rules.model import EventType, Rule
    from graphtide.rules.rule_set import RuleEntry
    from graphtide.streams.events import GraphEvents
    from graphtide.streams.query import WindowQuery

FiringMode = Literal["events", "agenda", "manual"]
OnError = Literal["stop", "skip"]


@dataclass(frozen=True, slots=True)
class Policy:
    """What happens when an action fails: it is tried again, then the error is raised or noted."""

    on_error: OnError = "stop"
    retries: int = 0


def run(
    program: Program | str | Path,
    graph: LiveGraph,
    *,
    functions: Mapping[str, Callable[..., object]] | None = None,
    on_error: OnError = "stop",
    retries: int = 0,
    most_firings: int = MOST_FIRINGS,
    longest: int = 0,
    catch_up: bool = False,
    firing: FiringMode = "events",
    resolver: Resolver = "priority",
    seed: int = 0,
) -> RunningProgram:
    r"""Put a program to work on a graph: a text, the path of a file, or one that was read.

    CALL finds its functions in `functions`, and nowhere else. With `catch_up`, the rows that
    queries have already count as appearing now. Events last for up to `longest` ticks: as long
    must others be kept that may be partners of one that is not over yet.

    `firing` says when matches fire: all that an event completes, one after the other ("events");
    one at a time, if its row is still there when its turn comes ("agenda"); or only when `fire` is
    called ("manual"). For the last two, `resolver` chooses the next one: "priority", "oldest",
    "newest", "random" (by `seed`), or a function that gives an activation its rank.

    >>> from graphtide import LiveGraph
    >>> graph = LiveGraph()
    >>> running = run(
    ...     '''PREFIX : <http://example.org/>
    ...     QUERY Hot AS SELECT ?room { ?room :temperature ?t FILTER (?t > 30) }
    ...     RULE Tell ON APPEAR OF Hot THEN CALL tell(?room)''',
    ...     graph,
    ...     functions={"tell": print},
    ... )
    >>> graph.insert("<http://example.org/kitchen>", "<http://example.org/temperature>", 31)
    <http://example.org/kitchen>
    """
    program = Program.of(program)
    policy = Policy(on_error, retries)
    if on_error not in ("stop", "skip") or retries < 0:
        raise GraphtideError(
            f"on_error={on_error!r}, retries={retries} is no policy",
            hint='use "stop" or "skip", and 0 or more retries',
        )
    running = RunningProgram(program, graph, functions or {}, policy, most_firings, longest)
    running.start(firing, resolver, seed, catch_up=catch_up)
    return running


class RunningProgram(RuleEngine):
    """A program on a graph. Made by `run`; `stop()` ends it.

    `queries` has its standing queries, `problems` the errors that were skipped.
    """

    def __init__(
        self,
        program: Program,
        graph: LiveGraph,
        functions: Mapping[str, Callable[..., object]],
        policy: Policy,
        most_firings: int,
        longest: int = 0,
    ) -> None:
        super().__init__(graph, most_firings=most_firings, longest=longest)
        self.program = program
        self.policy = policy
        self.problems: list[ActionError] = []
        self._clock = graph.clock
        self._journal: dict[Ids, bool] = {}
        self._emitted: set[int] = set()
        self._presences: list[RowTracker] = []
        self._outbox: list[tuple[str, list[tuple[Term, Term, Term]], int]] = []
        _check_functions(program, functions)
        compiler = Compiler(graph.tick_ms)
        rules = [compiler.rule(rule) for rule in program.rules]
        self.detection = detect(program, compiler, graph.terms, graph.tick_ms)
        self.queries: dict[str, Watch | WindowQuery] = {}
        for query in program.queries:
            self._register(query.name, query.text)
        self._sources = [self._source(*each) for each in compiler.changes.items()]
        for rule, declared in zip(rules, program.rules, strict=True):
            self._rules.add(rule, Actions(self, declared, functions))
        self._find_quiet(rules)

    def start(self, firing: FiringMode, resolver: Resolver, seed: int, *, catch_up: bool) -> None:
        """Begin to follow the graph."""
        graph = self.graph
        if firing not in ("events", "agenda", "manual"):
            raise GraphtideError(
                f"firing={firing!r} is not known", hint='use "events", "agenda" or "manual"'
            )
        if firing != "events":
            self.conflicts = ConflictSet(self.program.rules, self._presence, resolver, seed)
            self.by_hand = firing == "manual"
        graph.callbacks += 1
        graph.followers.append(self)
        graph.listeners.append(self)
        if catch_up:
            self.after()
        else:
            self.forget()

    def _register(self, name: str, text: str) -> None:
        parsed = parse_standing(text)
        if isinstance(parsed, SelectQuery):
            self.queries[name] = self.graph.watch(parsed, name=name)
        else:
            self.queries[name] = self.graph.register(parsed, name=name)

    def _source(
        self, type_: EventType, change: QueryChange | QueryUpdate | StateChange
    ) -> ChangeEvents:
        graph, parameters = self.graph, type_.parameters
        if isinstance(change, StateChange):
            return ChangeEvents(graph, type_, StateChanges(graph, change, parameters))
        select = self._select(change.query)
        if isinstance(change, QueryUpdate):
            return ChangeEvents(graph, type_, RowUpdates(graph, select, parameters))
        rows = RowChanges(graph, select, parameters, appears=change.appears)
        return ChangeEvents(graph, type_, rows)

    def _find_quiet(self, rules: list[Rule]) -> None:
        """Note which rules do nothing that could concern the rules."""
        read = [rule.facts for rule in rules if rule.facts is not None]
        read += [query for source in self._sources for query in source.found.queries]
        for declared in self.program.rules:
            registered = self._rules[declared.name]
            if isinstance(registered.action, Actions) and only_inserts(declared, read):
                registered.action.inserts_only(registered.matcher.shape.variables)

    def _presence(self, query: str, variables: tuple[Var, ...]) -> RowTracker:
        presence = RowTracker(self.graph, self._select(query), variables)
        self._presences.append(presence)
        return presence

    def _select(self, name: str) -> SelectQuery:
        query = self.queries[name]
        watch = query if isinstance(query, Watch) else query.watch
        known = watch.replans
        assert known is not None  # noqa: S101 - no plan was pinned
        return known[0]

    # --- activations, where they wait ---

    def activations(self) -> list[Activation]:
        """What waits to be fired, and what was fired while its row is still there."""
        return self._waiting().activations()

    def fire(self, activation: Activation | None = None) -> Activation | None:
        """Fire one activation, that whose turn it is if none is given; None if there is none."""
        conflicts = self._waiting()
        chosen = conflicts.next() if activation is None else conflicts.take(activation)
        if chosen is not None:
            self._run_with(lambda: self._fire_activation(chosen))
        return chosen

    def fire_all(self, until: Callable[[], bool] | None = None) -> int:
        """Fire while there is something to fire, and until a condition holds; how many fired."""
        fired = 0
        while (until is None or not until()) and self.fire() is not None:
            fired += 1
            if fired > self._most:
                raise GraphtideError(
                    f"rules fire without end: {fired:,} firings",
                    hint="an action causes what it reacts to; most_firings sets the limit",
                )
        return fired

    def _waiting(self) -> ConflictSet:
        if self.conflicts is None:
            raise GraphtideError(
                "activations do not wait here: what matches fires at once",
                hint='use run(…, firing="manual") or firing="agenda"',
            )
        return self.conflicts

    def complex_events(self, pattern: str) -> list[ComplexEvent]:
        """The last complex events of a pattern, oldest first."""
        known = {} if self.detection is None else self.detection.patterns
        if pattern not in known:
            near = name_hint(pattern, known, "pattern")
            raise GraphtideError(f"the program has no pattern named {pattern}", hint=near)
        return known[pattern].events(self.graph.terms)

    def stop(self) -> None:
        """End the program: its rules, and its queries."""
        self.graph.followers.remove(self)
        self.graph.listeners.remove(self)
        self.graph.callbacks -= 1
        for name in self._rules.names():
            self.remove(name)
        for watches in (*self._presences, *(source.found for source in self._sources)):
            for watch in watches.watches:
                self.graph.unwatch(watch)
        for query in self.queries.values():
            self.graph.unwatch(query)

    # --- time and events ---

    def assert_event(
        self,
        triples: Iterable[tuple[TermLike, TermLike, ObjectLike]],
        *,
        time: int | None = None,
        duration: int = 0,
    ) -> None:
        """Something happens, now or at a time that is not past; it may last for some ticks."""
        if time is not None and time > self.graph.clock:
            self.graph.advance(time)
        super().assert_event(triples, time=time, duration=duration)

    def take_events(self, events: GraphEvents) -> None:
        """Things happen; those that this program has emitted itself it knows already."""
        if self._emitted:
            known = self._emitted.intersection(events.numbers.tolist())
            self._emitted -= known
            events = events.without(known)
        many = len(events.ends)
        if self._running or not many:
            super().take_events(events)
        elif many > 1 and self.graph.has_windows:  # they close time by time
            begins = np.flatnonzero(np.diff(events.ends, prepend=events.ends[0] - 1)).tolist()
            for begin, end in pairwise([*begins, many]):
                self._take_from(events.part(begin, end))
        else:
            self._take_from(events)

    def _take_from(self, events: GraphEvents) -> None:
        """Take in events at the time of the first of them, for the graph too."""
        time = int(events.ends[0])
        if time > self.graph.clock:
            self.graph.advance(time)
        super().take_events(events)

    def move_to(self, time: int) -> None:
        """Events have moved the clock on, for the graph too."""
        super().move_to(time)
        if time > self.graph.clock:
            self.graph.advance(time)

    def advance(self, to: int) -> None:
        """Let time pass in which nothing happens, for the graph too."""
        if to > self.graph.clock:
            self.graph.advance(to)
        else:
            super().advance(to)

    def before(self, time: int) -> None:
        """The graph's clock is going to be moved on: what waited for nothing to happen fires."""
        if not self._running and time > self._clock:
            self._run(time)

    def after(self) -> None:
        """A transaction of the graph is through: rules hear of what it changed."""
        if not self._running:
            self.collect()
            self._run(max(self.graph.clock, self._clock))

    def collect(self) -> None:
        """Note the events that changes of the graph have caused, transaction by transaction."""
        if self.conflicts is not None:
            self.conflicts.catch_up()
        found: dict[int, tuple[int, list[tuple[Triple, ...]]]] = {}
        for source in self._sources:
            for number, time, triples in source.drain():
                found.setdefault(number, (time, []))[1].append(triples)
        for number in sorted(found):
            time, events = found[number]
            told = make_events(events, [max(time, self._clock)] * len(events))
            self._due.append(Moment(told, self.depth, number + 1, together=True))

    # --- what actions do ---

    def is_quiet(self) -> bool:
        """Whether all rules only insert what no rule looks at, and nobody else follows."""
        return self._is_alone() and all(map(_insertions, self._rules))

    def _is_alone(self) -> bool:
        graph = self.graph
        return len(graph.followers) == 1 == graph.callbacks and not graph.has_windows

    def fire_at_once(self, agenda: Agenda) -> bool:
        """Insert what all firings insert, each as a transaction of its own."""
        inserted = [_insertions(share.registered) for share in agenda.shares]
        if not self._is_alone() or None in inserted:
            return False
        parts: list[Ints] = []
        places: list[Longs] = []
        for number, (share, insertions) in enumerate(zip(agenda.shares, inserted, strict=True)):
            assert insertions is not None  # noqa: S101 - seen above
            own = np.flatnonzero(agenda.which == number)
            rows = share.found.rows[agenda.place[own]]
            quads, at = insertions.quads(rows, agenda.first + own)
            parts.append(quads)
            places.append(own[at])
        self.graph.insert_for(np.concatenate(parts), np.concatenate(places), agenda.times())
        self.note(agenda)
        return True

    def change(self, wanted: Mapping[Ids, bool]) -> None:
        """Let quads be there or not, as one transaction; nothing, if all is so already."""
        graph = self.graph
        now = graph.present(list(wanted)) if wanted else []
        changes = [(quad, there) for (quad, there), is_ in zip(wanted.items(), now, strict=True)
                   if is_ is not there]  # fmt: skip
        if not changes:
            return
        for quad, there in changes:
            self._journal.setdefault(quad, not there)
        time = self._clock if self._clock > graph.clock else None
        graph.commit([(1 if there else -1, quad) for quad, there in changes], time)

    def emit(self, stream: NamedNode, triples: list[tuple[Term, Term, Term]]) -> None:
        """A new event for the rules, and, when all is through, for the windows over a stream."""
        self.collect()
        self.assert_event(triples)
        self._outbox.append((str(stream), triples, self._clock))

    def finish(self) -> bool:
        """Tell streams, and so windows and other programs, what was emitted."""
        if not self._outbox:
            return bool(self._due)
        emitted, self._outbox = self._outbox, []
        for stream, triples, time in emitted:
            self._push(stream, triples, time)
        self.collect()
        return bool(self._due)

    def _push(self, stream: str, triples: list[tuple[Term, Term, Term]], time: int) -> None:
        windows = self.graph.stream(stream)
        number = windows.next_number
        self._emitted.add(number)
        windows.push(triples, time=time)
        if not windows.waiting:
            self._emitted.discard(number)

    def begin(self) -> None:
        """A cascade begins: from here on changes may have to be taken back."""
        super().begin()
        self._journal.clear()

    def undo(self) -> str:
        """Take back, as one transaction, what the actions of a cascade have changed."""
        self._outbox.clear()
        self.change(dict(self._journal))
        return "; what their actions changed in the graph has been taken back"

    def forget(self) -> None:
        """Drop what is due, and what changes of the graph would have caused."""
        self.finish()
        for source in self._sources:
            for _ in source.drain():
                pass
        super().forget()


def _insertions(registered: RuleEntry) -> Insertions | None:
    action = registered.action
    return action.insertions if isinstance(action, Actions) else None


def _check_functions(program: Program, functions: Mapping[str, object]) -> None:
    for rule in program.rules:
        for action in rule.actions:
            if isinstance(action, CallFunction) and action.function not in functions:
                near = name_hint(action.function, functions, "function")
                raise GraphtideError(
                    f"the rule {rule.name} calls {action.function}, which was not given",
                    hint=f"run(…, functions={{…}}): {near}",
                )
