"""What a schedule puts out by the definitions: rules, patterns, queries and windows from scratch.

The ways of `schedules.py` compare the engine with itself. This model shares no code with it: the
history of a rule is a list that is joined with itself, a pattern is read by `event_oracle.py`, a
query is evaluated by `reference.py` on all quads after each transaction, and a window holds the
events of a list whose times are within its borders. What comes when follows docs/rules.md ("Firing
order", "Absence", "Errors", "Endless cascades") and docs/windows.md ("Time").

A schedule of which the definitions here do not speak raises `Unforeseen`.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import product
from math import inf
from typing import TYPE_CHECKING, Final, Literal

from pyoxigraph import NamedNode

from graphtide.lang.sparql.parse import parse_query
from graphtide.lang.tide.program import Program
from oracles.event_oracle import EventOracle, OracleMatch
from oracles.event_readings import atoms_of
from oracles.reference import evaluate_query
from oracles.transactions import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from graphtide.lang.tide import ast as tide
    from oracles.schedules import Item, Schedule, Triple

Row = tuple[str | None, ...]
Answer = Counter[Row]
Lines = list[str]
Change = tuple[int, "Triple"]

PREFIX: Final = f"PREFIX : <{NAMESPACE}>\n"
LONG_AGO: Final = -(1 << 61)
MAX_ROWS: Final = 24
"""Events that a pattern is given: dividing them among its parts takes exponential time."""


class Unforeseen(Exception):  # noqa: N818 - no error: a schedule that is not covered
    """The model does not cover a schedule."""


class EndlessError(Exception):
    """Actions have caused more firings than one cascade may have."""


class CallError(Exception):
    """A function of CALL has failed."""


# --- what programs declare, read from their texts ---


@dataclass(frozen=True)
class Standing:
    """A query: its variables and its text; with windows, what it puts out and their clauses."""

    name: str
    text: str
    variables: tuple[str, ...]
    output: str = ""
    windows: tuple[WindowClause, ...] = ()


@dataclass(frozen=True)
class WindowClause:
    """A window on a stream, and the predicate of its events that the query asks for."""

    stream: str
    kind: Literal["RANGE", "ELEMENTS"]
    length: int
    step: int
    predicate: str


@dataclass(frozen=True)
class Denied:
    """NO EVENT: its type and variable, and between which ticks after the event `a` it is denied."""

    type: str
    variable: str
    low: int
    high: int


@dataclass(frozen=True)
class Rule:
    """A rule: events by name with type, variable and bounds after `a`; facts; NO EVENT; actions."""

    number: int
    name: str
    priority: int
    events: tuple[tuple[str, str, str, tuple[int, int] | None], ...]
    fact: str
    denied: Denied | None
    actions: tuple[str, ...]


@dataclass(frozen=True)
class Declared:
    """A program, by kind of declaration. `events` have their predicate, `changes` their source."""

    events: dict[str, str]
    changes: dict[str, tuple[str, str]]
    queries: tuple[Standing, ...]
    patterns: tuple[tide.PatternDeclaration, ...]
    texts: dict[str, str]
    rules: tuple[Rule, ...]
    order: tuple[str, ...]
    used: frozenset[str]
    """The types that rules and patterns name: other events of queries are none."""


_GRAPH_EVENT = re.compile(r"EVENT (\w+)\(\?x\) AS \{ \?x :(\w+) \?y \}")
_CHANGE = re.compile(r"EVENT (\w+)\(\?x\) ON (APPEAR|DISAPPEAR|UPDATE) OF (\w+)\(\?x\)")
_STATE = re.compile(r"EVENT (\w+)\(\?x\) ON CHANGE OF \?x FROM \{ (.*) \} TO \{ (.*) \}")
_QUERY = re.compile(r"QUERY (\w+) AS (.*)")
_WINDOWED = re.compile(r"REGISTER (\w+) :\w+ AS (SELECT .*?)(FROM NAMED .*) WHERE \{ (.*) \}")
_WINDOW = re.compile(r"FROM NAMED WINDOW :(\w) ON :(\w) \[(RANGE|ELEMENTS) (\d+) STEP (\d+)\]")
_PART = re.compile(r"WINDOW :(\w) \{ \?x :(\w+) \?(\w) \}")
_RULE = re.compile(r"RULE (\w+)(?: PRIORITY (\d+))? (.*) THEN (.*)")
_FACT = re.compile(r"FACT \{ \?x :(\w+) \?y \}")
_EVENT_USE = re.compile(
    r"(NO )?EVENT (\w) = (\w+)\(\?(\w)\)(?: (AFTER|BEFORE)\[(-?\d+),(\d+)\] a)?"
)


@cache
def declared(program: tuple[str, ...]) -> Declared:
    """Read the declarations of a program."""
    found = Declared({}, {}, (), (), {}, (), (), frozenset())
    queries: list[Standing] = []
    rules: list[Rule] = []
    for text in program:
        match text.split(maxsplit=1)[0]:
            case "EVENT":
                _read_event(text, found)
            case "QUERY":
                queries.append(_query_of(text))
            case "RULE":
                rules.append(_rule_of(text, len(rules)))
            case "PATTERN":
                found.texts[text.split()[1].partition("(")[0]] = text
    patterns = Program.parse(PREFIX + "\n".join(program)).patterns if found.texts else ()
    used = {atom.event for pattern in patterns for atom in atoms_of(pattern.body)}
    for rule in rules:
        used |= {type_ for _, type_, *_ in rule.events}
        used |= set() if rule.denied is None else {rule.denied.type}
    return replace(
        found,
        queries=tuple(queries),
        rules=tuple(rules),
        patterns=tuple(patterns),
        order=(*found.events, *found.changes),
        used=frozenset(used),
    )


def _read_event(text: str, into: Declared) -> None:
    if given := _GRAPH_EVENT.fullmatch(text):
        into.events[given[1]] = given[2]
    elif (given := _CHANGE.fullmatch(text)) or (given := _STATE.fullmatch(text)):
        into.changes[given[1]] = given[2], given[3]
    else:
        raise Unforeseen(text)


def _query_of(text: str) -> Standing:
    given = _QUERY.fullmatch(text)
    if given is None:
        raise Unforeseen(text)
    name, body = given.groups()
    windowed = _WINDOWED.fullmatch(body)
    if windowed is None:
        parsed = parse_query(PREFIX + body)
        return Standing(name, PREFIX + body, tuple(v.name for v in parsed.variables))
    output, select, clauses, where = windowed.groups()
    asked = {part[1]: part[2] for part in _PART.finditer(where)}
    windows = tuple(
        WindowClause(stream, kind, int(length), int(step), asked[window])
        for window, stream, kind, length, step in _WINDOW.findall(clauses)
    )
    names = [window for window, *_ in _WINDOW.findall(clauses)]
    for place, window in enumerate(names):
        where = re.sub(rf"WINDOW :{window} \{{ (.*?) \}}", rf"GRAPH :window{place} {{ \1 }}", where)
    parsed = parse_query(f"{PREFIX}{select} {{ {where} }}")
    variables = tuple(v.name for v in parsed.variables)
    return Standing(name, f"{PREFIX}{select} {{ {where} }}", variables, output, windows)


def _rule_of(text: str, number: int) -> Rule:
    given = _RULE.fullmatch(text)
    if given is None:
        raise Unforeseen(text)
    name, priority, body, actions = given.groups()
    fact = _FACT.search(body)
    events: list[tuple[str, str, str, tuple[int, int] | None]] = []
    denied: Denied | None = None
    if body.startswith("ON "):
        type_ = body.split()[1].partition("(")[0]
        events.append((type_, type_, "x", None))
    for no, alias, type_, variable, word, low, high in _EVENT_USE.findall(body):
        bounds = (int(low), int(high)) if word else None
        if no and bounds:
            first, last = bounds if word == "AFTER" else (-bounds[1], -bounds[0])
            denied = Denied(type_, variable, first, last)
        elif no or word == "BEFORE":
            raise Unforeseen(text)
        else:
            events.append((alias, type_, variable, bounds))
    listed = tuple(actions.split(" ; "))
    return Rule(
        number, name, int(priority or 0), tuple(events), fact[1] if fact else "", denied, listed
    )


# --- events and matches ---


@dataclass(eq=False)
class Event:
    """An event: its types, each with the values of ?x; and how many transactions came before it.

    `since` is None until the event is matched, if that is what counts.
    """

    time: int
    types: dict[str, tuple[str, ...]]
    since: int | None = None
    triples: tuple[Triple, ...] = ()
    is_typed: bool = False
    number: int = -1
    readings: list[tuple[str, str]] = field(default_factory=list)
    """Type and value of each, in the order of types."""

    @property
    def before(self) -> int:
        """How many transactions came before it."""
        return 0 if self.since is None else self.since


@dataclass(eq=False)
class Match:
    """The events of a match by name, its values, and until when it has waited, if it has."""

    rule: Rule
    events: dict[str, Event]
    values: dict[str, str]
    time: int

    @property
    def rank(self) -> tuple[object, ...]:
        """Matches of one event fire in this order."""
        texts = [f"<{NAMESPACE}{value}>" for _, value in sorted(self.values.items())]
        return -self.rule.priority, self.rule.number, texts


# --- queries and windows ---


class PlacedWindow:
    """A window: the events of its stream so far, and its closes."""

    def __init__(self, clause: WindowClause, needed: tuple[StreamState, ...], align: str) -> None:
        self.clause, self.needed, self.align = clause, needed, align
        self.last: int | None = None
        self.taken = 0
        """Triples of the stream that are or were in a window of elements."""
        self.content: frozenset[Triple] = frozenset()

    @property
    def stream(self) -> StreamState:
        """The stream of its events."""
        return next(each for each in self.needed if each.name == self.clause.stream)

    @property
    def lead(self) -> int:
        """How long after a close an event may still be part of the window."""
        return 1 if self.align in ("w3c", "yabench") else 0

    def bounds(self, close: int) -> tuple[int, int]:
        """The first and the last time of an event in the window that closes then."""
        match self.align:
            case "w3c":
                return close - self.clause.length + 1, close
            case "yabench":
                return close - self.clause.length, close
            case _:
                return close - self.clause.length, close - 1

    def next_close(self) -> int | None:
        """When it closes next; None before its first event."""
        log = self.stream.log
        if self.clause.kind == "ELEMENTS":
            last = self.taken + self.clause.step
            return log[last - 1][0] if last <= len(log) else None
        if self.last is not None:
            return self.last + self.clause.step
        if not log:
            return None
        step, close = self.clause.step, self.clause.length
        close = close if self.align == "close" else step
        while self.bounds(close)[1] < log[0][0]:
            close += step
        return close

    def due(self) -> int | None:
        """The watermark at which it closes next."""
        close = self.next_close()
        if close is None:
            return None
        return close + (1 if self.clause.kind == "ELEMENTS" else self.lead)

    def close(self) -> int:
        """Close it; when that is."""
        close, log = self.next_close(), self.stream.log
        assert close is not None
        if self.clause.kind == "ELEMENTS":
            self.taken += self.clause.step
            inside = log[max(0, self.taken - self.clause.length) : self.taken]
        else:
            self.last = close
            low, high = self.bounds(close)
            inside = [each for each in log if low <= each[0] <= high]
        self.content = frozenset(triple for _, triple in inside)
        return close


class Watched:
    """A standing query with its answer; one over windows with what it has put out."""

    def __init__(self, standing: Standing, windows: tuple[PlacedWindow, ...]) -> None:
        self.standing, self.windows = standing, windows
        self.answer: Answer = Counter()
        self.before: Answer = Counter()
        """The answer of the last transaction but one."""
        self.reported: Answer = Counter()
        self.lines: Lines = []
        self.numbers: list[int] = []
        """Those of the transactions that have changed the answer."""

    def evaluate(self, graph: frozenset[Triple]) -> None:
        """Evaluate the query on the graph and the contents of its windows."""
        contents = tuple(window.content for window in self.windows)
        self.before, self.answer = self.answer, answer_of(self.standing.text, graph, contents)

    def changed(self) -> Answer:
        """What the last transaction has changed."""
        difference = Counter(self.answer)
        difference.subtract(self.before)
        return Counter({row: many for row, many in difference.items() if many})

    def note(self, time: int, number: int) -> None:
        """Put out the delta of a transaction."""
        if not self.windows and (changed := self.changed()):
            self.numbers.append(number)
            rows = sorted(f"{n:+d} {self._shown(row)}" for row, n in changed.items())
            self.lines.append(f"at {time}: {rows}")

    def report(self, close: int) -> None:
        """Put out the result of a close."""
        match self.standing.output:
            case "ISTREAM":
                rows = self.answer - self.reported
            case "DSTREAM":
                rows = self.reported - self.answer
            case _:
                rows = self.answer
        self.reported = self.answer
        self.lines.append(f"at {close}: {sorted(map(self._shown, rows.elements()))}")

    def _shown(self, row: Row) -> str:
        named = zip(self.standing.variables, row, strict=True)
        return " ".join(f"{name}={value}" for name, value in named if value is not None)

    def events(self, kind: str) -> Iterator[str]:
        """The values of ?x of rows that appear, disappear, or stay while others change."""
        at = self.standing.variables.index("x")
        now, before = _projected(self.answer, at), _projected(self.before, at)
        for value in sorted({*now, *before}):
            there, was = now[value] > 0, before[value] > 0
            changed = any(
                row[at] == value and (self.answer[row] > 0) is not (self.before[row] > 0)
                for row in {*self.answer, *self.before}
            )
            found = {"APPEAR": there and not was, "DISAPPEAR": was and not there}
            found["UPDATE"] = there and was and changed
            if found[kind]:
                yield value


def _projected(answer: Answer, at: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for row, many in answer.items():
        found[str(row[at])] += many
    return found


@cache
def answer_of(
    text: str, graph: frozenset[Triple], contents: tuple[frozenset[Triple], ...]
) -> Answer:
    """The answer of a query on a graph, with the contents of windows as named graphs."""
    node = partial(NamedNode)
    quads = [
        (*(node(NAMESPACE + name) for name in triple), where)
        for triples, where in (
            (graph, None),
            *((c, node(f"{NAMESPACE}window{at}")) for at, c in enumerate(contents)),
        )
        for triple in triples
    ]
    found = evaluate_query(parse_query(text), quads)  # type: ignore[arg-type] # three names each
    return Counter({tuple(map(_short, row)): many for row, many in found.items()})


def _short(term: object) -> str | None:
    if term is None:
        return None
    return str(term).removeprefix("<").removesuffix(">").removeprefix(NAMESPACE)


# --- streams ---


@dataclass(eq=False)
class StreamState:
    """A stream: its watermark, what waits for late events, and all that has been taken in."""

    name: str
    lateness: int
    watermark: int = LONG_AGO
    newest: int = LONG_AGO
    waiting: list[Event] = field(default_factory=list)
    early: set[int] = field(default_factory=set)
    """The numbers of events that wait for windows, and that rules have seen."""
    log: list[tuple[int, Triple]] = field(default_factory=list)
    late: int = 0
    unpublished: int = 0
    releasing: bool = False

    def raise_to(self, time: int) -> None:
        """No event before that time comes any more."""
        self.newest, self.watermark = max(self.newest, time), max(self.watermark, time)


ALL: Final = "all streams"


# --- programs ---


@dataclass(eq=False)
class PatternState:
    """A pattern: its oracle, what it was given, and its complex events."""

    declaration: tide.PatternDeclaration
    text: str
    oracle: EventOracle
    given: list[tuple[Event | None, int, list[tuple[str, str]]]] = field(default_factory=list)
    """Events with their readings, or None where time has passed."""
    found: list[tuple[str, int, int]] = field(default_factory=list)

    def occurrences(self, readings: list[tuple[str, str]]) -> list[list[tuple[str, str]]]:
        """How often an event counts: once for each value that all parts share, or of a type."""
        atoms = list(atoms_of(self.declaration.body))
        named = {atom.event for atom in atoms}
        rows = [reading for reading in readings if reading[0] in named]
        if len(rows) < 2:
            return [rows]
        shares = len({atom.arguments for atom in atoms}) == 1 and None not in atoms[0].arguments
        found: dict[object, list[tuple[str, str]]] = {}
        seen: Counter[str] = Counter()
        for type_, value in rows:
            key = value if shares else seen[type_]
            seen[type_] += 1
            found.setdefault(key, []).append((type_, value))
        if len(found) > 1 and not (shares and self.declaration.context == "CHRONICLE"):
            raise Unforeseen("what one way to read an event denies another")
        return list(found.values())


class ProgramState:
    """A running program: the histories of its rules, its patterns, its firings."""

    def __init__(self, number: int, text: tuple[str, ...], model: Model) -> None:
        self.number, self.model, self.declared = number, model, declared(text)
        self.patterns = [
            PatternState(each, self.declared.texts[each.name], _oracle_of(each, self.declared))
            for each in self.declared.patterns
        ]
        self.history: list[Event] = []
        self.pending: list[Match] = []
        self.firings: Lines = []
        self.problems: Lines = []
        self.emitted: set[int] = set()
        self.outbox: deque[tuple[int, str, tuple[Triple, ...]]] = deque()
        self.caused = 0
        self.ended: tuple[int, int] = (LONG_AGO, 0)
        self.saved: Callable[[], None] | None = None
        self.entered = -1

    # --- cascades ---

    def enter(self, depth: int) -> None:
        """Take part in the cascade under way."""
        if self.entered != self.model.cascade:
            self.entered, self.caused, self.saved = self.model.cascade, 0, None
        if depth:
            self.save()

    def save(self) -> None:
        """Save what to go back to if the cascade has no end; before its first action."""
        if self.saved is not None:
            return
        history, pending, firings = list(self.history), list(self.pending), len(self.firings)
        given = [(len(each.given), len(each.found)) for each in self.patterns]
        lists = [list(each.given) for each in self.patterns]
        born = {triple: self.model.born[triple] for triple in self.model.graph}

        def restore() -> None:
            self.history, self.pending = history, pending
            del self.firings[firings:]
            for each, inputs, (_, found) in zip(self.patterns, lists, given, strict=True):
                each.given = inputs
                del each.found[found:]
                self._replay(each)
            for triple in self.model.graph & born.keys():
                self.model.born[triple] = born[triple]

        self.saved = restore

    def abort(self) -> None:
        """The cascade has no end: drop its events, restore memories."""
        self.outbox.clear()
        if self.entered == self.model.cascade and self.saved is not None:
            self.saved()

    # --- input ---

    def event_of(self, event: Event) -> Event:
        """An event with the types that this program gives it."""
        own = copy(event)
        if not event.is_typed:
            own.types = {}
            for name, predicate in self.declared.events.items():
                values = {s for s, p, _ in event.triples if p == predicate}
                if values:
                    own.types[name] = tuple(sorted(values))
        return own

    def collect(self, transaction: int) -> None:
        """Queue the events that a transaction has caused."""
        events: list[Event] = []
        for name, (kind, source) in self.declared.changes.items():
            events += [
                Event(self.model.clock, {name: (value,)}, transaction + 1, is_typed=True)
                for value in self._changed(kind, source)
            ]
        if events:
            depth = self.model.depth
            self.model.cause(partial(self.take, events, depth, together=True))

    def _changed(self, kind: str, source: str) -> Iterable[str]:
        if kind in ("APPEAR", "DISAPPEAR", "UPDATE"):
            return self.model.watched[source].events(kind)
        left, entered = (
            {(s, o) for s, p, o in triples if p == predicate}
            for predicate, triples in (
                (kind.split()[1].removeprefix(":"), self.model.removed),
                (source.split()[1].removeprefix(":"), self.model.added),
            )
        )
        return sorted({s for s, _ in left & entered})

    def take(self, events: Sequence[Event], depth: int, *, together: bool = False) -> None:
        """Match events and fire; those of one transaction `together`, before any action."""
        self.enter(depth)
        own = list(map(self.event_of, events))
        if together:
            every = own + self._completed(own)
            self._take_part(every, depth)
            return
        for one in own:
            for each in [one, *self._completed([one])]:
                self._take_part([each], depth)

    def _take_part(self, events: list[Event], depth: int) -> None:
        for each in events:
            each.since = self.model.done if each.since is None else each.since
        self.history += events
        self.pending = [m for m in self.pending if not _spoils(m.rule, m.events, m.values, events)]
        found: list[Match] = []
        for rule in self.declared.rules:
            for match in self._matches(rule, events):
                if rule.denied is None:
                    found.append(match)
                    continue
                match.time = match.events["a"].time + rule.denied.high
                if not _spoils(rule, match.events, match.values, self.history):
                    self.pending.append(match)
        if found:
            self.save()
            self._fire(found, depth)

    def _matches(self, rule: Rule, new: list[Event]) -> Iterator[Match]:
        """The matches with at least one of the new events."""
        options = [
            [(e, value) for e in self.history for value in e.types.get(type_, ())]
            for _, type_, _, _ in rule.events
        ]
        for chosen in product(*options):
            if not any(event is each for event, _ in chosen for each in new):
                continue
            values: dict[str, str] = {}
            agree = all(
                values.setdefault(variable, value) == value
                for (_, _, variable, _), (_, value) in zip(rule.events, chosen, strict=True)
            )
            first = chosen[0][0].time
            timely = all(
                bounds is None or bounds[0] <= event.time - first <= bounds[1]
                for (*_, bounds), (event, _) in zip(rule.events, chosen, strict=True)
            )
            if not (agree and timely):
                continue
            events = {name: e for (name, *_), (e, _) in zip(rule.events, chosen, strict=True)}
            time = max(event.time for event in events.values())
            for row in self._facts(rule, events, values):
                yield Match(rule, events, row, time)

    def _facts(
        self, rule: Rule, events: dict[str, Event], values: dict[str, str]
    ) -> Iterator[dict[str, str]]:
        """The values of a match with each of its facts, which hold since before its events."""
        if not rule.fact:
            yield values
            return
        since = min(event.before for event in events.values())
        for s, p, o in sorted(self.model.graph):
            fits = values.get("x", s) == s and values.get("y", o) == o
            if p == rule.fact and fits and self.model.born[s, p, o] < since:
                yield {**values, "x": s, "y": o}

    # --- patterns ---

    def _completed(self, events: list[Event]) -> list[Event]:
        """The complex events that some events complete, which come right after them."""
        if not self.patterns:
            return []
        order = {name: at for at, name in enumerate(self.declared.order)}
        rows: list[tuple[Event, list[tuple[str, str]]]] = []
        for event in events:
            event.readings = [
                (name, value)
                for name in sorted(event.types, key=order.__getitem__)
                for value in event.types[name]
            ]
            rows.append((event, event.readings))
        if len(rows) > 1:
            rows.sort(key=lambda row: [(order[name], value) for name, value in row[1]])
        found: list[Event] = []
        for each in self.patterns:
            for event, readings in rows:
                if not event.is_typed or readings[0][0] in self.declared.used:
                    for occurrence in each.occurrences(readings):
                        found += self._step(each, event, occurrence)
        for event in found:
            event.since = events[0].since
        return found

    def _step(
        self, pattern: PatternState, event: Event, readings: list[tuple[str, str]]
    ) -> list[Event]:
        pattern.given.append((event, event.time, readings))
        if len(pattern.oracle.stream) > MAX_ROWS:
            raise Unforeseen("a pattern with many events")
        return self._noted(pattern, _stepped(pattern.oracle, event.time, readings))

    def _noted(self, pattern: PatternState, found: Iterable[tuple[str, int, int]]) -> list[Event]:
        """Complex events, which are listed, as events."""
        listed = list(found)
        pattern.found += listed
        name = pattern.declaration.name
        return [Event(time, {name: (x,)}, is_typed=True) for x, _, time in listed]

    def retract(self, event: Event) -> None:
        """Forget an event, as if patterns had never had it."""
        if any(each.declaration.context == "UNRESTRICTED" for each in self.patterns):
            raise Unforeseen("the order of all matches without an event")
        same = {id(each) for each in self.history if each is event}
        self.history = [each for each in self.history if id(each) not in same]
        self.pending = [m for m in self.pending if all(e is not event for e in m.events.values())]
        for pattern in self.patterns:
            left = [given for given in pattern.given if given[0] is not event]
            if len(left) < len(pattern.given):
                pattern.given = left
                self._replay(pattern)
                pattern.oracle.advance(self.model.clock)

    def _replay(self, pattern: PatternState) -> None:
        pattern.oracle = _oracle_of(pattern.declaration, self.declared)
        for event, time, readings in pattern.given:
            if event is None:
                _ended(pattern.oracle, time)
            else:
                _stepped(pattern.oracle, time, readings)

    # --- time ---

    def next_timer(self) -> int | None:
        """The time of the next timer of a pattern."""
        timers = (_next_timer(pattern.oracle) for pattern in self.patterns)
        return min((timer for timer in timers if timer is not None), default=None)

    def next_end(self) -> int | None:
        """The next time whose end makes something due."""
        ends = [match.time for match in self.pending]
        timer = self.next_timer()
        return min([*ends, *([] if timer is None else [timer])], default=None)

    def end_time(self, time: int) -> None:
        """A time ends: timers of patterns come before absences."""
        self.enter(0)
        found: list[Event] = []
        for pattern in self.patterns:
            pattern.given.append((None, time, []))
            matches = _ended(pattern.oracle, time)
            if matches and " SKIP " in pattern.text:
                raise Unforeseen("what a match by time alone skips")
            found += self._noted(pattern, matches)
        if found:
            self._count_end(time)
            self._take_part(found, 0)
            return
        over = [match for match in self.pending if match.time <= time]
        self.pending = [match for match in self.pending if match.time > time]
        held = [match for match in over if self._still_holds(match)]
        if held:
            self._count_end(time)
            self.save()
            self._fire(held, 0)

    def _count_end(self, time: int) -> None:
        ended, again = self.ended
        self.ended = time, again + 1 if ended == time else 0
        if self.ended[1] > 3:  # each may cause several
            raise Unforeseen("a time that has no end")

    def _still_holds(self, match: Match) -> bool:
        if not match.rule.fact:
            return True
        fact = match.values["x"], match.rule.fact, match.values["y"]
        since = min(event.before for event in match.events.values())
        return fact in self.model.graph and self.model.born[fact] < since

    # --- actions ---

    def _fire(self, matches: list[Match], depth: int) -> None:
        self.model.depth = depth + 1
        for match in sorted(matches, key=lambda each: each.rank):
            spans = {name: (event.time, event.time) for name, event in match.events.items()}
            values = " ".join(f"{name}={value}" for name, value in self._in_order(match))
            self.firings.append(
                f"{len(self.firings)}: {match.rule.name} at {match.time} {values} {spans}"
            )
            if depth:
                self.caused += 1
                if self.caused > self.model.max_firings:
                    self.model.change_present(dict(self.model.journal))
                    raise EndlessError
            try:
                self._act(match)
            except CallError as error:
                text = f"the rule {match.rule.name} failed at {match.time} with"
                if self.model.schedule.on_error == "skip":
                    self.problems.append(text)
                else:
                    self.model.errors.append(f"ActionError: {text}")
                    del error

    @staticmethod
    def _in_order(match: Match) -> list[tuple[str, str]]:
        variables = list(dict.fromkeys(variable for _, _, variable, _ in match.rule.events))
        variables += [name for name in ("x", "y") if name in match.values]
        return [(name, match.values[name]) for name in dict.fromkeys(variables)]

    def _act(self, match: Match) -> None:
        model, x = self.model, match.values["x"]
        wanted: dict[Triple, bool] = {}
        for action in match.rule.actions:
            match action.split():
                case ["CALL", call]:
                    given = match.values[call[-2]]
                    if call.startswith("g"):
                        model.reach(None)
                        model.apply([(1, (given, "p", "b"))])
                    model.calls.append(f"{call[0]}({given}) at {model.clock}")
                    if model.schedule.failing == given:
                        raise CallError
                case [("INSERT" | "DELETE") as word, "{", "?x", p, o, "}"]:
                    wanted[x, p.removeprefix(":"), o.removeprefix(":")] = word == "INSERT"
                case _:
                    pass
        model.change_present(wanted)
        for action in match.rule.actions:
            match action.split():
                case ["RETRACT", name]:
                    self.retract(match.events[name])
                case ["EMIT", stream, "{", "?x", p, o, "}"]:
                    triple = x, p.removeprefix(":"), o.removeprefix(":")
                    event = Event(model.clock, {}, triples=(triple,))
                    model.cause(partial(self.take, [event], model.depth))
                    self.outbox.append((model.depth, stream.removeprefix(":"), (triple,)))
                case _:
                    pass

    def publish(self) -> bool:
        """Push what actions have emitted to its streams; whether there was any."""
        some = bool(self.outbox)
        while self.outbox:
            self.model.depth, name, triples = self.outbox.popleft()
            stream = self.model.stream(name)
            event = Event(self.model.clock, {}, triples=triples, number=self.model.new_number())
            self.emitted.add(event.number)
            self.model.push(stream, event)
            if not stream.waiting:
                self.emitted.discard(event.number)
        return some


def _spoils(
    rule: Rule, events: dict[str, Event], values: dict[str, str], others: Iterable[Event]
) -> bool:
    """Whether one of some events is what a NO EVENT denies."""
    denied = rule.denied
    if denied is None:
        return False
    first = events["a"].time
    return any(
        denied.low <= event.time - first <= denied.high
        and any(
            values.get(denied.variable, value) == value
            for value in event.types.get(denied.type, ())
        )
        for event in others
    )


def _oracle_of(declaration: tide.PatternDeclaration, program: Declared) -> EventOracle:
    counts = "COUNT" in program.texts[declaration.name]

    def holds(_: tide.Atom, named: Sequence[tuple[str, object]], __: object) -> bool:
        if counts:
            return sum(name == "b" for name, _ in named) == 1
        given = {name: event.values[0] for name, event in named}  # type: ignore[attr-defined]
        return bool(given["a"] != given["b"])

    return EventOracle(declaration, condition=holds)


_NUMBERS: dict[str, int] = {}


def _number(name: str) -> int:
    """A number for the name of a node; in the order of names, as rows are."""
    return _NUMBERS.setdefault(name, 1 + ord(name[0]))


def _stepped(
    oracle: EventOracle, time: int, readings: list[tuple[str, str]]
) -> list[tuple[str, int, int]]:
    """Give an event to an oracle; the complex events that it completes."""
    rows: list[tuple[str, tuple[int, ...]]] = [(t, (_number(value),)) for t, value in readings]
    (type_, values), *others = rows or [("", ())]
    found = oracle.step(type_, values, time, tuple(others))
    return [_read_match(oracle, each) for each in found]


def _ended(oracle: EventOracle, time: int) -> list[tuple[str, int, int]]:
    """The complex events that the end of a time completes; it may cause events of that time."""
    oracle.now = max(oracle.now, time + 1)
    found: list[tuple[int, list[OracleMatch]]] = []
    for key, instances in oracle.instances.items():
        kept = []
        for used in instances:
            ways = [way for way in oracle._ways(used) if way.early is None]
            whole = [way for way in ways if not way.partial]
            if whole:
                found.append((used[0].number, oracle._found(used, whole)))
            else:
                kept.append(used)
        oracle.instances[key] = kept
    oracle.now = time
    found.sort(key=lambda one: one[0])
    return [_read_match(oracle, each) for _, matches in found for each in matches]


def _read_match(oracle: EventOracle, match: OracleMatch) -> tuple[str, int, int]:
    """The value of ?x, the start and the time of a complex event."""
    return chr(match.values[0] - 1), oracle.stream[match.used[0]].time, match.time


def _next_timer(oracle: EventOracle) -> int | None:
    waits = [
        way.waits
        for used in oracle._all()
        for way in oracle._ways(used)
        if way.waits is not None and way.early is None
    ]
    return min(waits, default=None)


# --- the whole ---


class Model:
    """A schedule, one item after the other."""

    def __init__(self, schedule: Schedule, max_firings: int) -> None:
        if schedule.firing != "events" or schedule.reacting:
            raise Unforeseen("a conflict set, or callbacks")
        self.schedule, self.max_firings = schedule, max_firings
        self.clock, self.raised, self.done = 0, LONG_AGO, 0
        self.depth = self.cascade = self.numbers = self.closes = 0
        self.running = False
        self.graph: frozenset[Triple] = frozenset()
        self.born: dict[Triple, int] = {}
        self.added: frozenset[Triple] = frozenset()
        self.removed: frozenset[Triple] = frozenset()
        self.journal: dict[Triple, bool] = {}
        self.queue: deque[tuple[int, Callable[[], None]]] = deque()
        self.calls: Lines = []
        self.errors: Lines = []
        self.streams: dict[str, StreamState] = {}
        for name, lateness in schedule.lateness:
            self.stream(name, lateness)
        self.windows: dict[tuple[object, ...], PlacedWindow] = {}
        self.watched: dict[str, Watched] = {}
        self.programs: list[ProgramState] = []
        for number, text in enumerate(schedule.programs):
            program = ProgramState(number, text, self)
            self.programs.append(program)
            for standing in program.declared.queries:
                if standing.name in self.watched:
                    raise Unforeseen("two queries of one name")
                self.watched[standing.name] = Watched(standing, self._placed(standing))
        for name in schedule.streams:
            self.stream(name)

    def _placed(self, standing: Standing) -> tuple[PlacedWindow, ...]:
        names = sorted({clause.stream for clause in standing.windows})
        needed = tuple(map(self.stream, names))
        return tuple(
            self.windows.setdefault(
                (clause.stream, clause.kind, clause.length, clause.step, *names),
                PlacedWindow(clause, needed, self.schedule.alignment),
            )
            for clause in standing.windows
        )

    def stream(self, name: str, lateness: int = 0) -> StreamState:
        """The stream of a name, made if need be."""
        if name not in self.streams:
            made = self.streams[name] = StreamState(name, lateness)
            made.raise_to(self.raised)
        return self.streams[name]

    def new_number(self) -> int:
        """A number that no other event has."""
        self.numbers += 1
        return self.numbers

    # --- items ---

    def give(self, item: Item) -> None:
        """Take in an item; first comes what it makes due."""
        triples = tuple(triple for _, triple in item.changes)
        match item.kind:
            case "change":
                self.reach(item.time)
                self.perform(partial(self.apply, item.changes))
            case "advance":
                self.move(item.time, ALL)
            case "publish":
                self.publish(Event(item.time, {}, triples=triples))
            case _:
                event = Event(item.time, {}, triples=triples, number=self.new_number())
                self.push(self.stream(item.stream), event)

    def reach(self, time: int | None) -> None:
        """A change comes: all watermarks rise to its time."""
        time = self.clock if time is None else time
        if time != self.clock or self.raised != self.clock:
            self.move(time, ALL)

    def perform(self, work: Callable[[], None]) -> None:
        """Do a piece of input, and then all that it causes, in order of cause."""
        if self.running:
            work()
            return
        self.running, self.depth, self.journal = True, 0, {}
        self.cascade += 1
        self._attempt(work)
        while self.queue or any(program.publish() for program in self.programs):
            if self.queue:
                self.depth, effect = self.queue.popleft()
                self._attempt(effect)
        self.running, self.depth = False, 0

    def _attempt(self, work: Callable[[], None]) -> None:
        try:
            work()
        except EndlessError:
            self.errors.append("CascadeError: rules fire without end")
            self.queue.clear()
            for program in self.programs:
                program.abort()

    def cause(self, effect: Callable[[], None]) -> None:
        """Queue an effect."""
        self.queue.append((self.depth, effect))

    # --- the graph ---

    def change_present(self, wanted: dict[Triple, bool]) -> None:
        """Let triples be there or not, as one transaction, if that changes any."""
        changes = {t: there for t, there in wanted.items() if (t in self.graph) is not there}
        if changes:
            for triple, there in changes.items():
                self.journal.setdefault(triple, not there)
            self.reach(None)
            self.apply([(1 if there else -1, triple) for triple, there in changes.items()])

    def apply(self, changes: Iterable[Change]) -> None:
        """Apply a transaction, and queue the events that it causes."""
        after = set(self.graph)
        for diff, triple in changes:
            (after.add if diff > 0 else after.discard)(triple)
        self._applied(frozenset(after))

    def _applied(self, after: frozenset[Triple]) -> None:
        self.added, self.removed = after - self.graph, self.graph - after
        self.graph = after
        self.born |= dict.fromkeys(self.added, self.done)
        self.done += 1
        for watched in self.watched.values():
            watched.evaluate(after)
            watched.note(self.clock, self.done - 1 - self.closes)
        for program in self.programs:
            program.collect(self.done - 1)

    # --- events ---

    def publish(self, event: Event) -> None:
        """Let all programs see an event."""
        if self.running:
            self._take_each(event, queued=True)
            return
        self.move(event.time, None)
        self.perform(partial(self._take_each, event, queued=False))

    def _take_each(self, event: Event, *, queued: bool) -> None:
        takers = [p for p in self.programs if event.number not in p.emitted]
        for program in self.programs:
            program.emitted.discard(event.number)
        depth = self.depth

        def take() -> None:
            for program in takers:
                program.take([copy(event)], depth)

        if queued:
            self.cause(take)
        else:
            take()

    def push(self, stream: StreamState, event: Event) -> None:
        """An event of a stream comes."""
        if event.time < stream.watermark:
            stream.late += len(event.triples)
        else:
            stream.waiting.append(event)
        stream.newest = max(stream.newest, event.time)
        watermark = stream.newest - stream.lateness
        if self.running:  # an action emits: events of a later time wait for that
            self._release(stream, min(watermark, self.clock), self.clock)
        else:
            self._release(stream, watermark)

    def _release(self, stream: StreamState, watermark: int, latest: float = inf) -> None:
        """Pass on, in order, the events up to a watermark, and to the latest time."""
        if stream.releasing:
            watermark = min(watermark, self.clock)
        before = stream.watermark
        watermark = max(watermark, before)
        stream.waiting.sort(key=lambda event: event.time)
        end = min(watermark, latest)
        ready = [event for event in stream.waiting if event.time <= end]
        stream.waiting = [event for event in stream.waiting if event.time > end]
        releasing, stream.releasing = stream.releasing, True
        for event in ready:
            self.move(event.time, stream.name)
            seen = event.number in stream.early
            stream.log += [(event.time, triple) for triple in event.triples]
            stream.early.discard(event.number)
            if not seen:
                self._show(stream, event)
        stream.releasing = releasing
        if watermark > stream.watermark:
            self.move(watermark, stream.name)
            stream.watermark = watermark
        if stream.watermark > before:
            self.clock = max(self.clock, watermark)

    def _show(self, stream: StreamState, event: Event) -> None:
        """Let rules see an event of a stream, if it is not older than the clock."""
        if event.time < self.clock:
            stream.unpublished += len(event.triples)
        else:
            self.publish(event)

    # --- time ---

    def move(self, to: int, cause: str | None) -> None:
        """Move the clock, after all that is due before that."""
        if (cause == ALL and to == self.clock == self.raised) or (
            cause is None and to <= self.clock
        ):
            return
        while self._do_next(to, cause):
            pass
        self._pass(to, cause)

    def _rising(self, cause: str | None) -> list[StreamState]:
        if cause == ALL:
            return list(self.streams.values())
        return [] if cause is None else [self.streams[cause]]

    def _pass(self, to: int, cause: str | None) -> None:
        self.clock = max(self.clock, to)
        if cause == ALL:
            self.raised = to
        for stream in self._rising(cause):
            stream.raise_to(to)

    def _do_next(self, to: int, cause: str | None) -> bool:
        dues = [*self._due_windows(to, cause), *self._due_events(to, cause)]
        for program in self.programs:
            end = program.next_end()
            if end is not None and end < to:
                dues.append((end, 2, partial(program.end_time, end)))
        if not dues:
            return False
        time, phase, work = min(dues, key=lambda due: due[:2])
        if phase == 2 and cause == ALL and time > self.raised:
            self._pass(time, cause)
        if phase > 0:
            self.clock = max(self.clock, time)
        self.perform(work)
        return True

    def _due_windows(
        self, to: int, cause: str | None
    ) -> Iterator[tuple[int, int, Callable[[], None]]]:
        rising = self._rising(cause)
        for window in self.windows.values():
            due = window.due()
            reached = min(
                max(s.watermark, to) if s in rising else s.watermark for s in window.needed
            )
            if due is not None and due <= min(reached, to):
                yield due, 0, partial(self._close, due, rising)

    def _close(self, due: int, rising: list[StreamState]) -> None:
        for stream in rising:
            stream.watermark = max(stream.watermark, due)
        closing = [
            window
            for window in self.windows.values()
            if window.due() == due and due <= min(s.watermark for s in window.needed)
        ]
        times = [(window.next_close(), window) for window in closing]
        if any(window.clause.kind == "ELEMENTS" for window in closing) and len(closing) > 1:
            raise Unforeseen("windows of elements beside others")
        close = min(time for time, _ in times if time is not None)
        now = [window for time, window in times if time == close]
        for window in now:
            window.close()
            if window.due() == due:
                raise Unforeseen("elements of one time")
        self.clock = max(self.clock, close)
        self._applied(self.graph)
        self.closes += 1
        for watched in self.watched.values():
            if any(window in now for window in watched.windows):
                watched.report(close)

    def _due_events(
        self, to: int, cause: str | None
    ) -> Iterator[tuple[int, int, Callable[[], None]]]:
        """Rules see what waits for late events when the clock passes its time."""
        for stream in self.streams.values():
            if cause == ALL:
                times = [event.time for event in stream.waiting if event.time <= to]
            elif stream.name != cause:
                times = [e.time for e in self._unseen(stream) if e.time < to]
            else:
                times = []
            if times:
                yield min(times), 1, partial(self._show_until, min(times), cause)

    def _unseen(self, stream: StreamState) -> list[Event]:
        return [
            event
            for event in stream.waiting
            if event.time >= self.clock and event.number not in stream.early
        ]

    def _show_until(self, time: int, cause: str | None) -> None:
        if cause == ALL:
            for stream in tuple(self.streams.values()):
                stream.newest = max(stream.newest, time)
                self._release(stream, time)
            return
        for stream in tuple(self.streams.values()):
            shown = [event for event in self._unseen(stream) if event.time <= time]
            if stream.name != cause and shown:
                stream.early |= {event.number for event in shown}
                for event in sorted(shown, key=lambda each: each.time):
                    self._show(stream, event)

    # --- output ---

    def sections(self) -> dict[str, Lines]:
        """What can be seen, as `ScheduledRun.outcome` has it."""
        found: dict[str, Lines] = {"first error": self.errors[:1]}
        for number, program in enumerate(self.programs):
            found[f"firings of program {number}"] = program.firings
            found[f"skipped errors of program {number}"] = program.problems
            for pattern in program.patterns:
                name = f"complex events {pattern.declaration.name} of program {number}"
                found[name] = [f"x={x} from {start} to {time}" for x, start, time in pattern.found]
        found["calls"] = self.calls
        for name, watched in self.watched.items():
            found[f"{'results' if watched.windows else 'deltas'} of {name}"] = watched.lines
        found["graph"] = sorted(map(" ".join, self.graph))
        found["streams"] = [
            f"{NAMESPACE}{name}: {len(stream.log)} received, {stream.late} late, "
            f"{stream.unpublished} unpublished"
            for name in self.schedule.streams
            for stream in [self.streams[name]]
        ]
        found["numbers"] = [f"transactions: {self.done - self.closes}"]
        for name, watched in self.watched.items():
            found["numbers"] += [] if watched.windows else [f"{name}: {watched.numbers}"]
        found["clock"] = [str(self.clock)] * (1 + len(self.programs))
        return found


def expected_sections(schedule: Schedule, max_firings: int) -> dict[str, Lines]:
    """What a schedule puts out if its items come one by one, and the clock steps only with them."""
    model = Model(schedule, max_firings)
    for item in schedule.items:
        model.give(item)
    model.move(schedule.end, ALL)
    return model.sections()


_FIRED = re.compile(r"\d+: (.*?) \{(.*)\}")


def model_difference(schedule: Schedule, found: dict[str, Lines], max_firings: int) -> str:
    """The sections of an outcome that are not as the definitions say; empty if none is so.

    Matches of one rule with equal values may fire in any order, and of errors only the beginning
    is known.
    """
    try:
        expected = expected_sections(schedule, max_firings)
    except Unforeseen:
        return ""
    lines = []
    for name, wanted in expected.items():
        ours, theirs = found.get(name, []), wanted
        if "error" in name:
            ours = [line[: len(start)] for line, start in zip(ours, theirs, strict=False)]
            ours += found.get(name, [])[len(theirs) :]
        if name.startswith("firings"):
            ours, theirs = _without_ties(ours), _without_ties(theirs)
        if ours != theirs:
            lines += [f"{name}:", f"  engine:      {ours}", f"  definitions: {theirs}"]
    return "\n".join(lines)


def _without_ties(firings: Lines) -> Lines:
    """Firings without their numbers, those in a row with equal values ordered by their events."""
    parts = [_FIRED.fullmatch(line) for line in firings]
    runs: list[list[tuple[str, str]]] = []
    for part in parts:
        assert part is not None
        if runs and runs[-1][0][0] == part[1]:
            runs[-1].append((part[1], part[2]))
        else:
            runs.append([(part[1], part[2])])
    return [f"{values} {events}" for run in runs for values, events in sorted(run)]
