"""QuadStream by definition: each change that a pattern matches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.kernel.batch import make_batch
from graphtide.kernel.program import refuse_joins, refuse_looking
from graphtide.kernel.twin.matching import unify
from graphtide.kernel.twin.quadstore import QuadStore

if TYPE_CHECKING:
    import numpy as np

    from graphtide.kernel.batch import Ints
    from graphtide.kernel.program import Program


class QuadStream(QuadStore):
    """The twin of `graphtide.kernel.quadstream.QuadStream`.

    >>> import numpy as np
    >>> from graphtide.kernel.program import Program
    >>> stream = QuadStream()
    >>> subjects = stream.install(Program(((-1, 7, 5, 0),), outputs=1))
    >>> stream.apply(np.array([[0, 1, 3, 7, 5, 0]], np.int32))[subjects].tolist()
    [[0, 1, 3]]
    """

    stores = False

    def install(self, program: Program) -> int:
        """Add a program of one pattern."""
        refuse_joins(program)
        return super().install(program)

    def apply(self, changes: Ints) -> dict[int, Ints]:
        """Let changes `[tx, diff, s, p, o, g]` pass; per program, the batch they cause."""
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
        """Nothing, as long as nothing has passed."""
        refuse_looking(self._passed)
        return super().evaluate(number)

    def contains(self, quads: Ints) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """None, as long as nothing has passed."""
        refuse_looking(self._passed)
        return super().contains(quads)

    def quads(self) -> Ints:
        """None, as long as nothing has passed."""
        refuse_looking(self._passed)
        return super().quads()

    @property
    def _passed(self) -> int:
        return self._counts["inserted"] + self._counts["deleted"]
