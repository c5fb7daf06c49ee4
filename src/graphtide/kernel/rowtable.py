"""`RowTable`: rows with multiplicities, a unique hash index over whole rows, and chained indexes.

    rows   one line of int32 per row: values | multiplicity | (next, prev) for each chained index
    slots  open addressing over whole rows: (row + 1, hash)
    heads  open addressing per chained index: (first row + 1, hash, chain length)

A row fits into one or two cache lines, which is what a probe costs. Deletion shifts later entries
of a probe sequence back instead of leaving tombstones, and freed rows are reused, so that endless
insert/delete streams never grow a table beyond its largest live size.

The home of an entry is its hash, as a fraction of all hashes, of the region's size. So a region has
any size, entries are nearly in the order of their hashes, and a larger region is filled from front
to back: memory is read and written in sequence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphtide.arrays import bundle
from graphtide.jit import compiled, inlined

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from graphtide.arrays import Ints2, Longs1
    from graphtide.kernel.batch import Int, Ints

LIVE, HIGH, FREE = 0, 1, 2
"""Cells of `meta`: live rows, peak number of rows, first free row + 1."""

OFFSET, SIZE, USED, KEYS, KEY0 = 0, 1, 2, 3, 4
"""Columns of `indexes`: first head, number of heads, keys in use, key columns, first key column."""

HEAD, HASH, LENGTH = 0, 1, 2
"""Columns of `heads` (and, but for the length, of `slots`)."""

MIN_SLOTS = 16

SMALL_REGION = 1 << 16
"""Slots below which a region doubles when it grows, and at least half of the slots are free then:
what is copied, and the length of probe sequences, matter more than its size."""

FULL, OUT_OF = 7, 10
"""So many in so many slots are used at most: more would make probe sequences long."""

UNLIMITED = 2**31 - 1
"""The keys for which a table without indexes has room."""

HELD_AT_ONCE = 1 << 16
"""Rows that are copied at a time, to tell which ids a table holds."""


@bundle
class Table(NamedTuple):
    """The arrays of a RowTable, as compiled loops take them."""

    rows: Ints2
    slots: Ints2
    heads: Ints2
    indexes: Ints2
    meta: Longs1
    width: int


@inlined
def mix(state: np.uint64, value: Int) -> np.uint64:
    """Add one value to a hash: a multiply and a shift; the high bits are well mixed."""
    state = (state ^ np.uint64(value)) * np.uint64(0x9E3779B97F4A7C15)
    return state ^ (state >> np.uint64(29))


@inlined
def fingerprint(state: np.uint64) -> Int:
    """The stored 31 bits of a hash."""
    return np.int64((state * np.uint64(0xBF58476D1CE4E5B9)) >> np.uint64(33))


@inlined
def home_of(hash_: Int, size: Int) -> Int:
    """Where in a region of some size the probe sequence of a hash begins."""
    return (np.int64(hash_) * size) >> 31


@inlined
def row_hash(width: Int, source: Ints, at: Int, column: Int) -> Int:
    """The hash of `width` values of `source[at]` that begin at `column`."""
    state = np.uint64(width + 1)
    for k in range(width):
        state = mix(state, source[at, column + k])
    return fingerprint(state)


@inlined
def same_row(t: Table, row: Int, source: Ints, at: Int, column: Int) -> bool:
    """Whether a row has the values of `source[at]` that begin at `column`."""
    for k in range(t.width):
        if t.rows[row, k] != source[at, column + k]:
            return False
    return True


@inlined
def find_slot(t: Table, hash_: Int, source: Ints, at: Int, column: Int) -> Int:
    """The slot of this row, or the empty one where it would be inserted."""
    size = t.slots.shape[0]
    slot = home_of(hash_, size)
    while t.slots[slot, HEAD] != 0:
        if t.slots[slot, HASH] == hash_:
            if same_row(t, t.slots[slot, HEAD] - 1, source, at, column):
                break
        slot += 1
        if slot == size:
            slot = 0
    return slot


@inlined
def find_row(t: Table, source: Ints, at: Int, column: Int) -> Int:
    """The row with these values, or -1."""
    hash_ = row_hash(t.width, source, at, column)
    return t.slots[find_slot(t, hash_, source, at, column), HEAD] - 1


@inlined
def distance(begin: Int, end: Int, size: Int) -> Int:
    """How many entries a probe goes from one place of a region to another."""
    return end - begin if end >= begin else end - begin + size


@inlined
def close_gap(entries: Ints, base: Int, size: Int, gap: Int) -> None:
    """Empty an entry and move later ones of its probe sequence back (no tombstones)."""
    probe = gap
    while True:
        probe += 1
        if probe == size:
            probe = 0
        if entries[base + probe, HEAD] == 0:
            break
        home = home_of(entries[base + probe, HASH], size)
        if distance(home, probe, size) >= distance(gap, probe, size):
            for k in range(entries.shape[1]):
                entries[base + gap, k] = entries[base + probe, k]
            gap = probe
    entries[base + gap, HEAD] = 0


@inlined
def add_row(t: Table, slot: Int, hash_: Int, source: Ints, at: Int, column: Int) -> Int:
    """Store a new row at an empty slot, with multiplicity 0 and in no chain."""
    row = t.meta[FREE] - 1
    if row >= 0:
        t.meta[FREE] = t.rows[row, t.width + 1]
    else:
        row = t.meta[HIGH]
        t.meta[HIGH] += 1
    for k in range(t.width):
        t.rows[row, k] = source[at, column + k]
    t.rows[row, t.width] = 0
    t.slots[slot, HEAD] = row + 1
    t.slots[slot, HASH] = hash_
    t.meta[LIVE] += 1
    return row


@inlined
def has_room(t: Table, links: Int) -> bool:
    """Whether there is room for one more row, and for its keys in a set of indexes."""
    live = t.meta[LIVE]
    if live >= t.rows.shape[0] or live >= t.slots.shape[0] * FULL // OUT_OF:
        return False
    for index in range(t.indexes.shape[0]):
        if links >> index & 1:
            if not has_room_for_key(t, index):
                return False
    return True


@inlined
def has_room_for_key(t: Table, index: Int) -> bool:
    """Whether there is room for one more key in an index."""
    return t.indexes[index, USED] < np.int64(t.indexes[index, SIZE]) * FULL // OUT_OF


@inlined
def remove_row(t: Table, row: Int) -> None:
    """Free a row that is in no chain."""
    hash_ = row_hash(t.width, t.rows, row, 0)
    remove_row_at(t, find_slot(t, hash_, t.rows, row, 0), row)


@inlined
def remove_row_at(t: Table, slot: Int, row: Int) -> None:
    """Free a row that is in no chain, and whose slot is known."""
    close_gap(t.slots, 0, t.slots.shape[0], slot)
    t.rows[row, t.width] = 0
    t.rows[row, t.width + 1] = t.meta[FREE]
    t.meta[FREE] = row + 1
    t.meta[LIVE] -= 1


@inlined
def key_hash(t: Table, index: Int, key: Ints, at: Int) -> Int:
    """The hash of the index's columns of `key[at]`."""
    state = np.uint64(index + 1)
    for k in range(t.indexes[index, KEYS]):
        state = mix(state, key[at, t.indexes[index, KEY0 + k]])
    return fingerprint(state)


