"""Rewrite rules: pure functions from algebra to algebra that keep every answer the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from graphtide.algebra.drop_order import drop_order
from graphtide.algebra.merge_patterns import merge_patterns
from graphtide.algebra.push_filters import push_filters

if TYPE_CHECKING:
    from graphtide.algebra.nodes import Node

Rule = Callable[["Node"], "Node"]
"""A rule takes a node and returns one with the same rows and multiplicities on every graph."""

RULES: tuple[Rule, ...] = (drop_order, merge_patterns, push_filters)
"""Applied once each, in this order."""


def rewrite(node: Node) -> Node:
    """Apply every rule."""
    for rule in RULES:
        node = rule(node)
    return node
