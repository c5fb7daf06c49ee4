"""Windowed queries as data: RSP-QL's part of a query that SPARQL does not have."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from pyoxigraph import NamedNode

from graphtide.algebra.nodes import (
    Bgp,
    DefaultGraph,
    Distinct,
    GraphNames,
    Path,
    Project,
    TriplePattern,
)
from graphtide.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graphtide.algebra.expressions import Var
    from graphtide.algebra.nodes import Node, SelectQuery

Output = Literal["ISTREAM", "DSTREAM", "RSTREAM"]

WINDOW_SPACE: Final = "urn:graphtide:window:"
"""Inside a query, `WINDOW :w { … }` is a pattern asked of the graph of this name and the window's.
No data can be in such a graph but what a window holds."""


SUBJECT, PREDICATE, OBJECT, GRAPH = (
    NamedNode(f"{WINDOW_SPACE}{part}") for part in ("subject", "predicate", "object", "graph")
)
"""How quads of event graphs are written down: `GRAPH ?g { … }` inside a window asks for these."""


@dataclass(frozen=True, slots=True)
class WindowClause:
    """`FROM NAMED WINDOW iri ON stream [RANGE length STEP step]`, or `[ELEMENTS length STEP step]`.

    Lengths are in ticks, or in milliseconds where `in_time`: the graph knows how long a tick is.
    """

    iri: NamedNode
    stream: NamedNode
    kind: Literal["RANGE", "ELEMENTS"]
    length: int
    step: int
    in_time: bool = False

    @property
    def graph(self) -> NamedNode:
        """The name of the graph that the window's patterns are asked of."""
        return NamedNode(WINDOW_SPACE + self.iri.value)

    @property
    def quads(self) -> NamedNode:
        """The name of the graph in which the quads of event graphs are written down."""
        return NamedNode(f"{WINDOW_SPACE}quads:{self.iri.value}")


@dataclass(frozen=True, slots=True)
class WindowedQuery:
    """A query over windows: what it asks, of which windows, and which rows it puts out."""

    select: SelectQuery
    windows: tuple[WindowClause, ...]
    output: Output = "RSTREAM"
    name: str | None = None


def written_down(node: Node, where: NamedNode, fresh: Callable[[], Var]) -> Node:
    """A pattern over event graphs, as one over the quads that are written down in a graph."""
    return cast("Node", _written(node, where, fresh))


def _written(part: Any, where: NamedNode, fresh: Callable[[], Var]) -> Any:  # noqa: ANN401 - any part
    match part:
        case Bgp(patterns):
            found = (_statement(pattern, where, fresh()) for pattern in patterns)
            return Bgp(tuple(each for statement in found for each in statement))
        case GraphNames(var):
            statement = Bgp((TriplePattern(fresh(), GRAPH, var, where),))
            return Distinct(Project(statement, (var,)))
        case Path():
            raise UnsupportedError(
                "a path inside GRAPH inside WINDOW cannot be maintained",
                hint="leave GRAPH out: a path may lead over the events of the whole window",
            )
        case tuple():
            return tuple(_written(each, where, fresh) for each in part)
        case _ if is_dataclass(part) and not isinstance(part, type):
            parts = {f.name: _written(getattr(part, f.name), where, fresh) for f in fields(part)}
            return replace(part, **parts)
        case _:
            return part


def _statement(pattern: TriplePattern, where: NamedNode, quad: Var) -> Iterator[TriplePattern]:
    if isinstance(pattern.graph, DefaultGraph):
        yield pattern
        return
    parts = (pattern.subject, pattern.predicate, pattern.object, pattern.graph)
    for name, part in zip((SUBJECT, PREDICATE, OBJECT, GRAPH), parts, strict=True):
        yield TriplePattern(quad, name, part, where)  # type: ignore[arg-type]
