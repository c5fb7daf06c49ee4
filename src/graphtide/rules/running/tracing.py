"""Tracing: what a running program does, step by step, for whoever asks.

A tracer compares the tokens, pending matches and activations after each event with those before
it. So nothing is recorded, and nothing costs time, while nobody listens. Patterns move their tokens
in Python from then on, because compiled ones do not say why they drop a token.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from graphtide.engine.events import GRAPH_EVENT, EventBatch
from graphtide.rules import temporal
from graphtide.rules.matching.types import TypeIndex, TypeMatcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from graphtide.patterns.general import OnDrop
    from graphtide.patterns.tokens import Token
    from graphtide.rdf.terms import Term
    from graphtide.rules.firing import Firing
    from graphtide.rules.matching.no_events import Denial, PendingMatch
    from graphtide.rules.running.parts import ProgramParts

TraceKind = Literal["event", "match", "token", "wait", "activation", "firing", "rollback"]
TraceStep = Literal["", "begins", "moves", "ends", "is dropped"]

_THREADS: Final[dict[str, int]] = {
    kind: at
    for at, kind in enumerate(("event", "match", "token", "wait", "activation", "firing"), start=1)
}
_PHASES: Final[dict[str, str]] = {"begins": "b", "moves": "n", "ends": "e", "is dropped": "e"}


@dataclass(frozen=True, slots=True)
class TraceRecord:
    """A step of a running program.

    An `event` comes, a pattern has a `match` (a complex event), a rule's `firing` is carried out. A
    `token` of a pattern, a match that has to `wait` for a NO EVENT, and an `activation` of the
    conflict set begin, move, end, or are dropped; they have a number, and `detail` says why.
    """

    time: int
    kind: TraceKind
    name: str
    values: Mapping[str, Term] = field(default_factory=dict)
    step: TraceStep = ""
    number: int | None = None
    detail: str = ""

    def line(self, short: Callable[[Term], str] = str) -> str:
        """The record as a line of text.

        >>> TraceRecord(5, "token", "Left", {}, "is dropped", 3, "its time ran out").line()
        '5 token Left 3 is dropped: its time ran out'
        """
        number = "" if self.number is None else f" {self.number}"
        step = f" {self.step}" if self.step else ""
        values = "".join(f" ?{name}={short(term)}" for name, term in self.values.items())
        detail = f": {self.detail}" if self.detail else ""
        return f"{self.time} {self.kind} {self.name}{number}{step}{values}{detail}"

    def as_json(self) -> dict[str, Any]:
        """The record as values of JSON."""
        values = {name: str(term) for name, term in self.values.items()}
        found = {"time": self.time, "kind": self.kind, "name": self.name, "values": values}
        more = {"step": self.step, "number": self.number, "detail": self.detail}
        return {**found, **{name: value for name, value in more.items() if value not in ("", None)}}

    def chrome(self, tick_ms: int) -> dict[str, Any]:
        """The record in the trace event format of Chrome, which Perfetto reads.

        Tokens, waits and activations are spans; everything else is an instant.
        """
        values = {name: str(term) for name, term in self.values.items()}
        found: dict[str, Any] = {
            "name": self.name,
            "cat": self.kind,
            "ph": _PHASES.get(self.step, "i"),
            "ts": self.time * tick_ms * 1000,
            "pid": 1,
            "tid": _THREADS.get(self.kind, 0),
            "args": {**values, **({"detail": self.detail} if self.detail else {})},
        }
        if self.number is not None and self.step:
            return {**found, "id": f"{self.kind} {self.name} {self.number}"}
        return {**found, "s": "t"}


def chrome_trace(records: Iterable[TraceRecord], tick_ms: int) -> Iterator[str]:
    """The lines of a file in the trace event format."""
    yield "["
    for kind, number in _THREADS.items():
        named = {"name": "thread_name", "ph": "M", "pid": 1, "tid": number, "args": {"name": kind}}
        yield json.dumps(named) + ","
    for record in records:
        yield json.dumps(record.chrome(tick_ms), ensure_ascii=False) + ","
    yield json.dumps({"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "graphtide"}})
    yield "]"


WaitKey = tuple[str, tuple[int, ...], tuple[int, ...]]
"""A match that waits: its rule, its events by their order, and the ids of its values."""

TokenState = tuple[tuple[int, ...], tuple[int, ...]]
"""Where a token is in the automaton, and its values."""


class Tracer:
    """Tells listeners what the parts of a program do."""

    def __init__(
        self, parts: ProgramParts, listeners: list[Callable[[TraceRecord], object]]
    ) -> None:
        self._parts = parts
        self._listeners = listeners
        self._terms = parts.graph.terms
        self._names = [type_.name for type_ in parts.types]
        self._types = TypeIndex()
        for type_ in parts.types:
            self._types.add(TypeMatcher(type_, self._terms))
        self._parameters = [[v.name for v in type_.parameters] for type_ in parts.types]
        self._patterns = {} if parts.detection is None else parts.detection.patterns
        self._dropped: list[tuple[str, int, tuple[int, ...], int, str]] = []
        self._gone: set[tuple[str, int]] = set()
        self._fired: list[tuple[str, dict[str, Term]]] = []
        for name, runner in self._patterns.items():
            runner.trace(self._on_drop(name))
        self._numbered = 0
        self._tokens = self._all_tokens()
        self._waiting: dict[WaitKey, tuple[int, PendingMatch]] = {}
        self._see_waiting(tell=False)
        self._active = self._all_activations()

    def _tell(self, record: TraceRecord) -> None:
        for listener in tuple(self._listeners):
            listener(record)

    @property
    def _clock(self) -> int:
        return self._parts.engine.clock

    # --- what the engine reports ---

    def take(self, events: EventBatch) -> None:
        """Events are about to be matched with the rules; tokens have moved with them already."""
        named: dict[int, list[TraceRecord]] = {}
        hits = self._types.hits(events)
        for number, rows in hits.items():
            name = self._names[number]
            kind: TraceKind = "match" if name in self._patterns else "event"
            for index, *ids in rows.tolist():
                values = self._values(self._parameters[number], ids)
                time = int(events.ends[index])
                named.setdefault(index, []).append(TraceRecord(time, kind, name, values))
        for index, time in enumerate(events.ends.tolist()):
            typed = events.types is not None and events.types[index] != GRAPH_EVENT
            if index in named or not typed:
                other = TraceRecord(time, "event", "that no rule or pattern names")
                for record in named.get(index, [other]):
                    self._tell(record)
        self._see_tokens()

    def fire(self, firing: Firing) -> None:
        """A rule fires."""
        self._fired.append((firing.rule, firing.values))
        self._see_waiting()
        self._see_activations((firing.rule, firing.values))
        events = ", ".join(f"{name} at {end}" for name, (_, end) in firing.events.items())
        self._tell(
            TraceRecord(
                firing.time, "firing", firing.rule, firing.values, "", firing.number, events
            )
        )

    def activate(self, firing: Firing) -> None:
        """A match is put into the conflict set."""
        self._fired.append((firing.rule, firing.values))
        self._see_waiting()
        self._see_activations()

    def settle(self) -> None:
        """An event, or what was due, is through."""
        self._see_tokens()
        self._see_waiting()
        self._see_activations()
        self._fired.clear()

    def roll_back(self) -> None:
        """A cascade without end is rolled back."""
        self._tell(TraceRecord(self._clock, "rollback", "a cascade without end"))
        self._dropped.clear()
        self._tokens = self._all_tokens()
        self._waiting.clear()
        self._see_waiting(tell=False)
        self._active = self._all_activations()

    # --- activations ---

    def _all_activations(self) -> dict[int, Firing]:
        conflicts = self._parts.engine.conflicts
        every = [] if conflicts is None else conflicts.activations()
        return {each.number: each.firing for each in every if each.state != "fired"}

    def _see_activations(self, fired: tuple[str, dict[str, Term]] | None = None) -> None:
        """Tell which activations are new, `fired`, or not valid any more."""
        before, self._active = self._active, self._all_activations()
        for number, firing in self._active.items():
            if number not in before:
                self._activation(number, firing, "begins", "")
        for number, firing in before.items():
            if number not in self._active:
                ends = fired == (firing.rule, firing.values)
                why = "" if ends else "what it matched, or a fact, is not there any more"
                self._activation(number, firing, "ends" if ends else "is dropped", why)

    def _activation(self, number: int, firing: Firing, step: TraceStep, why: str) -> None:
        values = firing.values
        self._tell(TraceRecord(self._clock, "activation", firing.rule, values, step, number, why))

    # --- tokens ---

    def _on_drop(self, pattern: str) -> OnDrop:
        def dropped(token: Token, values: tuple[int, ...], time: int, why: str) -> None:
            self._dropped.append((pattern, token.order, values, time, why))

        return dropped

    def _all_tokens(self) -> dict[tuple[str, int], TokenState]:
        return {
            (name, token.order): (
                tuple(sorted({each.position for each in token.configurations})),
                token.configurations[0].values,
            )
            for name, runner in self._patterns.items()
            for token in runner.detector.tokens()
            if token.configurations
        }

    def _see_tokens(self) -> None:
        """Tell which tokens have begun, moved, ended and been dropped since the last look."""
        before, self._tokens = self._tokens, self._all_tokens()
        for key, (places, values) in self._tokens.items():
            if before.get(key) != (places, values):
                step: TraceStep = "moves" if key in before else "begins"
                self._tell(self._token(key, step, values, f"at {' or '.join(map(str, places))}"))
        reasons: dict[tuple[str, int], str] = {}
        for pattern, order, values, time, why in self._dropped:
            key = pattern, order
            if key not in self._gone and key not in self._tokens:
                self._gone.add(key)
                reasons[key] = why
                self._tell(self._token(key, "is dropped", values, why, time))
        self._dropped.clear()
        for key, (_, values) in before.items():
            if key not in self._tokens and key not in reasons:
                self._tell(self._token(key, "ends", values, ""))

    def _token(
        self, key: tuple[str, int], step: TraceStep, values: tuple[int, ...], detail: str,
        time: int | None = None,
    ) -> TraceRecord:  # fmt: skip
        pattern, order = key
        names = [v.name for v in self._patterns[pattern].detector.automaton.variables]
        row = self._values(names, values)
        when = self._clock if time is None else time
        return TraceRecord(when, "token", pattern, row, step, order, detail)

    def _values(self, names: Iterable[str], ids: Iterable[int]) -> dict[str, Term]:
        return {n: self._terms.decode(i) for n, i in zip(names, ids, strict=False) if i}

    # --- matches that wait for a NO EVENT ---

    def _see_waiting(self, *, tell: bool = True) -> None:
        """Tell which matches have begun to wait, have fired and been dropped since."""
        found: dict[WaitKey, PendingMatch] = {
            _wait_key(entry.matcher.rule.name, each): each
            for entry in self._parts.engine.rules
            if entry.matcher.absence is not None
            for each in entry.matcher.absence.pending()
        }
        for key in [key for key in self._waiting if key not in found]:
            number, gone = self._waiting.pop(key)
            rule, values = key[0], self._binding(gone)
            if (rule, values) in self._fired:
                self._tell(TraceRecord(self._clock, "wait", rule, values, "ends", number))
            else:
                why = self._why_dropped(rule, gone)
                self._tell(
                    TraceRecord(self._clock, "wait", rule, values, "is dropped", number, why)
                )
        for key, each in found.items():
            if key not in self._waiting:
                number, self._numbered = self._numbered, self._numbered + 1
                self._waiting[key] = number, each
                values, until = self._binding(each), f"until {each.until:g}"
                if tell:
                    record = TraceRecord(
                        self._clock, "wait", key[0], values, "begins", number, until
                    )
                    self._tell(record)

    def _binding(self, waiting: PendingMatch) -> dict[str, Term]:
        binding = waiting.match.binding
        return {v.name: self._terms.decode(i) for v, i in binding.items() if i}

    def _why_dropped(self, rule: str, gone: PendingMatch) -> str:
        matcher = self._parts.engine.rules[rule].matcher
        assert matcher.absence is not None  # noqa: S101 - a match has waited
        for condition in matcher.rule.negative:
            for denial in matcher.absence.events(condition):
                if self._forbids(matcher.rule.test, denial, gone):
                    return f"NO EVENT {condition.name} came at {denial.event.span.end}"
        if gone.until < self._clock:
            return "its facts do not hold any more"
        return "an event of it was retracted"

    def _forbids(self, test: temporal.Test, denial: Denial, gone: PendingMatch) -> bool:
        """Whether an event agrees with a match, by values and by the tests that name it."""
        name, match = denial.condition.name, gone.match
        if any(match.binding.get(v, i) != i for v, i in denial.binding.items()):
            return False
        spans = {other: event.span for other, event in match.events.items()}
        spans[name] = denial.event.span
        both = {**denial.binding, **match.binding}
        values = {v: self._terms.decode(i) for v, i in both.items() if i}
        tests = [each for each in temporal.conjuncts(test) if name in temporal.named(each)]
        return all(temporal.holds(each, spans, values) for each in tests)


def _wait_key(rule: str, waiting: PendingMatch) -> WaitKey:
    match = waiting.match
    return (
        rule,
        tuple(event.order for event in match.events.values()),
        tuple(match.binding.values()),
    )
