"""Functions that a user registers: in standing queries, one-off queries and updates."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pyoxigraph import NamedNode

import graphtide as gt
from graphtide.errors import GraphtideError, QueryError, UnsupportedError
from graphtide.functions.user import USER_FUNCTIONS
from graphtide.spark.job import partition_query

EX = "http://example.org/"
PREFIX = f"PREFIX ex: <{EX}> "


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    before = dict(USER_FUNCTIONS)
    yield
    USER_FUNCTIONS.clear()
    USER_FUNCTIONS.update(before)


def test_rows_follow_the_data():
    gt.function(EX + "half1", lambda number: Decimal(number.value) / 2)
    graph = gt.LiveGraph()
    watch = graph.watch(PREFIX + "SELECT ?s { ?s ex:p ?o FILTER (ex:half1(?o) > 2) }")
    graph.insert("<ex:a>", "<http://example.org/p>", 5)
    assert [str(row.row["s"]) for row in watch.delta()] == ["<ex:a>"]
    graph.insert("<ex:b>", "<http://example.org/p>", 3)
    graph.insert("<ex:c>", "<http://example.org/p>", '"no number"')  # an error of this row
    assert not watch.delta()
    graph.delete("<ex:a>", "<http://example.org/p>", 5)
    assert [row.diff for row in watch.delta()] == [-1]


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        ("text", '"text"'),
        (True, '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'),
        (7, '"7"^^<http://www.w3.org/2001/XMLSchema#integer>'),
        (0.5, '"0.5"^^<http://www.w3.org/2001/XMLSchema#double>'),
        (NamedNode("ex:iri"), "<ex:iri>"),
        (None, None),
        ([1], None),
    ],
)
def test_what_a_function_may_return(found, shown):
    gt.function(EX + f"of-{shown}".translate({ord(c): "-" for c in '"<>^'}), lambda: found)
    name = list(USER_FUNCTIONS)[-1]
    watch = gt.LiveGraph().watch(f"SELECT ({name}() AS ?v) {{}}")
    assert watch.table(terms=True)["v"].to_pylist() == [shown]


def test_standing_queries_take_pure_functions_only():
    numbers = iter(range(10))
    gt.function(EX + "next", lambda: next(numbers), pure=False)
    graph = gt.LiveGraph()
    with pytest.raises(UnsupportedError, match=r"next> cannot be maintained") as refused:
        graph.watch(PREFIX + "SELECT (ex:next() AS ?n) {}")
    assert "not pure" in (refused.value.hint or "")
    assert graph.query(PREFIX + "SELECT (ex:next() AS ?n) {}")["n"].to_pylist() == [0]
    graph.update(PREFIX + "INSERT { ex:a ex:p ?n } WHERE { BIND (ex:next() AS ?n) }")
    assert graph.query(PREFIX + "SELECT ?n { ex:a ex:p ?n }")["n"].to_pylist() == [1]


def test_arguments_are_counted_at_registration():
    gt.function(EX + "two", lambda a, b=None: a)
    with pytest.raises(QueryError, match="takes 1 to 2 arguments, not 3"):
        gt.LiveGraph().watch(PREFIX + "SELECT (ex:two(1, 2, 3) AS ?n) {}")


def test_an_unknown_function_says_how_to_register_it():
    with pytest.raises(UnsupportedError) as refused:
        gt.LiveGraph().watch(PREFIX + "SELECT (ex:unknown() AS ?n) {}")
    assert 'graphtide.function("http://example.org/unknown", f)' in (refused.value.hint or "")


def test_a_function_is_not_replaced():
    gt.function(EX + "same", len)
    gt.function(EX + "same", len)
    with pytest.raises(GraphtideError, match="another function"):
        gt.function(EX + "same", str)


def test_spark_refuses_what_its_workers_do_not_know():
    gt.function(EX + "local", lambda: 1)
    with pytest.raises(UnsupportedError, match="workers do not know"):
        partition_query("q", PREFIX + "SELECT ?s { ?s ex:p ?o FILTER (?o = ex:local()) }", 2, None)
