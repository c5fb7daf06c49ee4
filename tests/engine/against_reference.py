"""Runs a query on a live graph under changes, and compares every answer with the reference."""

from __future__ import annotations

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from graphtide import LiveGraph
from graphtide.kernel import JIT
from graphtide.lang.sparql.parse import parse_any_query
from oracles.reference import evaluate_query

unhurried = settings(deadline=None, max_examples=100 if JIT else 30)

PREFIX = "PREFIX : <ex:> "


def iri(name):
    return NamedNode(f"ex:{name}")


def total(delta) -> Counter:
    bag: Counter = Counter()
    for row in delta:
        bag[tuple(row.row.values())] += row.diff
    return bag


def check(text, stream, strategies=("search", "rete")):
    """The deltas add up to the reference's answer after every transaction, for each strategy."""
    query = parse_any_query(PREFIX + text)
    graph = LiveGraph()
    watches = [graph.watch(query, strategy=strategy) for strategy in strategies]
    answers = [total(watch.delta()) for watch in watches]
    present: dict[tuple, None] = {}
    for answer in answers:
        assert +answer == evaluate_query(query, []), "before the first change"
    for body in stream:
        with graph.transaction() as tx:
            for diff, quad in body:
                (tx.insert if diff > 0 else tx.delete)(*quad)
                present.update({quad: None}) if diff > 0 else present.pop(quad, None)
        expected = evaluate_query(query, list(present))
        for watch, answer in zip(watches, answers, strict=True):
            answer.update(total(watch.delta()))
            assert +answer == expected, watch.strategy
            assert not -answer, "a row went that was not there"
            assert watch.count() == expected.total()
    late = graph.watch(query)
    assert total(late.delta()) == evaluate_query(query, list(present)), "registered late"


def streams(subjects, predicates, objects, graphs=(None,)):
    """Transactions of some inserts and deletes."""
    quads = st.tuples(*(st.sampled_from(part) for part in (subjects, predicates, objects, graphs)))
    changes = st.tuples(st.sampled_from((1, 1, -1)), quads)
    return st.lists(st.lists(changes, max_size=5), min_size=1, max_size=6)


def number(text, datatype="integer"):
    return Literal(text, datatype=NamedNode(f"http://www.w3.org/2001/XMLSchema#{datatype}"))
