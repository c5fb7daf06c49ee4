"""Joins by definition: all pairs of rows that agree; left rows with or without a partner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.kernel.twin.recomputed import Bag, Recomputed, Row, add

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.kernel.batch import Ints

Pairs = tuple[tuple[int, int], ...]


class JoinKernel(Recomputed):
    """The twin of `graphtide.kernel.joins.JoinKernel`, with the same arguments.

    >>> from graphtide.kernel.batch import make_batch
    >>> join = JoinKernel(2, 2, keys=[(1, 0)], outputs=[(0, -1), (1, 0), (-1, 1)])
    >>> join.step(make_batch([(0, 1, 5, 6)], 2), make_batch([(1, 1, 6, 7)], 2)).tolist()
    [[1, 1, 5, 6, 7]]
    """

    def __init__(
        self,
        left_width: int,  # noqa: ARG002 - rows know their width
        right_width: int,  # noqa: ARG002
        *,
        keys: Sequence[tuple[int, int]],
        outputs: Sequence[tuple[int, int]],
        loose: Sequence[tuple[int, int]] = (),
        overlap: Sequence[tuple[int, int]] = (),
    ) -> None:
        super().__init__(2, len(outputs))
        self._keys: Pairs = tuple(keys)
        self._outputs: Pairs = tuple(outputs)
        self._loose: Pairs = tuple(loose)
        self._overlap: Pairs = tuple(overlap)

    def answer(self) -> Bag:
        """The joined rows of all pairs that agree; counts multiply."""
        left, right = self._inputs
        partners: dict[Row, list[Row]] = {}
        for row in right:
            partners.setdefault(tuple(row[b] for _, b in self._keys), []).append(row)
        out: Bag = {}
        for l in left:
            for r in partners.get(tuple(l[a] for a, _ in self._keys), ()):
                if self._agree(l, r):
                    add(out, self._combine(l, r), left[l] * right[r])
        return out

    def _agree(self, l: Row, r: Row) -> bool:
        """Equal where both are bound and, if asked for, both bound somewhere."""
        return all(l[a] == r[b] or 0 in (l[a], r[b]) for a, b in self._loose) and (
            not self._overlap or any(l[a] != 0 and r[b] != 0 for a, b in self._overlap)
        )

    def _combine(self, l: Row, r: Row) -> Row:
        """For each output column, the value of the side that has one."""
        sources = [(l[a] if a >= 0 else 0, r[b] if b >= 0 else 0) for a, b in self._outputs]
        return tuple(a or b for a, b in sources)

    def step(self, left: Ints, right: Ints) -> Ints:
        """The change of the join for changes of its inputs."""
        return self._advance(left, right)

    def sizes(self) -> dict[str, int]:
        """Rows held on each side."""
        return {"left": len(self._inputs[0]), "right": len(self._inputs[1])}


class SemiJoinKernel(Recomputed):
    """The twin of `graphtide.kernel.joins.SemiJoinKernel`.

    >>> from graphtide.kernel.batch import make_batch
    >>> antijoin = SemiJoinKernel(2, columns=[1], negated=True)
    >>> left, right = make_batch([(0, 1, 5, 6)], 2), make_batch([(1, 1, 6), (2, -1, 6)], 1)
    >>> antijoin.step(left, right).tolist()
    [[0, 1, 5, 6], [1, -1, 5, 6], [2, 1, 5, 6]]
    """

    def __init__(self, width: int, *, columns: Sequence[int], negated: bool) -> None:
        super().__init__(2, width)
        self._columns = tuple(columns)
        self._negated = negated

    def answer(self) -> Bag:
        """The left rows that pass, with their counts."""
        left, right = self._inputs
        there = {key for key, count in right.items() if count > 0}
        return {
            row: count
            for row, count in left.items()
            if (tuple(row[k] for k in self._columns) in there) != self._negated
        }

    def step(self, left: Ints, right: Ints) -> Ints:
        """The change of the answer for changes of its inputs; right rows are keys."""
        return self._advance(left, right)

    def sizes(self) -> dict[str, int]:
        """Rows held on the left, keys held on the right."""
        return {"left": len(self._inputs[0]), "right": len(self._inputs[1])}
