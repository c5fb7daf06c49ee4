"""TokenTable: the tokens of a deterministic automaton, and batches of events for them.

Its twin in plain Python is `graphtide.patterns.detector`, which needs no determinism.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphtide.kernel.rowtable import RowTable
from graphtide.kernel.tokens.step import (
    DONE,
    FULL,
    MOST_TIMERS,
    tokens_advance,
    tokens_put,
    tokens_step,
    tokens_sweep,
)
from graphtide.kernel.tokens.tables import (
    AT,
    BLOCKED,
    FIELDS,
    HIGH_TOKEN,
    LIVE_TOKENS,
    MARKS,
    MOST_LIVE,
    NEWER,
    NEXT_ORDER,
    NOW,
    NUMBER,
    OLDEST,
    ORDER,
    OUT_AT,
    OUT_STARTED,
    OUT_TIME,
    OUT_USED,
    OUT_VALUES,
    STARTED,
    STATE,
    SWEEP_AT,
    USED,
    USED_WRITTEN,
    WAITING,
    WRITTEN,
    KernelAutomaton,
    TokenArrays,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.kernel.batch import Int, Ints, Longs

LEAST = 1024
"""Tokens for which there is room at first, and below which it is not worth looking for old ones."""


class TokenMatches(NamedTuple):
    """Complete matches as columns, in the order in which they were completed.

    `at` is the event of the batch that completed each, or that came after time did. The events that
    match k has used are `used[used_to[k-1]:used_to[k]]`.
    """

    values: Ints
    times: Longs
    started: Longs
    at: Longs
    used_to: Longs
    used: Longs


class SavedTokens(NamedTuple):
    """Tokens laid down, the oldest first; `tokens` has the columns of SAVED, zones and slots.

    `counts` are the time, the number of events that came, and the number of tokens there were.
    """

    tokens: Longs
    used_to: Longs
    used: Longs
    counts: Longs


class TokenTable:
    """Tokens of one pattern. Events are numbered as they come, from 0 on."""

    def __init__(self, automaton: KernelAutomaton) -> None:
        self._automaton = automaton
        self._tokens = self._empty(0, 0)

    def _empty(self, tokens: int, used: int) -> TokenArrays:
        """No tokens, with room for so many, which have used so many events."""
        a, room = self._automaton, LEAST + 2 * tokens
        width = max(1, a.key.shape[1])
        self._keys = RowTable(width)
        self._keys.reserve(room)
        marks = np.zeros(MARKS, np.int64)
        marks[SWEEP_AT] = room
        return TokenArrays(
            data=np.zeros((room, FIELDS + a.zones + a.slots), np.int64),
            links=np.zeros((4 * room + used, 2), np.int64),
            chains=np.zeros((len(self._keys.arrays.rows), 2 * len(a.edge_of)), np.int32),
            heap=np.zeros((room * MOST_TIMERS, 5), np.int64),
            keys=self._keys.arrays,
            marks=marks,
            source=np.zeros((1, width), np.int32),
        )

    def __len__(self) -> int:
        return int(self._tokens.marks[LIVE_TOKENS])

    @property
    def most(self) -> int:
        """The most tokens that there ever were at once."""
        return int(self._tokens.marks[MOST_LIVE])

    @property
    def nbytes(self) -> int:
        """Bytes held, reserve included."""
        z = self._tokens
        return z.data.nbytes + z.links.nbytes + z.chains.nbytes + z.heap.nbytes + self._keys.nbytes

    def feed(self, types: Ints, values: Ints, times: Longs) -> TokenMatches:
        """Take in events in order of time; a type of -1 is none of the pattern's."""
        return self._run(lambda z, out, used: self._step(z, types, values, times, out, used))

    def advance(self, to: int) -> TokenMatches:
        """Let time pass: timers that are due before `to` fire."""
        return self._run(lambda z, out, used: tokens_advance(self._automaton, z, to, out, used))

    def _step(
        self, z: TokenArrays, types: Ints, values: Ints, times: Longs, out: Longs, used: Longs
    ) -> Int:
        return tokens_step(self._automaton, z, types, values, times, out, used)

    def _run(self, loop: Callable[[TokenArrays, Longs, Longs], Int]) -> TokenMatches:
        out: Longs = np.empty((LEAST, OUT_VALUES + len(self._automaton.shown)), np.int64)
        used: Longs = np.empty(8 * LEAST, np.int64)
        self._tokens.marks[[AT, WRITTEN, USED_WRITTEN]] = 0
        while True:
            stopped = loop(self._tokens, out, used)
            if stopped == DONE:
                break
            if stopped == FULL:
                out, used = _doubled(out), _doubled(used)
            else:
                self._make_room()
        marks = self._tokens.marks
        rows = out[: marks[WRITTEN]]
        return TokenMatches(
            rows[:, OUT_VALUES:].astype(np.int32),
            rows[:, OUT_TIME],
            rows[:, OUT_STARTED],
            rows[:, OUT_AT],
            rows[:, OUT_USED],
            used[: marks[USED_WRITTEN]],
        )

    def _make_room(self) -> None:
        """Drop what is overdue; if that frees less than half, grow."""
        z = self._tokens
        before = int(z.marks[LIVE_TOKENS])
        tokens_sweep(z)
        live = int(z.marks[LIVE_TOKENS])
        z.marks[SWEEP_AT] = max(LEAST, 2 * live)
        if 2 * live < before and live < len(z.data) // 2:
            return
        self._keys.reserve(2 * live + LEAST)
        missing = len(self._keys.arrays.rows) - len(z.chains)
        chains = np.concatenate(
            [z.chains, np.zeros((max(missing, 0), z.chains.shape[1]), np.int32)]
        )
        self._tokens = z._replace(
            data=_doubled(z.data), links=_doubled(z.links), chains=chains, heap=_doubled(z.heap),
            keys=self._keys.arrays,
        )  # fmt: skip

    def sweep(self) -> None:
        """Drop the tokens whose time is over; they are dropped by and by in any case."""
        tokens_sweep(self._tokens)

    def save(self) -> SavedTokens:
        """What there is to know of the tokens."""
        rows, links = self.rows(), self._tokens.links
        used: list[int] = []
        ends = []
        for first in rows[:, USED].tolist():
            link, own = first, []
            while link:
                own.append(int(links[link - 1, 0]))
                link = int(links[link - 1, 1])
            used += reversed(own)
            ends.append(len(used))
        fields = [ORDER, STARTED, STATE, BLOCKED, *range(FIELDS, rows.shape[1])]
        counts = self._tokens.marks[[NOW, NUMBER, NEXT_ORDER]]
        return SavedTokens(
            rows[:, fields], np.array(ends, np.int64), np.array(used, np.int64), counts
        )

    def load(self, saved: SavedTokens) -> None:
        """Have the tokens that were saved, and no others."""
        self._tokens = self._empty(len(saved.tokens), len(saved.used))
        self._tokens.marks[[NOW, NUMBER, NEXT_ORDER]] = saved.counts
        tokens_put(self._automaton, self._tokens, saved.tokens, saved.used_to, saved.used)

    def rows(self) -> Longs:
        """The live tokens, the oldest first, with the columns of `token_tables`."""
        z = self._tokens
        found, token = [], int(z.marks[OLDEST]) - 1
        while token >= 0:
            found.append(token)
            token = int(z.data[token, NEWER]) - 1
        return z.data[found]

    @property
    def now(self) -> int:
        """The time of the last event, or to which time was advanced."""
        return int(self._tokens.marks[NOW])

    @property
    def next_due(self) -> int | None:
        """When the next timer is due, perhaps one of a token that is gone; None without timers."""
        z = self._tokens
        return int(z.heap[0, 0]) if z.marks[WAITING] else None

    @property
    def places(self) -> int:
        """Tokens for which there was ever need of a place at once, overdue ones included."""
        return int(self._tokens.marks[HIGH_TOKEN])


def _doubled(array: Longs) -> Longs:
    grown = np.zeros((2 * len(array), *array.shape[1:]), np.int64)
    grown[: len(array)] = array
    return grown
