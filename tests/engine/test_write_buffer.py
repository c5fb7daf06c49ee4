"""The write buffer: changes are applied when an answer is read, with the same result as at once."""

from __future__ import annotations

import random

import pytest
from engine.small_graph import KNOWN, PATHS, answer, insert, iri, line, quad, watch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphtide import LiveGraph
from graphtide.engine.ingest import FEW, MAX_BUFFERED, WriteBuffer, quad_ids
from graphtide.kernel import JIT
from graphtide.rdf.dictionary import TermDictionary

QUERIES = (
    PATHS,
    KNOWN,
    "SELECT DISTINCT ?a { ?a ?p ?b }",
    "SELECT * { ?a :knows ?b OPTIONAL { ?b :likes ?c } }",
    "SELECT ?a { ?a :knows ?b FILTER NOT EXISTS { ?b :likes ?a } }",
)
NAMES = "abcd"


def random_change(rng: random.Random) -> tuple[int, str]:
    return rng.choice(
        (1, 1, -1)
    ), f"{rng.choice(NAMES)} {rng.choice(('knows', 'likes'))} {rng.choice(NAMES)}"


def run(steps: int, seed: int, look) -> tuple[list[list[tuple[int, int, str]]], list, tuple]:
    """Thousands of single changes and small transactions; `look` is called after each."""
    rng, graph = random.Random(seed), LiveGraph()
    watches = [watch(graph, query) for query in QUERIES]
    for step in range(steps):
        time = step // 3
        if rng.random() < 0.1:
            with graph.transaction(time=time) as tx:
                for _ in range(rng.randrange(4)):
                    diff, text = random_change(rng)
                    (tx.insert if diff > 0 else tx.delete)(*quad(text))
        else:
            diff, text = random_change(rng)
            (graph.insert if diff > 0 else graph.delete)(*quad(text), time=time)
        look(graph, watches, step)
    histories = [sorted((r.time, r.tx, line(r)) for r in found.rows()) for found in watches]
    stats = graph.stats()
    counts = (stats.quads, stats.inserted, stats.deleted, stats.redundant, stats.transactions)
    return histories, [answer(found) for found in watches], counts


def always(graph, watches, step) -> None:
    for found in watches:
        found.delta()


def never(graph, watches, step) -> None:
    pass


def sometimes(graph, watches, step) -> None:
    looks = [
        lambda: len(graph),
        watches[0].count,
        watches[1].delta,
        watches[2].table,
        lambda: list(watches[3].rows()),
        lambda: list(graph.quads()),
        graph.stats,
        lambda: graph.stats().transactions,
        lambda: quad("a knows b") in graph,
        watches[4].explain,
    ]
    if step % 7 == 0:
        looks[step // 7 % len(looks)]()


STEPS = MAX_BUFFERED + 500 if JIT else 300


@pytest.mark.slow
def test_thousands_of_changes_give_the_same_whenever_somebody_looks():
    expected = run(STEPS, 1, always)
    assert expected[2][-1] == STEPS
    assert run(STEPS, 1, never) == expected
    assert run(STEPS, 1, sometimes) == expected


@pytest.mark.parametrize("size", [1, 2, 9, 10, 11, 20, 21])
def test_the_delta_after_a_pause_is_that_of_the_last_change_alone(size, monkeypatch):
    monkeypatch.setattr("graphtide.engine.ingest.MAX_BUFFERED", 10)
    graph = LiveGraph()
    known = watch(graph, KNOWN)
    for k in range(size):
        insert(graph, f"x knows n{k}")
    assert [line(row) for row in known.delta()] == [f"+1 n{size - 1}"]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from((1, -1)),
            st.sampled_from(
                [f"{a} {p} {b}" for a in "ab" for p in ("knows", "likes") for b in "ab"]
            ),
            st.booleans(),
        ),
        max_size=30,
    )
)
def test_each_delta_is_the_same_whoever_else_has_looked(changes):
    eager, lazy = LiveGraph(), LiveGraph()
    watches = [(watch(eager, query), watch(lazy, query)) for query in QUERIES]
    for diff, text, look in changes:
        for graph in (eager, lazy):
            (graph.insert if diff > 0 else graph.delete)(*quad(text))
        for one, other in watches:
            found = sorted(map(line, one.delta()))
            if look:
                assert sorted(map(line, other.delta())) == found
    for one, other in watches:
        assert answer(one) == answer(other)
        assert sorted(map(line, one.rows())) == sorted(map(line, other.rows()))


@pytest.mark.parametrize("size", [1, MAX_BUFFERED, 2 * MAX_BUFFERED + 1])
def test_a_transaction_may_be_larger_than_what_waits_at_most(size):
    graph = LiveGraph()
    known = watch(graph, "SELECT ?n { :a :age ?n }")
    with graph.transaction() as tx:
        for n in range(size):
            tx.insert(iri("a"), iri("age"), n)
    assert len(known.delta()) == size
    assert graph.stats().transactions == 1


@given(st.lists(st.integers(0, FEW + 2), max_size=8))
def test_each_piece_has_its_changes_in_an_array_that_the_one_before_does_not_use(sizes):
    # A store tells by the array whether changes were applied last, when they are to be undone.
    buffer, last = WriteBuffer(), None
    for tx, size in enumerate(sizes):
        ids = [(tx + 1, number + 1, 5, 0) for number in range(size)]
        buffer.several(17, tx, [(1, each) for each in ids])
        changes, times, txs = buffer.take()
        assert changes.tolist() == [[0, 1, *each] for each in ids]
        assert (list(times), list(txs)) == ([17], [tx])
        assert buffer.waiting == 0
        if size:
            assert changes is not last
            last = changes


def test_what_is_dropped_does_not_come_back():
    buffer = WriteBuffer()
    buffer.single(1, 0, 1, (1, 2, 3, 0))
    first = buffer.take()
    buffer.single(2, 1, 1, (4, 5, 6, 0))
    buffer.clear()
    buffer.single(3, 2, -1, (7, 8, 9, 0))
    second = buffer.take()
    assert first[0].tolist() == [[0, 1, 1, 2, 3, 0]]
    assert (second[0].tolist(), *second[1:]) == ([[0, -1, 7, 8, 9, 0]], (3,), (2,))
    assert first[0] is not second[0]


def test_what_a_runtime_takes_is_underway():
    runtime = LiveGraph()._runtime
    runtime.write(1, (1, 2, 3, 0), None)
    runtime.done = 7
    piece = runtime.buffer.take(runtime)
    assert runtime.underway[0] is piece and runtime.underway[1][0] is piece[0]
    assert runtime.underway[2] == 7 and runtime.buffer.waiting == 0


@given(st.lists(st.tuples(*[st.sampled_from("abcdefgh")] * 3), max_size=12))
def test_terms_of_a_quad_get_their_ids_in_order(triples):
    terms, known = TermDictionary(), {}
    for triple in triples:
        for name in triple:
            known.setdefault(name, len(known) + 1)
        found = quad_ids(terms, *map(iri, triple), None)
        assert found == (*map(known.get, triple), 0)
