"""Update requests as data, written by hand."""

import pytest
from pyoxigraph import BlankNode, NamedNode

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import DEFAULT_GRAPH, Bgp, Dataset, Project, SelectQuery, TriplePattern
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
from graphtide.lang.sparql.parse import parse_update

S, P, O, G = (Var(name) for name in "spog")


def n(name):
    return NamedNode("http://e/" + name)


def update(text):
    text = f"PREFIX : <http://e/> {text}"
    parsed = parse_update(text)
    assert parsed.text == text
    return parsed.operations


def quad(subject, predicate, obj, graph=DEFAULT_GRAPH):
    return TriplePattern(subject, predicate, obj, graph)


def where(*patterns, shown, dataset=None, text=""):
    return SelectQuery(
        shown, Project(Bgp(patterns), shown), f"PREFIX : <http://e/> {text}", dataset
    )


SIMPLE = {
    "LOAD :a": Load(n("a"), DEFAULT_GRAPH),
    "LOAD SILENT :a INTO GRAPH :g": Load(n("a"), n("g"), silent=True),
    "CLEAR DEFAULT": Clear(DEFAULT_GRAPH),
    "CLEAR SILENT GRAPH :g": Clear(n("g"), silent=True),
    "CLEAR NAMED": Clear(Graphs.NAMED),
    "drop all": Drop(Graphs.ALL),
    "CREATE SILENT GRAPH :g": Create(n("g"), silent=True),
    "COPY :g TO DEFAULT": Copy(n("g"), DEFAULT_GRAPH),
    "MOVE SILENT GRAPH :g TO :h": Move(n("g"), n("h"), silent=True),
    "ADD DEFAULT TO GRAPH :g": Add(DEFAULT_GRAPH, n("g")),
    "INSERT DATA { :a :p :b . GRAPH :g { :c :p _:x . _:x :p :d } :e :p _:x }": InsertData(
        (
            quad(n("a"), n("p"), n("b")),
            quad(n("c"), n("p"), BlankNode("l0"), n("g")),
            quad(BlankNode("l0"), n("p"), n("d"), n("g")),
            quad(n("e"), n("p"), BlankNode("l0")),
        )
    ),
    "DELETE DATA { GRAPH :g { :a :p :b } }": DeleteData((quad(n("a"), n("p"), n("b"), n("g")),)),
    "INSERT DATA { }": InsertData(()),
}


@pytest.mark.parametrize("text", SIMPLE)
def test_one_operation(text):
    assert update(text) == (SIMPLE[text],)


def test_sequences_with_prologues_between():
    operations = update("CLEAR ALL ; PREFIX x: <http://e/> CREATE GRAPH x:g ;")
    assert operations == (Clear(Graphs.ALL), Create(n("g")))
    assert update("") == ()


def test_delete_insert_where():
    text = "DELETE { ?s :p ?o } INSERT { GRAPH ?g { ?s :q ?o } } WHERE { GRAPH ?g { ?s :p ?o } }"
    found = where(quad(S, n("p"), O, G), shown=(S, O, G), text=text)
    assert update(text) == (Modify((quad(S, n("p"), O),), (quad(S, n("q"), O, G),), found),)


def test_delete_where_is_pattern_and_template():
    text = "DELETE WHERE { ?s :p ?o . GRAPH :g { ?s :q ?o } }"
    quads = (quad(S, n("p"), O), quad(S, n("q"), O, n("g")))
    assert update(text) == (Modify(quads, (), where(*quads, shown=(S, O), text=text)),)


def test_with_is_the_default_graph_of_all_three_parts():
    text = "WITH :g DELETE { ?s :p ?o } INSERT { ?s :q ?o } WHERE { ?s :p ?o }"
    found = where(quad(S, n("p"), O, n("g")), shown=(S, O), text=text)
    delete, insert = (quad(S, n("p"), O, n("g")),), (quad(S, n("q"), O, n("g")),)
    assert update(text) == (Modify(delete, insert, found),)


def test_using_replaces_with_for_the_pattern():
    text = "WITH :g INSERT { ?s :q ?o } USING :h USING NAMED :i WHERE { ?s :p ?o }"
    dataset = Dataset((n("h"),), (n("i"),))
    found = where(quad(S, n("p"), O), shown=(S, O), dataset=dataset, text=text)
    assert update(text) == (Modify((), (quad(S, n("q"), O, n("g")),), found),)
