"""Lays a decomposed query out as the arrays that its loop reads.

Variables are integers. A *node* is a set of variables that get their values together. A *group* is
a set of variables that are the variables of some pattern, or on which some node depends: each
assignment of values to them is an *instance*, with a bit for each such pattern and a count for each
such node. Group 0 has no variables: its one instance is the query itself.

A *walk* joins instances of several groups, starting from known variables: each step looks one
instance up, or follows the chain of those that agree on the known variables. Every group has a walk
over the other groups of its node, and one over all groups; every node has a walk over its groups,
starting from the variables it depends on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphtide.arrays import bundle

if TYPE_CHECKING:
    from graphtide.arrays import Ints1, Ints2
    from graphtide.kernel.batch import Ints

Variables = tuple[int, ...]
Nodes = Sequence[Variables]


@dataclass(frozen=True, slots=True)
class InstanceGroup:
    """Sorted variables, their deepest node (-1: none), the patterns and the dependent nodes."""

    variables: Variables
    node: int
    patterns: tuple[int, ...]
    dependants: tuple[int, ...]


def dependences(patterns: Sequence[Variables], nodes: Nodes) -> list[frozenset[int]]:
    """For each node, the earlier variables with which it or its dependants share a pattern.

    The last of them is in its parent node: so any order of nodes makes a tree.

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


def make_groups(patterns: Sequence[Variables], nodes: Nodes) -> list[InstanceGroup]:
    """All groups, that of no variables first.

    >>> [group.variables for group in make_groups([(1, 0), (1,)], [(1,), (0,)])]
    [(), (0, 1), (1,)]
    """
    needs = [tuple(sorted(d)) for d in dependences(patterns, nodes)]
    owned = [tuple(sorted(set(p))) for p in patterns]
    return [
        InstanceGroup(
            variables,
            deepest(variables, nodes),
            tuple(i for i, own in enumerate(owned) if own == variables),
            tuple(i for i, need in enumerate(needs) if need == variables),
        )
        for variables in sorted({(), *owned, *needs})
    ]


WIDTH, WORDS, NODE, LINKS, KIDS_FROM, KIDS, VARIABLES = 0, 1, 2, 3, 4, 5, 6
"""Columns of `groups`: number of variables, mask words, node, indexes, dependants; variables."""

DEPENDS_ON, COUNT_AT = 0, 1
"""Columns of `nodes`: the group it depends on, and where its count is in that group's state."""

STEP_GROUP, STEP_INDEX = 0, 1
"""Columns of `steps`: the group, and the index to use; -1: a lookup of one instance."""

BITS = 31
"""Patterns per word of a mask."""


@bundle
class Layout(NamedTuple):
    """A decomposed query as arrays; `walks` has those of `_make_walks`."""

    groups: Ints2
    full: Ints2
    nodes: Ints2
    kids: Ints1
    steps: Ints2
    walks: Ints2
    patterns: Ints2


@dataclass(frozen=True, slots=True)
class InstancePlan:
    """The arrays, the key columns of each index, and the widths of what is stored."""

    layout: Layout
    keys: tuple[tuple[int, ...], ...]
    width: int
    state: int
    columns: tuple[tuple[int, ...], ...]
    """For each pattern, which of its columns each variable of its group comes from."""


class _Walks:
    """Builds walks: their steps, and the indexes that they need."""

    def __init__(self, groups: Sequence[InstanceGroup]) -> None:
        self.groups = groups
        self.keys: list[tuple[int, ...]] = []
        self.links = [0] * len(groups)
        self.steps: list[tuple[int, int]] = []
        self.walks: list[tuple[int, int]] = []

    def add(self, order: Iterable[Iterable[int]], known: Iterable[int]) -> None:
        """Add a walk over sets of groups, set by set; within a set, cheapest group first."""
        start, have = len(self.steps), set(known)
        for numbers in order:
            rest = [g for g in numbers if self.groups[g].variables]
            while rest:
                at = min(rest, key=lambda g: self._effort(g, have))
                rest.remove(at)
                self.steps.append((at, self._index(at, have)))
                have |= set(self.groups[at].variables)
        self.walks.append((start, len(self.steps) - start))

    def _effort(self, group: int, known: set[int]) -> tuple[int, int, int]:
        """Few unknown variables are cheapest, then many known ones: short chains first."""
        own = set(self.groups[group].variables)
        return len(own - known), -len(own & known), group

    def _index(self, group: int, known: set[int]) -> int:
        variables = self.groups[group].variables
        columns = (0, *(1 + k for k, v in enumerate(variables) if v in known))
        if len(columns) == 1 + len(variables):
            return -1
        if columns not in self.keys:
            self.keys.append(columns)
        index = self.keys.index(columns)
        self.links[group] |= 1 << index
        return index


