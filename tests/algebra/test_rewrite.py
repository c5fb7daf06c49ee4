"""Rewriting keeps every answer: random queries over random graphs, before and after."""

from __future__ import annotations

from dataclasses import replace

import pytest
from algebra.random_nodes import filtered, graphs
from hypothesis import HealthCheck, given, seed, settings
from support.sampling import quick_sample

from graphtide.algebra.nodes import SelectQuery
from graphtide.algebra.rewrite import RULES, drop_order, merge_patterns, push_filters, rewrite
from graphtide.algebra.variables import schema
from graphtide.lang.sparql.parse import parse_query
from oracles.generators import Case, cases
from oracles.reference import evaluate_query
from oracles.runs import snapshots
from oracles.transactions import terms_of

MOST_QUADS = 14
"""The reference evaluator loops over everything: larger graphs cost much and say little."""


def check(case: Case) -> None:
    query = parse_query(case.query)
    rewritten = replace(query, root=rewrite(query.root))
    assert set(schema(rewritten.root)) == set(schema(query.root))
    for stream in case.streams:
        *_, last = snapshots(stream)
        quads = [terms_of(quad) for quad in sorted(last, key=str)[:MOST_QUADS]]
        assert evaluate_query(rewritten, quads) == evaluate_query(query, quads)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(filtered, graphs)
def test_a_rewritten_tree_has_the_same_rows(root, quads):
    query = SelectQuery(schema(root), root)
    expected = evaluate_query(query, quads)
    for rule in (*RULES, rewrite):
        assert evaluate_query(replace(query, root=rule(root)), quads) == expected


# Short rounds with seeds of their own see more different queries than one long run.
@pytest.mark.parametrize("number", quick_sample(range(6), 6))
def test_a_rewritten_query_has_the_same_answer(number):
    @seed(number)
    @settings(
        max_examples=20, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(cases(streams=2))
    def rewritten_is_the_same(case):
        check(case)

    rewritten_is_the_same()


def test_the_rules_in_their_order():
    assert (drop_order, merge_patterns, push_filters) == RULES


def test_patterns_are_merged_before_filters_move():
    query = parse_query(
        "SELECT * { { ?a <a:p> ?b } { ?b <a:q> ?c } { ?c <a:r> ?d } FILTER(?a < ?d) }"
    )
    expected = parse_query("SELECT * { ?a <a:p> ?b . ?b <a:q> ?c . ?c <a:r> ?d FILTER(?a < ?d) }")
    assert rewrite(query.root) == expected.root
