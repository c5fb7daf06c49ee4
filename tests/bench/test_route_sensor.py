import importlib.util
import io
import json
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace

import numpy as np
import pytest

from graphtide.bench.harness import Benchmark
from graphtide.bench.route_sensor import (
    BENCHMARK,
    PEERS,
    RELATIONS,
    RouteSensorResult,
    RouteSensorTask,
    check_agreement,
    make_tasks,
    make_workload,
    report,
)
from graphtide.cli.main import main
from graphtide.errors import GraphtideError

EDGES = 1000


def edges_by_relation(workload):
    found = {name: [] for name in RELATIONS}
    for relation, s, o in zip(workload.relation, workload.s, workload.o, strict=True):
        found[RELATIONS[relation]].append((int(s), int(o)))
    return found


def matches(workload):
    """RouteSensor by hand: every chain whose route does not require the sensor."""
    edges = edges_by_relation(workload)
    target, sensor = dict(edges["target"]), dict(edges["monitoredBy"])
    required = set(edges["requires"])
    return sum((route, sensor[target[swp]]) not in required for route, swp in edges["follows"])


def test_the_workload_has_the_shape_of_the_benchmark():
    workload = make_workload(13_000, seed=0)
    edges = edges_by_relation(workload)
    routes, positions, switches, sensors = workload.counts
    size = 3 * positions
    assert abs(len(workload) - 13_000) < 130
    assert (switches, routes, sensors) == pytest.approx((size / 3, size / 60, size / 6), abs=2)
    # one switch position per `follows`, one switch for each, one sensor per switch
    assert Counter(o for _, o in edges["follows"]).most_common(1)[0][1] == 1
    assert len(edges["follows"]) == len({s for s, _ in edges["target"]}) == positions
    assert len(edges["monitoredBy"]) == len({s for s, _ in edges["monitoredBy"]}) == switches
    assert len(edges["requires"]) == len(set(edges["requires"]))
    assert len(edges["requires"]) / positions == pytest.approx(0.95, abs=0.02)
    assert (np.diff(workload.relation) != 0).mean() > 0.5, "the edges are shuffled"


def test_the_same_seed_gives_the_same_edges():
    first, again, other = (make_workload(EDGES, seed) for seed in (1, 1, 2))
    assert (first.s == again.s).all() and (first.updated == again.updated).all()
    assert not np.array_equal(first.s, other.s)


@pytest.fixture(scope="module")
def printed():
    """What the whole benchmark prints on a tiny graph, in JSON; and what it says meanwhile."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        assert main(["bench", "route-sensor", "--edges", str(EDGES), "--json"]) == 0, err.getvalue()
    return json.loads(out.getvalue()), err.getvalue()


@pytest.mark.slow
def test_json_has_the_promised_keys(printed):
    figures, progress = printed
    assert list(figures) == [
        "edges",
        "load_ids_per_s",
        "load_strings_per_s",
        "load_calls_per_s",
        "update_us_median",
        "update_us_p95",
        "update_us_mean",
        "update_us_p99",
        "rss_mb",
        "matches",
        "peers",
        "scaling",
    ]
    # all of our ways to load agree with this number, or the command would have failed
    assert figures["matches"] == matches(make_workload(EDGES, seed=0)) > 0
    assert figures["edges"] == len(make_workload(EDGES, seed=0))
    assert all(figures[key] > 0 for key in list(figures)[:10])
    assert "edges from ids" in progress


@pytest.mark.slow
@pytest.mark.parametrize("peer", PEERS)
def test_the_peers_find_the_same_matches(printed, peer):
    if importlib.util.find_spec(PEERS[peer]) is None:
        pytest.skip(f"{peer} is not installed")
    figures = printed[0]["peers"][peer]
    assert figures["matches"] == matches(make_workload(EDGES, seed=0))
    assert figures["update_us_median"] > 0


def test_a_peer_that_is_not_installed_is_left_out(monkeypatch):
    monkeypatch.setitem(PEERS, "clipspy", "no_such_module")
    assert "clipspy" not in [task.engine for task in make_tasks(EDGES, 0, peers=True)]
    assert "clipspy was left out: pip install 'graphtide[bench]'" in report(results()).notes
    assert report(results(), peers=False).notes == []


def results():
    update = {"update_us_median": 2.0, "update_us_p95": 4.0}
    return [
        RouteSensorResult("ids", 100, 7, 3, load_per_s=500, **update),
        RouteSensorResult("strings", 100, 7, 3, load_per_s=500),
        RouteSensorResult("calls", 100, 7, 3, load_per_s=500),
        RouteSensorResult("ids", 10, 7, 1, load_per_s=750),
        RouteSensorResult("clipspy", 100, 9, 3, load_per_s=50, **update),
        RouteSensorResult("duckdb", 100, 1, 3, **update),
    ]


def test_peers_in_the_json_object():
    figures = report(results()).objects
    assert figures["peers"] == {
        "clipspy": {"load_calls_per_s": 50, "update_us_median": 2, "rss_mb": 9, "matches": 3},
        "duckdb": {"update_us_median": 2, "matches": 3},
    }
    # 750 edges/s against 500: an edge costs 1.5 times as much in the large graph
    assert figures["scaling"] == {"edges": 10, "load_ids_per_s": 750, "cost_ratio": 1.5}


def test_the_table_shows_ratios(monkeypatch, capsys):
    monkeypatch.setattr(Benchmark, "run", lambda *_: results())
    assert main(["bench", "route-sensor"]) == 0
    out = capsys.readouterr().out
    loads = [line.split() for line in out.splitlines() if "load from" in line]
    assert [line[-3:] for line in loads] == [
        ["10.00×", "≥", "10×"],
        ["edges/s", "500", "10.00×"],
        ["10.00×", "≥", "4×"],
    ]
    assert "1.50×" in out


def test_engines_that_disagree_are_reported():
    found = [*results()[:-1], replace(results()[-1], matches=4)]
    with pytest.raises(GraphtideError, match=r"disagree on the matches: .*ids 3.*duckdb 4"):
        check_agreement(found)


@pytest.mark.slow
def test_a_failing_measurement_is_reported():
    with pytest.raises(GraphtideError, match=r"measurement \(.* in nope\) failed: KeyError"):
        BENCHMARK.measure_apart(RouteSensorTask("nope", EDGES))


def test_too_few_edges(capsys):
    assert main(["bench", "route-sensor", "--edges", "5"]) == 2
    assert 'invalid --edges "5"' in capsys.readouterr().err
