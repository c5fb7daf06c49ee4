"""Shapes of queries written by hand, each on several numbers of cells and on various grids."""

from __future__ import annotations

from random import Random

import pytest
from spark.exact.splits import check_cells, in_process

from graphtide.lang.sparql import parse_query
from graphtide.spark import shares, task

SHAPES = {
    "star": "?a ?b ?c { ?a :p ?b . ?a :q ?c . ?a :r ?d }",
    "chain": "* { ?a :p ?b . ?b :q ?c . ?c :r ?d . ?d :p ?e }",
    "triangle": "* { ?a :p ?b . ?b :p ?c . ?c :p ?a }",
    "four-cycle": "* { ?a :p ?b . ?b :q ?c . ?c :p ?d . ?d :q ?a }",
    "two stars": "* { ?a :p ?b . ?a :q ?b . ?b :r ?c . ?b :p ?c }",
    "cross product": "* { ?a :p ?b . ?c :r ?d }",
    "self loop": "* { ?a :p ?a }",
    "predicate variable": "* { ?a ?p ?b . ?b ?p ?c }",
    "optional": "* { ?a :p ?b OPTIONAL { ?b :q ?c } }",
    "optional, nested": "* { ?a :p ?b OPTIONAL { ?b :q ?c OPTIONAL { ?c :r ?d } } }",
    "optional, nested, joined past": (
        "* { ?a :p ?b OPTIONAL { ?b :q ?c OPTIONAL { ?c :r ?d . ?a :r ?d } } }"
    ),
    "optional, right only": "* { ?a :p ?b OPTIONAL { ?c :q ?d } }",
    "optional, then joined": "* { ?a :p ?b OPTIONAL { ?b :q ?c } ?c :r ?d }",
    "two optionals, one variable": (
        "* { ?a :p ?b OPTIONAL { ?b :q ?c } OPTIONAL { ?a :r ?c } }"
    ),
    "optional with condition": "* { ?a :p ?b OPTIONAL { ?b :q ?c FILTER(?a != ?c) } }",
    "optional with exists": (
        "* { ?a :p ?b OPTIONAL { ?b :q ?c FILTER EXISTS { ?c :r ?a } } }"
    ),
    "minus": "* { ?a :p ?b MINUS { ?b :q ?c } }",
    "minus, nothing shared": "* { ?a :p ?b MINUS { ?c :q ?d } }",
    "minus, both shared": "* { ?a :p ?b . ?b :q ?c MINUS { ?a :r ?c } }",
    "minus of optional": "* { ?a :p ?b MINUS { ?a :q ?c OPTIONAL { ?c :r ?b } } }",
    "minus in minus": "* { ?a :p ?b MINUS { ?a :q ?c MINUS { ?c :r ?a } } }",
    "union": "* { { ?a :p ?b } UNION { ?a :q ?b } }",
    "union, other variables": "* { { ?a :p ?b } UNION { ?c :q ?d } }",
    "union, one shared": "* { { ?a :p ?b } UNION { ?a :q ?c } ?a :r ?d }",
    "union in optional": "* { ?a :p ?b OPTIONAL { { ?b :q ?c } UNION { ?b :r ?d } } }",
    "exists": "* { ?a :p ?b FILTER EXISTS { ?b :q ?c } }",
    "exists, nothing shared": "* { ?a :p ?b FILTER EXISTS { ?c :q ?d } }",
    "not exists": "* { ?a :p ?b FILTER NOT EXISTS { ?b :q ?c . ?c :r ?a } }",
    "not exists, correlated": (
        "* { ?a :p ?b . ?a :q ?d FILTER NOT EXISTS { ?a :r ?c FILTER(?c = ?d) } }"
    ),
    "not exists in exists": (
        "* { ?a :p ?b FILTER EXISTS { ?b :q ?c FILTER NOT EXISTS { ?c :r ?a } } }"
    ),
    "exists or": "* { ?a :p ?b FILTER(?a = :n1 || NOT EXISTS { ?b :q ?c }) }",
    "exists, a name from elsewhere": (
        "* { ?c :r ?d { ?a :p ?b FILTER NOT EXISTS { ?b :q ?c } } }"
    ),
    "union, then minus": "* { { ?a :p ?b } UNION { ?a :q ?c } MINUS { ?a :r ?c } }",
    "union, then optional": "* { { ?a :p ?b } UNION { ?a :q ?c } OPTIONAL { ?a :r ?c } }",
    "exists in bind": "* { ?a :p ?b BIND(EXISTS { ?b :q ?c } AS ?x) }",
    "values": "* { ?a :p ?b VALUES ?b { :n1 :n2 } }",
    "values, undef": "* { VALUES (?a ?c) { (:n1 UNDEF) (UNDEF :n2) } ?a :p ?b . ?b :q ?c }",
    "values left alone": "* { VALUES ?x { 1 2 } OPTIONAL { ?a :p ?b } }",
    "bind": "?a ?x { ?a :p ?b BIND(STR(?b) AS ?x) }",
    "bind joined": "* { ?a :p ?b BIND(?b AS ?c) { ?c :q ?d } }",
    "select expression": "(STRLEN(STR(?b)) AS ?n) { ?a :p ?b . ?b :q ?c }",
    "graph": "* { GRAPH ?g { ?a :p ?b . ?b :q ?c } }",
    "graph, joined outside": "* { GRAPH ?g { ?a :p ?b } ?a :q ?c }",
    "graph, minus": "* { GRAPH ?g { ?a :p ?b MINUS { ?a :q ?c } } }",
    "graph names": "?g { GRAPH ?g {} }",
    "graph, not exists": "* { GRAPH ?g { ?a :p ?b } FILTER NOT EXISTS { GRAPH ?g { ?b :q ?a } } }",
    "two graphs": "* { GRAPH ?g { ?a :p ?b } GRAPH ?h { ?b :p ?a } }",
    "constant graph": "* { GRAPH :g1 { ?a :p ?b } OPTIONAL { ?b :q ?c } }",
    "distinct": "DISTINCT ?a ?b { ?a :p ?b . ?b :q ?c }",
    "distinct, hidden": "DISTINCT ?c { ?a :p ?b OPTIONAL { ?b :q ?c } }",
    "distinct, expression": "DISTINCT (STRLEN(STR(?b)) AS ?n) { ?a :p ?b . ?b :q ?c }",
    "hidden": "?c { ?a :p ?b OPTIONAL { ?b :q ?c } }",
    "hidden in a chain": "?a ?d { ?a :p ?b . ?b :q ?c . ?c :r ?d }",
    "never bound": "?nowhere ?a { ?a :p ?b }",
    "no variables": "* { :n1 :p :n2 }",
    "no variables, negated": "* { :n1 :p :n2 FILTER NOT EXISTS { :n0 :q :n0 } }",
    "blank nodes": "?a { ?a :p _:x . _:x :q ?c }",
    "constants": "?b { :n1 :p ?b . ?b :q :n2 }",
    "no quads": "* { VALUES (?x ?y) { (1 2) (3 UNDEF) } BIND(?x + 1 AS ?z) }",
    "empty group": "* {}",
    "empty group, hidden": "DISTINCT ?x {}",
    "constant until": "* { VALUES ?x { 1 } FILTER NOT EXISTS { ?a :p ?b } }",
}  # fmt: skip


