"""Groups: what is kept of each instance of a decomposed query, worked out from its variables.

Variables are numbers. A *node* is a set of variables that get their values together. A
*group* is a set of variables that are the variables of some pattern, or on which some node depends:
each assignment of values to them is an instance, with a bit for each such pattern and a count for
each such node. Group 0 has no variables: its one instance is the query itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Variables = tuple[int, ...]
    Nodes = Sequence[Variables]


@dataclass(frozen=True, slots=True)
class Group:
    """Variables in order, the node of the last of them (-1: none), its patterns and dependants."""

    variables: Variables
    node: int
    patterns: tuple[int, ...]
    dependants: tuple[int, ...]


def dependences(patterns: Sequence[Variables], nodes: Nodes) -> list[frozenset[int]]:
    """For each node, the variables before it that it, or what depends on it, shares a pattern with.

    The last of these is the node above it: so any order of nodes makes a tree.

    >>> dependences([(0, 1), (1, 2)], [(1,), (0,), (2,)])
    [frozenset(), frozenset({1}), frozenset({1})]
    """
    found: list[frozenset[int]] = [frozenset()] * len(nodes)
    for at in reversed(range(len(nodes))):
        near = {v for p in patterns if deepest(p, nodes) == at for v in p}
        found[at] = (found[at] | near) - frozenset(nodes[at])
        if found[at]:
            found[deepest(found[at], nodes)] |= found[at]
    return found


def deepest(variables: Iterable[int], nodes: Nodes) -> int:
    """The last node that has one of these variables; -1 if there is none.

    >>> deepest((0, 1), [(1,), (0,)])
    1
    """
    wanted = frozenset(variables)
    return max((at for at, own in enumerate(nodes) if wanted.intersection(own)), default=-1)


def make_groups(patterns: Sequence[Variables], nodes: Nodes) -> list[Group]:
    """All groups, that of no variables first.

    >>> [group.variables for group in make_groups([(1, 0), (1,)], [(1,), (0,)])]
    [(), (0, 1), (1,)]
    """
    needs = [tuple(sorted(d)) for d in dependences(patterns, nodes)]
    owned = [tuple(sorted(set(p))) for p in patterns]
    return [
        Group(
            variables,
            deepest(variables, nodes),
            tuple(i for i, own in enumerate(owned) if own == variables),
            tuple(i for i, need in enumerate(needs) if need == variables),
        )
        for variables in sorted({(), *owned, *needs})
    ]
