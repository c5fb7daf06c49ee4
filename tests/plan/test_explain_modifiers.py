"""The logical plan of groups, slices and paths in words."""

import pytest

from graphtide.algebra.nodes import SelectQuery
from graphtide.lang.sparql.parse import parse_any_query
from graphtide.plan.explain import explain_logical


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SELECT ?s (COUNT(DISTINCT ?o) AS ?n) {?s :p ?o} GROUP BY ?s ORDER BY DESC(?n) LIMIT 5",
            """\
project ?s ?n, ordered by -?n, at most 5
└─ bind ?n to ?_:count1
   └─ group by ?s: COUNT(DISTINCT ?o) as ?_:count1
      └─ pattern ?s :p ?o""",
        ),
        (
            "SELECT DISTINCT ?s { ?s :p ?o } ORDER BY ?o OFFSET 2",
            """\
distinct ?s, ordered by ?o, from row 3
└─ pattern ?s :p ?o""",
        ),
        (
            "SELECT (COUNT(*) AS ?n) { GRAPH ?g { ?s (:a/^:b|!(:c))* ?o } }",
            """\
project ?n
└─ bind ?n to ?_:count1
   └─ group: COUNT(*) as ?_:count1
      └─ path ?s ((:a/^:b)|!(:c))* ?o in ?g""",
        ),
    ],
)
def test_in_words(text, expected):
    query = parse_any_query(f"PREFIX : <http://e/> {text}")
    assert isinstance(query, SelectQuery)
    assert explain_logical(query) == expected
