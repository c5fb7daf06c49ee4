"""Transitive closure (property paths `+` and `*`): what demanded sources reach, under edge changes.

For every demanded source there is a spanning tree of the nodes it reaches: a set of pairs, whatever
the number of paths. A new edge lets trees grow from its end. A deleted edge matters only to the
trees that it is part of: the nodes below it look for another parent that is still reached, and
those that find none are removed (delete and rederive).

    nodes, edges  row tables; a node is known by its row, an edge by the rows of its ends
    of_node       first edges in and out, and the size and place of the node's tree, if it is wanted
    of_edge       the next and previous edge from the same node, and to the same node
    cells         all trees: a hash table of (node + 1, parent) each, between 8 and 16 bytes a pair

Which trees have a node is not stored: they are found by a search backwards from it, or, where that
would meet more nodes than there are trees, by looking into each tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphtide.arrays import bundle
from graphtide.jit import compiled, inlined
from graphtide.kernel.batch import DIFF, TX, VALUES

if TYPE_CHECKING:
    from graphtide.arrays import Ints1, Ints2, Longs1, Longs2
    from graphtide.kernel.batch import Int, Ints
    from graphtide.kernel.rowtable import Table

OUT, IN, MARK, WANTED, PLACE, SIZE = range(6)
"""Columns of `of_node`: first edges + 1, stamp of the last visit, demand, place in `sources` + 1
(0: no tree), and the tree's nodes."""

BEGIN, CAPACITY = 0, 1
"""Columns of `places`: a tree's first cell, and how many cells it has."""

NEXT, PREV = 0, 1
"""Columns of `of_edge`, from the same node; two further on, to the same node."""

USED, PAIRS, TREES, STAMP, MOST_NODES, MOST_EDGES = range(6)
"""Cells of `meta`: cells given to trees, pairs, trees, the stamp of the present visit, and how many
nodes and edges there is room for."""

PHASE, EDGE, SOURCE, FIRST_EDGE, FIRST_SOURCE, AT, LISTED, WROTE, NEED = range(9)
"""Cells of `state`: where a step is, so that it can go on when it has more room."""

DONE, ROWS, CELLS, NODES, TIME = range(5)
"""Why a step returns: it is through, it needs room, or the time is to be checked."""

SHORT_WAY, FEW_EDGES = 64, 16
"""How far, and from how many edges, another way to the source is looked for at once."""


@bundle
class Forest(NamedTuple):
    """The arrays of a `ReachKernel`, as compiled loops take them."""

    nodes: Table
    edges: Table
    of_node: Ints2
    of_edge: Ints2
    places: Longs2
    cells: Ints2
    sources: Ints1
    listed: Ints1
    queue: Ints2
    meta: Longs1