def plan_instances(patterns: Sequence[Variables], nodes: Nodes) -> InstancePlan:
    """The arrays of a decomposed query.

    `patterns` has the variables of each pattern as its columns come, `nodes` the variables in the
    order in which they get values.

    >>> plan_instances([(0,), (0,)], [(0,)]).layout.full.tolist()
    [[0], [3]]
    """
    groups = make_groups(patterns, nodes)
    needs = [tuple(sorted(d)) for d in dependences(patterns, nodes)]
    by_variables = {group.variables: number for number, group in enumerate(groups)}
    walks = _make_walks(groups, nodes, needs)
    words = [-(-len(group.patterns) // BITS) for group in groups]
    wide = max(len(group.variables) for group in groups)
    kids = [c for group in groups for c in group.dependants]
    return InstancePlan(
        Layout(
            groups=_group_lines(groups, words, walks.links, wide),
            full=_full(groups, max(*words, 1)),
            nodes=_array(
                [(by_variables[n], _count_at(groups, words, n, c)) for c, n in _each(needs)], 2
            ),
            kids=np.array(kids, np.int32),
            steps=_array(walks.steps, 2),
            walks=_array(walks.walks, 2),
            patterns=_array([_place(groups, i) for i in range(len(patterns))], 3),
        ),
        tuple(walks.keys),
        1 + wide,
        max(w + len(g.dependants) for w, g in zip(words, groups, strict=True)),
        tuple(tuple(p.index(v) for v in sorted(set(p))) for p in patterns),
    )


def _each(needs: Sequence[Variables]) -> list[tuple[int, Variables]]:
    return list(enumerate(needs))


def _array(rows: Sequence[Sequence[int]], width: int) -> Ints:
    return np.array(rows, np.int32).reshape(len(rows), width)


def _count_at(
    groups: Sequence[InstanceGroup], words: Sequence[int], need: Variables, node: int
) -> int:
    at = next(i for i, group in enumerate(groups) if group.variables == need)
    return words[at] + groups[at].dependants.index(node)


def _place(groups: Sequence[InstanceGroup], pattern: int) -> tuple[int, int, int]:
    """The group of a pattern, the word of the mask, and its bit there."""
    at = next(i for i, group in enumerate(groups) if pattern in group.patterns)
    place = groups[at].patterns.index(pattern)
    return at, place // BITS, 1 << place % BITS


def _full(groups: Sequence[InstanceGroup], words: int) -> Ints:
    full = np.zeros((len(groups), words), np.int32)
    for at, group in enumerate(groups):
        for place in range(len(group.patterns)):
            full[at, place // BITS] |= 1 << place % BITS
    return full


def _group_lines(
    groups: Sequence[InstanceGroup], words: Sequence[int], links: Sequence[int], wide: int
) -> Ints:
    lines = np.zeros((len(groups), VARIABLES + wide), np.int32)
    first = 0
    for at, group in enumerate(groups):
        many = len(group.variables)
        head = (many, words[at], group.node, links[at], first, len(group.dependants))
        lines[at, :VARIABLES] = head
        lines[at, VARIABLES : VARIABLES + many] = group.variables
        first += len(group.dependants)
    return lines


def _make_walks(
    groups: Sequence[InstanceGroup], nodes: Nodes, needs: Sequence[Variables]
) -> _Walks:
    """For each group a walk over its node, for each group one over all nodes, for each node one.

    Triples match groups with patterns, and only instances with bits are ever counted from scratch:
    walks that are never used are left empty, so that they need no index.
    """
    at_node = [[i for i, g in enumerate(groups) if g.node == at] for at in range(len(nodes))]
    walks = _Walks(groups)
    for number, group in enumerate(groups):
        beside = at_node[group.node] if group.node >= 0 else []
        walks.add([[i for i in beside if i != number]], group.variables)
    for number, group in enumerate(groups):
        order = _from(group.node, [deepest(n, nodes) for n in needs]) if group.patterns else []
        walks.add([[i for i in at_node[at] if i != number] for at in order], group.variables)
    counted = [group.variables for group in groups if group.variables and group.patterns]
    for at, need in enumerate(needs):
        walks.add([at_node[at]] if need in counted else [], need)
    return walks


def _from(node: int, above: Sequence[int]) -> list[int]:
    """All nodes: from one up to the root, then the others from the top down."""
    way = []
    while node >= 0:
        way.append(node)
        node = above[node]
    return [*way, *(at for at in range(len(above)) if at not in way)]
