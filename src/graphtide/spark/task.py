"""Task: everything that a worker has to know of the queries, as plain data that travels."""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

from graphtide.algebra.nodes import Distinct, Project, SelectQuery
from graphtide.algebra.queries import with_dataset
from graphtide.algebra.windows import WindowedQuery
from graphtide.lang.sparql.parse import parse_standing
from graphtide.spark.schemas import CHANGES, EVENTS
from graphtide.spark.shares import Grid, best_grid, body_of, graph_grid, whole_grid, window_grid
from graphtide.spark.windows import DEFAULT_CLOCK, CellWindow, Clock, Windowed, with_windows

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from pyoxigraph import NamedNode

    from graphtide.spark.reaction import Reaction


@dataclass(frozen=True, slots=True)
class CellQuery:
    """A query as a cell maintains it.

    `query` shows the answer's variables (`shown` of them) and then those of the grid that the
    answer lacks. If it lacks one, equal rows can come out of several cells and have to meet
    (`meets`). A query over windows is put out at their closes (`windowed`). Rows that have to be
    paired with those of another query meet by their first `meet_by` columns.
    """

    name: str
    query: SelectQuery
    shown: int
    grid: Grid
    distinct: bool
    meets: bool
    windowed: Windowed | None = None
    meet_by: int | None = None

    @property
    def counted(self) -> bool:
        """Whether it has to be known how often a row is there: not if all are put out each time."""
        return self.distinct and not (self.windowed and self.windowed.output == "RSTREAM")


@dataclass(frozen=True)
class Task:
    """Named queries as texts, and the number of cells. Workers parse the texts again.

    `reaction` has what a program does with events; its queries come after those with a name.
    """

    queries: tuple[tuple[str, str], ...]
    cells: int
    sizes: tuple[tuple[str, int], ...] = ()
    clock: Clock = DEFAULT_CLOCK
    reaction: Reaction | None = None

    @cached_property
    def cell_queries(self) -> tuple[CellQuery, ...]:
        """The queries with their grids, first those that were asked for by name."""
        sizes = dict(self.sizes) or None
        named = (
            cell_query(name, text, self.cells, sizes, self.clock) for name, text in self.queries
        )
        hidden = self.reaction.hidden if self.reaction else ()
        return (
            *named,
            *(divided(h.name, h.select, self.cells, sizes, meet_by=h.meet_by) for h in hidden),
        )

    @property
    def shown_queries(self) -> tuple[CellQuery, ...]:
        """The queries that were asked for by name."""
        return self.cell_queries[: len(self.queries)]

    @cached_property
    def windows(self) -> dict[NamedNode, CellWindow]:
        """The windows of all queries, by the graph they are in."""
        found: dict[NamedNode, CellWindow] = {}
        for query in self.cell_queries:
            for window in query.windowed.windows if query.windowed else ():
                if window.quads is not None or window.graph not in found:
                    found[window.graph] = window
        return found

    @cached_property
    def routes(self) -> dict[str | None, list[Grid]]:
        """By stream, what its events are routed by; changes of the graph are under None."""
        grids = [query.grid for query in self.cell_queries]
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
        return self.reaction is not None and bool(self.reaction.graph_types)

    @property
    def stream_names(self) -> list[str]:
        """The streams that are known by name."""
        emitted = self.reaction.streams if self.reaction else ()
        return list(dict.fromkeys([*(name for name in self.routes if name), *emitted]))

    @property
    def changes_schema(self) -> pa.Schema:
        """The columns of changes on their way: with those of events, if there are streams."""
        return EVENTS if self.has_streams else CHANGES

    @cached_property
    def mark(self) -> str:
        """What a cell's state depends on: the number of cells; and a hash of queries and grids.

        >>> one = Task((("q", "SELECT ?a { ?a <ex:p> ?b }"),), 2)
        >>> one.mark == Task(one.queries, 2).mark, one.mark == Task(one.queries, 4).mark
        (True, False)
        """
        grids = [
            [[variable.name for variable in each.grid.variables], each.grid.shares]
            for each in self.cell_queries
        ]
        reacts = [self.reaction.mark] if self.reaction else []
        made = json.dumps([self.cells, self.queries, grids, *self._window_times(), *reacts])
        return f"{self.cells} {sha256(made.encode()).hexdigest()[:16]}"

    def _window_times(self) -> tuple[object, ...]:
        """What windows depend on; how late rows may come can change."""
        return astuple(self.clock)[1:] if self.windows else ()


def cell_query(
    name: str, text: str, cells: int, sizes: Mapping[str, int] | None, clock: Clock = DEFAULT_CLOCK
) -> CellQuery:
    """How a query is divided among cells.

    >>> divided = cell_query("q", "SELECT ?a ?b { ?a <ex:p> ?b . ?b <ex:q> ?c }", 4, None)
    >>> divided.grid.variables, divided.grid.shares, divided.meets
    ((Var(name='b'),), (4,), False)
    """
    standing = parse_standing(text)
    windowed = None
    if isinstance(standing, WindowedQuery):
        standing, windowed = with_windows(standing, clock)
    return divided(name, standing, cells, sizes, windowed)


def divided(
    name: str,
    query: SelectQuery,
    cells: int,
    sizes: Mapping[str, int] | None,
    windowed: Windowed | None = None,
    meet_by: int | None = None,
) -> CellQuery:
    """How a query that was read is divided among cells."""
    parsed = with_dataset(query)
    if windowed is not None and windowed.whole is not None:
        grid = whole_grid(parsed, (window.graph for window in windowed.windows))
    else:
        grid = best_grid(parsed, cells, sizes)
    distinct = isinstance(parsed.root, Distinct)
    extra = tuple(v for v in grid.variables if v not in parsed.variables)
    columns = parsed.variables + extra
    shown_query = SelectQuery(columns, Project(body_of(parsed), columns), query.text)
    shown, meets = len(parsed.variables), bool(extra) or meet_by is not None
    return CellQuery(name, shown_query, shown, grid, distinct, meets, windowed, meet_by)
