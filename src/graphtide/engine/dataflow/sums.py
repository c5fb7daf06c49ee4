"""GROUP BY in the kernel: COUNT, SUM and AVG of integers, MIN and MAX of numbers or moments.

The states of `aggregates` take over, for good, when a value comes that the kernel cannot add up or
order, or a sum might exceed 62 bits. Until then, only the rows that are put out become literals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.engine.dataflow.aggregates import Adopted, GroupRows
from graphtide.functions.arithmetic import op_divide
from graphtide.functions.values import integer_term
from graphtide.kernel import JIT
from graphtide.kernel import groups as table
from graphtide.kernel.batch import DIFF, TX, VALUES, Ints, Longs, make_batch
from graphtide.kernel.counts import DistinctKernel
from graphtide.rdf import kinds
from graphtide.rdf.term_tables import resized

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graphtide.algebra.nodes import Aggregate
    from graphtide.engine.dataflow.operators import Operator
    from graphtide.plan.physical import GroupBy
    from graphtide.rdf.dictionary import TermDictionary

Bools = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

INTEGER_TEXT = f"^^<{kinds.XSD}integer>"


EXTREMES = {"MIN": table.LEAST, "SAMPLE": table.LEAST, "MAX": table.GREATEST}


def make_groups(node: GroupBy, terms: TermDictionary) -> Operator:
    """The operator of a node: in the kernel, if its aggregates can be maintained there."""
    plain = JIT and None not in map(_mode, node.aggregates)
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


class OrderedIds:
    """Whether the values of a column are in the order of their numbers, and no two have the same.

    Numbers and moments are not compared with each other. Equal values of different terms are in the
    order of their texts, which the kernel does not know.
    """

    def __init__(self, terms: TermDictionary) -> None:
        self._terms = terms
        self._seen = np.zeros(64, np.bool_)
        self._forget()

    def _forget(self) -> None:
        self._generation = self._terms.generation
        self._seen[:] = False
        self._numbers = DistinctKernel(2)
        self._moments: bool | None = None

    def learn(self, ids: Ints, held: Callable[[], Ints]) -> bool:
        """Whether these ids can be ordered, among each other and with those that are `held`."""
        if self._generation != self._terms.generation:  # ids may have got other terms
            kept = held()
            ids = np.concatenate([ids, kept[self._seen[kept]]])
            self._forget()
        most = int(ids.max(initial=0))
        if most >= len(self._seen):
            self._seen = resized(self._seen, 2 * most)
        new = ids[~self._seen[ids]]
        if not len(new):
            return True
        self._seen[new] = True
        new = np.unique(new[new != 0])
        of, numbers = self._terms.kinds[new], self._terms.numbers[new] + 0.0  # -0 is 0
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
        return self._seen.nbytes + self._numbers.nbytes


class IntegerIds:
    """Which ids are integers, which are no numbers, and which need to be looked at as terms."""

    def __init__(self, terms: TermDictionary) -> None:
        self._terms = terms
        self._generation = terms.generation
        self.classes = np.zeros(64, np.int32)

    def learn(self, ids: Ints) -> None:
        """Let `classes` have these ids."""
        if self._generation != self._terms.generation:  # ids may have got other terms
            self._generation = self._terms.generation
            self.classes[:] = 0
        if len(ids) == 1 and ids[0] < len(self.classes) and self.classes[ids[0]]:
            return
        most = int(ids.max(initial=0))
        if most >= len(self.classes):
            larger = np.zeros(2 * most, np.int32)
            larger[: len(self.classes)] = self.classes
            self.classes = larger
        new = ids[self.classes[ids] == 0]
        if not len(new):
            return
        of = self._terms.kinds[new]
        self.classes[new] = table.NO_NUMBER
        self.classes[new[(of == kinds.DOUBLE) | (of == kinds.OTHER)]] = table.UNKNOWN
        exact = np.unique(new[of == kinds.EXACT])
        texts = self._terms.decode_column(exact).to_pylist() if len(exact) else []
        whole = [str(text).endswith(INTEGER_TEXT) for text in texts]
        self.classes[exact] = np.where(whole, table.WHOLE, table.UNKNOWN)


class SummedGroups:
    """All groups that have rows, in a table; without keys, the one group, even of no rows."""

    def __init__(self, node: GroupBy, terms: TermDictionary) -> None:
        schema = node.child.schema
        self._node = node
        self._terms = terms
        self._functions = [a.function for a in node.aggregates]
        modes = [mode for mode in map(_mode, node.aggregates) if mode is not None]
        self._modes = modes
        arguments = [
            VALUES + schema.index(a.argument) if a.argument in schema else -1
            for a in node.aggregates
        ]
        keys = [VALUES + schema.index(v) for v in node.keys]
        self._summed = [
            at
            for at, mode in zip(arguments, modes, strict=True)
            if mode == table.NUMBERS and at > 0
        ]
        self._ordered = {
            at: OrderedIds(terms)
            for at, mode in zip(arguments, modes, strict=True)
            if mode in (table.LEAST, table.GREATEST) and at > 0
        }
        self._groups = table.GroupTable(
            *(np.array(each, np.int32) for each in (keys, modes, arguments)), always=not keys
        )
        self._integers = IntegerIds(terms)
        self._shown = np.zeros(0, np.bool_)
        self._last = np.zeros((0, len(modes)), np.int32)
        self._first = not keys
        self._exact: GroupRows | None = None

    def step(self, batch: Ints) -> Ints:
        """The changed rows of the groups."""
        if self._exact is not None:
            return self._exact.step(batch)
        if self._first:  # a row that comes no times: its group is there, and empty
            self._first = False
            batch = np.concatenate([np.zeros((1, batch.shape[1]), np.int32), batch])
        for at in self._summed:
            self._integers.learn(batch[:, at])
        for at, ordered in self._ordered.items():
            if not ordered.learn(batch[:, at], self._groups.values.ids):
                return self._exactly().step(batch[batch[:, DIFF] != 0])
        found = self._groups.step(batch, self._integers.classes, self._terms.numbers)
        if found is None:
            return self._exactly().step(batch[batch[:, DIFF] != 0])
        return self._output_one(*found) if len(found[0]) == 1 else self._output(*found)

    def _output_one(self, events: Ints, results: Longs) -> Ints:
        """The same as `_output`, for the one event of a small transaction."""
        ((tx, group, there),), ((_, *totals),) = events.tolist(), results.tolist()
        key = self._groups.key(group)
        self._make_room(group + 1)
        out: list[tuple[int, ...]] = []
        before = self._last[group].tolist()
        ids = before
        if there:
            ids = [
                self._literal(function, *totals[table.PARTS * a : table.PARTS * (a + 1)])
                for a, function in enumerate(self._functions)
            ]
        if self._shown[group] and not (there and ids == before):
            out.append((tx, -1, *key, *before))
        if there and not (self._shown[group] and ids == before):
            out.append((tx, 1, *key, *ids))
        self._shown[group], self._last[group] = there, ids
        if not there:
            self._groups.drop(events[:, table.GROUP])
        return make_batch(out, len(self._node.schema))

    def _make_room(self, groups: int) -> None:
        if groups > len(self._shown):
            self._shown = resized(self._shown, 2 * groups)
            self._last = resized(self._last, 2 * groups)

    def _output(self, events: Ints, results: Longs) -> Ints:
        """For each event, the row that a group had goes, and the one that it has comes."""
        groups, there = events[:, table.GROUP], events[:, table.THERE] != 0
        ids = np.empty((len(events), len(self._functions)), np.int32)
        for a, function in enumerate(self._functions):
            at = table.VALUES_OF + table.PARTS * a
            ids[:, a] = self._literals(function, results[:, at : at + table.PARTS], there)
        self._make_room(int(groups.max(initial=-1)) + 1)
        was, before = self._shown[groups], self._last[groups]
        order = np.argsort(groups, kind="stable")
        again = np.flatnonzero(groups[order[1:]] == groups[order[:-1]]) + 1
        was[order[again]], before[order[again]] = there[order[again - 1]], ids[order[again - 1]]
        self._shown[groups[order]], self._last[groups[order]] = there[order], ids[order]
        differs = (was != there) | (ids != before).any(axis=1)
        keys = self._groups.keys(groups)
        out = np.empty((len(events), 2, VALUES + len(self._node.schema)), np.int32)
        out[:, :, TX] = events[:, table.EVENT_TX, None]
        out[:, :, DIFF] = (-1, 1)
        out[:, :, VALUES : VALUES + keys.shape[1]] = keys[:, None]
        out[:, 0, VALUES + keys.shape[1] :] = before
        out[:, 1, VALUES + keys.shape[1] :] = ids
        if not there.all():
            self._groups.drop(groups[~there])
        chosen: Ints = out[np.column_stack([was & differs, there & differs])]
        return chosen

    def _literals(self, function: str, totals: Longs, there: Bools) -> Ints:
        """The ids of the results of an aggregate; 0 for an error."""
        totals[~there] = 0
        if function in EXTREMES:
            bad = (totals[:, table.BAD] != 0) & (function != "SAMPLE")
            return np.where(bad, 0, totals[:, table.TOTAL]).astype(np.int32)
        if function == "AVG":
            rows, where = np.unique(totals, axis=0, return_inverse=True)
            each = [self._literal(function, *row) for row in rows.tolist()]
            return np.array(each, np.int32)[where.reshape(-1)]
        column = totals[:, table.TOTAL]
        if function == "COUNT":
            column = totals[:, table.COUNT].clip(min=0)
        values, where = np.unique(column, return_inverse=True)
        texts = [f'"{value}"{INTEGER_TEXT}' for value in values.tolist()]
        found: Ints = self._terms.intern_column(texts)[where]
        if function != "COUNT":
            found[totals[:, table.BAD] != 0] = 0
        return found

    def _literal(self, function: str, total: int, count: int, bad: int) -> int:
        if function in EXTREMES:
            return 0 if bad and function != "SAMPLE" else total
        if bad and function != "COUNT":
            return 0
        if function == "AVG" and count:
            return self._terms.intern(op_divide(integer_term(total), integer_term(count)))
        value = max(count, 0) if function == "COUNT" else total
        return self._terms.intern(f'"{value}"{INTEGER_TEXT}')

    def _exactly(self) -> GroupRows:
        """Hand all groups over to the exact states."""
        self._exact = GroupRows(self._node, self._terms)
        groups = self._groups.groups()
        keys, totals = self._groups.keys(groups), self._groups.totals[groups]
        for group, key, (rows, *values) in zip(
            groups.tolist(), keys.tolist(), totals.tolist(), strict=True
        ):
            parts = [
                self._adopted(values, a, owner)
                for a, owner in enumerate(self._groups.owners.tolist())
            ]
            shown = (*key, *self._last[group].tolist()) if self._shown[group] else None
            self._exact.adopt(tuple(key), rows, parts, shown)
        return self._exact

    def _adopted(self, totals: list[int], a: int, owner: int) -> Adopted:
        total, count, bad = totals[table.PARTS * a : table.PARTS * (a + 1)]
        ordered = self._modes[a] >= table.LEAST
        root = totals[table.PARTS * owner + table.TOTAL] if ordered else 0
        return total, count, bad, [*self._groups.values.values(root)]

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The keys and rows of all groups, and values in order."""
        if self._exact is not None:
            yield from self._exact.held_ids()
            return
        yield from self._groups.held_ids()
        yield self._last[self._shown]

    def sizes(self) -> dict[str, int]:
        """Groups held."""
        return {"groups": len(self._groups)} if self._exact is None else self._exact.sizes()

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        if self._exact is not None:
            return self._exact.nbytes
        own = (self._shown, self._last, self._integers.classes)
        ordered = sum(each.nbytes for each in self._ordered.values())
        return self._groups.nbytes + ordered + sum(array.nbytes for array in own)
