"""Reads of several threads: a short one runs inside of a long one, whose answer stays the same."""

from __future__ import annotations

import threading

import pytest

from graphtide import Limits, LiveGraph
from graphtide.engine import locking
from graphtide.errors import LimitError
from graphtide.kernel.search import quadstore

PREFIX = "PREFIX : <http://example.org/> "
QUERIES = [
    "SELECT * { ?a :p ?b }",
    "SELECT * { ?a :p ?b . ?b :q ?c }",
    "SELECT * { ?a :p ?b . ?c :p ?b FILTER (?a != ?c) }",
    "SELECT (COUNT(*) AS ?n) { ?a :p ?b . ?c :q ?b }",
    "SELECT ?b (COUNT(?a) AS ?n) { ?a :p ?b } GROUP BY ?b",
    "SELECT * { ?a :p ?b OPTIONAL { ?b :r ?c } }",
    "SELECT * { ?a :p ?b FILTER NOT EXISTS { ?b :q ?c . ?c :p ?a } }",
    "SELECT * { ?a :p/:q+ ?b }",
    "SELECT * { ?a (:p|:q)* ?b }",
    "SELECT DISTINCT ?x { { ?x :p ?y } UNION { ?y :q ?x } MINUS { ?x :r ?z } }",
    "SELECT ?a ?b { ?a :p ?b . ?b :q ?c } ORDER BY ?b DESC(?a) LIMIT 7",
    "SELECT ?a (STRLEN(STR(?b)) AS ?n) { ?a :p ?b }",
    "SELECT ?g ?a { GRAPH ?g { ?a :p ?b } }",
    "SELECT * { ?a ?p ?b }",
]
WINDOW = """SELECT * FROM NAMED WINDOW :w ON :s [RANGE 4 STEP 2]
    { ?x :p ?z WINDOW :w { ?x ?y ?v } }"""
ASK = PREFIX + "SELECT * { :n1 :p ?x }"
PAIRS = PREFIX + "SELECT (COUNT(*) AS ?n) { ?a :p ?b . ?c :p ?d }"
SECONDS = 60
"""After which a thread that should have ended is stuck."""


def rows(table):
    return sorted(map(repr, table.to_pylist()))


@pytest.fixture
def graph(monkeypatch):
    """A graph whose queries check their limits every few rows."""
    monkeypatch.setattr(quadstore, "EVALUATED_AT_ONCE", 8)
    monkeypatch.setattr(quadstore, "WRITTEN_AT_ONCE", 3)
    graph = LiveGraph()
    with graph.transaction() as tx:
        for n in range(120):
            s, o = f"<http://example.org/n{n % 40}>", f"<http://example.org/n{n * 7 % 30}>"
            named = "<http://example.org/g>" if n % 5 == 0 else None
            tx.insert(s, f"<http://example.org/{'pqr'[n % 3]}>", o, named)
    return graph


@pytest.mark.parametrize("long", QUERIES)
def test_a_query_is_the_same_when_others_run_at_each_of_its_checks(graph, monkeypatch, long):
    alone = {text: rows(graph.query(PREFIX + text)) for text in QUERIES}
    inside, checks = [], 0

    def pause():
        nonlocal checks
        checks += 1
        if not inside:
            text = long if checks % 2 else QUERIES[(checks * 5) % len(QUERIES)]
            inside.append(text)
            assert rows(graph.query(PREFIX + text)) == alone[text]
            inside.pop()
        return 0.0

    monkeypatch.setattr(graph.lock, "run_waiting", pause)
    assert rows(graph.query(PREFIX + long)) == alone[long]
    assert checks > 1


def test_other_reads_run_at_each_check_too(graph, monkeypatch):
    standing = graph.watch(PREFIX + QUERIES[4])
    window = graph.watch(PREFIX + WINDOW)
    graph.stream("<http://example.org/s>").push([("<ex:a>", "<ex:b>", "<ex:c>")], time=1)

    def reads():
        return (
            rows(standing.table()),
            standing.count(),
            rows(window.table()),
            len(graph),
            sorted(map(str, graph.quads())),
            graph.stats().quads,
        )

    alone, pairs, checks = reads(), graph.query(PAIRS).to_pylist(), 0

    def pause():
        nonlocal checks
        checks += 1
        assert reads() == alone
        return 0.0

    monkeypatch.setattr(graph.lock, "run_waiting", pause)
    assert graph.query(PAIRS).to_pylist() == pairs
    assert checks > 1
    graph.insert("<ex:a>", "<http://example.org/p>", "<ex:b>")
    assert standing.count() == alone[1] + 1


