"""`bench all`: every line has its figure, and each job checks its answer."""

from __future__ import annotations

import json

import pytest

from benchmarks import table, table_engine
from graphtide.cli.main import main


def test_each_line_is_of_a_job():
    assert {line.job for line in table.LINES} == set(table.SIZES)
    own = {job for job in table.SIZES if job not in table.PEERS}
    measured_elsewhere = {job for job in own if job.startswith(("RouteSensor", "Alarm"))}
    assert set(table_engine.JOBS) >= own - measured_elsewhere


@pytest.mark.parametrize(
    "job", ["groups", "reach", "sequence, calls", "NO EVENT", "absence", "window, calls"]
)
@pytest.mark.slow
def test_a_job_has_its_figures(job):
    result = table.measure(table.TableTask(job, 400))
    expected = {line.figure for line in table.LINES if line.job == job}
    assert expected <= result.figures.keys()
    assert all(result.figures[name] > 0 for name in expected)


def test_a_wrong_answer_is_an_error(monkeypatch):
    monkeypatch.setattr(table_engine, "_matches", lambda _: -1)
    with pytest.raises(table.rules.GraphtideError, match="expected -1"):
        table.measure(table.TableTask("sequence, calls", 100))


def test_the_report_says_which_aims_are_met(monkeypatch, capsys):
    monkeypatch.setattr(
        table.Benchmark, "run", lambda self, tasks, _: [self.measure_here(t) for t in tasks[:0]]
    )
    assert main(["bench", "all", "--quick", "--no-peers", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lines"] == []
    assert main(["bench", "all", "--jobs", "groups; nothing"]) == 2
    assert "the jobs are RouteSensor, ids; " in capsys.readouterr().err
    slow = table.TableResult("groups", 9, {"load": 1.0, "update, median": 1.0}, busy=1.0)
    load, update = table.report([slow]).objects["lines"]
    assert (load["met"], update["met"]) == (False, True)
