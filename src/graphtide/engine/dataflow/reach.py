"""Transitive closure (property paths `+` and `*`): which nodes reach which, under edge changes.

For every source there is a spanning tree of the nodes it reaches: each has one parent, the node it
was first reached from. That is a set of pairs, whatever the number of paths. An inserted edge lets
trees grow from its end. A deleted edge only matters to the trees that it is part of: the nodes
below it look for another parent that is still reached, and those that find none are removed (delete
and rederive). The cost is that of the nodes affected and their edges.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from graphtide.kernel.batch import DIFF, TX, VALUES, Ints, make_batch
from graphtide.limits import allowance

if TYPE_CHECKING:
    from collections.abc import Iterator

Neighbours = dict[int, set[int]]
Tree = dict[int, int]
"""The parent of each node reached; that of the first ones is the source itself."""


class Reach:
    """The pairs connected by one or more edges; `step` takes edges, as a set, and gives pairs.

    Rows are `[from, to]`, or `[from, to, graph]`: graphs are separate. Sources are all nodes,
    or the node `only`.
    """

    def __init__(self, width: int, only: int | None = None) -> None:
        self._width = width
        self._only = only
        self._pairs = 0
        self._graphs: dict[int, EdgeGraph] = defaultdict(lambda: EdgeGraph(only))

    def step(self, batch: Ints) -> Ints:
        """The pairs that come to be connected, or cease to be; `LimitError` if they are too many.

        The time is checked for every new source of pairs: each has at most all nodes.
        """
        out: list[tuple[int, ...]] = []
        for line in batch.tolist():
            graph = line[VALUES + 2 :]
            edges = self._graphs[graph[0] if graph else 0]
            start, end = line[VALUES], line[VALUES + 1]
            if line[DIFF] > 0:
                found, sign = edges.insert(start, end, held=self._pairs), 1
            else:
                found, sign = edges.delete(start, end), -1
            self._pairs += sign * len(found)
            out += [(line[TX], sign, *pair, *graph) for pair in found]
            if not edges.after:
                del self._graphs[graph[0] if graph else 0]
        return make_batch(out, self._width)

    def held_ids(self) -> Iterator[Ints]:
        """The graphs and the nodes of all edges, which are those of the trees too; the source."""
        yield np.array([self._only or 0, *self._graphs], np.int32)
        for edges in self._graphs.values():
            yield np.fromiter(edges.after, np.int32, len(edges.after))
            yield np.fromiter(edges.before, np.int32, len(edges.before))

    def sizes(self) -> dict[str, int]:
        """Edges and pairs held."""
        graphs = self._graphs.values()
        return {
            "edges": sum(len(ends) for edges in graphs for ends in edges.after.values()),
            "pairs": sum(len(tree) for edges in graphs for tree in edges.trees.values()),
        }

    @property
    def nbytes(self) -> int:
        """Bytes held, about: these are Python dictionaries and sets."""
        held = self.sizes()
        return 150 * held["edges"] + 120 * held["pairs"]


class EdgeGraph:
    """The edges of one graph, both ways, and a tree per source."""

    def __init__(self, only: int | None) -> None:
        self.after: Neighbours = defaultdict(set)
        self.before: Neighbours = defaultdict(set)
        self.trees: dict[int, Tree] = {}
        self._only = only
        self._reached_by: dict[int, set[int]] = defaultdict(set)

    def insert(self, start: int, end: int, *, held: int) -> list[tuple[int, int]]:
        """An edge comes; the pairs that it connects, where so many pairs are held already."""
        left = allowance()
        most = left.limits.path_pairs
        self.after[start].add(end)
        self.before[end].add(start)
        sources = set(self._reached_by.get(start, ()))
        if self._only is None or start == self._only:
            sources.add(start)
        found: list[tuple[int, int]] = []
        for source in sources:
            tree = self.trees.setdefault(source, {})
            if end not in tree:
                found += ((source, node) for node in self._grow(tree, source, start, end))
                if most is not None and held + len(found) > most:
                    raise left.limits.error("path_pairs", "a property path connects too many nodes")
                left.check_time()
        return found

    def _grow(self, tree: Tree, source: int, parent: int, node: int) -> list[int]:
        """Let a tree reach a node, and everything from there."""
        tree[node] = parent
        found = [node]
        for each in found:
            self._reached_by[each].add(source)
            for following in self.after.get(each, ()):
                if following not in tree:
                    tree[following] = each
                    found.append(following)
        return found

    def delete(self, start: int, end: int) -> list[tuple[int, int]]:
        """An edge goes; the pairs that are connected no longer."""
        self._cut(self.after, start, end)
        self._cut(self.before, end, start)
        sources = [s for s in self._reached_by.get(end, ()) if self.trees[s].get(end) == start]
        lost: list[tuple[int, int]] = []
        for source in sources:
            tree = self.trees[source]
            for node in self._lose(tree, source, end):
                lost.append((source, node))
                self._cut(self._reached_by, node, source)
            if not tree:
                del self.trees[source]
        return lost

    @staticmethod
    def _cut(neighbours: Neighbours, node: int, other: int) -> None:
        neighbours[node].discard(other)
        if not neighbours[node]:
            del neighbours[node]

    def _lose(self, tree: Tree, source: int, top: int) -> set[int]:
        """Take a node and what hangs on it out of a tree, and back in what is reached otherwise."""
        affected = set(self._below(tree, source, top))
        for node in affected:
            del tree[node]
        again = [node for node in affected if self._adopt(tree, source, node)]
        for node in again:
            for following in self.after.get(node, ()):
                if following in affected and following not in tree:
                    tree[following] = node
                    again.append(following)
        return affected - tree.keys()

    def _below(self, tree: Tree, source: int, top: int) -> Iterator[int]:
        """A node of a tree and all that were reached through it; never through the source."""
        found = [top]
        for node in found:
            yield node
            if node != source:
                found += [n for n in self.after.get(node, ()) if tree.get(n) == node]

    def _adopt(self, tree: Tree, source: int, node: int) -> bool:
        """Find a node another parent that is still reached."""
        for parent in self.before.get(node, ()):
            if parent == source or parent in tree:
                tree[node] = parent
                return True
        return False
