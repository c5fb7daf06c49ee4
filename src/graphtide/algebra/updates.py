"""SPARQL 1.1 Update as data: https://www.w3.org/TR/sparql11-update/.

Quads to insert or delete are triple patterns with a graph. In what is inserted, a blank node stands
as a `BlankNode` with its label: it becomes a new blank node for each row.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyoxigraph import NamedNode

    from graphtide.algebra.nodes import DefaultGraph, SelectQuery, TriplePattern


class Graphs(Enum):
    """Many graphs at once, as the target of CLEAR or DROP."""

    NAMED = "all named graphs"
    ALL = "all graphs"


@dataclass(frozen=True, slots=True)
class InsertData:
    """https://www.w3.org/TR/sparql11-update/#insertData"""

    quads: tuple[TriplePattern, ...]


@dataclass(frozen=True, slots=True)
class DeleteData:
    """https://www.w3.org/TR/sparql11-update/#deleteData"""

    quads: tuple[TriplePattern, ...]


@dataclass(frozen=True, slots=True)
class Modify:
    """https://www.w3.org/TR/sparql11-update/#deleteInsert, and DELETE WHERE.

    `where` is evaluated first; for its rows all quads of `delete` are deleted, then all of `insert`
    inserted. WITH is already worked into the three parts, USING is `where.dataset`.
    """

    delete: tuple[TriplePattern, ...]
    insert: tuple[TriplePattern, ...]
    where: SelectQuery


@dataclass(frozen=True, slots=True)
class Load:
    """https://www.w3.org/TR/sparql11-update/#load"""

    source: NamedNode
    into: NamedNode | DefaultGraph
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Clear:
    """https://www.w3.org/TR/sparql11-update/#clear: remove all quads of the target."""

    target: NamedNode | DefaultGraph | Graphs
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Create:
    """https://www.w3.org/TR/sparql11-update/#create: fails if the graph has quads already."""

    graph: NamedNode
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Drop:
    """https://www.w3.org/TR/sparql11-update/#drop: as CLEAR, where empty graphs do not exist."""

    target: NamedNode | DefaultGraph | Graphs
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Copy:
    """https://www.w3.org/TR/sparql11-update/#copy: the destination becomes equal to the source."""

    source: NamedNode | DefaultGraph
    destination: NamedNode | DefaultGraph
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Move:
    """https://www.w3.org/TR/sparql11-update/#move: as COPY, and the source is dropped."""

    source: NamedNode | DefaultGraph
    destination: NamedNode | DefaultGraph
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Add:
    """https://www.w3.org/TR/sparql11-update/#add: the source's quads also in the destination."""

    source: NamedNode | DefaultGraph
    destination: NamedNode | DefaultGraph
    silent: bool = False


Operation = InsertData | DeleteData | Modify | Load | Clear | Create | Drop | Copy | Move | Add


@dataclass(frozen=True, slots=True)
class Update:
    """An update request: operations in sequence, as one atomic transaction."""

    operations: tuple[Operation, ...]
    text: str = ""
