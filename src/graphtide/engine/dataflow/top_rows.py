"""ORDER BY with LIMIT and OFFSET: the rows of a range of an order, maintained in a sorted list.

A row added before the end of the range pushes the last one out; a removed row pulls the next one
in. Either costs a look-up in the list.
"""

from __future__ import annotations

from collections import defaultdict
from functools import total_ordering
from typing import TYPE_CHECKING

from sortedcontainers import SortedList

from graphtide.functions.comparison import order_value
from graphtide.kernel.batch import DIFF, TX, VALUES, Ints, Longs, make_batch
from graphtide.kernel.counts import consolidate
from graphtide.rdf.holders import IdCache, flat_ids

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.plan.physical import TopK
    from graphtide.rdf.dictionary import TermDictionary

Row = tuple[int, ...]
Entry = tuple[tuple[object, ...], Row]
"""What a row is sorted by, and the row as it is emitted."""


@total_ordering
class Descending:
    """A value whose order is turned around."""

    __slots__ = ("value",)

    def __init__(self, value: tuple[object, ...]) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and self.value == other.value

    def __lt__(self, other: Descending) -> bool:
        return other.value < self.value

    def __hash__(self) -> int:
        return hash(self.value)


class TopRows:
    """The rows of each partition in order; the first of equal ones only, if they are distinct."""

    def __init__(self, node: TopK, terms: TermDictionary) -> None:
        schema = node.child.schema
        self._terms = terms
        self._row = [VALUES + schema.index(v) if v in schema else -1 for v in node.schema]
        self._keys = [
            (VALUES + schema.index(k.var), k.descending) for k in node.keys if k.var in schema
        ]
        self._per = [node.schema.index(v) for v in node.per]
        self._begin = node.offset
        self._end = None if node.limit is None else node.offset + node.limit
        self._distinct = node.distinct
        self._width = len(node.schema)
        self._lists: dict[Row, SortedList] = defaultdict(SortedList)
        self._equals: dict[Row, SortedList] = defaultdict(SortedList)
        self._values: IdCache[tuple[object, ...]] = IdCache(terms)

    def step(self, batch: Ints) -> Ints:
        """The rows that come into the range and leave it."""
        out: list[tuple[int, ...]] = []
        for line in consolidate(batch).tolist():
            entry = self._entry(line)
            for _ in range(abs(line[DIFF])):
                if self._distinct:
                    self._change_first(line[TX], entry, line[DIFF] > 0, out)
                else:
                    self._change(line[TX], entry, line[DIFF] > 0, out)
        return make_batch(out, self._width)

    def _entry(self, line: list[int]) -> Entry:
        row = tuple(line[at] if at >= 0 else 0 for at in self._row)
        keys = [
            Descending(self._value(line[at])) if descending else self._value(line[at])
            for at, descending in self._keys
        ]
        texts = (self._terms.text(i) if i else "" for i in row)
        return (*keys, *texts), row

    def _value(self, term: int) -> tuple[object, ...]:
        known = self._values.current()
        found = known.get((term,))
        if found is None:
            found = known[term,] = order_value(self._terms.decode(term) if term else None)
        return found

    def _change_first(self, tx: int, entry: Entry, comes: bool, out: list[tuple[int, ...]]) -> None:  # noqa: FBT001
        """One of several equal rows comes or goes: only the first of them is in the order."""
        equals = self._equals[entry[1]]
        before = equals[0] if equals else None
        equals.add(entry) if comes else equals.remove(entry)
        after = equals[0] if equals else None
        if not equals:
            del self._equals[entry[1]]
        if before == after:
            return
        if before is not None:
            self._change(tx, before, False, out)
        if after is not None:
            self._change(tx, after, True, out)

    def _change(self, tx: int, entry: Entry, comes: bool, out: list[tuple[int, ...]]) -> None:  # noqa: FBT001
        """A row comes into the order or leaves it; what that moves across the ends of the range."""
        key = tuple(entry[1][i] for i in self._per)
        order = self._lists[key]
        sign = 1 if comes else -1
        if comes:
            order.add(entry)
        index = order.bisect_left(entry)
        begin, end = self._begin, self._end
        if end is None or index < end:
            if index >= begin:
                out.append((tx, sign, *entry[1]))
            elif len(order) > begin:
                out.append((tx, sign, *order[begin][1]))
            if end is not None and len(order) > end:
                out.append((tx, -sign, *order[end][1]))
        if not comes:
            del order[index]
            if not order:
                del self._lists[key]

    def in_order(self) -> list[Row]:
        """The rows of the range now, from the first to the last; each partition by itself."""
        ranges = (order[self._begin : self._end] for order in self._lists.values())
        return [row for part in ranges for _, row in part]

    def held_ids(self) -> Iterator[Longs]:
        """The ids of all rows; what they are sorted by are terms."""
        orders = (*self._lists.values(), *self._equals.values())
        yield flat_ids(row for order in orders for _, row in order)

    def sizes(self) -> dict[str, int]:
        """Rows held."""
        return {"rows": sum(map(len, self._lists.values()))}

    @property
    def nbytes(self) -> int:
        """Bytes held, about: rows and their keys are Python objects."""
        return self.sizes()["rows"] * 400
