"""`ReachKernel`: demand is counted, edges change, trees come and go, transaction by transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.jit import compiled, inlined
from graphtide.kernel import rowtable as table
from graphtide.kernel.batch import DIFF, TX, VALUES, Int, Ints, as_long, empty_batch
from graphtide.kernel.reach import forest as trees
from graphtide.kernel.reach.forest import Forest
from graphtide.limits import allowance

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.arrays import Ints2, Longs1

COUNTING, CHANGING, SETTLING = 0, 1, 2
"""Phases of a transaction: demand is counted, edges change, trees come and go."""

MOST_WORK = 1 << 14
"""Trees visited and pairs written before the time is checked."""


@inlined
def tie(f: Forest, edge: Int, side: Int) -> None:
    """Put an edge at the front of the edges from its start (0), or to its end (1)."""
    node = f.edges.rows[edge, side]
    first = f.of_node[node, trees.OUT + side]
    f.of_edge[edge, 2 * side + trees.NEXT] = first
    f.of_edge[edge, 2 * side + trees.PREV] = 0
    if first != 0:
        f.of_edge[first - 1, 2 * side + trees.PREV] = edge + 1
    f.of_node[node, trees.OUT + side] = edge + 1


@inlined
def untie(f: Forest, edge: Int, side: Int) -> None:
    """Take an edge out of the edges from its start (0), or to its end (1)."""
    following = f.of_edge[edge, 2 * side + trees.NEXT]
    before = f.of_edge[edge, 2 * side + trees.PREV]
    if following != 0:
        f.of_edge[following - 1, 2 * side + trees.PREV] = before
    if before != 0:
        f.of_edge[before - 1, 2 * side + trees.NEXT] = following
    else:
        f.of_node[f.edges.rows[edge, side], trees.OUT + side] = following


@inlined
def number_of(f: Forest, key: Ints) -> Int:
    """The row of a node, `key[0]`, which is added if it is new."""
    hash_ = table.row_hash(f.nodes.width, key, 0, 0)
    slot = table.find_slot(f.nodes, hash_, key, 0, 0)
    node = np.int64(f.nodes.slots[slot, table.HEAD]) - 1
    if node < 0:
        node = np.int64(table.add_row(f.nodes, slot, hash_, key, 0, 0))
        f.nodes.rows[node, f.nodes.width] = 1
        for k in range(f.of_node.shape[1]):
            f.of_node[node, k] = 0
    return node


@inlined
def forget(f: Forest, node: Int) -> None:
    """Free a node that has no edges, and that nobody wants to know of."""
    tied = f.of_node[node, trees.OUT] != 0 or f.of_node[node, trees.IN] != 0
    if not (tied or f.of_node[node, trees.WANTED] != 0 or f.of_node[node, trees.PLACE] != 0):
        table.remove_row(f.nodes, node)


@inlined
def read_key(f: Forest, rows: Ints, at: Int, column: Int, key: Ints) -> None:
    """The node in a column of a row, with the graph, which is last, if nodes have one."""
    key[0, 0] = rows[at, VALUES + column]
    if f.nodes.width == 2:
        key[0, 1] = rows[at, rows.shape[1] - 1]


@compiled
def begin_change(f: Forest, edges: Ints2, i: Int, every: bool, key: Ints2) -> Int:
    """Insert or delete an edge, and list the trees to look at; how many, or -1 for no change."""
    read_key(f, edges, i, 0, key)
    if edges[i, DIFF] > 0:
        start = number_of(f, key)
        read_key(f, edges, i, 1, key)
        end = number_of(f, key)
    else:
        start = np.int64(table.find_row(f.nodes, key, 0, 0))
        read_key(f, edges, i, 1, key)
        end = np.int64(table.find_row(f.nodes, key, 0, 0))
        if start < 0 or end < 0:
            return -1
    key[1, 0], key[1, 1] = start, end
    hash_ = table.row_hash(2, key, 1, 0)
    slot = table.find_slot(f.edges, hash_, key, 1, 0)
    edge = f.edges.slots[slot, table.HEAD] - 1
    if (edge >= 0) == (edges[i, DIFF] > 0):
        return -1
    found = trees.list_trees(f, start)
    if edge < 0:
        edge = table.add_row(f.edges, slot, hash_, key, 1, 0)
        f.edges.rows[edge, 2] = 1
        tie(f, edge, 0)
        tie(f, edge, 1)
        f.of_node[start, trees.WANTED] += every
    else:
        untie(f, edge, 0)
        untie(f, edge, 1)
        table.remove_row(f.edges, edge)
        f.of_node[start, trees.WANTED] -= every
    return found


@compiled
def change_edge(f: Forest, edges: Ints2, every: bool, key: Ints2, out: Ints2, state: Longs1) -> Int:
    """Insert or delete one edge, tree by tree."""
    i = state[trees.EDGE]
    if state[trees.AT] < 0:
        if (
            f.nodes.meta[table.LIVE] + 2 > f.meta[trees.MOST_NODES]
            or f.edges.meta[table.LIVE] == f.meta[trees.MOST_EDGES]
        ):
            return trees.NODES
        state[trees.LISTED] = begin_change(f, edges, i, every, key)
        if state[trees.LISTED] < 0:
            return trees.DONE
        state[trees.AT] = 0
    start, end = np.int64(key[1, 0]), np.int64(key[1, 1])
    work = 0
    while state[trees.AT] < state[trees.LISTED]:
        source = np.int64(f.listed[state[trees.AT]])
        status: Int = trees.DONE
        parent = trees.parent_of(f, source, end)
        if edges[i, DIFF] < 0:
            if parent == start:
                status = trees.shrink(f, source, end, edges[i, TX], out, state)
        elif parent < 0:
            stamp = trees.visit(f)
            f.of_node[end, trees.MARK] = stamp
            f.queue[0, 0], f.queue[0, 1] = end, start
            status = trees.grow(f, source, 1, stamp, edges[i, TX], out, state)
        if status != trees.DONE:
            return status
        state[trees.AT] += 1
        work += 1
        if work > MOST_WORK:
            return trees.TIME
    state[trees.AT] = -1
    if edges[i, DIFF] < 0:
        forget(f, start)
        if start != end:
            forget(f, end)
    return trees.DONE


@inlined
def drop_tree(f: Forest, source: Int, tx: Int, out: Ints, state: Longs1) -> Int:
    """Remove a tree; its cells are free when trees are compacted."""
    n, size = state[trees.WROTE], f.of_node[source, trees.SIZE]
    if n + size > len(out):
        state[trees.NEED] = size
        return trees.ROWS
    begin = f.places[source, trees.BEGIN]
    if size > 0:
        for k in range(begin, begin + f.places[source, trees.CAPACITY]):
            if f.cells[k, 0] != 0:
                trees.write_pair(f, out, n, tx, -1, source, f.cells[k, 0] - 1)
                n += 1
    last = f.sources[f.meta[trees.TREES] - 1]
    place = f.of_node[source, trees.PLACE]
    f.sources[place - 1] = last
    f.of_node[last, trees.PLACE] = place
    f.of_node[source, trees.PLACE] = 0
    f.of_node[source, trees.SIZE] = 0
    f.places[source, trees.CAPACITY] = 0
    f.meta[trees.TREES] -= 1
    f.meta[trees.PAIRS] -= size
    state[trees.WROTE] = n
    return trees.DONE


@compiled
def settle(f: Forest, source: Int, tx: Int, out: Ints2, state: Longs1) -> Int:
    """Give a node a tree if it is wanted, and none if it is not."""
    wanted = f.of_node[source, trees.WANTED] > 0
    status: Int = trees.DONE
    if wanted and f.of_node[source, trees.PLACE] == 0:
        stamp = trees.visit(f)
        count = 0
        edge = f.of_node[source, trees.OUT]
        while edge != 0:
            end = f.edges.rows[edge - 1, 1]
            f.of_node[end, trees.MARK] = stamp
            f.queue[count, 0], f.queue[count, 1] = end, source
            count += 1
            edge = f.of_edge[edge - 1, trees.NEXT]
        status = trees.grow(f, source, count, stamp, tx, out, state)
        if status == trees.DONE:
            f.sources[f.meta[trees.TREES]] = source
            f.meta[trees.TREES] += 1
            f.of_node[source, trees.PLACE] = f.meta[trees.TREES]
    elif not wanted and f.of_node[source, trees.PLACE] != 0:
        status = drop_tree(f, source, tx, out, state)
    if status == trees.DONE:
        forget(f, source)
    return status


@compiled
def reach_step(
    f: Forest, edges: Ints2, sources: Ints2, every: bool, key: Ints2, out: Ints2, state: Longs1
) -> Int:
    """Process both inputs transaction by transaction; why it stops before the end, or trees.DONE.

    In a transaction trees are made after the edges have changed: a bulk load is one search a tree.
    """
    before = state[trees.WROTE]
    while (
        state[trees.EDGE] < len(edges)
        or state[trees.SOURCE] < len(sources)
        or state[trees.PHASE] != COUNTING
    ):
        # The transaction that is under way, or the next one.
        tx = np.int64(1) << 40
        if state[trees.FIRST_EDGE] < len(edges):
            tx = np.int64(edges[state[trees.FIRST_EDGE], TX])
        if state[trees.FIRST_SOURCE] < len(sources):
            tx = min(tx, np.int64(sources[state[trees.FIRST_SOURCE], TX]))
        if state[trees.PHASE] == COUNTING:
            while state[trees.SOURCE] < len(sources) and sources[state[trees.SOURCE], TX] == tx:
                if f.nodes.meta[table.LIVE] == f.meta[trees.MOST_NODES]:
                    return trees.NODES
                read_key(f, sources, state[trees.SOURCE], 0, key)
                f.of_node[number_of(f, key), trees.WANTED] += sources[state[trees.SOURCE], DIFF]
                state[trees.SOURCE] += 1
            state[trees.PHASE] = CHANGING
        if state[trees.PHASE] == CHANGING:
            while state[trees.EDGE] < len(edges) and edges[state[trees.EDGE], TX] == tx:
                status = change_edge(f, edges, every, key, out, state)
                if status != trees.DONE:
                    return status
                state[trees.EDGE] += 1
                if state[trees.WROTE] - before > MOST_WORK:
                    return trees.TIME
            state[trees.PHASE] = SETTLING
        rows, at, end = sources, trees.FIRST_SOURCE, trees.SOURCE
        if every:
            rows, at, end = edges, trees.FIRST_EDGE, trees.EDGE
        while state[at] < state[end]:
            read_key(f, rows, state[at], 0, key)
            source = np.int64(table.find_row(f.nodes, key, 0, 0))
            if source >= 0:
                status = settle(f, source, tx, out, state)
                if status != trees.DONE:
                    return status
            state[at] += 1
            if state[trees.WROTE] - before > MOST_WORK:
                return trees.TIME
        state[trees.FIRST_EDGE], state[trees.FIRST_SOURCE] = state[trees.EDGE], state[trees.SOURCE]
        state[trees.PHASE] = COUNTING
    return trees.DONE


class ReachKernel:
    """The pairs connected by one or more edges; graphs, a third column, are separate.

    `step` takes edges, as a set, and the demanded sources, each as often as it is demanded; with
    `every`, all nodes are sources.

    >>> from graphtide.kernel.batch import make_batch
    >>> reach = ReachKernel(2)
    >>> edges = make_batch([(0, 1, 5, 6), (0, 1, 6, 7), (2, -1, 5, 6)], 2)
    >>> reach.step(edges, make_batch([(1, 1, 5)], 1)).tolist()
    [[1, 1, 5, 6], [1, 1, 5, 7], [2, -1, 5, 6], [2, -1, 5, 7]]
    """

    def __init__(self, width: int, *, every: bool = False) -> None:
        self._width = width
        self._every = every
        self._none = empty_batch(width - 1)
        self._key = np.zeros((2, 2), np.int32)
        self._nodes = table.RowTable(width - 1)
        self._edges = table.RowTable(2)
        nothing = np.empty(0, np.int32)
        self._forest = Forest(
            nodes=self._nodes.arrays,
            edges=self._edges.arrays,
            of_node=np.empty((0, 6), np.int32),
            of_edge=np.empty((0, 4), np.int32),
            places=np.empty((0, 2), np.int64),
            cells=np.empty((16, 2), np.int32),
            sources=nothing,
            listed=nothing,
            queue=np.empty((0, 2), np.int32),
            meta=np.zeros(6, np.int64),
        )
        self._reserve()

    def step(self, edges: Ints, sources: Ints | None = None) -> Ints:
        """The pairs that come to be connected, or cease to be; `LimitError` if they are many."""
        sources = self._none if sources is None else sources
        out: Ints = np.empty((len(edges) + 4 * len(sources) + 16, VALUES + self._width), np.int32)
        state = np.zeros(9, np.int64)
        state[trees.AT] = -1
        status = None
        while status != trees.DONE:
            status = reach_step(self._forest, edges, sources, self._every, self._key, out, state)
            self._check_limits()
            if status == trees.ROWS:
                out = _longer(out, int(state[trees.WROTE]), int(state[trees.NEED]))
            elif status == trees.CELLS:
                self._compact(int(state[trees.NEED]))
            elif status == trees.NODES:
                self._reserve()
        meta = self._forest.meta
        if meta[trees.USED] > max(2 * meta[trees.PAIRS], 1 << 12):
            self._compact(0)
        wrote = int(state[trees.WROTE])
        return out[:wrote].copy() if 2 * wrote < len(out) else out[:wrote]

    def _check_limits(self) -> None:
        left = allowance()
        meta = self._forest.meta
        most, pairs = left.limits.path_pairs, int(meta[trees.PAIRS])
        if most is not None and pairs > most:
            raise left.limits.error(
                "path_pairs",
                f"a property path connects too many nodes: {pairs:,} pairs so far",
            )
        left.check_time()
        if meta[trees.STAMP] > 1 << 30:
            self._forest.of_node[:, trees.MARK] = 0
            meta[trees.STAMP] = 0

    def _reserve(self) -> None:
        """Make room for more nodes and edges."""
        f, meta = self._forest, self._forest.meta.copy()
        self._nodes.arrays, self._edges.arrays = f.nodes, f.edges  # as of the last success
        rooms = [t.reserve(max(8, len(t) // 2)) for t in (self._nodes, self._edges)]
        meta[trees.MOST_NODES] = len(self._nodes) + rooms[0]
        meta[trees.MOST_EDGES] = len(self._edges) + rooms[1]
        nodes, edges = self._nodes.arrays, self._edges.arrays
        many = len(nodes.rows)
        self._forest = Forest(
            nodes=nodes,
            edges=edges,
            of_node=as_long(f.of_node, many),
            of_edge=as_long(f.of_edge, len(edges.rows)),
            places=as_long(f.places, many),
            cells=f.cells,
            sources=as_long(f.sources, many),
            listed=as_long(f.listed, many),
            queue=as_long(f.queue, many),
            meta=meta,
        )

    def _compact(self, need: int) -> None:
        """Move all trees to cells without gaps, with room for `need` cells and some more."""
        f = self._forest
        sizes = f.of_node[f.sources[: f.meta[trees.TREES]], trees.SIZE]
        used = int((sizes.astype(np.int64) * 4 // 3 + 1).sum()) + need
        room = used * 3 // 2 if used < 1 << 20 else used * 9 // 8
        allowance().allow(8 * room)
        # Other arrays for all that changes: an interrupt leaves the old ones as they were.
        moved = f._replace(
            cells=np.empty((max(room, 16), 2), np.int32),
            places=np.zeros_like(f.places),
            meta=f.meta.copy(),
        )
        trees.compact(f, moved)
        self._forest = moved

    def held_ids(self) -> Iterator[Ints]:
        """The nodes of all edges, which are those of the trees too, the sources, and the graphs."""
        return self._nodes.held_ids()

    def sizes(self) -> dict[str, int]:
        """Edges and pairs held."""
        return {"edges": len(self._edges), "pairs": int(self._forest.meta[trees.PAIRS])}

    @property
    def nbytes(self) -> int:
        """Bytes held, reserve included."""
        own = sum(array.nbytes for array in self._forest[2:])
        return self._nodes.nbytes + self._edges.nbytes + own


def _longer(out: Ints, wrote: int, need: int) -> Ints:
    size = max(2 * len(out), wrote + need)
    allowance().allow(size * out.shape[1] * out.itemsize)
    return as_long(out[:wrote], size)
