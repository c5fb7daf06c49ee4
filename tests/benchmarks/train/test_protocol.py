"""The experiment of paper 1 on layouts, and its two figures."""

from __future__ import annotations

import pytest
from support.train_expected import FIRST_ROUND

from benchmarks.harness import BenchmarkError, LimitExceededError
from benchmarks.report import write_plot
from benchmarks.train import protocol
from benchmarks.train.benchmark import TrainResult, measure


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
    }
    return TrainResult("repair", task.size, "rete", task.plan, figures, rss_mb=100.0)


def test_the_experiment_is_that_of_the_paper():
    tasks = protocol.make_tasks()
    assert {(task.query, task.plan) for task in tasks} == {
        *(("RouteSensor", plan) for plan in "ABC"),
        *(("SemaphoreNeighbor", plan) for plan in "ABCDEF"),
    }
    assert {(task.one_run.scenario, task.rounds, task.runs) for task in tasks} == {
        ("repair", 100, 10)
    }
    assert {task.size for task in tasks} == {2**n for n in range(11)}
    assert {task.limits for task in tasks} == {(900, 12_000_000_000)}


@pytest.mark.slow
def test_every_layout_finds_the_published_matches():
    experiment = protocol.PaperExperiment(lambda task, _: measure(task))
    tasks = protocol.make_tasks([1], ["RouteSensor"], rounds=3, runs=2, select="fixed:2")
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
    experiment = protocol.PaperExperiment(lambda task, _: pretend(task, next(times)))
    (result,) = experiment.run(protocol.make_tasks([1], ["RouteSensor"], runs=3)[:1])
    assert result.phases == {
        "read": [5.0] * 3,
        "check": [30.0, 10.0, 20.0],
        "transformation": [2.0] * 3,
        "recheck": [0.7] * 3,
    }
    report = experiment.report([result])
    (table,) = report.tables
    (row,) = table.rows
    assert (row["check"], row["matches"]) == ("20.00 (10.00 to 30.00)", "9 → 4")
    assert report.notes == []


def test_a_layout_over_its_limit_is_not_tried_on_larger_models():
    tried = []

    def measured(task, limits):
        tried.append((task.plan, task.size))
        if task.plan == "C" and task.size >= 2:
            raise LimitExceededError("too long", f"over {limits.seconds:g} s")
        return pretend(task, 1.0)

    experiment = protocol.PaperExperiment(measured)
    results = experiment.run(protocol.make_tasks([4, 1, 2], ["RouteSensor"], runs=2))
    assert tried.count(("C", 2)) == 1 and ("C", 4) not in tried
    assert tried.count(("A", 4)) == tried.count(("B", 4)) == tried.count(("C", 1)) == 2
    report = experiment.report(results)
    assert report.notes == ["RouteSensor C, size 2: over 900 s; larger models were not tried"]
    assert [(r.plan, r.size) for r in results if r.lost == "over 900 s"] == [("C", 2)]
    (row,) = report.plot.rows
    assert [len(row[1].lines[plan]) for plan in "ABC"] == [3, 3, 1]


def test_runs_that_differ_are_an_error():
    matches = iter([(9, 4), (9, 5)])
    experiment = protocol.PaperExperiment(lambda task, _: pretend(task, 1.0, next(matches)))
    with pytest.raises(BenchmarkError, match="different matches"):
        experiment.run(protocol.make_tasks([1], ["RouteSensor"], runs=2)[:1])


def test_nothing_is_drawn_of_runs_that_are_lost():
    lost = [protocol.LayoutResult("RouteSensor", "C", 1, lost="over 1 s")]
    assert protocol.PaperExperiment().report(lost).plot is None


@pytest.mark.slow
def test_both_figures_are_drawn(tmp_path):
    times = iter(range(1, 100))
    experiment = protocol.PaperExperiment(lambda task, _: pretend(task, float(next(times))))
    plot = experiment.report(experiment.run(protocol.make_tasks([1, 2], runs=2))).plot
    write_plot(plot, tmp_path / "figures.svg")
    drawn = (tmp_path / "figures.svg").read_text()
    assert "Figure 10, RouteSensor: check" in drawn
    assert "Figure 11, SemaphoreNeighbor: recheck" in drawn
    assert plot.rows[0][1].ranges["A"] == [(4000, 1.0, 2.0), (8000, 19.0, 20.0)]
