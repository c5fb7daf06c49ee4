"""Runs the queries, events, patterns and rules of a .tide program on a live graph."""

from __future__ import annotations

from logging import getLogger
from typing import TYPE_CHECKING, Any, Final, Literal

from graphtide.arguments import check_type
from graphtide.engine.events import event_end, make_events
from graphtide.engine.ingest import ObjectLike, TermLike, quad_ids
from graphtide.engine.locking import synchronized
from graphtide.engine.query_host import DroppedToken
from graphtide.errors import GraphtideError
from graphtide.lang.sparql.scanner import name_hint
from graphtide.lang.tide.program import Program
from graphtide.limits import MAX_FIRINGS
from graphtide.rules import why_not
from graphtide.rules.actions import ErrorPolicy, OnError
from graphtide.rules.conflicts import Activation
from graphtide.rules.effects import GraphConnection
from graphtide.rules.running import replacement as swap
from graphtide.rules.running.parts import ProgramParts, ProgramSettings, check_functions
from graphtide.rules.running.tracing import Tracer, TraceRecord
from graphtide.rules.warnings import warnings_of
from graphtide.ticks import ticks, ticks_or_none

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from graphtide.engine.watch import Query
    from graphtide.patterns.detector import AnyDetector
    from graphtide.patterns.tokens import Token
    from graphtide.rules.conflicts import ConflictSet, Resolver
    from graphtide.rules.detection import ComplexEvent, Detection, PatternRunner
    from graphtide.rules.firing import Firing
    from graphtide.rules.runtime import RuleEngine
    from graphtide.streams.registry import Streams
    from graphtide.why.tree import Explanation

log = getLogger(__name__)

FiringMode = Literal["events", "agenda", "manual"]
StartAt = Literal["latest", "earliest"]

MAX_REPEATED: Final = 1024
"""Dropped tokens among which repetitions are looked for."""


def run(
    program: Program,
    streams: Streams,
    *,
    functions: Mapping[str, Callable[..., object]] | None = None,
    on_error: OnError = "raise",
    retries: int = 0,
    max_firings: int = MAX_FIRINGS,
    max_event_duration: int = 0,
    start: StartAt = "latest",
    firing: FiringMode = "events",
    resolver: Resolver = "priority",
    seed: int = 0,
    disabled: Collection[str] = (),
    name: str = "program",
    recorded: Callable[[RunningProgram], None] = lambda _: None,
) -> RunningProgram:
    """Run a program on a graph, given by its streams (called by `LiveGraph.run`).

    CALL finds its functions in `functions`, and nowhere else. With `start="earliest"`, the rows
    that queries have already count as appearing now. No event may last longer than
    `max_event_duration` ticks; possible partners of an event that is not over are retained that
    much longer.

    `firing` says when matches fire: all that an event completes, one after the other ("events");
    one at a time, if its row is still there when its turn comes ("agenda"); or only when `fire` is
    called ("manual"). For the last two, `resolver` chooses the next one: "priority", "oldest",
    "newest", "random" (by `seed`), or a function that gives an activation its rank. Rules of the
    groups that are `disabled` do not run until `enable`. `recorded` is called before the program
    starts: from then on a store has it, whatever the start raises.
    """
    if not isinstance(program, Program):
        raise GraphtideError(
            f"{program!r} is not a program",
            hint="use Program.parse(text) or Program.read(path)",
        )
    if on_error not in ("raise", "skip") or retries < 0:
        raise GraphtideError(
            f"on_error={on_error!r}, retries={retries} is no policy",
            hint='use "raise" or "skip", and 0 or more retries',
        )
    if start not in ("latest", "earliest"):
        raise GraphtideError(f"start={start!r} is not known", hint='use "latest" or "earliest"')
    if firing not in ("events", "agenda", "manual"):
        raise GraphtideError(
            f"firing={firing!r} is not known", hint='use "events", "agenda" or "manual"'
        )
    schedule = streams.runtime.schedule
    if callable(resolver) and schedule.recorder is not None:
        raise GraphtideError(
            "a durable graph cannot record a function that ranks activations",
            hint='use "priority", "oldest", "newest" or "random"',
        )
    settings = ProgramSettings(
        functions or {},
        ErrorPolicy(on_error, retries),
        max_firings,
        max_event_duration,
        None if firing == "events" else resolver,
        seed,
        firing == "manual",
    )
    options = {
        "on_error": on_error,
        "retries": retries,
        "max_firings": max_firings,
        "max_event_duration": max_event_duration,
        "start": start,
        "firing": firing,
        "resolver": resolver,
        "seed": seed,
        "disabled": list(disabled),
    }
    is_recorded = False

    def begin() -> RunningProgram:
        running = RunningProgram(program, streams, settings, disabled)
        running.name = name

        def record_and_start() -> None:
            nonlocal is_recorded
            is_recorded = True
            recorded(running)
            running.start(start)

        schedule.take_input(record_and_start, "run", name, program, options)
        return running

    return streams.runtime.registering(begin, lambda: is_recorded)


