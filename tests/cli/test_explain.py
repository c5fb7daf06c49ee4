import pytest

from graphtide.lang.sparql.parse import parse_query
from graphtide.plan.explain import explain_logical


def test_both_plans(files, run):
    ran = run("explain", "route.rq")
    assert ran.code == 0
    assert ran.lines[:5] == [
        "logical plan",
        "project ?route ?sensor",
        "└─ filter !(EXISTS { … })",
        "   ├─ pattern ?route :follows ?swP . ?swP :target ?sw . ?sw :monitoredBy ?sensor",
        "   └─ not exists: pattern ?route :requires ?sensor",
    ]
    assert "physical plan" in ran.lines
    assert "answer ?route ?sensor" in ran.lines


def test_rows_that_each_node_holds(files, run):
    options = "--data", "rail.ttl", "--changes", "log.rdfp", "--strategy", "rete"
    ran = run("explain", "route.rq", *options)
    assert "answer ?route ?sensor, 0 rows now" in ran.out
    # route1 follows one position with one sensor, which it requires by now
    assert "stores left rows (1 now) and a count per right key (1 now)" in ran.out


def test_mermaid_alone_is_a_diagram(files, run):
    physical = run("explain", "route.rq", "--format", "mermaid")
    logical = run("explain", "route.rq", "--format", "mermaid", "--logical")
    assert physical.lines[0] == logical.lines[0] == "flowchart BT"
    assert 'n4 -->|"not exists"| n2' in logical.out
    assert "answer" not in logical.out


def test_logical_only(files, run):
    assert "physical" not in run("explain", "route.rq", "--logical").out


@pytest.mark.parametrize(
    ("query", "plan"),
    [
        ("SELECT * { }", "project nothing\n└─ one empty row"),
        (
            "SELECT DISTINCT ?a { { ?a <ex:p> ?b } UNION { ?a <ex:q> ?b } }",
            """distinct
└─ project ?a
   └─ union
      ├─ pattern ?a :ex:p ?b
      └─ pattern ?a :ex:q ?b""",
        ),
        (
            "SELECT ?a { ?a <ex:p> ?b OPTIONAL { ?b <ex:q> ?c FILTER(BOUND(?c)) } }",
            """project ?a
└─ left join if BOUND(?c)
   ├─ pattern ?a :ex:p ?b
   └─ optional: pattern ?b :ex:q ?c""",
        ),
        (
            "SELECT ?a { ?a <ex:p> ?b MINUS { ?a <ex:q> ?c } }",
            "project ?a\n└─ minus\n   ├─ pattern ?a :ex:p ?b\n   └─ without: pattern ?a :ex:q ?c",
        ),
        (
            "SELECT * { VALUES ?a { <ex:x> <ex:y> } BIND(STR(?a) AS ?b) }",
            "project ?a ?b\n└─ bind ?b to STR(?a)\n   └─ values of ?a, 2 rows",
        ),
        ("SELECT * { GRAPH ?g { } }", "project ?g\n└─ graph names ?g"),
    ],
)
def test_logical_plans_in_words(query, plan):
    assert explain_logical(parse_query(query)) == plan


def test_mistakes_are_told(files, run):
    assert "nope.rq: there is no such file" in run("explain", "nope.rq").err
    ran = run("explain", "route.rq", "--data", "broken.rdfp")
    assert ran.code == 2
    assert "broken.rdfp:3:28" in ran.err
