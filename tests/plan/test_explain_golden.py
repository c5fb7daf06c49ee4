"""What explain shows, against files that were checked by eye.

To write them anew after a change of plans or wording, and then read the difference:

    GRAPHTIDE_UPDATE_GOLDEN=1 .venv/bin/python -m pytest tests/plan/test_explain_golden.py
"""

from __future__ import annotations

import os
from pathlib import Path
from textwrap import dedent

import pytest

from graphtide.lang.sparql.parse import parse_query
from graphtide.plan.build import build_plan
from graphtide.plan.explain import explain, explain_logical

GOLDEN = Path(__file__).parent / "golden"
UPDATE = os.environ.get("GRAPHTIDE_UPDATE_GOLDEN") == "1"

QUERIES = {
    "route-sensor": """
        SELECT ?route ?sensor {
          ?route :follows ?position . ?position :target ?switch . ?switch :monitoredBy ?sensor
          FILTER NOT EXISTS { ?route :requires ?sensor }
        }""",
    "optional-with-condition": """
        SELECT ?a ?b ?n { ?a :knows ?b OPTIONAL { ?b :age ?n FILTER(?n > 17) } }""",
    "union-distinct": """
        SELECT DISTINCT ?x { { ?x :knows ?y } UNION { ?y :likes ?x } }""",
    "minus-after-optional": """
        SELECT * { ?a :knows ?b OPTIONAL { ?b :likes ?c } MINUS { ?b :hates ?c } }""",
    "graph-and-quotes": r"""
        SELECT ?g ?n { GRAPH ?g { ?a :name ?n } FILTER(STRLEN(?n) > 3 && ?n != "a\"b<c>&d") }""",
    "bind-values": """
        SELECT ?a ?t {
          VALUES ?a { :x :y } ?a :age ?n BIND(-?n * 2 AS ?t) FILTER(?n IN (1, 2) || ?a = :x)
        }""",
    "exists-inside-or": """
        SELECT ?a { ?a :age ?n FILTER(?n > 3 || EXISTS { ?a :knows ?b }) }""",
    "product": """
        SELECT * { ?a :knows ?b . ?c :likes ?d }""",
}


def shown(text: str) -> str:
    """Everything that explain can show of a query."""
    query = parse_query(f"PREFIX : <http://example.org/> {text}")
    search, rete = build_plan(query, "search"), build_plan(query, "rete")
    parts = {
        "query": dedent(text).strip(),
        "logical plan": explain_logical(query),
        "physical plan, search": explain(search),
        "physical plan, rete": explain(rete),
        "logical plan, mermaid": explain_logical(query, "mermaid"),
        "physical plan, rete, mermaid": explain(rete, "mermaid"),
    }
    return "\n\n".join(f"--- {title}\n{part}" for title, part in parts.items()) + "\n"


@pytest.mark.parametrize("name", QUERIES)
def test_explain_shows(name):
    path = GOLDEN / f"{name}.txt"
    found = shown(QUERIES[name])
    if UPDATE:
        path.write_text(found, encoding="utf-8")
    assert found == path.read_text(encoding="utf-8")


def test_every_golden_file_belongs_to_a_query():
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(QUERIES)
