"""Range join: rows by an order of one of their values, compared with a bound that moves.

The left rows of a key are sorted by a number. Where the bound of the key changes, the rows between
the old bound and the new one come or go. Exact numbers (integers and decimals) and doubles are
sorted apart: between the two, a comparison rounds, and need not agree with any order. What is in
neither order is compared row by row.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from math import inf, isnan
from typing import TYPE_CHECKING, Any

from sortedcontainers import SortedList

from graphtide.errors import ExpressionError
from graphtide.functions.comparison import compare
from graphtide.functions.numbers import Number, NumericType
from graphtide.functions.values import value_of
from graphtide.kernel.batch import DIFF, TX, VALUES, Ints, Longs, make_batch
from graphtide.limits import allowance
from graphtide.rdf.holders import flat_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graphtide.plan.physical import RangeJoin
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.terms import Term

Row = tuple[int, ...]
Changes = dict[int, list[tuple[Row, Row, int]]]
"""By transaction: the key of a row, the row, and its diff."""

TESTS: dict[str, Callable[[int], bool]] = {
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}

EXACT, DOUBLE, OTHER = "exact", "double", "other"
LAST = (inf,)
"""After every row."""


def sorted_value(term: Term) -> tuple[str, Any]:
    """In which order a term is, and its value there."""
    value = value_of(term)
    if isinstance(value, Number):
        if value.type in (NumericType.INTEGER, NumericType.DECIMAL):
            return EXACT, value.value
        if value.type is NumericType.DOUBLE and not isnan(value.value):
            return DOUBLE, value.value
    return OTHER, None


class KeyRows:
    """The left rows of a key with their counts, in order, and the bounds that they meet."""

    __slots__ = ("bounds", "counts", "orders")

    def __init__(self) -> None:
        self.counts: Counter[Row] = Counter()
        self.orders: dict[str, Any] = {EXACT: SortedList(), DOUBLE: SortedList(), OTHER: {}}
        self.bounds: Counter[int] = Counter()


class RangeRows:
    """The left rows that satisfy a comparison with a bound, as often as there are such bounds."""

    def __init__(self, node: RangeJoin, terms: TermDictionary) -> None:
        self._terms = terms
        left, right = node.left.schema, node.right.schema
        self._left_key = [left.index(v) for v in node.keys]
        self._right_key = [right.index(v) for v in node.keys]
        self._value, self._bound = left.index(node.value), right.index(node.bound)
        self._test = TESTS[node.operator]
        self._at_end = node.operator in (">", "<=")  # rows at a bound are with those below it
        self._above = node.operator in (">", ">=")
        self._width = len(left)
        self._keys: defaultdict[Row, KeyRows] = defaultdict(KeyRows)

    def step(self, left: Ints, right: Ints) -> Ints:
        """The changed rows: of changed left rows by the bounds there are, then of new bounds."""
        out: list[tuple[int, ...]] = []
        rows, bounds = _changes(left, self._left_key), _changes(right, self._right_key)
        for tx in sorted(rows.keys() | bounds.keys()):
            for key, row, diff in rows.get(tx, ()):
                self._change_row(tx, key, row, diff, out)
            moved: dict[Row, Counter[int]] = {}
            for key, row, diff in bounds.get(tx, ()):
                moved.setdefault(key, Counter())[row[self._bound]] += diff
            for key, changes in moved.items():
                self._move(tx, self._keys[key], changes, out)
                self._drop_empty(key)
        return make_batch(out, self._width)

    def _change_row(
        self, tx: int, key: Row, row: Row, diff: int, out: list[tuple[int, ...]]
    ) -> None:
        here = self._keys[key]
        times = sum(n for bound, n in here.bounds.items() if self._holds(row, bound))
        if times:
            out.append((tx, diff * times, *row))
        kind, number = self._sorted(row[self._value])
        order, before = here.orders[kind], here.counts[row]
        here.counts[row] = before + diff
        if before == 0:
            order.update({row: None}) if kind == OTHER else order.add((number, row))
        elif before + diff == 0:
            del here.counts[row]
            order.pop(row) if kind == OTHER else order.remove((number, row))
            self._drop_empty(key)

    def _move(
        self, tx: int, here: KeyRows, changes: Counter[int], out: list[tuple[int, ...]]
    ) -> None:
        """Bounds of a key come and go: the rows for which that makes a difference."""
        moved = [(bound, diff, *self._sorted(bound)) for bound, diff in changes.items() if diff]
        for bound, diff, *_ in moved:
            here.bounds[bound] += diff
            if not here.bounds[bound]:
                del here.bounds[bound]
        found: Counter[Row] = Counter()
        for kind, order in here.orders.items():
            own = [each for each in moved if each[2] == kind != OTHER]
            self._between(order, sorted((number, diff) for _, diff, _, number in own), found)
            rest = [(bound, diff) for bound, diff, other, _ in moved if other != kind or not own]
            for each in order if rest else ():
                row = each if kind == OTHER else each[1]
                found[row] += sum(diff for bound, diff in rest if self._holds(row, bound))
        if len(found) > LARGE:
            allowance().allow(len(found) * ROW_BYTES)
        out.extend((tx, diff * here.counts[row], *row) for row, diff in found.items() if diff)

    def _between(self, order: SortedList, cuts: list[tuple[Any, int]], found: Counter[Row]) -> None:
        """The rows of an order that other bounds hold for than before, and how many more."""
        total = sum(diff for _, diff in cuts)
        below, begin = 0, 0  # the diffs of the bounds that are below, and where these rows begin
        for number, diff in (*cuts, (None, 0)):
            end = len(order)
            if number is not None:
                end = order.bisect_left((number, LAST) if self._at_end else (number,))
            times = below if self._above else total - below
            if times:
                for _, row in order.islice(begin, end):
                    found[row] += times
            below, begin = below + diff, end

    def _sorted(self, value: int) -> tuple[str, Any]:
        return sorted_value(self._terms.decode(value)) if value else (OTHER, None)

    def _holds(self, row: Row, bound: int) -> bool:
        value = row[self._value]
        if not value or not bound:
            return False
        try:
            return self._test(compare(self._terms.decode(value), self._terms.decode(bound)))
        except ExpressionError:
            return False

    def _drop_empty(self, key: Row) -> None:
        here = self._keys[key]
        if not here.counts and not here.bounds:
            del self._keys[key]

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The ids of all rows, of keys and of bounds."""
        yield flat_ids(self._keys)
        for here in self._keys.values():
            yield flat_ids(here.counts)
            yield flat_ids([here.bounds])

    def sizes(self) -> dict[str, int]:
        """Rows in order, and bounds."""
        every = self._keys.values()
        return {
            "rows": sum(len(here.counts) for here in every),
            "bounds": sum(len(here.bounds) for here in every),
        }

    @property
    def nbytes(self) -> int:
        """Bytes held, about: rows and their numbers are Python objects."""
        return self.sizes()["rows"] * ROW_BYTES


LARGE, ROW_BYTES = 1000, 400
"""Rows at once that are counted against the limits, and the bytes of each, about."""


def _changes(batch: Ints, key: list[int]) -> Changes:
    found: Changes = {}
    for line in batch.tolist():
        row = tuple(line[VALUES:])
        found.setdefault(line[TX], []).append((tuple(row[i] for i in key), row, line[DIFF]))
    return found
