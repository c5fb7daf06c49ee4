"""Task: everything that a worker has to know of the queries, as plain data that travels."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

from graphtide.algebra.dataset import with_dataset
from graphtide.algebra.nodes import Distinct, Project, SelectQuery
from graphtide.lang.sparql import parse_query
from graphtide.spark.shares import Grid, best_grid, body_of

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class CellQuery:
    """A query as a cell maintains it.

    `query` shows the answer's variables (`shown` of them) and then those of the grid that the
    answer lacks. If it lacks one, equal rows can come out of several cells and have to meet
    (`meets`).
    """

    name: str
    query: SelectQuery
    shown: int
    grid: Grid
    distinct: bool
    meets: bool


@dataclass(frozen=True)
class Task:
    """Named queries as texts, and the number of cells. Workers parse the texts again."""

    queries: tuple[tuple[str, str], ...]
    cells: int
    sizes: tuple[tuple[str, int], ...] = ()

    @cached_property
    def cell_queries(self) -> tuple[CellQuery, ...]:
        """The queries with their grids."""
        sizes = dict(self.sizes) or None
        return tuple(cell_query(name, text, self.cells, sizes) for name, text in self.queries)

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
        made = json.dumps([self.cells, self.queries, grids])
        return f"{self.cells} {sha256(made.encode()).hexdigest()[:16]}"


def cell_query(name: str, text: str, cells: int, sizes: Mapping[str, int] | None) -> CellQuery:
    """How a query is divided among cells.

    >>> divided = cell_query("q", "SELECT ?a ?b { ?a <ex:p> ?b . ?b <ex:q> ?c }", 4, None)
    >>> divided.grid.variables, divided.grid.shares, divided.meets
    ((Var(name='b'),), (4,), False)
    """
    parsed = with_dataset(parse_query(text))
    grid = best_grid(parsed, cells, sizes)
    distinct = isinstance(parsed.root, Distinct)
    extra = tuple(v for v in grid.variables if v not in parsed.variables)
    columns = parsed.variables + extra
    query = SelectQuery(columns, Project(body_of(parsed), columns), text)
    return CellQuery(name, query, len(parsed.variables), grid, distinct, meets=bool(extra))
