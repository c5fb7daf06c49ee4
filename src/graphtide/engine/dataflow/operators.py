"""Operators: plan nodes at work, each a function from changes of its inputs to changes.

Joins (`JoinKernel`), EXISTS and NOT EXISTS (`SemiJoinKernel`) and DISTINCT are kernels.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Protocol, assert_never

import numpy as np

from graphtide.algebra.clock import reads_clock
from graphtide.algebra.expressions import Var
from graphtide.algebra.variables import mentioned
from graphtide.engine.dataflow.conditions import Condition, Memo, intern_value
from graphtide.engine.dataflow.counted import make_counted
from graphtide.engine.dataflow.due_rows import DueRows, Now
from graphtide.engine.dataflow.programs import instance_numbers
from graphtide.engine.dataflow.ranges import RangeRows
from graphtide.engine.dataflow.sums import make_groups
from graphtide.engine.dataflow.top_numbers import make_top
from graphtide.errors import ExpressionError
from graphtide.functions.evaluate import compile_expression
from graphtide.kernel import DistinctKernel, Instances, JoinKernel, ReachKernel, SemiJoinKernel
from graphtide.kernel.batch import VALUES, Ints, Longs, make_batch, merge_batches
from graphtide.plan import physical as phys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from graphtide.algebra.expressions import Expression
    from graphtide.functions.logic import Row
    from graphtide.rdf.dictionary import TermDictionary


class Operator(Protocol):
    """What a network asks of a node at work."""

    @property
    def step(self) -> Callable[..., Ints]:
        """The change of the output for changes of the inputs, one batch per input."""

    def held_ids(self) -> Iterator[Ints | Longs]:
        """All ids that it stores: of rows, and of constants."""

    def sizes(self) -> dict[str, int]:
        """Rows held, by memory; empty for a node without state."""

    @property
    def nbytes(self) -> int:
        """Bytes held."""


def make_operator(node: phys.Physical, terms: TermDictionary, now: Now | None = None) -> Operator:
    """The operator of a node; Search and Constant forward what the network hands them."""
    match node:
        case phys.Search() | phys.Constant():
            return Forward()
        case phys.Decomposed():
            return Instances(*instance_numbers(node))
        case phys.HashJoin():
            return make_join(node)
        case phys.SemiJoin(left, _, keys, negated):
            numbers = {v: number for number, v in enumerate(left.schema)}
            columns = [numbers[v] for v in keys]
            return SemiJoinKernel(len(left.schema), columns=columns, negated=negated)
        case phys.RangeJoin():
            return RangeRows(node, terms)
        case phys.Select(child, condition) if reads_clock(condition):
            return DueRows(condition, child.schema, terms, now or Now())
        case phys.Select(child, condition):
            return SelectRows(Condition(condition, child.schema, terms))
        case phys.Compute():
            return ComputeColumns(node, terms)
        case phys.Merge():
            return MergeRows(len(node.schema))
        case phys.Unique():
            return DistinctRows(len(node.schema))
        case phys.Keep(child, sources):
            numbers = {v: number for number, v in enumerate(child.schema)}
            return KeepColumns([-1 if v is None else numbers[v] for v in sources])
        case phys.GroupBy():
            return make_groups(node, terms)
        case phys.Counting():
            return make_counted(node, terms)
        case phys.TopK():
            return make_top(node, terms)
        case phys.Closure(of):
            return ReachKernel(len(node.schema), every=len(of) == 1)
        case _:
            assert_never(node)


def make_join(node: phys.HashJoin) -> Operator:
    """A join's column numbers from its variables."""
    left, right = (
        {v: number for number, v in enumerate(side.schema)} for side in (node.left, node.right)
    )

    def pairs(variables: tuple[Var, ...]) -> list[tuple[int, int]]:
        return [(left[v], right[v]) for v in variables]

    return JoinKernel(
        len(left),
        len(right),
        keys=pairs(node.keys),
        loose=pairs(node.loose),
        overlap=pairs(node.overlap),
        outputs=[(left.get(v, -1), right.get(v, -1)) for v in node.schema],
    )


