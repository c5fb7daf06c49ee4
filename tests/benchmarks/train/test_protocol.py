"""`graphtide bench train --protocol paper`: the experiment of paper 1, and its two figures."""

from __future__ import annotations

import json

import pytest
from support.train_expected import FIRST_ROUND

from benchmarks.harness import Benchmark, LimitExceededError, RunLimits
from benchmarks.report import write_plot
from benchmarks.train import protocol
from benchmarks.train.benchmark import BENCHMARK, TrainResult, TrainTask, measure
from graphtide.cli.main import main
from graphtide.errors import GraphtideError

NO_LIMITS = RunLimits(60, 10**11)


def pretend(task, check_ms, matches=(9, 4)):
    """What a run of a task might have measured."""
    (query,) = task.queries
    figures = {
        "triples": 4000 * task.size,
        "matches": {query: list(matches)},
        "read_ms": 5.0,
        "check_ms": check_ms,
        "transform_ms": [1.0, 3.0, 2.0],
        "recheck_ms": [0.5, 0.7, 90.0],
        "tuples_stored": {query: 7},
        "nodes": {query: []},
    }
    return TrainResult("repair", task.size, "rete", task.plan, figures, rss_mb=100.0)


def test_the_experiment_is_that_of_the_paper():
    tasks = protocol.make_tasks()
    assert {(task.queries[0], task.plan) for task in tasks} == {
        *(("RouteSensor", plan) for plan in "ABC"),
        *(("SemaphoreNeighbor", plan) for plan in "ABCDEF"),
    }
    assert {(task.scenario, task.rounds) for task in tasks} == {("repair", 100)}
    assert {task.size for task in tasks} == {2**n for n in range(11)}
    assert protocol.PaperExperiment().repeats == 10
    assert tuple(protocol.LIMITS) == (900, 12_000_000_000)


@pytest.mark.slow
def test_every_layout_finds_the_published_matches():
    experiment = protocol.PaperExperiment(2, NO_LIMITS, lambda task, _: measure(task))
    tasks = protocol.make_tasks([1], ["RouteSensor"], rounds=3, select="fixed:2")
    results = experiment.run(tasks)
    assert [result.plan for result in results] == ["A", "B", "C"]
    for result in results:
        assert result.matches[0] == FIRST_ROUND["repair", 1]["RouteSensor"][0]
        assert result.matches == (12, 6), "two in each of three rounds"
        assert {name: len(times) for name, times in result.phases.items()} == {
            "read": 2, "check": 2, "transformation": 2, "recheck": 2,
        }  # fmt: skip
    assert results[2].tuples_stored > 3 * results[0].tuples_stored


def test_a_run_has_the_median_of_its_rounds_and_a_layout_those_of_its_runs():
    times = iter([30.0, 10.0, 20.0])
    experiment = protocol.PaperExperiment(3, NO_LIMITS, lambda task, _: pretend(task, next(times)))
    (result,) = experiment.run(protocol.make_tasks([1], ["RouteSensor"])[:1])
    assert result.phases == {
        "read": [5.0] * 3,
        "check": [30.0, 10.0, 20.0],
        "transformation": [2.0] * 3,
        "recheck": [0.7] * 3,
    }
    report = experiment.report([result])
    (table,) = report.tables
    cells = {column.header: list(column.cells) for column in table.columns}
    assert cells["check"] == ["20.00 (10.00 to 30.00)"] and cells["matches"] == ["9 → 4"]
    assert report.objects[0]["check_ms"] == [30.0, 10.0, 20.0] and report.notes == []


