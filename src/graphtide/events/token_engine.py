"""Runs one pattern over events: tokens, contexts, timers (docs/patterns.md has the meaning)."""

from __future__ import annotations

from dataclasses import replace
from heapq import heappop, heappush
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from graphtide.errors import GraphtideError
from graphtide.events.columns import FoundColumns, as_columns
from graphtide.events.configuration import Configuration, Event, Reader
from graphtide.events.streams import Streams
from graphtide.events.token import NEVER, Found, Token

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from graphtide.events.automaton import Automaton

Key = tuple[int, ...]


class SavedDetector(NamedTuple):
    """The tokens of a detector, the time, and how many events and tokens there have been."""

    tokens: list[Token]
    now: int | None
    events: int
    born: int


class Detector:
    """Finds the complex events of one pattern.

    >>> from graphtide.events.compile import compile_pattern
    >>> from graphtide.lang.event_algebra import Atom, Follows, PatternDeclaration
    >>> body = Follows((Atom("A", ()), Atom("B", ())))
    >>> pattern = PatternDeclaration("P", (), body, "CHRONICLE", (), 1)
    >>> detector = Detector(compile_pattern(pattern, {"A": 0, "B": 1}, lambda term: 1))
    >>> detector.step(0, (), 10)
    []
    >>> detector.step(1, (), 12)
    [Found(values=(), time=12, start=10, used=(0, 1))]
    """

    def __init__(self, automaton: Automaton) -> None:
        self.automaton = automaton
        self.now: int | None = None
        self.reader = Reader(automaton)
        self._streams = Streams(automaton)
        self._tokens: dict[Key, list[Token]] = {}
        self._due: list[tuple[float, int, Token]] = []
        self._events = 0
        self._born = 0
        self._inner_timers = any(reader.timed for reader in self.reader.inner.values())

    def tokens(self) -> list[Token]:
        """The live instances, the oldest first."""
        alive = chain.from_iterable(self._tokens.values())
        return sorted(alive, key=lambda token: token.order)

    def step(self, type: int, values: tuple[int, ...], time: int) -> list[Found]:  # noqa: A002
        """Offers an event, after all timers before it; what became complete, in order."""
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

    def advance(self, to: int) -> list[Found]:
        """Moves time on: timers that end before `to` fire, what is too late is dropped."""
        if self.now is not None and to < self.now:
            raise GraphtideError(
                f"time went back from {self.now} to {to}",
                hint="events have to be in order of time; streams can put them in order",
            )
        self.now = to
        found: list[Found] = []
        while self._due and self._due[0][0] < to:
            due, _, token = heappop(self._due)
            token.due.discard(due)
            if token in self._tokens.get(token.key, ()):
                found += self._fall_due(token, due)
        if self._inner_timers:
            self._pass_inner_time(to - 1)
        return found

    def save(self) -> SavedDetector:
        """The tokens, to be loaded again later, or elsewhere."""
        tokens = [replace(t, used=[*t.used], due=set()) for t in self.tokens()]
        return SavedDetector(tokens, self.now, self._events, self._born)

    def load(self, saved: SavedDetector) -> None:
        """Have the tokens that were saved; ids have to mean the same as then."""
        self.now, self._events, self._born = saved.now, saved.events, saved.born
        self._tokens, self._due = {}, []
        for token in saved.tokens:
            own = replace(token, used=[*token.used], due=set())
            self._tokens.setdefault(own.key, []).append(own)
            self._schedule(own)

    def next_time(self) -> int:
        """When the next time is over that a token waits for, or later if there is none."""
        return int(self._due[0][0]) if self._due else NEVER

    def feed(
        self, types: NDArray[np.integer], values: NDArray[np.integer], times: NDArray[np.integer]
    ) -> FoundColumns:
        """Many events at once: a row of values each, as wide as the widest event.

        `at` of the answer says with which row each was found.
        """
        found: list[tuple[int, Found]] = []
        rows = zip(types.tolist(), values.tolist(), times.tolist(), strict=True)
        for i, (type_, row, time) in enumerate(rows):
            cut = tuple(row[: self._streams.arity.get(type_, 0)])
            found += [(i, one) for one in self.step(type_, cut, time)]
        return as_columns(found, len(self.automaton.parameters))

    def _fall_due(self, token: Token, due: float) -> list[Found]:
        """A timer, or the end of a token's time; nothing if the token has moved on meanwhile."""
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

    def _offer(self, event: Event, number: int, key: Key) -> list[Found]:
        """The three steps of the contexts, for the stream of one value of PER."""
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
        """A new instance, if a trace of this stream can begin with the event."""
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
        """All tokens of a stream but one have not used an event: it may spoil their gaps."""
        for token in list(self._tokens.get(key, ())):
            if token is mover:
                continue
            before = token.configurations
            if not token.miss(self.reader, event):
                self._drop(token)
            elif token.configurations != before:
                self._schedule(token)

    def _after(self, token: Token, time: int) -> list[Found]:
        """After a token has moved: it is complete, or lost, or waits on.

        If it can be read in several ways that give the parameters different values, all are told.
        """
        ends = token.ends(self.reader)
        if ends or not token.configurations:
            self._drop(token)
        else:
            self._schedule(token)
        parameters = self.automaton.parameters
        rows = {tuple(end.values[slot] for slot in parameters) for end in ends}
        return [Found(row, time, token.start, tuple(token.used)) for row in sorted(rows)]

    def _schedule(self, token: Token) -> None:
        """Notes when it has to be looked at again; what was noted before does no harm."""
        dues = {token.timer(self.reader), token.deadline(self.reader)} - {inf} - token.due
        token.due |= dues
        for due in dues:
            heappush(self._due, (due, token.order, token))

    def _drop(self, token: Token) -> None:
        stream = self._tokens[token.key]
        stream.remove(token)
        if not stream:
            del self._tokens[token.key]
