"""Random algebra trees under random changes: both strategies against the reference evaluator."""

from __future__ import annotations

from collections import Counter

import pytest
from algebra.random_nodes import existing, nodes, quads
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphtide import LiveGraph
from graphtide.algebra.nodes import SelectQuery
from graphtide.algebra.variables import schema
from graphtide.kernel import JIT
from oracles.reference import evaluate_query

streams = st.lists(
    st.lists(st.tuples(st.sampled_from((1, 1, -1)), quads), max_size=4), min_size=1, max_size=5
)


def total(rows) -> Counter:
    bag: Counter = Counter()
    for row in rows:
        bag[tuple(row.row.values())] += row.diff
    return bag


@settings(max_examples=120 if JIT else 60, deadline=None, suppress_health_check=list(HealthCheck))
@given(nodes, streams)
def test_deltas_add_up_to_the_answer_after_every_transaction(root, stream):
    check(root, stream)


@pytest.mark.slow
@settings(max_examples=200 if JIT else 60, deadline=None, suppress_health_check=list(HealthCheck))
@given(existing, streams)
def test_patterns_of_any_shape_inside_exists(root, stream):
    check(root, stream)


def check(root, stream):
    query = SelectQuery(schema(root), root)
    graph = LiveGraph()
    watches = [graph.watch(query, strategy=strategy) for strategy in ("rete", "search")]
    answers = [total(watch.delta()) for watch in watches]
    present: dict[tuple, None] = {}
    for body in stream:
        with graph.transaction() as tx:
            for diff, quad in body:
                (tx.insert if diff > 0 else tx.delete)(*quad)
                present.update({quad: None}) if diff > 0 else present.pop(quad, None)
        expected = evaluate_query(query, list(present))
        for watch, answer in zip(watches, answers, strict=True):
            answer.update(total(watch.delta()))
            assert +answer == expected, watch.strategy
            assert watch.count() == expected.total()
        assert total(graph.watch(query).delta()) == expected
