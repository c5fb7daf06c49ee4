"""What queries and changes may take: time, memory, pairs of a path, and the values they make."""

from __future__ import annotations

import pytest

from graphtide import Limits, LiveGraph
from graphtide.engine.dataflow import conditions
from graphtide.errors import GraphtideError, LimitError
from graphtide.kernel import JIT

SQUARE = "SELECT * { ?a <ex:p> ?b . ?c <ex:p> ?d }"
XSD = "http://www.w3.org/2001/XMLSchema#"


def graph_of(count, **limits):
    graph = LiveGraph(limits=Limits(**limits))
    with graph.transaction() as tx:
        for number in range(count):
            tx.insert(f"<ex:{number}>", "<ex:p>", number)
    return graph


def rows(graph, query):
    return graph.query(query, terms=True).to_pylist()


needs_kernels = pytest.mark.skipif(not JIT, reason="the twins recompute without growing a batch")


@needs_kernels
@pytest.mark.parametrize(
    "query",
    [
        SQUARE,
        "SELECT * { { SELECT ?a { ?a <ex:p> ?x } } { SELECT ?b { ?b <ex:p> ?y } } }",
        "SELECT * { ?a <ex:p> ?x OPTIONAL { ?b <ex:p> ?y } }",
        "SELECT (COUNT(*) AS ?n) { ?a <ex:p> ?x . ?b <ex:p> ?y . ?c <ex:p> ?z }",
        "SELECT ?one { ?a <ex:p> ?x . ?b <ex:p> ?y BIND(1 AS ?one) }",
        "SELECT * { ?a <ex:p> ?x . ?b <ex:p> ?y FILTER (?x + ?y = -1) }",
    ],
)
def test_a_query_with_too_many_rows(query):
    graph = graph_of(300, query_bytes=1_000_000)
    with pytest.raises(LimitError) as raised:
        graph.query(query)
    assert raised.value.limit == "query_bytes"
    assert "Limits(query_bytes=…)" in str(raised.value)
    assert len(rows(graph, "SELECT * { ?a <ex:p> ?x }")) == 300


def test_an_answer_counts_with_all_its_copies():
    """Equal rows are one row with a count, until somebody asks for them."""
    graph = graph_of(300, query_bytes=1_000_000)
    copies = "{ SELECT (1 AS ?one) { ?a <ex:p> ?x } }"
    assert len(rows(graph, f"SELECT ?one {{ {copies} }}")) == 300
    with pytest.raises(LimitError, match="query_bytes"):
        graph.query(f"SELECT * {{ {copies} {copies} {copies} }}")


@needs_kernels
def test_a_row_that_occurs_too_often_to_be_counted():
    """2000³ is more than an int32 has; 1000³ is not."""
    copies = "{ SELECT (1 AS ?one) { ?a <ex:p> ?x } }"
    query = f"SELECT (COUNT(*) AS ?n) {{ {copies} {copies} {copies} }}"
    assert rows(graph_of(1000), query) == [{"n": f'"1000000000"^^<{XSD}integer>'}]
    with pytest.raises(GraphtideError, match="occurs more than 2,147,483,647 times"):
        graph_of(2000).query(query)
    billion = f"{{ {copies} {copies} {copies} }}"
    three = f"SELECT (COUNT(*) AS ?n) {{ {billion} UNION {billion} UNION {billion} }}"
    with pytest.raises(GraphtideError, match="occurs more than 2,147,483,647 times"):
        graph_of(1000).query(three)


@pytest.mark.parametrize("query", [SQUARE, "SELECT * { ?a <ex:p> ?x FILTER(RAND() < 2) }"])
def test_a_query_that_takes_too_long(query):
    with pytest.raises(LimitError, match="the query takes too long"):
        graph_of(300, query_seconds=1e-9).query(query)


def test_expressions_check_the_time_as_well(monkeypatch):
    """However few rows come out of them."""
    ticks = iter(range(100_000))
    monkeypatch.setattr("graphtide.limits.monotonic", lambda: next(ticks))
    query = "SELECT * { ?a <ex:p> ?x FILTER (STRLEN(STR(?x)) > 99) }"
    count = 20 * conditions.CHECKED_EVERY
    assert rows(graph_of(count, query_seconds=100), query) == []
    with pytest.raises(LimitError, match="query_seconds"):
        graph_of(count, query_seconds=15).query(query)


@needs_kernels
@pytest.mark.parametrize("strategy", ["search", "rete"])
def test_a_query_whose_first_answer_is_too_large_is_not_registered(strategy):
    graph = graph_of(300, query_bytes=1_000_000)
    with pytest.raises(LimitError, match="query_bytes"):
        graph.watch(SQUARE, strategy=strategy)
    assert graph.queries == ()
    assert graph.watch("SELECT * { ?a <ex:p> ?x }", strategy=strategy).count() == 300


