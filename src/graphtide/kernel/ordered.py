"""Values in order, one tree for each group: MIN, MAX and COUNT(DISTINCT) of values that go again.

A *zip tree*: a search tree by `order`, and a heap by ranks, which are drawn from the ids. So its
shape depends on what it has, not on how it came; a value is found, added and removed in logarithmic
time. All trees share their nodes. A tree is known by the number of its root plus 1; 0 is empty.
[Tarjan, Levy, Timmel: Zip Trees, ACM Transactions on Algorithms 17(4), 2021]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphtide.jit import inlined
from graphtide.kernel.rowtable import FREE, HIGH, LIVE, fingerprint, mix

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.kernel.batch import Int, Ints, Longs
    from graphtide.kernel.values import Numbers

LEFT, RIGHT, ID, TIMES = 0, 1, 2, 3
"""Columns of a node: numbers of nodes plus 1, the id of the value, and how often it is there."""

NO_NODES = np.zeros((0, 4), np.int32)


class Trees(NamedTuple):
    """The nodes of all trees, and by what they are ordered."""

    nodes: Ints
    order: Numbers
    meta: Longs


@inlined
def rank_of(id_: Int) -> Int:
    """The rank of a value: n with a probability of one in 2^(n+1)."""
    hash_ = fingerprint(mix(np.uint64(1), id_))
    rank = 0
    while rank < 30 and (hash_ >> rank) & 1:
        rank += 1
    return rank


@inlined
def insert_node(t: Trees, root: Int, node: Int) -> Int:
    """Put a node, without children, into a tree that has not got its value; the new root."""
    key, rank = t.order[node - 1], rank_of(t.nodes[node - 1, ID])
    at = root
    above: Int = 0
    while at != 0:
        other = rank_of(t.nodes[at - 1, ID])
        if rank > other or (rank == other and key < t.order[at - 1]):
            break
        above = at
        at = t.nodes[at - 1, LEFT if key < t.order[at - 1] else RIGHT]
    if above != 0:
        t.nodes[above - 1, LEFT if key < t.order[above - 1] else RIGHT] = node
    # What was there is divided: what comes before the value, and what comes after it.
    lower, upper = node, node
    while at != 0:
        if t.order[at - 1] < key:
            t.nodes[lower - 1, LEFT if lower == node else RIGHT] = at
            lower = at
            at = t.nodes[at - 1, RIGHT]
        else:
            t.nodes[upper - 1, RIGHT if upper == node else LEFT] = at
            upper = at
            at = t.nodes[at - 1, LEFT]
    t.nodes[lower - 1, LEFT if lower == node else RIGHT] = 0
    t.nodes[upper - 1, RIGHT if upper == node else LEFT] = 0
    return root if above != 0 else node


@inlined
def remove_node(t: Trees, root: Int, node: Int) -> Int:
    """Take a node out of its tree; the new root."""
    key = t.order[node - 1]
    at = root
    above: Int = 0
    while at != node:
        above = at
        at = t.nodes[at - 1, LEFT if key < t.order[at - 1] else RIGHT]
    side = LEFT if above != 0 and key < t.order[above - 1] else RIGHT
    left, right = t.nodes[node - 1, LEFT], t.nodes[node - 1, RIGHT]
    first = 0
    while left != 0 or right != 0:  # both are merged, from above
        taken = left
        if left == 0:
            taken = right
        elif right != 0:
            if rank_of(t.nodes[left - 1, ID]) < rank_of(t.nodes[right - 1, ID]):
                taken = right
        if above != 0:
            t.nodes[above - 1, side] = taken
        if first == 0:
            first = taken
        above = taken
        if taken == left:
            left, side = t.nodes[left - 1, RIGHT], RIGHT
        else:
            right, side = t.nodes[right - 1, LEFT], LEFT
    if above != 0:
        t.nodes[above - 1, side] = 0
    return first if node == root else root


@inlined
def find_node(t: Trees, root: Int, key: float) -> Int:
    """The node of a value, or 0."""
    at = root
    while at != 0 and t.order[at - 1] != key:
        at = t.nodes[at - 1, LEFT if key < t.order[at - 1] else RIGHT]
    return at


@inlined
def change_times(t: Trees, root: Int, id_: Int, key: float, diff: Int) -> tuple[Int, Int]:
    """A value so many more times, or fewer; the new root, and how often it was there."""
    node = find_node(t, root, key)
    if node != 0:
        before = np.int64(t.nodes[node - 1, TIMES])
        t.nodes[node - 1, TIMES] = before + diff
        if before + diff == 0:
            root = remove_node(t, root, node)
            t.nodes[node - 1, LEFT] = t.meta[FREE]
            t.meta[FREE] = node
            t.meta[LIVE] -= 1
        return root, before
    if diff == 0:
        return root, np.int64(0)
    node = t.meta[FREE]
    if node != 0:
        t.meta[FREE] = t.nodes[node - 1, LEFT]
    else:
        t.meta[HIGH] += 1
        node = t.meta[HIGH]
    t.order[node - 1] = key
    t.nodes[node - 1, LEFT], t.nodes[node - 1, RIGHT] = 0, 0
    t.nodes[node - 1, ID], t.nodes[node - 1, TIMES] = id_, diff
    t.meta[LIVE] += 1
    return insert_node(t, root, node), np.int64(0)


@inlined
def outermost(t: Trees, root: Int, side: Int) -> Int:
    """The id of the first (LEFT) or last (RIGHT) value of a tree; 0 if it is empty."""
    if root == 0:
        return np.int64(0)
    at = root
    while t.nodes[at - 1, side] != 0:
        at = t.nodes[at - 1, side]
    return np.int64(t.nodes[at - 1, ID])


class OrderedValues:
    """The nodes of the trees of all groups."""

    def __init__(self) -> None:
        self.arrays = Trees(NO_NODES, np.zeros(0), np.zeros(3, np.int64))

    def reserve(self, extra: int) -> None:
        """Make room for so many more values: compiled loops allocate nothing."""
        nodes, order, meta = self.arrays
        needed = int(meta[LIVE]) + extra
        if needed <= len(nodes):
            return
        many = max(needed, len(nodes) * 3 // 2, 16)
        larger, keys = np.zeros((many, 4), np.int32), np.zeros(many)
        larger[: len(nodes)], keys[: len(order)] = nodes, order
        self.arrays = Trees(larger, keys, meta)

    def values(self, root: int) -> Iterator[tuple[int, int]]:
        """The ids of a tree, and how often each is there."""
        rest = [root] if root else []
        while rest:
            left, right, id_, times = self.arrays.nodes[rest.pop() - 1].tolist()
            yield id_, times
            rest += (each for each in (left, right) if each)

    def ids(self) -> Ints:
        """The ids in all trees."""
        nodes = self.arrays.nodes[: self.arrays.meta[HIGH]]
        found: Ints = nodes[nodes[:, TIMES] != 0, ID]
        return found

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.arrays.nodes.nbytes + self.arrays.order.nbytes
