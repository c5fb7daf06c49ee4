"""TokenTable: the tokens of a deterministic automaton, and batches of events for them.

Its twin in plain Python is `graphtide.patterns.detector`, which needs no determinism.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphtide.kernel.batch import as_long, longer
from graphtide.kernel.rowtable import HIGH, RowTable
from graphtide.kernel.tokens import tables as col
from graphtide.kernel.tokens.plain import tokens_plain_step
from graphtide.kernel.tokens.step import (
    DONE,
    FULL,
    MAX_TIMERS,
    tokens_advance,
    tokens_listed,
    tokens_put,
    tokens_step,
    tokens_sweep,
    tokens_used,
)
from graphtide.kernel.tokens.tables import KernelAutomaton, TokenArrays

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graphtide.kernel.batch import Int, Ints, Longs

LEAST = 1024
"""Tokens for which there is room at first, and below which a sweep is not worth it."""


class TokenMatches(NamedTuple):
    """Complete matches as columns, in the order in which they were completed.

    `at` is the event of the batch that completed the match, or that followed its timer. Match k has
    used the events `used[used_to[k-1]:used_to[k]]`.
    """

    values: Ints
    times: Longs
    started: Longs
    at: Longs
    used_to: Longs
    used: Longs


class SavedTokens(NamedTuple):
    """A savepoint of tokens, the oldest first; `tokens` has the columns of SAVED, zones and slots.

    `counts` are the time, the number of events and the number of tokens so far.
    """

    tokens: Longs
    used_to: Longs
    used: Longs
    counts: Longs

    def held_ids(self) -> Iterator[Longs]:
        """The values of the tokens, and some numbers that are none."""
        yield self.tokens[:, col.SAVED :]


class TokenTable:
    """The tokens of one pattern."""

    def __init__(self, automaton: KernelAutomaton) -> None:
        self._automaton = automaton
        noise = automaton.context != col.CHRONICLE
        self._is_plain = not (noise or len(automaton.watches) or len(automaton.timers))
        self._tokens = self._empty(0, 0)

    def _empty(self, tokens: int, used: int) -> TokenArrays:
        """Empty arrays with room for this many tokens and used events."""
        a, room = self._automaton, LEAST + 2 * tokens
        width = max(1, a.key.shape[1])
        self._keys = RowTable(width)
        self._keys.reserve(room)
        regs = np.zeros(col.REGISTERS, np.int64)
        regs[col.SWEEP_AT] = room
        return TokenArrays(
            data=np.zeros((room, col.FIELDS + a.zones + a.slots), np.int64),
            links=np.zeros((4 * room + used, 2), np.int64),
            chains=np.zeros((len(self._keys.arrays.rows), 2 * len(a.edge_of)), np.int32),
            heap=np.zeros((room * MAX_TIMERS, 5), np.int64),
            keys=self._keys.arrays,
            regs=regs,
            source=np.zeros((1, width), np.int32),
        )

    def __len__(self) -> int:
        return int(self._tokens.regs[col.LIVE_TOKENS])

    @property
    def most(self) -> int:
        """The peak number of tokens."""
        return int(self._tokens.regs[col.PEAK_LIVE])

    @property
    def nbytes(self) -> int:
        """Bytes held, reserve included."""
        z = self._tokens
        return z.data.nbytes + z.links.nbytes + z.chains.nbytes + z.heap.nbytes + self._keys.nbytes

    def feed(
        self, types: Ints, values: Ints, times: Longs, numbers: Longs, begins: Ints | None
    ) -> TokenMatches:
        """Process rows of events in order of time; type -1 is of no type of the pattern.

        `numbers` has the number of each row's event, `begins` what the row begins: None if each row
        is an event.
        """
        a, rows = self._automaton, (types, values, times, numbers)
        if begins is None:
            if self._is_plain:
                return self._run(lambda z, out, used: tokens_plain_step(a, z, *rows, out, used))
            begins = np.zeros(len(types), np.int32)
        return self._run(lambda z, out, used: tokens_step(a, z, *rows, begins, out, used))

    def advance(self, to: int) -> TokenMatches:
        """Advance the time: fire the timers that are due before `to`."""
        return self._run(lambda z, out, used: tokens_advance(self._automaton, z, to, out, used))

    def _run(self, loop: Callable[[TokenArrays, Longs, Longs], Int]) -> TokenMatches:
        out: Longs = np.empty((LEAST, col.OUT_VALUES + len(self._automaton.shown)), np.int64)
        used: Longs = np.empty(8 * LEAST, np.int64)
        self._tokens.regs[[col.AT, col.WRITTEN, col.USED_WRITTEN]] = 0
        while True:
            stopped = loop(self._tokens, out, used)
            if stopped == DONE:
                break
            if stopped == FULL:
                out, used = longer(out), longer(used)
            else:
                self._make_room()
        regs = self._tokens.regs
        rows = out[: regs[col.WRITTEN]]
        return TokenMatches(
            rows[:, col.OUT_VALUES :].astype(np.int32),
            rows[:, col.OUT_TIME],
            rows[:, col.OUT_STARTED],
            rows[:, col.OUT_AT],
            rows[:, col.OUT_USED],
            used[: regs[col.USED_WRITTEN]],
        )

    def _make_room(self) -> None:
        """Drop expired tokens; if that frees less than half, grow."""
        z = self._tokens
        before = int(z.regs[col.LIVE_TOKENS])
        tokens_sweep(z)
        live = int(z.regs[col.LIVE_TOKENS])
        sweep_at = max(LEAST, 2 * live, int(z.regs[col.HIGH_TOKEN]) // 4)
        if 2 * live >= before or live >= len(z.data) // 2:
            self._grow(live)
        z.regs[col.SWEEP_AT] = sweep_at  # last: loops rely on it for the room for partitions

    def _grow(self, live: int) -> None:
        """Double the room."""
        z = self._tokens
        self._keys.arrays = z.keys  # what was reserved before an interrupt is not in use
        self._keys.reserve(2 * live + LEAST)
        keys = self._keys.arrays
        self._tokens = z._replace(
            data=longer(z.data), links=longer(z.links), heap=longer(z.heap),
            chains=as_long(z.chains, len(keys.rows)), keys=keys,
        )  # fmt: skip

    def sweep(self) -> None:
        """Drop expired tokens now; otherwise they are dropped when room is needed."""
        tokens_sweep(self._tokens)

    def save(self) -> SavedTokens:
        """A savepoint of the tokens."""
        rows, links = self.rows(), self._tokens.links
        used: Longs = np.empty(int(self._tokens.regs[col.HIGH_LINK]), np.int64)
        ends: Longs = np.empty(len(rows), np.int64)
        many = tokens_used(rows, links, ends, used)
        fields = [col.ORDER, col.STARTED, col.STATE, col.BLOCKED, col.LAST]
        fields += range(col.FIELDS, rows.shape[1])
        counts = self._tokens.regs[[col.NOW, col.NUMBER, col.NEXT_ORDER]]
        return SavedTokens(rows[:, fields], ends, used[:many].copy(), counts)

    def load(self, saved: SavedTokens) -> None:
        """Replace all tokens by those of a savepoint."""
        self._tokens = self._empty(len(saved.tokens), len(saved.used))
        self._tokens.regs[[col.NOW, col.NUMBER, col.NEXT_ORDER]] = saved.counts
        tokens = np.ascontiguousarray(saved.tokens)  # columns that were picked lie one by one
        tokens_put(self._automaton, self._tokens, tokens, saved.used_to, saved.used)

    def clear(self, counts: tuple[int, int, int]) -> None:
        """Drop all tokens, and set the counts of a savepoint."""
        self._tokens = self._empty(0, 0)
        self._tokens.regs[[col.NOW, col.NUMBER, col.NEXT_ORDER]] = counts

    @property
    def events(self) -> int:
        """The number of the next event, one more than that of the last."""
        return int(self._tokens.regs[col.NUMBER])

    def rows(self) -> Longs:
        """The live tokens, the oldest first, with the columns of `tables`."""
        z = self._tokens
        rows: Longs = np.empty((int(z.regs[col.LIVE_TOKENS]), z.data.shape[1]), np.int64)
        tokens_listed(z, rows)
        return rows[np.argsort(rows[:, col.ORDER])]

    def held_ids(self) -> Iterator[Longs]:
        """The values of all tokens and partitions, of expired ones too."""
        z, slots = self._tokens, col.FIELDS + self._automaton.zones
        yield z.data[: z.regs[col.HIGH_TOKEN], slots:]
        keys = z.keys
        yield keys.rows[: int(keys.meta[HIGH]), : keys.width].astype(np.int64)

    @property
    def now(self) -> int:
        """The current time: of the last event, or to which it was advanced."""
        return int(self._tokens.regs[col.NOW])

    @property
    def next_due(self) -> int | None:
        """When the next timer is due, possibly one of a dropped token; None without timers."""
        z = self._tokens
        return int(z.heap[0, 0]) if z.regs[col.HEAP_SIZE] else None

    @property
    def places(self) -> int:
        """The peak number of tokens, expired ones included."""
        return int(self._tokens.regs[col.HIGH_TOKEN])
