"""Grids: by which variables a query is partitioned, and how many ways each of them is divided.

A query can be partitioned by a variable if a partition that sees only the quads with its own values
of that variable still finds exactly its share of the rows. Where a pattern mentions the variable
but must be seen whole (it could show that a row has no partner anywhere), it is sent to every
partition.

Why it is exact. Let `own(R)` be the rows of R whose values of the variables `by` hash to a
partition, and say that a node is right if `own` of its rows in the partition equals `own` of its
rows on the whole graph. `by` always holds variables that are bound in every row of the node.

- A basic graph pattern is right: an own row's quads have own values, so they are all there; and the
  partition has no quads that the graph lacks.
- A join is right: an own row joins a row that is own in what the left side binds with one that is
  own in what the right side binds. A union is right if both sides are.
- A row of the left side of OPTIONAL or MINUS has the same partners in the partition as in the
  graph: the right side is divided only by variables that it binds in every row, and partners agree
  on them. So it is with EXISTS, whose pattern is evaluated with the values of an own row.
- Filters, BIND, DISTINCT and projections that keep the variables look at single rows.
- Groups are right if the variables are among their keys: all rows of an own group are own. So it is
  with ranges of an order that are taken for each value of the variables.
- A path is not divided: its edges are sent to every partition. (In the Rete layout they are not.)

The division is HyperCube routing: partitions are the points of a grid with one dimension per
variable. A quad goes to the points that agree with the hashes of the variables it binds, and is
copied along the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np

from graphtide.algebra import nodes as alg
from graphtide.algebra.expressions import Call, Const, Exists, Expression, Var
from graphtide.algebra.nodes import DefaultGraph, MergedGraph, TriplePattern
from graphtide.algebra.paths import link_iris, matches_zero_length
from graphtide.algebra.variables import certain, pattern_variables
from graphtide.patterns.tables import key_of
from graphtide.spark.partition.hashing import TermHashes, mixed_hashes, text_hashes
from graphtide.spark.partition.windows import of_window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray
    from pyoxigraph import NamedNode

    from graphtide.kernel.batch import Longs
    from graphtide.patterns.automaton import Automaton
    from graphtide.rules.model import EventType, Rule
    from graphtide.spark.partition.columns import TermColumn


@dataclass(frozen=True, slots=True)
class Leaf:
    """A pattern of a query, and the variables by which its quads may be divided."""

    pattern: alg.TriplePattern
    divided_by: frozenset[Var]


def partition_variables(node: alg.Node) -> frozenset[Var]:
    """The variables by which a query can be partitioned.

    >>> a, b, c, p = (Var(name) for name in "abcp")
    >>> ab, bc = alg.Bgp((alg.TriplePattern(a, p, b),)), alg.Bgp((alg.TriplePattern(b, p, c),))
    >>> sorted(v.name for v in partition_variables(alg.LeftJoin(ab, bc)))
    ['a', 'b', 'p']
    >>> partition_variables(alg.Union(ab, alg.Bgp((alg.TriplePattern(c, c, c),))))
    frozenset()
    """
    match node:
        case alg.Bgp() | alg.GraphNames():
            return certain(node)
        case alg.Join(left, right):
            return partition_variables(left) | partition_variables(right)
        case alg.LeftJoin(left, _) | alg.Minus(left, _):
            return partition_variables(left)
        case alg.Union(left, right):
            return partition_variables(left) & partition_variables(right)
        case alg.Filter(_, child) | alg.Distinct(child):
            return partition_variables(child)
        case alg.Project(child, variables):
            return partition_variables(child) & frozenset(variables)
        case alg.Extend(child, var, _):
            return partition_variables(child) - {var}
        case alg.Values() | alg.Path():
            return frozenset()
        case alg.Group(child, keys):
            return partition_variables(child) & frozenset(keys)
        case alg.Slice(child, per=per):
            return partition_variables(child) & frozenset(per)
        case _:
            assert_never(node)


def leaves(node: alg.Node, by: frozenset[Var]) -> Iterator[Leaf]:
    """Every pattern of a query that is partitioned by the variables `by`."""
    match node:
        case alg.Bgp(patterns):
            each = (p for pattern in patterns for p in in_each_graph(pattern))
            yield from (Leaf(p, by & frozenset(pattern_variables(p))) for p in each)
        case alg.Path():
            yield from (Leaf(p, frozenset()) for step in steps(node) for p in in_each_graph(step))
        case alg.GraphNames(var):
            yield Leaf(alg.TriplePattern(Var(".s"), Var(".p"), Var(".o"), var), by & {var})
        case alg.Join(left, right):
            for side in (left, right):
                yield from leaves(side, by & partition_variables(side))
        case alg.Union(left, right):
            yield from leaves(left, by)
            yield from leaves(right, by)
        case alg.LeftJoin(left, right, condition):
            yield from leaves(left, by)
            yield from leaves(right, by & partition_variables(right))
            if condition is not None:
                yield from _inside(condition, by)
        case alg.Minus(left, right):
            yield from leaves(left, by)
            yield from leaves(right, by & partition_variables(right))
        case alg.Filter(condition, child):
            yield from leaves(child, by)
            yield from _inside(condition, by)
        case alg.Extend(child, _, expression):
            yield from leaves(child, by)
            yield from _inside(expression, by)
        case alg.Project(child, _) | alg.Distinct(child) | alg.Group(child) | alg.Slice(child):
            yield from leaves(child, by)
        case alg.Values():
            return
        case _:
            assert_never(node)


def in_each_graph(pattern: alg.TriplePattern) -> list[alg.TriplePattern]:
    """A pattern asked of several graphs as one, asked of each of them."""
    graph = pattern.graph
    if not isinstance(graph, alg.MergedGraph):
        return [pattern]
    if graph.names is None:
        return [replace(pattern, graph=each) for each in (alg.DEFAULT_GRAPH, Var(".g"))]
    return [replace(pattern, graph=each) for each in graph.names]


def steps(node: alg.Path) -> list[alg.TriplePattern]:
    """The patterns of the quads that a path may lead over, or that make its ends exist."""
    s, o = Var(".s"), Var(".o")
    links = link_iris(node.path)
    open_ends = isinstance(node.subject, Var) and isinstance(node.object, Var)
    if links is None or (
        matches_zero_length(node.path) and (open_ends or isinstance(node.graph, Var))
    ):
        return [alg.TriplePattern(s, Var(".p"), o, node.graph)]
    return [alg.TriplePattern(s, iri, o, node.graph) for iri in links]


def _inside(expression: Expression, by: frozenset[Var]) -> Iterator[Leaf]:
    """The patterns of EXISTS inside an expression."""
    match expression:
        case Exists(pattern):
            yield from leaves(pattern, by & partition_variables(pattern))
        case Call(_, args):
            for arg in args:
                yield from _inside(arg, by)
        case Var() | Const():
            return
        case _:
            assert_never(expression)


CONSOLIDATE, CONSOLIDATE_AND_COUNT = 1.5, 1.8
"""How many times the load must fall before a second stage pays, without and with DISTINCT."""


ALL_SHARES = 256
"""Up to so many partitions every way to divide them is considered."""


@dataclass(frozen=True, slots=True)
class Hub:
    """A frequent value of a variable; its rows are divided by another grid, by other variables."""

    variable: Var
    term: str
    grid: Grid


@dataclass(frozen=True, slots=True)
class Grid:
    """The partitions of one query: dimensions with their shares, and the patterns to be routed.

    A row that has the value of a hub belongs to a point of the hub's grid (`partition.hubs`). A
    grid without dimensions is the partition `home`.
    """

    variables: tuple[Var, ...]
    shares: tuple[int, ...]
    leaves: tuple[Leaf, ...]
    hubs: tuple[Hub, ...] = ()
    home: int = 0

    @property
    def partitions(self) -> int:
        """How many partitions the grid has."""
        return prod(self.shares)

    @property
    def columns(self) -> tuple[Var, ...]:
        """All variables that decide to which partition a row belongs."""
        others = (var for hub in self.hubs for var in hub.grid.variables)
        return tuple(dict.fromkeys((*self.variables, *others)))

    def copies(self, leaf: Leaf) -> int:
        """To how many partitions a quad of this pattern is sent."""
        spread = zip(self.variables, self.shares, strict=True)
        return prod(share for var, share in spread if var not in leaf.divided_by)

    @property
    def replication(self) -> float:
        """To how many partitions a quad is sent on average, if all patterns match equally many."""
        return sum(self.copies(leaf) for leaf in self.leaves) / max(len(self.leaves), 1)


def best_grid(
    query: alg.SelectQuery, partitions: int, sizes: Mapping[str, int] | None = None
) -> Grid:
    """The grid with at most so many partitions that sends the fewest quads to the fullest one.

    `sizes` gives the number of quads per predicate text; without it all patterns count the same. A
    variable that the answer does not show makes a second stage necessary, so it must save much.
    """
    body = body_of(query)
    hidden = partition_variables(body) - frozenset(query.variables)
    price = CONSOLIDATE_AND_COUNT if isinstance(query.root, alg.Distinct) else CONSOLIDATE
    prices = dict.fromkeys(hidden, price)
    return lightest_grid(
        body, partition_variables(body), partitions, lambda leaf: _size(leaf, sizes), prices
    )


def lightest_grid(
    body: alg.Node,
    variables: Iterable[Var],
    partitions: int,
    size: Callable[[Leaf], int],
    prices: Mapping[Var, float],
    fixed: frozenset[Var] = frozenset(),
) -> Grid:
    """The grid by some variables with the least load in the fullest partition.

    `size` gives the quads of a pattern. By a variable that has a price, the load must fall so many
    times. The value of a `fixed` one is the same for all rows of the grid.
    """
    in_order = tuple(sorted(variables, key=lambda v: v.name))

    @cache
    def leaves_by(divided_by: frozenset[Var]) -> tuple[tuple[int, frozenset[Var]], ...]:
        """Sizes of patterns, and the variables along which their quads are copied."""
        found = dict.fromkeys(leaves(body, divided_by | fixed))
        return tuple((size(leaf), divided_by - leaf.divided_by) for leaf in found)

    def load(shares: Mapping[Var, int]) -> tuple[float, int, list[str]]:
        quads = leaves_by(frozenset(shares))
        total = sum(count * prod(shares[var] for var in along) for count, along in quads)
        factor = max((prices.get(var, 1.0) for var in shares), default=1.0)
        return factor * total / prod(shares.values()), len(shares), sorted(v.name for v in shares)

    return grid_by(body, min(_divisions(in_order, partitions), key=load), fixed)


def whole_grid(query: alg.SelectQuery, graphs: Iterable[NamedNode]) -> Grid:
    """The grid of one partition that sees all quads of some graphs."""
    s, p, o = (Var(f".{name}") for name in "spo")
    asked = (leaf for leaf in leaves(body_of(query), frozenset()) if not _of_window(leaf))
    whole = (Leaf(alg.TriplePattern(s, p, o, graph), frozenset()) for graph in graphs)
    return Grid((), (), tuple(dict.fromkeys([*asked, *whole])))


def graph_grid(grid: Grid) -> Grid:
    """A grid for the quads of the graph: without what is asked of windows."""
    return replace(grid, leaves=tuple(each for each in grid.leaves if not _of_window(each)))


def window_grid(grid: Grid, graph: NamedNode) -> Grid:
    """A grid for the triples of a window: what is asked of it, as of the default graph."""
    asked = (each for each in grid.leaves if each.pattern.graph == graph)
    found = (
        replace(each, pattern=replace(each.pattern, graph=alg.DEFAULT_GRAPH)) for each in asked
    )
    return replace(grid, leaves=tuple(found))


def _of_window(leaf: Leaf) -> bool:
    return of_window(leaf.pattern.graph)


def body_of(query: alg.SelectQuery) -> alg.Node:
    """The part of a query below SELECT and DISTINCT, where no variable is hidden yet."""
    root = query.root.child if isinstance(query.root, alg.Distinct) else query.root
    return root.child if isinstance(root, alg.Project) else root


def grid_by(root: alg.Node, shares: Mapping[Var, int], fixed: frozenset[Var] = frozenset()) -> Grid:
    """The grid of a query that is divided by some variables, each into so many parts."""
    variables = tuple(sorted(shares, key=lambda v: v.name))
    found = tuple(dict.fromkeys(leaves(root, frozenset(variables) | fixed)))
    return Grid(variables, tuple(shares[v] for v in variables), found)


def _divisions(variables: tuple[Var, ...], partitions: int) -> Iterator[dict[Var, int]]:
    """Every way to give variables shares above 1 whose product is at most `partitions`.

    Of more than `ALL_SHARES` partitions only powers of two and all that is left, because the ways
    would be too many.
    """

    def shares(most: int) -> Iterable[int]:
        if partitions <= ALL_SHARES or most < 2:
            return range(2, most + 1)
        return dict.fromkeys((*(1 << n for n in range(1, most.bit_length())), most))

    def ways(rest: tuple[Var, ...], most: int) -> Iterator[dict[Var, int]]:
        yield {}
        for i, var in enumerate(rest):
            for share in shares(most):
                for more in ways(rest[i + 1 :], most // share):
                    yield {var: share, **more}

    return ways(variables, partitions)


def _size(leaf: Leaf, sizes: Mapping[str, int] | None) -> int:
    return 1 if sizes is None else sizes.get(str(leaf.pattern.predicate), 1)


# --- routing ---
#
# A quad goes to all points of a query's grid that agree with its values. An answer row belongs to
# one point, so that it comes out of one partition. Events and facts go to a rule or a pattern by a
# key:
# all that a match consists of has the same values of the variables in every condition, so
# it is found in the partition of these values and in no other.


def route(
    quads: Sequence[TermColumn], grids: Iterable[Grid]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs (row, partition), each once and sorted by row: where each quad has to go."""
    grids = tuple(grids)
    most = (part.home + part.partitions for grid in grids for part, _ in _cases(grid))
    wanted = np.zeros((len(quads[0]), max(most, default=0)), np.bool_)
    for grid in grids:
        for part, hub in _cases(grid):
            for leaf in part.leaves:
                matched = matching(quads, leaf.pattern)
                if grid.hubs:
                    matched &= _in_case(quads, leaf, hub, grid)
                rows = np.flatnonzero(matched)
                for partition in _partitions(quads, rows, part, leaf):
                    wanted[rows, partition] = True
    rows, partitions = np.nonzero(wanted)
    return rows, partitions


