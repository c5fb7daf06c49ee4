"""QuadStream: changes matched as they pass, with no quad stored.

Each program is one pattern, and a change that matches it comes out as it is: nobody can tell
whether it is redundant, or which quads are there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.jit import compiled
from graphtide.kernel.batch import Ints, Longs, longer
from graphtide.kernel.program import refuse_joins, refuse_looking
from graphtide.kernel.quadstore import MOST_KEPT, QuadStore
from graphtide.kernel.search import find_dispatch
from graphtide.kernel.search_plan import (
    DELETED,
    DROPPED,
    FIRST,
    INSERTED,
    OUT_DIFF,
    OUT_PROGRAM,
    OUT_TX,
    OUT_VALUES,
    OUTPUTS,
    SEED_PROGRAM,
    SEEDS,
    SEEDS_FROM,
)

if TYPE_CHECKING:
    from graphtide.kernel.program import Program

QUAD = 2
"""Where the quad of a change begins."""


@compiled
def match_changes(
    patterns: Ints,
    programs: Ints,
    seeds: Ints,
    dispatch: Ints,
    bind: Ints,
    changes: Ints,
    out: Ints,
    marks: Longs,
) -> bool:
    """Write each change for each pattern that it matches; False if the output is full.

    `marks` has the change to go on with, and the rows written.
    """
    while marks[0] < len(changes):
        i, n = marks[0], marks[1]
        line = find_dispatch(dispatch, changes[i, QUAD + 1])
        first, many = dispatch[line, SEEDS_FROM], dispatch[line, SEEDS]
        if n + many > len(out):
            return False
        for seed in range(first, first + many):
            program = seeds[seed, SEED_PROGRAM]
            pattern = programs[program, FIRST]
            for k in range(programs[program, OUTPUTS]):
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
                out[n, OUT_PROGRAM] = program
                out[n, OUT_TX] = changes[i, 0]
                out[n, OUT_DIFF] = changes[i, 1]
                for k in range(programs[program, OUTPUTS]):
                    out[n, OUT_VALUES + k] = bind[k]
                n += 1
        marks[0], marks[1] = i + 1, n
    return True


class QuadStream(QuadStore):
    """What a `QuadStore` is, but for the quads.

    >>> from graphtide.kernel.program import Program
    >>> stream = QuadStream()
    >>> subjects = stream.install(Program(((-1, 7, 5, 0),), outputs=1))
    >>> stream.apply(np.array([[0, 1, 3, 7, 5, 0], [0, 1, 3, 7, 6, 0]], np.int32))[
    ...     subjects
    ... ].tolist()
    [[0, 1, 3]]
    >>> len(stream)
    0
    """

    stores = False

    def install(self, program: Program) -> int:
        """Add a program of one pattern."""
        refuse_joins(program)
        return super().install(program)

    def apply(self, changes: Ints) -> dict[int, Ints]:
        """Let changes `[tx, diff, s, p, o, g]` pass; per program, the batch they cause."""
        plan, marks = self._plan, np.zeros(2, np.int64)
        inserts = int(np.count_nonzero(changes[:, 1] > 0))
        self._counts[INSERTED] += inserts
        self._counts[DROPPED] += inserts
        self._counts[DELETED] += len(changes) - inserts
        arrays = plan.patterns, plan.programs, plan.seeds, plan.dispatch, plan.bind
        while not match_changes(*arrays, changes, self._out, marks):
            self._out = longer(self._out)
        n = int(marks[1])
        batches = self._split(self._out[:n]) if n else {}
        if len(self._out) > MOST_KEPT:
            self._out = np.empty((256, self._out.shape[1]), np.int32)
        return batches

    def evaluate(self, number: int) -> Ints:
        """Nothing, as long as nothing has passed."""
        refuse_looking(self._passed)
        return np.empty((0, 2 + self._programs[number].outputs), np.int32)

    def contains(self, quads: Ints) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """None, as long as nothing has passed."""
        refuse_looking(self._passed)
        return np.zeros(len(quads), np.bool_)

    def quads(self) -> Ints:
        """None, as long as nothing has passed."""
        refuse_looking(self._passed)
        return np.empty((0, 4), np.int32)

    @property
    def _passed(self) -> int:
        return int(self._counts[INSERTED] + self._counts[DELETED])
