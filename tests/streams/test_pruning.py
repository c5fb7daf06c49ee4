"""Pruning: triples that no window needs are not stored, and no result changes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from engine.against_reference import iri, unhurried
from hypothesis import given
from hypothesis import strategies as st

from graphtide import LiveGraph
from graphtide.errors import GraphtideError
from graphtide.lang.sparql.parse import parse_standing
from graphtide.streams import windows as content
from graphtide.streams.pruning import PruningFilter
from oracles.reference import evaluate_query

NODES = [iri(n) for n in "abc"]
triples = st.tuples(
    st.sampled_from(NODES), st.sampled_from([iri(n) for n in "pqr"]), st.sampled_from(NODES)
)
events = st.lists(
    st.tuples(st.sampled_from((0, 1, 1, 3)), st.lists(triples, min_size=1, max_size=3)), max_size=16
)
BODIES = (
    "?x :p ?y",
    "?x :p :a",
    ":a :p ?x . ?x :q :b",
    "?x ?l :a",
    "?x :p ?y . ?y :p ?x",
    "?x :p ?y OPTIONAL { ?y :q :c }",
    "?x :p ?y FILTER NOT EXISTS { ?y :q :a }",
    "?x :p+ ?y",
    "?x :p* ?y",
    "?x (:p|:q)/:p ?y",
    "?x !:p ?y",
)
EXTENTS = ("RANGE 4 STEP 2", "RANGE 3 STEP 3", "RANGE 5 STEP 1")


def text(output, body, extent="RANGE 4 STEP 2", name="q"):
    window = f"FROM NAMED WINDOW :w ON :s [{extent}]"
    return (
        f"PREFIX : <ex:> REGISTER {output} :{name} AS SELECT * {window}"
        f" WHERE {{ WINDOW :w {{ {body} }} }}"
    )


def bag(report):
    return Counter(tuple(row.values()) for row in report)


def by_definition(body, extent, happened):
    """Per time of an event, the answer over the events since floor((t - range) / step) * step."""
    query = parse_standing(text("RSTREAM", body, extent))
    (clause,) = query.windows
    for now in sorted({time for time, _ in happened}):
        begin = (now - clause.length) // clause.step * clause.step
        held = {(*t, clause.graph) for time, ts in happened for t in ts if begin <= time <= now}
        yield now, evaluate_query(query.select, list(held))


@unhurried
@given(st.sampled_from(BODIES), st.sampled_from(EXTENTS), events, st.integers(1, 5))
def test_reports_of_every_change_are_what_the_definition_says(body, extent, steps, most):
    happened, now = [], 0
    for gap, what in steps:
        now += gap
        happened.append((now, what))
    for store in ("all", "matched"):
        graph, received = LiveGraph(store=store), []
        outputs = ("RSTREAM", "ISTREAM", "DSTREAM")
        queries = [graph.watch(text(o, body, extent, o), report="change") for o in outputs]
        loud = graph.watch(text("ISTREAM", body, extent, "loud"), report="change")
        loud.on_result(received.append)
        stream = graph.stream("<ex:s>")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(content, "MAX_CLOSES", most)
            for time, what in happened:
                stream.push(what, time=time)
            graph.advance(now + 1)
        found = [query.results() for query in queries]
        expected = list(by_definition(body, extent, happened))
        before: Counter = Counter()
        for (time, rows), *reports in zip(expected, *found, received, strict=True):
            assert [report.time for report in reports] == [time] * 4
            changes = [rows, rows - before, before - rows, rows - before]
            assert [bag(report) for report in reports] == changes
            before = rows


def push(graph, *rows):
    stream = graph.stream("<ex:s>")
    for time, s, p, o in rows:
        stream.push([(iri(s), iri(p), iri(o))], time=time)
    return stream


def test_what_no_pattern_can_match_is_counted_and_not_held():
    graph = LiveGraph()
    graph.watch(text("RSTREAM", "?x :p :a . ?x :q ?y"))
    stream = push(graph, (0, "b", "p", "a"), (0, "b", "p", "b"), (1, "b", "r", "a"))
    push(graph, (2, "b", "q", "b"))
    assert (stream.received, stream.pruned, len(stream.events)) == (4, 2, 2)
    assert graph.stats().dropped == 2


def test_a_stream_that_nobody_asks_keeps_nothing():
    graph = LiveGraph()
    stream = push(graph, (0, "b", "p", "a"), (1, "b", "p", "a"))
    assert (stream.pruned, len(stream.events), len(stream.events.moments)) == (2, 0, 0)


def test_an_event_without_a_match_still_opens_the_first_window():
    graph = LiveGraph()
    query = graph.watch(text("RSTREAM", "?x :p ?y"))
    push(graph, (1, "a", "r", "b"), (9, "a", "p", "b"))
    graph.advance(12)
    assert [(r.time, len(r)) for r in query.results()] == [(4, 0), (6, 0), (8, 0), (10, 1), (12, 1)]


def test_a_later_query_gets_what_it_asks_for_from_then_on():
    """The window that is there lacks what the new query asks for, so it has one of its own."""
    graph = LiveGraph()
    first = graph.watch(text("RSTREAM", "?x :p ?y", name="first"))
    push(graph, (0, "a", "p", "b"), (1, "a", "q", "b"))
    second = graph.watch(text("RSTREAM", "?x :q ?y", name="second"))
    push(graph, (2, "c", "q", "b"))
    graph.advance(4)
    assert [len(r) for r in first.results()] == [1]
    assert [[row["x"].value for row in r] for r in second.results()] == [["ex:c"]]


@pytest.mark.parametrize("report", ["close", "change"])
@pytest.mark.parametrize("extent", ["RANGE 4 STEP 2", "RANGE 9 STEP 3", "ELEMENTS 2"])
def test_a_window_begins_with_its_query(extent, report):
    """Whatever windows held before: the events of the past are not in it."""
    graph = LiveGraph()
    graph.watch(text("RSTREAM", "?x :p ?y", "RANGE 20 STEP 1", "first"), report=report)
    push(graph, *((time, f"old{time}", "p", "b") for time in range(8)))
    query = graph.watch(text("RSTREAM", "?x :p ?y", extent, "second"), report=report)
    push(graph, *((time, f"new{time}", "p", "b") for time in range(8, 20)))
    graph.advance(30)
    seen = {row["x"].value for r in query.results() for row in r}
    assert seen == {f"ex:new{time}" for time in range(8, 20)}


def test_a_later_query_shares_a_window_that_has_all_it_asks_for():
    graph = LiveGraph()
    graph.watch(text("RSTREAM", "?x :p ?y", name="first"))
    push(graph, (0, "a", "p", "b"), (1, "a", "q", "b"))
    second = graph.watch(text("RSTREAM", "?x :p :b", name="second"))
    graph.advance(4)
    assert [len(r) for r in second.results()] == [1]
    assert graph.stats().quads == 1


def test_a_query_that_goes_is_no_longer_considered():
    graph = LiveGraph()
    first = graph.watch(text("RSTREAM", "?x :p ?y", name="first"))
    graph.watch(text("RSTREAM", "?x :q ?y", name="second"))
    first.close()
    assert push(graph, (0, "a", "p", "b"), (1, "a", "q", "b"), (2, "a", "q", "b")).pruned == 1


def test_elements_are_counted_whether_they_match_or_not():
    graph = LiveGraph()
    query = graph.watch(text("RSTREAM", "?x :p ?y", "ELEMENTS 2 STEP 2"))
    rows = [(t, "a", "p" if t % 4 == 0 else "r", "b") for t in range(9)]
    push(graph, *rows)
    assert [(r.time, len(r)) for r in query.results()] == [(1, 1), (3, 0), (5, 1), (7, 0)]


def test_windows_of_different_steps_stay_in_step(monkeypatch):
    """However few closes are carried out at a time, no window runs ahead of another."""
    join = (
        "PREFIX : <ex:> SELECT * FROM NAMED WINDOW :w ON :s [RANGE 4 STEP 1]"
        " FROM NAMED WINDOW :v ON :s [RANGE 10 STEP 10]"
        " WHERE { WINDOW :w { ?x :p ?y } WINDOW :v { ?x :q ?z } }"
    )

    def reports():
        graph = LiveGraph()
        query = graph.watch(join)
        push(graph, (3, "a", "q", "b"), (9, "a", "p", "b"))
        graph.advance(60)
        return [(r.time, len(r)) for r in query.results()]

    monkeypatch.setattr(content, "MAX_CLOSES", 3)
    expected = [(t, int(10 <= t <= 13)) for t in range(4, 61)]
    assert reports() == expected


def test_evaluating_anew_needs_all_quads():
    with pytest.raises(GraphtideError, match="needs all quads"):
        LiveGraph(store="matched").watch(text("RSTREAM", "?x :p ?y"), reevaluate=True)


def test_constants_of_any_place():
    rows = np.array([[1, 2, 3, 0], [4, 2, 3, 0], [1, 5, 3, 0], [9, 9, 9, 0]], np.int32)
    asked = {(1, 2, 0): [1, 0, 0, 0], (0, 0, 3): [1, 1, 1, 0], (9, 9, 9): [0, 0, 0, 1]}
    for pattern, expected in asked.items():
        assert PruningFilter(frozenset({pattern})).mask(rows).tolist() == list(map(bool, expected))
    assert PruningFilter(frozenset({(0, 0, 0), (1, 2, 0)})).mask(rows) is None
    assert not PruningFilter(frozenset()).mask(rows).any()
