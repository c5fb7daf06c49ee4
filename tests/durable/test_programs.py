"""Programs, streams and windows come back as they were, wherever a run is interrupted.

The reference is the same schedule on a graph in memory that is never interrupted.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from random import Random

import pytest

import graphtide as gt
from graphtide.durable import state
from oracles import schedules
from oracles.schedule_programs import random_schedule

pytestmark = pytest.mark.slow
RETAINED = ("firings", "complex events", "skipped", "results", "deltas")
"""What is retained of the past: a snapshot does not have it."""


class InterruptedRun(schedules.ScheduledRun):
    """A run on a store that is closed, or left as a crash leaves it, again and again."""

    def __init__(self, schedule, folder, rng, patch):
        self._folder, self._rng, self._opened, self._ready = folder, rng, 0, False
        self.reopened = self.from_snapshots = 0
        with patch.context() as patched:
            patched.setattr(schedules, "LiveGraph", self._open)
            super().__init__(schedule)
        self._ready = True

    def _open(self, **options):
        mode = self._rng.choice(["transaction", "batch", "none"])
        functions = {"f": self._called, "g": self._called_to_write}
        return gt.LiveGraph.open(self._folder, durability=mode, functions=functions, **options)

    def interrupt(self):
        if self._rng.random() < 0.5:
            self.graph.close()
        else:  # a copy of what is on disk, as another process would find it
            self.graph.flush()
            copy = self._folder.with_name(f"{self._folder.name}-{self.reopened}")
            shutil.copytree(self._folder, copy)
            self.graph.close()
            self._folder = copy
        self.graph = self._open()
        journal = self.graph.store.store.journal
        self.from_snapshots += any(s.number == journal.last for s in journal.snapshots())
        self.programs = list(self.graph.programs)
        self.queries = [q for p in self.programs for q in p.queries.values()]
        self.reopened += 1

    def advance(self, to):
        self._maybe()
        super().advance(to)

    def give(self, items, how):
        self._maybe()
        super().give(items, how)

    def _maybe(self):
        if self._rng.random() < 0.15:
            self.interrupt()


def schedule_of(number):
    """A random schedule; callbacks are not there when a store is opened again."""
    return replace(random_schedule(Random(number), items=12), reacting=False)


def give_all(run, rng):
    schedules._give_mixed(run, rng)
    run.graph.close()


@pytest.mark.parametrize("seed", range(0, 32, 8))
def test_replay_leads_to_the_same_firings_tokens_and_windows(tmp_path, monkeypatch, seed):
    monkeypatch.setattr(state, "obstacle", lambda *_: "everything")
    reopened = 0
    for number in range(seed, seed + 8):
        schedule = schedule_of(number)
        wanted = schedules.run_one_by_one(schedule).outcome()
        rng = Random(f"interrupt {number}")
        run = InterruptedRun(schedule, tmp_path / str(number), rng, monkeypatch)
        give_all(run, rng)
        problem = wanted.difference(run.outcome())
        assert not problem, f"{schedule}\n{problem}"
        reopened += run.reopened
    assert reopened


@pytest.mark.parametrize("seed", range(100, 124, 8))
def test_from_snapshots_everything_goes_on_the_same(tmp_path, monkeypatch, seed):
    from_snapshots = 0
    for number in range(seed, seed + 8):
        schedule = schedule_of(number)
        wanted = schedules.run_one_by_one(schedule).outcome()
        rng = Random(f"interrupt {number}")
        run = InterruptedRun(schedule, tmp_path / str(number), rng, monkeypatch)
        give_all(run, rng)
        found = run.outcome()
        for name, lines in wanted.sections.items():
            if name.startswith(RETAINED):
                own = found.sections[name]
                assert lines[len(lines) - len(own) :] == own or name.startswith("deltas"), name
                found.sections[name] = lines
            elif name == "numbers":  # of all transactions, then of the deltas that are retained
                assert found.sections[name][:1] == lines[:1]
                found.sections[name] = lines
        problem = wanted.difference(found)
        assert not problem, f"{schedule}\n{problem}"
        from_snapshots += run.from_snapshots
    assert from_snapshots


EMITS = """
EVENT Seen(?x) AS { ?x <ex:seen> ?y }
EVENT Known(?x) AS { ?x <ex:known> ?y }
RULE Pass ON Seen(?x) THEN EMIT <ex:out> { ?x <ex:known> <ex:now> }
RULE Keep ON Known(?x) THEN INSERT { ?x <ex:is> <ex:kept> }
"""


def test_an_input_that_was_refused_is_no_obstacle(tmp_path):
    with gt.LiveGraph.open(tmp_path) as graph:
        graph.run(gt.Program.parse(EMITS))
        graph.publish([("<ex:a>", "<ex:seen>", 1)], time=5)
        with pytest.raises(gt.GraphtideError, match="lasts for 9 ticks"):
            graph.publish([("<ex:b>", "<ex:seen>", 1)], time=20, duration=9)
        with pytest.raises(gt.GraphtideError, match="backwards"):
            graph.advance(3)
        graph.stream("<ex:late>", lateness=4)
        with pytest.raises(gt.GraphtideError, match="already has lateness"):
            graph.stream("<ex:late>", lateness=5)
        assert graph.clock == 5  # nothing of what was refused has happened
        now = sorted(map(str, graph.quads()))
    for path in tmp_path.glob("snapshot-*"):
        path.unlink()
    with gt.LiveGraph.open(tmp_path) as graph:
        assert sorted(map(str, graph.quads())) == now
        assert graph.clock == 5


def test_streams_that_only_rules_name_go_on_from_a_snapshot(tmp_path):
    memory = gt.LiveGraph()
    memory.run(gt.Program.parse(EMITS))
    with gt.LiveGraph.open(tmp_path) as graph:
        graph.run(gt.Program.parse(EMITS))
        for each in (memory, graph):
            each.publish([("<ex:a>", "<ex:seen>", 1)], time=5)
        assert graph.checkpoint()
    with gt.LiveGraph.open(tmp_path) as graph:
        for each in (memory, graph):
            each.publish([("<ex:b>", "<ex:seen>", 1)], time=9)
            each.advance(12)
        assert sorted(map(str, graph.quads())) == sorted(map(str, memory.quads()))
        for name in ("watermark", "received", "next_number"):
            found, wanted = (getattr(g.stream("<ex:out>"), name) for g in (graph, memory))
            assert found == wanted
        assert graph.programs[0].fired == memory.programs[0].fired == 4


@pytest.mark.parametrize("snapshot", [False, True])
def test_two_programs_have_two_names(tmp_path, snapshot):
    """A snapshot has their states by name: another kind of program could not go on with them."""
    program = gt.Program.parse(
        "EVENT A(?x) AS { ?x <ex:a> ?y } RULE R ON A(?x) THEN INSERT { ?x <ex:b> 1 }"
    )
    with gt.LiveGraph.open(tmp_path) as graph:
        first = graph.run(program, name="p")
        with pytest.raises(gt.GraphtideError, match="already running"):
            graph.run(program, name="p", firing="manual")
        first.close()
        graph.run(program, name="p", firing="manual")
        if snapshot:
            graph.checkpoint()
    with gt.LiveGraph.open(tmp_path) as graph:
        assert [each.name for each in graph.programs] == ["p"]
