"""GROUP BY: one row per group, and the states of its aggregates.

d(group): for each transaction and each group it touches, the old row is removed, the new one added.
An aggregate state takes values that come (a positive count) and go (a negative one), by id, and
gives the aggregate of what is left. Id 0 is an error: a value that could not be computed.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from itertools import groupby
from math import inf, isfinite, isnan
from operator import itemgetter
from typing import TYPE_CHECKING, Protocol

import numpy as np
from sortedcontainers import SortedList

from graphtide.engine.dataflow.concat import ConcatState
from graphtide.engine.dataflow.conditions import intern_value
from graphtide.errors import ExpressionError
from graphtide.functions.arithmetic import op_divide
from graphtide.functions.comparison import total_order
from graphtide.functions.numbers import EXACT, Number, NumericType, decimal, double, integer, single
from graphtide.functions.values import integer_term, number_of, to_term
from graphtide.kernel.batch import DIFF, TX, VALUES, Ints, Longs, make_batch
from graphtide.rdf.holders import flat_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from graphtide.algebra.nodes import Aggregate
    from graphtide.plan.physical import GroupBy
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.terms import Term


class AggregateState(Protocol):
    """One aggregate of one group."""

    def add(self, value: int, count: int) -> None:
        """So many more of a value, or fewer."""

    def result(self) -> Term:
        """The aggregate now; raises `ExpressionError` where it has none."""

    def held(self) -> Iterable[int]:
        """The ids of the values that it stores."""


def make_state(aggregate: Aggregate, terms: TermDictionary) -> AggregateState:
    """A fresh state for an aggregate."""
    state: AggregateState
    match aggregate.function:
        case "COUNT":
            state = CountState(rows=aggregate.argument is None)
        case "SUM" | "AVG":
            state = SumState(terms, mean=aggregate.function == "AVG")
        case "MIN" | "SAMPLE":
            state = ExtremeState(terms, at=0, errors_count=aggregate.function == "MIN")
        case "MAX":
            state = ExtremeState(terms, at=-1, errors_count=True)
        case _:
            state = ConcatState(terms, aggregate.separator)
    return DistinctState(state) if aggregate.distinct else state


class DistinctState:
    """Forwards each distinct value: its first copy, and the removal of its last."""

    def __init__(self, inner: AggregateState) -> None:
        self._inner = inner
        self._counts: Counter[int] = Counter()

    def add(self, value: int, count: int) -> None:
        """Update the inner state where a value's count leaves zero or returns to it."""
        before = self._counts[value]
        self._counts[value] = after = before + count
        if after == 0:
            del self._counts[value]
        turned = (after > 0) - (before > 0)
        if turned:
            self._inner.add(value, turned)

    def result(self) -> Term:
        """The aggregate of the different values."""
        return self._inner.result()

    def held(self) -> Iterable[int]:
        """The different values."""
        return self._counts


class CountState:
    """How many values there are; errors do not count, unless rows are counted as they are."""

    def __init__(self, *, rows: bool) -> None:
        self._rows = rows
        self._count = 0

    def add(self, value: int, count: int) -> None:
        """More or fewer values."""
        if value or self._rows:
            self._count += count

    def result(self) -> Term:
        """The count; redundant changes of a graph that stores no quads cannot make it negative."""
        return integer_term(max(self._count, 0))

    def held(self) -> Iterable[int]:
        """None: it counts."""
        return ()

    def adopt(self, _total: int, count: int, _bad: int) -> None:
        """Begin with what was counted elsewhere."""
        self._count = count


def number_totals(terms: TermDictionary, value: int) -> dict[object, int | Fraction]:
    """What a value adds to the totals of a sum, which can be added and multiplied exactly."""
    try:
        number = number_of(terms.decode(value)) if value else None
    except ExpressionError:
        number = None
    if number is None:
        return {"bad": 1}
    totals: dict[object, int | Fraction] = {number.type: 1}
    match number.value:
        case int() as whole if whole:
            totals["integers"] = whole
        case Decimal() as exact if exact:
            totals["decimals"] = Fraction(exact)
        case float() as endless if not isfinite(endless):
            totals["nan" if isnan(endless) else str(endless)] = 1
        case float() as finite if finite:
            totals["floats"] = Fraction(finite)
    return totals