def query(shape):
    return f"PREFIX : <http://e/> SELECT {SHAPES[shape]}"


def stream(seed, transactions=10):
    """A few nodes, so that everything meets; transactions that take back what they just did."""
    rng = Random(seed)
    rows, time = [], 0
    for tx in range(transactions):
        time += rng.choice((0, 0, 1, 5))
        for _ in range(rng.choice((1, 2, 4, 12))):
            s, o = (f"<http://e/n{rng.randrange(3)}>" for _ in range(2))
            p = f"<http://e/{rng.choice('pqr')}>"
            g = rng.choice((None, None, "<http://e/g1>", "<http://e/g2>"))
            rows.append((time, tx, rng.choice((1, 1, 1, -1)), s, p, o, g))
    return rows


@pytest.mark.parametrize("shape", SHAPES)
def test_chosen_grid(shape):
    for cells in (1, 2, 3, 4, 8):
        check_cells({shape: query(shape)}, stream(cells), cells, seed=cells)


@pytest.mark.parametrize("shape", SHAPES)
def test_other_grids(shape, monkeypatch):
    body = shares.body_of(parse_query(query(shape)))
    variables = tuple(sorted(shares.partition_variables(body), key=lambda v: v.name))
    divisions = list(shares._divisions(variables, 4))
    for number, division in enumerate(Random(1).sample(divisions, min(len(divisions), 5))):
        grid = shares._grid(body, division)
        monkeypatch.setattr(task, "best_grid", lambda *_, grid=grid: grid)
        check_cells({shape: query(shape)}, stream(number % 5), 4, seed=number)


def test_the_streams_reach_every_shape():
    silent = {
        shape
        for shape in SHAPES
        if not any(in_process({"q": query(shape)}, stream(seed)) for seed in range(12))
    }
    assert silent == set()


def test_all_shapes_at_once():
    check_cells({shape: query(shape) for shape in SHAPES}, stream(9), 3, seed=5)


@pytest.mark.parametrize("cells", [1, 2, 8])
def test_constant_rows_come_out_once_and_first(cells):
    out = check_cells({"q": query("no quads")}, stream(1), cells, seed=1)
    integer = "^^<http://www.w3.org/2001/XMLSchema#integer>"
    one, two, three, four = (f'"{n}"{integer}' for n in (1, 2, 3, 4))
    assert sorted(out) == sorted(
        [("q", 0, 0, 1, (one, two, two)), ("q", 0, 0, 1, (three, None, four))]
    )


@pytest.mark.parametrize(
    ("shape", "variables"),
    [
        ("star", {"a"}),
        ("optional", {"a", "b"}),
        ("optional, right only", {"a", "b"}),
        ("minus", {"a", "b"}),
        ("union", {"a", "b"}),
        ("union, other variables", set()),
        ("values, undef", {"a", "b", "c"}),
        ("graph", {"a", "b", "c", "g"}),
        ("bind", {"a", "b"}),
        ("no variables", set()),
    ],
)
def test_partition_variables(shape, variables):
    body = shares.body_of(parse_query(query(shape)))
    found = {v.name for v in shares.partition_variables(body)}
    assert found >= variables
    assert variables or not found


@pytest.mark.parametrize(
    ("shape", "cells", "divided"),
    [
        ("star", 8, {"a": 8}),
        ("triangle", 8, {"a": 2, "b": 2, "c": 2}),
        ("union, other variables", 8, {}),
        ("chain", 1, {}),
    ],
)
def test_shares(shape, cells, divided):
    grid = task.cell_query("q", query(shape), cells, None).grid
    assert {v.name: n for v, n in zip(grid.variables, grid.shares, strict=True)} == divided


def test_sizes_move_the_shares():
    text = "PREFIX : <http://e/> SELECT * { ?a :p ?b . ?b :q ?c . ?c :r ?d }"
    even = task.cell_query("q", text, 4, None).grid
    big = task.cell_query("q", text, 4, {"<http://e/r>": 10**6}).grid
    assert {v.name for v in even.variables} != {v.name for v in big.variables}
    assert "c" in {v.name for v in big.variables} or "d" in {v.name for v in big.variables}