@inlined
def find_head(t: Table, index: Int, hash_: Int, key: Ints, at: Int) -> Int:
    """The head of the chain whose rows agree with `key[at]` on the index's columns.

    The values of `key` are at the same columns as in the table. If there is no such chain, the
    result is the empty head where it would be inserted.
    """
    size = np.int64(t.indexes[index, SIZE])
    base = np.int64(t.indexes[index, OFFSET])
    probe = home_of(hash_, size)
    while t.heads[base + probe, HEAD] != 0:
        if t.heads[base + probe, HASH] == hash_:
            first = t.heads[base + probe, HEAD] - 1
            same = True
            for k in range(t.indexes[index, KEYS]):
                column = t.indexes[index, KEY0 + k]
                if t.rows[first, column] != key[at, column]:
                    same = False
                    break
            if same:
                break
        probe += 1
        if probe == size:
            probe = 0
    return base + probe


@inlined
def link(t: Table, index: Int, row: Int) -> None:
    """Insert a row at the front of its chain."""
    link_hashed(t, index, row, key_hash(t, index, t.rows, row))


@inlined
def link_hashed(t: Table, index: Int, row: Int, hash_: Int) -> None:
    """Insert a row, whose key has this hash, at the front of its chain."""
    head = find_head(t, index, hash_, t.rows, row)
    first = t.heads[head, HEAD]
    if first == 0:
        t.indexes[index, USED] += 1
        t.heads[head, HASH] = hash_
        t.heads[head, LENGTH] = 0
    after = t.width + 1 + 2 * index
    t.rows[row, after] = first
    t.rows[row, after + 1] = 0
    if first != 0:
        t.rows[first - 1, after + 1] = row + 1
    t.heads[head, HEAD] = row + 1
    t.heads[head, LENGTH] += 1


