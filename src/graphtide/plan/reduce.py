"""Semijoin reduction: (NOT) EXISTS by joins that start from the rows in question.

A semijoin stores all keys for which its right side has a match, which may be far more than there
are rows to test: all pairs with a common tag, where few pairs are asked for. So the distinct keys
of the rows are joined with the patterns, in the best order. Columns that no later join reads are
dropped early, and equal rows counted once: whether there is a match does not depend on how many
there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.plan import make
from graphtide.plan.order import join_best
from graphtide.plan.physical import HashJoin, Physical, Unique

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.algebra.expressions import Var
    from graphtide.algebra.variables import Schema
    from graphtide.plan.estimate import Estimator

FEWER = 0.5
"""The share of the rows that may be left where equal ones are counted."""


def matched(rows: Physical, keys: Schema, parts: Sequence[Physical], expect: Estimator) -> Physical:
    """The keys of rows for which all parts have a match."""
    asked = make.unique(make.keep(rows, keys))
    tree = join_best([asked, *parts], expect)
    return _narrowed(tree, frozenset(keys), expect)


def _narrowed(node: Physical, read: frozenset[Var], expect: Estimator) -> Physical:
    """A tree of joins without columns that nobody reads, where that leaves fewer rows."""
    if isinstance(node, HashJoin):
        inner = read.union(node.keys, node.loose)
        left, right = (_narrowed(side, inner, expect) for side in (node.left, node.right))
        node = make.join(left, right)
    kept = tuple(v for v in node.schema if v in read)
    if kept == node.schema or isinstance(node, Unique):
        return node
    counted = make.unique(make.keep(node, kept))
    return counted if expect(counted).rows < FEWER * expect(node).rows else node
