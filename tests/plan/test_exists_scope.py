"""A filter inside EXISTS sees the outer row and its own group, not what a neighbour group found."""

from __future__ import annotations

import pytest

from oracles.fuzz import check_case
from oracles.transactions import transaction

A_KNOWS_ITSELF = "+ <a:a> <a:p> <a:a>"
A_KNOWS_C = "+ <a:a> <a:p> <a:c>"
IN_A_GRAPH = "+ <a:g> <a:p> <a:a> <a:g>"
STREAM = [
    transaction(0, A_KNOWS_ITSELF, IN_A_GRAPH, A_KNOWS_C),
    transaction(1, "- <a:a> <a:p> <a:a>"),
    transaction(2, A_KNOWS_ITSELF, "+ <a:c> <a:p> <a:a>"),
    transaction(3, "- <a:g> <a:p> <a:a> <a:g>"),
]
OUTER = "?a <a:p> ?b OPTIONAL { ?b <a:p> ?c }"
PATTERNS = {
    "neighbour group": "?c <a:p> ?a { ?b <a:p> ?a FILTER(?c = ?a) }",
    "neighbour graph": "?c <a:p> ?a BIND(?a AS ?n) GRAPH ?g { ?g <a:p> ?a FILTER(?c = ?a) }",
    "optional": "?c <a:p> ?a OPTIONAL { ?b <a:p> ?d FILTER(?c = ?a) } FILTER(BOUND(?d))",
    "nested": "?c <a:p> ?a { ?b <a:p> ?a FILTER EXISTS { ?a <a:p> ?e FILTER(?c = ?e) } }",
    "union": "?c <a:p> ?a { { ?b <a:p> ?a FILTER(?c = ?a) } UNION { ?a <a:p> ?c } }",
}


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
@pytest.mark.parametrize("negation", ["", "NOT "])
def test_agrees_with_the_oracle(pattern, negation):
    assert check_case(f"SELECT * {{ {OUTER} FILTER {negation}EXISTS {{ {pattern} }} }}", STREAM)
