"""`graphtide bench train`: its options, its JSON, its table and its plots."""

import json
import sys
from dataclasses import replace

import pytest
from support.train_expected import FIRST_ROUND, TOGETHER, TRACES

from benchmarks.harness import Benchmark
from benchmarks.report import write_plot
from benchmarks.train.benchmark import (
    BENCHMARK,
    TrainResult,
    TrainTask,
    make_plot,
    make_tasks,
    measure,
    report,
)
from graphtide.cli.main import main
from graphtide.errors import GraphtideError

KEYS = [
    "scenario", "size", "query", "strategy", "plan", "triples", "matches", "read_ms", "check_ms",
    "transform_ms", "recheck_ms", "rss_mb", "tuples_stored",
]  # fmt: skip


@pytest.fixture
def command(capsys):
    def run(*tokens):
        code = main([str(token) for token in tokens])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out, err

    return run


@pytest.fixture
def in_process(monkeypatch):
    """Measure in this process, which is quicker."""
    monkeypatch.setattr(Benchmark, "measure_apart", lambda _, task: measure(task))


@pytest.mark.slow
def test_json_of_a_workload(command, in_process):
    code, out, err = command(
        *("bench", "train", "--sizes", "1", "--scenario", "inject", "--together", "--json"),
        *("--select", "fixed:10", "--rounds", "1"),
    )
    found = json.loads(out)
    assert code == 0 and "inject 1: all queries" in err
    assert [list(each) for each in found] == [KEYS] * 6
    assert {each["query"]: each["matches"] for each in found} == FIRST_ROUND["inject", 1]
    assert all(each["triples"] == 4089 and len(each["recheck_ms"]) == 1 for each in found)


@pytest.mark.slow
def test_json_of_single_queries(command, in_process):
    code, out, _ = command(
        *("bench", "train", "--sizes", "2,1", "--queries", "SwitchSet,RouteSensor", "--json"),
        *("--strategies", "search,rete", "--scenario", "batch"),
    )
    found = json.loads(out)
    assert code == 0
    assert [(each["size"], each["query"], each["strategy"]) for each in found] == [
        (size, query, strategy)
        for size in (2, 1)
        for query in ("RouteSensor", "SwitchSet")
        for strategy in ("search", "rete")
    ]
    assert all(each["matches"] == [0] and each["transform_ms"] == [] for each in found)


@pytest.mark.slow
def test_json_of_plans_and_their_nodes(command, in_process):
    code, out, _ = command(
        *("bench", "train", "--sizes", "1", "--queries", "RouteSensor", "--json", "--nodes"),
        *("--plans", "default,A,B,C", "--scenario", "inject", "--select", "fixed:10"),
        *("--rounds", "3"),
    )
    found = json.loads(out)
    assert code == 0
    assert [each["plan"] for each in found] == ["default", "A", "B", "C"]
    assert all(each["matches"] == TRACES["inject", 1, "RouteSensor"] for each in found)
    nodes = [{node["node"].split(" . ")[0]: node for node in each["nodes"]} for each in found]
    for plan in nodes[1:]:
        # 10 edges of 3 rounds go, each of which lets one row appear
        assert plan["input ?route :requires ?sensor"]["messages"] == 30
        assert plan["antijoin on ?route ?sensor"]["messages"] >= 30
    assert "product" in nodes[3] and "product" not in nodes[1] | nodes[2]


def test_a_peer_gets_a_line_of_its_own(command, in_process):
    code, out, _ = command(
        *("bench", "train", "--sizes", "1", "--together", "--peers", "--json", "--rounds", "1"),
        *("--select", "fixed:10"),
    )
    found = [each for each in json.loads(out) if each["strategy"] == "pyoxigraph"]
    assert code == 0
    assert {each["query"]: each["matches"] for each in found} == FIRST_ROUND["repair", 1]
    assert all(len(each["recheck_ms"]) == 1 for each in found)


