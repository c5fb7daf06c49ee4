"""Reference evaluator: ASK, CONSTRUCT, DESCRIBE, and SPARQL Update as a function on sets of quads.

https://www.w3.org/TR/sparql11-query/#QueryForms,
https://www.w3.org/TR/sparql11-update/#formalModel. Empty graphs do not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, assert_never
from uuid import uuid4

from pyoxigraph import BlankNode, NamedNode

from graphtide.algebra import updates as upd
from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import DefaultGraph, SelectQuery
from graphtide.errors import GraphtideError
from graphtide.functions.templates import fill_template
from oracles.reference import Quad, evaluate_rows, visible_quads

if TYPE_CHECKING:
    from graphtide.algebra.queries import AskQuery, ConstructQuery, DescribeQuery
    from graphtide.rdf.terms import Term


if TYPE_CHECKING:
    Triple = tuple[Term, Term, Term]


def evaluate_ask(query: AskQuery, quads: Iterable[Quad]) -> bool:
    """Whether the pattern has a solution.

    >>> from graphtide.lang.sparql.parse import parse_any_query
    >>> evaluate_ask(parse_any_query("ASK { FILTER(1 = 1) }"), [])
    True
    """
    return bool(evaluate_rows(query.select, quads))


def evaluate_construct(query: ConstructQuery, quads: Iterable[Quad]) -> frozenset[Triple]:
    """The instances of the template for all rows.

    >>> from graphtide.lang.sparql.parse import parse_any_query
    >>> text = "CONSTRUCT { ?x <ex:twice> ?x } { VALUES ?x { <ex:a> 1 } }"
    >>> [" ".join(map(str, t)) for t in evaluate_construct(parse_any_query(text), [])]
    ['<ex:a> <ex:twice> <ex:a>']
    """
    return frozenset(
        (s, p, o)
        for row in solutions_of(query.select, quads)
        for s, p, o, _ in fill_template(query.template, row)
    )


def evaluate_describe(query: DescribeQuery, quads: Iterable[Quad]) -> frozenset[Triple]:
    """The concise bounded descriptions of the targets, over the default graph."""
    known = list(quads)
    rows = solutions_of(query.select, known)
    waiting: list[Term] = []
    for target in query.targets:
        if isinstance(target, Var):
            waiting += [row[target] for row in rows if target in row]
        else:
            waiting.append(target)
    triples = [(s, p, o) for s, p, o, g in visible_quads(query.select.dataset, known) if g is None]
    found: set[Triple] = set()
    described: set[Term] = set()
    while waiting:
        term = waiting.pop()
        if term in described:
            continue
        described.add(term)
        about = [triple for triple in triples if triple[0] == term]
        found.update(about)
        waiting += [o for _, _, o in about if isinstance(o, BlankNode)]
    return frozenset(found)


def solutions_of(query: SelectQuery, quads: Iterable[Quad]) -> list[dict[Var, Term]]:
    """The rows of a query as solutions, without unbound variables."""
    return [
        {v: t for v, t in zip(query.variables, row, strict=True) if t is not None}
        for row in evaluate_rows(query, quads)
    ]


if TYPE_CHECKING:
    Graph = NamedNode | DefaultGraph

Loader = Callable[["NamedNode"], "Iterable[Triple]"]
"""Loads the triples of an IRI, or raises `GraphtideError`."""


def evaluate_update(
    update: upd.Update, quads: Iterable[Quad], load: Loader | None = None
) -> frozenset[Quad]:
    """The quads after all operations of a request; an error means that nothing changed.

    >>> from graphtide.lang.sparql.parse import parse_update
    >>> text = "INSERT DATA { <ex:a> <ex:p> 1, 2 } ; DELETE WHERE { ?s ?p 1 }"
    >>> [str(o.value) for _, _, o, _ in evaluate_update(parse_update(text), [])]
    ['2']
    """
    store = frozenset(quads)
    for operation in update.operations:
        store = _applied(operation, store, load)
    return store


def _applied(
    operation: upd.Operation, store: frozenset[Quad], load: Loader | None
) -> frozenset[Quad]:
    match operation:
        case upd.InsertData(template):
            return store.union(fill_template(template, {}, scope=str(uuid4())))
        case upd.DeleteData(template):
            return store.difference(fill_template(template, {}))
        case upd.Modify():
            return _modified(operation, store)
        case upd.Load(source, into, silent):
            return store.union(_loaded(source, into, load, silent=silent))
        case upd.Clear(target) | upd.Drop(target):
            return frozenset(quad for quad in store if not _targeted(quad[3], target))
        case upd.Create(graph, silent):
            if not silent and any(quad[3] == graph for quad in store):
                raise GraphtideError(f"the graph {graph} exists already")
            return store
        case upd.Copy() | upd.Move() | upd.Add():
            return _transferred(operation, store)
        case _:
            assert_never(operation)


def _modified(operation: upd.Modify, store: frozenset[Quad]) -> frozenset[Quad]:
    rows = solutions_of(operation.where, store)
    scope = str(uuid4())
    gone = [quad for row in rows for quad in fill_template(operation.delete, row)]
    come = [quad for row in rows for quad in fill_template(operation.insert, row, scope=scope)]
    return store.difference(gone).union(come)


def _loaded(source: NamedNode, into: Graph, load: Loader | None, *, silent: bool) -> list[Quad]:
    try:
        if load is None:
            raise GraphtideError(f"cannot load {source}")
        return [(s, p, o, _name(into)) for s, p, o in load(source)]
    except GraphtideError:
        if silent:
            return []
        raise


def _transferred(
    operation: upd.Copy | upd.Move | upd.Add, store: frozenset[Quad]
) -> frozenset[Quad]:
    source, destination = _name(operation.source), _name(operation.destination)
    if source is not None and not any(quad[3] == source for quad in store):
        if operation.silent:
            return store
        raise GraphtideError(f"there is no graph {source}")
    if source == destination:
        return store
    moved = {(s, p, o, destination) for s, p, o, g in store if g == source}
    cleared: set[Term | None] = set()
    if not isinstance(operation, upd.Add):
        cleared.add(destination)
    if isinstance(operation, upd.Move):
        cleared.add(source)
    return frozenset(quad for quad in store if quad[3] not in cleared).union(moved)


def _targeted(graph: Term | None, target: Graph | upd.Graphs) -> bool:
    match target:
        case upd.Graphs.ALL:
            return True
        case upd.Graphs.NAMED:
            return graph is not None
        case _:
            return graph == _name(target)


def _name(graph: Graph) -> NamedNode | None:
    return None if isinstance(graph, DefaultGraph) else graph