def free_name(taken: Collection[str], number: int) -> str:
    """A name for a program that is run after a number of transactions.

    >>> free_name({"program-7"}, 7)
    'program-7-2'
    """
    name, copy = f"program-{number}", 2
    while name in taken:
        name, copy = f"program-{number}-{copy}", copy + 1
    return name


class RunningProgram:
    """A program on a graph. Made by `LiveGraph.run`; `close()` ends it.

    `program` is what it declares, `problems` has the errors that were skipped.
    """

    def __init__(
        self,
        program: Program,
        streams: Streams,
        settings: ProgramSettings,
        disabled: Collection[str] = (),
    ) -> None:
        check_functions(program, settings.functions)
        self.program = program
        self.problems = settings.policy.skipped
        self.closed = False
        self.lock = streams.runtime.lock
        self._settings = settings
        self._disabled = tuple(disabled)
        self._listeners: list[Callable[[TraceRecord], object]] = []
        self._connection = GraphConnection(streams)
        self._parts = ProgramParts(program, self._connection, settings, disabled)
        self._warn()

    def _warn(self) -> None:
        most = self._settings.max_event_duration
        self.warnings = warnings_of(self.program, self._connection.tick_ms, most)
        """What is probably not meant: events that never happen, rules that never fire."""
        for warning in self.warnings:
            log.warning("line %s", warning)

    def start(self, start: StartAt) -> None:
        """Follow the graph."""
        if start == "latest":
            self._parts.effects.discard()
        self._connection.follow(self._engine)
        if start == "earliest":
            self._connection.schedule.perform(self._engine.collect)

    @property
    def _engine(self) -> RuleEngine:
        return self._parts.engine

    @property
    def _detection(self) -> Detection | None:
        return self._parts.detection

    @property
    def queries(self) -> dict[str, Query]:
        """The standing queries that it declares, by name."""
        return self._parts.queries

    # --- another program in its place ---

    @property
    def groups(self) -> dict[str, bool]:
        """The groups of its rules, and whether each is enabled."""
        return {name: name not in self._disabled for name in self.program.groups}

    @synchronized
    def replace(
        self,
        program: Program | str | Path,
        *,
        functions: Mapping[str, Callable[..., object]] | None = None,
    ) -> swap.Replacement:
        """Run another program from now on, given as in `Program.of`; what it keeps goes on.

        Queries, patterns and rules that are as they were keep their answers, tokens, retained
        events, pending matches and activations. All others begin as if the program were started
        now. `functions` are added to those of the run. If there is an error, nothing changes.
        """
        new = Program.of(program)
        off = [name for name in self._disabled if name in new.groups]
        return self.become(new, off, functions or {})

    @synchronized
    def disable(self, group: str) -> swap.Replacement:
        """Let the rules of a group match and fire no more; what they wait for is forgotten."""
        self.program.without_groups((group,))
        return self.become(self.program, list(dict.fromkeys((*self._disabled, group))))

    @synchronized
    def enable(self, group: str) -> swap.Replacement:
        """Let the rules of a group run again, as if they were new: they see events from now on."""
        self.program.without_groups((group,))
        return self.become(self.program, [name for name in self._disabled if name != group])

    def become(
        self,
        program: Program,
        disabled: Sequence[str],
        functions: Mapping[str, Callable[..., object]] | None = None,
    ) -> swap.Replacement:
        """Run a program with some groups disabled; all is checked before anything changes."""
        graph, old = self._connection, self._parts
        known = {**self._settings.functions, **graph.given(functions or {})}
        settings = self._settings._replace(functions=known)
        graph.settle()
        if self.closed or not graph.schedule.is_idle():
            raise GraphtideError(
                "a program that is closed, or whose rules are firing, cannot be replaced",
                hint="replace it when the call that changes the graph has returned",
            )
        check_functions(program, settings.functions)
        before = swap.declared_texts(self.program, self._disabled)
        done = swap.compare(before, swap.declared_texts(program, disabled))
        swap.check_new(program, graph, done)

        def replace() -> None:
            successor = graph.successor()
            kept = {name: old.queries[name] for name in done.names(swap.QUERY)}
            saved = swap.save_kept(old, done)
            old.close(kept)
            new = ProgramParts(program, successor, settings, disabled, kept, old.engine.log)
            saved.give_to(new)
            new.effects.discard()
            graph.pass_on(successor, new.engine)
            self.program, self._disabled, self._settings = program, tuple(disabled), settings
            self._connection, self._parts = successor, new
            if self._listeners:
                new.engine.tracer = Tracer(new, self._listeners)

        graph.schedule.take_input(replace, "replace", self.name, program, list(disabled))
        self._warn()
        graph.reclaim()
        return done

    # --- what a store records ---

    @property
    def name(self) -> str:
        """The name of the program in the ids of its firings."""
        return self._engine.name

    @name.setter
    def name(self, name: str) -> None:
        self._engine.name = name

    @property
    def follower(self) -> RuleEngine:
        """What follows the graph for it."""
        return self._engine

    def dump(self) -> dict[str, Any]:
        """Its state: retained events, pending matches, activations, tokens, numbers."""
        return {"engine": self._engine.dump(), "emitted": self._parts.effects.emitted}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Go on with a saved state."""
        self._engine.load(saved["engine"])
        self._parts.effects.emitted = saved["emitted"]

    # --- results ---

    @property
    def internal_queries(self) -> Sequence[Query]:
        """The queries that it registered for its rules, besides those that it declares."""
        return self._connection.internal

    @property
    def clock(self) -> int:
        """The current time of the rules."""
        self._connection.settle()
        return self._engine.clock

    def firings(self) -> Sequence[Firing]:
        """The last firings, oldest first; each can say why."""
        return self._engine.log

    @property
    def fired(self) -> int:
        """How many firings there have been."""
        self._connection.settle()
        return self._engine.log.total

    @property
    @synchronized
    def retained(self) -> int:
        """How many events and pending matches the rules retain."""
        self._connection.settle()
        return self._engine.rules.retained

    @synchronized
    def matches(self, pattern: str, *, last: int | None = None) -> list[ComplexEvent]:
        """The retained complex events of a pattern, or the `last` ones, oldest first."""
        return self._runner(pattern).events(self._connection.terms, last)

    @synchronized
    def matched(self, pattern: str) -> int:
        """How many complex events of a pattern there have been."""
        return self._runner(pattern).total

    def detector(self, pattern: str) -> AnyDetector:
        """The detector of a pattern, with its tokens."""
        self._engine.observed = True
        return self._runner(pattern).detector

    def trace(self, pattern: str, found: list[DroppedToken]) -> None:
        """Append the tokens of a pattern that are dropped from here on."""
        runner, terms = self._runner(pattern), self._connection.terms
        names = [v.name for v in runner.detector.automaton.variables]

        def dropped(token: Token, values: tuple[int, ...], time: int, why: str) -> None:
            row = {n: terms.decode(i) for n, i in zip(names, values, strict=False) if i}
            each = DroppedToken(token.start, row, time, why)
            if each not in found[-MAX_REPEATED:]:  # a rollback feeds events again
                found.append(each)

        runner.trace(dropped)

    def _runner(self, pattern: str) -> PatternRunner:
        self._connection.settle()
        known = {} if self._detection is None else self._detection.patterns
        if pattern not in known:
            near = name_hint(pattern, known, "pattern")
            raise GraphtideError(f"the program has no pattern named {pattern}", hint=near)
        return known[pattern]

    @synchronized
    def on_trace(
        self, callback: Callable[[TraceRecord], object]
    ) -> Callable[[TraceRecord], object]:
        """Call back with every step from here on: see `TraceRecord`. Usable as a decorator.

        The program is slower then. Callbacks must not change the graph.
        """
        self._connection.settle()
        detection = self._detection
        if not self._listeners:
            if detection is not None and detection.retracts and self._engine.rules.order:
                raise GraphtideError(
                    "a program with RETRACT and patterns is traced from its start, or not at all",
                    hint="call on_trace before the first event",
                )
            self._engine.observed = True
            self._engine.tracer = Tracer(self._parts, self._listeners)
        self._listeners.append(callback)
        return callback

    @synchronized
    def why_not(self, name: str, /, **values: object) -> Explanation:
        """Why a rule does not fire for some values now, or a pattern is not complete.

        Of a rule: which events are there, which test fails and by how much, which event spoils a
        NO EVENT, what of its facts fails. Of a pattern: its tokens, and what they wait for; on a
        durable graph also tokens that were dropped, when and why, by a replay of its journal.
        Events that are not retained any more are not known.
        """
        self._connection.settle()
        if self._detection is not None and name in self._detection.patterns:
            runner = self._detection.patterns[name]
            dropped = self._connection.dropped_tokens(self.name, name)
            return why_not.no_match(runner, self._connection.terms, values, dropped)
        off = next((r.group for r in self.program.rules if r.name == name), "")
        if off in self._disabled:
            hint = f'program.enable("{off}")'
            raise GraphtideError(f"the rule {name} is in the group {off}, which is off", hint=hint)
        if name not in self._engine.rules.names():
            patterns = {} if self._detection is None else self._detection.patterns
            known = [*self._engine.rules.names(), *patterns]
            near = name_hint(name, known, "rule or pattern")
            raise GraphtideError(f"the program has no rule or pattern named {name}", hint=near)
        entry = self._engine.rules[name]
        question = why_not.RuleQuestion(entry, self._connection.terms, self.clock, values)
        return question.explain(self.firings())

    # --- activations ---

    @synchronized
    def activations(self) -> list[Activation]:
        """Activations that wait to be fired, and those fired whose rows are still there."""
        return self._conflicts().activations()

    @synchronized
    def fire(self, activation: Activation | None = None) -> Activation | None:
        """Fire an activation, by default the first; None if there is none."""
        check_type(activation, "activation", Activation, None)
        conflicts = self._conflicts()
        chosen = conflicts.first() if activation is None else conflicts.checked(activation)
        if chosen is not None:
            self._connection.schedule.take_input(
                lambda: self._engine.fire(chosen), "fire", self.name, chosen.number
            )
            self._connection.reclaim()
        return chosen

    @synchronized
    def fire_all(self, until: Callable[[], bool] | None = None) -> int:
        """Fire activations until none is left or a condition holds; how many fired."""
        fired = 0
        while (until is None or not until()) and self.fire() is not None:
            fired += 1
            if fired > self._settings.max_firings:
                raise GraphtideError(
                    f"rules fire without end: {fired:,} firings",
                    hint="an action causes what it reacts to; raise max_firings if that is wanted",
                )
        return fired

    def _conflicts(self) -> ConflictSet:
        self._connection.settle()
        if self._engine.conflicts is None:
            raise GraphtideError(
                "this program has no conflict set: matches fire at once",
                hint='use run(…, firing="manual") or firing="agenda"',
            )
        return self._engine.conflicts

    # --- events and time ---

    @synchronized
    def assert_event(
        self,
        triples: Iterable[tuple[TermLike, TermLike, ObjectLike]],
        *,
        time: int | None = None,
        start: int | None = None,
        end: int | None = None,
        duration: int = 0,
    ) -> None:
        """Publish a graph event to this program only; its times are as in `LiveGraph.publish`.

        Where nobody could tell, it waits until somebody looks: many are then taken in at once.
        """
        graph, time = self._connection, ticks_or_none(time)
        # Triples that are computed on the way may use the graph: they are taken before any id is.
        listed = list(triples)
        if start is not None or end is not None or duration:
            time, duration = event_end(time, start, end, duration)
        if not duration and graph.defer(listed, time):
            return
        ids = [quad_ids(graph.terms, s, p, o, None)[:3] for s, p, o in listed]
        events = make_events([ids], [graph.clock if time is None else time], duration)
        graph.publish(events, self._engine)
        graph.reclaim()

    @synchronized
    def assert_events(
        self, events: Iterable[tuple[Iterable[tuple[TermLike, TermLike, ObjectLike]], int]]
    ) -> None:
        """Publish graph events to this program only, each given by its triples and its time.

        Times are in order; if they are not, none of the events is published.
        """
        graph = self._connection
        listed = [([*triples], ticks(time)) for triples, time in events]
        quads = [[quad_ids(graph.terms, *t, None)[:3] for t in triples] for triples, _ in listed]
        if listed:
            graph.publish(make_events(quads, [time for _, time in listed]), self._engine)
            graph.reclaim()

    @synchronized
    def advance(self, to: int) -> None:
        """Move the clock of the graph on."""
        self._connection.advance(ticks(to, "to"))
        self._connection.reclaim()

    @synchronized
    def close(self) -> None:
        """End the program: its rules, and its queries."""
        if self.closed:
            return
        self._connection.schedule.take_input(self._end, "stop", self.name)

    def _end(self) -> None:
        self.closed = True
        self._connection.unfollow()
        self._parts.close()
