"""Terms as people give them, and those that cannot stand where they are put."""

from __future__ import annotations

import pytest
from engine.small_graph import INTEGER, iri, watch

from graphtide import BlankNode, Literal, LiveGraph, NamedNode
from graphtide.errors import TermError

XSD = "http://www.w3.org/2001/XMLSchema#"
S, P, O = iri("s"), iri("p"), iri("o")


def in_transaction(graph, *quad) -> None:
    with graph.transaction() as tx:
        tx.insert(*quad)


def only_object(graph) -> str:
    ((_, _, found, _),) = graph.quads()
    return str(found)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (NamedNode("http://example.org/o"), O),
        (BlankNode("b"), "_:b"),
        (Literal("hi", language="en"), '"hi"@en'),
        (O, O),
        ("_:b", "_:b"),
        ('"hi"', '"hi"'),
        ('"hi"@EN', '"hi"@en'),
        (f'"01"^^{INTEGER}', f'"01"^^{INTEGER}'),
        (7, f'"7"^^{INTEGER}'),
        (-(2**70), f'"{-(2**70)}"^^{INTEGER}'),
        (1.5, f'"1.5"^^<{XSD}double>'),
        (True, f'"true"^^<{XSD}boolean>'),
        (False, f'"false"^^<{XSD}boolean>'),
    ],
)
def test_an_object_can_be_given_as(given, text):
    graph = LiveGraph()
    graph.insert(S, P, given)
    assert only_object(graph) == text
    graph.delete(S, P, text)
    assert len(graph) == 0


def test_a_text_and_a_term_are_the_same_quad():
    graph = LiveGraph()
    graph.insert(NamedNode("http://example.org/s"), NamedNode("http://example.org/p"), Literal("x"))
    graph.insert(S, P, '"x"')
    graph.insert(S, P, f'"\\u0078"^^<{XSD}string>')
    assert (len(graph), graph.stats().redundant) == (1, 2)


def test_equal_numbers_with_different_spelling_are_different_quads():
    graph = LiveGraph()
    graph.insert(S, P, 1)
    graph.insert(S, P, f'"01"^^{INTEGER}')
    graph.insert(S, P, f'"1.0"^^<{XSD}decimal>')
    assert len(graph) == 3


def test_blank_nodes_can_be_subjects_and_graph_names():
    graph = LiveGraph()
    named = watch(graph, "SELECT ?s ?p ?o ?g { GRAPH ?g { ?s ?p ?o } }")
    graph.insert("_:s", P, O, "_:g")
    assert str(named.delta()) == f"+ s=_:s p={P} o={O} g=_:g"


@pytest.mark.parametrize(
    ("quad", "message"),
    [
        (('"a"', P, O), "'\"a\"' cannot be a subject: an IRI or a blank node is needed"),
        ((Literal("a"), P, O), "cannot be a subject"),
        ((5, P, O), "5 cannot be a subject"),
        ((None, P, O), "None cannot be a subject"),
        ((S, "_:p", O), "'_:p' cannot be a predicate: an IRI is needed"),
        ((S, BlankNode("p"), O), "cannot be a predicate"),
        ((S, '"p"', O), "cannot be a predicate"),
        ((S, P, O, '"g"'), "cannot be a graph name: an IRI or a blank node is needed"),
        ((S, P, O, 5), "5 cannot be a graph name"),
        ((S, P, None), "None is not an RDF term"),
        ((S, P, [1]), r"\[1\] is not an RDF term"),
        ((S, P, "plain words"), "not an RDF term: 'plain words'"),
        (("http://example.org/s", P, O), "not an RDF term: 'http://example.org/s'"),
        ((S, "<no iri>", O), "an IRI ends with '>' and has no spaces"),
        ((S, P, ""), "the text is empty"),
        ((S, P, '"open'), "not an RDF term"),
        ((S, P, O, ""), "the text is empty"),
    ],
)
@pytest.mark.parametrize("change", [LiveGraph.insert, LiveGraph.delete, in_transaction])
def test_what_is_no_term_or_cannot_stand_there_is_refused(quad, message, change):
    graph = LiveGraph()
    with pytest.raises(TermError, match=message):
        change(graph, *quad)
    assert (len(graph), graph.stats().transactions) == (0, 0)


def test_a_refusal_says_what_to_write_instead():
    with pytest.raises(TermError) as caught:
        LiveGraph().insert('"a"', P, O)
    assert caught.value.hint == (
        'write terms in N-Triples syntax, such as "<http://example.org/a>" or "_:b"'
    )
