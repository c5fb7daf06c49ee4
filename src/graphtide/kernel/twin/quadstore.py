"""QuadStore by definition: a set of quads; each program's matches, found anew."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from graphtide.kernel.batch import make_batch
from graphtide.kernel.twin.bag import difference, transactions
from graphtide.kernel.twin.matching import evaluate

if TYPE_CHECKING:
    from graphtide.kernel.batch import Ints
    from graphtide.kernel.program import Program
    from graphtide.kernel.twin.bag import Bag, Row
    from graphtide.kernel.twin.matching import Quads


class QuadStore:
    """The twin of `graphtide.kernel.quadstore.QuadStore`.

    >>> from graphtide.kernel.program import Program
    >>> store = QuadStore()
    >>> pairs = store.install(Program(((-1, 7, -2, 0), (-2, 8, -3, 0)), outputs=3))
    >>> changes = [[0, 1, 1, 7, 2, 0], [1, 1, 2, 8, 3, 0], [2, -1, 1, 7, 2, 0]]
    >>> store.apply(np.array(changes, np.int32))[pairs].tolist()
    [[1, 1, 1, 2, 3], [2, -1, 1, 2, 3]]
    """

    index_count = 0
    stores = True

    def __init__(self, *, store_all: bool = True) -> None:
        self._store_all = store_all
        self._quads: Quads = {}
        self._programs: dict[int, Program] = {}
        self._answers: dict[int, Bag] = {}
        self._next = 0
        self._counts = Counter(inserted=0, deleted=0, redundant=0, dropped=0)

    def __len__(self) -> int:
        return sum(map(len, self._quads.values()))

    @property
    def nbytes(self) -> int:
        """Bytes of the ids held, leaving aside what Python adds to them."""
        return len(self) * 16

    def counts(self) -> dict[str, int]:
        """How many changes had an effect, and how many had none and why."""
        return dict(self._counts)

    def install(self, program: Program) -> int:
        """Add a program; the number under which its rows come out of `apply`."""
        number = self._next
        self._next += 1
        self._programs[number] = program
        self._answers[number] = evaluate(program, self._quads)
        return number

    def remove(self, number: int) -> None:
        """Forget a program."""
        del self._programs[number], self._answers[number]

    def apply(self, changes: Ints) -> dict[int, Ints]:
        """Apply changes `[tx, diff, s, p, o, g]` in order; per program, the batch they cause."""
        out: dict[int, list[tuple[int, ...]]] = {}
        for tx, quads in transactions(changes):
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

    def evaluate(self, number: int) -> Ints:
        """All matches of one program now, as a batch of one transaction."""
        program = self._programs[number]
        rows = [(0, 1, *row) for row in evaluate(program, self._quads)]
        return make_batch(rows, program.outputs)

    def contains(self, quads: Ints) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Which of these quads are present."""
        return np.array([self._has(tuple(quad)) for quad in quads.tolist()], np.bool_)

    def quads(self) -> Ints:
        """The current quads, one row each."""
        rows = [quad for group in self._quads.values() for quad in group]
        return np.array(rows, np.int32).reshape(len(rows), 4)

    def _has(self, quad: Row) -> bool:
        return quad in self._quads.get(quad[1], ())

    def _change(self, diff: int, quad: Row) -> bool:
        """Carry out one change; whether it had an effect."""
        effect = "inserted" if diff > 0 else "deleted"
        if self._has(quad) == (diff > 0):
            effect = "redundant"
        elif diff < 0:
            del self._quads[quad[1]][quad]
        elif self._store_all or any(concerns(p, quad[1]) for p in self._programs.values()):
            self._quads.setdefault(quad[1], {})[quad] = None
        else:
            effect = "dropped"
        self._counts[effect] += 1
        return effect in ("inserted", "deleted")


def concerns(program: Program, predicate: int) -> bool:
    """Whether a quad with this predicate may match a pattern of the program.

    >>> from graphtide.kernel.program import Program
    >>> concerns(Program(((-1, 7, -2, 0),), 2), 8)
    False
    """
    named = {pattern[1] for pattern in program.all_patterns()}
    return predicate in named or min(named) < 0