def matching(quads: Sequence[TermColumn], pattern: TriplePattern) -> NDArray[np.bool_]:
    """Which quads a pattern can match: constants and repeated variables agree."""
    mask = np.ones(len(quads[0]), np.bool_)
    first: dict[Var, int] = {}
    for column, position in enumerate(_positions(pattern)):
        if isinstance(position, Var):
            if first.setdefault(position, column) != column:
                mask &= quads[column].same(quads[first[position]])
            if column == 3:
                mask &= quads[3].valid
        elif isinstance(position, DefaultGraph):
            mask &= ~quads[column].valid
        elif not isinstance(position, MergedGraph):  # a leaf is asked of one graph
            mask &= quads[column].equals(position)
    return mask


def _positions(pattern: TriplePattern) -> tuple[Any, ...]:
    return pattern.subject, pattern.predicate, pattern.object, pattern.graph


def _partitions(
    quads: Sequence[TermColumn], rows: NDArray[np.int64], grid: Grid, leaf: Leaf
) -> Iterable[NDArray[np.int64]]:
    """Per copy that has to be sent, the partition of each row."""
    positions = _positions(leaf.pattern)
    choices: list[list[NDArray[np.int64]]] = []
    for var, share in zip(grid.variables, grid.shares, strict=True):
        if var in leaf.divided_by:
            choices.append([quads[positions.index(var)].hashes[rows] % share])
        else:
            choices.append([np.full(len(rows), at, np.int64) for at in range(share)])
    for coordinates in product(*choices):
        partition = np.full(len(rows), grid.home, np.int64)
        for coordinate, share in zip(coordinates, grid.shares, strict=True):
            partition = partition * share + coordinate
        yield partition


