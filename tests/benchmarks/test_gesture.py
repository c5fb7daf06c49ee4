"""The gesture benchmark: events, the whole chain, and its figures."""

import numpy as np
import pytest

from benchmarks import gesture
from benchmarks.datasets.gesture import GestureEncoder
from benchmarks.datasets.gesture_scene import TYPES, GestureScene, atomic_events
from benchmarks.datasets.queries import GESTURE, program_text
from benchmarks.gesture import PAPER, Chain, GestureResult, GestureTask, measure, report
from benchmarks.harness import BenchmarkError
from benchmarks.sequence import pattern_detector
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


def test_wrong_figures_are_refused(monkeypatch):
    monkeypatch.setattr(Chain, "detect", lambda self: None)
    with pytest.raises(BenchmarkError, match="9 gestures, 0 were found"):
        measure(GestureTask(3, "chain, ids", enough_s=0.01))


def figures_of(task, speed):
    return GestureResult(
        found_max=False, mode=task.mode, bodies=task.bodies, events=6, matches=1, frames=1,
        seconds=1.0, events_per_s=6.0, matches_per_s=1.0, updates_per_s=1.0, speed=speed,
        slowest_ms=1.0, busy=1.0, rss_mb=1,
    )  # fmt: skip


def test_the_search_finds_the_most_bodies(monkeypatch):
    tried = []

    def pretend(task):
        tried.append(task.bodies)
        return figures_of(task, 730 / task.bodies)

    monkeypatch.setattr(gesture, "_measure_chain", pretend)
    found = measure(GestureTask(200, "chain, ids", search=True))
    assert 690 <= found.bodies <= 730 and found.bodies in tried


def test_the_table_has_the_papers_figures():
    (table,) = report([figures_of(GestureTask(24, "events"), 2)]).tables
    assert table.rows[0]["paper: atomic/s"] == 145_322
    assert table.rows[0]["paper: × 25 FPS"] == 1.009
    for bodies, (gestures, atomic, speed) in PAPER.items():
        assert atomic == pytest.approx(6 * gestures, rel=1e-3)  # as the paper says it is worked out
        assert speed == pytest.approx(gestures / bodies / 1000, rel=1e-3)
