"""Programs of one random pattern, and their events as ids."""

from __future__ import annotations

from patterns.random_patterns import TYPES

from graphtide.lang.sparql.parse import parse_query
from graphtide.lang.tide.ast import EventDeclaration, GraphPattern
from graphtide.lang.tide.program import Program

RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def iri(name):
    return f"<http://example.org/{name}>"


def program_of(pattern):
    """A program with the random pattern, whose events have their parameters as objects."""
    events = []
    for name, arity in TYPES.items():
        body = " ; ".join([f"a :{name}", *(f":p{i} ?v{i}" for i in range(arity))])
        query = parse_query(f"PREFIX : <http://example.org/> SELECT * {{ ?e {body} }}")
        parameters = tuple(v for v in query.variables if v.name != "e")
        source = GraphPattern(query.root.child.patterns)
        events.append(EventDeclaration(name, parameters, source, 1))
    return Program((), tuple(events), patterns=(pattern,))


def event_ids(graph, name, values):
    encode = graph.terms.encode
    rows = [(iri("e"), RDF_TYPE, iri(name))]
    rows += [(iri("e"), iri(f"p{i}"), iri(f"v{value}")) for i, value in enumerate(values)]
    return [tuple(map(encode, row)) for row in rows]
