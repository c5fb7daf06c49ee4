"""ORDER BY with LIMIT and OFFSET: the rows of a range of an order, maintained in a sorted list.

A row added before the end of the range pushes the last one out; a removed row pulls the next one
in. Either costs a look-up in the list.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from functools import total_ordering
from typing import TYPE_CHECKING, NamedTuple

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

ENTRY_BYTES = 400
"""Bytes of an entry, about."""


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


class RowRange(NamedTuple):
    """The rows of an order that are emitted: from `begin` on, up to `end` if there is one."""

    begin: int
    end: int | None

    def add(self, tx: int, order: SortedList, entry: Entry, out: list[Row]) -> None:
        """A row comes into the order; what that moves across the ends of the range."""
        order.add(entry)
        self._move(tx, 1, order, order.bisect_left(entry), out)

    def remove(self, tx: int, order: SortedList, entry: Entry, out: list[Row]) -> None:
        """A row leaves the order; what that moves across the ends of the range."""
        index = order.bisect_left(entry)
        self._move(tx, -1, order, index, out)
        del order[index]

    def _move(self, tx: int, sign: int, order: SortedList, index: int, out: list[Row]) -> None:
        """The row at this index is new, or the next to go."""
        begin, end = self
        if end is None or index < end:
            if index >= begin:
                out.append((tx, sign, *order[index][1]))
            elif len(order) > begin:
                out.append((tx, sign, *order[begin][1]))
            if end is not None and len(order) > end:
                out.append((tx, -sign, *order[end][1]))

    def rows(self, order: SortedList) -> list[Row]:
        """The rows of the range, from the first to the last."""
        return [row for _, row in order[self.begin : self.end]]


class RowKeys:
    """What the rows of a batch are sorted by: some columns, then the texts of all that is emitted.

    Of the columns to sort by, the first `skipped` are left out.
    """

    def __init__(self, node: TopK, terms: TermDictionary, skipped: int = 0) -> None:
        schema = node.child.schema
        self._terms = terms
        self._row = [VALUES + schema.index(v) if v in schema else -1 for v in node.schema]
        self._keys = sort_columns(node)[skipped:]
        self._values: IdCache[tuple[object, ...]] = IdCache(terms)

    def entry(self, line: list[int]) -> Entry:
        """The entry of a line of a batch."""
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

    def sort(self, entries: list[Entry]) -> None:
        """Sort entries, by one column after the other: a descending one by its plain values."""
        columns = len(self._keys)
        entries.sort(key=lambda entry: entry[0][columns:])
        for at in range(columns - 1, -1, -1):
            if self._keys[at][1]:
                entries.sort(key=lambda entry: entry[0][at].value, reverse=True)  # type: ignore[attr-defined]
            else:
                entries.sort(key=lambda entry: entry[0][at])  # type: ignore[arg-type, return-value]


def sort_columns(node: TopK) -> list[tuple[int, bool]]:
    """The columns of a batch to sort by, and whether in descending order."""
    schema = node.child.schema
    return [(VALUES + schema.index(k.var), k.descending) for k in node.keys if k.var in schema]


class TopRows:
    """The rows of each partition in order; the first of equal ones only, if they are distinct."""

    def __init__(self, node: TopK, terms: TermDictionary) -> None:
        self._keys = RowKeys(node, terms)
        self._per = [node.schema.index(v) for v in node.per]
        self._range = RowRange(
            node.offset, None if node.limit is None else node.offset + node.limit
        )
        self._distinct = node.distinct
        self._width = len(node.schema)
        self._lists: dict[Row, SortedList] = defaultdict(SortedList)
        self._equals: dict[Row, SortedList] = defaultdict(SortedList)

    def step(self, batch: Ints) -> Ints:
        """The rows that come into the range and leave it."""
        lines = consolidate(batch)
        if len(lines) and not self._lists and lines[0, TX] == lines[-1, TX]:
            self.load(lines)
            return make_batch([(lines[0, TX], 1, *row) for row in self.in_order()], self._width)
        out: list[Row] = []
        for line in lines.tolist():
            entry = self._keys.entry(line)
            for _ in range(abs(line[DIFF])):
                if self._distinct:
                    self._change_first(line[TX], entry, line[DIFF] > 0, out)
                else:
                    self._change(line[TX], entry, line[DIFF] > 0, out)
        return make_batch(out, self._width)

    def load(self, lines: Ints) -> None:
        """Begin with these rows: all are sorted at once."""
        entries = [
            entry
            for line in lines.tolist()
            for entry in itertools.repeat(self._keys.entry(line), max(line[DIFF], 0))
        ]
        self._keys.sort(entries)
        orders: dict[Row, list[Entry]] = defaultdict(list)
        for entry in entries:
            if self._distinct:
                self._equals[entry[1]].add(entry)
                if len(self._equals[entry[1]]) > 1:
                    continue
            orders[self._part(entry)].append(entry)
        for part, order in orders.items():
            self._lists[part] = SortedList(order)

    def _part(self, entry: Entry) -> Row:
        return tuple(entry[1][i] for i in self._per)

    def _change_first(self, tx: int, entry: Entry, comes: bool, out: list[Row]) -> None:  # noqa: FBT001
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

    def _change(self, tx: int, entry: Entry, comes: bool, out: list[Row]) -> None:  # noqa: FBT001
        """A row comes into the order of its partition or leaves it."""
        part = self._part(entry)
        order = self._lists[part]
        if comes:
            self._range.add(tx, order, entry, out)
        else:
            self._range.remove(tx, order, entry, out)
            if not order:
                del self._lists[part]

    def in_order(self) -> list[Row]:
        """The rows of the range now, from the first to the last; each partition by itself."""
        return [row for order in self._lists.values() for row in self._range.rows(order)]

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
        return self.sizes()["rows"] * ENTRY_BYTES
