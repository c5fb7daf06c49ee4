"""Sub-SELECTs inside EXISTS: evaluated once where that is the same as for each outer row."""

from __future__ import annotations

import pytest
from engine.against_reference import PREFIX, check, iri, streams, unhurried
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sampling import quick_sample

from graphtide import LiveGraph
from graphtide.errors import UnsupportedError

NODES = [iri(name) for name in "abc"]
changes = streams(NODES, [iri(name) for name in "pqr"], NODES, (None, None, iri("g")))

MAINTAINED = {
    "projection": "SELECT ?x { ?x :q ?z }",
    "projection of the rest": "SELECT ?z { ?x :q ?z }",
    "distinct": "SELECT DISTINCT ?x ?z { ?x :q ?z }",
    "group by what is shared": "SELECT ?x { ?x :q ?z } GROUP BY ?x HAVING(COUNT(*) > 1)",
    "group by what may be shared": "SELECT ?z (COUNT(*) AS ?n) { ?w :q ?z } GROUP BY ?z",
    "group of all": "SELECT (COUNT(*) AS ?n) { ?w :q ?z } HAVING(COUNT(*) > 1)",
    "a count that is compared": "SELECT ?x (COUNT(*) AS ?n) { ?x :q ?z } GROUP BY ?x",
    "range of its own": "SELECT ?u { ?w :q ?u } ORDER BY ?u LIMIT 1 OFFSET 1",
    "optional": "SELECT ?x { ?w :q ?z OPTIONAL { ?z :r ?x } }",
}
REFUSED = {
    "range of what is shared": "SELECT ?x { ?x :q ?z } ORDER BY ?z LIMIT 1",
    "group over an optional": "SELECT ?x { ?w :q ?z OPTIONAL { ?z :r ?x } } GROUP BY ?x",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", quick_sample(MAINTAINED, 3))
@pytest.mark.parametrize("negation", ["", "NOT "])
def test_maintained(name, negation):
    @settings(unhurried, max_examples=40)
    @given(st.sampled_from(("?x :p ?y", "?x :p ?y OPTIONAL { ?y :r ?z }")), changes)
    def against_the_reference(outer, stream):
        check(f"SELECT * {{ {outer} FILTER {negation}EXISTS {{ {MAINTAINED[name]} }} }}", stream)

    against_the_reference()


@unhurried
@given(changes)
def test_a_range_in_each_graph(stream):
    inner = "{ SELECT ?z { ?w :q ?z } ORDER BY ?z LIMIT 1 }"
    check(f"SELECT * {{ GRAPH ?g {{ ?x :p ?y FILTER EXISTS {{ {inner} }} }} }}", stream)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    query = f"{PREFIX} SELECT * {{ ?x :p ?y FILTER EXISTS {{ {REFUSED[name]} }} }}"
    with pytest.raises(UnsupportedError, match="depends on the outer row"):
        LiveGraph().watch(query)