@inlined
def unlink(t: Table, index: Int, row: Int) -> None:
    """Remove a row from its chain."""
    unlink_hashed(t, index, row, key_hash(t, index, t.rows, row))


@inlined
def unlink_hashed(t: Table, index: Int, row: Int, hash_: Int) -> None:
    """Remove a row, whose key has this hash, from its chain."""
    head = find_head(t, index, hash_, t.rows, row)
    after = t.width + 1 + 2 * index
    following, before = t.rows[row, after], t.rows[row, after + 1]
    if following != 0:
        t.rows[following - 1, after + 1] = before
    if before != 0:
        t.rows[before - 1, after] = following
    else:
        t.heads[head, HEAD] = following
    t.heads[head, LENGTH] -= 1
    if following == 0 and before == 0:
        base = t.indexes[index, OFFSET]
        close_gap(t.heads, base, t.indexes[index, SIZE], head - base)
        t.indexes[index, USED] -= 1


@inlined
def add_to_row(t: Table, diff: Int, source: Ints, at: Int, column: Int) -> Int:
    """Add `diff` to the multiplicity of a row, inserting or removing it; the new multiplicity."""
    hash_ = row_hash(t.width, source, at, column)
    slot = find_slot(t, hash_, source, at, column)
    row = t.slots[slot, HEAD] - 1
    if row < 0:
        row = add_row(t, slot, hash_, source, at, column)
        for index in range(t.indexes.shape[0]):
            link(t, index, row)
    t.rows[row, t.width] += diff
    count = t.rows[row, t.width]
    if count == 0:
        for index in range(t.indexes.shape[0]):
            unlink(t, index, row)
        remove_row_at(t, slot, row)
    return count


@inlined
def add_to_keyed_row(t: Table, key: Int, diff: Int, source: Ints, at: Int, column: Int) -> None:
    """Like `add_to_row`, in a table with one index, if the hash of the row's key is known."""
    hash_ = row_hash(t.width, source, at, column)
    slot = find_slot(t, hash_, source, at, column)
    row = t.slots[slot, HEAD] - 1
    if row < 0:
        row = add_row(t, slot, hash_, source, at, column)
        link_hashed(t, 0, row, key)
    t.rows[row, t.width] += diff
    if t.rows[row, t.width] == 0:
        unlink_hashed(t, 0, row, key)
        remove_row_at(t, slot, row)


@compiled
def rehash(old: Ints2, base: Int, size: Int, new: Ints2, new_base: Int, new_size: Int) -> None:
    """Copy the entries of one hash region into a larger, empty one."""
    for slot in range(size):
        if old[base + slot, HEAD] != 0:
            probe = home_of(old[base + slot, HASH], new_size)
            while new[new_base + probe, HEAD] != 0:
                probe += 1
                if probe == new_size:
                    probe = 0
            for k in range(old.shape[1]):
                new[new_base + probe, k] = old[base + slot, k]


@compiled
def copy_live(rows: Ints2, high: Int, width: Int, out: Ints2) -> None:
    """Copy the first columns of the live rows, in storage order."""
    n = 0
    for row in range(high):
        if rows[row, width] != 0:
            for k in range(out.shape[1]):
                out[n, k] = rows[row, k]
            n += 1


