"""The harness itself: it must distinguish right answers from wrong ones."""

from __future__ import annotations

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, Quad
from w3c.expected import Table, as_csv, expected_table, numbers_by_value, table
from w3c.isomorphism import same_bag, same_set
from w3c.judgement import BY_VALUE, EXCLUDED
from w3c.manifest import BASE, evaluation_tests, suite_folder
from w3c.ways import WAYS

from oracles.transactions import typed

A, B, C, D = (BlankNode(name) for name in "abcd")
X, Y = Literal("x"), Literal("y")

needs_suites = pytest.mark.skipif(not suite_folder().is_dir(), reason="the W3C suites are absent")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([], []),
        ([(X,), (Y,)], [(Y,), (X,)]),
        ([(A, X), (B, Y)], [(C, Y), (D, X)]),
        ([(A, B), (B, A)], [(C, D), (D, C)]),
        ([(A, None), (A, None)], [(B, None), (B, None)]),
        ([(A, B), (B, C), (C, A)], [(B, C), (C, D), (D, B)]),
    ],
)
def test_the_same_up_to_blank_nodes(found, expected):
    assert same_bag(found, expected)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([(X,)], []),
        ([(X,)], [(X,), (X,)]),
        ([(X,)], [(Y,)]),
        ([(X,)], [(None,)]),
        ([(A, A)], [(B, C)]),
        ([(A, X), (A, Y)], [(B, X), (C, Y)]),
        ([(A, X), (B, Y)], [(C, X), (C, Y)]),
        ([(A, B), (B, C), (C, A)], [(A, B), (B, A), (C, C)]),
    ],
)
def test_not_the_same(found, expected):
    assert not same_bag(found, expected)


def test_lax_cardinality_lets_duplicates_go_but_not_rows():
    assert same_set([(X,), (Y,)], [(X,), (X,), (Y,)])
    assert same_set([(X,), (X,), (Y,)], [(X,), (X,), (Y,)])
    assert not same_set([(X,), (X,), (X,), (Y,)], [(X,), (X,), (Y,)])
    assert not same_set([(X,)], [(X,), (Y,)])


def test_columns_are_sorted_and_missing_ones_are_unbound():
    assert table(["y", "x"], [{"x": X}]) == Table(("x", "y"), ((X, None),))


def test_csv_keeps_texts_only():
    found = table(
        ["v"], [{"v": typed("1", "integer")}, {"v": NamedNode("a:a")}, {"v": Literal("")}]
    )
    assert as_csv(found).rows == ((Literal("1"),), (Literal("a:a"),), (None,))


def test_numbers_by_value_keep_datatypes_apart():
    spelled = numbers_by_value(table(["v"], [{"v": typed("01", "integer")}]))
    assert spelled == table(["v"], [{"v": typed("1", "integer")}])
    assert spelled != numbers_by_value(table(["v"], [{"v": typed("1", "decimal")}]))


@pytest.mark.parametrize("way", WAYS)
def test_every_way_ends_with_the_data(way):
    quads = [Quad(NamedNode(f"a:{n}"), NamedNode("a:p"), Literal(str(n))) for n in range(9)]
    for watch in WAYS[way]("SELECT ?o { ?s <a:p> ?o }", quads, 1):
        assert sorted(watch.table(terms=True)["o"].to_pylist()) == [f'"{n}"' for n in range(9)]


def test_noise_really_deletes():
    quads = [Quad(NamedNode(f"a:{n}"), NamedNode("a:p"), Literal(str(n))) for n in range(9)]
    for watch in WAYS["noise"]("SELECT ?o { ?s <a:p> ?o }", quads, 1):
        assert sum(row.diff < 0 for row in watch.rows()) > 3


@needs_suites
def test_the_manifests_name_every_test_once():
    tests = evaluation_tests()
    assert len({test.iri for test in tests}) == len(tests) > 500
    assert {test.iri for test in tests} >= BY_VALUE | set(EXCLUDED)


@needs_suites
@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("sparql10/graph/graph-01.ttl", 2),
        ("sparql10/sort/result-sort-1.rdf", 4),
        ("sparql10/graph/graph-empty-exist.ttl", 1),
        ("sparql11/csv-tsv-res/csvtsv02.csv", 6),
        ("sparql11/csv-tsv-res/csvtsv02.tsv", 6),
        ("sparql11/json-res/jsonres01.srj", 6),
        ("sparql11/bind/bind01.srx", 4),
    ],
)
def test_expected_results_are_read(name, rows):
    assert len(expected_table(BASE + name).rows) == rows
