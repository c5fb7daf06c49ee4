"""Shares: how many ways each partition variable is divided, so that the least is sent twice.

This is HyperCube routing: cells are the points of a grid with one dimension per variable. A quad
goes to the points that agree with the hashes of the variables it binds, and is copied along the
others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import DEFAULT_GRAPH, Distinct, Project, TriplePattern
from graphtide.spark.partition import Leaf, leaves, partition_variables
from graphtide.spark.windows import of_window

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyoxigraph import NamedNode

    from graphtide.algebra.nodes import Node, SelectQuery


MEET, MEET_AND_COUNT = 1.5, 1.8
"""How many times the load must fall before a second stage pays, without and with DISTINCT."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The cells of one query: dimensions with their shares, and the patterns to be routed."""

    variables: tuple[Var, ...]
    shares: tuple[int, ...]
    leaves: tuple[Leaf, ...]

    @property
    def cells(self) -> int:
        """How many cells the grid has."""
        return prod(self.shares)

    def copies(self, leaf: Leaf) -> int:
        """To how many cells a quad of this pattern is sent."""
        spread = zip(self.variables, self.shares, strict=True)
        return prod(share for var, share in spread if var not in leaf.divided_by)

    @property
    def replication(self) -> float:
        """To how many cells a quad is sent on average, if all patterns match equally many."""
        return sum(self.copies(leaf) for leaf in self.leaves) / max(len(self.leaves), 1)


def best_grid(query: SelectQuery, cells: int, sizes: Mapping[str, int] | None = None) -> Grid:
    """The grid of at most `cells` cells that sends the fewest quads to the fullest cell.

    `sizes` gives the number of quads per predicate text; without it all patterns count the same. A
    variable that the answer does not show makes a second stage necessary, so it must save much.
    """
    body = body_of(query)
    variables = tuple(sorted(partition_variables(body), key=lambda v: v.name))
    hidden = frozenset(variables) - frozenset(query.variables)
    price = MEET_AND_COUNT if isinstance(query.root, Distinct) else MEET

    def load(shares: Mapping[Var, int]) -> tuple[float, int, list[str]]:
        grid = _grid(body, shares)
        total = sum(_size(leaf, sizes) * grid.copies(leaf) for leaf in grid.leaves)
        factor = price if hidden & shares.keys() else 1.0
        return factor * total / grid.cells, len(shares), sorted(v.name for v in shares)

    return _grid(body, min(_divisions(variables, cells), key=load))


def whole_grid(query: SelectQuery, graphs: Iterable[NamedNode]) -> Grid:
    """The grid of one cell, which sees all quads of some graphs, whether a pattern asks or not."""
    s, p, o = (Var(f".{name}") for name in "spo")
    asked = (leaf for leaf in leaves(body_of(query), frozenset()) if not _of_window(leaf))
    whole = (Leaf(TriplePattern(s, p, o, graph), frozenset()) for graph in graphs)
    return Grid((), (), tuple(dict.fromkeys([*asked, *whole])))


def graph_grid(grid: Grid) -> Grid:
    """A grid for the quads of the graph: without what is asked of windows."""
    return replace(grid, leaves=tuple(each for each in grid.leaves if not _of_window(each)))


def window_grid(grid: Grid, graph: NamedNode) -> Grid:
    """A grid for the triples of a window: what is asked of it, as of the default graph."""
    asked = (each for each in grid.leaves if each.pattern.graph == graph)
    found = (replace(each, pattern=replace(each.pattern, graph=DEFAULT_GRAPH)) for each in asked)
    return replace(grid, leaves=tuple(found))


def _of_window(leaf: Leaf) -> bool:
    return of_window(leaf.pattern.graph)


def body_of(query: SelectQuery) -> Node:
    """The part of a query below SELECT and DISTINCT, where no variable is hidden yet."""
    root = query.root.child if isinstance(query.root, Distinct) else query.root
    return root.child if isinstance(root, Project) else root


def _grid(root: Node, shares: Mapping[Var, int]) -> Grid:
    variables = tuple(sorted(shares, key=lambda v: v.name))
    found = tuple(dict.fromkeys(leaves(root, frozenset(variables))))
    return Grid(variables, tuple(shares[v] for v in variables), found)


def _divisions(variables: tuple[Var, ...], cells: int) -> Iterator[dict[Var, int]]:
    """Every way to give variables shares above 1 whose product is at most `cells`."""
    yield {}
    for i, var in enumerate(variables):
        for share in range(2, cells + 1):
            for rest in _divisions(variables[i + 1 :], cells // share):
                yield {var: share, **rest}


def _size(leaf: Leaf, sizes: Mapping[str, int] | None) -> int:
    return 1 if sizes is None else sizes.get(str(leaf.pattern.predicate), 1)
