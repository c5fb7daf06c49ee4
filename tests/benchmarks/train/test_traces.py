"""Runs of several rounds against the published traces."""

import pytest
from support.sampling import quick_sample
from support.train_expected import FIRST_ROUND, TOGETHER, TRACES

from benchmarks.harness import BenchmarkError
from benchmarks.train.benchmark import TrainTask, make_tasks
from benchmarks.train.plans import LAYOUTS
from benchmarks.train.transformations import DEFAULTS, MatchSelection, parse_selection

STRATEGIES = ("search", "rete", "auto")


@pytest.mark.parametrize("strategy", quick_sample(STRATEGIES, 3))
@pytest.mark.parametrize(("scenario", "size", "query"), TRACES)
def test_a_single_query(scenario, size, query, strategy):
    found = TrainTask(scenario, size, (query,), strategy, rounds=3, select="fixed:10").run()
    assert found.matches == {query: TRACES[scenario, size, query]}
    assert len(found.transform_ms) == len(found.recheck_ms) == 3


@pytest.mark.parametrize("strategy", quick_sample(STRATEGIES, 3))
@pytest.mark.parametrize(("scenario", "size"), TOGETHER)
def test_the_default_workloads(scenario, size, strategy):
    (workload,) = make_tasks([size], scenario, strategies=[strategy], together=True)
    assert workload.run().matches == TOGETHER[scenario, size]


@pytest.mark.parametrize(("scenario", "size"), FIRST_ROUND)
def test_all_together_with_ten_matches_each(scenario, size):
    found = TrainTask(scenario, size, rounds=1, select="fixed:10").run()
    assert found.matches == FIRST_ROUND[scenario, size]


# E and F begin with a product of all edges: size 1 is enough of that.
LAID_OUT = [
    (size, query, plan)
    for size in (1, 2)
    for query in LAYOUTS
    for plan in LAYOUTS[query]
    if size == 1 or plan < "E"
]


@pytest.mark.parametrize("scenario", quick_sample(["inject", "repair"], 2))
@pytest.mark.parametrize(("size", "query", "plan"), LAID_OUT)
def test_every_layout_has_the_same_trace(scenario, size, query, plan):
    found = TrainTask(scenario, size, (query,), plan=plan, rounds=3, select="fixed:10").run()
    assert found.matches == {query: TRACES[scenario, size, query]}


def test_a_product_stores_far_more():
    stored = [
        TrainTask("repair", 1, ("RouteSensor",), plan=plan).run().tuples_stored["RouteSensor"]
        for plan in "ABC"
    ]
    # C keeps every pair of a followed position (25) and a monitored switch's sensor (90 to 112)
    assert max(stored[:2]) < 1000 and stored[2] > 25 * 90


def test_memories_are_counted():
    stored = {
        strategy: TrainTask("repair", 1, ("RouteSensor",), strategy).run().tuples_stored
        for strategy in ("search", "rete")
    }
    assert stored["search"] == {"RouteSensor": 0}
    # at least one memory row for each of the 112 sensors' edges from switches and from routes
    assert stored["rete"]["RouteSensor"] > 112


def test_selections():
    fixed, share = MatchSelection("fixed", 10), MatchSelection("proportional", 5)
    assert [fixed.count(n) for n in (0, 4, 10, 11)] == [0, 4, 10, 10]
    assert [share.count(n) for n in (0, 19, 20, 52, 149)] == [0, 0, 1, 2, 7]
    assert {name: (str(each), rounds) for name, (each, rounds) in DEFAULTS.items()} == {
        "batch": ("fixed:10", 0),
        "inject": ("fixed:10", 12),
        "repair": ("proportional:5", 8),
    }


@pytest.mark.parametrize(
    "text", ["", "fixed", "fixed:", "fixed:0", "fixed:-1", "fixed:x", "proportional:101", "most:3"]
)
def test_selections_that_cannot_be_read(text):
    with pytest.raises(BenchmarkError, match="invalid selection"):
        parse_selection(text)
