"""Where pyoxigraph is no oracle it really departs from the recommendation; elsewhere it agrees."""

from __future__ import annotations

import pytest
from pyoxigraph import Literal, Quad, Store

from graphtide.lang.sparql.parse import parse_query
from oracles.answers import oxigraph_agrees, oxigraph_answer, reference_answer
from oracles.transactions import iri

QUADS = [
    Quad(iri("a"), iri("p"), iri("b")),
    Quad(iri("a"), iri("q"), iri("b")),
    Quad(iri("a"), iri("p"), iri("b"), iri("g1")),
    Quad(iri("a"), iri("p"), iri("b"), iri("g2")),
    Quad(iri("b"), iri("p"), Literal("text")),
]
DEPARTS = {
    "alternative": "SELECT * { ?x :p|:q ?y }",
    "negated set between bound ends": "SELECT * { ?x :p ?y . ?x !(:r) ?y }",
    "count of an error": "SELECT (COUNT(?y / 2) AS ?n) { ?x :p ?y }",
    "merged graphs": "SELECT * FROM :g1 FROM :g2 { ?x :p ?y }",
}
AGREES = {
    "patterns": "SELECT * { ?x :p ?y . ?x :q ?y }",
    "count": "SELECT ?x (COUNT(?y) AS ?n) (COUNT(DISTINCT ?y) AS ?m) { ?x ?p ?y } GROUP BY ?x",
    "closure": "SELECT * { ?x (:p/:q?)* ?y }",
    "ask": "ASK { ?x :p/:p ?y }",
    "construct": "CONSTRUCT { ?y :r ?x } { ?x :p ?y }",
    "one graph": "SELECT * FROM :g1 FROM NAMED :g2 { ?x :p ?y GRAPH ?g { ?x ?p ?y } }",
}


def both(text):
    query = f"PREFIX : <http://example.org/> {text}"
    store = Store()
    store.extend(QUADS)
    return parse_query(query), oxigraph_answer(query, store), reference_answer(query, QUADS)


@pytest.mark.parametrize("name", DEPARTS)
def test_departs(name):
    query, theirs, ours = both(DEPARTS[name])
    assert not oxigraph_agrees(query)
    assert theirs != ours


@pytest.mark.parametrize("name", AGREES)
def test_agrees(name):
    query, theirs, ours = both(AGREES[name])
    assert oxigraph_agrees(query)
    assert theirs == ours
