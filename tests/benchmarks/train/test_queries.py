"""Match counts against the published ones, and against pyoxigraph."""

import pytest
from pyoxigraph import RdfFormat, Store
from support.sampling import quick_sample
from support.train_expected import MODELS, QUERIES
from support.train_minimal import MINIMAL, TRUE

from benchmarks.datasets.queries import find_queries, find_query
from benchmarks.datasets.train import TrainModel
from benchmarks.harness import BenchmarkError
from benchmarks.train.driver import TrainRun, load_model
from benchmarks.train.transformations import MatchSelection
from graphtide.graph import LiveGraph

STRATEGIES = ("search", "rete", "auto")

TEN = MatchSelection("fixed", 10)


@pytest.mark.parametrize("strategy", quick_sample(STRATEGIES, 3))
@pytest.mark.parametrize(("scenario", "size"), MODELS)
def test_match_counts_are_the_published_ones(scenario, size, strategy):
    found = TrainRun(TrainModel(size, scenario), find_queries(["all"]), TEN, strategy=strategy).run(
        rounds=0
    )
    assert tuple(found.matches[name][0] for name in QUERIES) == MODELS[scenario, size][3]
    assert found.triples == MODELS[scenario, size][2]


def oracle_counts(store):
    return {name: len(list(store.query(find_query(name).text))) for name in QUERIES}


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("scenario", ["batch", "inject", "repair"])
def test_pyoxigraph_finds_the_published_matches(scenario, size):
    store = Store()
    for block in TrainModel(size, scenario).blocks():
        store.load(bytes(block.columns().lines()), format=RdfFormat.N_TRIPLES)
    assert tuple(oracle_counts(store).values()) == MODELS[scenario, size][3]


@pytest.mark.parametrize("scenario", ["inject", "repair"])
def test_pyoxigraph_agrees_after_every_round(scenario):
    run = TrainRun(TrainModel(1, scenario), find_queries(["all"]), TEN)
    run.read()
    run.check()
    for _ in range(3):
        run.transform()
        run.recheck()
        lines = "".join(f"{s} {p} {o} .\n" for s, p, o, _ in run.graph.quads())
        store = Store()
        store.load(lines.encode(), format=RdfFormat.N_TRIPLES)
        assert oracle_counts(store) == {
            name: run.figures.matches[name][-1] for name in oracle_counts(store)
        }


@pytest.mark.parametrize("strategy", ["search", "rete"])
@pytest.mark.parametrize("name", QUERIES)
def test_a_minimal_model_has_one_violation(name, strategy):
    graph = LiveGraph()
    watches = {each: graph.watch(find_query(each).text, strategy=strategy) for each in QUERIES}
    for triple in MINIMAL[name]:
        graph.insert(*triple)
    assert watches[name].count() == 1


def test_a_route_that_is_not_active_may_have_its_switches_as_it_likes():
    graph = LiveGraph()
    watch = graph.watch(find_query("SwitchSet").text)
    for triple in MINIMAL["SwitchSet"]:
        if triple[2] != TRUE:
            graph.insert(*triple)
    assert watch.count() == 0


def test_the_queries_may_be_registered_before_the_model_is_read():
    graph = LiveGraph()
    watches = {name: graph.watch(find_query(name).text) for name in QUERIES}
    load_model(graph, TrainModel(2, "repair"))
    assert tuple(w.count() for w in watches.values()) == MODELS["repair", 2][3]


def test_unknown_queries():
    with pytest.raises(BenchmarkError, match="unknown query 'Nope'"):
        find_queries(["PosLength", "Nope"])
    with pytest.raises(BenchmarkError, match="no query"):
        find_queries([])
