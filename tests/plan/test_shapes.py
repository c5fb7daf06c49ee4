"""Which nodes a query becomes, under both strategies: keys, checks and fused conditions."""

from __future__ import annotations

import pytest

from graphtide.algebra.expressions import Var
from graphtide.lang.sparql.parse import parse_query
from graphtide.plan.build import build_plan
from graphtide.plan.patterns import DEFAULT_STRATEGY, connected
from graphtide.plan.physical import children


def plan(text: str, strategy: str = "search"):
    return build_plan(parse_query(f"PREFIX : <http://example.org/> {text}"), strategy).root


def shape(node) -> object:
    """A plan as nested tuples of node names; keys of joins, numbers of patterns and checks."""
    kind = type(node).__name__
    inputs = tuple(shape(child) for child in children(node))
    match kind:
        case "Search":
            return (kind, len(node.patterns), *(("not", "has")[not c.negated] for c in node.checks))
        case "HashJoin" | "SemiJoin":
            keys = "".join(v.name for v in node.keys)
            negated = "anti" if getattr(node, "negated", False) else ""
            return (negated + kind, keys, *inputs)
        case _:
            return (kind, *inputs)


IN = ("Search", 1)
CASES = {
    "one pattern": ("SELECT * { ?a :p ?b }", IN, IN),
    "chain": (
        "SELECT * { ?a :p ?b . ?b :q ?c . ?c :r ?d }",
        ("Search", 3),
        ("HashJoin", "c", ("HashJoin", "b", IN, IN), IN),
    ),
    "a join order that stays connected": (
        "SELECT * { ?a :p ?b . ?c :r ?d . ?b :q ?c }",
        ("Search", 3),
        ("HashJoin", "c", ("HashJoin", "b", IN, IN), IN),
    ),
    "cycle": (
        "SELECT * { ?a :p ?b . ?b :p ?c . ?c :p ?a }",
        ("Search", 3),
        ("HashJoin", "ac", ("HashJoin", "b", IN, IN), IN),
    ),
    "the same pattern twice": ("SELECT * { ?a :p ?b . ?a :p ?b }", IN, IN),
    "product": (
        "SELECT * { ?a :p ?b . ?c :q ?d }",
        ("HashJoin", "", IN, IN),
        ("HashJoin", "", IN, IN),
    ),
    "two groups": (
        "SELECT * { ?a :p ?b . ?b :p ?c . ?x :q ?y . ?y :q ?z }",
        ("HashJoin", "", ("Search", 2), ("Search", 2)),
        ("HashJoin", "", ("HashJoin", "b", IN, IN), ("HashJoin", "y", IN, IN)),
    ),
    "projection": ("SELECT ?a { ?a :p ?b }", ("Keep", IN), ("Keep", IN)),
    "not exists is fused into a search": (
        "SELECT * { ?a :p ?b FILTER NOT EXISTS { ?b :q ?a } }",
        ("Search", 1, "not"),
        ("antiSemiJoin", "ba", IN, IN),
    ),
    "exists with a name of its own": (
        "SELECT * { ?a :p ?b FILTER EXISTS { ?b :q ?x . ?x :r ?y } }",
        ("Search", 1, "has"),
        ("SemiJoin", "b", IN, ("Keep", ("HashJoin", "x", IN, IN))),
    ),
    "two checks": (
        "SELECT * { ?a :p ?b FILTER EXISTS { ?a :q ?x } FILTER NOT EXISTS { ?b :q ?a } }",
        ("Search", 1, "has", "not"),
        ("antiSemiJoin", "ba", ("SemiJoin", "a", IN, ("Keep", IN)), IN),
    ),
    "a check that shares no variable": (
        "SELECT * { ?a :p ?b FILTER EXISTS { ?x :q ?y } }",
        ("SemiJoin", "", IN, ("Keep", IN)),
        ("SemiJoin", "", IN, ("Keep", IN)),
    ),
    "a check with a filter inside": (
        "SELECT * { ?a :p ?b FILTER EXISTS { ?b :q ?x FILTER(?x > 1) } }",
        ("SemiJoin", "b", IN, ("Keep", ("Select", IN))),
        ("SemiJoin", "b", IN, ("Keep", ("Select", IN))),
    ),
    "plain conditions before checks": (
        "SELECT * { ?a :p ?b FILTER EXISTS { ?x :q ?y } FILTER(?b > 1) }",
        ("SemiJoin", "", ("Select", IN), ("Keep", IN)),
        ("SemiJoin", "", ("Select", IN), ("Keep", IN)),
    ),
    "a check that reads the outer row": (
        "SELECT * { ?a :p ?b FILTER EXISTS { ?a :q ?x FILTER(?x = ?b) } }",
        ("SemiJoin", "ab", IN, ("Keep", ("Select", ("HashJoin", "a", ("Unique", IN), IN)))),
        ("SemiJoin", "ab", IN, ("Keep", ("Select", ("HashJoin", "a", ("Unique", IN), IN)))),
    ),
    "a condition on one side of a join": (
        "SELECT * { ?a :p ?b { ?b :q ?c } UNION { ?b :r ?c } FILTER(?a = :x) }",
        ("HashJoin", "b", ("Select", IN), ("Merge", IN, IN)),
        ("HashJoin", "b", ("Select", IN), ("Merge", IN, IN)),
    ),
    "optional": (
        "SELECT * { ?a :p ?b OPTIONAL { ?b :q ?c } }",
        (
            "Merge",
            ("HashJoin", "b", IN, IN),
            ("Keep", ("antiSemiJoin", "ab", IN, ("Keep", ("HashJoin", "b", IN, IN)))),
        ),
        (
            "Merge",
            ("HashJoin", "b", IN, IN),
            ("Keep", ("antiSemiJoin", "ab", IN, ("Keep", ("HashJoin", "b", IN, IN)))),
        ),
    ),
    "minus": (
        "SELECT * { ?a :p ?b MINUS { ?b :q ?c } }",
        ("antiSemiJoin", "b", IN, ("Keep", IN)),
        ("antiSemiJoin", "b", IN, ("Keep", IN)),
    ),
    "minus that shares no variable": ("SELECT * { ?a :p ?b MINUS { ?x :q ?y } }", IN, IN),
    "graph names": (
        "SELECT * { GRAPH ?g {} }",
        ("Unique", ("Keep", IN)),
        ("Unique", ("Keep", IN)),
    ),
    "distinct": (
        "SELECT DISTINCT ?a { ?a :p ?b }",
        ("Unique", ("Keep", IN)),
        ("Unique", ("Keep", IN)),
    ),
    "bind": ("SELECT * { ?a :p ?b BIND(?b + 1 AS ?c) }", ("Compute", IN), ("Compute", IN)),
    "values": (
        "SELECT * { VALUES ?a { :x } ?a :p ?b }",
        ("HashJoin", "a", ("Constant",), IN),
        ("HashJoin", "a", ("Constant",), IN),
    ),
    "no pattern": ("SELECT * {}", ("Constant",), ("Constant",)),
    "the empty group is the neutral element": ("SELECT * { {} ?a :p ?b }", IN, IN),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("strategy", ["rete", "search"])
def test_the_shape_of(case, strategy):
    text, search, rete = CASES[case]
    assert shape(plan(text, strategy)) == (search if strategy == "search" else rete)


def test_search_is_the_default():
    assert DEFAULT_STRATEGY == "search"


def test_columns_that_may_be_unbound_are_loose_keys():
    node = plan("SELECT * { { ?a :p ?b OPTIONAL { ?b :q ?c } } { ?c :r ?b } }")
    assert (node.keys, node.loose, node.overlap) == ((Var("b"),), (Var("c"),), ())


def test_minus_asks_for_a_variable_bound_on_both_sides():
    node = plan("SELECT * { { ?a :p ?b } UNION { ?b :p ?c } MINUS { ?a :q ?c } }")
    (join,) = [n for n in every(node) if type(n).__name__ == "HashJoin"]
    assert (join.keys, set(join.overlap)) == ((), {Var("a"), Var("c")})


def every(node):
    yield node
    for child in children(node):
        yield from every(child)


def test_each_node_says_which_columns_are_bound_for_sure():
    node = plan("SELECT ?a ?c ?d { ?a :p ?b OPTIONAL { ?b :q ?c } BIND(?a AS ?d) }")
    assert node.schema == (Var("a"), Var("c"), Var("d"))
    assert node.certain == {Var("a")}


def test_groups_hang_together_by_variables():
    query = parse_query(
        "SELECT * { ?a <p:1> ?b . ?x <p:2> ?y . ?b <p:3> ?c . <a:a> <p:4> <a:b> . ?y ?b ?z }"
    )
    groups = connected(query.root.child.patterns)
    names = [
        [p.predicate.value if hasattr(p.predicate, "value") else "?" for p in g] for g in groups
    ]
    assert names == [["p:1", "p:3", "?", "p:2"], ["p:4"]]