def test_the_table_shows_the_first_and_the_last_matches(command, in_process):
    code, out, _ = command("bench", "train", "--sizes", "1", "--queries", "PosLength")
    assert code == 0
    trace = TOGETHER["repair", 1]["PosLength"]
    assert f"{trace[0]} → {trace[-1]}" in out


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--sizes", "0"], "invalid size 0"),
        (["--sizes", "1,x"], "invalid size 'x'"),
        (["--sizes", "1,,2"], "separate names by single commas"),
        (["--sizes", ""], "separate names by single commas"),
        (["--queries", "Nope"], "unknown query 'Nope'"),
        (["--scenario", "nope"], "unknown scenario 'nope'"),
        (["--strategies", "nope"], "unknown strategy 'nope'"),
        (["--plans", "nope"], "has no plan named 'nope'"),
        (["--plans", "A"], "ConnectedSegments has no plan named 'A'"),
        (["--queries", "RouteSensor", "--plans", "D"], "choose from default, A, B, C"),
        (["--queries", "RouteSensor", "--plans", "A", "--strategies", "search"], "rete or auto"),
        (["--spark", "--partitions", "0"], 'invalid --partitions "0"'),
        (["--peers", "--queries", "RouteLength"], "only the in-process engine"),
        (["--select", "some"], "invalid selection 'some'"),
        (["--rounds", "-1"], 'invalid --rounds "-1"'),
        (["--scenario", "batch", "--rounds", "1"], "the scenario batch has no rounds"),
        (["--plot", "a.pdf"], "suffix '.pdf'"),
        (["--plot", "no/such/a"], "no such directory"),
    ],
)
def test_bench_with_mistakes(command, options, problem, monkeypatch):
    monkeypatch.setattr(Benchmark, "measure_apart", lambda *_: pytest.fail("it was run"))
    code, out, err = command("bench", "train", *options)
    assert (code, out) == (2, "")
    assert problem in err


def results(**options):
    figures = {
        "triples": 4000,
        "matches": {"PosLength": [3, 2]},
        "read_ms": 5.0,
        "check_ms": 2.0,
        "transform_ms": [1.0],
        "recheck_ms": [0.5],
        "tuples_stored": {"PosLength": 7},
        "nodes": {"PosLength": []},
    }
    return [TrainResult("repair", 1, "auto", "default", figures | options, rss_mb=100.0)]


def queries(**options):
    return [query for result in results(**options) for query in result.queries()]


@pytest.mark.slow
def test_plots_are_written_twice(tmp_path):
    pytest.importorskip("matplotlib")
    plot = report([*results(), *results(triples=11_000)]).plot
    files = write_plot(plot, tmp_path / "train.png")
    assert files == [tmp_path / "train.png", tmp_path / "train.svg"]
    assert files[0].read_bytes().startswith(b"\x89PNG")
    assert "<svg" in files[1].read_text()


@pytest.mark.slow
def test_queries_that_ran_together_are_drawn_once(tmp_path):
    pytest.importorskip("matplotlib")
    both = [*queries(), *(replace(each, query="SwitchSet") for each in queries())]
    _, alone = write_plot(make_plot(both, "repair"), tmp_path / "alone")
    _, together = write_plot(make_plot(both, "repair", together=True), tmp_path / "together")
    assert "SwitchSet: check" in alone.read_text() and "PosLength: check" in alone.read_text()
    assert "all together: check" in together.read_text()
    assert "SwitchSet: check" not in together.read_text()


@pytest.mark.slow
def test_plots_without_rounds(tmp_path):
    pytest.importorskip("matplotlib")
    assert write_plot(report(results(transform_ms=[], recheck_ms=[])).plot, tmp_path / "batch")


def test_plots_without_matplotlib(command, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, _, err = command("bench", "train", "--plot", "a")
    assert code == 2 and "graphtide[viz]" in err


def test_the_table_has_a_line_for_each_result():
    assert report(results()).tables[0].row_count == 1


def test_workloads_are_checked_before_any_is_run():
    with pytest.raises(GraphtideError, match="size 0"):
        make_tasks("repair", [1, 0], ["all"], ["rete"], ["default"])


def test_the_loops_of_every_plan_are_loaded_before():
    """The small model of the warm-up may have another plan than the one that is measured."""
    workload = TrainTask("inject", 64, ("SemaphoreNeighbor",), rounds=10)
    warm_ups = BENCHMARK.warm_up(workload)
    assert [(each.size, each.strategy, each.rounds) for each in warm_ups] == [
        (1, "auto", 2),
        (1, "rete", 2),
        (1, "auto", 1),
    ]
    before, after = warm_ups[-1].run().matches["PosLength"]
    assert before != after
    assert len(BENCHMARK.warm_up(replace(workload, strategy="search"))) == 2
    assert len(BENCHMARK.warm_up(replace(workload, engine="pyoxigraph"))) == 1


@pytest.mark.slow
def test_memory_is_measured_in_a_process_of_its_own():
    workload = TrainTask("repair", 1, ("PosLength",), "search", rounds=1, select="fixed:10")
    result = BENCHMARK.measure_apart(workload)
    assert result.figures["matches"] == {"PosLength": [52, 42]}
    assert result.rss_mb > 10


@pytest.mark.slow
def test_a_failing_measurement_is_reported():
    workload = TrainTask("repair", 1, ("PosLength",))
    object.__setattr__(workload, "plan", "nope")
    with pytest.raises(GraphtideError, match=r"the measurement \(repair 1: .*\) failed: .*nope"):
        BENCHMARK.measure_apart(workload)