def constant_batch(node: phys.Constant, terms: TermDictionary) -> Ints:
    """A constant's rows as the changes of the first transaction."""
    rows = [(0, 1, *(0 if t is None else terms.intern(t) for t in row)) for row in node.rows]
    return make_batch(rows, len(node.schema))


AT_ONCE = 2048
"""Rows that a set makes room for at a time: of a large batch, most may be there already."""


class DistinctRows:
    """DISTINCT, in parts of a batch."""

    def __init__(self, width: int) -> None:
        self._rows = DistinctKernel(width)
        self.held_ids = self._rows.held_ids
        self.sizes = self._rows.sizes

    def step(self, batch: Ints) -> Ints:
        """The change of the set of rows for a change of their counts."""
        if len(batch) <= AT_ONCE:
            return self._rows.step(batch)
        parts = (batch[at : at + AT_ONCE] for at in range(0, len(batch), AT_ONCE))
        return np.concatenate([self._rows.step(part) for part in parts])

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._rows.nbytes


class Stateless:
    """A node without memory."""

    nbytes = 0

    def held_ids(self) -> Iterator[Ints]:
        """No ids."""
        return iter(())

    def sizes(self) -> dict[str, int]:
        """No memories."""
        return {}


class Forward(Stateless):
    """A leaf: its batch comes from the store."""

    def step(self, batch: Ints) -> Ints:
        """The batch as it is."""
        return batch


class SelectRows(Stateless):
    """d(σ(R)) = σ(dR)."""

    def __init__(self, condition: Condition) -> None:
        self._condition = condition

    def held_ids(self) -> Iterator[Ints]:
        """The constants."""
        return self._condition.held_ids()

    def step(self, batch: Ints) -> Ints:
        """The changed rows that satisfy the condition."""
        return batch[self._condition(batch)]


class ComputeColumns(Stateless):
    """d(extend(R)) = extend(dR)."""

    def __init__(self, node: phys.Compute, terms: TermDictionary) -> None:
        positions = {var: VALUES + i for i, var in enumerate(node.child.schema)}
        self._given = VALUES + len(positions)
        self._columns: list[Callable[[Ints], Ints]] = []
        for var, expression in node.columns:
            self._columns.append(_column(expression, positions, terms))
            positions[var] = VALUES + len(positions)

    def step(self, batch: Ints) -> Ints:
        """The changed rows with more columns."""
        wide = np.empty((len(batch), self._given + len(self._columns)), np.int32)
        wide[:, : self._given] = batch
        for at, column in enumerate(self._columns, start=self._given):
            wide[:, at] = column(wide)
        return wide


def _column(
    expression: Expression, positions: Mapping[Var, int], terms: TermDictionary
) -> Callable[[Ints], Ints]:
    """The function that computes one column of a batch from others."""
    if isinstance(expression, Var) and expression in positions:
        at = positions[expression]
        return lambda batch: batch[:, at]
    value = compile_expression(expression)

    def compute(row: Row) -> int:
        try:
            term = value(row)
        except ExpressionError:
            return 0
        return intern_value(terms, term)

    read = ((var, positions[var]) for var in mentioned(expression) if var in positions)
    return Memo(compute, tuple(sorted(read, key=itemgetter(1))), terms)


class MergeRows(Stateless):
    """d(L + R) = dL + dR."""

    def __init__(self, width: int) -> None:
        self._width = width

    def step(self, left: Ints, right: Ints) -> Ints:
        """All changed rows in transaction order."""
        return merge_batches((left, right), self._width)


class KeepColumns(Stateless):
    """d(π(R)) = π(dR); -1 is a column that is unbound in every row."""

    def __init__(self, sources: list[int]) -> None:
        self._take = np.array([0, 1, *(VALUES + max(s, 0) for s in sources)])
        self._unbound = [VALUES + i for i, source in enumerate(sources) if source < 0]
        if self._unbound:
            self._take[self._unbound] = 0

    @property
    def columns(self) -> Ints | None:
        """The columns of the input that the rows consist of; None if some are unbound."""
        return None if self._unbound else self._take[VALUES:].astype(np.int32)

    def step(self, batch: Ints) -> Ints:
        """The changed rows with other columns."""
        out: Ints = batch.take(self._take, 1)
        if self._unbound:
            out[:, self._unbound] = 0
        return out
