"""ASK, CONSTRUCT, DESCRIBE and datasets as standing queries: against the reference, and by hand."""

from __future__ import annotations

import pytest
from engine.against_reference import PREFIX, iri, streams, total, unhurried
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal

from graphtide import LiveGraph
from graphtide.errors import GraphtideError
from graphtide.lang.sparql.parse import parse_any_query
from oracles.reference import evaluate_query
from oracles.reference_update import evaluate_ask, evaluate_construct, evaluate_describe

NODES = [iri(n) for n in "abc"]
BLANKS = [BlankNode("x"), BlankNode("y"), BlankNode("z")]
LINKS = [iri(n) for n in "pq"]
changes = streams([*NODES, *BLANKS], LINKS, [*NODES, *BLANKS, Literal("text")])
in_graphs = streams(NODES, LINKS, NODES, (None, iri("g"), iri("h"), iri("i")))


def follow(text, stream, expected, make=LiveGraph):
    """The answer after every transaction is `expected(quads)`."""
    graph = make()
    watch = graph.watch(PREFIX + text)
    answer = total(watch.delta())
    present: dict[tuple, None] = {}
    assert +answer == expected([])
    for body in stream:
        with graph.transaction() as tx:
            for diff, quad in body:
                (tx.insert if diff > 0 else tx.delete)(*quad)
                present.update({quad: None}) if diff > 0 else present.pop(quad, None)
        answer.update(total(watch.delta()))
        assert +answer == expected(list(present))


PATTERNS = (
    "?a :p ?b",
    "?a :p ?b . ?b :q ?c",
    "?a :p ?b FILTER NOT EXISTS { ?b :q ?a }",
    ":a :p+ ?b",
)


@unhurried
@given(st.sampled_from(PATTERNS), changes)
def test_ask(pattern, stream):
    text = f"ASK {{ {pattern} }}"
    query = parse_any_query(PREFIX + text)
    follow(text, stream, lambda quads: {(Literal(evaluate_ask(query, quads)),): 1})


TEMPLATES = (
    "?a :r ?b",
    "?b ?c :x . ?a :r ?b",
    "_:n :of ?a ; :to ?b . _:m :has _:n",
    "[] :of ?b",
    "?a :is 1 . ?none :p ?a",
    "",
)


@unhurried
@given(
    st.sampled_from(TEMPLATES),
    st.sampled_from((*PATTERNS, "?a :p ?b OPTIONAL { ?b ?c ?a }")),
    changes,
)
def test_construct(template, pattern, stream):
    text = f"CONSTRUCT {{ {template} }} WHERE {{ {pattern} }}"
    query = parse_any_query(PREFIX + text)
    follow(text, stream, lambda quads: dict.fromkeys(evaluate_construct(query, quads), 1))


@unhurried
@given(changes)
def test_construct_with_the_names_of_its_own_columns(stream):
    text = "CONSTRUCT { ?object :r ?subject . [] :s ?predicate } { ?subject ?predicate ?object }"
    query = parse_any_query(PREFIX + text)
    follow(text, stream, lambda quads: dict.fromkeys(evaluate_construct(query, quads), 1))


@unhurried
@given(st.sampled_from((":a", ":a :b", "?x { ?x :p ?y }", "?x ?y :c { ?x :q ?y }", ":n")), changes)
def test_describe(targets, stream):
    text = f"DESCRIBE {targets}"
    query = parse_any_query(PREFIX + text)
    follow(text, stream, lambda quads: dict.fromkeys(evaluate_describe(query, quads), 1))


FROM = ("FROM :g", "FROM :g FROM :h", "FROM NAMED :g", "FROM :g FROM NAMED :h FROM NAMED :i")
GRAPH_PATTERNS = (
    "?a :p ?b",
    "?a :p ?b . ?b :q ?c",
    "GRAPH ?x { ?a :p ?b }",
    "?a :p ?b GRAPH ?x { ?b :q ?c }",
    "GRAPH :h { ?a :p ?b }",
    "GRAPH ?x { }",
    "?a :p+ ?b",
    "?a :p* ?b",
    "?a :p ?b FILTER NOT EXISTS { ?b :q ?a }",
    "?a :p ?b FILTER EXISTS { GRAPH ?x { ?b :q ?a } }",
    "?a :p ?b OPTIONAL { ?b :q ?c }",
)


@unhurried
@given(st.sampled_from(FROM), st.sampled_from(GRAPH_PATTERNS), in_graphs)
def test_from(dataset, pattern, stream):
    text = f"SELECT * {dataset} {{ {pattern} }}"
    query = parse_any_query(PREFIX + text)
    follow(text, stream, lambda quads: evaluate_query(query, quads))


@unhurried
@given(st.sampled_from(GRAPH_PATTERNS), in_graphs)
def test_the_union_of_all_graphs_as_default_graph(pattern, stream):
    text = f"SELECT * {{ {pattern} }}"
    query = parse_any_query(PREFIX + text)

    def expected(quads):
        everywhere = {(s, p, o, None) for s, p, o, _ in quads}
        named = {quad for quad in quads if quad[3] is not None}
        return evaluate_query(query, [*everywhere, *named])

    follow(text, stream, expected, lambda: LiveGraph(default_graph="union"))


def test_an_unknown_default_graph_is_refused():
    with pytest.raises(GraphtideError, match="default_graph='all'"):
        LiveGraph(default_graph="all")


def test_an_ask_flips():
    graph = LiveGraph()
    watch = graph.watch("ASK { <ex:a> <ex:p> ?b }")
    assert not watch.answer()
    graph.insert(iri("a"), iri("p"), 1)
    flipped = [(row.diff, row.row["answer"].value) for row in watch.delta()]
    assert sorted(flipped) == [(-1, "false"), (1, "true")]
    assert watch.answer()
    graph.insert(iri("a"), iri("p"), 2)
    assert len(watch.delta()) == 0
    graph.delete(iri("a"), iri("p"), 1)
    assert watch.answer()
    graph.delete(iri("a"), iri("p"), 2)
    assert not watch.answer()


def test_only_an_ask_has_a_yes_or_no():
    with pytest.raises(GraphtideError, match="SELECT"):
        LiveGraph().watch("SELECT * { ?a ?b ?c }").answer()


def test_a_blank_node_of_a_template_is_the_same_when_its_row_comes_back():
    graph = LiveGraph()
    watch = graph.watch("CONSTRUCT { [] <ex:of> ?a } { ?a <ex:p> ?b }")
    graph.insert(iri("a"), iri("p"), 1)
    (first,) = watch.delta()
    graph.delete(iri("a"), iri("p"), 1)
    graph.insert(iri("a"), iri("p"), 1)
    (again,) = watch.delta()
    assert first.row == again.row
    graph.insert(iri("a"), iri("p"), 2)
    (other,) = watch.delta()
    assert other.row["subject"] != first.row["subject"]
