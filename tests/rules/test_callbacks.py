"""Callbacks see the graph after a whole input; what they write are inputs that come next."""

from __future__ import annotations

import pytest

from graphtide import GraphtideError, LiveGraph, Program

PREFIX = "PREFIX : <http://e/>\n"
STREAM = "<http://e/s>"
CHAIN = """
EVENT A(?x) AS { ?x :a ?y }
EVENT Seen(?x) ON APPEAR OF First(?x)
QUERY First AS SELECT ?x { ?x :first ?y }
RULE R ON A(?x) THEN INSERT { ?x :first 1 }
RULE S ON Seen(?x) THEN INSERT { ?x :second 2 }
"""
WINDOW = f"""{PREFIX}SELECT ?x ?y FROM NAMED WINDOW :w ON {STREAM} [RANGE 10 STEP 10]
WHERE {{ WINDOW :w {{ ?x :a ?y }} }}"""


def iri(name):
    return f"<http://e/{name}>"


def event(name):
    return [(iri(name), iri("a"), iri("b"))]


@pytest.fixture
def graph():
    return LiveGraph()


def local(graph):
    """The quads of the graph, as short texts."""
    return sorted(" ".join(str(t.value).split("/")[-1] for t in q[:3]) for q in graph.quads())


def test_a_callback_sees_the_graph_after_all_that_rules_did(graph):
    program = graph.run(Program.parse(PREFIX + CHAIN))
    seen = []
    program.queries["First"].on_delta(lambda delta: seen.append((delta.time, local(graph))))
    graph.publish(event("u"), time=3)
    assert seen == [(3, ["u first 1", "u second 2"])]


@pytest.mark.parametrize("way", ["one by one", "push_many", "assert_events"])
def test_callbacks_come_between_the_events_of_one_call(graph, way):
    program = graph.run(Program.parse(PREFIX + CHAIN))
    stream, seen = graph.stream(STREAM), []
    program.queries["First"].on_delta(lambda _: seen.append((graph.clock, len(graph))))
    events = [(event(name), time) for time, name in ((1, "u"), (1, "v"), (4, "w"))]
    if way == "one by one":
        for triples, time in events:
            stream.push(triples, time=time)
    elif way == "push_many":
        stream.push_many(events)
    else:
        program.assert_events(events)
    assert seen == [(1, 2), (1, 4), (4, 6)]


@pytest.mark.parametrize("way", ["insert", "transaction", "apply", "update", "advance"])
def test_what_an_input_makes_due_is_a_part_of_it(graph, way):
    """The window closes at 10; its callback sees the clock, and the change, of the input."""
    query, seen = graph.watch(WINDOW), []
    graph.stream(STREAM).push(event("u"), time=1)
    query.on_result(lambda result: seen.append((result.time, graph.clock, local(graph))))
    change = (iri("c"), iri("is"), iri("new"))
    if way == "insert":
        graph.insert(*change, time=12)
    elif way == "transaction":
        with graph.transaction(time=12) as tx:
            tx.insert(*change)
    elif way == "apply":
        from graphtide.rdf.changes import ChangeBatch

        graph.apply(ChangeBatch.of([(12, 0, 1, *change, None)]))
    elif way == "update":
        graph.update(f"INSERT DATA {{ {' '.join(change)} }}", time=12)
    else:
        graph.advance(12)
    assert seen == [(10, 12, [] if way == "advance" else ["c is new"])]


def test_what_callbacks_write_comes_in_order_before_the_rest_of_the_call(graph):
    """A change, an event of a stream, one of none, a step of the clock, and a change."""
    program = graph.run(Program.parse(PREFIX + CHAIN))
    start = graph.watch(PREFIX + "SELECT ?x { ?x :start ?y }")
    every = graph.watch(PREFIX + "SELECT ?x ?p { ?x ?p ?y }")

    @start.on_appear
    def write(row):
        graph.insert(iri("one"), iri("p"), 1)
        graph.stream(STREAM).push(event("two"), time=5)
        graph.publish(event("three"))
        graph.advance(7)
        graph.insert(iri("four"), iri("p"), 1, time=8)
        program.assert_event(event("five"), time=9)
        assert len(graph) == 1 and graph.clock == 4

    with graph.transaction(time=4) as tx:
        tx.insert(iri("begin"), iri("start"), 1)
    assert [(row.time, str(row.row["x"]).split("/")[-1][:-1]) for row in every.rows()] == [
        (4, "begin"), (4, "one"), (5, "two"), (5, "two"), (5, "three"), (5, "three"), (8, "four"),
        (9, "five"), (9, "five"),
    ]  # fmt: skip
    assert [firing.time for firing in program.firings()] == [5, 5, 5, 5, 9, 9]


def test_what_callbacks_write_comes_before_the_next_transaction_of_a_batch(graph):
    from graphtide.rdf.changes import ChangeBatch

    start = graph.watch(PREFIX + "SELECT ?x { ?x :start ?y }")
    every = graph.watch(PREFIX + "SELECT ?x { ?x ?p ?y }")
    start.on_appear(lambda row: graph.insert(row.row["x"], iri("seen"), graph.clock))
    rows = [(t, t, 1, iri(f"x{t}"), iri("start"), iri("o"), None) for t in (1, 2)]
    graph.apply(ChangeBatch.of(rows))
    assert [(row.time, str(row.row["x"])[-3:-1]) for row in every.rows()] == [
        (1, "x1"), (1, "x1"), (2, "x2"), (2, "x2"),
    ]  # fmt: skip


def test_an_input_of_a_callback_that_fails_is_an_error_of_the_call(graph):
    start = graph.watch(PREFIX + "SELECT ?x { ?x :start ?y }")

    @start.on_appear
    def write(row):
        graph.insert(iri("a"), iri("p"), 1, time=2)
        graph.insert(iri("b"), iri("p"), 1)

    with pytest.raises(GraphtideError, match="time runs backwards: 2 is before"):
        graph.insert(iri("x"), iri("start"), 1, time=5)
    assert local(graph) == ["b p 1", "x start 1"]


def test_calls_that_have_to_answer_at_once_are_refused_inside_a_callback(graph):
    start = graph.watch(PREFIX + "SELECT ?x { ?x :start ?y }")
    start.on_appear(lambda row: graph.update("INSERT DATA { <e:a> <e:p> <e:b> }"))
    with pytest.raises(GraphtideError, match=r"update\(\) cannot be used inside a callback"):
        graph.insert(iri("x"), iri("start"), 1)
    assert len(graph) == 1
