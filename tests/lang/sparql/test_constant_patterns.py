"""A regular expression that can never match for an error is an error of the query."""

from __future__ import annotations

import pytest

from graphtide import LiveGraph
from graphtide.errors import QueryError
from graphtide.lang.sparql.parse import parse_any_query, parse_standing


@pytest.mark.parametrize("parse", [parse_standing, parse_any_query])
@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('REGEX(?o, "(a")', "REGEX has an invalid constant: an unclosed ( at 3"),
        ('REGEX(?o, "a", "z")', "unknown regular expression flag: z"),
        ('REGEX(?o, STR(?p), "z")', "unknown regular expression flag: z"),
        ('regex(?o, "[b-a]", ?p)', "a range whose end comes before its start"),
        ('REPLACE(?o, "*", "x")', "REPLACE has an invalid constant: nothing to repeat"),
        ('REPLACE(?o, "a*", "x")', "the pattern of REPLACE matches the empty string"),
        ('REPLACE(?o, ?p, "$")', "the dollar sign in '$' needs a group number"),
        ('REPLACE(?o, "a", ?p, "z")', "unknown regular expression flag: z"),
        ("REGEX(?o, 1)", "is not a string"),
    ],
)
def test_constants_that_are_invalid(parse, call, message):
    with pytest.raises(QueryError) as raised:
        parse(f"SELECT * {{ ?s ?p ?o\n  BIND({call} AS ?x) }}")
    assert message in str(raised.value)
    assert (raised.value.line, raised.value.column) == (2, 8)


@pytest.mark.parametrize(
    "call",
    [
        'REGEX(?o, "^(a+)+$", "i")',
        'REGEX(?o, ?p, "i")',
        'REGEX(?o, "a", ?p)',
        'REPLACE(?o, ?p, "$1")',
        r'REPLACE(?o, "(a)\\1", "$1", "s")',
    ],
)
def test_constants_that_are_valid(call):
    assert parse_standing(f"SELECT * {{ ?s ?p ?o BIND({call} AS ?x) }}")


def test_a_computed_pattern_is_an_error_of_its_row():
    graph = LiveGraph()
    query = graph.watch("SELECT ?s { ?s <ex:pattern> ?p FILTER REGEX('aa', ?p) }")
    graph.insert("<ex:bad>", "<ex:pattern>", '"(a"')
    graph.insert("<ex:good>", "<ex:pattern>", '"^a+$"')
    assert query.table(terms=True).to_pylist() == [{"s": "<ex:good>"}]
