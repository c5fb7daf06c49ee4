"""`QuadStore`: the current quads, indexed, and the search programs that react to their changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphtide.kernel.batch import Ints, longer
from graphtide.kernel.rowtable import HIGH, RowTable
from graphtide.kernel.search import arrays as col
from graphtide.kernel.search.apply import apply_changes, evaluate_seed, find_rows, relink
from graphtide.kernel.search.program import (
    NO_PROGRAMS,
    Compiled,
    SearchProgram,
    compile_programs,
    first_seed,
)

if TYPE_CHECKING:
    from graphtide.kernel.search.arrays import SearchArrays

CHUNK = 8192
"""Changes per call of the kernel; room for them is reserved before."""

LINKED_AT_ONCE = 1 << 16
"""Quads that are added to new indexes per call; room for them is reserved before."""

MAX_RETAINED = 1 << 16
"""Rows of output space that are retained from one call to the next."""


class QuadStore:
    """Quads `(s, p, o, g)` of ids, with set semantics, and the programs installed on them.

    >>> from graphtide.kernel.search.program import SearchProgram
    >>> store = QuadStore()
    >>> pairs = store.install(SearchProgram(((-1, 7, -2, 0), (-2, 8, -3, 0)), outputs=3))
    >>> changes = [[0, 1, 1, 7, 2, 0], [1, 1, 2, 8, 3, 0], [2, -1, 1, 7, 2, 0]]
    >>> store.apply(np.array(changes, np.int32))[pairs].tolist()
    [[1, 1, 1, 2, 3], [2, -1, 1, 2, 3]]
    """

    stores = True
    """Whether quads can be looked up."""

    def __init__(self, *, store_all: bool = True) -> None:
        self._store_all = store_all
        self._programs: dict[int, SearchProgram] = {}
        self._order: list[int] = []
        self._next = 0
        self._table = RowTable(4)
        self._compiled = NO_PROGRAMS
        self._room = 0
        self._state: tuple[Any, ...] = ()
        self._counts = np.zeros(7, np.int64)
        self._out: Ints = np.empty((256, 3), np.int32)

    def __len__(self) -> int:
        return len(self._table)

    @property
    def nbytes(self) -> int:
        """Bytes of the quads and their indexes."""
        return self._table.nbytes

    @property
    def index_count(self) -> int:
        """How many chain indexes the installed programs need."""
        return len(self._table.arrays.indexes)

    @property
    def _plan(self) -> SearchArrays:
        return self._compiled.plan

    def counts(self) -> dict[str, int]:
        """How many changes had an effect, and how many had none, by reason."""
        return {
            "inserted": int(self._counts[col.INSERTED]),
            "deleted": int(self._counts[col.DELETED]),
            "redundant": int(self._counts[col.REDUNDANT]),
            "dropped": int(self._counts[col.DROPPED]),
        }

    def install(self, program: SearchProgram) -> int:
        """Add a program; the key of its rows in the result of `apply`."""
        number = self._next
        self._next += 1
        self._programs[number] = program
        self._compile()
        return number

    def remove(self, number: int) -> None:
        """Remove a program, and the indexes that only it needed."""
        del self._programs[number]
        self._compile()

    def apply(self, changes: Ints) -> dict[int, Ints]:
        """Apply changes `[tx, diff, s, p, o, g]` in order; per program, the batch they cause."""
        n = 0
        for begin in range(0, len(changes), CHUNK):
            n = self._apply_chunk(changes, begin, min(begin + CHUNK, len(changes)), n)
        if n == 0:
            return {}
        batches = self._split(self._out[:n])
        if len(self._out) > MAX_RETAINED:
            self._out = np.empty((256, self._out.shape[1]), np.int32)
        return batches

    def _apply_chunk(self, changes: Ints, begin: int, end: int, n: int) -> int:
        if self._room < end - begin:
            self._room = self._table.reserve(end - begin)
            t = self._table.arrays
            arrays = t.rows, t.slots, t.heads, t.indexes, t.meta
            self._state = (*arrays, *self._plan, self._counts, self._store_all)
        self._room -= end - begin
        written = self._kernel(changes, begin, end, n)
        while written < 0:
            self._out = longer(self._out)
            stopped, n = int(self._counts[col.STOPPED]), int(self._counts[col.WRITTEN])
            written = self._kernel(changes, stopped, end, n)
        return written

    def _kernel(self, changes: Ints, begin: int, end: int, n: int) -> int:
        apply: Any = apply_changes
        return int(apply(*self._state, changes, begin, end, self._out, n))

    def evaluate(self, number: int) -> Ints:
        """All matches of one program now, as a batch of one transaction."""
        seed = first_seed(self._plan, self._order.index(number))
        width = self._programs[number].outputs
        out: Ints = np.empty((256, self._out.shape[1]), np.int32)
        t = self._table.arrays
        written = evaluate_seed(t, self._plan, seed, self._counts, 0, out, 0)
        while written < 0:
            out = longer(out)
            stopped, n = int(self._counts[col.STOPPED]), int(self._counts[col.WRITTEN])
            written = evaluate_seed(t, self._plan, seed, self._counts, stopped, out, n)
        return np.ascontiguousarray(out[:written, col.OUT_TX : col.OUT_TX + 2 + width])

    def contains(self, quads: Ints) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Which of these quads are present."""
        found = np.empty(len(quads), np.int32)
        find_rows(self._table.arrays, np.ascontiguousarray(quads, np.int32), found)
        return found >= 0

    def quads(self) -> Ints:
        """The current quads, one row each."""
        return self._table.values()[:, :4]

    def _split(self, out: Ints) -> dict[int, Ints]:
        """The output by program; the common case of one program needs no sort."""
        first = int(out[0, col.OUT_PROGRAM])
        if len(out) == 1 or len(self._order) == 1 or not np.any(out[:, col.OUT_PROGRAM] != first):
            return {self._order[first]: self._batch(out, first)}
        ordered = out[np.argsort(out[:, col.OUT_PROGRAM], kind="stable")]
        present, starts = np.unique(ordered[:, col.OUT_PROGRAM], return_index=True)
        parts = np.split(ordered, starts[1:])
        return {
            self._order[int(at)]: self._batch(part, int(at))
            for at, part in zip(present, parts, strict=True)
        }

    def _batch(self, part: Ints, at: int) -> Ints:
        width = self._programs[self._order[at]].outputs
        return np.array(part[:, col.OUT_TX : col.OUT_TX + 2 + width])

    def _compile(self) -> None:
        """Compile all programs; relink the quads only if the indexes have changed."""
        self._order = list(self._programs)
        before = self._compiled
        programs = [self._programs[number] for number in self._order]
        self._compiled = compile_programs(programs, before.keys)
        self._room = 0  # so that the kernel's arguments are rebuilt
        widest = max((p.outputs for p in self._programs.values()), default=0)
        if self._out.shape[1] != 3 + widest:
            self._out = np.empty((256, 3 + widest), np.int32)
        if (before.keys, before.links) != (self._compiled.keys, self._compiled.links):
            self._relink(before)

    def _relink(self, before: Compiled) -> None:
        """Change the indexes, and add quads to those that lack them."""
        if not self._compiled.extends(before):
            before = NO_PROGRAMS
        if len(before.keys) < max(len(self._compiled.keys), self.index_count):
            self._table.change_indexes(self._compiled.keys, kept=len(before.keys))
        high = int(self._table.arrays.meta[HIGH])
        for begin in range(0, high, LINKED_AT_ONCE):
            end = min(begin + LINKED_AT_ONCE, high)
            self._table.reserve_keys(end - begin)
            relink(self._table.arrays, self._plan.dispatch, before.plan.dispatch, begin, end)
