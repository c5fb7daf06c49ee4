"""Windowed queries as data: what RSP-QL adds to SPARQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from pyoxigraph import NamedNode

from graphtide.algebra import nodes as alg
from graphtide.algebra.traverse import replaced
from graphtide.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graphtide.algebra.expressions import Var

T = TypeVar("T")
Output = Literal["ISTREAM", "DSTREAM", "RSTREAM"]

WINDOW_SPACE: Final = "urn:graphtide:window:"
"""`WINDOW :w { … }` is matched in the graph with this prefix and the window's IRI as its name.
Such a graph holds nothing but the content of a window."""

SUBJECT, PREDICATE, OBJECT, GRAPH = (
    NamedNode(f"{WINDOW_SPACE}{part}") for part in ("subject", "predicate", "object", "graph")
)
"""The predicates that reify the quads of events: `GRAPH ?g { … }` inside a window matches these."""


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
        """The name of the graph in which the window's patterns are matched."""
        return NamedNode(WINDOW_SPACE + self.iri.value)

    @property
    def quads(self) -> NamedNode:
        """The name of the graph that holds the reified quads of events with named graphs."""
        return NamedNode(f"{WINDOW_SPACE}quads:{self.iri.value}")


@dataclass(frozen=True, slots=True)
class WindowedQuery:
    """A query over windows: the SELECT, its windows, and the relation-to-stream operator."""

    select: alg.SelectQuery
    windows: tuple[WindowClause, ...]
    output: Output = "RSTREAM"
    name: str | None = None


def reify(node: T, where: NamedNode, fresh: Callable[[], Var]) -> T:
    """Rewrite patterns over the graphs of events to patterns over their quads, reified in `where`.

    Each quad is described by four triples, `SUBJECT` to `GRAPH`, about a node of its own.
    """
    return replaced(node, lambda part: _reified(part, where, fresh))


def _reified(part: object, where: NamedNode, fresh: Callable[[], Var]) -> alg.Node | None:
    match part:
        case alg.Bgp(patterns):
            return alg.Bgp(tuple(each for p in patterns for each in _describe(p, where, fresh())))
        case alg.GraphNames(var):
            graphs = alg.Bgp((alg.TriplePattern(fresh(), GRAPH, var, where),))
            return alg.Distinct(alg.Project(graphs, (var,)))
        case alg.Path():
            raise UnsupportedError(
                "a property path inside GRAPH inside WINDOW cannot be maintained",
                hint="leave GRAPH out: a path may lead over the events of the whole window",
            )
        case _:
            return None


def _describe(
    pattern: alg.TriplePattern, where: NamedNode, quad: Var
) -> Iterator[alg.TriplePattern]:
    if isinstance(pattern.graph, alg.DefaultGraph):
        yield pattern
        return
    parts = (pattern.subject, pattern.predicate, pattern.object, pattern.graph)
    for name, part in zip((SUBJECT, PREDICATE, OBJECT, GRAPH), parts, strict=True):
        yield alg.TriplePattern(quad, name, part, where)  # type: ignore[arg-type]
