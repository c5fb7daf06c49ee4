"""`LiveGraph(threads=2)`: the same deltas as with one thread, also after faults."""

from __future__ import annotations

import threading
from contextlib import suppress
from random import Random

import pytest
from engine.injection import InjectedFault, fault_at, places
from engine.small_graph import PREFIX, batch, line

from graphtide import GraphtideError, Limits, LiveGraph
from graphtide.errors import LimitError
from graphtide.kernel.search import parallel

QUERIES = {
    "join": "SELECT ?a ?c { ?a :knows ?b . ?b :knows ?c }",
    "absent": "SELECT ?a ?b { ?a :knows ?b FILTER NOT EXISTS { ?b :likes ?a } }",
    "optional": "SELECT ?a ?c { ?a :knows ?b OPTIONAL { ?b :likes ?c } }",
    "groups": "SELECT ?a (MIN(?c) AS ?m) { ?a :knows ?b . ?b :likes ?c } GROUP BY ?a",
    "everything": "SELECT ?p (COUNT(*) AS ?n) { ?a ?p ?b } GROUP BY ?p",
    "fixed": "ASK { :n1 :knows :n2 }",
    "reach": "SELECT ?b { :n1 :knows+ ?b }",
}


@pytest.fixture(autouse=True)
def _always_worth(monkeypatch):
    """However few changes there are, they are divided among threads."""
    monkeypatch.setattr("graphtide.kernel.workers.WORTH", 0)


def changes(seed, many=120):
    rng = Random(seed)
    for number in range(many):
        sign = "-" if rng.random() < 0.4 else "+"
        name = f"n{rng.randrange(6)} {rng.choice(['knows', 'likes'])} n{rng.randrange(6)}"
        yield number // 8, number // 3, f"{sign} {name}"


def watched(graph):
    return {name: graph.watch(PREFIX + text, name=name) for name, text in QUERIES.items()}


def seen(queries):
    return {
        name: [(delta.time, delta.tx, sorted(map(line, delta))) for delta in query.deltas()]
        for name, query in queries.items()
    }


@pytest.mark.parametrize("seed", range(3))
def test_several_queries_have_the_deltas_of_one_thread(seed):
    rows = list(changes(seed))
    found = []
    for threads, size in ((1, len(rows)), (2, len(rows)), (3, 1), (2, 40)):
        with LiveGraph(threads=threads) as graph:
            queries = watched(graph)
            graph.apply(batch(*rows[begin : begin + size]) for begin in range(0, len(rows), size))
            found.append((seen(queries), {name: q.count() for name, q in queries.items()}))
    assert all(each == found[0] for each in found)
    assert sum(map(len, found[0][0].values())) > 50


def test_queries_that_come_later_and_end():
    rows = list(changes(9))
    found = []
    for threads in (1, 2):
        graph = LiveGraph(threads=threads)
        early = graph.watch(PREFIX + QUERIES["join"])
        graph.apply(batch(*rows[:60]))
        queries = watched(graph)
        early.close()
        graph.apply(batch(*rows[60:]))
        asked = graph.query(PREFIX + QUERIES["absent"]).num_rows
        found.append((seen(queries), asked))
    assert found[0] == found[1]


def test_callbacks_run_in_the_calling_thread_and_see_their_transaction():
    found = []
    for threads in (1, 2):
        graph, heard = LiveGraph(threads=threads), []
        query = graph.watch(PREFIX + QUERIES["join"])
        query.on_delta(
            lambda delta, to=heard, of=query: to.append(
                (threading.get_ident(), delta.tx, of.count())
            )
        )
        graph.apply(batch(*changes(4)))
        found.append(heard)
    assert found[0] == found[1]
    assert {ident for ident, *_ in found[1]} == {threading.get_ident()}


def test_a_fault_leaves_all_or_nothing():
    """At any call in the calling thread; the next one goes on."""
    rows = list(changes(5, 60))
    first, second = batch(*rows[:40]), batch(*rows[40:])

    def start():
        graph = LiveGraph(threads=2)
        queries = watched(graph)
        graph.apply(first)
        return graph, queries

    graph, queries = start()
    before = seen(queries), len(graph)
    with fault_at(0) as counted:
        graph.apply(second)
    after = seen(queries), len(graph)
    assert counted.calls > 10
    whole, numbers = 0, list(places(counted.calls, 40))
    for number in numbers:
        graph, queries = start()
        with suppress(InjectedFault), fault_at(number):
            graph.apply(second)
            whole += 1  # another thread made some of the calls
        state = seen(queries), len(graph)
        assert state in (before, after)
        if state == before:
            graph.apply(second)
        graph.apply(batch((99, 99, "+ n1 knows n2"), (99, 99, "- n2 knows n1")))
        for name, query in queries.items():
            again = graph.watch(query.text, strategy="search" if name == "join" else None)
            assert again.table().num_rows == query.count(), name
    assert whole < len(numbers) / 2


def test_an_error_in_another_thread_is_raised_here_and_undone(monkeypatch):
    graph = LiveGraph(threads=2)
    queries = watched(graph)
    graph.apply(batch(*changes(6, 30)))
    expected, size = seen(queries), len(graph)
    every = [(50, 50, f"+ n{a} knows n{b}") for a in range(6) for b in range(6)]
    here, failed = threading.get_ident(), threading.Event()
    rows = parallel.ThreadSpace.rows

    def fail(self, step, begin, left):
        if threading.get_ident() != here and not failed.is_set():
            failed.set()
            raise LimitError("too much", limit="flush_bytes", value=1)
        assert failed.wait(60)
        return rows(self, step, begin, left)

    with monkeypatch.context() as patch:
        patch.setattr(parallel, "SLICE", 4)
        patch.setattr(parallel.ThreadSpace, "rows", fail)
        with pytest.raises(LimitError, match="too much"):
            graph.apply(batch(*every))
    assert (seen(queries), len(graph)) == (expected, size)
    graph.apply(batch(*every))
    assert queries["join"].count() == 6**3


def test_limits_hold_in_all_threads():
    graph = LiveGraph(threads=2, limits=Limits(flush_bytes=20_000))
    query = graph.watch(PREFIX + "SELECT * { ?a :knows ?b . ?c :likes ?d . ?e :knows ?f }")
    every = [
        (0, 0, f"+ n{a} {p} n{b}") for a in range(9) for b in range(9) for p in ("knows", "likes")
    ]
    with pytest.raises(LimitError):
        graph.apply(batch(*every))
    assert (len(graph), query.count()) == (0, 0)


def test_how_many_threads():
    with pytest.raises(GraphtideError, match="threads=0"):
        LiveGraph(threads=0)
