"""Detectors: run one pattern over events, by the kernel or in Python.

`docs/patterns.md` has the semantics of tokens, contexts and timers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphtide.errors import GraphtideError
from graphtide.jit import JIT
from graphtide.kernel.tokens.tables import BLOCKED, FIELDS, ORDER, STARTED, STATE
from graphtide.kernel.tokens.token_table import SavedTokens, TokenMatches, TokenTable
from graphtide.patterns.automaton import SLOT, Automaton, Letter
from graphtide.patterns.determine import Deterministic, determine
from graphtide.patterns.tables import kernel_automaton, make_tables, why_no_kernel
from graphtide.patterns.tokens import (
    NEVER,
    Configuration,
    ConfigurationMover,
    Event,
    PatternMatch,
    Token,
)
from graphtide.rdf.holders import flat_ids

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class MatchColumns:
    """The matches of a batch in columns; `used[first_used[i]:first_used[i + 1]]` are i's events.

    `at` is the index of the event with which it was found: a timer fires with the first event after
    its time.
    """

    values: NDArray[np.int64]
    time: NDArray[np.int64]
    start: NDArray[np.int64]
    at: NDArray[np.int64]
    first_used: NDArray[np.int64]
    used: NDArray[np.int64]


def as_columns(found: list[tuple[int, PatternMatch]], parameters: int) -> MatchColumns:
    """Matches, each with the index of the event that found it, as columns.

    >>> from graphtide.patterns.tokens import PatternMatch
    >>> as_columns([(3, PatternMatch((7,), 12, 10, (1, 3)))], 1).used.tolist()
    [1, 3]
    """
    lengths = [0, *(len(one.used) for _, one in found)]
    values = [one.values for _, one in found]
    return MatchColumns(
        values=np.array(values, np.int64).reshape(len(found), parameters),
        time=np.array([one.time for _, one in found], np.int64),
        start=np.array([one.start for _, one in found], np.int64),
        at=np.array([row for row, _ in found], np.int64),
        first_used=np.cumsum(np.array(lengths, np.int64)),
        used=np.array([number for _, one in found for number in one.used], np.int64),
    )


class KernelDetector:
    """The detector of a deterministic pattern, run by the kernel; its twin is `Detector`.

    >>> from graphtide.patterns.compile import compile_pattern
    >>> from graphtide.patterns.determine import determine
    >>> from graphtide.lang.tide.ast import Atom, Follows, PatternDeclaration
    >>> body = Follows((Atom("A", ()), Atom("B", ())))
    >>> pattern = PatternDeclaration("P", (), body, "CHRONICLE", (), 1)
    >>> form = determine(compile_pattern(pattern, {"A": 0, "B": 1}, lambda term: 1))
    >>> detector = KernelDetector(form)
    >>> detector.feed(np.array([0, 1]), np.zeros((2, 0)), np.array([10, 12])).time.tolist()
    [12]
    """

    def __init__(self, form: Deterministic) -> None:
        self.automaton = form.automaton
        self.now: int | None = None
        self._form = form
        self._kernel = kernel_automaton(form, make_tables(form))
        self.table = TokenTable(self._kernel)
        self._numbers = _known_types(form)

    @property
    def reader(self) -> ConfigurationMover:
        """The automaton's transitions, for `explain`."""
        return ConfigurationMover(self.automaton)

    def held_ids(self) -> Iterator[NDArray[np.int64]]:
        """The ids of all values."""
        return self.table.held_ids()

    def step(self, type: int, values: tuple[int, ...], time: int) -> list[PatternMatch]:  # noqa: A002
        """Take in an event, after all timers before it; the matches, in order."""
        row = np.array([values], np.int32).reshape(1, len(values))
        return _rows(self.feed(np.array([type]), row, np.array([time])))

    def feed(
        self, types: NDArray[np.integer], values: NDArray[np.integer], times: NDArray[np.integer]
    ) -> MatchColumns:
        """Take in a batch of events in order of time; rows of values are padded."""
        if len(times):
            self._pass(int(times[0]))
            if len(times) > 1 and (np.diff(times) < 0).any():
                at = int(np.argmax(np.diff(times) < 0))
                self._refuse(int(times[at]), int(times[at + 1]))
            self.now = int(times[-1])
        known = self._numbers[types]
        wide = np.ascontiguousarray(values, np.int32)
        return _columns(self.table.feed(known, wide, np.asarray(times, np.int64)))

    def advance(self, to: int) -> list[PatternMatch]:
        """Move time on: timers before `to` fire."""
        self._pass(to)
        self.now = to
        return _rows(_columns(self.table.advance(to)))

    def save(self) -> SavedTokens:
        """The state of the detector, to be loaded later, or in another process."""
        return self.table.save()

    def load(self, saved: SavedTokens) -> None:
        """Load a saved state; the ids of terms have to be the same."""
        self.table.load(saved)
        self.now = int(saved.counts[0]) if saved.counts[1] else self.now

    def next_time(self) -> int:
        """The time of the next timer or deadline; NEVER if there is none."""
        due = self.table.next_due
        return NEVER if due is None else due

    def _pass(self, to: int) -> None:
        if self.now is not None and to < self.now:
            self._refuse(self.now, to)

    def _refuse(self, before: int, after: int) -> None:
        raise GraphtideError(
            f"time went back from {before} to {after}",
            hint="events have to be in order of time; streams can put them in order",
        )

    def tokens(self) -> list[Token]:
        """The live tokens, oldest first."""
        zones = self._kernel.zones
        found = []
        for row in self.table.rows().tolist():
            entries, values = row[FIELDS : FIELDS + zones], row[FIELDS + zones :]
            violated = frozenset() if not row[BLOCKED] else self._violated(row[STATE], row[BLOCKED])
            configurations = [
                Configuration(position, tuple(values), tuple(entries), 0, violated)
                for position in self._form.states[row[STATE]]
            ]
            found.append(Token(row[ORDER], row[STARTED], (), [], configurations))
        return found

    def _violated(self, state: int, blocked: int) -> frozenset[int]:
        """The NOTs of the edges that are blocked."""
        moves = enumerate(self._form.moves[state])
        closed = [move for bit, move in moves if blocked >> bit & 1]
        return frozenset(n for move in closed for n in move.members[0].nots)


