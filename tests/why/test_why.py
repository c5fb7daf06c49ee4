"""`query.why()` and `row.why()`: one example for each part of a query, with its text."""

from __future__ import annotations

import json

import pytest

from graphtide import GraphtideError, Limits, LiveGraph
from graphtide.engine.reclaim import ALWAYS
from graphtide.errors import LimitError

PREFIX = "PREFIX : <http://example.org/> "


def iri(name):
    return f"<http://example.org/{name}>"


def graph_of(*triples, **options):
    graph = LiveGraph(**options)
    with graph.transaction() as tx:
        for triple in triples:
            s, p, o = triple.split()
            tx.insert(iri(s), iri(p), int(o) if o.isdigit() else iri(o))
    return graph


def lines(explanation):
    return str(explanation).splitlines()[1:]


def test_optional_shows_what_was_there_and_what_was_not():
    graph = graph_of("a knows b", "c knows d", "a age 7")
    query = graph.watch(PREFIX + "SELECT ?x ?y { ?x :knows ?z OPTIONAL { ?x :age ?y } }")
    assert lines(query.why(x=iri("a"))) == [
        "├─ ?x :knows ?z",
        "│     :a :knows :b",
        "└─ OPTIONAL",
        "   └─ ?x :age ?y",
        "         :a :age 7",
    ]
    assert lines(query.why(x=iri("c")))[-1] == "└─ OPTIONAL { ?x :age ?y }: nothing matches"


def test_minus_and_union_and_values_and_bind():
    graph = graph_of("a knows b", "a likes c")
    query = graph.watch(
        PREFIX
        + """SELECT ?x ?n { { ?x :knows ?y } UNION { ?x :hates ?y } MINUS { ?x :blocks ?y }
        VALUES ?x { :a :b } BIND (1 + 1 AS ?n) }"""
    )
    text = str(query.why(x=iri("a")))
    assert "UNION" in text
    assert "MINUS { ?x :blocks ?y }: nothing matches" in text
    assert "VALUES ?x: ?x = :a" in text
    assert "?n = 2" in text


def test_the_members_of_a_group():
    graph = graph_of("a age 1", "b age 2", "c age 4")
    query = graph.watch(PREFIX + "SELECT (SUM(?n) AS ?sum) (COUNT(*) AS ?rows) { ?x :age ?n }")
    explanation = query.why()
    assert "of 3 rows" in str(explanation)
    assert len(explanation.facts()) == 3
    assert "?rows = 3" in str(explanation)


def test_a_shortest_path():
    graph = graph_of("a next b", "b next c", "c next d", "a next c")
    query = graph.watch(PREFIX + "SELECT ?x { :a :next+ ?x }")
    assert lines(query.why(x=iri("d"))) == [
        "└─ :a :next+ ?x",
        "      :a :next :c",
        "      :c :next :d",
    ]


def test_a_subselect_and_a_range():
    graph = graph_of("a age 1", "b age 2", "c age 3")
    query = graph.watch(
        PREFIX + "SELECT ?x { { SELECT ?x { ?x :age ?n } ORDER BY DESC(?n) LIMIT 2 } ?x :age ?m }"
    )
    assert "row 2 of 3" in str(query.why(x=iri("b")))
    with pytest.raises(GraphtideError, match="is not in the answer"):
        query.why(x=iri("a"))


def test_all_derivations_up_to_a_limit():
    graph = graph_of("a knows b", "a knows c", "a knows d")
    query = graph.watch(PREFIX + "SELECT DISTINCT ?x { ?x :knows ?y }")
    assert len(query.why(x=iri("a")).derivations) == 1
    assert len(query.why(x=iri("a"), all=True).derivations) == 3
    some = query.why(x=iri("a"), all=True, limit=2)
    assert len(some.derivations) == 2
    assert some.notes == ("stopped after 2 derivations",)


def test_ask_and_construct():
    graph = graph_of("a knows b")
    ask = graph.watch(PREFIX + "ASK { ?x :knows ?y }")
    assert lines(ask.why()) == ["└─ ?x :knows ?y", "      :a :knows :b"]
    no = graph.watch(PREFIX + "ASK { ?x :hates ?y }")
    assert "nothing matches" in str(no.why(answer=False))
    made = graph.watch(PREFIX + "CONSTRUCT { ?y :knownBy ?x } { ?x :knows ?y }")
    assert lines(made.why(subject=iri("b"))) == ["└─ ?x :knows ?y", "      :a :knows :b"]


def test_named_graphs():
    graph = LiveGraph()
    graph.insert(iri("a"), iri("p"), iri("b"), iri("g"))
    query = graph.watch(PREFIX + "SELECT ?g { GRAPH ?g { ?x :p ?y } }")
    (fact,) = query.why(g=iri("g")).facts()
    assert [str(part) for part in fact.quad] == [iri("a"), iri("p"), iri("b"), iri("g")]
    union = LiveGraph(default_graph="union")
    union.insert(iri("a"), iri("p"), iri("b"), iri("g"))
    anywhere = union.watch(PREFIX + "SELECT ?x { ?x :p ?y }")
    assert anywhere.why(x=iri("a")).facts() == (fact,)


