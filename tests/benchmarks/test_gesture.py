"""The gesture benchmark: events, the whole chain, and its figures."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from benchmarks.datasets.gesture import GestureEncoder
from benchmarks.datasets.gesture_scene import TYPES, GestureScene, atomic_events
from benchmarks.datasets.queries import GESTURE, program_text
from benchmarks.gesture import (
    BENCHMARK,
    MODES,
    PAPER,
    Chain,
    GestureResult,
    GestureTask,
    make_tasks,
    measure,
    report,
)
from benchmarks.harness import Benchmark
from benchmarks.sequence import pattern_detector
from graphtide.cli.main import main
from graphtide.errors import GraphtideError
from graphtide.lang.tide.program import Program

SCENE = GestureScene(bodies=5, cycles=2)


def frames_of(scene):
    return list(GestureEncoder(scene).frames())


# --- events and gestures ---


def test_every_turn_is_one_gesture():
    chain, found = Chain(), []
    for frame in frames_of(SCENE):
        chain.graph.apply(frame.changes())
        columns = chain.detect()
        if columns is not None:
            found += zip(columns.values[:, 0].tolist(), columns.time.tolist(), strict=True)
    assert chain.events == SCENE.atomic_events
    bodies = [chain.graph.terms.text(body).rpartition("/")[2][:-1] for body, _ in found]
    # The posture of the end is lost in the seventh frame of a turn.
    wanted = {
        (f"body{b}", 40 * (delay + 12 * turn + 7))
        for b, delay in enumerate(SCENE.delays.tolist())
        for turn in range(SCENE.cycles)
    }
    assert set(zip(bodies, (time for _, time in found), strict=True)) == wanted
    assert len(found) == SCENE.gestures == 10


def detect(*events):
    """The bodies whose gestures are found in events `(name, body)`, one after the other."""
    (pattern,) = (p for p in Program.parse(program_text()).patterns if p.name == GESTURE)
    detector = pattern_detector(pattern, TYPES, tick_ms=1)
    found = []
    for time, (name, body) in enumerate(events):
        found += [one.values[0] for one in detector.step(TYPES[name], (body,), time)]
    return found


FORWARD = ["StartFound", "StartLost", "EndFound", "EndLost"]


@pytest.mark.parametrize("at", range(5))
def test_noise_of_the_same_body_breaks_the_gesture(at):
    mine = [(name, 1) for name in FORWARD]
    noisy = [*mine[:at], ("BackFound", 1), *mine[at:]]
    assert detect(*noisy) == ([1] if at in (0, 4) else [])


@pytest.mark.parametrize("at", range(5))
def test_noise_of_another_body_does_not(at):
    mine = [(name, 1) for name in FORWARD]
    assert detect(*mine[:at], ("BackFound", 2), ("EndFound", 2), *mine[at:]) == [1]


def test_two_bodies_at_once():
    assert detect(*((name, body) for name in FORWARD for body in (1, 2))) == [1, 2]


def test_atomic_events_are_those_of_the_queries():
    chain = Chain()
    fed = []
    feed = chain.detector.feed
    chain.detector.feed = lambda *batch: fed.append(batch) or feed(*batch)
    for frame in frames_of(SCENE):
        chain.graph.apply(frame.changes())
        chain.detect()
    types, values, times = (np.concatenate(column) for column in zip(*fed, strict=True))
    names = [chain.graph.terms.text(body)[:-1].rpartition("body")[2] for body in values[:, 0]]
    numbers = np.array(names, np.int64) + 1
    wanted = atomic_events(SCENE)
    got = sorted(zip(times.tolist(), types.tolist(), numbers.tolist(), strict=True))
    assert got == sorted(
        zip(wanted[2].tolist(), wanted[0].tolist(), wanted[1][:, 0].tolist(), strict=True)
    )


# --- the benchmark ---


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.slow
def test_each_mode_finds_all_gestures(mode):
    found = asdict(BENCHMARK.measure_here(GestureTask(3, mode, enough_s=0.01)))
    assert found["matches"] > 0 and found["matches"] % 3 == 0
    assert found["events"] == 6 * found["matches"]
    assert {"name", "bodies", "events", "events_per_s", "matches", "rss_mb", "mode"} <= set(found)


def test_wrong_figures_are_refused(monkeypatch):
    monkeypatch.setattr(Chain, "detect", lambda self: None)
    with pytest.raises(GraphtideError, match="9 gestures, 0 were found"):
        measure(GestureTask(3, "chain, ids", enough_s=0.01))


def figures_of(task, speed):
    return GestureResult(
        "gesture", task.mode, task.bodies, 6, 1, 1, 1.0, 6.0, 1.0, 1.0, speed, 1.0, 1.0, 1
    )


def test_the_search_finds_the_most_bodies(monkeypatch):
    tried = []

    def pretend(task):
        tried.append(task.bodies)
        return figures_of(task, 730 / task.bodies)

    monkeypatch.setattr("benchmarks.gesture._measure_chain", pretend)
    found = measure(GestureTask(200, "chain, ids", search=True))
    assert 690 <= found.bodies <= 730 and found.bodies in tried


def test_the_table_has_the_papers_figures():
    results = [figures_of(task, 2) for task in make_tasks([24], search=False)]
    (table,) = report(results).tables
    cells = [list(column.cells) for column in table.columns]
    assert ["145,322"] * 5 in cells and ["1.009"] * 5 in cells
    for bodies, (gestures, atomic, speed) in PAPER.items():
        assert atomic == pytest.approx(6 * gestures, rel=1e-3)  # as the paper says it is worked out
        assert speed == pytest.approx(gestures / bodies / 1000, rel=1e-3)


def test_the_command_prints_json(capsys, monkeypatch):
    monkeypatch.setattr(Benchmark, "measure_apart", lambda _, task: figures_of(task, 2))
    assert main(["bench", "gesture", "--sizes", "1,2", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert [each["bodies"] for each in figures[:2]] == [1, 2] and len(figures) == 14


@pytest.mark.parametrize("bodies", ["0", "many", "1,,2", "-3"])
def test_the_command_refuses_what_is_no_number(bodies, capsys):
    assert main(["bench", "gesture", f"--sizes={bodies}"]) == 2
    assert "invalid --sizes" in capsys.readouterr().err