class SumState:
    """An exact sum, rounded once when asked for, so that a removed value leaves no error behind."""

    def __init__(self, terms: TermDictionary, *, mean: bool) -> None:
        self._terms = terms
        self._mean = mean
        self._bad = 0
        self._types: Counter[NumericType] = Counter()
        self._integers = 0
        self._decimals = Decimal(0)
        self._floats = Fraction(0)
        self._endless: Counter[str] = Counter()

    def add(self, value: int, count: int) -> None:
        """More or fewer of a number."""
        try:
            number = number_of(self._terms.decode(value)) if value else None
        except ExpressionError:
            number = None
        if number is None:
            self._bad += count
            return
        self._types[number.type] += count
        match number.value:
            case int() as whole:
                self._integers += whole * count
            case Decimal() as exact:
                self._decimals = EXACT.add(self._decimals, EXACT.multiply(exact, Decimal(count)))
            case finite if isfinite(finite):
                self._floats += Fraction(finite) * count
            case endless:
                self._endless["nan" if isnan(endless) else str(endless)] += count

    def result(self) -> Term:
        """The sum, or the mean."""
        if self._bad:
            raise ExpressionError("a value is not a number")
        total = to_term(self._total())
        count = self._types.total()
        return op_divide(total, integer_term(count)) if self._mean and count else total

    def held(self) -> Iterable[int]:
        """None: it sums."""
        return ()

    def adopt(self, total: int, count: int, bad: int) -> None:
        """Begin with so many integers, and values that are no numbers."""
        self._integers, self._types[NumericType.INTEGER], self._bad = total, count, bad

    def adopt_totals(self, totals: Mapping[object, int | Fraction]) -> None:
        """Begin with sums of `number_totals`."""
        self._bad = int(totals.get("bad", 0))
        self._types.update({t: int(totals[t]) for t in NumericType if t in totals})
        self._integers = int(totals.get("integers", 0))
        self._decimals = as_decimal(Fraction(totals.get("decimals", 0)))
        self._floats = Fraction(totals.get("floats", 0))
        endless = ("nan", "inf", "-inf")
        self._endless.update({name: int(totals[name]) for name in endless if name in totals})

    def _total(self) -> Number:
        kind = max((t for t, n in self._types.items() if n), default=NumericType.INTEGER)
        if kind is NumericType.INTEGER:
            return integer(self._integers)
        if kind is NumericType.DECIMAL:
            return decimal(EXACT.add(self._decimals, Decimal(self._integers)))
        rounded = self._rounded()
        return single(rounded) if kind is NumericType.FLOAT else double(rounded)

    def _rounded(self) -> float:
        endless = [float(value) for value, count in self._endless.items() if count]
        if endless:
            return sum(endless)
        exact = self._floats + Fraction(self._decimals) + self._integers
        try:
            return float(exact)
        except OverflowError:
            return inf if exact > 0 else -inf