def _known_types(form: Deterministic) -> NDArray[np.int32]:
    """By type its number, -1 for those that the pattern does not name."""
    named = {letter.type for letter in form.automaton.letters()}
    numbers = [t if t in named else -1 for t in range(len(form.automaton.types))]
    return np.array(numbers, np.int32)


def _columns(matches: TokenMatches) -> MatchColumns:
    first = np.concatenate([np.zeros(1, np.int64), matches.used_to])
    values = matches.values.astype(np.int64)
    return MatchColumns(values, matches.times, matches.started, matches.at, first, matches.used)


def _rows(columns: MatchColumns) -> list[PatternMatch]:
    firsts, used = columns.first_used.tolist(), columns.used.tolist()
    rows = zip(columns.values.tolist(), columns.time.tolist(), columns.start.tolist(), strict=True)
    return [
        PatternMatch(tuple(values), time, start, tuple(used[firsts[i] : firsts[i + 1]]))
        for i, (values, time, start) in enumerate(rows)
    ]


Rank = Callable[[tuple[int, ...]], tuple[str, ...]]
"""What rows of ids are sorted by: the texts of their terms, which do not depend on ids."""


class KeyedStreams:
    """The keys of events by PER: each key has a stream of its own; without PER there is one."""

    def __init__(self, automaton: Automaton) -> None:
        self.per = automaton.per
        self.arity: dict[int, int] = {}
        self._columns: dict[int, list[tuple[int, ...]]] = {}
        self._everywhere: set[int] = set()
        for letter in automaton.letters():
            self.arity[letter.type] = len(letter.arguments)
            columns = self._columns_of(letter)
            if columns is None:
                self._everywhere.add(letter.type)
            elif columns not in self._columns.setdefault(letter.type, []):
                self._columns[letter.type].append(columns)

    def keys(self, event: Event) -> list[tuple[int, ...]]:
        """The keys of an event."""
        if not self.per:
            return [()]
        found = self._columns.get(event.type, [])
        return list(dict.fromkeys(tuple(event.values[i] for i in columns) for columns in found))

    def everywhere(self, event: Event) -> bool:
        """Whether a NOT without the variables of PER reads events of this type."""
        return event.type in self._everywhere

    def _columns_of(self, letter: Letter) -> tuple[int, ...] | None:
        """The arguments that are the variables of PER; None if one of them is missing."""
        place = {n: i for i, (kind, n) in reversed([*enumerate(letter.arguments)]) if kind == SLOT}
        return tuple(place[slot] for slot in self.per) if place.keys() >= set(self.per) else None


Key = tuple[int, ...]


