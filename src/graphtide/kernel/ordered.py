"""Values in order, one tree for each group: MIN, MAX and COUNT(DISTINCT) of values that go again.

A B+ tree. A block has up to 128 entries in the order of their keys. In a leaf, an entry is the id
of a value and how often it is there; above, it is a block and how many entries that has, and its
key is at most all keys in that block; minus infinity for the first entry of a level. So
a tree of ten thousand values has three levels, one of ten million four.

A tree is known by one number: place, entries and class of its root block, and its height; 0 is
empty. A block of class n has room for 2^n entries. The root has the class it needs, so that small
groups are small; all others are of the largest class. Blocks are taken from one array and given
back as a buddy system does. [Knuth, The Art of Computer Programming, volume 1, 2.5]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphtide.arrays import bundle
from graphtide.jit import compiled, inlined

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.arrays import Floats1, Ints2, Longs1, Longs2
    from graphtide.kernel.batch import Int, Ints, Longs

ID, TIMES = 0, 1
"""Columns of a cell in a leaf: a value, and how often it is there."""

BELOW, COUNT_BELOW = 0, 1
"""Columns of a cell above: the place of a block, and its entries."""

AFTER, BEFORE = 0, 1
"""Columns of the first cell of a free block: places of free blocks plus 1."""

LIVE, HIGH, USED, FREE = 0, 1, 2, 3
"""Cells of `meta`: values, entries up to which blocks were taken, entries of blocks that are in
use, and the first free block of each class, plus 1."""

TOP = 7
LARGEST = 1 << TOP
"""The class and the entries of the largest blocks."""

THIN = LARGEST // 4
"""A block with fewer entries, but the root, is filled or merged."""

MERGED = LARGEST * 3 // 4
"""Two blocks with more entries are not merged: there has to be room for more."""

FREE_MARK = 0x7FF8_0000_0000_0001
"""What a free block of class 0 has as first key, as an integer: it is no number."""

MAX_LEVELS = 8
"""Levels of the highest tree, and one more: blocks of 32 entries have 2^35 values on seven."""


@bundle
class Trees(NamedTuple):
    """The entries of all trees: keys, the same as integers, cells; and what is free."""

    keys: Floats1
    words: Longs1
    cells: Ints2
    meta: Longs1


# ---- blocks --------------------------------------------------------------------------------------


@inlined
def link_free(t: Trees, place: Int, size: Int) -> None:
    """Put a block in front of the free ones of its class."""
    first = t.meta[FREE + size]
    t.words[place] = FREE_MARK + size
    t.cells[place, AFTER], t.cells[place, BEFORE] = first, 0
    if first != 0:
        t.cells[first - 1, BEFORE] = place + 1
    t.meta[FREE + size] = place + 1


@inlined
def unlink_free(t: Trees, place: Int, size: Int) -> None:
    """Take a block out of the free ones of its class."""
    after, before = t.cells[place, AFTER], t.cells[place, BEFORE]
    if after != 0:
        t.cells[after - 1, BEFORE] = before
    if before != 0:
        t.cells[before - 1, AFTER] = after
    else:
        t.meta[FREE + size] = after
    t.words[place] = 0


@inlined
def take_block(t: Trees, size: Int) -> Int:
    """The place of a block of this class: the smallest free one that is large enough, halved."""
    found = size
    while found < TOP and t.meta[FREE + found] == 0:
        found += 1
    place = t.meta[FREE + found] - 1
    if place >= 0:
        unlink_free(t, place, found)
    else:
        place = t.meta[HIGH]
        t.meta[HIGH] += LARGEST
    while found > size:
        found -= 1
        link_free(t, place + (1 << found), found)
    t.meta[USED] += 1 << size
    return place


@inlined
def free_block(t: Trees, place: Int, size: Int) -> None:
    """Give a block back; with its other half, if that is free, as a larger one."""
    t.meta[USED] -= 1 << size
    while size < TOP and t.words[place ^ (1 << size)] == FREE_MARK + size:
        unlink_free(t, place ^ (1 << size), size)
        place &= ~(1 << size)
        size += 1
    link_free(t, place, size)


@inlined
def move(t: Trees, source: Int, target: Int, many: Int) -> None:
    """Copy entries; the target may overlap with the source."""
    if target < source:
        for k in range(many):
            t.keys[target + k] = t.keys[source + k]
            t.cells[target + k, 0] = t.cells[source + k, 0]
            t.cells[target + k, 1] = t.cells[source + k, 1]
    else:
        for k in range(many - 1, -1, -1):
            t.keys[target + k] = t.keys[source + k]
            t.cells[target + k, 0] = t.cells[source + k, 0]
            t.cells[target + k, 1] = t.cells[source + k, 1]


@inlined
def write(t: Trees, at: Int, key: float, first: Int, second: Int) -> None:
    """Write an entry."""
    t.keys[at] = key
    t.cells[at, 0], t.cells[at, 1] = first, second


@inlined
def rank(t: Trees, place: Int, count: Int, key: float) -> Int:
    """How many keys of a block, which is not empty, are at most `key`: a search without jumps."""
    at = np.int64(place)
    left = np.int64(count)
    while left > 1:
        half = left >> 1
        at += half * np.int64(t.keys[at + half - 1] <= key)
        left -= half
    return at + np.int64(t.keys[at] <= key) - place


# ---- trees ---------------------------------------------------------------------------------------


@inlined
def make_root(place: Int, count: Int, size: Int, height: Int) -> Int:
    """The number of a tree."""
    return (np.int64(place) << 20) | (np.int64(count) << 8) | (np.int64(size) << 4) | height


@inlined
def place_of(root: Int) -> Int:
    """The place of the root block."""
    return np.int64(root) >> 20


@inlined
def count_of(root: Int) -> Int:
    """The entries of the root block."""
    return (np.int64(root) >> 8) & 0xFFF


@inlined
def class_of(root: Int) -> Int:
    """The class of the root block."""
    return (np.int64(root) >> 4) & 15


@inlined
def height_of(root: Int) -> Int:
    """The levels above the leaves."""
    return np.int64(root) & 15


@inlined
def add_to_count(t: Trees, root: Int, above: Int, more: Int) -> Int:
    """A block, that below an entry or the root, has more entries now; the new root."""
    if above < 0:
        return root + (more << 8)
    t.cells[above, COUNT_BELOW] += more
    return root


@inlined
def entry_for(t: Trees, place: Int, count: Int, key: float) -> Int:
    """The entry of a block under which a key belongs."""
    return place + max(rank(t, place, count, key) - 1, 0)


@inlined
def find_leaf(t: Trees, root: Int, key: float) -> tuple[Int, Int, Int]:
    """The leaf to which a key belongs: its place, its entries, and the entry above it or -1."""
    place, count = place_of(root), count_of(root)
    above: Int = np.int64(-1)
    for _ in range(height_of(root)):
        above = entry_for(t, place, count, key)
        place = np.int64(t.cells[above, BELOW])
        count = np.int64(t.cells[above, COUNT_BELOW])
    return place, count, above


@inlined
def raise_root(t: Trees, root: Int) -> Int:
    """Make room in the root: in a larger block, or by a new root above it."""
    place, count, size = place_of(root), count_of(root), class_of(root)
    if count < 1 << size:
        return root
    if size == TOP:
        new = take_block(t, 1)
        write(t, new, -np.inf, place, count)
        return make_root(new, 1, 1, height_of(root) + 1)
    new = take_block(t, size + 1)
    move(t, place, new, count)
    free_block(t, place, size)
    return make_root(new, count, size + 1, height_of(root))


@inlined
def split(t: Trees, entry: Int, end: Int, key: float) -> None:
    """Divide the full block below an entry; `end` is the end of the entry's own block.

    The new key is at an end where values come in order. What they leave behind is fuller then.
    """
    place = np.int64(t.cells[entry, BELOW])
    before = rank(t, place, LARGEST, key)
    kept = LARGEST // 2
    if before == LARGEST:
        kept = MERGED
    elif before == 0:
        kept = THIN
    new = take_block(t, TOP)
    move(t, place + kept, new, LARGEST - kept)
    t.cells[entry, COUNT_BELOW] = kept
    move(t, entry + 1, entry + 2, end - entry - 1)
    write(t, entry + 1, t.keys[new], new, LARGEST - kept)


@inlined
def make_room(t: Trees, root: Int, key: float) -> Int:
    """Divide the full blocks from the root to the leaf of a key; the new root."""
    root = raise_root(t, root)
    place, count = place_of(root), count_of(root)
    above: Int = np.int64(-1)
    for _ in range(height_of(root)):
        entry = entry_for(t, place, count, key)
        if t.cells[entry, COUNT_BELOW] == LARGEST:
            split(t, entry, place + count, key)
            root = add_to_count(t, root, above, 1)
            entry = entry_for(t, place, count + 1, key)
        above = entry
        place = np.int64(t.cells[entry, BELOW])
        count = np.int64(t.cells[entry, COUNT_BELOW])
    return root


@inlined
def even_out(t: Trees, entry: Int) -> bool:
    """Merge the blocks below an entry and the next, which is True, or let both have as many."""
    left, right = np.int64(t.cells[entry, BELOW]), np.int64(t.cells[entry + 1, BELOW])
    first = np.int64(t.cells[entry, COUNT_BELOW])
    second = np.int64(t.cells[entry + 1, COUNT_BELOW])
    if first + second <= MERGED:
        move(t, right, left + first, second)
        t.cells[entry, COUNT_BELOW] = first + second
        free_block(t, right, TOP)
        return True
    half = (first + second) >> 1
    if first > half:
        move(t, right, right + first - half, second)
        move(t, left + half, right, first - half)
    else:
        move(t, right, left + first, half - first)
        move(t, right + half - first, right, second - (half - first))
    t.cells[entry, COUNT_BELOW], t.cells[entry + 1, COUNT_BELOW] = half, first + second - half
    t.keys[entry + 1] = t.keys[right]
    return False


@inlined
def lower_root(t: Trees, root: Int) -> Int:
    """Give back what the root does not need: itself if it has one entry, or half of its block."""
    while height_of(root) > 0 and count_of(root) == 1:
        place = place_of(root)
        below, count = np.int64(t.cells[place, BELOW]), np.int64(t.cells[place, COUNT_BELOW])
        free_block(t, place, class_of(root))
        root = make_root(below, count, TOP, height_of(root) - 1)
    if count_of(root) == 0:
        free_block(t, place_of(root), class_of(root))
        return np.int64(0)
    while class_of(root) > 0 and 4 * count_of(root) <= 1 << class_of(root):
        size = class_of(root) - 1
        free_block(t, place_of(root) + (1 << size), size)
        root = make_root(place_of(root), count_of(root), size, height_of(root))
    return root


@inlined
def fill_up(t: Trees, root: Int, key: float) -> Int:
    """Fill or merge the thin blocks from the root to the leaf of a key; the new root."""
    place, count = place_of(root), count_of(root)
    above: Int = np.int64(-1)
    for _ in range(height_of(root)):
        entry = entry_for(t, place, count, key)
        if t.cells[entry, COUNT_BELOW] < THIN and count > 1:
            left = max(entry - 1, place)
            if even_out(t, left):
                move(t, left + 2, left + 1, place + count - left - 2)
                root = add_to_count(t, root, above, -1)
                count -= 1
            entry = entry_for(t, place, count, key)
        above = entry
        place = np.int64(t.cells[entry, BELOW])
        count = np.int64(t.cells[entry, COUNT_BELOW])
    return lower_root(t, root)


@inlined
def change_times(t: Trees, root: Int, id_: Int, key: float, diff: Int) -> tuple[Int, Int]:
    """A value so many more times, or fewer; the new root, and how often it was there."""
    if root == 0:
        if diff != 0:
            place = take_block(t, 0)
            write(t, place, key, id_, diff)
            t.meta[LIVE] += 1
            root = make_root(place, 1, 0, 0)
        return root, np.int64(0)
    place, count, above = find_leaf(t, root, key)
    at = place + rank(t, place, count, key)
    if at > place and t.keys[at - 1] == key:
        before = np.int64(t.cells[at - 1, TIMES])
        t.cells[at - 1, TIMES] = before + diff
        if before + diff == 0:
            move(t, at, at - 1, place + count - at)
            root = add_to_count(t, root, above, -1)
            t.meta[LIVE] -= 1
            if count <= THIN or above < 0:
                root = fill_up(t, root, key)
        return root, before
    if diff == 0:
        return root, np.int64(0)
    if count == (LARGEST if above >= 0 else 1 << class_of(root)):
        root = make_room(t, root, key)
        place, count, above = find_leaf(t, root, key)
        at = place + rank(t, place, count, key)
    move(t, at, at + 1, place + count - at)
    write(t, at, key, id_, diff)
    t.meta[LIVE] += 1
    return add_to_count(t, root, above, 1), np.int64(0)


@inlined
def outermost(t: Trees, root: Int, last: Int) -> Int:
    """The entry of the first (0) or last (1) value of a tree that is not empty."""
    at = place_of(root) + last * (count_of(root) - 1)
    for _ in range(height_of(root)):
        at = t.cells[at, BELOW] + last * (np.int64(t.cells[at, COUNT_BELOW]) - 1)
    return at


@compiled
def copy_values(t: Trees, roots: Longs1, path: Longs2, out: Ints2) -> Int:
    """Copy the cells of all values of some trees; how many there are.

    `path` has an entry and an end for each level.
    """
    n = 0
    for r in range(len(roots)):
        level: Int = 0 if roots[r] != 0 else -1
        path[0, 0] = place_of(roots[r])
        path[0, 1] = path[0, 0] + count_of(roots[r])
        while level >= 0:
            at = path[level, 0]
            path[level, 0] += 1
            if at == path[level, 1]:
                level -= 1
            elif level < height_of(roots[r]):
                level += 1
                path[level, 0] = t.cells[at, BELOW]
                path[level, 1] = path[level, 0] + t.cells[at, COUNT_BELOW]
            else:
                out[n, ID], out[n, TIMES] = t.cells[at, ID], t.cells[at, TIMES]
                n += 1
    return n


class OrderedValues:
    """The blocks of the trees of all groups."""

    def __init__(self) -> None:
        self.arrays = _make_trees(0, np.zeros(FREE + TOP + 1, np.int64))

    def reserve(self, extra: int) -> None:
        """Make room for so many changes: compiled loops allocate nothing.

        A change takes at most one block on each level. Many changes take less: a block that was
        divided or enlarged has room for a third of its entries before it is again.
        """
        t = self.arrays
        high, used = int(t.meta[HIGH]), int(t.meta[USED])
        levels = MAX_LEVELS * LARGEST
        needed = high + min(extra * levels, 2 * used + 6 * extra + levels)
        if needed <= len(t.keys):
            return
        # Spare entries that are not used yet cost no memory.
        larger = _make_trees(max(needed, high * 3 // 2), t.meta)
        larger.keys[:high], larger.cells[:high] = t.keys[:high], t.cells[:high]
        self.arrays = larger

    def values(self, root: int) -> Iterator[tuple[int, int]]:
        """The ids of a tree in order, and how often each is there."""
        most = int(self.arrays.meta[LIVE]) if height_of(root) else int(count_of(root))
        ids, times = self._cells(np.array([root]), most).T.tolist()
        yield from zip(ids, times, strict=True)

    def ids(self, roots: Longs) -> Ints:
        """The ids in some trees, each tree in its order."""
        found: Ints = self._cells(roots, int(self.arrays.meta[LIVE]))[:, ID]
        return found

    def _cells(self, roots: Longs, most: int) -> Ints:
        out = np.empty((most, 2), np.int32)
        n = copy_values(self.arrays, roots, np.zeros((MAX_LEVELS, 2), np.int64), out)
        return out[:n]

    @property
    def nbytes(self) -> int:
        """Bytes held, without those that were never used."""
        t = self.arrays
        return int(t.meta[HIGH]) * (t.keys.itemsize + t.cells.itemsize * 2)


def _make_trees(entries: int, meta: Longs) -> Trees:
    keys = np.zeros(entries)
    return Trees(keys, keys.view(np.int64), np.zeros((entries, 2), np.int32), meta)
