"""Several reports at one time, against pyoxigraph at every report; and by hand."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import numpy as np
import pytest
from engine.against_reference import iri, unhurried
from hypothesis import example, given
from hypothesis import strategies as st
from pyoxigraph import DefaultGraph, NamedNode, Quad, Store

from graphtide import LiveGraph
from graphtide.streams.windows import TimeWindow
from oracles.answers import oxigraph_answer, row_of

BODIES = (
    "WINDOW :w { ?a :p ?b }",
    "WINDOW :w { ?a :p ?b . ?b :q ?c }",
    "WINDOW :w { ?a :p ?b } OPTIONAL { ?b :q ?c }",
    "?a :p ?b FILTER NOT EXISTS { WINDOW :w { ?a :p ?b } }",
    "WINDOW :w { ?a :p ?b } WINDOW :v { ?b :q ?c }",
    "WINDOW :v { ?a :q ?b } FILTER NOT EXISTS { WINDOW :w { ?b :p ?c } }",
    "{ SELECT ?a (COUNT(*) AS ?n) { WINDOW :w { ?a :p ?b } } GROUP BY ?a }",
)
EXTENTS = (
    "ELEMENTS 1 STEP 1",
    "ELEMENTS 2 STEP 1",
    "ELEMENTS 3 STEP 2",
    "ELEMENTS 1 STEP 3",
    "RANGE 4 STEP 2",
    "RANGE 3 STEP 3",
)
extents = st.sampled_from(EXTENTS)
triples = st.tuples(*(st.sampled_from([iri(n) for n in names]) for names in ("abc", "pq", "abc")))
happenings = st.lists(
    st.tuples(
        st.sampled_from((0, 0, 0, 1, 1, 2, 5)),
        st.one_of(
            st.tuples(st.sampled_from(("s", "s", "t")), st.lists(triples, min_size=1, max_size=3)),
            st.tuples(st.sampled_from(("insert", "delete")), triples),
        ),
    ),
    max_size=20,
)
questions = st.tuples(st.sampled_from(BODIES), extents, st.sampled_from("st"), extents)


def text(question, output):
    body, extent, stream, second = question
    other = f"FROM NAMED WINDOW :v ON :{stream} [{second}]" if ":v" in body else ""
    window = f"FROM NAMED WINDOW :w ON :s [{extent}] {other}"
    return f"PREFIX : <ex:> REGISTER {output} :{output} AS SELECT * {window} WHERE {{ {body} }}"


class Clocked:
    """A RANGE window: when it closes, and what it then holds."""

    def __init__(self, extent, events, end, alignment):
        _, length, _, step = extent.split()
        self.events = events
        self.shape = TimeWindow(int(length), int(step), 0, alignment)
        first = int(self.shape.enters(np.array([events[0][0]]))[0]) if events else end + 1
        lead = self.shape.bounds(0)[1]
        part = 2 if lead else 0  # a close whose events are in the window comes after them
        self.moments = [(t, part, "", 0) for t in range(first, end + 1 - lead, int(step))]

    def content(self, moment):
        begin, end = self.shape.bounds(moment[0])
        return [triple for time, triple in self.events if begin <= time < end]


class Counted:
    """An ELEMENTS window: after every so many elements, the last few."""

    def __init__(self, extent, events, stream):
        _, self.count, _, step = (int(n) if n.isdigit() else n for n in extent.split())
        self.events = events
        ends = range(step, len(events) + 1, step)
        self.moments = [(events[end - 1][0], 1, stream, end) for end in ends]

    def content(self, moment):
        end = moment[3]
        return [triple for _, triple in self.events[max(end - self.count, 0) : end]]


class Model:
    """By definition: at every moment at which a window of a query closes, all is looked at anew."""

    def __init__(self, question, history, end, alignment):
        self.body, extent, stream, second = question
        self.facts = [entry for entry in history if entry[1] in ("insert", "delete")]
        chosen = {"w": ("s", extent)} | ({"v": (stream, second)} if ":v" in self.body else {})
        self.windows = {}
        for name, (stream_of, extent_of) in chosen.items():
            events = [(time, t) for time, kind, what in history if kind == stream_of for t in what]
            self.windows[name] = (
                Counted(extent_of, events, stream_of)
                if extent_of.startswith("ELEMENTS")
                else Clocked(extent_of, events, end, alignment)
            )

    def results(self):
        """The time and the answer of every report."""
        plain = self.body.replace("WINDOW", "GRAPH")
        query = f"PREFIX : <ex:> SELECT * {{ {plain} }}"
        for moment in sorted({m for w in self.windows.values() for m in w.moments}):
            store = Store()
            for triple in self.live(moment):
                store.add(quad(triple, DefaultGraph()))
            for name, window in self.windows.items():
                past = [m for m in window.moments if m <= moment]
                for triple in window.content(past[-1]) if past else ():
                    store.add(quad(triple, NamedNode(f"ex:{name}")))
            yield moment[0], oxigraph_answer(query, store)

    def live(self, moment):
        """The facts by then: those of the time itself unless its events are still to come."""
        until = moment[0] + (moment[1] > 0)
        found = set()
        for time, kind, triple in self.facts:
            if time < until:
                found.add(triple) if kind == "insert" else found.discard(triple)
        return found


def quad(triple, graph):
    return Quad(*(NamedNode(term.value) for term in triple), graph)


def bag(report):
    return Counter(row_of(row) for row in report)


def live(history, end, alignment, queries):
    """What queries report over a history; each is a text and its options."""
    graph = LiveGraph(window_alignment=alignment)
    found = [graph.watch(q, name=f"q{n}", **more) for n, (q, more) in enumerate(queries)]
    streams = {name: graph.stream(f"<ex:{name}>") for name in "st"}
    for time, kind, what in history:
        if kind in streams:
            streams[kind].push(what, time=time)
        else:
            (graph.insert if kind == "insert" else graph.delete)(*what, time=time)
    graph.advance(end)
    return [query.results() for query in found]


THREE = [(0, ("s", [(iri("a"), iri("p"), iri(n)) for n in "abc"]))]


@unhurried
@given(questions, questions, happenings, st.sampled_from(("close", "w3c", "yabench")))
@example(
    (BODIES[0], "ELEMENTS 1 STEP 1", "s", ""), (BODIES[0], EXTENTS[1], "s", ""), THREE, "close"
)
def test_every_report_is_what_the_definition_says(first, second, steps, alignment):
    history, now = [], 0
    for gap, (kind, what) in steps:
        now += gap
        history.append((now, kind, what))
    end = now + 10
    queries = [(text(first, output), {}) for output in ("RSTREAM", "ISTREAM", "DSTREAM")]
    queries += [(text(first, "RSTREAM"), {"reevaluate": True}), (text(second, "RSTREAM"), {})]
    everything, come, gone, anew, other = live(history, end, alignment, queries)
    expected = list(Model(first, history, end, alignment).results())
    assert [(r.time, bag(r)) for r in everything] == expected
    assert [(r.time, bag(r)) for r in anew] == expected
    before = [Counter(), *(answer for _, answer in expected)]
    assert [(r.time, bag(r)) for r in come] == [
        (time, now - last) for (time, now), last in zip(expected, before, strict=False)
    ]
    assert [(r.time, bag(r)) for r in gone] == [
        (time, last - now) for (time, now), last in zip(expected, before, strict=False)
    ]
    assert [(r.time, bag(r)) for r in other] == list(
        Model(second, history, end, alignment).results()
    )


ALL = """PREFIX : <ex:> REGISTER {} :q AS SELECT ?v
    FROM NAMED WINDOW :w ON :s [{}] {{ WINDOW :w {{ ?e :p ?v }} }}"""


def values(query):
    return [(r.time, sorted(int(row["v"].value) for row in r)) for r in query.results()]


def push(graph, *events, stream="s"):
    found = graph.stream(f"<ex:{stream}>")
    for time, value in events:
        found.push([(iri("e"), iri("p"), value)], time=time)


@pytest.mark.parametrize(
    ("output", "second", "third"),
    [("RSTREAM", [2], [3]), ("ISTREAM", [2], [3]), ("DSTREAM", [1], [2])],
)
def test_each_element_of_one_time_has_its_report(output, second, third):
    graph = LiveGraph()
    query = graph.watch(ALL.format(output, "ELEMENTS 1 STEP 1"))
    push(graph, (5, 1), (5, 2), (5, 3))
    graph.advance(6)
    first = [] if output == "DSTREAM" else [1]
    assert values(query) == [(5, first), (5, second), (5, third)]


def test_the_triples_of_one_event_are_counted_one_by_one():
    graph = LiveGraph()
    query = graph.watch(ALL.format("RSTREAM", "ELEMENTS 2 STEP 1"))
    graph.stream("<ex:s>").push([(iri("e"), iri("p"), n) for n in (1, 2, 3)], time=5)
    graph.advance(6)
    assert values(query) == [(5, [1]), (5, [1, 2]), (5, [2, 3])]


def test_two_windows_that_count_the_same_elements():
    """Both report at every second element; the finer one at the others, too."""
    graph = LiveGraph()
    fine = graph.watch(ALL.format("RSTREAM", "ELEMENTS 1 STEP 1"), name="fine")
    coarse = graph.watch(ALL.format("RSTREAM", "ELEMENTS 3 STEP 2"), name="coarse")
    received = []
    for query in (fine, coarse):
        query.on_result(lambda report, name=query.name: received.append((name, report.time)))
    push(graph, (5, 1), (5, 2), (5, 3), (5, 4), (7, 5))
    graph.advance(8)
    assert values(fine) == [(5, [1]), (5, [2]), (5, [3]), (5, [4]), (7, [5])]
    assert values(coarse) == [(5, [1, 2]), (5, [2, 3, 4])]
    assert len(received) == 7


def test_elements_that_were_out_of_order_keep_their_order_at_equal_times():
    graph = LiveGraph()
    graph.stream("<ex:s>", lateness=3)
    query = graph.watch(ALL.format("RSTREAM", "ELEMENTS 1 STEP 1"))
    push(graph, (5, 1), (7, 2), (5, 3), (7, 4), (9, 5))
    graph.advance(12)
    assert values(query) == [(5, [1]), (5, [3]), (7, [2]), (7, [4]), (9, [5])]


BOTH = """PREFIX : <ex:> SELECT ?v FROM NAMED WINDOW :w ON :s [ELEMENTS 1 STEP 1]
    FROM NAMED WINDOW :r ON :s [RANGE 5 STEP 5]
    { { WINDOW :w { ?e :p ?v } } UNION { WINDOW :r { ?e :p ?v } } }"""


def test_a_window_of_time_closes_before_the_elements_of_that_time():
    """At 5, [0, 5) holds 1; then come the elements 2 and 3, one report each."""
    expected = [(2, [1]), (5, [1, 1]), (5, [1, 2]), (5, [1, 3]), (10, [2, 3, 3])]
    for pushes in ([(2, 1), (5, 2), (5, 3)], [(2, 1), None, (5, 2), (5, 3)]):
        graph = LiveGraph()
        query = graph.watch(BOTH)
        for each in pushes:
            graph.advance(5) if each is None else push(graph, each)
        graph.advance(10)
        assert values(query) == expected


def test_a_window_that_holds_the_events_of_its_close_closes_after_them():
    graph = LiveGraph(window_alignment="w3c")
    query = graph.watch(BOTH)
    push(graph, (2, 1), (5, 2), (5, 3))
    graph.advance(6)
    assert values(query) == [(2, [1]), (5, [2]), (5, [3]), (5, [1, 2, 3, 3])]


def test_elements_of_several_streams_at_one_time_come_by_the_names_of_the_streams():
    graph = LiveGraph()
    query = graph.watch(
        "PREFIX : <ex:> SELECT ?v FROM NAMED WINDOW :w ON :t [ELEMENTS 1 STEP 1]"
        " FROM NAMED WINDOW :x ON :s [ELEMENTS 1 STEP 1]"
        " { { WINDOW :w { ?e :p ?v } } UNION { WINDOW :x { ?e :p ?v } } }"
    )
    for stream, value in (("t", 1), ("s", 2), ("t", 3)):
        push(graph, (5, value), stream=stream)
    graph.advance(6)
    assert values(query) == [(5, [2]), (5, [1, 2]), (5, [2, 3])]


def test_no_window_of_a_query_goes_ahead_for_the_sake_of_another_query():
    """A second query shares a window with the first, and waits for a stream that is behind."""
    two = """PREFIX : <ex:> SELECT ?v ?u FROM NAMED WINDOW :w ON :s [RANGE {}]
        FROM NAMED WINDOW :x ON :{} [RANGE 10]
        {{ WINDOW :w {{ ?e :p ?v }} OPTIONAL {{ WINDOW :x {{ ?e :p ?u }} }} }}"""
    graph = LiveGraph()
    first = graph.watch(two.format(5, "s"), name="first")
    graph.watch(two.format(10, "u"), name="second")
    push(graph, (1, 1), (11, 11), (21, 21))
    push(graph, (21, 1), stream="u")
    times = [report.time for report in first.results()]
    assert times == [5, 10, 15, 20]
    found = {t: list(rows) for t, rows in groupby(first.results(), key=lambda r: r.time)}
    (row,) = found[15][0]  # [10, 15) holds 11, and the last window of ten ticks is [0, 10)
    assert (row["v"].value, row["u"].value) == ("11", "1")
