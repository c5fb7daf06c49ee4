"""Counting, exactly: the groups of an acyclic join, without the join (`plan.counting`).

Weights are Python numbers, of any size and type; `counted` does the same in the kernel, as long as
it can.

Every node of the join tree joins its own rows with what its children have sent, and sends its
parent a *weight* for each key: the number of rows of its subtree, and the sums of what is
aggregated there. Weights of rows that are joined are multiplied, those of rows with one key are
added. So a change goes from its input up to the groups, by way of the keys that it reaches.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple

from graphtide.engine.dataflow import aggregates as exact
from graphtide.errors import ExpressionError
from graphtide.kernel.batch import DIFF, TX, VALUES, Ints, Longs, make_batch
from graphtide.limits import allowance
from graphtide.plan.counting import ROOT, sent, stored
from graphtide.rdf.holders import flat_ids
from graphtide.rdf.term_tables import number_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from graphtide.algebra.expressions import Var
    from graphtide.algebra.variables import Schema
    from graphtide.plan.physical import Counting
    from graphtide.rdf.dictionary import TermDictionary

Key = tuple[int, ...]
Weight = Any
"""A number of rows; if something is summed, the totals by `Part`. Whatever is empty is false."""

Weights = dict[Key, Weight]
Part = tuple[int, object]
"""The number of an aggregate, and the name of one of its totals."""

ROWS: Part = (-1, "rows")
BOUND = "bound"
LARGE = 1000
"""Rows at once that are counted against the limits."""

ENTRY_BYTES = 250
"""Bytes of a key and its weight, about."""


class Arithmetic(NamedTuple):
    """How weights are added and multiplied."""

    plus: Callable[[Weight, Weight], Weight]
    times: Callable[[Weight, Weight], Weight]


def add_totals(one: dict[Part, Any], other: dict[Part, Any]) -> dict[Part, Any]:
    """The totals of both, without those that are zero."""
    out = dict(one)
    for part, number in other.items():
        total = out.get(part, 0) + number
        if total:
            out[part] = total
        else:
            out.pop(part, None)
    return out


def multiply_totals(one: dict[Part, Any], other: dict[Part, Any]) -> dict[Part, Any]:
    """The totals of a product: each total as often as there are rows on the other side.

    >>> multiply_totals({ROWS: 2, (0, "integers"): 7}, {ROWS: 3})
    {(-1, 'rows'): 6, (0, 'integers'): 21}
    """
    rows, others = one.get(ROWS, 0), other.get(ROWS, 0)
    out = {part: number * others for part, number in one.items()} if others else {}
    if rows:
        out.update((part, number * rows) for part, number in other.items())
    return out


COUNTS = Arithmetic(operator.add, operator.mul)
TOTALS = Arithmetic(add_totals, multiply_totals)


def picker(positions: Sequence[int]) -> Callable[[Key], Key]:
    """Picks the values at some positions of a key.

    >>> picker([2, 0])((5, 6, 7)), picker([1])((5, 6, 7)), picker([])((5,))
    ((7, 5), (6,), ())
    """
    if not positions:
        return lambda _: ()
    if len(positions) == 1:
        (at,) = positions
        return lambda key: (key[at],)
    return operator.itemgetter(*positions)


class KeyTable:
    """Weights by the values of some variables, with indexes by the values of fewer."""

    def __init__(self, variables: Schema, arithmetic: Arithmetic) -> None:
        self.variables = variables
        self.weights: Weights = {}
        self._plus = arithmetic.plus
        self._indexes: list[tuple[Callable[[Key], Key], dict[Key, dict[Key, None]]]] = []

    def finder(self, variables: Schema) -> Callable[[Key], Iterable[Key]]:
        """Finds the keys with given values of some of the variables."""
        weights = self.weights
        if variables == self.variables:
            return lambda key: (key,) if key in weights else ()
        if not variables:
            return lambda _: weights
        index: dict[Key, dict[Key, None]] = {}
        pick = picker([self.variables.index(v) for v in variables])
        self._indexes.append((pick, index))
        return lambda key: index.get(key, ())

    def add(self, key: Key, weight: Weight) -> None:
        """Add to the weight of a key; a key without weight is not there."""
        before = self.weights.get(key)
        after = weight if before is None else self._plus(before, weight)
        if after:
            self.weights[key] = after
            if before is None:
                for pick, index in self._indexes:
                    index.setdefault(pick(key), {})[key] = None
        elif before is not None:
            del self.weights[key]
            for pick, index in self._indexes:
                found = index[pick(key)]
                del found[key]
                if not found:
                    del index[pick(key)]


class Extension(NamedTuple):
    """A table that rows are joined with: how its keys are found, and what they add to a row."""

    pick: Callable[[Key], Key]
    find: Callable[[Key], Iterable[Key]]
    fresh: Callable[[Key], Key]
    weights: Weights


class TreeNode:
    """A node of a join tree: the tables that it joins, and the variables of what it sends."""

    def __init__(self, tables: list[KeyTable], sends: Schema, arithmetic: Arithmetic) -> None:
        self.tables = tables
        self._arithmetic = arithmetic
        self._routes = [self._route(table, sends) for table in tables]
        self._forwards = len(tables) == 1 and tables[0].variables == sends

    def _route(
        self, start: KeyTable, sends: Schema
    ) -> tuple[list[Extension], Callable[[Key], Key]]:
        """How a changed key of a table is joined with all others: those that only test first."""
        bound = list(start.variables)
        rest = [table for table in self.tables if table is not start]
        steps: list[Extension] = []

        def near(table: KeyTable) -> tuple[bool, int]:
            shared = sum(v in bound for v in table.variables)
            return shared == len(table.variables), shared

        while rest:
            table = max(rest, key=near)
            rest.remove(table)
            shared = tuple(v for v in table.variables if v in bound)
            fresh = [i for i, v in enumerate(table.variables) if v not in bound]
            pick = picker([bound.index(v) for v in shared])
            steps.append(Extension(pick, table.finder(shared), picker(fresh), table.weights))
            bound += (table.variables[i] for i in fresh)
        return steps, picker([bound.index(v) for v in sends])

    def step(self, slot: int, changes: Weights) -> Weights:
        """Change the weights of a table; the changes that the node sends."""
        if self._forwards:
            return changes
        steps, project = self._routes[slot]
        plus, times = self._arithmetic
        out: Weights = {}
        for key, weight in changes.items():
            found = [(key, weight)]
            for pick, find, fresh, weights in steps:
                found = [
                    (values + fresh(other), times(each, weights[other]))
                    for values, each in found
                    for other in find(pick(values))
                ]
            if len(found) > LARGE:
                allowance().allow(len(found) * ENTRY_BYTES)
            for values, each in found:
                to = project(values)
                out[to] = plus(out[to], each) if to in out else each
        if len(self.tables) > 1:  # a leaf of the tree stores nothing: its parent has what it sent
            table = self.tables[slot]
            for key, weight in changes.items():
                table.add(key, weight)
        return {key: weight for key, weight in out.items() if weight}


class InputColumns(NamedTuple):
    """The columns of an input that its keys are from, and those that are aggregated there."""

    keys: list[int]
    arguments: list[tuple[int, str, int]]  # aggregate, function, column or -1


class CountedGroups:
    """The groups of a join tree; without keys, the one group, even of no rows."""

    def __init__(self, node: Counting, terms: TermDictionary) -> None:
        self._terms = terms
        self._node = node
        self._plain = plain_counts(node)
        self._sums = not all(self._plain)
        arithmetic = TOTALS if self._sums else COUNTS
        shared, kept = sent(node), stored(node)
        self._inputs = [
            InputColumns([VALUES + part.schema.index(v) for v in own], [])
            for part, own in zip(node.inputs, kept, strict=True)
        ]
        for number, aggregate in enumerate(node.aggregates):
            if not self._plain[number]:
                at, column = home(node, aggregate.argument)
                self._inputs[at].arguments.append((number, aggregate.function, column))
        tables = [*([KeyTable(each, arithmetic)] for each in kept), list[KeyTable]()]
        self._slots: list[int] = []
        for each, parent in zip(shared, node.parents, strict=True):
            self._slots.append(len(tables[parent]))
            tables[parent].append(KeyTable(each, arithmetic))
        keys = tuple(v for v in dict.fromkeys(node.keys) if home(node, v)[1] >= 0)
        self._nodes = [  # the root is the last one, which is number -1
            TreeNode(each, sends, arithmetic)
            for each, sends in zip(tables, (*shared, keys), strict=True)
        ]
        self._groups = KeyTable(keys, arithmetic)
        self._keys = [keys.index(v) if v in keys else -1 for v in node.keys]
        self._shown: dict[Key, Key] = {}
        self._first = node.always

    def step(self, *batches: Ints) -> Ints:
        """The changed rows of the groups."""
        out: list[tuple[int, ...]] = []
        if self._first:
            self._first = False
            self._emit(0, (), out)
        changes: dict[int, list[tuple[int, Weights]]] = {}
        for number, batch in enumerate(batches):
            for tx, weights in self.weights(number, batch).items():
                changes.setdefault(tx, []).append((number, weights))
        for tx in sorted(changes):
            touched: dict[Key, None] = {}
            for number, weights in changes[tx]:
                for key, weight in self._sent(number, weights).items():
                    self._groups.add(key, weight)
                    touched[key] = None
            for key in touched:
                self._emit(tx, key, out)
        return make_batch(out, len(self._node.schema))

    def _sent(self, number: int, weights: Weights) -> Weights:
        """The changes of groups by changes of an input: from node to node, up to the root."""
        slot = 0
        while weights:
            weights = self._nodes[number].step(slot, weights)
            if number == ROOT:
                break
            number, slot = self._node.parents[number], self._slots[number]
        return weights

    def adopt(self, number: int, weights: Weights) -> None:
        """Begin with what an input has sent elsewhere."""
        for key, weight in self._sent(number, weights).items():
            self._groups.add(key, weight)

    def adopt_rows(self, keys: list[list[int]], results: list[list[int]]) -> None:
        """Begin with the rows of groups, by their keys."""
        self._first = self._first and not keys
        for key, row in zip(keys, results, strict=True):
            ids = (0 if at < 0 else key[at] for at in self._keys)
            self._shown[tuple(key)] = (*ids, *row)

    def weights(self, number: int, batch: Ints) -> dict[int, Weights]:
        """The changes of an input by transaction and key."""
        if not len(batch):
            return {}
        columns = self._inputs[number]
        width = len(columns.keys)
        lines = batch[:, [TX, *columns.keys, *(column for _, _, column in columns.arguments)]]
        out: dict[int, Weights] = {}
        plus = add_totals if self._sums else operator.add
        for (tx, *line), diff in zip(lines.tolist(), batch[:, DIFF].tolist(), strict=True):
            key = tuple(line[:width])
            weight = self._weight(columns, diff, line[width:]) if self._sums else diff
            own = out.setdefault(tx, {})
            own[key] = plus(own[key], weight) if key in own else weight
        return {
            tx: {key: weight for key, weight in own.items() if weight} for tx, own in out.items()
        }

    def _weight(self, columns: InputColumns, diff: int, values: list[int]) -> Weight:
        """The totals of equal rows of an input."""
        found: dict[Part, Any] = {ROWS: diff}
        for (number, function, column), value in zip(columns.arguments, values, strict=True):
            bound = value if column >= 0 else 0
            if function != "COUNT":
                for part, total in exact.number_totals(self._terms, bound).items():
                    found[number, part] = total * diff
            elif bound:
                found[number, BOUND] = diff
        return found

    def _emit(self, tx: int, key: Key, out: list[tuple[int, ...]]) -> None:
        """Replace a group's row by what it is now; a group without rows has none."""
        weight = self._groups.weights.get(key)
        totals: dict[Part, Any] = (weight if self._sums else {ROWS: weight}) if weight else {}
        row: Key | None = None
        if self._node.always or totals.get(ROWS, 0) > 0:
            ids = (0 if at < 0 else key[at] for at in self._keys)
            row = (*ids, *(self._result(n, totals) for n in range(len(self._plain))))
        before = self._shown.pop(key, None)
        if row is not None:
            self._shown[key] = row
        if row != before:
            if before is not None:
                out.append((tx, -1, *before))
            if row is not None:
                out.append((tx, 1, *row))

    def _result(self, number: int, totals: dict[Part, Any]) -> int:
        """The id of an aggregate; 0 for an error."""
        function = self._node.aggregates[number].function
        if function == "COUNT":
            part = ROWS if self._plain[number] else (number, BOUND)
            return self._terms.intern(number_text(max(totals.get(part, 0), 0), 0))
        state = exact.SumState(self._terms, mean=function == "AVG")
        state.adopt_totals({part: n for (of, part), n in totals.items() if of == number})
        try:
            return self._terms.intern(state.result())
        except ExpressionError:
            return 0

    def _tables(self) -> Iterator[KeyTable]:
        for node in self._nodes:
            yield from node.tables

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The keys of all tables, and the rows of all groups."""
        for table in (*self._tables(), self._groups):
            yield flat_ids(table.weights)
        yield flat_ids(self._shown.values())

    def sizes(self) -> dict[str, int]:
        """Keys with counts, and groups."""
        return {
            "keys": sum(len(table.weights) for table in self._tables()),
            "groups": len(self._shown),
        }

    @property
    def nbytes(self) -> int:
        """Bytes held, about: keys and weights are Python objects."""
        return sum(self.sizes().values()) * ENTRY_BYTES


def plain_counts(node: Counting) -> list[bool]:
    """For each aggregate, whether it counts rows, as COUNT of a variable that is always bound."""
    certain = {v for part in node.inputs for v in part.certain}
    return [
        a.function == "COUNT" and (a.argument is None or a.argument in certain)
        for a in node.aggregates
    ]


def home(node: Counting, var: Var | None) -> tuple[int, int]:
    """The first input that has a variable, and its column; the first one and -1 if none has."""
    for number, part in enumerate(node.inputs):
        if var in part.schema:
            return number, VALUES + part.schema.index(var)
    return 0, -1
