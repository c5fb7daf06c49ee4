"""Searches in several threads, over one table of quads that none of them changes meanwhile.

Changes are applied in four steps. `begin_changes` stores quads and marks those that are deleted,
each with the number of its change as its version. Threads add the new quads to the indexes, one
index at a time each. Then they search what each change causes, as of its version: quads that come
later are not there yet, and deleted ones still are. In the end, `end_changes` removes the marked
quads. So threads write to nothing that another one reads, and each has its own scratch space and
output. A quad has one version: where a second change of a quad comes, the first one has to be
through, and what follows is a part of its own.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from graphtide.jit import JIT, compiled
from graphtide.kernel.batch import longer
from graphtide.kernel.rowtable import (
    HEAD,
    HIGH,
    LIVE,
    OFFSET,
    SIZE,
    Table,
    add_row,
    find_slot,
    has_room,
    has_room_for_key,
    home_of,
    key_hash,
    link_hashed,
    row_hash,
)
from graphtide.kernel.search import arrays as col
from graphtide.kernel.search import loops
from graphtide.kernel.search.ahead import (
    ONLY_PARTNERS,
    find_dispatch,
    likely_row,
    prefetch_block,
    prefetch_row,
)
from graphtide.kernel.search.loops import OUTPUT_FULL, begin_call, delete_quad, store_arrays
from graphtide.kernel.search.react import react
from graphtide.views import make_block

if JIT:
    from graphtide.prefetch import prefetch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from threading import Event

    from graphtide.arrays import Ints1, Ints2
    from graphtide.kernel.batch import Int, Ints
    from graphtide.kernel.search.arrays import SearchArrays
    from graphtide.kernel.workers import Workers
    from graphtide.limits import Allowance
    from graphtide.views import Block

Result = TypeVar("Result")

SLICE, EVALUATED_AT_ONCE = 1 << 11, 1 << 14
"""Changes that a thread searches at a time, and quads from which it evaluates, before it looks
whether it may stop and takes the next ones."""

ROWS = 1 << 12
"""Rows of output for which each thread has room at first."""


@compiled
def begin_changes(
    block: Block,
    store_all: bool,
    call: Int,
    changes: Ints2,
    begin: Int,
    end: Int,
    effects: Ints1,
    version: Int,
) -> Int:
    """Store quads and mark deleted ones, with versions from `version` on; where that ends.

    That is before the end where the table is full, or where a quad changes for the second time.
    `effects` has the rows of quads, plus 1, and 0 for redundant changes. New quads are in no index.
    """
    t, p, counts = store_arrays(block)
    begin_call(counts, call)
    fetched = begin
    for i in range(begin, end):
        if i >= fetched:
            fetched = min(i + col.BLOCK, end)
            for k in range(i, fetched):
                home = home_of(row_hash(4, changes, k, 2), t.slots.shape[0])
                prefetch(t.slots, home * 2)
        hash_ = row_hash(4, changes, i, 2)
        slot = find_slot(t, hash_, changes, i, 2)
        row = t.slots[slot, HEAD] - 1
        insert = changes[i, 1] > 0
        there = row >= 0 and t.rows[row, col.VERSION] > 0
        line = find_dispatch(p.dispatch, changes[i, 3])
        if there == insert:
            counts[col.REDUNDANT] += 1
            effects[i] = 0
        elif not insert:
            if t.rows[row, col.VERSION] >= version:
                return i
            t.rows[row, col.VERSION] = -(version + i - begin)
            effects[i] = row + 1
            counts[col.DELETED] += 1
        elif not store_all and p.dispatch[line, col.SEEDS] == 0:
            counts[col.DROPPED] += 1
            effects[i] = 0
        else:
            if row >= 0 or not has_room(t, 0):
                return i
            row = add_row(t, slot, hash_, changes, i, 2)
            t.rows[row, col.VERSION] = version + i - begin
            effects[i] = row + 1
            counts[col.INSERTED] += 1
        counts[col.APPLIED] = i + 1
    return end


@compiled
def link_changes(
    block: Block, changes: Ints2, begin: Int, end: Int, effects: Ints1, index: Int
) -> Int:
    """Add the quads that changes insert to an index; where that ends, if there is no room."""
    t, p, _ = store_arrays(block)
    base, size = np.int64(t.indexes[index, OFFSET]), np.int64(t.indexes[index, SIZE])
    for first in range(begin, end, col.BLOCK):
        last = min(first + col.BLOCK, end)
        for i in range(first, last):
            p.ahead[i - first, col.AHEAD_HASH] = -1
            if effects[i] != 0 and changes[i, 1] > 0:
                line = find_dispatch(p.dispatch, changes[i, 3])
                if p.dispatch[line, col.LINKS] >> index & 1:
                    hash_ = key_hash(t, index, t.rows, effects[i] - 1)
                    prefetch(t.heads, (base + home_of(hash_, size)) * t.heads.shape[1])
                    p.ahead[i - first, col.AHEAD_HASH] = hash_
        if t.meta[LIVE] > col.LARGE:
            for i in range(first, last):
                if p.ahead[i - first, col.AHEAD_HASH] >= 0:
                    row = likely_row(t.heads, base, size, p.ahead[i - first, col.AHEAD_HASH])
                    if row != 0:
                        prefetch_row(t, row)
        for i in range(first, last):
            if p.ahead[i - first, col.AHEAD_HASH] >= 0:
                if not has_room_for_key(t, index):
                    return i
                link_hashed(t, index, effects[i] - 1, p.ahead[i - first, col.AHEAD_HASH])
    return end


@compiled
def search_changes(
    block: Block,
    changes: Ints2,
    begin: Int,
    end: Int,
    effects: Ints1,
    first: Int,
    out: Ints2,
    n: Int,
) -> Int:
    """Append the rows that some changes cause, each as of its version: `first`, and its number.

    Returns the number of rows written, or `OUTPUT_FULL`, as `apply_changes` does.
    """
    t, p, counts = store_arrays(block)
    fetched = begin
    for i in range(begin, end):
        if i >= fetched and counts[col.RESUME] == 0:
            fetched = min(i + col.BLOCK, end)
            if t.meta[LIVE] > col.LARGE:
                prefetch_block(t, p, changes, 2, i, fetched, ONLY_PARTNERS)
        if effects[i] == 0:
            continue
        p.now[0] = first + i
        line = find_dispatch(p.dispatch, changes[i, 3])
        sign = 1 if changes[i, 1] > 0 else -1
        n = react(t, p, line, effects[i] - 1, changes[i, 0], sign, out, n, counts)
        if n < 0:
            counts[col.STOPPED] = i
            return OUTPUT_FULL
    return n


@compiled
def end_changes(block: Block, changes: Ints2, begin: Int, end: Int, effects: Ints1) -> None:
    """Remove the quads that some changes delete."""
    t, p, _ = store_arrays(block)
    for i in range(begin, end):
        if effects[i] != 0 and changes[i, 1] < 0:
            line = find_dispatch(p.dispatch, changes[i, 3])
            slot = find_slot(t, row_hash(4, changes, i, 2), changes, i, 2)
            delete_quad(t, p.dispatch[line, col.LINKS], slot, effects[i] - 1)


class ThreadSpace:
    """What one thread needs to search: scratch space, output, and a block of all arrays."""

    def __init__(self, table: Table, plan: SearchArrays, width: int) -> None:
        self.plan = col.own_scratch(plan)
        self.counts = np.zeros(col.COUNTS, np.int64)
        self.out: Ints = np.empty((ROWS, width), np.int32)
        self.block = make_block((*table[:-1], *self.plan, self.counts))

    def rows(self, step: Callable[[int, Ints, int], int], begin: int, left: Allowance) -> Ints:
        """All that a loop writes which begins somewhere, and is called again if there is no room.

        It is given where to begin, the output, and the number of rows in it.
        """
        self.counts[col.RESUME] = n = 0
        while (written := step(begin, self.out, n)) < 0:
            begin, n = int(self.counts[col.STOPPED]), int(self.counts[col.WRITTEN])
            left.allow(2 * self.out.nbytes)
            self.out = longer(self.out)
        left.check_time()
        return self.out[:written].copy()


class ParallelSearch:
    """The searches of one store, divided among threads; rows come in the order of changes.

    Nothing is kept from one call to the next: who has the addresses of a table keeps it alive.
    """

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    def is_worth(self, changes: int) -> bool:
        """Whether so many changes are divided among threads."""
        return changes >= self._workers.worth

    def link(
        self,
        table: Table,
        plan: SearchArrays,
        width: int,
        changes: Ints,
        begins: list[int],
        end: int,
        effects: Ints,
    ) -> list[int]:
        """Add new quads to all indexes, to each from some change on; where each of them ends."""
        kernel: Any = link_changes

        def link(space: ThreadSpace, index: int) -> int:
            return int(kernel(space.block, changes, begins[index], end, effects, index))

        spaces = self._spaces(table, plan, width)
        kernel(spaces[0].block, changes, 0, 0, effects, 0)  # one thread loads it
        return self._divided(spaces, range(len(begins)), link)

    def search(
        self,
        table: Table,
        plan: SearchArrays,
        width: int,
        changes: Ints,
        part: range,
        effects: Ints,
        version: int,
        left: Allowance,
    ) -> list[Ints]:
        """What a part of the changes causes, the first of which has a version."""
        kernel: Any = search_changes
        first = version - part.start

        def search(space: ThreadSpace, begin: int) -> Ints:
            end = min(begin + SLICE, part.stop)

            def step(at: int, out: Ints, n: int) -> int:
                return int(kernel(space.block, changes, at, end, effects, first, out, n))

            return space.rows(step, begin, left)

        spaces = self._spaces(table, plan, width)
        kernel(spaces[0].block, changes, 0, 0, effects, 0, spaces[0].out, 0)  # one thread loads it
        return self._divided(spaces, range(part.start, part.stop, SLICE), search)

    def evaluate(
        self, table: Table, plan: SearchArrays, width: int, tx: int, left: Allowance
    ) -> list[Ints]:
        """All matches that the seeds of a plan find now."""
        high = int(table.meta[HIGH])

        def evaluate(space: ThreadSpace, begin: int) -> Ints:
            end = min(begin + EVALUATED_AT_ONCE, high)

            def step(at: int, out: Ints, n: int) -> int:
                return int(
                    loops.evaluate_rows(table, space.plan, tx, space.counts, at, end, out, n)
                )

            return space.rows(step, begin, left)

        spaces = self._spaces(table, plan, width)
        loops.evaluate_rows(table, spaces[0].plan, tx, spaces[0].counts, 0, 0, spaces[0].out, 0)
        return self._divided(spaces, range(0, high, EVALUATED_AT_ONCE), evaluate)

    def _spaces(self, table: Table, plan: SearchArrays, width: int) -> list[ThreadSpace]:
        return [ThreadSpace(table, plan, width) for _ in range(self._workers.threads)]

    def _divided(
        self, spaces: list[ThreadSpace], begins: range, work: Callable[[ThreadSpace, int], Result]
    ) -> list[Result]:
        """Do something from each of some places, in whichever thread is free; the results."""
        ahead = deque(begins)  # threads share it: each takes the next one

        def task(space: ThreadSpace, stop: Event) -> list[tuple[int, Result]]:
            found: list[tuple[int, Result]] = []
            while not stop.is_set():
                try:
                    begin = ahead.popleft()
                except IndexError:  # none is left
                    break
                found.append((begin, work(space, begin)))
            return found

        tasks = [partial(task, space) for space in spaces[: len(begins)]]
        results: Iterable[tuple[int, Result]] = chain.from_iterable(self._workers.run(tasks))
        return [rows for _, rows in sorted(results, key=lambda each: each[0])]


def settle_versions(table: Table) -> None:
    """Let all quads be simply there, so that versions can begin anew."""
    versions: Ints = table.rows[: table.meta[HIGH], col.VERSION]
    versions[versions != 0] = col.SETTLED
