"""Programs of one random pattern, and their events as ids."""

from __future__ import annotations

from patterns.random_patterns import TYPES

from graphtide.lang.sparql.parse import parse_query
from graphtide.lang.tide.ast import EventDeclaration, GraphPattern
from graphtide.lang.tide.program import Program

RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def iri(name):
    return f"<http://example.org/{name}>"


def declared(name, body):
    """`EVENT name(…) AS { ?e body }`; all variables but ?e are parameters."""
    query = parse_query(f"PREFIX : <http://example.org/> SELECT * {{ ?e {body} }}")
    parameters = tuple(v for v in query.variables if v.name != "e")
    return EventDeclaration(name, parameters, GraphPattern(query.root.child.patterns), 1)


def program_of(pattern, *, before=(), after=()):
    """A program with the random pattern, whose events have their parameters as objects.

    `before` and `after` are further declarations.
    """
    events = [
        declared(name, " ; ".join([f"a :{name}", *(f":p{i} ?v{i}" for i in range(arity))]))
        for name, arity in TYPES.items()
    ]
    return Program((), (*before, *events, *after), patterns=(pattern,))


def event_triples(name, values):
    rows = [(iri("e"), RDF_TYPE, iri(name))]
    return rows + [(iri("e"), iri(f"p{i}"), iri(f"v{value}")) for i, value in enumerate(values)]


def event_ids(graph, name, values):
    return [tuple(map(graph.terms.encode, row)) for row in event_triples(name, values)]