@inlined
def home(node: Int, capacity: Int) -> Int:
    """The cell where a node is looked for first, in a tree of any capacity."""
    mixed = (np.uint64(node) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
    return np.int64((mixed * np.uint64(capacity)) >> np.uint64(32))


@inlined
def find_cell(f: Forest, source: Int, node: Int) -> Int:
    """The cell of a node in a tree that has cells, or the empty one where it would be."""
    capacity = f.places[source, CAPACITY]
    begin = f.places[source, BEGIN]
    at = home(node, capacity)
    while f.cells[begin + at, 0] != 0 and f.cells[begin + at, 0] != node + 1:
        at += 1
        if at == capacity:
            at = 0
    return begin + at


@inlined
def parent_of(f: Forest, source: Int, node: Int) -> Int:
    """The parent of a node in a tree, or -1 if the source does not reach it."""
    if f.of_node[source, SIZE] == 0:
        return np.int64(-1)
    cell = find_cell(f, source, node)
    return np.int64(f.cells[cell, 1]) if f.cells[cell, 0] != 0 else np.int64(-1)


@inlined
def empty_cell(f: Forest, source: Int, node: Int) -> None:
    """Take a node out of a tree, moving later cells of its probe sequence back."""
    capacity = f.places[source, CAPACITY]
    begin = f.places[source, BEGIN]
    gap = find_cell(f, source, node) - begin
    probe = gap
    while True:
        probe += 1
        if probe == capacity:
            probe = 0
        entry = f.cells[begin + probe, 0]
        if entry == 0:
            break
        first = home(entry - 1, capacity)
        if (probe - first + capacity) % capacity >= (probe - gap + capacity) % capacity:
            f.cells[begin + gap, 0] = entry
            f.cells[begin + gap, 1] = f.cells[begin + probe, 1]
            gap = probe
    f.cells[begin + gap, 0] = 0


@inlined
def visit(f: Forest) -> Int:
    """A new stamp: no node is marked with it."""
    f.meta[STAMP] += 1
    return f.meta[STAMP]


@inlined
def write_pair(f: Forest, out: Ints, n: Int, tx: Int, diff: Int, source: Int, node: Int) -> None:
    """Write a pair that comes or goes, with the graph, if nodes have one."""
    out[n, TX] = tx
    out[n, DIFF] = diff
    out[n, VALUES] = f.nodes.rows[source, 0]
    out[n, VALUES + 1] = f.nodes.rows[node, 0]
    if f.nodes.width == 2:
        out[n, VALUES + 2] = f.nodes.rows[source, 1]


@inlined
def move_tree(f: Forest, to: Forest, source: Int, begin: Int, capacity: Int) -> None:
    """Move a tree to other cells, of another forest's arrays or the same."""
    for k in range(begin, begin + capacity):
        to.cells[k, 0] = 0
    old = f.places[source, BEGIN]
    for k in range(old, old + f.places[source, CAPACITY]):
        if f.cells[k, 0] != 0:
            at = home(f.cells[k, 0] - 1, capacity)
            while to.cells[begin + at, 0] != 0:
                at += 1
                if at == capacity:
                    at = 0
            to.cells[begin + at, 0] = f.cells[k, 0]
            to.cells[begin + at, 1] = f.cells[k, 1]
    to.places[source, BEGIN] = begin
    to.places[source, CAPACITY] = capacity


@compiled
def compact(f: Forest, to: Forest) -> None:
    """Move all trees to the cells of another forest, each with just enough of them."""
    used = 0
    for k in range(f.meta[TREES]):
        source = f.sources[k]
        capacity = f.of_node[source, SIZE] * 4 // 3 + 1
        move_tree(f, to, source, used, capacity)
        used += capacity
    to.meta[USED] = used


@compiled
def grow(f: Forest, source: Int, count: Int, stamp: Int, tx: Int, out: Ints2, state: Longs1) -> Int:
    """Let a tree have `count` nodes in the queue, which are marked, and all that follow them.

    Changes nothing if there is no room for that.
    """
    i = 0
    while i < count:
        edge = f.of_node[f.queue[i, 0], OUT]
        while edge != 0:
            end = f.edges.rows[edge - 1, 1]
            if f.of_node[end, MARK] != stamp:
                f.of_node[end, MARK] = stamp
                if parent_of(f, source, end) < 0:
                    f.queue[count, 0] = end
                    f.queue[count, 1] = f.queue[i, 0]
                    count += 1
            edge = f.of_edge[edge - 1, NEXT]
        i += 1
    n = state[WROTE]
    if n + count > len(out):
        state[NEED] = count
        return ROWS
    size = f.of_node[source, SIZE] + count
    if size * 8 > f.places[source, CAPACITY] * 7:
        capacity = size * 4 // 3 + 1 if size == count else size * 3 // 2 + 1
        if f.meta[USED] + capacity > len(f.cells):
            state[NEED] = capacity
            return CELLS
        move_tree(f, f, source, f.meta[USED], capacity)
        f.meta[USED] += capacity
    f.of_node[source, SIZE] = size
    f.meta[PAIRS] += count
    for i in range(count):
        cell = find_cell(f, source, f.queue[i, 0])
        f.cells[cell, 0] = f.queue[i, 0] + 1
        f.cells[cell, 1] = f.queue[i, 1]
        write_pair(f, out, n, tx, 1, source, f.queue[i, 0])
        n += 1
    state[WROTE] = n
    return DONE


@inlined
def other_way(f: Forest, source: Int, top: Int) -> Int:
    """Another parent of a node that does not hang on it, if one is found quickly; or -1."""
    edge = f.of_node[top, IN]
    tried = 0
    while edge != 0 and tried < FEW_EDGES:
        start = np.int64(f.edges.rows[edge - 1, 0])
        at: Int = start
        steps = 0
        while at >= 0 and at != source and at != top and steps < SHORT_WAY:
            at = parent_of(f, source, at)
            steps += 1
        if at == source:
            return start
        edge = f.of_edge[edge - 1, 2 + NEXT]
        tried += 1
    return np.int64(-1)


@compiled
def shrink(f: Forest, source: Int, top: Int, tx: Int, out: Ints2, state: Longs1) -> Int:
    """The edge to a node of a tree is gone: remove what hung on it and is not reached otherwise."""
    start = other_way(f, source, top)
    if start >= 0:
        f.cells[find_cell(f, source, top), 1] = start
        return DONE
    stamp = visit(f)
    f.of_node[top, MARK] = stamp
    f.queue[0, 0] = top
    count = 1
    i = 0
    while i < count:
        node = f.queue[i, 0]
        edge = f.of_node[node, OUT] if node != source else np.int32(0)
        while edge != 0:
            end = f.edges.rows[edge - 1, 1]
            if f.of_node[end, MARK] != stamp and parent_of(f, source, end) == node:
                f.of_node[end, MARK] = stamp
                f.queue[count, 0] = end
                count += 1
            edge = f.of_edge[edge - 1, NEXT]
        i += 1
    n = state[WROTE]
    if n + count > len(out):
        state[NEED] = count
        return ROWS
    again = 0
    for i in range(count):
        node = f.queue[i, 0]
        edge = f.of_node[node, IN]
        while edge != 0:
            start = np.int64(f.edges.rows[edge - 1, 0])
            if start == source or (
                f.of_node[start, MARK] != stamp and parent_of(f, source, start) >= 0
            ):
                f.cells[find_cell(f, source, node), 1] = start
                f.of_node[node, MARK] = 0
                f.queue[again, 1] = node
                again += 1
                break
            edge = f.of_edge[edge - 1, 2 + NEXT]
    i = 0
    while i < again:
        node = f.queue[i, 1]
        edge = f.of_node[node, OUT]
        while edge != 0:
            end = f.edges.rows[edge - 1, 1]
            if f.of_node[end, MARK] == stamp:
                f.cells[find_cell(f, source, end), 1] = node
                f.of_node[end, MARK] = 0
                f.queue[again, 1] = end
                again += 1
            edge = f.of_edge[edge - 1, NEXT]
        i += 1
    for i in range(count):
        node = f.queue[i, 0]
        if f.of_node[node, MARK] == stamp:
            empty_cell(f, source, node)
            write_pair(f, out, n, tx, -1, source, node)
            n += 1
    f.of_node[source, SIZE] -= n - state[WROTE]
    f.meta[PAIRS] -= n - state[WROTE]
    state[WROTE] = n
    return DONE


@compiled
def list_trees(f: Forest, node: Int) -> Int:
    """List the sources of the trees that have a node, or begin there; how many."""
    trees = f.meta[TREES]
    if trees == 0:
        return 0
    stamp = visit(f)
    f.of_node[node, MARK] = stamp
    f.queue[0, 0] = node
    found, count, i, looked = 0, 1, 0, 0
    while i < count and looked <= 2 * trees:
        at = f.queue[i, 0]
        if f.of_node[at, PLACE] != 0:
            f.listed[found] = at
            found += 1
        edge = f.of_node[at, IN]
        while edge != 0 and looked <= 2 * trees:
            start = f.edges.rows[edge - 1, 0]
            if f.of_node[start, MARK] != stamp:
                f.of_node[start, MARK] = stamp
                f.queue[count, 0] = start
                count += 1
            edge = f.of_edge[edge - 1, 2 + NEXT]
            looked += 1
        i += 1
    if looked <= 2 * trees:
        return found
    found = 0
    for k in range(trees):
        source = f.sources[k]
        if source == node or parent_of(f, source, node) >= 0:
            f.listed[found] = source
            found += 1
    return found
