"""The three queries beside the six: their published counts, and that they follow changes."""

import pytest
from support.sampling import slow
from support.train_expected import EXTRA

from benchmarks.datasets.queries import find_queries, find_query
from benchmarks.datasets.train import RDF_TYPE, TrainModel, length_literal, name
from benchmarks.train.benchmark import TrainTask
from benchmarks.train.driver import load_model
from benchmarks.train.plans import watch_query
from graphtide.graph import LiveGraph

NAMES = ("ActiveRoute", "RouteReachability", "RouteLength")


MOST = {"ActiveRoute": 8, "RouteReachability": 2, "RouteLength": 2}
"""Sizes up to this are tested: pairs of connected elements are many, and all of them are stored."""

CASES = [(*model, query) for model in EXTRA for query in NAMES if model[1] <= MOST[query]]
LONGEST = {"ActiveRoute": 4, "RouteReachability": 1, "RouteLength": 2}
"""Sizes from this on take long; the same queries follow changes of a small graph below."""


@pytest.mark.parametrize(
    ("scenario", "size", "query"),
    [slow(*case) if case[1] >= LONGEST.get(case[2], 100) else case for case in CASES],
)
def test_match_counts_are_the_published_ones(scenario, size, query):
    found = TrainTask(scenario, size, (query,)).run()
    assert found.matches == {query: [EXTRA[scenario, size][NAMES.index(query)]]}


def test_all_are_the_six():
    assert not {query.name for query in find_queries(["all"])} & set(NAMES)
    assert [query.name for query in find_queries(["RouteLength", "all", "ActiveRoute"])][-2:] == [
        "ActiveRoute",
        "RouteLength",
    ]


def test_they_are_checked_but_not_transformed():
    found = TrainTask("repair", 1, ("ActiveRoute",), rounds=2).run()
    assert found.matches == {"ActiveRoute": [2, 2, 2]}


def test_they_follow_the_repairs_of_others():
    """Both are about positions: to mend a switch of SwitchSet is to mend one of ActiveRoute."""
    found = TrainTask("repair", 2, ("SwitchSet", "ActiveRoute"), rounds=1, select="fixed:10").run()
    assert found.matches == {"SwitchSet": [3, 0], "ActiveRoute": [7, 4]}


SWITCHES = ("sw1", "sw2")


def small_rail(graph):
    """A route over two switches with segments of 3 and 4 between them."""
    graph.insert(name("route"), RDF_TYPE, name("Route"))
    for at, switch in enumerate(SWITCHES):
        position = name(f"position{at}")
        graph.insert(name("route"), name("follows"), position)
        graph.insert(position, RDF_TYPE, name("SwitchPosition"))
        graph.insert(position, name("target"), name(switch))
        graph.insert(name(switch), RDF_TYPE, name("Switch"))
    for segment, length in (("seg1", 3), ("seg2", 4)):
        graph.insert(name(segment), RDF_TYPE, name("Segment"))
        graph.insert(name(segment), name("length"), length_literal(length))
    for start, end in (("sw1", "seg1"), ("seg1", "seg2"), ("seg2", "sw2")):
        graph.insert(name(start), name("connectsTo"), name(end))


def totals(watch):
    return [str(total) for total in watch.table(terms=True).column("total").to_pylist()]


def test_the_length_of_a_route_follows_its_track():
    graph = LiveGraph()
    watch = watch_query(graph, find_query("RouteLength"), "auto", "default")
    small_rail(graph)
    assert [total.split('"')[1] for total in totals(watch)] == ["7"]
    graph.delete(name("seg1"), name("connectsTo"), name("seg2"))
    assert totals(watch) == []
    # backwards counts as well, and a third segment between the two
    graph.insert(name("seg3"), RDF_TYPE, name("Segment"))
    graph.insert(name("seg3"), name("length"), length_literal(10))
    graph.insert(name("seg3"), name("connectsTo"), name("seg1"))
    graph.insert(name("seg3"), name("connectsTo"), name("seg2"))
    assert [total.split('"')[1] for total in totals(watch)] == ["17"]


def test_a_route_is_reported_when_its_switches_are_cut_off():
    graph = LiveGraph()
    watch = watch_query(graph, find_query("RouteReachability"), "auto", "default")
    small_rail(graph)
    assert watch.count() == 0
    graph.delete(name("seg1"), name("connectsTo"), name("seg2"))
    assert watch.count() == 2


def test_the_published_numbers_of_a_model_hold_if_it_is_read_after_registration():
    graph = LiveGraph()
    watch = watch_query(graph, find_query("ActiveRoute"), "auto", "default")
    load_model(graph, TrainModel(2, "repair"))
    assert watch.count() == EXTRA["repair", 2][0]
