"""Rows compared with an aggregate: against the reference evaluator, and by what changes."""

from __future__ import annotations

import pytest
from engine.against_reference import PREFIX, check, iri, number, streams, unhurried
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal

from graphtide import LiveGraph
from graphtide.plan.physical import RangeJoin, nodes

VALUES = [
    number("1"),
    number("2"),
    number("7"),
    number("0.1", "decimal"),
    number("2.0", "decimal"),
    number("0.1", "double"),
    number("2e0", "double"),
    number("NaN", "double"),
    number("-INF", "double"),
    number("0.1", "float"),
    Literal("text"),
]
mixed = streams([iri(n) for n in "abc"], [iri(n) for n in "vg"], VALUES)
numbers = streams([iri(n) for n in "abc"], [iri(n) for n in "vg"], VALUES[:5])
operators = st.sampled_from(("<", "<=", ">", ">="))
functions = st.sampled_from(("AVG", "SUM", "MIN", "MAX", "COUNT"))
sides = st.sampled_from(("?v {} ?m", "?m {} ?v"))


def query(function, operator, side, *, per_group, selects="?s"):
    group = ("?g", "GROUP BY ?g", "?s :g ?g .") if per_group else ("", "", "")
    inner = f"SELECT {group[0]} ({function}(?x) AS ?m) {{ ?y :v ?x . ?y :g ?g }} {group[1]}"
    compared = side.format(operator)
    return f"SELECT {selects} {{ {group[2]} ?s :v ?v {{ {inner} }} FILTER ({compared}) }}"


@unhurried
@given(functions, operators, sides, st.booleans(), mixed | numbers)
def test_every_comparison_with_every_type(function, operator, side, per_group, stream):
    check(query(function, operator, side, per_group=per_group), stream)


@unhurried
@given(operators, numbers)
def test_counts_of_rows_above_an_aggregate(operator, stream):
    check(query("AVG", operator, "?v {} ?m", per_group=False, selects="(COUNT(*) AS ?n)"), stream)


@pytest.mark.parametrize(("selects", "ranges"), [("?s", 1), ("?s ?v", 1), ("?s ?m", 0), ("*", 0)])
def test_the_aggregate_itself_is_not_read(selects, ranges):
    text = query("AVG", ">", "?v {} ?m", per_group=True, selects=selects)
    plan = LiveGraph().watch(PREFIX + text).plan
    assert sum(isinstance(node, RangeJoin) for node in nodes(plan.root)) == ranges


def test_only_rows_between_the_old_and_the_new_bound_are_sent():
    graph = LiveGraph()
    above = graph.watch(PREFIX + query("AVG", ">", "?v {} ?m", per_group=False))
    with graph.transaction() as tx:
        for i in range(400):
            tx.insert(iri(f"s{i}"), iri("v"), number(str(i)))
            tx.insert(iri(f"s{i}"), iri("g"), iri("all"))
    assert above.count() == 200
    (join,) = (node for node in nodes(above.plan.root) if isinstance(node, RangeJoin))
    before = above.facts(actual=False).sizes[join]
    assert before == {"rows": 400, "bounds": 1}
    with graph.transaction() as tx:
        tx.insert(iri("s400"), iri("v"), number("1202"))
        tx.insert(iri("s400"), iri("g"), iri("all"))
    # The mean rises from 199.5 to 202: 200, 201 and 202 are no longer above it, 1202 is.
    assert sorted(row.diff for row in above.delta()) == [-1, -1, -1, 1]


def test_explain_says_what_is_compared():
    graph = LiveGraph()
    text = graph.watch(PREFIX + query("AVG", ">", "?m {} ?v", per_group=True)).explain()
    assert "range join on ?g: ?v < ?m" in text
    assert "stores left rows in order (0 now) and their bounds (0 now)" in text
