"""The rules benchmark: its events, its expected firings, and that all ways agree on them."""

import json

import pytest

from benchmarks.harness import Benchmark
from benchmarks.rules import BENCHMARK, RulesResult, has_peer, make_tasks, make_workload, report
from graphtide.cli.main import main


def by_hand(workload):
    """AlarmConfirmation from its words: every confirmation with every alarm."""
    events = list(
        zip(
            *(
                c.tolist()
                for c in (workload.confirms, workload.subject, workload.about, workload.time)
            ),
            strict=True,
        )
    )
    alarms = [(s, e, t) for confirms, s, e, t in events if not confirms]
    return sum(
        alarm == about and 1 <= time - before <= 5 and workload.active[equipment]
        for confirms, _, about, time in events
        if confirms
        for alarm, equipment, before in alarms
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_the_expected_firings_are_those_of_the_rule(seed):
    workload = make_workload(20, 700, seed)
    assert workload.expected()[0] == by_hand(workload) > 50
    assert workload.first(300).expected()[0] == by_hand(workload.first(300))


@pytest.mark.slow
def test_all_ways_fire_the_same(capsys):
    results = BENCHMARK.run(make_tasks([30], 2000, 0))
    ways = ["ids", "texts", "calls", "clipspy"]
    assert [r.way for r in results] == (ways if has_peer() else ways[:3])
    assert {r.firings for r in results} == {make_workload(30, 2000, 0).expected()[0]}
    assert [o["times_clipspy"] for o in report(results).objects][-1] == (
        1.0 if has_peer() else None
    )


def test_the_command_prints_json(monkeypatch, capsys):
    given = [RulesResult("ids", 10, 9, 400, 1, 1.0), RulesResult("clipspy", 10, 9, 20, 1, 1.0)]
    monkeypatch.setattr(Benchmark, "run", lambda *_: given)
    assert main(["bench", "rules", "--json"]) == 0
    (ours, _) = json.loads(capsys.readouterr().out)
    assert ours["times_clipspy"] == 20.0
    assert report(given).tables[0].row_count == 2


def test_sizes_that_are_none(capsys):
    assert main(["bench", "rules", "--sizes", "many"]) != 0
    assert 'invalid --sizes "many"' in capsys.readouterr().err
