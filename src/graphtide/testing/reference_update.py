"""SPARQL Update as a function from a set of quads to a set of quads.

https://www.w3.org/TR/sparql11-update/#formalModel. Graphs without quads do not exist here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, assert_never
from uuid import uuid4

from graphtide.algebra.nodes import DefaultGraph
from graphtide.algebra.updates import (
    Add,
    Clear,
    Copy,
    Create,
    DeleteData,
    Drop,
    Graphs,
    InsertData,
    Load,
    Modify,
    Move,
)
from graphtide.errors import GraphtideError
from graphtide.functions.templates import fill_template
from graphtide.testing.reference_forms import solutions_of

if TYPE_CHECKING:
    from graphtide.algebra.updates import Operation, Update
    from graphtide.rdf.term import NamedNode, Term
    from graphtide.testing.reference import Quad

    Triple = tuple[Term, Term, Term]
    Graph = NamedNode | DefaultGraph

Loader = Callable[["NamedNode"], "Iterable[Triple]"]
"""Reads the triples behind an IRI; raises `GraphtideError` when it cannot."""


def evaluate_update(
    update: Update, quads: Iterable[Quad], load: Loader | None = None
) -> frozenset[Quad]:
    """The quads after all operations of a request; an error means that nothing happened.

    >>> from graphtide.lang.sparql import parse_update
    >>> text = "INSERT DATA { <ex:a> <ex:p> 1, 2 } ; DELETE WHERE { ?s ?p 1 }"
    >>> [str(o.value) for _, _, o, _ in evaluate_update(parse_update(text), [])]
    ['2']
    """
    store = frozenset(quads)
    for operation in update.operations:
        store = _applied(operation, store, load)
    return store


def _applied(operation: Operation, store: frozenset[Quad], load: Loader | None) -> frozenset[Quad]:
    match operation:
        case InsertData(template):
            return store.union(fill_template(template, {}, scope=str(uuid4())))
        case DeleteData(template):
            return store.difference(fill_template(template, {}))
        case Modify():
            return _modified(operation, store)
        case Load(source, into, silent):
            return store.union(_loaded(source, into, load, silent=silent))
        case Clear(target) | Drop(target):
            return frozenset(quad for quad in store if not _targeted(quad[3], target))
        case Create(graph, silent):
            if not silent and any(quad[3] == graph for quad in store):
                raise GraphtideError(f"the graph {graph} exists already")
            return store
        case Copy() | Move() | Add():
            return _transferred(operation, store)
        case _:
            assert_never(operation)


def _modified(operation: Modify, store: frozenset[Quad]) -> frozenset[Quad]:
    rows = solutions_of(operation.where, store)
    scope = str(uuid4())
    gone = [quad for row in rows for quad in fill_template(operation.delete, row)]
    come = [quad for row in rows for quad in fill_template(operation.insert, row, scope=scope)]
    return store.difference(gone).union(come)


def _loaded(source: NamedNode, into: Graph, load: Loader | None, *, silent: bool) -> list[Quad]:
    try:
        if load is None:
            raise GraphtideError(f"nothing can be loaded from {source} here")
        return [(s, p, o, _name(into)) for s, p, o in load(source)]
    except GraphtideError:
        if silent:
            return []
        raise


def _transferred(operation: Copy | Move | Add, store: frozenset[Quad]) -> frozenset[Quad]:
    source, destination = _name(operation.source), _name(operation.destination)
    if source is not None and not any(quad[3] == source for quad in store):
        if operation.silent:
            return store
        raise GraphtideError(f"there is no graph {source}")
    if source == destination:
        return store
    moved = {(s, p, o, destination) for s, p, o, g in store if g == source}
    cleared: set[Term | None] = set()
    if not isinstance(operation, Add):
        cleared.add(destination)
    if isinstance(operation, Move):
        cleared.add(source)
    return frozenset(quad for quad in store if quad[3] not in cleared).union(moved)


def _targeted(graph: Term | None, target: Graph | Graphs) -> bool:
    match target:
        case Graphs.ALL:
            return True
        case Graphs.NAMED:
            return graph is not None
        case _:
            return graph == _name(target)


def _name(graph: Graph) -> NamedNode | None:
    return None if isinstance(graph, DefaultGraph) else graph
