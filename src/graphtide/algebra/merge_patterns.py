"""merge_patterns: a join of basic graph patterns is one basic graph pattern.

Each triple pattern gives a set of rows, and a natural join of sets is a set: nothing is counted
twice. One larger pattern leaves the planner more orders to choose from.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from graphtide.algebra.nodes import (
    Bgp,
    Distinct,
    Extend,
    Filter,
    GraphNames,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    Path,
    Project,
    Slice,
    Union,
    Values,
)


def merge_patterns(node: Node) -> Node:
    """Merge joined basic graph patterns; the empty pattern, which joins with everything, vanishes.

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import TriplePattern
    >>> one, two = (TriplePattern(Var("a"), Var(p), Var("b")) for p in "pq")
    >>> merge_patterns(Join(Bgp((one,)), Join(Bgp(()), Bgp((two,))))) == Bgp((one, two))
    True
    """
    match node:
        case Join(left, right):
            return _joined(merge_patterns(left), merge_patterns(right))
        case LeftJoin() | Union() | Minus():
            return replace(node, left=merge_patterns(node.left), right=merge_patterns(node.right))
        case Filter() | Extend() | Project() | Distinct() | Group() | Slice():
            return replace(node, child=merge_patterns(node.child))
        case Bgp() | Values() | GraphNames() | Path():
            return node
        case _:
            assert_never(node)


def _joined(left: Node, right: Node) -> Node:
    match left, right:
        case Bgp(first), Bgp(second):
            return Bgp(first + second)
        case Bgp(()), other:
            return other
        case other, Bgp(()):
            return other
        case _:
            return Join(left, right)
