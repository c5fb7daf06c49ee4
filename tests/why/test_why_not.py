"""`query.why_not()`: one example for each reason, with its text."""

from __future__ import annotations

import pytest

from graphtide import LiveGraph

PREFIX = "PREFIX : <http://example.org/> "


def iri(name):
    return f"<http://example.org/{name}>"


def ask(text, *triples, **row):
    graph = LiveGraph()
    query = graph.watch(PREFIX + text)
    with graph.transaction() as tx:
        for triple in triples:
            s, p, o = triple.split()
            tx.insert(iri(s), iri(p), int(o) if o.isdigit() else iri(o))
    return query.why_not({name: v if v is None else iri(v) for name, v in row.items()})


def changes(explanation):
    return [change.text() for change in explanation.changes]


def test_a_missing_quad_and_the_nearest_one():
    found = ask("SELECT ?x ?y { ?x :p ?y . ?y :q ?z }", "a p c", "b q d", x="a", y="b")
    step = found.first_failure()
    assert step.text == "?x :p ?y"
    assert step.note == "no quad :a :p :b; nearest: :a :p :c"
    assert changes(found) == ["+ :a :p :b"]


def test_the_largest_part_that_holds():
    found = ask("SELECT ?x { ?x :p ?y . ?y :q ?z . ?z :r ?x }", "a p b", "a p c", "c q d", x="a")
    assert [step.holds for step in found.derivations[0].children] == [True, True, False]
    assert changes(found) == ["+ :d :r :a"]


def test_a_filter_with_its_values():
    found = ask("SELECT ?x { ?x :v ?n FILTER (?n > 80) }", "a v 75", x="a")
    step = found.first_failure()
    assert step.kind == "filter"
    assert step.note == "?n = 75"
    assert not found.changes
    assert found.notes


def test_not_exists_and_minus_show_what_spoils_them():
    found = ask("SELECT ?x { ?x :p ?y FILTER NOT EXISTS { ?x :q ?z } }", "a p b", "a q c", x="a")
    assert found.first_failure().kind == "not exists"
    assert changes(found) == ["- :a :q :c"]
    found = ask("SELECT ?x { ?x :p ?y MINUS { ?x :q ?z } }", "a p b", "a q c", x="a")
    assert found.first_failure().kind == "minus"
    assert changes(found) == ["- :a :q :c"]


def test_exists_optional_union_and_path():
    found = ask("SELECT ?x { ?x :p ?y FILTER EXISTS { ?y :q ?x } }", "a p b", x="a")
    assert changes(found) == ["+ :b :q :a"]
    found = ask("SELECT ?x ?n { ?x :p ?y OPTIONAL { ?x :n ?n } }", "a p b", x="a", n="c")
    assert changes(found) == ["+ :a :n :c"]
    found = ask("SELECT ?x ?n { ?x :p ?y OPTIONAL { ?x :n ?n } }", "a p b", "a n c", x="a", n=None)
    assert changes(found) == ["- :a :n :c"]
    found = ask("SELECT ?x { { ?x :p ?y } UNION { ?x :q ?y . ?y :r ?z } }", "a q b", x="a")
    assert changes(found) in (["+ :b :r :urn:graphtide:any:z"], ["+ :a :p :urn:graphtide:any:y"])
    found = ask("SELECT ?x { :a :next+ ?x }", "a next b", "c next d", x="d")
    assert found.first_failure().note == "no path between :a :d"
    assert changes(found) == ["+ :a :next :d"]


def test_group_and_range():
    found = ask("SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?x", "a p b", x="a", n="no")
    assert "which is not the value asked for" in found.first_failure().note
    found = ask("SELECT ?x { ?x :v ?n } ORDER BY ?n LIMIT 1", "a v 1", "b v 2", x="b")
    assert found.first_failure().note == "it is row 2 of 2"


def test_ask_and_a_row_that_is_there():
    graph = LiveGraph()
    yes = graph.watch(PREFIX + "ASK { ?x :p ?y }")
    assert changes(yes.why_not(answer=True)) == ["+ :urn:graphtide:any:x :p :urn:graphtide:any:y"]
    graph.insert(iri("a"), iri("p"), iri("b"))
    assert changes(yes.why_not(answer=False)) == ["- :a :p :b"]
    assert str(yes.why_not(answer=True)).startswith("answer=")


@pytest.mark.parametrize("view", ["text", "json", "mermaid", "html"])
def test_every_view_shows_the_failure(view):
    found = ask("SELECT ?x { ?x :p ?y . ?y :q ?z }", "a p b", x="a")
    assert "no quad :b :q ?z" in getattr(found, view)()
