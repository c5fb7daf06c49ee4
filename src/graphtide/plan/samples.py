"""Samples of the values of columns: how many values two columns have in common.

A value is sampled by its hash: the same values in every column that has them, so the values that
two samples share are a sample of what the columns share. With each level half as many are sampled
(a theta sketch) [Dasgupta, Lang, Rhodes, Thaler: A Framework for Estimating Stream Expression
Cardinalities, ICDT 2016].
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from graphtide.kernel.values import MAX_SAMPLED

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from graphtide.kernel.batch import Ints

MOST_MET = 64
"""Columns that a sample remembers what it has in common with."""

NONE_FOUND = 0.5
"""What an empty sample stands for: a value may have been missed, or may come."""


@dataclass(frozen=True, slots=True)
class ValueSample:
    """Those values of a column whose hashes end with so many zeros, as ids.

    `most` is a number that the different values do not exceed.
    """

    ids: frozenset[int]
    level: int
    most: float
    _met: dict[int, tuple[ValueSample, Overlap]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @property
    def size(self) -> float:
        """The expected number of different values.

        >>> ValueSample(frozenset({3, 9, 12}), level=4, most=100).size
        48
        """
        return min(max(len(self.ids), NONE_FOUND) * (1 << self.level), self.most)

    def meets(self, other: ValueSample) -> Overlap:
        """What two columns have in common; plans that are compared ask for it again and again.

        >>> users = ValueSample(frozenset(range(100)), 0, 100)
        >>> with_a_home_page = ValueSample(frozenset(range(90, 140)), 0, 50)
        >>> users.meets(with_a_home_page).drawn  # of 100 * 50 pairs, 10 agree
        500.0
        """
        known = self._met.get(id(other))
        if known is None:
            if len(self._met) >= MOST_MET:
                self._met.clear()
            both = self.shared(other)
            overlap = Overlap(max(self.size * other.size / both.size, 1.0), both)
            known = self._met[id(other)] = other, overlap  # held, so that its id is not used again
        return known[1]

    def shared(self, other: ValueSample) -> ValueSample:
        """The values that are in both columns.

        >>> few = ValueSample(frozenset({3, 9, 12}), level=0, most=3)
        >>> few.shared(ValueSample(frozenset({9, 40, 66}), level=4, most=50)).size
        3
        """
        level, most = max(self.level, other.level), min(self.most, other.most)
        return ValueSample(self.ids & other.ids, level, most)

    def spread(self, rows: float, beside: int, values: Iterable[Hashable]) -> dict[Hashable, float]:
        """Rows of single values, if rows are spread over all beside some.

        Only of values that are known to be in the column, or not to be.

        >>> ValueSample(frozenset({3, 9, 12}), level=0, most=3).spread(10.0, 1, [9, 40])
        {9: 5.0, 40: 0.0}
        """
        each = rows / max(self.size - beside, 1.0)
        known = values if self.level == 0 else self.ids.intersection(values)
        return {value: each if value in self.ids else 0.0 for value in known}


class Overlap(NamedTuple):
    """Among how many values those of two columns are drawn, and a sample of those in both.

    Pairs of rows that agree are one in so many.
    """

    drawn: float
    both: ValueSample


@dataclass(frozen=True, eq=False)
class StoredSample:
    """The sample of a column with so many different values, among rows `[owner, id]` of several.

    Rows are in the order of owners.
    """

    rows: Ints
    owner: int
    distinct: int

    @cached_property
    def loaded(self) -> ValueSample:
        """The sample as a set.

        >>> import numpy as np
        >>> rows = np.array([[7, 1], [7, 3], [8, 2]])
        >>> sorted(StoredSample(rows, 7, 2).loaded.ids)
        [1, 3]
        >>> [StoredSample(rows, 7, n).loaded.level for n in (256, 257, 513, 514)]
        [0, 1, 1, 2]
        """
        level = (self.distinct // (MAX_SAMPLED + 1)).bit_length()
        owners: Any = self.rows[:, 0]
        own = slice(bisect_left(owners, self.owner), bisect_right(owners, self.owner))
        return ValueSample(frozenset(self.rows[own, 1].tolist()), level, float(self.distinct))
