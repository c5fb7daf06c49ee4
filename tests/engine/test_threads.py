"""Several threads on one graph: no reader sees half a transaction, and nothing is lost."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from random import Random

import pytest
from engine.small_graph import PREFIX, answer, quad
from pyoxigraph import NamedNode, Quad, Store

from graphtide import LiveGraph

QUERIES = {
    "half": "SELECT ?k { ?k :left ?v FILTER NOT EXISTS { ?k :right ?v } }",
    "pairs": "SELECT ?k ?v { ?k :left ?v . ?k :right ?v }",
    "count": "SELECT (COUNT(*) AS ?n) { ?k :right ?v }",
    "optional": "SELECT ?k ?w { ?k :left ?v OPTIONAL { ?k :right ?w } }",
}

PER_ROUND = 6
"""Transactions of a writer while a reader looks at everything once."""

PATIENCE = 600
"""Seconds after which threads are taken to wait for each other."""


def transactions(writer, many):
    """Each inserts or deletes both halves of a pair; writers have keys of their own."""
    rng = Random(writer)
    for _ in range(many):
        key, value = f"k{writer}{rng.randrange(4)}", f"v{rng.randrange(3)}"
        yield rng.random() < 0.6, (f"{key} left {value}", f"{key} right {value}")


def write(graph, changes, query):
    """Every other transaction is applied by the writer, the others by whoever reads next."""
    for number, (inserts, pair) in enumerate(changes):
        with graph.transaction() as tx:
            for text in pair:
                (tx.insert if inserts else tx.delete)(*quad(text))
        if number % 2:
            query.count()


def look(graph, queries, problems):
    """All that one call gives is as of one transaction."""
    if queries["half"].count():
        problems.append("a query has half a transaction")
    if queries["half"].table().num_rows:
        problems.append("a table has half a transaction")
    if len(graph) % 2:
        problems.append("the graph has half a transaction")
    rows = answer(queries["optional"])
    if any(row.endswith("-") for row in rows):
        problems.append("OPTIONAL has half a transaction")
    table = graph.query(PREFIX + "SELECT ?k { ?k :left ?v MINUS { ?k :right ?v } }")
    if table.num_rows:
        problems.append("a single answer has half a transaction")
    for delta in queries["pairs"].deltas():
        if not len(delta):
            problems.append("an empty delta")


def final_quads(writers, many):
    quads = set()
    for writer in range(writers):
        for inserts, pair in transactions(writer, many):
            (quads.update if inserts else quads.difference_update)(map(quad, pair))
    return quads


def run_threads(rounds):
    """In each round, all threads at once: two write some transactions, two look at everything."""
    graph, problems, begin = LiveGraph(), [], threading.Barrier(4)
    queries = {name: graph.watch(PREFIX + text, name=name) for name, text in QUERIES.items()}
    look(graph, queries, problems)  # the first look compiles

    def thread(work):
        def guarded():
            try:
                for number in range(rounds):
                    begin.wait(PATIENCE)
                    work(number)
            except threading.BrokenBarrierError:
                problems.append("another thread has failed")
            except BaseException as problem:  # noqa: BLE001 - told by the main thread
                problems.append(repr(problem))
                begin.abort()

        return threading.Thread(target=guarded, daemon=True)

    def writer(number):
        changes = list(transactions(number, rounds * PER_ROUND))
        return thread(
            lambda at: write(
                graph, changes[at * PER_ROUND : (at + 1) * PER_ROUND], queries["pairs"]
            )
        )

    threads = [writer(0), writer(1)]
    threads += [thread(lambda _: look(graph, queries, problems)) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for each in threads:
            each.start()
        for each in threads:
            each.join(PATIENCE)
    finally:
        sys.setswitchinterval(interval)
    assert not any(each.is_alive() for each in threads), "threads wait for each other"
    return graph, queries, problems


def check_threads(rounds):
    graph, queries, problems = run_threads(rounds)
    many = rounds * PER_ROUND
    assert not problems, Counter(problems)
    expected = final_quads(2, many)
    assert {tuple(map(str, each[:3])) for each in graph.quads()} == expected
    assert graph.stats().transactions == 2 * many
    store = Store()
    store.extend(Quad(*(NamedNode(term[1:-1]) for term in each)) for each in expected)
    for query in queries.values():
        total = Counter()
        for row in query.rows():
            total[tuple(map(str, row.row.values()))] += row.diff
        found = store.query(query.text)
        assert +total == Counter(tuple(map(str, row)) for row in found), query.name
        assert query.count() == (+total).total(), query.name


def test_two_writers_and_two_readers():
    check_threads(50)


@pytest.mark.slow
def test_two_writers_and_two_readers_for_long():
    check_threads(400)