def _cases(grid: Grid) -> Iterator[tuple[Grid, Hub | None]]:
    """The grids of rows with each hub, and that of all other rows (None)."""
    yield from ((hub.grid, hub) for hub in grid.hubs)
    yield grid, None


def _in_case(
    quads: Sequence[TermColumn], leaf: Leaf, hub: Hub | None, grid: Grid
) -> NDArray[np.bool_]:
    """Whether a row of the case may consist of a quad, as far as its own values tell."""
    mask = np.ones(len(quads[0]), np.bool_)
    positions = _positions(leaf.pattern)
    for each in grid.hubs if hub is None else (hub,):
        if each.variable in leaf.divided_by:
            is_hub = quads[positions.index(each.variable)].equals(each.term)
            mask &= ~is_hub if hub is None else is_hub
    return mask


def owners(columns: NDArray[np.int32], terms: TermHashes, grid: Grid) -> NDArray[np.int64]:
    """The partition of each row, from its values of `grid.columns`."""
    known = dict(zip(grid.columns, columns.T, strict=True))
    found = _points(known, terms, grid, len(columns))
    for hub in grid.hubs:
        of_hub = np.flatnonzero(known[hub.variable] == (terms.lookup(hub.term) or -1))
        if len(of_hub):
            values = {var: column[of_hub] for var, column in known.items()}
            found[of_hub] = _points(values, terms, hub.grid, len(of_hub))
    return found


