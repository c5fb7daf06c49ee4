"""Explanations of queries over windows: the events behind a row, with their times."""

from __future__ import annotations

import pytest

from graphtide import GraphtideError, LiveGraph
from graphtide.engine.reclaim import ALWAYS

EX = "http://example.org/"
TEXT = """PREFIX : <http://example.org/>
SELECT ?room ?v FROM NAMED WINDOW :w ON :readings [RANGE PT10S STEP PT5S]
WHERE { ?room :floor ?f WINDOW :w { ?room :shows ?v } FILTER (?v > 30) }"""


def iri(name):
    return f"<{EX}{name}>"


@pytest.fixture(params=[False, True], ids=["maintained", "reevaluated"])
def hot(request):
    graph = LiveGraph()
    query = graph.watch(TEXT, reevaluate=request.param)
    graph.insert(iri("kitchen"), iri("floor"), 1)
    readings = graph.stream(iri("readings"))
    for time, value in ((2, 31), (6, 31), (6, 29), (8, 35), (13, 36)):
        readings.push([(iri("kitchen"), iri("shows"), value)], time=time)
    return graph, query


def times(explanation):
    return [fact.times for fact in explanation.facts() if fact.graph is not None]


def test_a_row_has_the_times_of_its_events_as_of_the_last_close(hot):
    graph, query = hot
    assert query.last_result().time == 10
    assert times(query.why(v=31)) == [(2, 6)]
    assert times(query.why(v=35)) == [(8,)]
    assert ":kitchen :shows 31 in :w at 2, 6" in str(query.why(v=31))
    graph.advance(15)
    assert query.last_result().time == 15
    assert times(query.why(v=31)) == [(6,)]
    assert [times(query.why(row)) for row in query.last_result()]


def test_why_not_names_the_event_that_is_missing_or_the_filter_that_fails(hot):
    _, query = hot
    assert query.why_not(v=29).first_failure().kind == "filter"
    missing = query.why_not(v=36)
    assert "no quad :kitchen :shows 36" in missing.first_failure().note
    assert [change.text() for change in missing.changes] == ["+ :kitchen :shows 36 in :w"]


@pytest.mark.skipif(ALWAYS, reason="what left is explained until its terms are freed")
def test_a_row_that_left_with_the_last_close_is_explained_by_what_there_was(hot):
    """What DSTREAM puts out: the event of 35 is in the windows of 10 and 15, not in that of 20."""
    graph, query = hot
    graph.advance(15)
    assert times(query.why(v=35))
    graph.advance(20)
    left = query.why(v=35)
    assert "left" in left.title
    assert [change.text() for change in left.changes] == ["- :kitchen :shows 35 in :w"]
    assert {str(fact.object) for fact in left.facts()} >= {
        '"35"^^<http://www.w3.org/2001/XMLSchema#integer>'
    }
    with pytest.raises(GraphtideError, match="is not in the answer"):
        query.why(v=30)