def as_decimal(exact: Fraction) -> Decimal:
    """A fraction that is a sum of decimals, as a decimal.

    >>> as_decimal(Fraction("-0.125") * 7)
    Decimal('-0.875')
    """
    digits = exact.denominator.bit_length() - 1  # of 2^a 5^b, at least as many as a and b
    return Decimal(exact.numerator * 10**digits // exact.denominator).scaleb(-digits, EXACT)


class OrderedState:
    """The different values in their total order, with their counts; errors apart."""

    def __init__(self, terms: TermDictionary) -> None:
        self._terms = terms
        self.errors = 0
        self.counts: Counter[int] = Counter()
        self.order = SortedList()

    def add(self, value: int, count: int) -> None:
        """More or fewer of a value."""
        if not value:
            self.errors += count
            return
        before = self.counts[value]
        self.counts[value] = before + count
        if before == 0:
            self.order.add(self._entry(value))
        elif before + count == 0:
            self.order.remove(self._entry(value))
            del self.counts[value]

    def _entry(self, value: int) -> tuple[object, int]:
        return total_order(self._terms.decode(value)), value

    def held(self) -> Iterable[int]:
        """The different values."""
        return self.counts

    def term(self, at: int) -> Term:
        """The value at an index of the order."""
        return self._terms.decode(self.order[at][1])


class ExtremeState(OrderedState):
    """The first or the last value; the next one is known when it goes."""

    def __init__(self, terms: TermDictionary, *, at: int, errors_count: bool) -> None:
        super().__init__(terms)
        self._at = at
        self._errors_count = errors_count

    def result(self) -> Term:
        """The value at the end of the order that was asked for."""
        if not self.order or (self.errors and self._errors_count):
            raise ExpressionError("there are no values, or one has an error")
        return self.term(self._at)


Key = tuple[int, ...]
Change = tuple[int, int, Key, Key]
"""Transaction, diff, the values of the keys, and the arguments of the aggregates."""


class GroupState:
    """The aggregate states of a group, and the row last emitted for it."""

    __slots__ = ("row", "rows", "states")

    def __init__(self, states: list[AggregateState]) -> None:
        self.states = states
        self.rows = 0
        self.row: Key | None = None


class RowNumbers:
    """A number for each different whole row: what COUNT(DISTINCT *) counts.

    >>> rows, batch = RowNumbers(), make_batch([(0, 1, 7), (0, 1, 8), (0, 1, 7)], 1)
    >>> rows.numbers(batch)
    [1, 2, 1]
    """

    def __init__(self) -> None:
        self._numbers: dict[Key, int] = {}
        self._counts: Counter[Key] = Counter()
        self._free: list[int] = []
        self._absent: set[Key] = set()

    def __len__(self) -> int:
        return len(self._numbers)

    def numbers(self, batch: Ints) -> list[int]:
        """The number of each row; rows are counted as they come and go."""
        found: list[int] = []
        for diff, *values in batch[:, DIFF:].tolist():
            row = tuple(values)
            number = self._numbers.get(row)
            if number is None:
                number = self._free.pop() if self._free else len(self._numbers) + 1
                self._numbers[row] = number
            self._counts[row] += diff
            if not self._counts[row]:
                self._absent.add(row)
            found.append(number)
        return found

    def drop_absent(self) -> None:
        """Let other rows have the numbers of rows that are gone."""
        for row in self._absent:
            if not self._counts[row]:
                del self._counts[row]
                self._free.append(self._numbers.pop(row))
        self._absent.clear()

    def held_ids(self) -> Iterator[Longs]:
        """The ids of all rows."""
        yield flat_ids(self._numbers)


Adopted = tuple[int, int, int, list[tuple[int, int]]]
"""Of an aggregate: its sum, the number of its values and of those that have none; and the values
with their numbers, if they are needed."""


class GroupRows:
    """All groups that have rows; without keys, the one group, even of no rows."""

    def __init__(self, node: GroupBy, terms: TermDictionary) -> None:
        schema = node.child.schema
        self._terms = terms
        self._aggregates = node.aggregates
        self._keys = [VALUES + schema.index(v) for v in node.keys]
        self._whole = [i for i, a in enumerate(node.aggregates) if a.argument is None]
        self._arguments = [
            VALUES + schema.index(a.argument) if a.argument in schema else -1
            for a in node.aggregates
        ]
        self._width = len(node.schema)
        self._rows = RowNumbers()
        self._groups: dict[Key, GroupState] = {}
        self._first = not node.keys

    def step(self, batch: Ints) -> Ints:
        """The changed rows of the groups."""
        out: list[tuple[int, ...]] = []
        if self._first:
            self._first = False
            self._emit(0, (), self._group(()), out)
        for tx, changes in groupby(self._changes(batch), itemgetter(0)):
            touched: dict[Key, GroupState] = {}
            for _, diff, key, values in changes:
                group = touched[key] = self._group(key)
                group.rows += diff
                for state, value in zip(group.states, values, strict=True):
                    state.add(value, diff)
            for key, group in touched.items():
                self._emit(tx, key, group, out)
        self._rows.drop_absent()
        return make_batch(out, self._width)

    def adopt(self, key: Key, rows: int, parts: Iterable[Adopted], row: Key | None) -> None:
        """Begin with a group that was kept elsewhere, and its last row."""
        self._first = False
        group = self._group(key)
        group.rows, group.row = rows, row
        for state, (total, count, bad, values) in zip(group.states, parts, strict=True):
            if isinstance(state, CountState | SumState):
                state.adopt(total, count, bad)
            else:
                for value, times in (*values, (0, bad)):
                    if times:
                        state.add(value, times)

    def _changes(self, batch: Ints) -> list[Change]:
        """Equal changes of a transaction as one, so that a bulk load costs little per row."""
        values = np.zeros((len(batch), len(self._arguments)), np.int32)
        for i, at in enumerate(self._arguments):
            if at >= 0:
                values[:, i] = batch[:, at]
        distinct = any(self._aggregates[i].distinct for i in self._whole)
        numbers = self._rows.numbers(batch) if distinct else []
        for i in self._whole:
            values[:, i] = numbers if self._aggregates[i].distinct else 0
        lines = np.column_stack([batch[:, TX], batch[:, self._keys], values])
        if len(lines) > 1:
            lines, inverse = np.unique(lines, axis=0, return_inverse=True)
            diffs = np.bincount(inverse.reshape(-1), batch[:, DIFF]).astype(np.int64)
        else:
            diffs = batch[:, DIFF].astype(np.int64)
        keys = 1 + len(self._keys)
        return [
            (line[0], diff, tuple(line[1:keys]), tuple(line[keys:]))
            for line, diff in zip(lines.tolist(), diffs.tolist(), strict=True)
            if diff
        ]

    def _group(self, key: Key) -> GroupState:
        group = self._groups.get(key)
        if group is None:
            group = GroupState([make_state(a, self._terms) for a in self._aggregates])
            self._groups[key] = group
        return group

    def _emit(self, tx: int, key: Key, group: GroupState, out: list[tuple[int, ...]]) -> None:
        """Replace a group's row by what it is now; a group without rows has none."""
        there = group.rows > 0 or not self._keys
        row = (*key, *map(self._value, group.states)) if there else None
        if row != group.row:
            if group.row is not None:
                out.append((tx, -1, *group.row))
            if row is not None:
                out.append((tx, 1, *row))
            group.row = row
        if not there:
            del self._groups[key]

    def _value(self, state: AggregateState) -> int:
        try:
            return intern_value(self._terms, state.result())
        except ExpressionError:
            return 0

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The keys and rows of all groups, the values in their states, and numbered rows."""
        yield from self._rows.held_ids()
        # The values of COUNT(DISTINCT *) are numbers of rows: they retain a few terms too many.
        yield flat_ids(
            part
            for key, group in self._groups.items()
            for part in (key, group.row or (), *(state.held() for state in group.states))
        )

    def sizes(self) -> dict[str, int]:
        """Groups held."""
        return {"groups": len(self._groups)}

    @property
    def nbytes(self) -> int:
        """Bytes held, about: a group and its states are Python objects."""
        return len(self._groups) * 600 + len(self._rows) * 250