def in_thread(function):
    """Start a thread. Returns it and a list that gets its result or its error."""
    found = []

    def run():
        try:
            found.append(function())
        except BaseException as error:  # noqa: BLE001 - compared by the test
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, found


class Held:
    """A long query in a thread of its own, which does not go on until `go_on` is called."""

    def __init__(self, graph, monkeypatch):
        self.began, self.end = threading.Event(), threading.Event()
        run_waiting = graph.lock.run_waiting

        def pause():
            seconds = run_waiting()
            if threading.current_thread() is self.thread and not locking._LEVEL.get():
                self.began.set()
                while not self.end.wait(0.001):
                    seconds += run_waiting()
            return seconds

        monkeypatch.setattr(graph.lock, "run_waiting", pause)
        self.thread, self.found = None, []
        self.thread = threading.Thread(
            target=lambda: self.found.append(graph.query(PAIRS).to_pylist()), daemon=True
        )
        self.thread.start()
        assert self.began.wait(SECONDS)

    def go_on(self):
        self.end.set()
        self.thread.join(SECONDS)
        return self.found[0]


def test_a_short_query_does_not_wait_for_a_long_one(graph, monkeypatch):
    expected, pairs = rows(graph.query(ASK)), graph.query(PAIRS).to_pylist()
    long = Held(graph, monkeypatch)
    short, found = in_thread(lambda: rows(graph.query(ASK)))
    short.join(SECONDS)
    assert found == [expected]
    assert not long.found
    assert long.go_on() == pairs


def test_a_change_waits_for_all_queries_under_way(graph, monkeypatch):
    expected, pairs = rows(graph.query(ASK)), graph.query(PAIRS).to_pylist()
    long = Held(graph, monkeypatch)
    change, changed = in_thread(
        lambda: graph.insert("<http://example.org/n1>", "<http://example.org/p>", "<ex:new>")
    )
    short, found = in_thread(lambda: rows(graph.query(ASK)))
    short.join(SECONDS)
    assert found == [expected]
    assert not changed
    assert long.go_on() == pairs
    change.join(SECONDS)
    assert changed == [None]
    assert len(graph.query(ASK)) == len(expected) + 1


def test_the_error_of_a_query_is_raised_where_it_was_asked(graph, monkeypatch):
    pairs = graph.query(PAIRS).to_pylist()
    long = Held(graph, monkeypatch)
    monkeypatch.setattr(graph._runtime.queries.plans, "limits", Limits(query_bytes=100))
    short, found = in_thread(lambda: graph.query(PREFIX + QUERIES[2]))
    short.join(SECONDS)
    assert isinstance(found[0], LimitError)
    assert long.go_on() == pairs


def test_a_query_is_not_lost_with_the_one_that_ran_it(graph, monkeypatch):
    expected, run = rows(graph.query(ASK)), locking._Read.run
    interrupts = [KeyboardInterrupt]

    def interrupted(read, *args):
        if interrupts:
            raise interrupts.pop()
        run(read, *args)

    monkeypatch.setattr(locking._Read, "run", interrupted)
    began, goes_on, run_waiting = threading.Event(), threading.Event(), graph.lock.run_waiting

    def pause():
        began.set()
        while not goes_on.is_set():
            run_waiting()
        return 0.0

    monkeypatch.setattr(graph.lock, "run_waiting", pause)
    long, ended = in_thread(lambda: graph.query(PAIRS))
    assert began.wait(SECONDS)
    short, found = in_thread(lambda: rows(graph.query(ASK)))
    long.join(SECONDS)
    assert isinstance(ended[0], KeyboardInterrupt)
    goes_on.set()
    short.join(SECONDS)
    assert found == [expected]


def test_queries_run_inside_of_each_other_up_to_a_depth(graph, monkeypatch):
    monkeypatch.setattr(locking, "NESTED", 2)
    levels, expected = [], rows(graph.query(ASK))
    run_waiting, many = graph.lock.run_waiting, 6
    asked = threading.Semaphore(0)
    readers = []

    def ask():
        asked.release()
        return rows(graph.query(PREFIX + QUERIES[1]))

    def pause():
        levels.append(locking._LEVEL.get())
        if len(readers) < many:
            readers.append(in_thread(ask))
            assert asked.acquire(timeout=SECONDS)
        return run_waiting()

    monkeypatch.setattr(graph.lock, "run_waiting", pause)
    assert rows(graph.query(ASK)) == expected
    for thread, found in readers:
        thread.join(SECONDS)
        assert found == [rows(graph.query(PREFIX + QUERIES[1]))]
    assert len(readers) == many
    assert max(levels) <= 2
