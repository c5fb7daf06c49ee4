"""The bytes of a plan: rows in memories, and indexes that no other query needs."""

from __future__ import annotations

from dataclasses import replace

from pyoxigraph import NamedNode

from graphtide import LiveGraph
from graphtide.lang.sparql.parse import parse_query
from graphtide.plan.build import build_plan
from graphtide.plan.cost import CELL_BYTES, KEY_BYTES, LINK_BYTES, ROW_BYTES, plan_cost
from graphtide.plan.estimate import EVERY_PREDICATE, Estimator, PredicateStats, Statistics
from graphtide.plan.patterns import Choices

BY_SUBJECT, BY_OBJECT = (0, 1, 3), (1, 2, 3)
CHAIN = "PREFIX : <http://example.org/> SELECT * { ?a :p ?b . ?b :q ?c }"


def iri(name):
    return NamedNode(f"http://example.org/{name}")


KNOWN = Statistics(
    300, {iri("p"): PredicateStats(100, 50, 20), iri("q"): PredicateStats(200, 40, 200)}
)


def stored_bytes(text, strategy, known=KNOWN):
    plan = build_plan(parse_query(text), Choices(strategy, known))
    return plan_cost(plan.root, Estimator(known)).stored_bytes


def test_a_search_stores_its_indexes():
    """`p` is looked up by its 20 objects, `q` by its 40 subjects."""
    assert stored_bytes(CHAIN, "search") == 2 * LINK_BYTES * 300 + KEY_BYTES * (20 + 40)


def test_a_network_stores_rows_and_no_index():
    row = ROW_BYTES + 2 * CELL_BYTES + LINK_BYTES + KEY_BYTES
    assert stored_bytes(CHAIN, "rete") == (100 + 200) * row


def test_a_set_stores_each_row_once():
    text = CHAIN.replace("*", "DISTINCT ?c")
    row = ROW_BYTES + CELL_BYTES
    assert stored_bytes(text, "search") == stored_bytes(CHAIN, "search") + 200 * row


def test_an_index_that_others_keep_is_free_for_its_predicates():
    other = replace(KNOWN, indexes={BY_OBJECT: {iri("r")}})
    same = replace(KNOWN, indexes={BY_OBJECT: {iri("p")}})
    every = replace(KNOWN, indexes={BY_OBJECT: {EVERY_PREDICATE}})
    by_subject = LINK_BYTES * 300 + KEY_BYTES * 40
    assert stored_bytes(CHAIN, "search", other) == by_subject + KEY_BYTES * 20
    assert stored_bytes(CHAIN, "search", same) == by_subject
    assert stored_bytes(CHAIN, "search", every) == by_subject


def test_a_graph_says_which_indexes_there_are_without_a_query():
    graph = LiveGraph()
    graph.insert(iri("a"), iri("p"), iri("b"))
    graph.insert(iri("b"), iri("q"), iri("c"))
    p, q = graph.terms.lookup(iri("p")), graph.terms.lookup(iri("q"))
    one = graph.watch(CHAIN, strategy="search")
    assert not any(one.facts(actual=False).statistics.indexes.values())
    two = graph.watch(CHAIN.replace("?a", "?x"), strategy="search")  # the same search
    kept = one.facts(actual=False).statistics.indexes
    assert {columns: set(own) for columns, own in kept.items()} == {
        BY_OBJECT: {p}, BY_SUBJECT: {q},
    }  # fmt: skip
    two.close()
    assert not any(one.facts(actual=False).statistics.indexes.values())
    one.close()