def test_a_layout_over_its_limit_is_not_tried_on_larger_models():
    tried = []

    def measured(task, limits):
        tried.append((task.plan, task.size))
        if task.plan == "C" and task.size >= 2:
            raise LimitExceededError("too long", f"over {limits.seconds:g} s")
        return pretend(task, 1.0)

    experiment = protocol.PaperExperiment(2, RunLimits(900, 1), measured)
    results = experiment.run(protocol.make_tasks([4, 1, 2], ["RouteSensor"]))
    assert tried.count(("C", 2)) == 1 and ("C", 4) not in tried
    assert tried.count(("A", 4)) == tried.count(("B", 4)) == tried.count(("C", 1)) == 2
    report = experiment.report(results)
    assert report.notes == ["RouteSensor C, size 2: over 900 s; larger models were not tried"]
    lost = [each for each in report.objects if "lost" in each]
    assert lost == [{"query": "RouteSensor", "plan": "C", "size": 2, "lost": "over 900 s"}]
    (row,) = report.plot.rows
    assert [len(row[1].lines[plan]) for plan in "ABC"] == [3, 3, 1]


def test_runs_that_differ_are_an_error():
    matches = iter([(9, 4), (9, 5)])
    experiment = protocol.PaperExperiment(
        2, NO_LIMITS, lambda task, _: pretend(task, 1.0, next(matches))
    )
    with pytest.raises(GraphtideError, match="different matches"):
        experiment.run(protocol.make_tasks([1], ["RouteSensor"])[:1])


def test_nothing_is_drawn_of_runs_that_are_lost():
    lost = [protocol.LayoutResult("RouteSensor", "C", 1, lost="over 1 s")]
    assert protocol.PaperExperiment().report(lost).plot is None


@pytest.mark.slow
def test_both_figures_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    times = iter(range(1, 100))
    experiment = protocol.PaperExperiment(
        2, NO_LIMITS, lambda task, _: pretend(task, float(next(times)))
    )
    plot = experiment.report(experiment.run(protocol.make_tasks([1, 2]))).plot
    _, drawn = write_plot(plot, tmp_path / "figures")
    assert "Figure 10, RouteSensor: check" in drawn.read_text()
    assert "Figure 11, SemaphoreNeighbor: recheck" in drawn.read_text()
    assert plot.rows[0][1].ranges["A"] == [(4000, 1.0, 2.0), (8000, 19.0, 20.0)]


def test_a_process_over_its_time_is_killed():
    with pytest.raises(LimitExceededError, match=r"over 0\.05 s"):
        BENCHMARK.measure_apart(TrainTask("repair", 1, ("RouteSensor",)), RunLimits(0.05, 10**11))


@pytest.mark.slow
def test_a_process_over_its_memory_ends():
    task = TrainTask("repair", 8, ("SemaphoreNeighbor",), "rete", "F")
    with pytest.raises(LimitExceededError, match=r"over 0\.9 GB"):
        BENCHMARK.measure_apart(task, RunLimits(120, 900_000_000))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--protocol", "mine"], 'invalid --protocol "mine"'),
        (["--protocol", "paper", "--together"], 'invalid --protocol "paper"'),
        (["--protocol", "paper", "--scenario", "inject"], 'invalid --protocol "paper"'),
        (["--protocol", "paper", "--queries", "PosLength"], "no layouts of 'PosLength'"),
        (["--protocol", "paper", "--runs", "0"], 'invalid --runs "0"'),
    ],
)
def test_mistakes_are_found_before_anything_is_run(options, problem, capsys, monkeypatch):
    monkeypatch.setattr(Benchmark, "measure_apart", lambda *_: pytest.fail("it was run"))
    assert main(["bench", "train", *options]) == 2
    assert problem in capsys.readouterr().err


def test_the_command_prints_json(capsys, monkeypatch):
    phases = {name: [1.0] for name in ("read", "check", "transformation", "recheck")}
    result = protocol.LayoutResult("RouteSensor", "A", 1, 4000, (9, 4), 7, 100.0, phases)
    monkeypatch.setattr(protocol.PaperExperiment, "run", lambda *_: [result])
    assert main(["bench", "train", "--protocol", "paper", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["check_ms"] == [1.0]
