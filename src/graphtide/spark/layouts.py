"""The choice between the two layouts of a query: what each costs, and which is cheaper.

The grid layout needs one stage, or two; but it copies quads, and what cannot be divided is done by
one partition. The Rete layout copies nothing and divides every join, but each of its stages costs
time in every micro-batch, and intermediate rows are shuffled. So the grid is better for few
partitions and small micro-batches, Rete for many and large ones.

The model counts rows. Rows of intermediate results are estimated as the planner does it, from the
sizes per predicate if they are given: a change of a pattern with n quads causes rows / n rows of a
result.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from graphtide.algebra.expressions import Var
from graphtide.plan.estimate import Estimator, pattern_estimate
from graphtide.plan.physical import Physical, Search, nodes
from graphtide.spark.job import Layout, fragment_query, in_layout, partition_query, pinned
from graphtide.spark.partition.rete import RetePlan, statistics_of
from graphtide.spark.partition.windows import DEFAULT_CLOCK, Clock

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from graphtide.algebra.nodes import TriplePattern
    from graphtide.spark.job import PartitionQuery
    from graphtide.spark.partition.grids import Grid, Leaf
    from graphtide.spark.partition.hubs import HubCounts

    Terms = tuple[object, ...]
    Routing = tuple[tuple[int | None, int], ...]

Layouts = Layout | Mapping[str, Layout] | None
"""One layout for all queries, or some by name; what has none gets the cheaper one."""

CHANGES_PER_BATCH: Final = 10_000
"""Changes of a micro-batch, if nothing is known."""

STAGE_MS: Final = 85.0
"""Fixed cost of a stateful stage in a micro-batch (docs/deploy.md says how it was measured)."""

MATCH_US: Final = 5.0
"""Cost of a change in each partition that gets it: packed and matched."""

JOIN_US: Final = 2.5
"""Cost of a row in a join stage."""


@dataclass(frozen=True, slots=True)
class LayoutCost:
    """What a query costs in a layout.

    `copies` is the number of partitions to which a change is sent, `shuffled` the number of rows
    that are shuffled for it in all, `largest` the share of the busiest partition in all work,
    if the values of keys are even.
    """

    copies: float
    shuffled: float
    stages: int
    largest: float

    def milliseconds(self, changes: int) -> float:
        """The expected time of a micro-batch."""
        joined = self.shuffled - self.copies
        work = MATCH_US * self.copies + JOIN_US * joined
        return STAGE_MS * self.stages + changes * work * self.largest / 1000

    def text(self, changes: int) -> str:
        """The figures in words."""
        stages = "1 stage" if self.stages == 1 else f"{self.stages} stages"
        return (
            f"{self.copies:.2f} copies and {self.shuffled:.2f} shuffled rows per change, {stages}, "
            f"{self.largest:.1%} of the work in the largest partition, "
            f"about {self.milliseconds(changes):,.0f} ms for {changes:,} changes"
        )


@dataclass(frozen=True)
class LayoutChoice:
    """A query in both layouts, with their costs; `pin` is the layout that the user asked for."""

    grid: PartitionQuery
    rete: PartitionQuery
    partitions: int
    sizes: Mapping[str, int] | None
    changes: int
    pin: Layout | None = None

    @cached_property
    def costs(self) -> dict[Layout, LayoutCost]:
        """The cost of each layout that the query can have."""
        found: dict[Layout, LayoutCost] = {"grid": grid_cost(self.grid, self.sizes)}
        if self.rete.rete is not None:
            found["rete"] = rete_cost(self.rete, self.rete.rete, self.partitions, self.sizes)
        return found

    @property
    def layout(self) -> Layout:
        """The layout: the user's, or the one that takes less time."""
        times = {name: cost.milliseconds(self.changes) for name, cost in self.costs.items()}
        if self.pin in times:
            return self.pin
        return min(times, key=lambda name: (times[name], name))

    @property
    def reason(self) -> str:
        """Why it is this layout."""
        if "rete" not in self.costs:
            if self.grid.windowed:
                return "windows close in one stage"
            if not self.grid.grid.variables:
                return "one partition does it without copies"
            return "all patterns share a variable, so that one stage joins them without copies"
        if self.pin is not None:
            return "it was asked for"
        return "it is expected to take less time"


def layout_choice(
    name: str,
    text: str,
    partitions: int,
    *,
    sizes: Mapping[str, int] | None = None,
    clock: Clock = DEFAULT_CLOCK,
    changes: int = CHANGES_PER_BATCH,
    pin: Layout | None = None,
    hubs: HubCounts = (),
) -> LayoutChoice:
    """A query in both layouts.

    >>> chain = "SELECT * { ?a <ex:p> ?b . ?b <ex:q> ?c . ?c <ex:r> ?d . ?d <ex:s> ?e }"
    >>> [layout_choice("q", chain, 64, changes=n).layout for n in (1000, 1_000_000)]
    ['grid', 'rete']
    """
    grid = partition_query(name, text, partitions, sizes, clock, hubs)
    return LayoutChoice(grid, in_layout(grid, text, sizes), partitions, sizes, changes, pin)


