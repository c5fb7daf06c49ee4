"""Detector: runs one pattern over events in Python; each token has all its configurations.

`docs/patterns.md` has the semantics of tokens, contexts and timers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import chain, pairwise
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphtide.errors import GraphtideError
from graphtide.kernel.tokens.tables import NEW_EVENT, NEW_OCCURRENCE
from graphtide.patterns.automaton import SLOT, Automaton, Letter
from graphtide.patterns.event_rows import EventRows, RowArranger
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
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from graphtide.kernel.batch import Ints, Longs


@dataclass(frozen=True, slots=True)
class MatchColumns:
    """The matches of a batch in columns; `used[first_used[i]:first_used[i + 1]]` are i's events.

    `at` is the index of the input row with which it was found: a timer fires with the first event
    after its time.
    """

    values: NDArray[np.int64]
    time: NDArray[np.int64]
    start: NDArray[np.int64]
    at: NDArray[np.int64]
    first_used: NDArray[np.int64]
    used: NDArray[np.int64]

    def of_input(self, rows: EventRows) -> MatchColumns:
        """The same, with `at` as the index of a row before rows were arranged."""
        return replace(self, at=rows.source[self.at]) if len(self.at) else self


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


def event_arrays(rows: Sequence[Event], number: int) -> tuple[Longs, Ints, Longs, Longs]:
    """The rows of one event as columns: types, values, times, numbers.

    >>> event_arrays([Event(2, (7,), 10), Event(3, (), 10)], 5)[1].tolist()
    [[7], [0]]
    """
    width = max(len(row.values) for row in rows)
    values = [(*row.values, *(0,) * (width - len(row.values))) for row in rows]
    return (
        np.array([row.type for row in rows]),
        np.array(values, np.int32).reshape(len(rows), width),
        np.array([row.time for row in rows]),
        np.full(len(rows), number),
    )


Key = tuple[int, ...]

MAX_INSTANCES = 100_000
"""Most instances of a pattern in UNRESTRICTED, of each value of PER."""

Ways = list[Event]
"""The rows of one occurrence of an event."""


Rank = Callable[[tuple[int, ...]], tuple[str, ...]]
"""What rows of ids are sorted by: the texts of their terms, which do not depend on ids."""


OnDrop = Callable[[Token, tuple[int, ...], int, str], None]
"""Takes a token that is dropped, the values of its variables, the time and the reason."""


def _by_events(token: Token) -> list[int]:
    return token.used


class KeyedStreams:
    """The keys of events by PER: each key has a stream of its own; without PER there is one.

    An event without all variables of PER is in every stream with whose key it agrees.
    """

    def __init__(self, automaton: Automaton) -> None:
        self.per = automaton.per
        self.arity: dict[int, int] = {}
        self._columns: dict[int, list[tuple[int, ...]]] = {}
        self._shared: dict[int, list[tuple[int | None, ...]]] = {}
        for letter in automaton.letters():
            self.arity[letter.type] = len(letter.arguments)
            columns = self._columns_of(letter)
            whole = tuple(column for column in columns if column is not None)
            if len(whole) < len(columns):
                self._shared.setdefault(letter.type, []).append(columns)
            elif whole not in self._columns.setdefault(letter.type, []):
                self._columns[letter.type].append(whole)

    def keys(self, ways: Sequence[Event]) -> list[Key]:
        """The keys of an event."""
        if not self.per:
            return [()]
        return list(
            dict.fromkeys(
                tuple(event.values[i] for i in columns)
                for event in ways
                for columns in self._columns.get(event.type, [])
            )
        )

    def in_stream(self, ways: Sequence[Event], key: Key) -> bool:
        """Whether an event is in the stream of a key."""
        return key in self.keys(ways) or any(
            all(at is None or event.values[at] == own for at, own in zip(columns, key, strict=True))
            for event in ways
            for columns in self._shared.get(event.type, [])
        )

    def is_shared(self, ways: Sequence[Event]) -> bool:
        """Whether an event may be in the streams of keys that it does not name."""
        return bool(self._shared) and any(event.type in self._shared for event in ways)

    def _columns_of(self, letter: Letter) -> tuple[int | None, ...]:
        """The arguments that are the variables of PER; None where one is missing."""
        first = {n: i for i, (kind, n) in reversed([*enumerate(letter.arguments)]) if kind == SLOT}
        return tuple(first.get(slot) for slot in self.per)


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
        self._arranger = RowArranger(automaton)
        self._tokens: dict[Key, list[Token]] = {}
        self._due: list[tuple[float, int, Token]] = []
        self.events = 0
        """The number of the next event, if it is given none."""
        self._born = 0
        self._inner_timers = any(reader.timed for reader in self.reader.inner.values())
        self.on_drop: OnDrop | None = None
        """Called with a token that is dropped before it is complete, to explain that."""
        self._before: list[Configuration] = []
        """The configurations of the last token that moved, before it did."""

    def tokens(self) -> list[Token]:
        """The live tokens, oldest first."""
        alive = chain.from_iterable(self._tokens.values())
        return sorted(alive, key=lambda token: token.order)

    def held_ids(self) -> Iterator[NDArray[np.int64]]:
        """The ids of all values."""
        yield flat_ids(row for token in self.tokens() for row in token.rows())

    def step(self, type: int, values: tuple[int, ...], time: int) -> list[PatternMatch]:  # noqa: A002
        """Take in an event, after all timers before it; the matches, in order."""
        return self.take([Event(type, values, time)])

    def take(self, rows: Sequence[Event]) -> list[PatternMatch]:
        """Take in one event of several rows, after all timers before it; the matches, in order."""
        arranged = self._arranger.rows(*event_arrays(rows, self.events))
        return [match for _, match in self._feed(arranged)]

    def _step(self, occurrences: list[Ways], time: int, number: int) -> list[PatternMatch]:
        """Take in an event, after all timers before it; the matches, in order."""
        matches = self.advance(time)
        self.events = number + 1
        every = [event for ways in occurrences for event in ways]
        streams = self._streams
        keys = streams.keys(every)
        if streams.is_shared(every):
            keys += [key for key in self._tokens if key not in keys]
        for key in keys:
            own = [ways for ways in occurrences if streams.in_stream(ways, key)]
            if own:
                matches += self._offer(own, time, number, key)
        return matches

    def advance(self, to: int, *, causes: bool = False) -> list[PatternMatch]:
        """Move time on: timers before `to` fire, tokens past their deadline are dropped.

        If the end of a time `causes` events, they come at the last tick before `to`: a token with
        that deadline goes on.
        """
        if self.now is not None and to < self.now:
            raise GraphtideError(
                f"time went back from {self.now} to {to}",
                hint="events have to be in order of time; streams can put them in order",
            )
        self.now = to
        matches: list[PatternMatch] = []
        while self._due and self._due[0][0] < to:
            due, _, token = heappop(self._due)
            token.due.discard(due)
            if token in self._tokens.get(token.key, ()):
                matches += self._fall_due(token, due)
        if self._inner_timers:
            self._pass_inner_time(to - 1)
        if not causes:
            self._drop_before(to)
        return matches

    def _drop_before(self, time: int) -> None:
        """Drop the tokens whose deadline is the tick before a time."""
        timers = []
        while self._due and self._due[0][0] <= time:
            entry = heappop(self._due)
            token = entry[2]
            if token.timer(self.reader) == time:
                timers.append(entry)
                continue
            token.due.discard(time)
            if token in self._tokens.get(token.key, ()) and token.deadline(self.reader) < time:
                self._drop(token, time - 1, "its time ran out")
        for entry in timers:
            heappush(self._due, entry)

    def save(self) -> SavedDetector:
        """The state of the detector, to be loaded later, or in another process."""
        tokens = [replace(t, used=[*t.used], due=set()) for t in self.tokens()]
        return SavedDetector(tokens, self.now, self.events, self._born)

    def load(self, saved: SavedDetector) -> None:
        """Load a saved state; the ids of terms have to be the same."""
        self.now, self.events, self._born = saved.now, saved.events, saved.born
        self._tokens, self._due = {}, []
        for token in saved.tokens:
            own = replace(token, used=[*token.used], due=set())
            self._tokens.setdefault(own.key, []).append(own)
            self._schedule(own)

    def next_time(self) -> int:
        """The time of the next timer, or the first one after a deadline; NEVER if there is none."""
        return int(self._due[0][0]) if self._due else NEVER

    def feed(
        self,
        types: NDArray[np.integer],
        values: NDArray[np.integer],
        times: NDArray[np.integer],
        numbers: Longs | None = None,
    ) -> MatchColumns:
        """Take in rows of events in order of time; rows of values are padded.

        Rows of one number are one event. Without numbers each row is an event.
        """
        first = self.events if numbers is None else numbers
        rows = self._arranger.rows(types, values, times, first)
        return self.feed_rows(rows).of_input(rows)

    def feed_rows(self, rows: EventRows) -> MatchColumns:
        """Take in arranged rows; `at` are their indices."""
        return as_columns(self._feed(rows), len(self.automaton.parameters))

    def _feed(self, rows: EventRows) -> list[tuple[int, PatternMatch]]:
        """The matches of arranged rows, each with the index of the first row of its event."""
        matches: list[tuple[int, PatternMatch]] = []
        columns = (rows.types, rows.values, rows.times, rows.numbers, rows.begins)
        lines = list(zip(*(column.tolist() for column in columns), strict=True))
        firsts = [i for i, line in enumerate(lines) if line[4] == NEW_EVENT]
        for first, end in pairwise([*firsts, len(lines)]):
            occurrences: list[Ways] = []
            for type_, values, time, _, begins in lines[first:end]:
                event = Event(type_, tuple(values[: self._streams.arity.get(type_, 0)]), time)
                if begins <= NEW_OCCURRENCE:
                    occurrences.append([])
                occurrences[-1].append(event)
            _, _, time, number, _ = lines[first]
            matches += [(first, one) for one in self._step(occurrences, time, number)]
        return matches

    def _fall_due(self, token: Token, due: float) -> list[PatternMatch]:
        """A timer of a token, or its deadline is over; outdated entries of the queue do nothing."""
        if token.timer(self.reader) == due:
            self._before = token.configurations
            token.fire(self.reader, int(due))
            return self._after(token, int(due))
        if token.deadline(self.reader) < due:
            self._drop(token, int(due) - 1, "its time ran out")
        return []

    def _pass_inner_time(self, until: int) -> None:
        for token in self.tokens():
            before = token.configurations
            passed = (self.reader.pass_time(at, until) for at in before)
            token.configurations = [at for at in passed if at is not None]
            if token.configurations:
                self._schedule(token)
            else:
                self._drop(token, until, "what a NOT forbids was complete", before)

    def _offer(
        self, occurrences: list[Ways], time: int, number: int, key: Key
    ) -> list[PatternMatch]:
        """The three steps of the contexts, for one key of PER."""
        if self.automaton.context == "UNRESTRICTED":
            return self._offer_all(occurrences, time, number, key)
        matches: list[PatternMatch] = []
        movers: list[Token] = []
        context, had_tokens = self.automaton.context, key in self._tokens
        for ways in occurrences:
            mover = self._consume(ways, number, key, movers)
            if mover is not None:
                movers.append(mover)
                matches += self._after(mover, time)
        noise = not movers and self.automaton.noisy
        every = [event for ways in occurrences for event in ways]
        self._missed(key, every, time, movers, noise=noise)
        if noise and context == "STRICT" and had_tokens and key not in self._tokens:
            born = next(filter(None, (self._begin(w, number, key) for w in occurrences)), None)
            matches += [] if born is None else self._after(born, time)
        return matches

    def _offer_all(
        self, occurrences: list[Ways], time: int, number: int, key: Key
    ) -> list[PatternMatch]:
        """Every instance that can consume an event does so in a copy, and stays without it, too."""
        copies: list[Token] = []
        for ways in occurrences:
            for token in list(self._tokens.get(key, ())):
                uses = token.uses(self.reader, ways)
                if uses:
                    copies.append(Token(0, token.start, key, [*token.used], []))
                    copies[-1].take(self.reader, uses, time, number)
            born = self._new(ways, number, key)
            copies += [] if born is None else [born]
        if len(self._tokens.get(key, ())) + len(copies) > MAX_INSTANCES:
            # Before anything has changed: what is too many must not become more with every event.
            raise GraphtideError(
                f"the pattern {self.automaton.name} has more than {MAX_INSTANCES:,} instances",
                hint="in UNRESTRICTED every combination counts: add WITHIN, PER or SKIP PAST LAST",
            )
        self._missed(key, [event for ways in occurrences for event in ways], time, ())
        for copy in copies:
            copy.order, self._born = self._born, self._born + 1
            self._tokens.setdefault(key, []).append(copy)
        return [one for copy in sorted(copies, key=_by_events) for one in self._after(copy, time)]

    def _consume(self, ways: Ways, number: int, key: Key, movers: Sequence[Token]) -> Token | None:
        """The token that consumes an occurrence, if any; none consumes an event twice."""
        tokens = self._tokens.get(key, [])
        uses = {id(token): token.uses(self.reader, ways) for token in tokens if token not in movers}
        user = next((t for t in tokens if t.forward(uses.get(id(t), []))), None)
        if user is None and not (self.automaton.context == "STRICT" and tokens):
            born = self._begin(ways, number, key)
            if born is not None:
                return born
        if user is None:
            user = next((t for t in tokens if uses.get(id(t))), None)
        if user is not None:
            self._before = user.configurations
            user.take(self.reader, uses[id(user)], ways[0].time, number)
        return user

    def _begin(self, ways: Ways, number: int, key: Key) -> Token | None:
        """A new token, if a trace of this key can begin with an occurrence."""
        token = self._new(ways, number, key)
        if token is not None:
            token.order, self._born = self._born, self._born + 1
            self._tokens.setdefault(key, []).append(token)
        return token

    def _new(self, ways: Ways, number: int, key: Key) -> Token | None:
        nothing = self.reader.start((0,) * len(self.automaton.variables))
        uses = [u for u in self.reader.use(nothing, ways) if self._belongs(u.after, key)]
        if not uses:
            return None
        token = Token(0, ways[0].time, key, [], [])
        token.take(self.reader, uses, ways[0].time, number)
        return token

    def _belongs(self, at: Configuration | None, key: Key) -> bool:
        return at is not None and tuple(at.values[slot] for slot in self.automaton.per) == key

    def _missed(
        self,
        key: Key,
        ways: Sequence[Event],
        time: int,
        movers: Sequence[Token],
        *,
        noise: bool = False,
    ) -> None:
        """All tokens of a key but some did not consume an event: it may violate their NOTs."""
        for token in list(self._tokens.get(key, ())):
            if token in movers:
                continue
            before = token.configurations
            if not token.miss(self.reader, ways, time, noise=noise):
                why = "an event came that a NOT forbids"
                if noise:
                    why = f"an event came that it could not use ({self.automaton.context})"
                self._drop(token, time, why, before)
            elif token.configurations != before:
                self._schedule(token)

    def _after(self, token: Token, time: int) -> list[PatternMatch]:
        """After a token has moved: it is complete, dropped, or waits.

        If its configurations give the parameters different values, each is a match.
        """
        skips = self.automaton.skip != "NO SKIP"
        if skips and token not in self._tokens.get(token.key, ()):
            return []  # another match has ended it
        ends = token.ends(self.reader)
        if ends:
            self._drop(token)
            self._skip(token)
        elif not token.configurations:
            self._drop(token, time, "an event came too early for HOLDS FOR", self._before)
        else:
            self._schedule(token)
        parameters = self.automaton.parameters
        rows = {tuple(values[slot] for slot in parameters) for values in map(self._computed, ends)}
        return [
            PatternMatch(row, time, token.start, tuple(token.used))
            for row in sorted(rows, key=self._rank)
        ]

    def _skip(self, complete: Token) -> None:
        """Drop the instances that a match ends: SKIP TO NEXT or SKIP PAST LAST."""
        if self.automaton.skip == "NO SKIP":
            return
        for token in list(self._tokens.get(complete.key, ())):
            if self.automaton.skip == "SKIP PAST LAST" or token.used[0] == complete.used[0]:
                self._drop(
                    token, token.start, f"another match was complete ({self.automaton.skip})"
                )

    def _computed(self, end: Configuration) -> Sequence[int]:
        """The values of a configuration that accepts, with those that are computed from it."""
        evaluator, computed = self.automaton.evaluator, self.automaton.computed
        if not computed or evaluator is None:
            return end.values
        more = {slot: evaluator.value(e, end.values, end.gathered) for slot, e in computed}
        return [more.get(slot, value) for slot, value in enumerate(end.values)]

    def _schedule(self, token: Token) -> None:
        """Queue the next timer of a token and the end of its deadline; old entries do no harm."""
        dues = {token.timer(self.reader), token.deadline(self.reader) + 1} - {inf} - token.due
        token.due |= dues
        for due in dues:
            heappush(self._due, (due, token.order, token))

    def _drop(
        self,
        token: Token,
        time: int = 0,
        why: str = "",
        before: Sequence[Configuration] = (),
    ) -> None:
        """Drop a token: it is complete, or `why` says why not; it may have had configurations."""
        if self.on_drop is not None and why:
            found = [*before, *token.configurations]
            self.on_drop(token, found[0].values if found else (), time, why)
        stream = self._tokens[token.key]
        stream.remove(token)
        if not stream:
            del self._tokens[token.key]
