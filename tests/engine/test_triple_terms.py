"""Standing queries over triple terms: by hand, and against pyoxigraph over random changes."""

from __future__ import annotations

from random import Random

import pytest

import graphtide as gt
from graphtide import LiveGraph
from graphtide.errors import GraphtideError, QueryError
from oracles.fuzz import check_case
from oracles.transactions import transaction

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
HEAD = f"PREFIX : <http://example.org/> PREFIX rdf: <{RDF}>\n"
QUERIES = [
    "SELECT * { ?r rdf:reifies <<( ?s ?p ?o )>> }",
    "SELECT * { ?r rdf:reifies <<( ?s :p ?o )>> . ?s :q ?x }",
    "SELECT * { ?r rdf:reifies <<( ?s :p ?s )>> }",
    "SELECT * { ?s :p ?o {| :q ?x |} }",
    "SELECT * { ?s :p ?o ~ ?r {| :q ?x |} OPTIONAL { << ?s :p ?z >> :q ?x FILTER (?z != ?o) } }",
    "SELECT * { ?r rdf:reifies <<( ?s ?p <<( ?a ?b ?c )>> )>> }",
    "SELECT ?s (COUNT(*) AS ?n) { << ?s :p ?o >> :q ?x } GROUP BY ?s",
    "SELECT * { ?s :p ?o FILTER NOT EXISTS { ?r rdf:reifies <<( ?s :p ?o )>> } }",
    "SELECT * { ?s :p ?o MINUS { << ?s :p ?o >> :q :a } }",
    "SELECT * { GRAPH ?g { ?s :p ?o {| :q ?x |} } }",
    "SELECT * { ?r rdf:reifies ?t BIND (OBJECT(?t) AS ?o) FILTER (isTRIPLE(?t) && ?t = ?t) }",
    "SELECT * { ?s :p ?o . ?r rdf:reifies ?t FILTER (?t = <<( ?s :p ?o )>>) }",
    "SELECT * { { ?r rdf:reifies <<( ?s :p ?o )>> } UNION { ?s :q ?o } }",
    "SELECT * { VALUES ?t { <<( :a :p :b )>> <<( :b :p :a )>> } ?r rdf:reifies ?t }",
    "CONSTRUCT { ?o :q <<( ?s :p ?x )>> } { ?s :p ?o {| :q ?x |} }",
    "ASK { << :a :p :b >> :q ?x }",
    "SELECT * { ?r (rdf:reifies|:q) <<( ?s :p ?o )>> . ?x :q+ ?r }",
]


def stream(random: Random):
    """Triples, what reifies them, and what is said of the reifiers, in random order."""
    names = [f"<http://example.org/{name}>" for name in "ab"]
    p, q = "<http://example.org/p>", "<http://example.org/q>"
    quads = []
    for _ in range(25):
        s, o, x, r = (random.choice(names) for _ in range(4))
        r = random.choice([f"_:{r[-2]}", r])
        graph = random.choice(["", "", f" {names[0]}"])
        inner = f"<<( {s} {p} {o} )>>"
        if random.random() < 0.2:
            inner = f"<<( {s} {q} {inner} )>>"
        quads += [
            f"{s} {p} {o}{graph}",
            f"{r} <{RDF}reifies> {inner}{graph}",
            f"{r} {q} {x}{graph}",
        ]
    return [
        transaction(time, *(f"{random.choice('++-')} {random.choice(quads)}" for _ in range(4)))
        for time in range(30)
    ]


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.slow
def test_after_every_transaction_as_pyoxigraph(text):
    for seed in range(2):
        check_case(HEAD + text, stream(Random(seed)))


@pytest.fixture
def graph():
    return LiveGraph()


@pytest.mark.parametrize("strategy", ["search", "rete", "decomposed"])
def test_an_annotation_comes_and_goes(graph, strategy):
    query = graph.watch(f"{HEAD} SELECT ?o ?x {{ :a :p ?o {{| :q ?x |}} }}", strategy=strategy)
    graph.update(f"{HEAD} INSERT DATA {{ :a :p 1 ~ :r {{| :q 2 |}} }}")
    assert query.table().to_pylist() == [{"o": 1, "x": 2}]
    graph.update(f"{HEAD} DELETE WHERE {{ :r rdf:reifies <<( :a ?p ?o )>> }}")
    assert query.table().to_pylist() == []
    assert len(graph) == 2  # the triple, and what is said of :r


