"""`QuadStream`: changes matched as they pass, with no quad stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.jit import compiled
from graphtide.kernel.batch import Ints, longer
from graphtide.kernel.search import arrays as col
from graphtide.kernel.search.ahead import find_dispatch
from graphtide.kernel.search.program import (
    SearchProgram,
    not_restorable,
    reject_joins,
    reject_lookups,
)
from graphtide.kernel.search.quadstore import MAX_RETAINED, QuadStore

if TYPE_CHECKING:
    from graphtide.arrays import Ints1, Ints2, Longs1

QUAD = 2
"""Where the quad of a change begins."""


@compiled
def match_changes(
    patterns: Ints2,
    programs: Ints2,
    seeds: Ints2,
    dispatch: Ints2,
    bind: Ints1,
    changes: Ints2,
    out: Ints2,
    regs: Longs1,
) -> bool:
    """Write each change for each pattern that it matches; False if the output is full.

    `regs` has the change to resume with, and the number of rows written.
    """
    while regs[0] < len(changes):
        i, n = regs[0], regs[1]
        line = find_dispatch(dispatch, changes[i, QUAD + 1])
        first, many = dispatch[line, col.SEEDS_FROM], dispatch[line, col.SEEDS]
        if n + many > len(out):
            return False
        for seed in range(first, first + many):
            program = seeds[seed, col.SEED_PROGRAM]
            pattern = programs[program, col.FIRST]
            for k in range(programs[program, col.OUTPUTS]):
                bind[k] = 0
            fits = True
            for k in range(4):
                wanted, value = patterns[pattern, k], changes[i, QUAD + k]
                if wanted >= 0:
                    fits = fits and wanted == value
                elif bind[-1 - wanted] == 0 and value != 0:
                    bind[-1 - wanted] = value
                elif bind[-1 - wanted] != value or value == 0:
                    fits = False
            if fits:
                out[n, col.OUT_PROGRAM] = program
                out[n, col.OUT_TX] = changes[i, 0]
                out[n, col.OUT_DIFF] = changes[i, 1]
                for k in range(programs[program, col.OUTPUTS]):
                    out[n, col.OUT_VALUES + k] = bind[k]
                n += 1
        regs[0], regs[1] = i + 1, n
    return True


class QuadStream(QuadStore):
    """A `QuadStore` that stores no quads: changes are matched as they pass, redundant or not.

    >>> from graphtide.kernel.search.program import SearchProgram
    >>> stream = QuadStream()
    >>> subjects = stream.install(SearchProgram(((-1, 7, 5, 0),), outputs=1))
    >>> stream.apply(np.array([[0, 1, 3, 7, 5, 0], [0, 1, 3, 7, 6, 0]], np.int32))[
    ...     subjects
    ... ].tolist()
    [[0, 1, 3]]
    >>> len(stream)
    0
    """

    stores = False

    def install(self, program: SearchProgram) -> int:
        """Add a program of one pattern."""
        reject_joins(program)
        return super().install(program)

    def apply(self, changes: Ints) -> dict[int, Ints]:
        """Match changes `[tx, diff, s, p, o, g]`; per program, the batch they cause."""
        plan, regs = self._plan, np.zeros(2, np.int64)
        inserts = int(np.count_nonzero(changes[:, 1] > 0))
        self._counts[col.INSERTED] += inserts
        self._counts[col.DROPPED] += inserts
        self._counts[col.DELETED] += len(changes) - inserts
        arrays = plan.patterns, plan.programs, plan.seeds, plan.dispatch, plan.bind
        while not match_changes(*arrays, changes, self._out, regs):
            self._out = longer(self._out)
        n = int(regs[1])
        batches = self._split(self._out[:n]) if n else {}
        if len(self._out) > MAX_RETAINED:
            self._out = np.empty((256, self._out.shape[1]), np.int32)
        return batches

    def rebuilt(self, undone: Ints) -> QuadStore:  # noqa: ARG002 - as in `QuadStore`
        """An error: without quads, nothing can be restored."""
        raise not_restorable()

    def evaluate(self, number: int) -> Ints:
        """An empty batch; an error once quads have passed."""
        reject_lookups(self.changed)
        return np.empty((0, 2 + self._programs[number].outputs), np.int32)

    def contains(self, quads: Ints) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """None; an error once quads have passed."""
        reject_lookups(self.changed)
        return np.zeros(len(quads), np.bool_)

    def quads(self) -> Ints:
        """None; an error once quads have passed."""
        reject_lookups(self.changed)
        return np.empty((0, 4), np.int32)
