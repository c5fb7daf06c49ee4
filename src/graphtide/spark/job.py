"""JobSpec: the queries, windows and rules of a job and how they are divided, as plain data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

from graphtide.algebra.nodes import Distinct, Project, SelectQuery
from graphtide.algebra.queries import with_dataset
from graphtide.algebra.windows import WindowedQuery
from graphtide.lang.sparql.parse import parse_standing
from graphtide.spark.partition.grids import (
    Grid,
    best_grid,
    body_of,
    graph_grid,
    whole_grid,
    window_grid,
)
from graphtide.spark.partition.windows import (
    DEFAULT_CLOCK,
    Clock,
    Windowed,
    WindowSpec,
    with_windows,
)
from graphtide.spark.state.log import FORMAT
from graphtide.spark.state.messages import CHANGES, RULE_CHANGES, STREAM_CHANGES

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from pyoxigraph import NamedNode

    from graphtide.spark.partition.program import ProgramSpec


@dataclass(frozen=True, slots=True)
class PartitionQuery:
    """A query as a partition maintains it.

    `query` has the answer's variables (`shown` of them) and then those of the grid that the answer
    lacks. If it lacks one, equal rows can come out of several partitions and have to be
    consolidated (`needs_consolidation`). A query over windows emits when one closes (`windowed`).
    Rows that are paired with those of another query are sent on by their first `consolidate_by`
    columns.
    """

    name: str
    query: SelectQuery
    shown: int
    grid: Grid
    distinct: bool
    needs_consolidation: bool
    windowed: Windowed | None = None
    consolidate_by: int | None = None

    @property
    def counted(self) -> bool:
        """Whether rows are counted: not if the whole answer is emitted each time."""
        return self.distinct and not (self.windowed and self.windowed.output == "RSTREAM")


@dataclass(frozen=True)
class JobSpec:
    """Named queries as texts, and the number of partitions. Workers parse the texts again.

    `program` has the events, patterns and rules; its queries come after those with a name.
    """

    queries: tuple[tuple[str, str], ...]
    partitions: int
    sizes: tuple[tuple[str, int], ...] = ()
    clock: Clock = DEFAULT_CLOCK
    program: ProgramSpec | None = None

    @cached_property
    def partition_queries(self) -> tuple[PartitionQuery, ...]:
        """The queries with their grids, first those that were asked for by name."""
        sizes = dict(self.sizes) or None
        named = (
            partition_query(name, text, self.partitions, sizes, self.clock)
            for name, text in self.queries
        )
        internal = self.program.internal_queries if self.program else ()
        return (
            *named,
            *(
                divided(q.name, q.select, self.partitions, sizes, consolidate_by=q.consolidate_by)
                for q in internal
            ),
        )

    @property
    def shown_queries(self) -> tuple[PartitionQuery, ...]:
        """The queries that were asked for by name."""
        return self.partition_queries[: len(self.queries)]

    @cached_property
    def consolidates(self) -> bool:
        """Whether rows of some query have to be consolidated."""
        return any(query.needs_consolidation for query in self.partition_queries)

    @cached_property
    def windows(self) -> dict[NamedNode, WindowSpec]:
        """The windows of all queries, by the graph they are in."""
        found: dict[NamedNode, WindowSpec] = {}
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

    @property
    def has_streams(self) -> bool:
        """Whether anything looks at the events of streams."""
        return bool(self.windows) or self.reacts_to_graph_events

    @property
    def reacts_to_graph_events(self) -> bool:
        """Whether events of rules and patterns are matched with graph events."""
        return self.program is not None and bool(self.program.graph_types)

    @property
    def stream_names(self) -> list[str]:
        """The streams that are known by name."""
        emitted = self.program.streams if self.program else ()
        return list(dict.fromkeys([*(name for name in self.routes if name), *emitted]))

    @property
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
            [[variable.name for variable in each.grid.variables], each.grid.shares]
            for each in self.partition_queries
        ]
        program = [self.program.fingerprint] if self.program else []
        made = json.dumps([self.partitions, self.queries, grids, *self._window_times(), *program])
        return f"{self.partitions} {FORMAT} {sha256(made.encode()).hexdigest()[:16]}"

    def _window_times(self) -> tuple[object, ...]:
        """What windows depend on; shards, and how late rows may come, can change."""
        return self.clock.window_times if self.windows else ()


def partition_query(
    name: str,
    text: str,
    partitions: int,
    sizes: Mapping[str, int] | None,
    clock: Clock = DEFAULT_CLOCK,
) -> PartitionQuery:
    """How a query is divided among partitions.

    >>> divided = partition_query("q", "SELECT ?a ?b { ?a <ex:p> ?b . ?b <ex:q> ?c }", 4, None)
    >>> divided.grid.variables, divided.grid.shares, divided.needs_consolidation
    ((Var(name='b'),), (4,), False)
    """
    standing = parse_standing(text)
    windowed = None
    if isinstance(standing, WindowedQuery):
        standing, windowed = with_windows(standing, clock)
    return divided(name, standing, partitions, sizes, windowed)


def divided(
    name: str,
    query: SelectQuery,
    partitions: int,
    sizes: Mapping[str, int] | None,
    windowed: Windowed | None = None,
    consolidate_by: int | None = None,
) -> PartitionQuery:
    """How a query that was read is divided among partitions."""
    parsed = with_dataset(query)
    if windowed is not None and windowed.whole is not None:
        grid = whole_grid(parsed, (window.graph for window in windowed.windows))
    else:
        grid = best_grid(parsed, partitions, sizes)
    distinct = isinstance(parsed.root, Distinct)
    extra = tuple(v for v in grid.variables if v not in parsed.variables)
    columns = parsed.variables + extra
    shown_query = SelectQuery(columns, Project(body_of(parsed), columns), query.text)
    shown, needs_consolidation = len(parsed.variables), bool(extra) or consolidate_by is not None
    return PartitionQuery(
        name, shown_query, shown, grid, distinct, needs_consolidation, windowed, consolidate_by
    )