def _points(
    values: Mapping[Var, NDArray[np.int32]], terms: TermHashes, grid: Grid, count: int
) -> NDArray[np.int64]:
    """The point of a grid for each row of values."""
    partition = np.full(count, grid.home, np.int64)
    for var, share in zip(grid.variables, grid.shares, strict=True):
        partition = partition * share + terms.of(values[var]) % share
    return partition


@dataclass(frozen=True, slots=True)
class EventKey:
    """How rows find their partition: by a hash of some columns; without any, all go to `home`.

    `columns` has for each type of event the columns of the key, once for each condition in which
    they stand elsewhere; types that are missing are not sent. `facts` has the columns of the facts.
    """

    variables: tuple[Var, ...]
    home: int
    columns: Mapping[int, tuple[tuple[int, ...], ...]]
    facts: tuple[int, ...] = ()


def rule_key(rule: Rule, home: int, types: Mapping[EventType, int]) -> EventKey:
    """The variables in every event and in the facts of a rule."""
    groups = [set(condition.variables) for condition in rule.events]
    if rule.facts is not None:
        groups.append(set(rule.facts.variables))
    shared = tuple(sorted(set.intersection(*groups), key=lambda v: v.name))
    keys: dict[int, list[tuple[int, ...]]] = {}
    for condition in rule.events:
        columns = tuple(condition.arguments.index(v) for v in shared)
        keys.setdefault(types[condition.type], []).append(columns)
    facts = () if rule.facts is None else tuple(rule.facts.variables.index(v) for v in shared)
    found = {type_: tuple(dict.fromkeys(each)) for type_, each in keys.items()}
    return EventKey(shared, home, found, facts)


