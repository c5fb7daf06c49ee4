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


PATTERNS = {
    "V1": "?house :has_appliance ?app",
    "V2": '?app :status "ON"',
    "V3": "?house :near_by ?nbhouse",
    "V4": "?nbhouse :id 2",
}
JOINS = {"1": ("V1", "V2"), "2": ("V1", "V2", "V3"), "3": ("V1", "V2", "V3", "V4")}
"""The views of Figure 4, and the patterns that are joined after each of its steps."""


class Views:
    """All views and joins of QUERY 1 over one window, each as a query of its own."""

    def __init__(self, strategy, parts, length=10, step=5):
        self.graph = LiveGraph(store="matched")
        self.stream = self.graph.stream(iri("s"))
        window = f"FROM NAMED WINDOW :w ON :s [RANGE {length} STEP {step}]"
        head = f"PREFIX : <{EX}> REGISTER RSTREAM"
        self._queries = {
            name: self.graph.watch(
                f"{head} :q{name} AS SELECT {variables} {window} "
                f"WHERE {{ WINDOW :w {{ {body} }} }}",
                report="change",
                strategy=strategy,
            )
            for name, (variables, body) in parts.items()
        }

    def push(self, triples, time):
        self.stream.push(triples, time=time)
        self.graph.advance(time + 1)
        return {name: rows(query.last_result()) for name, query in self._queries.items()}


def test_example_2_pairs_that_join_one_pair_are_siblings(strategy):
    """Pairs 1 to 3 of the one view join 4 and 5, 6, 7 and 8 of the other: five sibling tuples."""
    first = [(iri(f"H{n}"), iri("has"), iri(f"H{n}App")) for n in (1, 2, 3)]
    second = [
        (iri(f"H{n}App"), iri("part"), iri(f"H{n}App{part}"))
        for n, part in ((1, 1), (1, 2), (2, 1), (3, 1), (3, 2))
    ]
    parts = {
        "V1": ("?h ?a", "?h :has ?a"),
        "V2": ("?a ?p", "?a :part ?p"),
        "join": ("?h ?a ?p", "?h :has ?a . ?a :part ?p"),
    }
    views = Views(strategy, parts)
    found = views.push(first, 1)
    assert (len(found["V1"]), found["V2"], found["join"]) == (3, [], [])
    joined = []
    for at, (app, _, part) in enumerate(second):
        found = views.push([(app, iri("part"), part)], 2 + at)
        house, group = app[len(EX) + 1 : -4], app[len(EX) + 1 : -1]
        joined.append((house, group, part[len(EX) + 1 : -1]))
        assert found["join"] == sorted(joined), "a pair of V2 joins exactly one of V1"
        assert len(found["V2"]) == at + 1 and len(found["V1"]) == 3
    siblings = [sum(row[0] == f"H{n}" for row in found["join"]) for n in (1, 2, 3)]
    assert siblings == [2, 1, 2], "as many as have the ordinals 00, 01 and 10"


def test_example_3_views_and_joins_step_by_step(strategy):
    """What each view holds and each join gives, after each event; then the window slides on."""
    names = {"V1": "?house ?app", "V2": "?app", "V3": "?house ?nbhouse", "V4": "?nbhouse"}
    parts = {view: (names[view], PATTERNS[view]) for view in PATTERNS}
    parts["1"] = ("?house ?app", " . ".join(PATTERNS[view] for view in JOINS["1"]))
    for step in "23":
        variables = "?house ?app ?nbhouse"
        parts[step] = (variables, " . ".join(PATTERNS[view] for view in JOINS[step]))
    views = Views(strategy, parts, length=8, step=2)
    one, two = ("H1", "H1App1"), ("H1", "H1App2")
    assert views.push(FIRST, 1) == {
        "V1": [one, ("H2", "H2App1")],
        "V2": [("H1App1",)],  # the other one is off
        "V3": [("H1", "H2")],
        "V4": [("H2",)],
        "1": [one],
        "2": [(*one, "H2")],
        "3": [(*one, "H2")],
    }
    assert views.push(SECOND, 7) == {
        "V1": [one, two, ("H2", "H2App1")],
        "V2": [("H1App1",), ("H1App2",)],
        "V3": [("H1", "H2")],
        "V4": [("H2",)],
        "1": [one, two],
        "2": [(*one, "H2"), (*two, "H2")],
        "3": [(*one, "H2"), (*two, "H2")],
    }
    assert views.push([(iri("H2"), iri("id"), 2)], 14) == {
        "V1": [two],  # what came at 1 is out; so the second match has lost its near_by
        "V2": [("H1App2",)],
        "V3": [],
        "V4": [("H2",)],
        "1": [two],
        "2": [],
        "3": [],
    }


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