@needs_kernels
@pytest.mark.parametrize("strategy", ["search", "rete"])
def test_changes_that_change_too_much(strategy):
    graph = LiveGraph(limits=Limits(flush_bytes=100_000))
    graph.watch(SQUARE, strategy=strategy)
    with graph.transaction() as tx:
        for number in range(300):
            tx.insert(f"<ex:{number}>", "<ex:p>", number)
    with pytest.raises(LimitError) as raised:
        len(graph)
    assert raised.value.limit == "flush_bytes"


IN_ONE_CITY = """SELECT * { ?a <ex:city> ?x . ?b <ex:city> ?x . ?c <ex:city> ?x .
    ?a <ex:knows> ?b . ?b <ex:knows> ?c . ?c <ex:knows> ?a }"""


@needs_kernels
@pytest.mark.parametrize("limit", ["query_bytes", "flush_bytes"])
def test_what_a_decomposed_query_keeps_counts_as_memory(limit):
    """A ring has no answer, but each two people of a city are an instance."""
    graph = LiveGraph(limits=Limits(**{limit: 1_000_000}))
    if limit == "flush_bytes":
        graph.watch(IN_ONE_CITY, strategy="decomposed")
    with graph.transaction() as tx:
        for number in range(100):
            tx.insert(f"<ex:{number}>", "<ex:city>", "<ex:rome>")
            tx.insert(f"<ex:{number}>", "<ex:knows>", f"<ex:{(number + 1) % 100}>")
    with pytest.raises(LimitError) as raised:
        graph.watch(IN_ONE_CITY, strategy="decomposed")
    assert raised.value.limit == limit
    assert len(graph) == (200 if limit == "query_bytes" else 0)


def test_paths_connect_so_many_pairs():
    graph = LiveGraph(limits=Limits(path_pairs=1000))
    with graph.transaction() as tx:
        for number in range(60):
            tx.insert(f"<ex:{number}>", "<ex:p>", f"<ex:{number + 1}>")
    with pytest.raises(LimitError, match="a property path connects too many nodes"):
        graph.query("SELECT * { ?a <ex:p>+ ?b }")
    assert len(rows(graph, "SELECT * { <ex:0> <ex:p>+ ?b }")) == 60
    with pytest.raises(LimitError, match="path_pairs"):
        graph.watch("SELECT * { ?a <ex:p>* ?b }")


def test_a_path_forgets_the_pairs_that_are_gone():
    graph = LiveGraph(limits=Limits(path_pairs=10))
    query = graph.watch("SELECT * { ?a <ex:p>+ ?b }")
    for number in range(50):
        for change in (graph.insert, graph.delete):
            change(f"<ex:{number}>", "<ex:p>", "<ex:x>")
            assert query.count() == (change == graph.insert)


def test_a_hostile_row_does_not_stop_the_others():
    graph = LiveGraph(limits=Limits(digits=100, literal_length=1000))
    query = graph.watch(
        "SELECT ?s ?twice ?square { ?s <ex:p> ?x BIND(CONCAT(STR(?x), STR(?x)) AS ?twice) "
        "BIND(?x * ?x AS ?square) }"
    )
    graph.insert("<ex:a>", "<ex:p>", 12)
    graph.insert("<ex:b>", "<ex:p>", f'"{"9" * 600}"^^<{XSD}integer>')
    found = {row["s"]: (row["twice"], row["square"]) for row in query.table(terms=True).to_pylist()}
    assert found == {
        "<ex:a>": ('"1212"', f'"144"^^<{XSD}integer>'),
        "<ex:b>": (None, None),
    }
    assert set(graph.limits.exceeded) == {"digits", "literal_length"}


def test_the_texts_that_a_query_makes_count_as_memory():
    graph = graph_of(300, query_bytes=1_000_000)
    long = "x" * 5000
    with pytest.raises(LimitError, match="query_bytes"):
        graph.query(f'SELECT * {{ ?a <ex:p> ?x BIND(CONCAT(STR(?x), "{long}") AS ?t) }}')
    query = f'SELECT * {{ ?a <ex:p> ?x FILTER(STRLEN(CONCAT(STR(?x), "{long}")) = 0) }}'
    assert rows(graph, query) == []


def test_group_concat_of_many_copies():
    """The copies are counted before they are made."""
    graph = graph_of(1000, literal_length=1_000_000)
    copies = "{ SELECT (STR(1) AS ?t) { ?a <ex:p> ?x } }"
    query = f'SELECT (GROUP_CONCAT(?t; SEPARATOR="") AS ?g) {{ {copies} {copies} {copies} }}'
    assert rows(graph, query) == [{"g": None}]


def test_updates_have_limits_too():
    graph = graph_of(300, query_bytes=1_000_000)
    with pytest.raises(LimitError, match="query_bytes"):
        graph.update(f"INSERT {{ ?a <ex:q> ?d }} WHERE {SQUARE.removeprefix('SELECT * ')}")
    assert len(graph) == 300
