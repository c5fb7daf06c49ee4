"""Windowed queries against the reference evaluator, at every report time."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from engine.against_reference import iri, unhurried
from hypothesis import given
from hypothesis import strategies as st

from graphtide import LiveGraph
from graphtide.algebra.expressions import Var
from graphtide.errors import GraphtideError, QueryError
from graphtide.kernel.search.arrays import HIDDEN
from graphtide.lang.sparql.parse import parse_any_query, parse_standing
from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.dictionary import HIDDEN_GRAPHS
from graphtide.streams.windows import ElementWindow, TimeWindow
from oracles.reference import evaluate_query

NODES = [iri(n) for n in "abc"]
LINKS = [iri(n) for n in "pq"]
triples = st.tuples(st.sampled_from(NODES), st.sampled_from(LINKS), st.sampled_from(NODES))
steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(("s", "s", "t")), st.lists(triples, min_size=1, max_size=3)),
        st.tuples(st.sampled_from(("insert", "delete")), triples),
    ),
    max_size=20,
)
gaps = st.lists(st.sampled_from((0, 1, 1, 2, 7)), min_size=20, max_size=20)
extents = st.sampled_from(("RANGE 4 STEP 2", "RANGE 3 STEP 3", "RANGE 2 STEP 5", "RANGE 5 STEP 1"))
BODIES = (
    "WINDOW :w { ?a :p ?b }",
    "WINDOW :w { ?a :p ?b . ?b :q ?c }",
    "WINDOW :w { ?a :p ?b } ?b :q ?c",
    "WINDOW :w { ?a :p ?b } OPTIONAL { ?b :q ?c }",
    "?a :p ?b FILTER NOT EXISTS { WINDOW :w { ?a :p ?b } }",
    "WINDOW :w { ?a :p ?b } WINDOW :v { ?b :q ?c }",
    "WINDOW :w { ?a :p+ ?b }",
    "{ SELECT ?a (COUNT(*) AS ?n) { WINDOW :w { ?a :p ?b } } GROUP BY ?a }",
)


def text(output, body, extent, second):
    other = f"FROM NAMED WINDOW :v ON :t [{second}]" if ":v" in body else ""
    window = f"FROM NAMED WINDOW :w ON :s [{extent}] {other}"
    return f"PREFIX : <ex:> REGISTER {output} :{output} AS SELECT * {window} WHERE {{ {body} }}"


class Model:
    """The same by definition: every event and fact of the past, looked at anew at each close."""

    def __init__(self, query, shapes):
        self.query = query
        self.shapes = shapes
        self.events = {"s": [], "t": []}
        self.facts: list[tuple[int, int, tuple]] = []

    def answer(self, close):
        facts: dict[tuple, None] = {}
        for time, diff, triple in self.facts:
            if time < close:
                facts.update({(*triple, None): None}) if diff > 0 else facts.pop(
                    (*triple, None), None
                )
        quads = list(facts)
        for clause in self.query.windows:
            stream, shape = clause.stream.value[-1], self.shapes[clause.iri.value[-1]]
            begin, end = self.last(shape, close)
            quads += {(*t, clause.graph) for time, t in self.events[stream] if begin <= time < end}
        return evaluate_query(self.query.select, quads)

    def last(self, shape, now):
        """The bounds of the last window that has closed by now."""
        first = self.first_close(shape)
        if first is None or now < first:
            return 0, 0
        return shape.bounds(first + (now - first) // shape.step * shape.step)

    def first_close(self, shape):
        stream = "s" if shape is self.shapes["w"] else "t"
        if not self.events[stream]:
            return None
        return int(shape.enters(np.array([self.events[stream][0][0]]))[0])


def shape_of(extent):
    _, length, _, step = extent.split()
    return TimeWindow(int(length), int(step))


@unhurried
@given(st.sampled_from(BODIES), extents, extents, steps, gaps)
def test_reports_are_what_the_definition_says(body, extent, second, happenings, times):
    graph = LiveGraph()
    queries = {
        o: graph.watch(text(o, body, extent, second)) for o in ("RSTREAM", "ISTREAM", "DSTREAM")
    }
    shapes = {"w": shape_of(extent), "v": shape_of(second)}
    model = Model(parse_standing(text("RSTREAM", body, extent, second)), shapes)
    streams = {name: graph.stream(f"<ex:{name}>") for name in "st"}
    now = 0
    for (kind, what), gap in zip(happenings, times, strict=False):
        now += gap
        if kind in streams:
            streams[kind].push(what, time=now)
            model.events[kind] += [(now, triple) for triple in what]
        else:
            (graph.insert if kind == "insert" else graph.delete)(*what, time=now)
            model.facts.append((now, 1 if kind == "insert" else -1, what))
    graph.advance(now + 20)
    reports = [query.results() for query in queries.values()]
    assert (
        [r.time for r in reports[0]] == [r.time for r in reports[1]] == [r.time for r in reports[2]]
    )
    before: Counter = Counter()
    for everything, come, gone in zip(*reports, strict=True):
        expected = model.answer(everything.time)
        assert bag(everything) == expected
        assert bag(come) == expected - before
        assert bag(gone) == before - expected
        before = expected


def bag(report):
    return Counter(tuple(row.values()) for row in report)


def feed(graph, times, name="s"):
    stream = graph.stream(f"<ex:{name}>")
    for time in times:
        stream.push([(iri(f"e{time}"), iri("p"), time)], time=time)
    return stream


ALL = "PREFIX : <ex:> SELECT ?v FROM NAMED WINDOW :w ON :s [{}] {{ WINDOW :w {{ ?e :p ?v }} }}"


def seen(query):
    return {r.time: sorted(int(row["v"].value) for row in r) for r in query.results()}


def test_windows_slide():
    graph = LiveGraph()
    query = graph.watch(ALL.format("RANGE PT4S STEP PT2S"))
    feed(graph, [0, 1, 3, 4, 6])
    graph.advance(10)
    assert seen(query) == {4: [0, 1, 3], 6: [3, 4], 8: [4, 6], 10: [6]}


def test_a_heartbeat_closes_windows_without_events():
    graph = LiveGraph()
    query = graph.watch(ALL.format("RANGE 5 STEP 5"))
    feed(graph, [1])
    assert query.results() == []
    graph.advance(5)
    assert seen(query) == {5: [1]}
    graph.advance(16)
    assert seen(query) == {5: [1], 10: [], 15: []}


def test_a_triple_that_arrives_again_lives_on():
    graph = LiveGraph()
    query = graph.watch(
        ALL.format("RANGE 4 STEP 2").replace("SELECT", "REGISTER DSTREAM :q AS SELECT")
    )
    stream = graph.stream("<ex:s>")
    for time in (0, 3):
        stream.push([(iri("a"), iri("p"), 7)], time=time)
    graph.advance(12)
    assert seen(query) == {4: [], 6: [], 8: [7], 10: [], 12: []}


@pytest.mark.parametrize(
    "extent",
    [
        "RANGE PT4S STEP PT2S",
        "range pt4s slide pt2s",
        "RANGE 4 STEP 2",
        "RANGE 4s STEP 2s",
        "RANGE 4000ms STEP 2000ms",
    ],
)
def test_durations_in_any_spelling(extent):
    graph = LiveGraph()
    query = graph.watch(ALL.format(extent))
    feed(graph, [0, 1, 3])
    graph.advance(4)
    assert seen(query) == {4: [0, 1, 3]}


def test_on_stream_may_be_written_out_and_elements_counted():
    graph = LiveGraph()
    query = graph.watch(ALL.format("ELEMENTS 2 STEP 2").replace("ON :s", "ON STREAM :s"))
    feed(graph, [1, 2, 3, 4, 5])
    graph.advance(6)
    assert seen(query) == {2: [1, 2], 4: [3, 4]}


def test_ticks_can_be_milliseconds():
    graph = LiveGraph(tick_ms=1)
    query = graph.watch(ALL.format("RANGE PT0.5S STEP PT0.5S"))
    feed(graph, [100, 499, 500])
    graph.advance(1000)
    assert seen(query) == {500: [100, 499], 1000: [500]}


def test_a_duration_that_is_no_whole_number_of_ticks_is_refused():
    with pytest.raises(GraphtideError, match="500 ms is no whole number of ticks"):
        LiveGraph().watch(ALL.format("RANGE PT0.5S STEP PT0.5S"))


@pytest.mark.parametrize(
    ("extent", "problem"),
    [
        ("RANGE 0 STEP 1", "must not be 0"),
        ("RANGE PT4S STEP 2", "different units"),
        ("RANGE often", "expected a duration"),
        ("ELEMENTS 0", "at least 1"),
        ("SIZE 4", "expected 'RANGE'"),
    ],
)
def test_a_broken_window_tells_where(extent, problem):
    with pytest.raises(QueryError, match=problem):
        LiveGraph().watch(ALL.format(extent))


def test_a_window_that_is_not_declared_is_named():
    with pytest.raises(QueryError, match="there is no window <ex:v>"):
        LiveGraph().watch(ALL.format("RANGE 1").replace("WINDOW :w {", "WINDOW :v {"))


@pytest.mark.parametrize("asked", ["results", "last_result"])
def test_a_query_without_a_window_has_no_results_of_windows(asked):
    query = LiveGraph().watch("SELECT * { ?s ?p ?o }")
    with pytest.raises(GraphtideError, match="without windows"):
        getattr(query, asked)()


def test_one_kind_of_handle_for_queries_with_and_without_windows():
    graph = LiveGraph()
    plain = graph.watch("SELECT * { ?s ?p ?o }")
    windowed = graph.watch(ALL.format("RANGE 4 STEP 2"))
    assert type(plain) is type(windowed)
    assert (windowed.results(), windowed.last_result(), windowed.count()) == ([], None, 0)
    assert graph.queries == (plain, windowed)
    windowed.close()
    assert graph.queries == (plain,)


def test_late_events_are_counted_and_kept_apart(caplog):
    caplog.set_level("INFO", "graphtide")
    graph = LiveGraph()
    query = graph.watch(ALL.format("RANGE 4 STEP 2"))
    stream = graph.stream("<ex:s>", lateness=0)
    for time in (1, 5, 3):
        stream.push([(iri("e"), iri("p"), time)], time=time)
    graph.advance(8)
    assert stream.late_count == 1
    assert [time for time, _ in stream.late] == [3]
    assert len(caplog.messages) == 1
    assert "1 in all: older than the watermark 5" in caplog.messages[0]
    assert seen(query) == {4: [1], 6: [5], 8: [5]}


def test_events_within_the_lateness_are_put_in_order():
    graph = LiveGraph()
    stream = graph.stream("<ex:s>", lateness=4)
    query = graph.watch(ALL.format("RANGE 4 STEP 2"))
    for time in (1, 5, 3, 8, 2):
        stream.push([(iri("e"), iri("p"), time)], time=time)
    graph.advance(8)
    assert stream.late_count == 1  # 2 is before 8 - 4
    assert seen(query) == {4: [1, 3], 6: [3, 5], 8: [5]}


def test_equal_windows_are_held_once():
    graph = LiveGraph()
    queries = [graph.watch(ALL.format("RANGE 4 STEP 2"), name=f"q{n}") for n in range(3)]
    feed(graph, [0, 1, 2, 3, 4])
    assert graph.stats().quads == 4
    for query in queries:
        assert seen(query) == {4: [0, 1, 2, 3]}
        query.close()
    assert graph.stats().quads == 0


def test_what_windows_hold_is_no_part_of_the_graph():
    graph = LiveGraph()
    graph.watch(ALL.format("RANGE 4 STEP 2"))
    feed(graph, [0, 1, 2, 3, 4])
    assert len(graph) == 0
    assert list(graph.quads()) == []
    assert graph.query("SELECT * { ?s ?p ?o }").num_rows == 0
    assert graph.query("SELECT * { GRAPH ?g { ?s ?p ?o } }").num_rows == 0


def test_kernel_and_dictionary_agree_on_which_graphs_are_hidden():
    assert HIDDEN_GRAPHS == HIDDEN


def test_reports_can_be_heard():
    graph = LiveGraph()
    query = graph.watch(ALL.format("RANGE 5 STEP 5"))
    received = []
    query.on_result(lambda report: received.append((report.time, len(report))))
    feed(graph, [1, 2, 7])
    graph.advance(10)
    assert received == [(5, 2), (10, 1)]


def test_elements_are_windows_too():
    assert ElementWindow(3).step == 1


GRAPH_BODIES = (
    "WINDOW :w { GRAPH ?g { ?a :p ?b } }",
    "WINDOW :w { GRAPH ?g { ?a :p ?b . ?b :q ?c } }",
    "WINDOW :w { ?a :p ?b GRAPH ?g { ?b :q ?c } }",
    "WINDOW :w { GRAPH ?g { ?a :p ?b OPTIONAL { ?b :q ?c } } }",
    "WINDOW :w { GRAPH ?g { ?a :p ?b FILTER NOT EXISTS { ?b :q ?a } } }",
    "WINDOW :w { GRAPH :g1 { ?a :p ?b } }",
    "WINDOW :w { GRAPH ?g { ?a :p ?b } } GRAPH ?h { ?a :p ?b }",
)
events = st.lists(
    st.tuples(st.sampled_from((None, iri("g1"), iri("g2"))), st.lists(triples, max_size=3)),
    max_size=12,
)


@unhurried
@given(st.sampled_from(GRAPH_BODIES), extents, events, gaps)
def test_graphs_of_events(body, extent, happenings, times):
    """The reference sees each window as a data set of its own, joined with the live graph."""
    graph = LiveGraph()
    query = graph.watch(text("RSTREAM", body, extent, extent))
    graph.insert(iri("a"), iri("p"), iri("b"), iri("live"))
    stream = graph.stream("<ex:s>")
    now, known = 0, []
    for (name, body_triples), gap in zip(happenings, times, strict=False):
        now += gap
        stream.push(body_triples, time=now, graph=name)
        known += [(now, (*triple, name)) for triple in body_triples]
    graph.advance(now + 20)
    shape = shape_of(extent)
    plain = parse_any_query(f"PREFIX : <ex:> SELECT * {{ {inside(body)} }}")
    for report in query.results():
        begin, end = shape.bounds(report.time)
        held = {quad for time, quad in known if begin <= time < end}
        merged = {(s, p, o, None) for s, p, o, _ in held}
        own = {quad for quad in held if quad[3] is not None}
        live = (
            {(iri("a"), iri("p"), iri("b"), iri("live"))} if ":h" in body or "?h" in body else set()
        )
        found = Counter(tuple(row[v.name] for v in plain.variables) for row in report)
        expected = evaluate_query(plain, [*merged, *own, *live])
        if live:  # ?g ranges over the window's graphs, ?h over the live ones
            g, h = (plain.variables.index(v) for v in (Var("g"), Var("h")))
            names = {iri("g1"), iri("g2")}
            expected = Counter(
                {r: n for r, n in expected.items() if r[g] in names and r[h] not in names}
            )
        assert found == expected


def inside(body):
    return body.replace("WINDOW :w {", "{")


def test_the_same_triple_in_two_event_graphs_lives_while_one_of_them_does():
    graph = LiveGraph()
    query = graph.watch(ALL.format("RANGE 4 STEP 2"))
    stream = graph.stream("<ex:s>")
    stream.push([(iri("a"), iri("p"), 7)], time=0, graph=iri("g1"))
    stream.push([(iri("a"), iri("p"), 7)], time=3, graph=iri("g2"))
    graph.advance(10)
    assert seen(query) == {4: [7], 6: [7], 8: [], 10: []}


def test_windows_close_before_a_batch_of_later_changes():
    """Facts of 12 and 20 come in one batch: at 10 neither is known, at 15 only the first."""
    graph = LiveGraph()
    query = graph.watch(
        "PREFIX : <ex:> SELECT ?n FROM NAMED WINDOW :w ON :s [RANGE 10 STEP 5] "
        "{ WINDOW :w { ?e :p ?v } ?e :name ?n }"
    )
    stream = graph.stream("<ex:s>")
    stream.push([(iri("e"), iri("p"), 1)], time=8)
    names = [(12, 0, +1, "<ex:e>", "<ex:name>", '"early"', None)]
    names += [(20, 1, +1, "<ex:e>", "<ex:name>", '"late"', None)]
    graph.apply(ChangeBatch.of(names))
    found = {r.time: [row["n"].value for row in r] for r in query.results()}
    assert found == {10: [], 15: ["early"], 20: []}


def test_results_are_retained_by_rows():
    graph = LiveGraph()
    query = graph.watch(
        text("RSTREAM", "WINDOW :w { ?a :p ?b }", "ELEMENTS 10 STEP 1", ""), history=35
    )
    stream = graph.stream(iri("s"))
    for n in range(100):
        stream.push([(iri(f"a{n}"), iri("p"), iri("b"))], time=n)
    graph.advance(200)
    # 1 + 2 + … + 9 rows while the window fills, then 91 results of 10; three of these fit.
    assert [(r.time, len(r)) for r in query.results()] == [(97, 10), (98, 10), (99, 10)]
    assert query.evicted == 45 + 91 * 10 - 3 * 10
    assert query.last_result().time == 99


def test_the_last_result_is_retained_however_large():
    graph = LiveGraph()
    query = graph.watch(
        text("RSTREAM", "WINDOW :w { ?a :p ?b }", "ELEMENTS 10 STEP 1", ""), history=3
    )
    for n in range(20):
        graph.stream(iri("s")).push([(iri(f"a{n}"), iri("p"), iri("b"))], time=n)
    graph.advance(30)
    assert [(r.time, len(r)) for r in query.results()] == [(19, 10)]
    everything = LiveGraph()
    query = everything.watch(
        text("ISTREAM", "WINDOW :w { ?a :p ?b }", "ELEMENTS 1 STEP 1", ""), history=None
    )
    for n in range(20):
        everything.stream(iri("s")).push([(iri(f"a{n}"), iri("p"), iri("b"))], time=n)
    everything.advance(30)
    assert len(query.results()) == 20 and query.evicted == 0