def choose_layouts(
    queries: Mapping[str, str],
    partitions: int,
    *,
    sizes: Mapping[str, int] | None = None,
    clock: Clock = DEFAULT_CLOCK,
    changes: int = CHANGES_PER_BATCH,
    layout: Layouts = None,
) -> tuple[tuple[str, Layout], ...]:
    """The layout of each query: the one asked for, or the cheaper one."""
    pins = dict(pinned(layout, queries))
    return tuple(
        (
            name,
            pins.get(name)
            or layout_choice(
                name, text, partitions, sizes=sizes, clock=clock, changes=changes
            ).layout,
        )
        for name, text in queries.items()
    )


def grid_cost(query: PartitionQuery, sizes: Mapping[str, int] | None = None) -> LayoutCost:
    """The cost of a query in the grid layout; a second stage adds up its answer rows."""
    copies = copies_of([query.grid], sizes)
    second = int(query.needs_consolidation)
    return LayoutCost(copies, copies + second, 1 + second, 1 / query.grid.partitions)


def rete_cost(
    query: PartitionQuery,
    plan: RetePlan,
    partitions: int,
    sizes: Mapping[str, int] | None = None,
) -> LayoutCost:
    """The cost of a query in the Rete layout."""
    grids = [fragment_query(0, fragment, partitions).grid for fragment in plan.fragments]
    copies, alone = copies_of(grids, sizes), _sent_to_one(grids, sizes)
    caused = RowsPerChange(plan, sizes)
    stage_of = {placed.node: placed.stage for placed in plan.placed}
    work, busiest = MATCH_US * copies, MATCH_US * (alone + (copies - alone) / partitions)
    shuffled = copies
    for exchange in plan.exchanges:
        rows = caused(exchange.source)
        # What is not joined in the next stage passes through those between.
        shuffled += rows * (exchange.stage - stage_of.get(exchange.source, 0))
        work += JOIN_US * rows
        busiest += JOIN_US * rows / (partitions if exchange.key else 1)
    if query.needs_consolidation:
        shuffled += caused(plan.root)
    stages = 1 + plan.stages + query.needs_consolidation
    return LayoutCost(copies, shuffled, stages, busiest / work)


def copies_of(grids: Iterable[Grid], sizes: Mapping[str, int] | None) -> float:
    """To how many partitions a change is sent on average, if it is a quad of one of the patterns.

    Patterns that differ in their variables only match the same quads. If they are divided by the
    same positions, the same partitions get them.
    """
    copies: defaultdict[Terms, dict[Routing, int]] = defaultdict(dict)
    most = 1
    for grid in grids:
        most = max(most, grid.partitions)
        for leaf in grid.leaves:
            copies[_constants(leaf.pattern)][_routing(leaf, grid)] = grid.copies(leaf)
    weights = {quads: size_of(str(quads[1]), sizes) for quads in copies}
    sent = sum(min(sum(ways.values()), most) * weights[quads] for quads, ways in copies.items())
    return sent / max(sum(weights.values()), 1)


def _sent_to_one(grids: Sequence[Grid], sizes: Mapping[str, int] | None) -> float:
    """How often an average change is sent to a partition that does a path alone."""

    def quads(some: Iterable[Grid]) -> int:
        patterns = {_constants(leaf.pattern) for grid in some for leaf in grid.leaves}
        return sum(size_of(str(constants[1]), sizes) for constants in patterns)

    return quads(grid for grid in grids if not grid.variables) / max(quads(grids), 1)


def _constants(pattern: TriplePattern) -> Terms:
    return tuple(None if isinstance(each, Var) else each for each in _positions(pattern))


def _routing(leaf: Leaf, grid: Grid) -> Routing:
    """By dimension of a grid, the position whose value decides, if one does, and its share."""
    positions = _positions(leaf.pattern)
    dimensions = zip(grid.variables, grid.shares, strict=True)
    return tuple(
        (positions.index(var) if var in leaf.divided_by else None, share)
        for var, share in dimensions
    )


def _positions(pattern: TriplePattern) -> tuple[object, ...]:
    return pattern.subject, pattern.predicate, pattern.object, pattern.graph


def size_of(predicate: str, sizes: Mapping[str, int] | None) -> int:
    """The quads of a predicate; without sizes, all count the same."""
    return 1 if sizes is None else sizes.get(predicate, 1)


class RowsPerChange:
    """How many rows of a node an average change of the graph adds or removes."""

    def __init__(self, plan: RetePlan, sizes: Mapping[str, int] | None) -> None:
        self._statistics = statistics_of(_patterns(plan.root), sizes)
        self._estimate = Estimator(self._statistics)
        self._sizes = sizes
        self._changed = sum(self._changes(pattern) for pattern in _patterns(plan.root))

    def __call__(self, node: Physical) -> float:
        """Rows of the node over quads of each pattern below, each weighted by its changes."""
        rows = self._estimate(node).rows
        caused = (
            self._changes(pattern) * rows / max(pattern_estimate(pattern, self._statistics).rows, 1)
            for pattern in _patterns(node)
        )
        return sum(caused) / max(self._changed, 1)

    def _changes(self, pattern: TriplePattern) -> int:
        return size_of(str(pattern.predicate), self._sizes)


def _patterns(node: Physical) -> list[TriplePattern]:
    """The patterns below a node."""
    searches = (each for each in nodes(node) if isinstance(each, Search))
    return [pattern for search in searches for pattern in search.patterns]
