"""`QuadStore`: the current quads, indexed, and the search programs that react to their changes.

The search strategy: changes are applied one by one. For a changed quad and each pattern that it
matches, the other patterns are joined outwards from it (`react`, `next_match`). Nothing but the
quads themselves is stored.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from graphtide.kernel.batch import DIFF, TX, Ints, longer
from graphtide.kernel.rowtable import HIGH, LIVE, USED, RowTable, Table
from graphtide.kernel.search import arrays as col
from graphtide.kernel.search import loops
from graphtide.kernel.search.alone import only_programs, with_scratch
from graphtide.kernel.search.bulk import difference, link_table, load_table
from graphtide.kernel.search.compile import NO_PROGRAMS, Compiled, GonePrograms, compile_programs
from graphtide.limits import Allowance, Limits, allowance
from graphtide.views import UNKNOWN, make_block, not_copied

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from graphtide.kernel.search.arrays import SearchArrays
    from graphtide.kernel.search.program import SearchProgram
    from graphtide.views import Block

CHUNK = 8192
"""Changes per call of the kernel: an interrupt waits for no more."""

BULK, BULK_SHARE = 1 << 11, 4
"""Changes of a transaction that may be applied without reacting to each, and how many times as
many as the stored quads they have to be."""

MAX_RETAINED = 1 << 16
"""Rows of output space that are retained from one call to the next."""

SPARE = 64
"""Quads for which room is made at least, and changes between two looks."""

LOOKS = 16
"""How often is looked for indexes that are of no use any more, while as many quads change as there
are."""

EVALUATED_AT_ONCE, WRITTEN_AT_ONCE = 1 << 14, 1 << 18
"""Rows from which a query is evaluated, and rows that it puts out, before the time is checked."""

FEW_ROWS, FEW_PROGRAMS = 256, 4
"""Rows of output, and programs in it, that are looked at in Python: sorting takes longer."""


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

    __reduce_ex__ = not_copied

    def __init__(self, *, store_all: bool = True) -> None:
        self.limits = Limits()
        self._store_all = store_all
        self.to_come = 0
        """Changes that are going to come, as the next call is told: it makes room for more."""
        self._new_share = 0.0  # of the changes of the last call, those that inserted a quad
        self._programs: dict[int, SearchProgram] = {}
        self._gone = GonePrograms()
        self._order: list[int] = []
        self._next = 0
        self._table = RowTable(4)
        self._compiled = NO_PROGRAMS
        self._stale = False  # whether programs came or went that are not compiled yet
        self._left = UNKNOWN  # changes that may come before `_look` is called
        self._block: Block = None
        self._viewed: tuple[Table | None, SearchArrays | None] = None, None  # what the block has
        self._counts = np.zeros(col.COUNTS, np.int64)
        self._call = 0
        self._last: Ints | ref[Ints] = np.empty((0, 6), np.int32)  # large ones are not kept
        self._effects: Ints = np.empty(BULK, np.int32)
        self._out: Ints = np.empty((256, 3), np.int32)
        # The output, and by place the first row of the output as a batch of its own.
        self._single: tuple[Ints | None, dict[int, Ints]] = None, {}

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
            self._compile()
            self._stale = False

    def counts(self) -> dict[str, int]:
        """How many changes had an effect, and how many had none, by reason."""
        return {
            "inserted": int(self._counts[col.INSERTED]),
            "deleted": int(self._counts[col.DELETED]),
            "redundant": int(self._counts[col.REDUNDANT]),
            "dropped": int(self._counts[col.DROPPED]),
        }

    def counted(self) -> bytes:
        """What was counted so far, for `recount`."""
        return self._counts.tobytes()

    def recount(self, counted: bytes) -> None:
        """Go back to what was counted."""
        self._counts[: col.RESUME] = np.frombuffer(counted, np.int64)[: col.RESUME]

    def install(self, program: SearchProgram) -> int:
        """Add a program; the key of its rows in the result of `apply`."""
        number = self._next
        self._next += 1
        self._programs[number] = program
        self._stale, self._left = True, UNKNOWN
        return number

    def remove(self, number: int, *, for_now: bool = False) -> None:
        """Remove a program, and the indexes that only it needed.

        What is removed `for_now` may come again: its indexes stay for some time.
        """
        program = self._programs.pop(number)
        if for_now:
            self._gone.add(program, self.changed)
        self._stale, self._left = True, UNKNOWN

    def apply(self, changes: Ints) -> dict[int, Ints]:
        """Apply changes `[tx, diff, s, p, o, g]` in order; per program, the batch they cause.

        If that takes more than `limits` allow, what the changes cause is not known: the caller has
        to undo them.
        """
        self._call += 1
        many = len(changes)
        self._last = changes if many <= BULK else ref(changes)
        if many > BULK:
            return self._apply_many(changes)
        n = self._apply_chunk(changes, 0, many, 0)
        if n == 0:
            return {}
        if n == 1:
            if self._single[0] is not self._out:
                self._single = self._out, {}
            at = self._out.item(0, col.OUT_PROGRAM)
            row = self._single[1].get(at)
            if row is None:
                row = self._single[1][at] = self._out[:1, col.OUT_TX : self._end(at)]
            return {self._order[at]: row.copy()}
        return self._put_out(self._out[:n])

    def _put_out(self, rows: Ints) -> dict[int, Ints]:
        """Rows of output, by program; the space for many is not retained."""
        batches = self._split(rows)
        if len(self._out) > MAX_RETAINED:
            self._out = np.empty((256, self._out.shape[1]), np.int32)
        return batches

    def _apply_many(self, changes: Ints) -> dict[int, Ints]:
        many, more = len(changes), int(self.to_come * self._new_share)  # if as many are new
        self.to_come = 0
        if len(self._effects) < many:
            self._effects = np.empty(2 * many, np.int32)
        if self._is_bulk(changes):
            return self._apply_bulk(changes)
        if self._store_all and changes[:, DIFF].min() > 0:
            self._settle()
            self._left = UNKNOWN  # its arrays may be others now
            self._table.reserve_inserts(max(many, more))
        inserted = self._counts.item(col.INSERTED)
        batches = self._apply_parts(changes)
        self._new_share = (self._counts.item(col.INSERTED) - inserted) / max(many, 1)
        return batches

    def _apply_parts(self, changes: Ints) -> dict[int, Ints]:
        """Apply changes in parts that are small enough for an interrupt to wait for."""
        n, many = 0, len(changes)
        for first in range(0, many, CHUNK):
            n = self._apply_chunk(changes, first, min(first + CHUNK, many), n)
        return self._put_out(self._out[:n])

    def _is_bulk(self, changes: Ints) -> bool:
        """Whether changes are one transaction that is much larger than what is stored.

        Then evaluating before and after takes less time than reacting to every change.
        """
        one = changes.item(0, TX) == changes.item(-1, TX)
        return one and len(self) * BULK_SHARE <= len(changes)

    def _apply_bulk(self, changes: Ints) -> dict[int, Ints]:
        """Apply one transaction: the matches of all programs afterwards, but for those before."""
        many, tx = len(changes), changes.item(0, TX)
        self._settle()
        left, programs = Allowance(self.limits, "flush"), range(len(self._order))
        before = self._split(self._evaluate(programs, tx, left)) if len(self) else {}
        self._table.reserve_rows(many)
        self._left = UNKNOWN  # its arrays may be others now
        if not self._table.arrays.meta[HIGH] and self._store_all and changes[:, DIFF].min() > 0:
            load_table(
                self._table, self._plan.dispatch, NO_PROGRAMS.plan.dispatch,
                changes, self._effects, self._counts, self._call,
            )  # fmt: skip
        else:
            for first in range(0, many, CHUNK):
                self._apply_chunk(changes, first, min(first + CHUNK, many), 0, reacts=False)
        if not self._order:
            return {}
        after = self._split(self._evaluate(programs, tx, left))
        for number, rows in before.items():
            after[number] = difference(after.get(number, rows[:0]), rows)
        return after

    def _apply_chunk(
        self, changes: Ints, first: int, end: int, n: int, *, reacts: bool = True
    ) -> int:
        many = end - first
        if self._left < many:
            self._look(many)
        self._left -= many
        kernel: Any = loops.apply_changes
        written: int = kernel(
            self._block, self._store_all, reacts, self._call,
            changes, first, end, self._effects, self._out, n,
        )  # fmt: skip
        left: Allowance | None = None  # most changes need no room, and no look at the clock
        while written < 0:
            stopped, n = int(self._counts[col.STOPPED]), int(self._counts[col.WRITTEN])
            if written == loops.TABLE_FULL:
                self._make_room(changes[stopped:end])
            else:
                left = left or Allowance(self.limits, "flush")
                left.allow(2 * self._out.nbytes)
                self._out = longer(self._out)
            written = kernel(
                self._block, self._store_all, reacts, self._call,
                changes, stopped, end, self._effects, self._out, n,
            )  # fmt: skip
        return written

    def _look(self, many: int) -> None:
        """Before so many changes: drop indexes that are of no use, and lay out new arrays."""
        self._stale |= self.changed > self._gone.until
        self._settle()
        self._lay_out()
        self._left = max(many, SPARE, len(self) // LOOKS)

    def _make_room(self, changes: Ints) -> None:
        """Make room for a quad at least, and at most for those that changes insert."""
        left = self._left
        self._left = UNKNOWN  # also after an interrupt
        extra = max(SPARE, int(np.count_nonzero(changes[:, DIFF] > 0)))
        self._table.reserve_rows(extra)
        used = self._table.arrays.indexes[:, USED].tolist()
        self._table.reserve_heads([min(extra, max(SPARE, keys)) for keys in used])
        self._lay_out()
        self._left = left

    def _lay_out(self) -> None:
        """Lay out the arrays of the table and the programs, if they are others now."""
        table, plan = self._table.arrays, self._compiled.plan
        if table is not self._viewed[0] or plan is not self._viewed[1]:
            block = make_block((*table[:-1], *plan, self._counts))
            self._block, self._viewed = block, (table, plan)

    def effective(self, changes: Ints) -> Ints | None:
        """Those of some changes that had an effect; None unless they were applied last."""
        last = self._last() if isinstance(self._last, ref) else self._last
        if last is not changes or self._counts[col.CALL] != self._call:
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
        other._left = UNKNOWN
        interrupted = self._counts[col.APPLIED] > 0 and len(undone) > 0
        first = col.BEFORE if interrupted else 0
        other._counts[:] = 0
        other._counts[: col.WRITTEN] = self._counts[first : first + col.WRITTEN]
        return other

    def evaluate(self, number: int) -> Ints:
        """All matches of one program now, as a batch of one transaction."""
        self._settle()
        if not self._table.arrays.meta[HIGH]:
            return np.empty((0, 2 + self._programs[number].outputs), np.int32)
        at = bisect_left(self._order, number)  # numbers only grow
        end = self._end(at)
        return np.ascontiguousarray(self._evaluate([at], 0, allowance())[:, col.OUT_TX : end])

    def _evaluate(self, programs: Sequence[int], tx: int, left: Allowance) -> Ints:
        """All matches of some programs now, given by place, as they are put out.

        Whenever limits are checked, another evaluation may run: this one has arrays of its own.
        """
        plan, t = self._plan, self._table.arrays
        sizes = np.zeros(len(plan.dispatch), np.int64)
        loops.count_quads(t, plan.dispatch, sizes)
        chosen = with_scratch(only_programs(plan, programs, sizes))
        out: Ints = np.empty((256, self._out.shape[1]), np.int32)
        kernel: Any = loops.evaluate_rows
        n, high, counts = 0, int(t.meta[HIGH]), np.zeros_like(self._counts)
        for first in range(0, high, EVALUATED_AT_ONCE):
            end = min(first + EVALUATED_AT_ONCE, high)
            written, stopped = -1, first
            while written < 0:
                part = out[: n + WRITTEN_AT_ONCE]
                written = kernel(t, chosen, tx, counts, stopped, end, part, n)
                if written < 0:
                    stopped, n = int(counts[col.STOPPED]), int(counts[col.WRITTEN])
                    if n < len(out):
                        left.check_time()
                    else:
                        left.allow(2 * out.nbytes)
                        out = longer(out)
            n = int(written)
            left.check_time()
        return out[:n]

    def contains(self, quads: Ints) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Which of these quads are present."""
        found = np.empty(len(quads), np.int32)
        loops.find_rows(self._table.arrays, np.ascontiguousarray(quads, np.int32), found)
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
        length = int(loops.chain_rows(t, index, key, found))
        if length > len(found):
            found = np.empty(length, np.int32)
            loops.chain_rows(t, index, key, found)
        rows: Ints = t.rows[found[:length], :4]
        return rows[(rows[:, known] == key[0, known]).all(axis=1)]

    def quads(self) -> Ints:
        """The current quads, one row each."""
        return self._table.values(4)

    def held_ids(self) -> Iterator[Ints]:
        """The ids of all quads, and the constants of the programs."""
        yield from self._table.held_ids()
        for program in self._programs.values():
            yield np.array(program.all_patterns(), np.int32)

    def _split(self, out: Ints) -> dict[int, Ints]:
        """The output by program; the common case of one program needs no sort."""
        if not len(out):
            return {}
        if len(self._order) == 1:
            return {self._order[0]: self._batch(out, 0)}
        column = out[:, col.OUT_PROGRAM]
        if len(out) <= FEW_ROWS:
            places = set(column.tolist())
            if len(places) == 1:
                return {self._order[at]: self._batch(out, at) for at in places}
            if len(places) <= FEW_PROGRAMS:
                return {self._order[at]: self._batch(out[column == at], at) for at in places}
        elif not np.any(column != column[0]):
            return {self._order[column[0]]: self._batch(out, column[0])}
        ordered = out[np.argsort(column, kind="stable")]
        present, starts = np.unique(ordered[:, col.OUT_PROGRAM], return_index=True)
        parts = np.split(ordered, starts[1:])
        return {
            self._order[int(at)]: self._batch(part, int(at))
            for at, part in zip(present, parts, strict=True)
        }

    def _batch(self, part: Ints, at: int) -> Ints:
        return part[:, col.OUT_TX : self._end(at)].copy()

    def _end(self, at: int) -> int:
        """Where the output of the program at a place ends."""
        return col.OUT_VALUES + self._compiled.plan.programs.item(at, col.OUTPUTS)

    def _compile(self) -> None:
        """Compile all programs; relink the quads only if the indexes have changed."""
        order, before = list(self._programs), self._compiled
        gone = self._gone.recent(self.changed, len(self))
        compiled = compile_programs(list(self._programs.values()), before, gone)
        self._left, self._single = UNKNOWN, (None, {})
        widest, out = int(compiled.plan.programs[:, col.OUTPUTS].max(initial=0)), self._out
        if out.shape[1] != 3 + widest:
            out = np.empty((256, 3 + widest), np.int32)
        if (before.keys, before.links) != (compiled.keys, compiled.links):
            self._compiled = NO_PROGRAMS  # after an interrupt, all indexes are made anew
            self._relink(before, compiled)
        # One assignment: a program writes rows of its width, by indexes that have its quads.
        self._compiled, self._order, self._out = compiled, order, out

    def _relink(self, before: Compiled, compiled: Compiled) -> None:
        """Change the indexes, and add quads to those that lack them."""
        if not compiled.extends(before):
            before = NO_PROGRAMS
        if len(before.keys) < max(len(compiled.keys), len(self._table.arrays.indexes)):
            self._table.change_indexes(compiled.keys, kept=len(before.keys))
        link_table(self._table, compiled.plan.dispatch, before.plan.dispatch)