def test_terms_of_rows_have_parts(graph):
    query = graph.watch(f"{HEAD} SELECT ?t {{ ?r rdf:reifies ?t }}")
    term = gt.TripleTerm(gt.NamedNode("a:a"), gt.NamedNode("a:p"), gt.Literal(1))
    graph.insert("<a:r>", f"<{RDF}reifies>", term)
    (delta,) = query.rows()
    assert delta.row["t"] == term
    assert delta.row["t"].object == gt.Literal(1)


def test_a_row_is_explained_by_its_quads(graph):
    query = graph.watch(f"{HEAD} SELECT * {{ ?s :p ?o {{| :q ?x |}} }}")
    graph.update(f"{HEAD} INSERT DATA {{ :a :p :b ~ :r {{| :q :c |}} }}")
    (delta,) = query.rows()
    assert ":reifies" in str(query.why(delta.row))


def test_the_update_makes_a_reifier_of_its_own(graph):
    graph.update(f"{HEAD} INSERT DATA {{ :a :p :b . :c :p :d }}")
    graph.update(f"{HEAD} INSERT {{ ?s :p ?o {{| :q 1 |}} }} WHERE {{ ?s :p ?o }}")
    asked = f"{HEAD} SELECT DISTINCT ?r {{ ?s :p ?o ~ ?r FILTER isBLANK(?r) }}"
    assert graph.query(asked).num_rows == 2


def test_rules_match_them_and_insert_what_they_bind(graph):
    graph.run(
        gt.Program.parse(f"""
        PREFIX : <http://example.org/>
        PREFIX rdf: <{RDF}>
        EVENT Doubt(?s, ?o) AS {{ [] a :Doubt ; :about ?s ; :says ?o }}
        RULE Keep
          WHEN EVENT Doubt(?s, ?o)
               FACT {{ ?s :p ?o . BIND (<<( ?s :p ?o )>> AS ?t) }}
          THEN INSERT {{ [] rdf:reifies ?t }}
    """)
    )
    graph.insert("<http://example.org/a>", "<http://example.org/p>", "<http://example.org/b>")
    about = [("about", "a"), ("says", "b")]
    event = [("_:e", f"<{RDF}type>", "<http://example.org/Doubt>")]
    event += [("_:e", f"<http://example.org/{p}>", f"<http://example.org/{o}>") for p, o in about]
    graph.publish(event)
    assert graph.query(f"{HEAD} SELECT * {{ ?r rdf:reifies <<( :a :p :b )>> }}").num_rows == 1


def test_templates_of_rules_refuse_variables_inside(graph):
    with pytest.raises(GraphtideError, match="cannot contain variables") as refused:
        gt.Program.parse("""
            PREFIX : <http://example.org/>
            EVENT E(?s) AS { [] :about ?s }
            RULE R ON E(?s) THEN INSERT { :x :p <<( ?s :p :b )>> }
        """)
    assert "BIND" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * { <<( ?s ?p ?o )>> }", "expected a predicate"),
        ("SELECT * { ?s :p/:q ?o {| :r 1 |} }", "cannot be annotated"),
        ("SELECT * { ?s :p <<( ?a :q << ?b :p ?c >> )>> }", "reified triple inside"),
        ("SELECT * { << (1) :p ?o >> :q 1 }", "a list cannot be part"),
        ("SELECT * { BIND (<<( 1 :p ?o )>> AS ?t) }", "expected an IRI"),
        ('SELECT * { ?s :p "x"@en--up }', "ltr or rtl, not up"),
        ('VERSION """1.2""" SELECT * { }', "expected a version"),
    ],
)
def test_errors_have_a_place(graph, text, message):
    with pytest.raises(QueryError, match=message) as refused:
        graph.watch(HEAD.strip() + "\n" + text)
    assert refused.value.line == 2
