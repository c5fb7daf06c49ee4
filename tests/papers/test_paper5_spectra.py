"""Paper 5: QUERY 1 and examples 1 to 4, through windows that report every change.

The paper's figures give the graphs as pictures; the triples here are those that its text names: the
first event holds a whole match, the second one an appliance more of the same house.
"""

from __future__ import annotations

import pytest

from graphtide import LiveGraph

EX = "http://example.org/"


def iri(name):
    return f"<{EX}{name}>"


QUERY = f"""PREFIX : <{EX}>
REGISTER {{output}} :q AS SELECT ?house ?app ?nbhouse
FROM NAMED WINDOW :w ON :s [RANGE {{range}} STEP {{step}}]
WHERE {{{{ WINDOW :w {{{{
  ?house :has_appliance ?app . ?app :status "ON" . ?house :near_by ?nbhouse . ?nbhouse :id 2
}}}} }}}}"""

FIRST = [
    (iri("H1"), iri("has_appliance"), iri("H1App1")),
    (iri("H1"), iri("near_by"), iri("H2")),
    (iri("H1App1"), iri("power_usage"), 50),
    (iri("H1App1"), iri("status"), '"ON"'),
    (iri("H2"), iri("id"), 2),
    (iri("H2"), iri("has_appliance"), iri("H2App1")),
    (iri("H2App1"), iri("status"), '"OFF"'),
]
SECOND = [
    (iri("H1"), iri("has_appliance"), iri("H1App2")),
    (iri("H1App2"), iri("status"), '"ON"'),
]


def rows(report):
    return sorted(tuple(str(t).removeprefix(f"<{EX}")[:-1] for t in row.values()) for row in report)


@pytest.fixture(params=["search", "rete"])
def strategy(request):
    return request.param


def start(strategy, output="ISTREAM", length=10, step=5):
    graph = LiveGraph(store="matched")
    text = QUERY.format(output=output, range=length, step=step)
    query = graph.watch(text, report="change", strategy=strategy)
    return graph, graph.stream(iri("s")), query


def test_query_1_on_the_first_event(strategy):
    graph, stream, query = start(strategy)
    stream.push(FIRST, time=1)
    graph.advance(2)
    assert rows(query.last_result()) == [("H1", "H1App1", "H2")]


def test_example_1_summarisation_drops_what_the_query_cannot_match(strategy):
    """What has no predicate of a pattern goes, or not its constant, before anything is stored."""
    graph, stream, _ = start(strategy)
    stream.push(FIRST, time=1)
    graph.advance(2)
    assert graph.stats().dropped == 2  # power_usage, and the status that is not "ON"
    assert graph.stats().quads == len(FIRST) - 2


def test_examples_2_and_3_joins_in_both_directions(strategy):
    """V1.o = V2.s, then V1.s = V3.s, then V3.o = V4.s: one match of seven triples."""
    graph, stream, query = start(strategy)
    for time, triple in enumerate(reversed(FIRST)):
        stream.push([triple], time=time)
    graph.advance(len(FIRST))
    found = [rows(report) for report in query.results()]
    assert [row for report in found for row in report] == [("H1", "H1App1", "H2")]
    assert found[-1] == [("H1", "H1App1", "H2")], "the last triple completes the match"


def test_example_4_a_partial_match_joins_what_the_window_holds(strategy):
    graph, stream, query = start(strategy)
    stream.push(FIRST, time=1)
    stream.push(SECOND, time=3)
    graph.advance(4)
    assert [rows(report) for report in query.results()] == [
        [("H1", "H1App1", "H2")],
        [("H1", "H1App2", "H2")],
    ]


def test_figure_5_eviction_takes_the_matches_of_the_evicted_triples(strategy):
    """At 14 what came before floor((14 - 8) / 2) * 2 = 6 leaves: near_by and id with it."""
    graph, stream, query = start(strategy, "DSTREAM", length=8, step=2)
    stream.push(FIRST, time=1)
    stream.push(SECOND, time=7)
    stream.push([(iri("H9"), iri("near_by"), iri("H9"))], time=14)
    graph.advance(15)
    assert [(r.time, rows(r)) for r in query.results()] == [
        (1, []),
        (7, []),
        (14, [("H1", "H1App1", "H2"), ("H1", "H1App2", "H2")]),
    ]


def test_a_triple_that_arrived_again_keeps_its_matches(strategy):
    graph, stream, query = start(strategy, "RSTREAM", length=8, step=2)
    stream.push(FIRST, time=1)
    stream.push(FIRST[1:5], time=7)
    stream.push([FIRST[0]], time=8)
    stream.push([(iri("H9"), iri("near_by"), iri("H9"))], time=14)
    graph.advance(15)
    assert rows(query.last_result()) == [("H1", "H1App1", "H2")]
