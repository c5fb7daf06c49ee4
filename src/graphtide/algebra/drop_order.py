"""drop_order: where all rows are kept, their order changes nothing about which there are."""

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


def drop_order(node: Node) -> Node:
    """Replace every ORDER BY without LIMIT and OFFSET by what it does to the bag of rows.

    >>> from graphtide.algebra.expressions import Var
    >>> drop_order(Slice(Bgp(()), (Var("a"),), distinct=True)) == Distinct(
    ...     Project(Bgp(()), (Var("a"),))
    ... )
    True
    """
    match node:
        case Slice(child, variables, _, distinct, 0, None):
            kept = Project(drop_order(child), variables)
            return Distinct(kept) if distinct else kept
        case Join() | LeftJoin() | Union() | Minus():
            return replace(node, left=drop_order(node.left), right=drop_order(node.right))
        case Filter() | Extend() | Project() | Distinct() | Group() | Slice():
            return replace(node, child=drop_order(node.child))
        case Bgp() | Values() | GraphNames() | Path():
            return node
        case _:
            assert_never(node)