def test_a_delta_row_names_its_change_of_a_batch():
    graph = LiveGraph()
    query = graph.watch(PREFIX + "SELECT ?x { ?x :p ?y FILTER NOT EXISTS { ?x :q ?z } }")
    graph.insert(iri("a"), iri("p"), iri("b"), time=1)
    graph.insert(iri("a"), iri("q"), iri("b"), time=2)
    graph.delete(iri("a"), iri("q"), iri("b"), time=3)
    came, went, again = query.rows()
    assert [change.text() for change in came.why().changes] == ["+ :a :p :b"]
    assert [change.text() for change in went.why().changes] == ["+ :a :q :b"]
    assert [change.text() for change in again.why().changes] == ["- :a :q :b"]
    graph.insert(iri("c"), iri("p"), iri("d"), time=4)
    assert query.count() == 2
    assert "not retained" in str(came.why())


def test_an_update_of_several_steps_is_one_transaction():
    graph = graph_of("a p b")
    query = graph.watch(PREFIX + "SELECT ?x { ?x :p ?y . ?y :q ?z }")
    graph.update(PREFIX + "INSERT DATA { :b :q :c } ; INSERT DATA { :d :e :f }")
    (row,) = query.delta()
    assert [change.text() for change in row.why().changes] == ["+ :b :q :c"]


def test_a_row_with_more_copies():
    graph = graph_of("a p b")
    query = graph.watch(PREFIX + "SELECT ?x { ?x :p ?y }")
    graph.insert(iri("a"), iri("p"), iri("c"))
    (row,) = query.delta()
    assert [change.text() for change in row.why().changes] == ["+ :a :p :c"]


def test_a_wrong_column_a_store_without_quads_and_a_limit():
    graph = graph_of("a p b")
    query = graph.watch(PREFIX + "SELECT ?x { ?x :p ?y }")
    with pytest.raises(GraphtideError, match="no column 'z'"):
        query.why(z=1)
    stream = LiveGraph(store="none")
    passing = stream.watch(PREFIX + "SELECT ?x { ?x :p ?y }")
    stream.insert(iri("a"), iri("p"), iri("b"))
    with pytest.raises(GraphtideError, match="stores no quads"):
        passing.why(x=iri("a"))
    slow = LiveGraph(limits=Limits(query_seconds=1e-9))
    slow.insert(iri("a"), iri("p"), iri("b"))
    with pytest.raises(LimitError):
        slow.watch(PREFIX + "SELECT ?x { ?x :p ?y }", strategy="rete").why(x=iri("a"))


def test_the_same_tree_in_json_mermaid_and_html():
    graph = graph_of("a p b")
    query = graph.watch(PREFIX + "SELECT ?x { ?x :p ?y FILTER (?x != '<i>') }")
    explanation = query.why(x=iri("a"))
    found = json.loads(explanation.json())
    assert found["row"] == {"x": iri("a")}
    steps = found["derivations"][0]["children"]
    assert [step["kind"] for step in steps] == ["pattern", "filter"]
    assert steps[0]["quads"] == [[iri("a"), iri("p"), iri("b")]]
    assert explanation.mermaid().startswith("flowchart TB")
    assert ":a :p :b" in explanation.mermaid()
    assert "&lt;i&gt;" in explanation.html()
    assert "<i>" not in explanation.html()


@pytest.mark.parametrize("strategy", ["search", "rete", "decomposed"])
def test_quads_are_found_by_any_index(strategy):
    graph = graph_of(*(f"a{i} p b{i % 7}" for i in range(200)), *(f"b{i} q c" for i in range(7)))
    query = graph.watch(PREFIX + "SELECT ?x ?y { ?x :p ?y . ?y :q ?z }", strategy=strategy)
    for i in (0, 6, 7, 199):
        texts = [fact.text() for fact in query.why(x=iri(f"a{i}")).facts()]
        assert texts == [f":a{i} :p :b{i % 7}", f":b{i % 7} :q :c"]
    assert len(query.why(y=iri("b3"), all=True, limit=500).derivations) == 29


@pytest.mark.slow
def test_a_query_that_is_nested_too_deeply_to_be_explained():
    text = "?x :p ?y"
    for _ in range(60):
        text = f"{{ {text} }} MINUS {{ ?x :q ?y }}"
    graph = graph_of("a p b")
    shallow = graph.watch(PREFIX + f"SELECT ?x {{ {text} }}")
    assert shallow.why(x=iri("a")).facts()
    deep = graph.watch(PREFIX + f"SELECT ?x {{ ?x :p ?y {' MINUS { ?x :q ?y }' * 1500} }}")
    for ask in (deep.why, deep.why_not):
        with pytest.raises(GraphtideError, match="nested too deeply"):
            ask(x=iri("a"))


@pytest.mark.skipif(ALWAYS, reason="what left is explained until its terms are freed")
def test_the_change_is_found_in_a_large_transaction():
    graph = LiveGraph()
    query = graph.watch(PREFIX + "SELECT ?x { ?x :p ?y . ?y :q ?z }")
    with graph.transaction() as tx:
        for i in range(3000):
            tx.insert(iri(f"a{i}"), iri("p"), iri(f"b{i}"))
        tx.insert(iri("b7"), iri("q"), iri("c"))
    (row,) = query.delta()
    assert {change.text() for change in row.why().changes} == {"+ :a7 :p :b7", "+ :b7 :q :c"}
    with graph.transaction() as tx:
        for i in range(3000):
            tx.delete(iri(f"a{i}"), iri("p"), iri(f"b{i}"))
    (row,) = query.delta()
    assert [change.text() for change in row.why().changes] == ["- :a7 :p :b7"]
