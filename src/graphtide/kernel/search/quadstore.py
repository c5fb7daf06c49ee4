"""`QuadStore`: the current quads, indexed, and the search programs that react to their changes.

The search strategy: changes are applied one by one. For a changed quad and each pattern that it
matches, the other patterns are joined outwards from it (`react`, `next_match`). Nothing but the
quads themselves is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphtide.jit import JIT, compiled, inlined
from graphtide.kernel.batch import Ints, longer
from graphtide.kernel.rowtable import (
    HEAD,
    HIGH,
    LENGTH,
    LIVE,
    OFFSET,
    SIZE,
    RowTable,
    Table,
    add_row,
    find_head,
    find_row,
    find_slot,
    key_hash,
    link,
    remove_row,
    row_hash,
    unlink,
)
from graphtide.kernel.search import arrays as col
from graphtide.kernel.search.arrays import SearchArrays
from graphtide.kernel.search.next_match import next_match
from graphtide.kernel.search.program import (
    NO_PROGRAMS,
    Compiled,
    SearchProgram,
    compile_programs,
    first_seeds,
)
from graphtide.kernel.search.react import begin, emit, load_probe, passes, react
from graphtide.limits import Allowance, Limits, allowance

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.kernel.batch import Int, Longs


if JIT:
    from graphtide.prefetch import prefetch


@inlined
def find_dispatch(dispatch: Ints, predicate: Int) -> Int:
    """The dispatch line of a predicate; the last line is for predicates no pattern names."""
    mask = len(dispatch) - 2
    slot = (predicate * 40503) & mask
    while dispatch[slot, col.KEY] != 0:
        if dispatch[slot, col.KEY] == predicate + 1:
            return slot
        slot = (slot + 1) & mask
    return len(dispatch) - 1


@inlined
def link_all(t: Table, links: Int, row: Int) -> None:
    """Add a row to the chains of a set of indexes."""
    for index in range(t.indexes.shape[0]):
        if links >> index & 1:
            link(t, index, row)


@inlined
def insert_quad(t: Table, links: Int, slot: Int, hash_: Int, changes: Ints, at: Int) -> Int:
    """Store a new quad and add it to its chains."""
    row = add_row(t, slot, hash_, changes, at, 2)
    t.rows[row, 4] = 1
    link_all(t, links, row)
    return row


@inlined
def delete_quad(t: Table, links: Int, row: Int) -> None:
    """Remove a quad from its chains and from the table."""
    for index in range(t.indexes.shape[0]):
        if links >> index & 1:
            unlink(t, index, row)
    remove_row(t, row)


@inlined
def prefetch_chain(t: Table, index: Int, key: Ints) -> None:
    """Prefetch the head of a chain."""
    home = key_hash(t, index, key, 0) & (t.indexes[index, SIZE] - 1)
    prefetch(t.heads, (t.indexes[index, OFFSET] + home) * 4)


@inlined
def prefetch_partners(t: Table, p: SearchArrays, seed: Int, changes: Ints, at: Int) -> None:
    """Prefetch the chains that a change will be joined with first, if it matches a seed."""
    for probe in range(p.probes_from[seed], p.probes_from[seed + 1]):
        load_probe(p, probe, changes, at, 2)
        prefetch_chain(t, p.probes[probe, col.PROBE_INDEX], p.key)


@inlined
def prefetch_change(t: Table, p: SearchArrays, changes: Ints, at: Int) -> None:
    """Prefetch what a later change will read first."""
    hash_ = row_hash(4, changes, at, 2)
    prefetch(t.slots, (hash_ & (t.slots.shape[0] - 1)) * 2)
    line = find_dispatch(p.dispatch, changes[at, 3])
    for k in range(4):
        p.key[0, k] = changes[at, 2 + k]
    for index in range(t.indexes.shape[0]):
        if p.dispatch[line, col.LINKS] >> index & 1:
            prefetch_chain(t, index, p.key)
    if t.meta[LIVE] > col.LARGE:
        first = p.dispatch[line, col.SEEDS_FROM]
        for seed in range(first, first + min(p.dispatch[line, col.SEEDS], col.PREFETCH_SEEDS)):
            prefetch_partners(t, p, seed, changes, at)


@compiled
def apply_changes(
    rows: Ints,
    slots: Ints,
    heads: Ints,
    indexes: Ints,
    meta: Longs,
    patterns: Ints,
    programs: Ints,
    checks: Ints,
    seeds: Ints,
    dispatch: Ints,
    walks: Longs,
    probes: Ints,
    probes_from: Ints,
    bind: Ints,
    walk_bind: Ints,
    key: Ints,
    frames: Longs,
    inner: Longs,
    walk: Longs,
    counts: Longs,
    store_all: bool,
    changes: Ints,
    begin: Int,
    end: Int,
    effects: Ints,
    out: Ints,
    n: Int,
) -> Int:
    """Apply changes `[tx, diff, s, p, o, g]` one by one; append the rows that they change.

    Returns the number of rows written, or -1 if the output is full; `counts` then has the change to
    resume with, and the number of rows written. `effects` says which changes had an effect, so that
    they can be undone; `counts` how many have been applied.
    """
    t = Table(rows, slots, heads, indexes, meta, 4)
    p = SearchArrays(
        patterns, programs, checks, seeds, dispatch, walks,
        probes, probes_from, bind, walk_bind, key, frames, inner, walk,
    )  # fmt: skip
    for i in range(begin, end):
        # Prefetching uses the scratch space in which an interrupted search is kept.
        if i + col.PREFETCH_DISTANCE < end and counts[col.RESUME] == 0:
            prefetch_change(t, p, changes, i + col.PREFETCH_DISTANCE)
        hash_ = row_hash(4, changes, i, 2)
        slot = find_slot(t, hash_, changes, i, 2)
        row = t.slots[slot, HEAD] - 1
        insert = changes[i, 1] > 0
        line = find_dispatch(dispatch, changes[i, 3])
        if counts[col.RESUME] == 0:
            if (row >= 0) == insert:
                counts[col.REDUNDANT] += 1
                effects[i] = 0
                counts[col.APPLIED] = i + 1
                continue
            if insert:
                if not store_all and dispatch[line, col.SEEDS] == 0:
                    counts[col.DROPPED] += 1
                    effects[i] = 0
                    counts[col.APPLIED] = i + 1
                    continue
                row = insert_quad(t, dispatch[line, col.LINKS], slot, hash_, changes, i)
                effects[i] = 1
                counts[col.APPLIED] = i + 1
        n = react(t, p, line, row, changes[i, 0], 1 if insert else -1, out, n, counts)
        if n < 0:
            counts[col.STOPPED] = i
            return -1
        if insert:
            counts[col.INSERTED] += 1
        else:
            counts[col.DELETED] += 1
            delete_quad(t, dispatch[line, col.LINKS], row)
            effects[i] = 1
            counts[col.APPLIED] = i + 1
    return n


@compiled
def evaluate_seed(
    t: Table, p: SearchArrays, seed: Int, counts: Longs, begin_at: Int, end: Int, out: Ints, n: Int
) -> Int:
    """All matches of a seed's program, from scratch: those through each quad at its pattern.

    Looks at the rows of the table before `end`.
    Returns the same as `apply_changes`, with a row of the table in place of a change.
    """
    program = p.seeds[seed, col.SEED_PROGRAM]
    first = p.programs[program, col.FIRST]
    for row in range(begin_at, min(end, t.meta[HIGH])):
        resume = counts[col.RESUME] > 0
        counts[col.RESUME] = 0
        if not resume and (t.rows[row, 4] == 0 or not begin(t, p, seed, row)):
            continue
        while resume or next_match(t, p, first, p.frames, -1, 0):
            resume = False
            if passes(t, p, program, -1):
                n = emit(out, n, p, program, 0, 1)
                if n < 0:
                    counts[col.RESUME] = 1
                    counts[col.WRITTEN] = len(out)
                    counts[col.STOPPED] = row
                    return -1
    return n


@compiled
def relink(t: Table, dispatch: Ints, before: Ints, begin: Int, end: Int) -> None:
    """Add quads to the chains that their predicates need now but did not need before."""
    for row in range(begin, end):
        if t.rows[row, 4] != 0:
            wanted = dispatch[find_dispatch(dispatch, t.rows[row, 1]), col.LINKS]
            link_all(t, wanted & ~before[find_dispatch(before, t.rows[row, 1]), col.LINKS], row)


@compiled
def find_rows(t: Table, quads: Ints, found: Ints) -> None:
    """The row of each quad, or -1."""
    for i in range(len(quads)):
        found[i] = find_row(t, quads, i, 0)


@compiled
def chain_rows(t: Table, index: Int, key: Ints, found: Ints) -> Int:
    """Write the rows of a chain, as many as there is room for; the length of the chain."""
    head = find_head(t, index, key_hash(t, index, key, 0), key, 0)
    row = t.heads[head, HEAD] - 1
    if row < 0:
        return 0
    for i in range(min(len(found), t.heads[head, LENGTH])):
        found[i] = row
        row = t.rows[row, t.width + 1 + 2 * index] - 1
    return t.heads[head, LENGTH]


CHUNK = 8192
"""Changes per call of the kernel; room for them is reserved before."""

EVALUATED_AT_ONCE = 1 << 14
"""Quads from which a program is evaluated before the time is checked."""

LINKED_AT_ONCE = 1 << 12
"""Quads that are added to new indexes per call: room is reserved for as many keys, used or not."""

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
        self.limits = Limits()
        self._store_all = store_all
        self._programs: dict[int, SearchProgram] = {}
        self._order: list[int] = []
        self._ends: list[tuple[int, int]] = []  # by place: a program, and where its output ends
        self._seeds: dict[int, int] = {}
        self._next = 0
        self._table = RowTable(4)
        self._compiled = NO_PROGRAMS
        self._stale = False  # whether programs came or went that are not compiled yet
        self._room = 0
        self._state: tuple[Any, ...] = ()
        self._counts = np.zeros(8, np.int64)
        self._before = self._counts.tobytes()
        self._last: Ints = np.empty((0, 6), np.int32)
        self._effects: Ints = np.empty(256, np.int32)
        self._out: Ints = np.empty((256, 3), np.int32)

    def __len__(self) -> int:
        return self._table.arrays.meta.item(LIVE)

    @property
    def changed(self) -> int:
        """How many changes had an effect."""
        return self._counts.item(col.INSERTED) + self._counts.item(col.DELETED)

    @property
    def nbytes(self) -> int:
        """Bytes of the quads and their indexes."""
        self._settle()
        return self._table.nbytes

    @property
    def index_count(self) -> int:
        """How many chain indexes the installed programs need."""
        self._settle()
        return len(self._table.arrays.indexes)

    @property
    def _plan(self) -> SearchArrays:
        self._settle()
        return self._compiled.plan

    def _settle(self) -> None:
        """Compile the programs if they have changed: once for all that a query installs."""
        if self._stale:
            self._stale = False
            self._compile()

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
        self._stale, self._room = True, 0
        return number

    def follow(self, number: int) -> None:
        """Let a program react to changes: here, it does so from `install` on."""

    def remove(self, number: int) -> None:
        """Remove a program, and the indexes that only it needed."""
        del self._programs[number]
        self._stale, self._room = True, 0

    def apply(self, changes: Ints) -> dict[int, Ints]:
        """Apply changes `[tx, diff, s, p, o, g]` in order; per program, the batch they cause.

        If that takes more than `limits` allow, what the changes cause is not known: the caller has
        to undo them.
        """
        self._before = self._counts.tobytes()
        self._counts[col.APPLIED] = 0
        self._last = changes
        many = len(changes)
        if len(self._effects) < many:
            self._effects = np.empty(2 * many, np.int32)
        n = 0
        if 0 < many <= CHUNK:
            n = self._apply_chunk(changes, 0, many, 0)
        else:
            for first in range(0, many, CHUNK):
                n = self._apply_chunk(changes, first, min(first + CHUNK, many), n)
        if n == 0:
            return {}
        if n == 1:
            at = self._out.item(0, col.OUT_PROGRAM)
            number, end = self._ends[at]
            return {number: self._out[:1, col.OUT_TX : end].copy()}
        batches = self._split(self._out[:n])
        if len(self._out) > MAX_RETAINED:
            self._out = np.empty((256, self._out.shape[1]), np.int32)
        return batches

    def _apply_chunk(self, changes: Ints, first: int, end: int, n: int) -> int:
        if self._room < end - first:
            plan = self._plan
            self._room = self._table.reserve(end - first)
            t = self._table.arrays
            arrays = t.rows, t.slots, t.heads, t.indexes, t.meta
            self._state = (*arrays, *plan, self._counts, self._store_all)
        self._room -= end - first
        kernel: Any = apply_changes
        written: int = kernel(*self._state, changes, first, end, self._effects, self._out, n)
        left: Allowance | None = None  # most changes need no room, and no look at the clock
        while written < 0:
            stopped, n = int(self._counts[col.STOPPED]), int(self._counts[col.WRITTEN])
            left = left or Allowance(self.limits, "flush")
            left.allow(2 * self._out.nbytes)
            self._out = longer(self._out)
            written = kernel(*self._state, changes, stopped, end, self._effects, self._out, n)
        return written

    def effective(self, changes: Ints) -> Ints | None:
        """Those of some changes that had an effect; None unless they were applied last."""
        if self._last is not changes:
            return None
        many = int(self._counts[col.APPLIED])
        return changes[:many][self._effects[:many] != 0].copy()

    def undo(self, changes: Ints) -> Ints:
        """What undoes changes, if they were applied last, as far as they had an effect."""
        applied = self.effective(changes)
        undone = changes[:0] if applied is None else applied[::-1].copy()
        undone[:, 0] = 0
        undone[:, 1] *= -1
        return undone

    def rebuilt(self, undone: Ints) -> QuadStore:
        """Another store with the same quads, some changes undone, and without programs.

        It needs nothing but the rows of quads, and is made when something else may be half done.
        """
        quads = self.quads()
        changes = np.zeros((len(quads), 6), np.int32)
        changes[:, 1] = 1
        changes[:, 2:] = quads
        other = QuadStore()
        other.limits = self.limits
        other.apply(changes)
        other.apply(undone)
        other._store_all = self._store_all
        other._room = 0
        interrupted = self._counts[col.APPLIED] > 0 and len(undone) > 0
        other._counts[:] = np.frombuffer(self._before, np.int64) if interrupted else self._counts
        other._counts[col.RESUME :] = 0
        return other

    def evaluate(self, number: int) -> Ints:
        """All matches of one program now, as a batch of one transaction."""
        width = self._programs[number].outputs
        if not self._table.arrays.meta[HIGH]:  # as long as there is no quad, nothing is compiled
            return np.empty((0, 2 + width), np.int32)
        plan, seed = self._plan, self._seeds[number]
        out: Ints = np.empty((256, self._out.shape[1]), np.int32)
        t = self._table.arrays
        left, n = allowance(), 0
        for first in range(0, int(t.meta[HIGH]), EVALUATED_AT_ONCE):
            end = first + EVALUATED_AT_ONCE
            written = evaluate_seed(t, plan, seed, self._counts, first, end, out, n)
            while written < 0:
                stopped, n = int(self._counts[col.STOPPED]), int(self._counts[col.WRITTEN])
                try:
                    out = longer(out)
                except BaseException:
                    self._counts[col.RESUME] = 0
                    raise
                written = evaluate_seed(t, plan, seed, self._counts, stopped, end, out, n)
            n = int(written)
            left.check_time()
        return np.ascontiguousarray(out[:n, col.OUT_TX : col.OUT_TX + 2 + width])

    def contains(self, quads: Ints) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Which of these quads are present."""
        found = np.empty(len(quads), np.int32)
        find_rows(self._table.arrays, np.ascontiguousarray(quads, np.int32), found)
        return found >= 0

    def chain(self, quad: tuple[int, int, int, int]) -> Ints | None:
        """The quads that agree with one in which -1 is any id; None if no index finds them."""
        key = np.array([quad], np.int32)
        known = np.flatnonzero(key[0] >= 0)
        self._settle()
        keys, links = self._compiled.keys, self._compiled.links
        held = links.get(max(quad[1], -1), links.get(-1, 0))
        usable = [i for i in range(len(keys)) if held >> i & 1 and np.isin(keys[i], known).all()]
        if not usable:
            return None
        index = max(usable, key=lambda i: len(keys[i]))
        t = self._table.arrays
        found = np.empty(64, np.int32)
        length = int(chain_rows(t, index, key, found))
        if length > len(found):
            found = np.empty(length, np.int32)
            chain_rows(t, index, key, found)
        rows: Ints = t.rows[found[:length], :4]
        return rows[(rows[:, known] == key[0, known]).all(axis=1)]

    def quads(self) -> Ints:
        """The current quads, one row each."""
        return self._table.values()[:, :4]

    def held_ids(self) -> Iterator[Ints]:
        """The ids of all quads, and the constants of the programs."""
        yield from self._table.held_ids()
        for program in self._programs.values():
            yield np.array(program.all_patterns(), np.int32)

    def _split(self, out: Ints) -> dict[int, Ints]:
        """The output by program; the common case of one program needs no sort."""
        first = out.item(0, col.OUT_PROGRAM)
        if len(self._order) == 1 or not np.any(out[:, col.OUT_PROGRAM] != first):
            return {self._order[first]: self._batch(out, first)}
        ordered = out[np.argsort(out[:, col.OUT_PROGRAM], kind="stable")]
        present, starts = np.unique(ordered[:, col.OUT_PROGRAM], return_index=True)
        parts = np.split(ordered, starts[1:])
        return {
            self._order[int(at)]: self._batch(part, int(at))
            for at, part in zip(present, parts, strict=True)
        }

    def _batch(self, part: Ints, at: int) -> Ints:
        return part[:, col.OUT_TX : self._ends[at][1]].copy()

    def _compile(self) -> None:
        """Compile all programs; relink the quads only if the indexes have changed."""
        self._order = list(self._programs)
        self._ends = [(n, col.OUT_VALUES + p.outputs) for n, p in self._programs.items()]
        before = self._compiled
        programs = [self._programs[number] for number in self._order]
        self._compiled = compile_programs(programs, before.keys)
        self._seeds = dict(zip(self._order, first_seeds(self._compiled.plan), strict=True))
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
        if len(before.keys) < max(len(self._compiled.keys), len(self._table.arrays.indexes)):
            self._table.change_indexes(self._compiled.keys, kept=len(before.keys))
        high = int(self._table.arrays.meta[HIGH])
        for first in range(0, high, LINKED_AT_ONCE):
            end = min(first + LINKED_AT_ONCE, high)
            self._table.reserve_keys(end - first)
            relink(self._table.arrays, self._plan.dispatch, before.plan.dispatch, first, end)
