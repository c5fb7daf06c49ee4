"""Windowed queries as data: RSP-QL's part of a query that SPARQL does not have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from graphtide.rdf.term import NamedNode

if TYPE_CHECKING:
    from graphtide.algebra.nodes import SelectQuery

Output = Literal["ISTREAM", "DSTREAM", "RSTREAM"]

WINDOW_SPACE: Final = "urn:graphtide:window:"
"""Inside a query, `WINDOW :w { … }` is a pattern asked of the graph of this name and the window's.
No data can be in such a graph but what a window holds."""


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


@dataclass(frozen=True, slots=True)
class WindowedQuery:
    """A query over windows: what it asks, of which windows, and which rows it puts out."""

    select: SelectQuery
    windows: tuple[WindowClause, ...]
    output: Output = "RSTREAM"
    name: str | None = None
