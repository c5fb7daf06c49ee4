"""GROUP BY in the kernel: COUNT, SUM and AVG of integers, MIN and MAX of numbers or moments.

The states of `aggregates` take over, for good, when a value comes that the kernel cannot add up or
order, or a sum might exceed 62 bits. Until then, only the rows that are put out become literals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.engine.dataflow.aggregates import Adopted, GroupRows
from graphtide.kernel import JIT
from graphtide.kernel import groups as table
from graphtide.kernel.batch import DIFF, VALUES, Ints, Longs
from graphtide.kernel.counts import DistinctKernel
from graphtide.rdf import kinds
from graphtide.rdf.term_tables import resized

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from graphtide.algebra.nodes import Aggregate
    from graphtide.engine.dataflow.operators import Operator
    from graphtide.plan.physical import GroupBy
    from graphtide.rdf.dictionary import TermDictionary

NO_IDS = np.zeros(0, np.int32)

MOST_ORDERED = 24
"""Columns of ordered values for which there are bits."""

EXTREMES = {"MIN": table.LEAST, "SAMPLE": table.LEAST, "MAX": table.GREATEST}


def make_groups(node: GroupBy, terms: TermDictionary) -> Operator:
    """The operator of a node: in the kernel, if its aggregates can be maintained there."""
    plain = JIT and None not in map(_mode, node.aggregates)
    plain = plain and len({a.argument for a in node.aggregates}) <= MOST_ORDERED
    return SummedGroups(node, terms) if plain else GroupRows(node, terms)


def _mode(aggregate: Aggregate) -> int | None:
    """What the kernel counts for an aggregate; None if it has to be done otherwise."""
    whole = aggregate.argument is None
    match aggregate.function:
        case "MIN" | "MAX" | "SAMPLE":
            return EXTREMES[aggregate.function]
        case "COUNT" if aggregate.distinct:
            return None if whole else table.DISTINCT
        case "COUNT":
            return table.ALL_ROWS if whole else table.BOUND
        case "SUM" | "AVG" if not aggregate.distinct:
            return table.NUMBERS
        case _:
            return None


class OrderedColumn:
    """Whether the values of a column are in the order of their numbers, and no two have the same.

    Numbers and moments are not compared with each other. Equal values of different terms are in the
    order of their texts, which the kernel does not know.
    """

    def __init__(self, bit: int) -> None:
        self.bit = bit
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self._numbers = DistinctKernel(2)
        self._moments: bool | None = None

    def learn(self, ids: Ints, terms: TermDictionary) -> bool:
        """Whether new ids can be ordered, among each other and with those that are known."""
        new = np.unique(ids)
        of, numbers = terms.kinds[new], terms.numbers[new] + 0.0  # -0 is 0
        moments = (of == kinds.DATETIME) | (of == kinds.LOCAL_DATETIME)
        if self._moments is None and len(new):
            self._moments = bool(moments[0])
        allowed = moments if self._moments else (of == kinds.EXACT) | (of == kinds.DOUBLE)
        if not allowed.all() or np.isnan(numbers).any():
            return False
        batch = np.zeros((len(new), VALUES + 2), np.int32)
        batch[:, DIFF] = 1
        batch[:, VALUES:] = numbers.view(np.int32).reshape(-1, 2)
        return len(self._numbers.step(batch)) == len(new)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._numbers.nbytes


class LearnedIds:
    """What the kernel has to know of ids: which are integers, and which are in order.

    `classes` has its bits by id (`kernel.groups.CLASS`); none for an id that is not known so far.
    """

    def __init__(self, terms: TermDictionary, ordered: Iterable[int]) -> None:
        self._terms = terms
        self.ordered = {at: OrderedColumn(table.FIRST_ORDER << n) for n, at in enumerate(ordered)}
        self.classes = np.zeros(64, np.int32)
        self.forget(())

    def forget(self, held: Ints | tuple[()]) -> None:
        """Ids may have got other terms; those that are held in order are looked at again."""
        kept = np.asarray(held, np.int32)
        known = self.classes[kept]
        self.generation = self._terms.generation
        self.classes[:] = 0
        self.classes[0] = -1 & ~table.CLASS | table.NO_NUMBER  # unbound values have no order
        for column in self.ordered.values():
            column.forget()
            self._learn_order(column, kept[known & column.bit != 0])

    def learn(self, batch: Ints, summed: list[int]) -> bool:
        """Let `classes` have the ids of a batch; False if some are in no order."""
        most = self._terms.top
        if most >= len(self.classes):
            self.classes = resized(self.classes, 2 * most)
        for at in summed:
            self._terms.table().classify(batch, at, self.classes)
        return all(self._learn_order(column, batch[:, at]) for at, column in self.ordered.items())

    def _learn_order(self, column: OrderedColumn, ids: Ints) -> bool:
        new = ids[self.classes[ids] & column.bit == 0]
        if len(new) and not column.learn(new, self._terms):
            return False
        self.classes[new] |= column.bit
        return True

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.classes.nbytes + sum(each.nbytes for each in self.ordered.values())


class SummedGroups:
    """All groups that have rows, in a table; without keys, the one group, even of no rows."""

    def __init__(self, node: GroupBy, terms: TermDictionary) -> None:
        schema = node.child.schema
        self._node = node
        self._terms = terms
        modes = [mode for mode in map(_mode, node.aggregates) if mode is not None]
        arguments = [
            VALUES + schema.index(a.argument) if a.argument in schema else -1
            for a in node.aggregates
        ]
        read = [each for each in zip(modes, arguments, strict=True) if each[1] > 0]
        self._summed = sorted({at for mode, at in read if mode == table.NUMBERS})
        ordered = (at for mode, at in read if mode in (table.LEAST, table.GREATEST))
        self._ids = LearnedIds(terms, sorted(set(ordered)))
        needs = [
            self._ids.ordered[at].bit
            if at in self._ids.ordered and mode in (table.LEAST, table.GREATEST)
            else table.CLASS * (mode == table.NUMBERS)
            for mode, at in zip(modes, arguments, strict=True)
        ]
        owners = table.shared_trees(modes, arguments)
        functions = [a.function for a in node.aggregates]
        means = [name == "AVG" for name in functions]
        strict = [name not in ("COUNT", "SAMPLE") for name in functions]
        lines = [*zip(modes, arguments, needs, owners, means, strict, strict=True)]
        self._modes, self._owners = modes, owners
        keys = np.array([VALUES + schema.index(v) for v in node.keys], np.int32)
        self._groups = table.GroupTable(keys, np.array(lines, np.int32).reshape(-1, 6))
        self._first = not node.keys
        self._exact: GroupRows | None = None

    def step(self, batch: Ints) -> Ints:
        """The changed rows of the groups."""
        if self._exact is not None:
            return self._exact.step(batch)
        if self._first:  # a row that comes no times: its group is there, and empty
            self._first = False
            batch = np.concatenate([np.zeros((1, batch.shape[1]), np.int32), batch])
        terms, ids = self._terms, self._ids
        if ids.generation != terms.generation:
            ids.forget(self._groups.ordered_ids())
        found = self._groups.step(batch, ids.classes, terms.numbers)
        if isinstance(found, int) and found == table.NOT_LEARNED and ids.learn(batch, self._summed):
            found = self._groups.step(batch, ids.classes, terms.numbers)
        if isinstance(found, int):
            return self._exactly().step(batch[batch[:, DIFF] != 0])
        return self._groups.rows(terms.intern_numbers(found) if len(found) else NO_IDS)

    def _exactly(self) -> GroupRows:
        """Hand all groups over to the exact states."""
        self._exact = GroupRows(self._node, self._terms)
        groups = self._groups.groups()
        keys, totals = self._groups.keys(groups), self._groups.totals[groups]
        for group, key, (rows, *values) in zip(
            groups.tolist(), keys.tolist(), totals.tolist(), strict=True
        ):
            parts = [self._adopted(values, a, owner) for a, owner in enumerate(self._owners)]
            self._exact.adopt(tuple(key), rows, parts, self._groups.shown(group))
        return self._exact

    def _adopted(self, totals: list[int], a: int, owner: int) -> Adopted:
        total, count, bad = totals[table.PARTS * a : table.PARTS * (a + 1)]
        ordered = self._modes[a] >= table.LEAST
        root = totals[table.PARTS * owner + table.TOTAL] if ordered else 0
        return total, count, bad, [*self._groups.values.values(root)]

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The keys and rows of all groups, and values in order."""
        return (self._groups if self._exact is None else self._exact).held_ids()

    def sizes(self) -> dict[str, int]:
        """Groups held."""
        return {"groups": len(self._groups)} if self._exact is None else self._exact.sizes()

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        if self._exact is not None:
            return self._exact.nbytes
        return self._groups.nbytes + self._ids.nbytes
