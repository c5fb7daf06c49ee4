"""Detectors: run one pattern over events, by the kernel or in Python.

`docs/patterns.md` has the semantics of tokens, contexts and timers.
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from graphtide.errors import GraphtideError
from graphtide.jit import JIT
from graphtide.kernel.tokens.tables import SAME_OCCURRENCE
from graphtide.kernel.tokens.token_table import SavedTokens, TokenMatches, TokenTable
from graphtide.patterns.determine import Deterministic, determine
from graphtide.patterns.event_rows import EventRows, RowArranger
from graphtide.patterns.general import Detector, MatchColumns, Rank, SavedDetector, event_arrays
from graphtide.patterns.tables import kernel_automaton, make_tables, why_no_kernel
from graphtide.patterns.tokens import (
    NEVER,
    Configuration,
    ConfigurationMover,
    Event,
    PatternMatch,
    Token,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from graphtide.kernel.batch import Longs
    from graphtide.patterns.automaton import Automaton


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
        self._now: int | None = None
        self._form = form
        self._kernel = kernel_automaton(form, make_tables(form))
        self.table = TokenTable(self._kernel)
        self._arranger = RowArranger(form.automaton)
        self._ambiguous = _ambiguous_types(form)
        self._general: Detector | None = None

    @property
    def now(self) -> int | None:
        """The time before which no event may come."""
        return self._now

    @now.setter
    def now(self, time: int | None) -> None:
        self._now = time
        if self._general is not None:
            self._general.now = time

    @property
    def reader(self) -> ConfigurationMover:
        """The automaton's transitions, for `explain`."""
        return ConfigurationMover(self.automaton)

    def held_ids(self) -> Iterator[NDArray[np.int64]]:
        """The ids of all values."""
        return self.table.held_ids()

    def step(self, type: int, values: tuple[int, ...], time: int) -> list[PatternMatch]:  # noqa: A002
        """Take in an event, after all timers before it; the matches, in order."""
        return self.take([Event(type, values, time)])

    def take(self, rows: Sequence[Event]) -> list[PatternMatch]:
        """Take in one event of several rows, after all timers before it; the matches, in order."""
        return _rows(self.feed(*event_arrays(rows, self.events)))

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
        times, shared = rows.times, False
        if len(times):
            self._pass(int(times[0]))
            if len(times) > 1 and (backwards := times[1:] < times[:-1]).any():
                at = int(np.argmax(backwards))
                self._refuse(int(times[at]), int(times[at + 1]))
            shared = len(times) > 1 and bool(rows.begins.any())
            if shared or self._general is not None:
                self._choose(rows)
            self._now = int(times[-1])  # the general detector goes there with the last row
        if self._general is not None:
            return self._general.feed_rows(rows)
        return _columns(self.table.feed(*rows[:4], rows.begins if shared else None))

    def _choose(self, rows: EventRows) -> None:
        """Leave tokens that the kernel cannot move to the general detector, until they are gone.

        These are tokens that an event of several types can move in two ways at once.
        """
        if (rows.begins == SAME_OCCURRENCE).any() and self._is_ambiguous(rows):
            if self._general is None:
                self._general = Detector(self.automaton)
                self._general.load(self._as_general())
                self.table.clear((0, 0, 0))
        elif self._general is not None and not self._general.tokens():
            saved, self._general = self._general.save(), None
            self.table.clear((saved.now or 0, saved.events, saved.born))

    def _is_ambiguous(self, rows: EventRows) -> bool:
        occurrence = np.cumsum(rows.begins < SAME_OCCURRENCE)
        for distance in range(1, len(occurrence)):
            same = occurrence[distance:] == occurrence[:-distance]
            if not same.any():
                return False
            pairs = rows.types[distance:][same], rows.types[:-distance][same]
            if self._ambiguous[pairs].any():
                return True
        return False

    def advance(self, to: int, *, causes: bool = False) -> list[PatternMatch]:
        """Move time on: timers before `to` fire; see `Detector.advance`."""
        self._pass(to)
        self.now = to
        if self._general is not None:
            return self._general.advance(to, causes=causes)
        return _rows(_columns(self.table.advance(to)))

    @property
    def events(self) -> int:
        """The number of the next event, if it is given none."""
        return self.table.events if self._general is None else self._general.events

    def save(self) -> SavedTokens | SavedDetector:
        """The state of the detector, to be loaded later, or in another process."""
        return self.table.save() if self._general is None else self._general.save()

    def load(self, saved: SavedTokens | SavedDetector) -> None:
        """Load a saved state; the ids of terms have to be the same."""
        if isinstance(saved, SavedDetector):
            self._general = Detector(self.automaton)
            self._general.load(saved)
            self.now = saved.now
            return
        self._general = None
        self.table.load(saved)
        self.now = int(saved.counts[0]) if saved.counts[1] else self.now

    def next_time(self) -> int:
        """The time of the next timer or deadline; NEVER if there is none."""
        if self._general is not None:
            return self._general.next_time()
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

    def general(self, rank: Rank | None = None) -> Detector:
        """A general detector with the same tokens."""
        found = Detector(self.automaton, rank)
        found.load(self._general.save() if self._general is not None else self._as_general())
        return found

    def tokens(self) -> list[Token]:
        """The live tokens, oldest first."""
        if self._general is not None:
            return self._general.tokens()
        return self._as_general().tokens

    def _as_general(self) -> SavedDetector:
        """The tokens of the kernel, as the general detector has them."""
        saved, zones = self.table.save(), self._kernel.zones
        tokens, first = [], 0
        rows = zip(saved.tokens.tolist(), saved.used_to.tolist(), strict=True)
        for (order, started, state, blocked, last, *rest), end in rows:
            values = tuple(rest[zones:])
            violated, noisy = self._violated(state, blocked)
            configurations = [
                Configuration(
                    position,
                    values,
                    self._entries(position, rest[:zones]),
                    last,
                    violated,
                    noisy=noisy,
                )
                for position in self._form.states[state]
            ]
            key = tuple(values[slot] for slot in self.automaton.per)
            used = saved.used[first:end].tolist()
            tokens.append(Token(order, started, key, used, configurations))
            first = end
        _, events, born = saved.counts.tolist()
        return SavedDetector(tokens, self.now, events, born)

    def _entries(self, position: int, entries: list[int]) -> tuple[int | None, ...]:
        """The zones that are active at a position; the kernel retains those that were left."""
        active = self.automaton.positions[position].zones
        return tuple(entry if zone in active else None for zone, entry in enumerate(entries))

    def _violated(self, state: int, blocked: int) -> tuple[frozenset[int], bool]:
        """The NOTs of blocked edges; and whether all edges without NOT are blocked, as by noise.

        An edge that is blocked for another reason stays so: it does no harm to count it here.
        """
        moves = self._form.moves[state]
        nots = [frozenset(move.members[0].nots) for move in moves]
        closed = [bool(blocked >> bit & 1) for bit in range(len(moves))]
        there = frozenset[int]().union(*(n for n, c in zip(nots, closed, strict=True) if not c))
        gone = frozenset[int]().union(*(n for n, c in zip(nots, closed, strict=True) if c))
        plain = [c for n, c in zip(nots, closed, strict=True) if not n]
        return gone - there, bool(plain) and all(plain)


def _ambiguous_types(form: Deterministic) -> NDArray[np.bool_]:
    """For which two types an event of both can move a token in two ways."""
    many = len(form.automaton.types)
    found = np.zeros((many + 1, many + 1), np.bool_)
    for moves in form.moves:
        types = {move.letter.type for move in moves if move.letter is not None}
        for one, two in permutations(types, 2):
            found[one, two] = True
    return found


def without_users(saved: SavedTokens | SavedDetector, number: int) -> SavedTokens | SavedDetector:
    """Saved tokens without those that have used an event."""
    if isinstance(saved, SavedDetector):
        return saved._replace(tokens=[t for t in saved.tokens if number not in t.used])
    sizes = np.diff(saved.used_to, prepend=0)
    left = np.ones(len(sizes), np.bool_)
    left[np.searchsorted(saved.used_to, np.flatnonzero(saved.used == number), "right")] = False
    used = saved.used[np.repeat(left, sizes)]
    return saved._replace(tokens=saved.tokens[left], used_to=np.cumsum(sizes[left]), used=used)


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