class SavedDetector(NamedTuple):
    """The state of a detector: its tokens, the time, the numbers of events and tokens so far."""

    tokens: list[Token]
    now: int | None
    events: int
    born: int

    def held_ids(self) -> Iterator[NDArray[np.int64]]:
        """The ids of all values."""
        yield flat_ids(row for token in self.tokens for row in token.rows())


class Detector:
    """The general detector: a token has all configurations of its events.

    >>> from graphtide.patterns.compile import compile_pattern
    >>> from graphtide.lang.tide.ast import Atom, Follows, PatternDeclaration
    >>> body = Follows((Atom("A", ()), Atom("B", ())))
    >>> pattern = PatternDeclaration("P", (), body, "CHRONICLE", (), 1)
    >>> detector = Detector(compile_pattern(pattern, {"A": 0, "B": 1}, lambda term: 1))
    >>> detector.step(0, (), 10)
    []
    >>> detector.step(1, (), 12)
    [PatternMatch(values=(), time=12, start=10, used=(0, 1))]
    """

    def __init__(self, automaton: Automaton, rank: Rank | None = None) -> None:
        self.automaton = automaton
        self.now: int | None = None
        self._rank = rank
        self.reader = ConfigurationMover(automaton)
        self._streams = KeyedStreams(automaton)
        self._tokens: dict[Key, list[Token]] = {}
        self._due: list[tuple[float, int, Token]] = []
        self._events = 0
        self._born = 0
        self._inner_timers = any(reader.timed for reader in self.reader.inner.values())

    def tokens(self) -> list[Token]:
        """The live tokens, oldest first."""
        alive = chain.from_iterable(self._tokens.values())
        return sorted(alive, key=lambda token: token.order)

    def held_ids(self) -> Iterator[NDArray[np.int64]]:
        """The ids of all values."""
        yield flat_ids(row for token in self.tokens() for row in token.rows())

    def step(self, type: int, values: tuple[int, ...], time: int) -> list[PatternMatch]:  # noqa: A002
        """Take in an event, after all timers before it; the matches, in order."""
        found = self.advance(time)
        event, number = Event(type, values, time), self._events
        self._events += 1
        keys = self._streams.keys(event)
        for key in keys:
            found += self._offer(event, number, key)
        if self._streams.everywhere(event):
            for key in [key for key in self._tokens if key not in keys]:
                self._missed(key, event, None)
        return found

    def advance(self, to: int) -> list[PatternMatch]:
        """Move time on: timers before `to` fire, tokens past their deadline are dropped."""
        if self.now is not None and to < self.now:
            raise GraphtideError(
                f"time went back from {self.now} to {to}",
                hint="events have to be in order of time; streams can put them in order",
            )
        self.now = to
        found: list[PatternMatch] = []
        while self._due and self._due[0][0] < to:
            due, _, token = heappop(self._due)
            token.due.discard(due)
            if token in self._tokens.get(token.key, ()):
                found += self._fall_due(token, due)
        if self._inner_timers:
            self._pass_inner_time(to - 1)
        return found

    def save(self) -> SavedDetector:
        """The state of the detector, to be loaded later, or in another process."""
        tokens = [replace(t, used=[*t.used], due=set()) for t in self.tokens()]
        return SavedDetector(tokens, self.now, self._events, self._born)

    def load(self, saved: SavedDetector) -> None:
        """Load a saved state; the ids of terms have to be the same."""
        self.now, self._events, self._born = saved.now, saved.events, saved.born
        self._tokens, self._due = {}, []
        for token in saved.tokens:
            own = replace(token, used=[*token.used], due=set())
            self._tokens.setdefault(own.key, []).append(own)
            self._schedule(own)

    def next_time(self) -> int:
        """The time of the next timer or deadline; NEVER if there is none."""
        return int(self._due[0][0]) if self._due else NEVER

    def feed(
        self, types: NDArray[np.integer], values: NDArray[np.integer], times: NDArray[np.integer]
    ) -> MatchColumns:
        """Take in a batch of events in order of time; rows of values are padded."""
        found: list[tuple[int, PatternMatch]] = []
        rows = zip(types.tolist(), values.tolist(), times.tolist(), strict=True)
        for i, (type_, row, time) in enumerate(rows):
            cut = tuple(row[: self._streams.arity.get(type_, 0)])
            found += [(i, one) for one in self.step(type_, cut, time)]
        return as_columns(found, len(self.automaton.parameters))

    def _fall_due(self, token: Token, due: float) -> list[PatternMatch]:
        """A timer or deadline of a token; outdated entries of the queue do nothing."""
        if token.timer(self.reader) == due:
            token.fire(self.reader, int(due))
            return self._after(token, int(due))
        if token.deadline(self.reader) <= due:
            self._drop(token)
        return []

    def _pass_inner_time(self, until: int) -> None:
        for token in self.tokens():
            passed = (self.reader.pass_time(at, until) for at in token.configurations)
            token.configurations = [at for at in passed if at is not None]
            if token.configurations:
                self._schedule(token)
            else:
                self._drop(token)

    def _offer(self, event: Event, number: int, key: Key) -> list[PatternMatch]:
        """The three steps of the contexts, for one key of PER."""
        tokens = self._tokens.get(key, [])
        uses = [token.uses(self.reader, event) for token in tokens]
        user = next((t for t, u in zip(tokens, uses, strict=True) if t.forward(u)), None)
        strict = self.automaton.context == "STRICT"
        born = self._begin(event, number, key) if user is None and not (strict and tokens) else None
        if user is None and born is None:
            user = next((t for t, u in zip(tokens, uses, strict=True) if u), None)
        if user is not None:
            user.take(self.reader, uses[tokens.index(user)], event, number)
        elif born is None and self.automaton.context != "CHRONICLE":
            self._tokens.pop(key, None)
            born = self._begin(event, number, key) if strict and tokens else None
        mover = user or born
        self._missed(key, event, mover)
        if born is not None:
            self._tokens.setdefault(key, []).append(born)
        return [] if mover is None else self._after(mover, event.time)

    def _begin(self, event: Event, number: int, key: Key) -> Token | None:
        """A new token, if a trace of this key can begin with the event."""
        nothing = self.reader.start((0,) * len(self.automaton.variables))
        uses = [u for u in self.reader.use(nothing, event) if self._belongs(u.after, key)]
        if not uses:
            return None
        token = Token(self._born, event.time, key, [], [])
        self._born += 1
        token.take(self.reader, uses, event, number)
        return token

    def _belongs(self, at: Configuration | None, key: Key) -> bool:
        return at is not None and tuple(at.values[slot] for slot in self.automaton.per) == key

    def _missed(self, key: Key, event: Event, mover: Token | None) -> None:
        """All tokens of a key but one did not consume an event: it may violate their NOTs."""
        for token in list(self._tokens.get(key, ())):
            if token is mover:
                continue
            before = token.configurations
            if not token.miss(self.reader, event):
                self._drop(token)
            elif token.configurations != before:
                self._schedule(token)

    def _after(self, token: Token, time: int) -> list[PatternMatch]:
        """After a token has moved: it is complete, dropped, or waits.

        If its configurations give the parameters different values, each is a match.
        """
        ends = token.ends(self.reader)
        if ends or not token.configurations:
            self._drop(token)
        else:
            self._schedule(token)
        parameters = self.automaton.parameters
        rows = {tuple(end.values[slot] for slot in parameters) for end in ends}
        return [
            PatternMatch(row, time, token.start, tuple(token.used))
            for row in sorted(rows, key=self._rank)
        ]

    def _schedule(self, token: Token) -> None:
        """Queue the next timer and the deadline of a token; outdated entries do no harm."""
        dues = {token.timer(self.reader), token.deadline(self.reader)} - {inf} - token.due
        token.due |= dues
        for due in dues:
            heappush(self._due, (due, token.order, token))

    def _drop(self, token: Token) -> None:
        stream = self._tokens[token.key]
        stream.remove(token)
        if not stream:
            del self._tokens[token.key]


AnyDetector = Detector | KernelDetector


def make_detector(automaton: Automaton, rank: Rank | None = None) -> AnyDetector:
    """The kernel's detector if it can run the pattern, else (or without Numba) the general one.

    Several matches of one token are in the order of `rank`, by default that of their ids; the
    kernel never has several.

    >>> from graphtide.patterns.compile import compile_pattern
    >>> from graphtide.lang.tide.ast import Atom, Follows, PatternDeclaration
    >>> body = Follows((Atom("A", ()), Atom("B", ())))
    >>> pattern = PatternDeclaration("P", (), body, "CHRONICLE", (), 1)
    >>> type(make_detector(compile_pattern(pattern, {"A": 0, "B": 1}, lambda term: 1))).__name__
    'KernelDetector'
    """
    form = determine(automaton)
    return KernelDetector(form) if JIT and not why_no_kernel(form) else Detector(automaton, rank)
