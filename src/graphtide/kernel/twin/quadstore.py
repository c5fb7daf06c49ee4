"""`QuadStore` by definition: a set of quads; the matches of each program, recomputed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from graphtide.kernel.batch import Ints, make_batch
from graphtide.kernel.search.arrays import HIDDEN
from graphtide.kernel.search.program import (
    Pattern,
    SearchProgram,
    not_restorable,
    reject_joins,
    reject_lookups,
)
from graphtide.kernel.twin.recomputed import Bag, Row, bag_ids, difference, transactions
from graphtide.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping


Quads = dict[int, dict["Row", None]]
"""Quads by predicate, oldest first."""

Binding = dict[int, int]
"""The values of variables; a variable is the negative number of its patterns."""


def unify(pattern: Pattern, quad: Row, binding: Mapping[int, int]) -> Binding | None:
    """The binding with the pattern's variables added, or None if quad and pattern disagree.

    Variables do not match the default graph, 0, and internal graphs.

    >>> unify((-1, 7, -2, 0), (5, 7, 6, 0), {-1: 5})
    {-1: 5, -2: 6}
    >>> unify((-1, 7, -1, 0), (5, 7, 6, 0), {})
    """
    bound = dict(binding)
    for wanted, value in zip(pattern, quad, strict=True):
        if wanted < 0 and 0 < value < HIDDEN:
            wanted = bound.setdefault(wanted, value)
        if wanted != value:
            return None
    return bound


def matches(patterns: tuple[Pattern, ...], quads: Quads, binding: Binding) -> Iterator[Binding]:
    """Every way to extend a binding so that all patterns are quads."""
    if not patterns:
        yield binding
        return
    predicate = patterns[0][1]
    predicate = binding.get(predicate, predicate)
    groups: Collection[dict[Row, None]] = quads.values()
    if predicate >= 0:
        groups = [quads.get(predicate, {})]
    for group in groups:
        for quad in group:
            more = unify(patterns[0], quad, binding)
            if more is not None:
                yield from matches(patterns[1:], quads, more)


def evaluate(program: SearchProgram, quads: Quads) -> dict[Row, int]:
    """The matches of a program that pass its checks, once each.

    >>> from graphtide.kernel.search.program import SearchProgram
    >>> evaluate(SearchProgram(((-1, 7, -2, 0), (-2, 7, -1, 0)), 2), {7: {(3, 7, 3, 0): None}})
    {(3, 3): 1}
    """
    return {
        tuple(binding[-1 - v] for v in range(program.outputs)): 1
        for binding in matches(program.patterns, quads, {})
        if all(
            (next(matches(check.patterns, quads, binding), None) is None) == check.negated
            for check in program.checks
        )
    }


class QuadStore:
    """The twin of `graphtide.kernel.search.quadstore.QuadStore`.

    >>> from graphtide.kernel.search.program import SearchProgram
    >>> store = QuadStore()
    >>> pairs = store.install(SearchProgram(((-1, 7, -2, 0), (-2, 8, -3, 0)), outputs=3))
    >>> changes = [[0, 1, 1, 7, 2, 0], [1, 1, 2, 8, 3, 0], [2, -1, 1, 7, 2, 0]]
    >>> store.apply(np.array(changes, np.int32))[pairs].tolist()
    [[1, 1, 1, 2, 3], [2, -1, 1, 2, 3]]
    """

    index_count = to_come = 0
    stores = True

    def __init__(
        self,
        *,
        store_all: bool = True,
    ) -> None:
        self.limits = Limits()
        self._store_all = store_all
        self._quads: Quads = {}
        self._programs: dict[int, SearchProgram] = {}
        self._answers: dict[int, Bag] = {}
        self._next = 0
        self._counts = Counter(inserted=0, deleted=0, redundant=0, dropped=0)
        self._before = self._counts
        self._last: Ints | None = None
        self._tx = 0
        self._applied: list[tuple[int, int, Row]] = []

    def __len__(self) -> int:
        return sum(map(len, self._quads.values()))

    @property
    def changed(self) -> int:
        """How many changes had an effect."""
        return self._counts["inserted"] + self._counts["deleted"]

    @property
    def nbytes(self) -> int:
        """Bytes of the ids held, without Python's overhead."""
        return len(self) * 16

    def counts(self) -> dict[str, int]:
        """How many changes had an effect, and how many had none, by reason."""
        return dict(self._counts)

    def install(self, program: SearchProgram) -> int:
        """Add a program; the key of its rows in the result of `apply`."""
        number = self._next
        self._next += 1
        self._programs[number] = program
        self._answers[number] = evaluate(program, self._quads)
        return number

    def remove(self, number: int, *, for_now: bool = False) -> None:  # noqa: ARG002 - no indexes
        """Remove a program."""
        del self._programs[number], self._answers[number]

    def apply(self, changes: Ints) -> dict[int, Ints]:
        """Apply changes `[tx, diff, s, p, o, g]` in order; per program, the batch they cause."""
        self._before, self._applied, self._last = Counter(self._counts), [], changes
        out: dict[int, list[tuple[int, ...]]] = {}
        for tx, quads in transactions(changes):
            self._tx = tx
            predicates = {quad[1] for diff, quad in quads if self._change(diff, quad)}
            for number, program in self._programs.items():
                if any(concerns(program, predicate) for predicate in predicates):
                    before = self._answers[number]
                    after = self._answers[number] = evaluate(program, self._quads)
                    moved = difference(after, before).items()
                    out.setdefault(number, []).extend((tx, diff, *row) for row, diff in moved)
        return {
            number: make_batch(rows, self._programs[number].outputs)
            for number, rows in out.items()
            if rows
        }

    def counted(self) -> Counter[str]:
        """What was counted so far, for `recount`."""
        return Counter(self._counts)

    def recount(self, counted: Counter[str]) -> None:
        """Go back to what was counted."""
        self._counts = Counter(counted)

    def effective(self, changes: Ints) -> Ints | None:
        """Those of some changes that had an effect; None unless they were applied last."""
        if self._last is not changes:
            return None
        rows = [(tx, diff, *quad) for tx, diff, quad in self._applied]
        return np.array(rows, np.int32).reshape(-1, 6)

    def undo(self, changes: Ints) -> Ints:
        """What undoes changes, if they were applied last, as far as they had an effect."""
        applied = self.effective(changes)
        if applied is None:
            return changes[:0]
        undone = applied[::-1].copy()
        undone[:, :2] *= (0, -1)
        return undone

    def rebuilt(self, undone: Ints) -> QuadStore:
        """Another store with the same quads, some changes undone, and without programs."""
        other = QuadStore()
        other.limits = self.limits
        for quad in self.quads().tolist():
            other._change(1, tuple(quad))
        other.apply(undone)
        other._store_all = self._store_all
        other._counts = Counter(self._before if len(undone) else self._counts)
        return other

    def evaluate(self, number: int) -> Ints:
        """All matches of one program now, as a batch of one transaction."""
        program = self._programs[number]
        rows = [(0, 1, *row) for row in evaluate(program, self._quads)]
        return make_batch(rows, program.outputs)

    def contains(self, quads: Ints) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Which of these quads are present."""
        return np.array([self._has(tuple(quad)) for quad in quads.tolist()], np.bool_)

    def chain(self, quad: Row) -> Ints | None:
        """The quads that agree with one in which -1 is any id: None, because there is no index."""
        return None if min(quad) < 0 else np.array([quad], np.int32)[: self._has(quad)]

    def quads(self) -> Ints:
        """The current quads, one row each."""
        rows = [quad for group in self._quads.values() for quad in group]
        return np.array(rows, np.int32).reshape(len(rows), 4)

    def held_ids(self) -> Iterator[Ints]:
        """The ids of all quads, and the constants of the programs."""
        for group in self._quads.values():
            yield bag_ids(group)
        for program in self._programs.values():
            yield bag_ids(program.all_patterns())

    def _has(self, quad: Row) -> bool:
        return quad in self._quads.get(quad[1], ())

    def _change(self, diff: int, quad: Row) -> bool:
        """Apply one change; whether it had an effect."""
        effect = "inserted" if diff > 0 else "deleted"
        if self._has(quad) == (diff > 0):
            effect = "redundant"
        elif diff < 0:
            self._applied.append((self._tx, diff, quad))
            del self._quads[quad[1]][quad]
        elif self._store_all or any(concerns(p, quad[1]) for p in self._programs.values()):
            self._applied.append((self._tx, diff, quad))
            self._quads.setdefault(quad[1], {})[quad] = None
        else:
            effect = "dropped"
        self._counts[effect] += 1
        return effect in ("inserted", "deleted")


def concerns(program: SearchProgram, predicate: int) -> bool:
    """Whether a quad with this predicate may match a pattern of the program.

    >>> from graphtide.kernel.search.program import SearchProgram
    >>> concerns(SearchProgram(((-1, 7, -2, 0),), 2), 8)
    False
    """
    named = {pattern[1] for pattern in program.all_patterns()}
    return predicate in named or min(named) < 0


class QuadStream(QuadStore):
    """The twin of `graphtide.kernel.search.quadstore.QuadStream`.

    >>> import numpy as np
    >>> from graphtide.kernel.search.program import SearchProgram
    >>> stream = QuadStream()
    >>> subjects = stream.install(SearchProgram(((-1, 7, 5, 0),), outputs=1))
    >>> stream.apply(np.array([[0, 1, 3, 7, 5, 0]], np.int32))[subjects].tolist()
    [[0, 1, 3]]
    """

    stores = False

    def install(self, program: SearchProgram) -> int:
        """Add a program of one pattern."""
        reject_joins(program)
        return super().install(program)

    def rebuilt(self, undone: Ints) -> QuadStore:  # noqa: ARG002 - as in `QuadStore`
        """An error: without quads, nothing can be restored."""
        raise not_restorable()

    def apply(self, changes: Ints) -> dict[int, Ints]:
        """Match changes `[tx, diff, s, p, o, g]`; per program, the batch they cause."""
        out: dict[int, list[tuple[int, ...]]] = {}
        for tx, diff, *quad in changes.tolist():
            self._counts["inserted" if diff > 0 else "deleted"] += 1
            self._counts["dropped"] += diff > 0
            for number, program in self._programs.items():
                found = unify(program.patterns[0], tuple(quad), {})
                if found is not None:
                    row = (found[-1 - v] for v in range(program.outputs))
                    out.setdefault(number, []).append((tx, diff, *row))
        return {n: make_batch(rows, self._programs[n].outputs) for n, rows in out.items()}

    def evaluate(self, number: int) -> Ints:
        """An empty batch; an error once quads have passed."""
        reject_lookups(self.changed)
        return super().evaluate(number)

    def contains(self, quads: Ints) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """None; an error once quads have passed."""
        reject_lookups(self.changed)
        return super().contains(quads)

    def quads(self) -> Ints:
        """None; an error once quads have passed."""
        reject_lookups(self.changed)
        return super().quads()