class RowTable:
    """Allocation, growth and size of a `Table`; the loops over it are compiled functions.

    >>> table = RowTable(width=2, keys=[(0,)])
    >>> table.reserve(3), len(table)
    (8, 0)
    """

    __slots__ = ("arrays", "width")

    def __init__(self, width: int, keys: Sequence[Sequence[int]] = ()) -> None:
        self.width = width
        self.arrays = Table(
            rows=np.zeros((MIN_SLOTS // 2, width + 1 + max(1, 2 * len(keys))), np.int32),
            slots=np.zeros((MIN_SLOTS, 2), np.int32),
            heads=np.zeros((len(keys) * MIN_SLOTS, 3), np.int32),
            indexes=empty_indexes(keys, 0),
            meta=np.zeros(4, np.int64),
            width=width,
        )

    def __len__(self) -> int:
        return int(self.arrays.meta[LIVE])

    @property
    def nbytes(self) -> int:
        """Bytes held by the table, reserve included."""
        t = self.arrays
        return t.rows.nbytes + t.slots.nbytes + t.heads.nbytes + t.indexes.nbytes

    def reserve(self, extra: int) -> int:
        """Make room for `extra` more rows: compiled loops cannot grow a table.

        Returns the number of rows for which there is room now.
        """
        return min(self.reserve_rows(extra), self.reserve_keys(extra))

    def reserve_rows(self, extra: int) -> int:
        """Make room for `extra` more rows, but not for their keys; for how many there is room."""
        live = int(self.arrays.meta[LIVE])
        if live + extra > len(self.arrays.rows):
            self._grow_rows(live + extra)
        if live + extra > entries_in(len(self.arrays.slots)):
            self._grow_slots(live + extra)
        return min(len(self.arrays.rows), entries_in(len(self.arrays.slots))) - live

    def reserve_keys(self, extra: int) -> int:
        """Make room for `extra` more keys in each index; the number for which there is room now."""
        # In plain Python: there are few indexes, and a batch of one row comes here too.
        heads = [(line[SIZE], line[USED]) for line in self.arrays.indexes.tolist()]
        enough = [slots_for(used + extra, size) for size, used in heads]
        if enough != [size for size, _ in heads]:
            self.resize_heads(enough)
        room = [entries_in(size) - used for size, (_, used) in zip(enough, heads, strict=True)]
        return min(room, default=UNLIMITED)

    def reserve_inserts(self, extra: int) -> None:
        """Make room for so many more rows at once, and for keys if there will be as many per row.

        It takes less time than to grow step by step.
        """
        live, used = int(self.arrays.meta[LIVE]), self.arrays.indexes[:, USED].tolist()
        self.reserve_rows(extra)
        self.reserve_heads([extra * keys // max(live, 1) for keys in used])

    def reserve_heads(self, extra: Sequence[int]) -> None:
        """Make room for so many more keys in each index, however few there will be."""
        heads = self.arrays.indexes[:, [SIZE, USED]].tolist()
        sizes = [
            slots_for(used + more, size) for (size, used), more in zip(heads, extra, strict=True)
        ]
        if sizes != [size for size, _ in heads]:
            self.resize_heads(sizes)

    def trim_heads(self) -> None:
        """Give back the room of keys that did not come."""
        heads = self.arrays.indexes[:, [SIZE, USED]].tolist()
        enough = [slots_for(used, 0) for _, used in heads]
        sizes = [
            least if 9 * least < 8 * size else size
            for least, (size, _) in zip(enough, heads, strict=True)
        ]
        if sizes != [size for size, _ in heads]:
            self.resize_heads(sizes)

    def change_indexes(self, keys: Sequence[Sequence[int]], kept: int) -> None:
        """Replace the indexes: the first `kept` stay as they are, the others are new and empty."""
        t = self.arrays
        live, high, width = int(t.meta[LIVE]), int(t.meta[HIGH]), self.width + 1
        rows = np.zeros((max(len(t.rows), live * 5 // 4), width + max(1, 2 * len(keys))), np.int32)
        same = width + max(1, 2 * kept)  # the free list uses the first index's next column
        rows[:high, :same] = t.rows[:high, :same]
        end = int(t.indexes[:kept, SIZE].sum())
        indexes = empty_indexes(keys, end - kept * MIN_SLOTS)
        indexes[:kept, : t.indexes.shape[1]] = t.indexes[:kept, : indexes.shape[1]]
        heads = np.zeros((end + (len(keys) - kept) * MIN_SLOTS, 3), np.int32)
        heads[:end] = t.heads[:end]
        self.arrays = t._replace(rows=rows, heads=heads, indexes=indexes)

    def values(self, columns: int | None = None) -> Ints:
        """The live rows' values and multiplicities, or the first columns, in storage order."""
        t = self.arrays
        high, many = int(t.meta[HIGH]), self.width + 1 if columns is None else columns
        live = int(np.count_nonzero(t.rows[:high, self.width]))
        found: Ints = np.empty((live, many), np.int32)
        copy_live(t.rows, high, self.width, found)
        return found

    def held_ids(self, first: int = 0) -> Iterator[Ints]:
        """The values of the live rows from a column on, a part of the table at a time."""
        t = self.arrays
        for begin in range(0, int(t.meta[HIGH]), HELD_AT_ONCE):
            rows = t.rows[begin : min(begin + HELD_AT_ONCE, int(t.meta[HIGH]))]
            values = rows[:, first : self.width].copy()
            if t.meta[LIVE] < t.meta[HIGH]:
                values[rows[:, self.width] == 0] = 0
            yield values

    def _grow_rows(self, need: int) -> None:
        old = self.arrays.rows
        # Spare rows that are not used yet cost no memory.
        rows = np.zeros((max(need * 5 // 4, len(old) * 3 // 2, 64), old.shape[1]), np.int32)
        high = int(self.arrays.meta[HIGH])
        rows[:high] = old[:high]
        self.arrays = self.arrays._replace(rows=rows)

    def _grow_slots(self, need: int) -> None:
        old = self.arrays.slots
        slots = np.zeros((slots_for(need, len(old)), 2), np.int32)
        rehash(old, 0, len(old), slots, 0, len(slots))
        self.arrays = self.arrays._replace(slots=slots)

    def resize_heads(self, sizes: list[int]) -> None:
        """Give the hash regions of all indexes these sizes, in one new array."""
        t = self.arrays
        offsets = np.cumsum([0, *sizes]).tolist()
        heads = np.zeros((offsets[-1], 3), np.int32)
        for (start, size), begin, new in zip(
            t.indexes[:, [OFFSET, SIZE]].tolist(), offsets, sizes, strict=False
        ):
            if new == size:
                heads[begin : begin + size] = t.heads[start : start + size]
            else:
                rehash(t.heads, start, size, heads, begin, new)
        # Not in place: an interrupt would leave sizes that the old heads do not have.
        indexes = t.indexes.copy()
        indexes[:, SIZE] = sizes
        indexes[:, OFFSET] = offsets[:-1]
        self.arrays = t._replace(heads=heads, indexes=indexes)


def empty_indexes(keys: Sequence[Sequence[int]], offset: int) -> Ints:
    """Descriptions of empty indexes with these key columns; their hash regions begin at `offset`.

    >>> empty_indexes([(0,), (0, 2)], 0).tolist()
    [[0, 16, 0, 1, 0, 0], [16, 16, 0, 2, 0, 2]]
    """
    most = max((len(key) for key in keys), default=0)
    indexes = np.zeros((len(keys), KEY0 + most), np.int32)
    for i, key in enumerate(keys):
        indexes[i, OFFSET] = offset + i * MIN_SLOTS
        indexes[i, SIZE] = MIN_SLOTS
        indexes[i, KEYS] = len(key)
        indexes[i, KEY0 : KEY0 + len(key)] = key
    return indexes


def entries_in(slots: int) -> int:
    """How many entries so many slots hold.

    >>> entries_in(16)
    11
    """
    return slots * FULL // OUT_OF


def slots_for(need: int, at_least: int) -> int:
    """The number of slots for `need` entries: half as many more than before, or more.

    Slots that are all but full make changes take a fifth longer: nearly half of new ones are free.

    >>> slots_for(11, at_least=16), slots_for(12, at_least=16), slots_for(70_000, at_least=16)
    (16, 32, 126000)
    """
    size = max(at_least, MIN_SLOTS)
    if need <= entries_in(size):
        return size
    grown = size * 2 if size < SMALL_REGION else size * 3 // 2
    return max(grown, min(2 * need, SMALL_REGION), need * 9 // 5)