def pattern_key(automaton: Automaton, home: int) -> EventKey:
    """The parameters in every event of a pattern; none, if it has to see all events."""
    slots, columns = key_of(automaton)
    sees_all = automaton.noisy and not automaton.per
    if sees_all or not set(automaton.per) <= set(slots):
        slots = ()
    named = {letter.type for letter in automaton.letters()}
    if not slots:
        seen = range(len(automaton.types)) if automaton.noisy else sorted(named)
        return EventKey((), home, dict.fromkeys(seen, ((),)))
    keys = {type_: (tuple(columns[type_].tolist()),) for type_ in sorted(named)}
    return EventKey(tuple(automaton.variables[slot] for slot in slots), home, keys)


def key_partitions(
    rows: pa.Array[Any], width: int, columns: Sequence[int], home: int, partitions: int
) -> Longs:
    """The partition of each row of `width` values.

    >>> import pyarrow as pa
    >>> key_partitions(pa.array([["a", "b"], ["c", "d"]]), 2, (), 1, 4).tolist()
    [1, 1]
    """
    if not columns or not len(rows):
        return np.full(len(rows), home, np.int64)
    flat: Any = rows
    values = text_hashes(flat.flatten()).reshape(len(rows), width)
    return mixed_hashes([values[:, column] for column in columns], len(rows)) % partitions
