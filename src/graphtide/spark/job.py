"""JobSpec: the queries, windows and rules of a job and how they are divided, as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal

from graphtide.algebra.clock import reads_clock
from graphtide.algebra.nodes import Distinct, Project, SelectQuery, Values
from graphtide.algebra.queries import with_dataset
from graphtide.algebra.services import services_of
from graphtide.algebra.windows import WindowedQuery
from graphtide.errors import GraphtideError, UnsupportedError
from graphtide.functions.user import called
from graphtide.lang.sparql.parse import parse_standing
from graphtide.limits import Limits
from graphtide.spark.partition import rete as net
from graphtide.spark.partition import windows as win
from graphtide.spark.partition.grids import (
    Grid,
    best_grid,
    body_of,
    graph_grid,
    grid_by,
    whole_grid,
    window_grid,
)
from graphtide.spark.partition.hubs import HubCounts, with_hubs
from graphtide.spark.state.log import FORMAT
from graphtide.spark.state.messages import CHANGES, RULE_CHANGES, STREAM_CHANGES

if TYPE_CHECKING:
    from collections.abc import Collection

    import pyarrow as pa
    from pyoxigraph import NamedNode

    from graphtide.plan.physical import Physical
    from graphtide.spark.files import Location
    from graphtide.spark.output import OutputSpec
    from graphtide.spark.partition.program import ProgramSpec

Layout = Literal["grid", "rete"]
SETS: Final = "graphtide-sets"
"""In the metadata of a column of query names: all answers are sets (`is_set`)."""

LAYOUTS: Final[tuple[Layout, ...]] = ("grid", "rete")
"""One stage and copies of quads; or a stage for each join and none (`partition.rete`)."""


@dataclass(frozen=True, slots=True)
class PartitionQuery:
    """A query as a partition maintains it.

    `query` has the answer's variables (`shown` of them) and then those of the grid that the answer
    lacks. If it lacks one, equal rows can come out of several partitions and have to be
    consolidated (`needs_consolidation`). A query over windows emits when one closes (`windowed`).
    Rows that are paired with those of another query are sent on by their first `consolidate_by`
    columns. In the Rete layout (`rete`) the match does nothing for the query itself: `query` is
    empty, and its rows come out of the join stages.
    """

    name: str
    query: SelectQuery
    shown: int
    grid: Grid
    distinct: bool
    needs_consolidation: bool
    windowed: win.Windowed | None = None
    consolidate_by: int | None = None
    rete: net.RetePlan | None = None

    @property
    def counted(self) -> bool:
        """Whether rows are counted: not if the whole answer is emitted each time."""
        return self.distinct and not (self.windowed and self.windowed.output == "RSTREAM")


@dataclass(frozen=True, slots=True)
class ReteQuery:
    """A query in the Rete layout, with the ids of its messages.

    `fragments` are those that the match emits, `exchanges` those that go to join stages. What has
    no key goes to the partition `home`.
    """

    id: int
    plan: net.RetePlan
    fragments: Mapping[Physical, int]
    exchanges: Mapping[net.Exchange, int]
    home: int


@dataclass(frozen=True)
class JobSpec:
    """Named queries as texts, and the number of partitions. Workers parse the texts again.

    `program` has the events, patterns and rules; its queries come after those with a name, and then
    the fragments of queries in the Rete layout. `layouts` has the layouts that are not "grid".
    With `output`, partitions write much output themselves. `restored` is where the saved logs are
    with which partitions begin (`graphtide.spark.restore`). `limits` are those of every engine, and
    may change from one start to the next.
    """

    queries: tuple[tuple[str, str], ...]
    partitions: int
    sizes: tuple[tuple[str, int], ...] = ()
    clock: win.Clock = win.DEFAULT_CLOCK
    program: ProgramSpec | None = None
    layouts: tuple[tuple[str, Layout], ...] = ()
    hubs: HubCounts = ()
    output: OutputSpec | None = None
    restored: Location | None = None
    limits: Limits = field(default_factory=Limits)

    @cached_property
    def partition_queries(self) -> tuple[PartitionQuery, ...]:
        """What the match maintains, first the queries that were asked for by name."""
        return (
            *self._divided,
            *(fragment_query(*each, self.partitions, self.hubs) for each in self._numbered),
        )

    @cached_property
    def _divided(self) -> tuple[PartitionQuery, ...]:
        """The queries of users and programs."""
        sizes, layouts = dict(self.sizes) or None, dict(self.layouts)
        divided_ = (
            (text, partition_query(name, text, self.partitions, sizes, self.clock, self.hubs))
            for name, text in self.queries
        )
        named = (
            in_layout(query, text, sizes) if layouts.get(query.name) == "rete" else query
            for text, query in divided_
        )
        internal = self.program.internal_queries if self.program else ()
        return (
            *named,
            *(
                divided(q.name, q.select, self.partitions, sizes, consolidate_by=q.consolidate_by)
                for q in internal
            ),
        )

    @cached_property
    def _numbered(self) -> tuple[tuple[int, net.Fragment], ...]:
        """The fragments of all queries, each once, and their ids."""
        plans = (query.rete for query in self._divided if query.rete)
        found = dict.fromkeys(fragment for plan in plans for fragment in plan.fragments)
        return tuple(enumerate(found, self.first_fragment))

    @property
    def first_fragment(self) -> int:
        """From this id on, queries of the match are fragments of others."""
        return len(self._divided)

    @cached_property
    def rete(self) -> tuple[ReteQuery, ...]:
        """The queries in the Rete layout."""
        ids = {fragment.node: id_ for id_, fragment in self._numbered}
        free, found = self.first_fragment + len(ids), []
        for id_, query in enumerate(self._divided):
            if query.rete is not None:
                exchanges = {each: free + n for n, each in enumerate(query.rete.exchanges)}
                free += len(exchanges)
                home = id_ % self.partitions
                found.append(ReteQuery(id_, query.rete, ids, exchanges, home))
        return tuple(found)

    @cached_property
    def join_stages(self) -> int:
        """How many stages the queries in the Rete layout need after the match."""
        return max((query.plan.stages for query in self.rete), default=0)

    @cached_property
    def first_rows(self) -> bool:
        """Whether a join stage has rows before any input."""
        return any(query.plan.first_rows for query in self.rete)

    @property
    def shown_queries(self) -> tuple[PartitionQuery, ...]:
        """The queries that were asked for by name."""
        return self.partition_queries[: len(self.queries)]

    @cached_property
    def consolidates(self) -> bool:
        """Whether rows of some query have to be consolidated."""
        return any(query.needs_consolidation for query in self.partition_queries)

    @cached_property
    def windows(self) -> dict[NamedNode, win.WindowSpec]:
        """The windows of all queries, by the graph they are in."""
        found: dict[NamedNode, win.WindowSpec] = {}
        for query in self.partition_queries:
            for window in query.windowed.windows if query.windowed else ():
                if window.quads is not None or window.graph not in found:
                    found[window.graph] = window
        return found

    @cached_property
    def routes(self) -> dict[str | None, list[Grid]]:
        """By stream, what its events are routed by; changes of the graph are under None."""
        grids = [query.grid for query in self.partition_queries]
        routes: dict[str | None, list[Grid]] = {None: [graph_grid(grid) for grid in grids]}
        for window in self.windows.values():
            found = routes.setdefault(window.stream, [])
            found += [window_grid(grid, window.graph) for grid in grids]
        return routes

    @cached_property
    def has_streams(self) -> bool:
        """Whether anything looks at the events of streams."""
        return bool(self.windows) or self.reacts_to_graph_events

    @cached_property
    def reacts_to_graph_events(self) -> bool:
        """Whether events of rules and patterns are matched with graph events."""
        return self.program is not None and bool(self.program.graph_types)

    @property
    def stream_names(self) -> list[str]:
        """The streams that are known by name."""
        emitted = self.program.streams if self.program else ()
        return list(dict.fromkeys([*(name for name in self.routes if name), *emitted]))

    @cached_property
    def changes_schema(self) -> pa.Schema:
        """The columns of changes on their way to the match."""
        if self.reacts_to_graph_events:
            return RULE_CHANGES
        return STREAM_CHANGES if self.windows else CHANGES

    @property
    def log_schema(self) -> pa.Schema:
        """The columns of changes that the match logs."""
        return STREAM_CHANGES if self.windows else CHANGES

    @cached_property
    def fingerprint(self) -> str:
        """What the state depends on: partitions, format, and a hash of queries and grids.

        >>> one = JobSpec((("q", "SELECT ?a { ?a <ex:p> ?b }"),), 2)
        >>> [JobSpec(one.queries, n).fingerprint == one.fingerprint for n in (2, 4)]
        [True, False]
        """
        grids = [
            [[variable.name for variable in grid.variables], grid.shares]
            for each in self.partition_queries
            for grid in (each.grid, *(hub.grid for hub in each.grid.hubs))
        ]
        program = [self.program.fingerprint] if self.program else []
        rete = [[each.id, *net.described(each.plan)] for each in self.rete]
        made = json.dumps(
            [self.partitions, self.queries, grids, *self._window_times(), *program, *rete]
            + ([self.hubs] if self.hubs else [])
        )
        return f"{self.partitions} {FORMAT} {sha256(made.encode()).hexdigest()[:16]}"

    def _window_times(self) -> tuple[object, ...]:
        """What windows depend on; shards, and how late rows may come, can change."""
        return self.clock.window_times if self.windows else ()


def pinned(
    layout: Layout | Mapping[str, Layout] | None, queries: Collection[str]
) -> tuple[tuple[str, Layout], ...]:
    """The layout of each query that has one, from one layout for all or several by name.

    >>> pinned("rete", ["q", "r"]), pinned(None, ["q"])
    ((('q', 'rete'), ('r', 'rete')), ())
    """
    if layout is None:
        return ()
    by_name = layout if isinstance(layout, Mapping) else dict.fromkeys(queries, layout)
    for name, each in by_name.items():
        if each not in LAYOUTS:
            raise GraphtideError(f"the layout {each!r} is unknown", hint="choose grid or rete")
        if name not in queries:
            raise GraphtideError(f"layout= names {name!r}, which is no query of the job")
    return tuple(sorted(by_name.items()))


def partition_query(
    name: str,
    text: str,
    partitions: int,
    sizes: Mapping[str, int] | None,
    clock: win.Clock = win.DEFAULT_CLOCK,
    hubs: HubCounts = (),
) -> PartitionQuery:
    """How a query is divided among partitions.

    >>> divided = partition_query("q", "SELECT ?a ?b { ?a <ex:p> ?b . ?b <ex:q> ?c }", 4, None)
    >>> divided.grid.variables, divided.grid.shares, divided.needs_consolidation
    ((Var(name='b'),), (4,), False)
    """
    standing = parse_standing(text)
    windowed = None
    if isinstance(standing, WindowedQuery):
        standing, windowed = win.with_windows(standing, clock)
    return divided(name, standing, partitions, sizes, windowed, hubs=hubs)


def divided(
    name: str,
    query: SelectQuery,
    partitions: int,
    sizes: Mapping[str, int] | None,
    windowed: win.Windowed | None = None,
    consolidate_by: int | None = None,
    hubs: HubCounts = (),
) -> PartitionQuery:
    """How a query that was read is divided among partitions."""
    if reads_clock(query.root):
        raise UnsupportedError(
            f"the query {name} reads NOW: partitions have no common clock to follow",
            hint="put the time into the data, or use gt.LiveGraph or --engine process",
        )
    if asked := services_of(query.root):
        raise UnsupportedError(
            f"the query {name} asks {asked[0]}, which Spark's workers do not",
            hint="it is for one process: gt.LiveGraph(services=…)",
        )
    if own := called(query.root):
        raise UnsupportedError(
            f"the query {name} calls {own[0]}, which Spark's workers do not know",
            hint="functions of the user run in one process: gt.LiveGraph, or --engine process",
        )
    parsed = with_dataset(query)
    if windowed is not None and windowed.whole is not None:
        grid = whole_grid(parsed, (window.graph for window in windowed.windows))
    else:
        grid = best_grid(parsed, partitions, sizes)
    if hubs and windowed is None:
        grid = with_hubs(grid, body_of(parsed), hubs, partitions)
    distinct = isinstance(parsed.root, Distinct)
    extra = tuple(v for v in grid.columns if v not in parsed.variables)
    columns = parsed.variables + extra
    shown_query = SelectQuery(columns, Project(body_of(parsed), columns), query.text)
    shown, needs_consolidation = len(parsed.variables), bool(extra) or consolidate_by is not None
    return PartitionQuery(
        name, shown_query, shown, grid, distinct, needs_consolidation, windowed, consolidate_by
    )


def is_set(text: str) -> bool:
    """Whether no row is in the answer of a query twice: with DISTINCT, and not over windows.

    >>> is_set("SELECT DISTINCT ?a { ?a ?p ?b }"), is_set("SELECT ?a { ?a ?p ?b }")
    (True, False)
    """
    standing = parse_standing(text)
    return not isinstance(standing, WindowedQuery) and isinstance(standing.root, Distinct)


def in_layout(
    query: PartitionQuery, text: str, sizes: Mapping[str, int] | None = None
) -> PartitionQuery:
    """A query in the Rete layout; as it is if that has no join stage or cannot be."""
    parsed = parse_standing(text)
    if isinstance(parsed, WindowedQuery):
        return query
    plan = net.rete_plan(
        parsed, net.statistics_of((leaf.pattern for leaf in query.grid.leaves), sizes)
    )
    if plan is None:
        return query
    columns = query.query.variables[: query.shown]
    nothing = SelectQuery(columns, Project(Values(columns, ()), columns), text)
    spread = plan.key is None or not set(plan.key) <= set(columns)
    return PartitionQuery(
        query.name, nothing, query.shown, Grid((), (), ()), False, spread, rete=plan
    )


def fragment_query(
    id_: int, fragment: net.Fragment, partitions: int, hubs: HubCounts = ()
) -> PartitionQuery:
    """A fragment as a query of the match; a path is followed in a partition by its number."""
    body, by, schema = fragment.body, fragment.by, fragment.node.schema
    grid = grid_by(body, {} if by is None else {by: partitions})
    if fragment.is_path:
        grid = replace(grid, home=id_ % partitions)
    grid = with_hubs(grid, body, hubs, partitions)
    extra = tuple(v for v in grid.columns if v not in schema)
    columns = schema + extra
    select = SelectQuery(columns, Project(body, columns), "")
    return PartitionQuery(f".fragment {id_}", select, len(schema), grid, False, False)
