"""Brackets in brackets: up to a stated depth they work from end to end, beyond they are an error.

What stands in a row is not nested: `tests/plan/test_flat_queries.py`.
"""

from __future__ import annotations

import pytest
from pyoxigraph import Literal, NamedNode

from graphtide import LiveGraph
from graphtide.errors import QueryError
from graphtide.lang.sparql.parse import parse_query
from graphtide.lang.sparql.scanner import MAX_DEPTH

S, P = NamedNode("http://example.org/s"), NamedNode("http://example.org/p")


def nested(before: str, inside: str, after: str, depth: int) -> str:
    return before * depth + inside + after * depth


KINDS = {
    "brackets": lambda n: f"?s :p ?o FILTER({nested('(', '?o = 1', ')', n)})",
    "sums": lambda n: f"?s :p ?o FILTER({nested('(0 + ', '?o', ')', n)} = 1)",
    "disjunctions": lambda n: f"?s :p ?o FILTER({nested('(false || ', '?o = 1', ')', n)})",
    "calls": lambda n: f"?s :p ?o FILTER({nested('ABS(', '?o', ')', n)} = 1)",
    "groups": lambda n: nested("{ ", "?s :p ?o", " }", n),
    "unions": lambda n: nested("{ ?s :q ?o } UNION { ", "?s :p ?o", " }", n),
    "optionals": lambda n: "?s :p ?o " + nested("OPTIONAL { ?s :p ?o ", "", " }", n),
    "filters": lambda n: "?s :p ?o " + nested("FILTER EXISTS { ?s :p ?o ", "", " }", n // 2),
    "sub-selects": lambda n: nested("{ SELECT * { ", "?s :p ?o", " } }", n // 2),
    "paths": lambda n: f"?s {nested('(', ':p', ')', n)} ?o",
    "sequences": lambda n: f"?s {nested('(:p/^:p/', ':p', ')', n // 4)} ?o",
    "binds": lambda n: nested("{ ", "?s :p ?o BIND(1 AS ?x)", " }", n),
}


def text(kind: str, depth: int) -> str:
    return f"PREFIX : <http://example.org/>\nSELECT ?s ?o {{ {KINDS[kind](depth)} }}"


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_nested_up_to_the_limit_works(kind):
    graph = LiveGraph()
    query = graph.watch(text(kind, MAX_DEPTH - 4))
    graph.insert(S, P, Literal(1))
    (line,) = query.delta()
    assert (line.row["s"], line.row["o"], line.diff) == (S, Literal(1), 1)
    assert query.explain()
    graph.delete(S, P, Literal(1))
    assert [line.diff for line in query.delta()] == [-1]


@pytest.mark.parametrize("depth", [4 * MAX_DEPTH + 8, 5000])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_nested_more_deeply_is_an_error_with_its_place(kind, depth):
    with pytest.raises(QueryError, match="nested too deeply") as raised:
        parse_query(text(kind, depth))
    assert raised.value.line == 2 and (raised.value.column or 0) > MAX_DEPTH
    assert raised.value.hint is not None


@pytest.mark.parametrize("brackets", ["[ :p ", "( "])
def test_nested_nodes_of_triples(brackets):
    closing = " ]" if brackets[0] == "[" else " )"
    depth = MAX_DEPTH - 4
    inside = nested(brackets, "1", closing, depth)
    assert (
        len(parse_query(f"PREFIX : <ex:> SELECT * {{ ?s :p {inside} }}").root.child.patterns)
        > depth
    )
    with pytest.raises(QueryError, match="nested too deeply"):
        parse_query(f"PREFIX : <ex:> SELECT * {{ ?s :p {nested(brackets, '1', closing, 5000)} }}")
