"""SERVICE as data: the answer of an endpoint is a table, and the pattern reads that table.

https://www.w3.org/TR/sparql11-federated-query/. The table is a hidden graph of the store, as the
content of a window is: a node for each row, with a triple for each bound column. So a table that is
fetched again changes by inserts and deletes, which standing queries maintain like all others. The
name of the graph says what was asked of whom, so a query needs nothing beside its patterns.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote, urlsplit

from pyoxigraph import NamedNode

from graphtide.algebra import nodes as alg
from graphtide.algebra.expressions import Var
from graphtide.algebra.traverse import replaced, walk
from graphtide.algebra.trees import balanced
from graphtide.algebra.variables import pattern_variables
from graphtide.algebra.windows import WINDOW_SPACE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphtide.rdf.terms import Term

_SPACE: Final = f"{WINDOW_SPACE}service:"
IS_ROW: Final = NamedNode(f"{_SPACE}#row")
"""Predicate and object of the triple that every row has."""

Table = dict["Term", dict[str, "Term"]]
"""The rows of an answer: for the node of each, the bound columns."""


@dataclass(frozen=True, slots=True)
class ServiceClause:
    """`SERVICE endpoint { … }`: the query to send, and the columns of its answer.

    `certain` are those that are bound in every row. An endpoint such as `?where` is a variable: the
    rows of all endpoints that are allowed, each with its endpoint in the column of that name.
    """

    endpoint: str
    silent: bool
    query: str
    columns: tuple[str, ...]
    certain: tuple[str, ...]

    @property
    def variable(self) -> str | None:
        """The column of the endpoint, if that is a variable."""
        return self.endpoint[1:] if self.endpoint.startswith("?") else None

    def __str__(self) -> str:
        return f"SERVICE {self.endpoint if self.variable else f'<{self.endpoint}>'}"

    @property
    def graph(self) -> NamedNode:
        """The name of the hidden graph that has its rows.

        >>> clause = ServiceClause("http://e/", False, "SELECT ?x { ?x ?p 1 }", ("x",), ("x",))
        >>> clause_of(clause.graph) == clause
        True
        """
        said = (self.endpoint, self.silent, self.query, self.columns, self.certain)
        host = quote(urlsplit(self.endpoint).netloc, safe=":")
        return NamedNode(f"{_SPACE}{quote(json.dumps(said), safe='')}#{host}")

    def pattern(self, row: Var) -> alg.Node:
        """The rows of the table; what SILENT may leave out is optional."""
        here = self.graph
        sure = () if self.silent else self.certain
        if self.variable is not None:
            sure = tuple(dict.fromkeys((self.variable, *sure)))
        patterns = [alg.TriplePattern(row, IS_ROW, IS_ROW, here)]
        patterns += [alg.TriplePattern(row, column_iri(n), Var(n), here) for n in sure]
        node: alg.Node = alg.Bgp(tuple(patterns))
        for name in self.columns:
            if name not in sure:
                one = alg.TriplePattern(row, column_iri(name), Var(name), here)
                node = alg.LeftJoin(node, alg.Bgp((one,)))
        return node


def column_iri(name: str) -> NamedNode:
    """The predicate of a column."""
    return NamedNode(f"{_SPACE}#column:{quote(name, safe='')}")


def clause_of(graph: object) -> ServiceClause | None:
    """The clause that a graph has the rows of; None if it is another graph."""
    if not isinstance(graph, NamedNode) or not graph.value.startswith(_SPACE):
        return None
    said = unquote(graph.value.removeprefix(_SPACE).partition("#")[0])
    endpoint, silent, query, columns, certain = json.loads(said)
    return ServiceClause(endpoint, silent, query, tuple(columns), tuple(certain))


def services_of(node: object) -> list[ServiceClause]:
    """The SERVICE clauses of a query, each once."""
    return list(_services_of(node))


@lru_cache(maxsize=1024)
def _services_of(node: object) -> tuple[ServiceClause, ...]:
    graphs = dict.fromkeys(p.graph for p in walk(node) if isinstance(p, alg.TriplePattern))
    return tuple(clause for graph in graphs if (clause := clause_of(graph)) is not None)


def with_rows(root: alg.Node, tables: Mapping[NamedNode, Table]) -> alg.Node:
    """A query with the rows of its tables in place of the patterns that read them."""
    return replaced(root, lambda part: _rows(part, tables) if isinstance(part, alg.Bgp) else None)


def _rows(bgp: alg.Bgp, tables: Mapping[NamedNode, Table]) -> alg.Node | None:
    reads = [pattern for pattern in bgp.patterns if pattern.graph in tables]
    if not reads:
        return None
    rest = tuple(pattern for pattern in bgp.patterns if pattern.graph not in tables)
    nodes: list[alg.Node] = [alg.Bgp(rest)] if rest else []
    for row in dict.fromkeys(pattern.subject for pattern in reads):
        own = [pattern for pattern in reads if pattern.subject == row]
        columns = tuple(dict.fromkeys(v for p in own for v in pattern_variables(p)))
        table = tables[own[0].graph]  # type: ignore[index] # it is a service's
        found = [(node, *(cells.get(v.name) for v in columns[1:])) for node, cells in table.items()]
        nodes.append(alg.Values(columns, tuple(cells for cells in found if None not in cells)))
    return balanced(alg.Join, nodes)
