"""The empty group, and the join for which it is neutral."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.algebra.nodes import Bgp, Join

if TYPE_CHECKING:
    from graphtide.algebra.nodes import Node

EMPTY_GROUP = Bgp(())


def join(left: Node, right: Node) -> Node:
    """Join, simplified as the recommendation says: joining the empty group changes nothing."""
    if left == EMPTY_GROUP:
        return right
    return left if right == EMPTY_GROUP else Join(left, right)
