"""Gestures: the recording, the postures, the events and the whole chain."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import RdfFormat, Store

from graphtide import LiveGraph
from graphtide.bench.gesture.chain import Chain
from graphtide.bench.gesture.events import EVENT_AT, TYPES, atomic_events
from graphtide.bench.gesture.measure import MODES, Result, Task, measure
from graphtide.bench.gesture.model import Stage
from graphtide.bench.gesture.queries import GESTURE, program_text, query_text
from graphtide.bench.gesture.report import PAPER, to_table
from graphtide.bench.gesture.run import make_tasks, run_tasks
from graphtide.bench.gesture.texts import Coder
from graphtide.bench.gesture.vocabulary import BODY, POINTS, POSTURES
from graphtide.bench.gesture.worker import figures
from graphtide.bench.sequence.detector import make_detector
from graphtide.cli.main import main
from graphtide.errors import GraphtideError
from graphtide.lang.tide.program import Program
from graphtide.rdf.formats.change_log import read_changes

STAGE = Stage(bodies=5, cycles=2)

# Which positions of the turn show a posture, as read off the recording.
SHOWN = {"ForwardStart": (1, 2), "ForwardEnd": (4, 5), "BackwardStart": (8, 9)}


def frames_of(stage):
    return list(Coder(stage).frames())


# --- the recording ---


def test_a_body_has_twenty_points():
    assert len(set(POINTS)) == 20


@pytest.mark.parametrize("stage", [Stage(13, 2), Stage(1, 1)])
def test_every_coordinate_changes_in_every_frame(stage):
    for before, after in stage.moves():
        assert before.shape == (stage.bodies, 20, 2)
        assert (before != after).all()


def test_bodies_are_out_of_phase():
    stage = Stage(12, 2)
    middle = stage.positions(15).tolist()
    assert sorted(middle) == list(range(12))
    assert all(abs(a - b) > 1 for a, b in pairwise(middle))


def test_a_frame_takes_out_old_values_and_puts_in_new_ones():
    frames = frames_of(STAGE)
    assert len(frames) == STAGE.frames + 1
    assert len(frames[0]) == STAGE.initial_triples
    graph = LiveGraph(strict=True)  # in which no change may be without effect
    for number, frame in enumerate(frames):
        assert set(frame.coded.time.tolist()) == {40 * number}
        if number:
            assert frame.diff.tolist() == [-1, 1] * (40 * STAGE.bodies)
        graph.apply(frame.changes())
        assert len(graph) == STAGE.initial_triples


def test_each_position_has_its_words():
    assert list(EVENT_AT.values()) == list(TYPES)


# --- postures ---


def test_postures_are_those_of_the_recording():
    """Asked of pyoxigraph, frame by frame."""
    store, live = Store(), LiveGraph()
    watches = {name: live.watch(query_text(name)) for name in POSTURES}
    present = set()
    for number, frame in enumerate(frames_of(STAGE)):
        changes = frame.changes()
        for diff, *triple in zip(
            changes.diff, changes.s.to_pylist(), changes.p.to_pylist(), changes.o.to_pylist(),
            strict=True,
        ):  # fmt: skip
            (present.add if diff > 0 else present.remove)(" ".join(triple))
        store.clear()
        store.load("".join(f"{line} .\n" for line in present), format=RdfFormat.N_TRIPLES)
        live.apply(changes)
        positions = STAGE.positions(number - 1)
        for name in POSTURES:
            wanted = {f"body{b}" for b in np.flatnonzero(np.isin(positions, SHOWN[name]))}
            rows = store.query(query_text(name))
            assert {row["body"].value.rpartition("/")[2] for row in rows} == wanted
            table = watches[name].table(terms=True)["body"].to_pylist()
            assert sorted(text[1:-1].rpartition("/")[2] for text in table) == sorted(wanted)


def one_body(shoulder, elbow, hand, head):
    graph = LiveGraph()
    watches = {name: graph.watch(query_text(name)) for name in POSTURES}
    with graph.transaction() as tx:
        for name, (x, y) in (
            ("rightShoulder", shoulder),
            ("rightElbow", elbow),
            ("rightHand", hand),
            ("head", head),
        ):
            tx.insert("<ex:b>", f"<{BODY}{name}>", f"<ex:{name}>")
            tx.insert(f"<ex:{name}>", f"<{BODY}x>", x)
            tx.insert(f"<ex:{name}>", f"<{BODY}y>", y)
    return {name for name, watch in watches.items() if watch.count()}


def angle(v):
    return math.degrees(math.atan2(v[1], v[0]))


PLACE = st.tuples(st.integers(-400, 400), st.integers(-400, 400))


@settings(deadline=None, max_examples=60)
@given(PLACE, PLACE, PLACE, st.integers(-400, 400))
def test_postures_by_angles(shoulder, elbow, hand, top):
    upper = elbow[0] - shoulder[0], elbow[1] - shoulder[1]
    lower = hand[0] - elbow[0], hand[1] - elbow[1]
    arm = hand[0] - shoulder[0], hand[1] - shoulder[1]
    bent = abs((angle(lower) - angle(upper) + 180) % 360 - 180)
    slope = abs(angle(arm))
    limit, level = math.degrees(math.atan(1 / math.sqrt(7))), math.degrees(math.atan(1 / 3))
    close = min(abs(bent - limit), abs(bent - 90), abs(slope - level))
    if (0, 0) in (upper, lower, arm) or close < 1e-6:
        return  # no angle, or on the very edge
    above = hand[1] > top
    wanted = set()
    if bent < limit and slope < level and not above:
        wanted.add("ForwardStart")
    if bent > 90 and arm[0] < 0 and not above:
        wanted.add("ForwardEnd")
    if bent < limit and above:
        wanted.add("BackwardStart")
    assert one_body(shoulder, elbow, hand, (0, top)) == wanted


# --- events and gestures ---


def test_every_turn_is_one_gesture():
    chain, found = Chain(), []
    for frame in frames_of(STAGE):
        chain.graph.apply(frame.changes())
        columns = chain.listen()
        if columns is not None:
            found += zip(columns.values[:, 0].tolist(), columns.time.tolist(), strict=True)
    assert chain.events == STAGE.atomic_events
    bodies = [chain.graph.terms.text(body).rpartition("/")[2][:-1] for body, _ in found]
    # The posture of the end is lost in the seventh frame of a turn.
    wanted = {
        (f"body{b}", 40 * (delay + 12 * turn + 7))
        for b, delay in enumerate(STAGE.delays.tolist())
        for turn in range(STAGE.cycles)
    }
    assert set(zip(bodies, (time for _, time in found), strict=True)) == wanted
    assert len(found) == STAGE.gestures == 10


def detect(*events):
    """The bodies whose gestures are found in events `(name, body)`, one after the other."""
    (pattern,) = (p for p in Program.parse(program_text()).patterns if p.name == GESTURE)
    detector = make_detector(pattern, TYPES, tick_ms=1)
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
    told = []
    feed = chain.detector.feed
    chain.detector.feed = lambda *batch: told.append(batch) or feed(*batch)
    for frame in frames_of(STAGE):
        chain.graph.apply(frame.changes())
        chain.listen()
    types, values, times = (np.concatenate(column) for column in zip(*told, strict=True))
    names = [chain.graph.terms.text(body)[:-1].rpartition("body")[2] for body in values[:, 0]]
    numbers = np.array(names, np.int64) + 1
    wanted = atomic_events(STAGE)
    got = sorted(zip(times.tolist(), types.tolist(), numbers.tolist(), strict=True))
    assert got == sorted(
        zip(wanted[2].tolist(), wanted[0].tolist(), wanted[1][:, 0].tolist(), strict=True)
    )


# --- files ---


@pytest.mark.parametrize("name", ["log.rdfp", "log.rdfp.gz", "log.parquet", "log.arrow"])
def test_generate_writes_a_log(name, tmp_path, capsys):
    out = tmp_path / name
    assert main(["generate", "gesture", "--bodies", "2", "--cycles", "1", "--out", str(out)]) == 0
    batches = list(read_changes(out))
    stage = Stage(2, 1)
    assert sum(map(len, batches)) == stage.initial_triples + 2 * stage.updates
    graph = LiveGraph()
    watch = graph.watch(query_text("ForwardStart"))
    graph.apply(out)
    assert [(row.time, row.diff) for row in watch.rows()] == [
        (40 * (frame + 1), diff) for frame, diff in ((1, 1), (3, -1), (6, 1), (8, -1))
    ]


def test_generate_writes_a_folder_with_the_program(tmp_path, capsys):
    out = tmp_path / "stage"
    assert main(["generate", "gesture", "--bodies", "1", "--cycles", "1", "--out", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["changes.rdfp", "gesture.tide"]
    assert main(["check", str(out / "gesture.tide"), str(out / "changes.rdfp")]) == 0


@pytest.mark.parametrize(
    "options",
    [["--bodies", "0"], ["--cycles", "0"], ["--out", "log.nt"], ["--format", "ttl"]],
)
def test_generate_refuses(options, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    given_out = [] if "--out" in options else ["--out", "log"]
    assert main(["generate", "gesture", *options, *given_out]) == 2
    assert "hint" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


# --- the benchmark ---


@pytest.mark.parametrize("mode", MODES)
def test_each_mode_finds_all_gestures(mode):
    found = figures(Task(3, mode, enough_s=0.01))
    assert found["matches"] > 0 and found["matches"] % 3 == 0
    assert found["events"] == 6 * found["matches"]
    assert {"name", "bodies", "events", "events_per_s", "matches", "rss_mb", "mode"} <= set(found)


def test_wrong_figures_are_refused(monkeypatch):
    monkeypatch.setattr(Chain, "listen", lambda self: None)
    with pytest.raises(GraphtideError, match="9 gestures, 0 were found"):
        measure(Task(3, "chain, ids", enough_s=0.01))


def figures_of(task, speed):
    return Result(
        "gesture", task.mode, task.bodies, 6, 1, 1, 1.0, 6.0, 1.0, 1.0, speed, 1.0, 1.0, 1
    )


def test_the_search_finds_the_most_bodies(monkeypatch):
    tried = []

    def pretend(task):
        tried.append(task.bodies)
        return figures_of(task, 730 / task.bodies)

    monkeypatch.setattr("graphtide.bench.gesture.measure._chain", pretend)
    found = measure(Task(200, "chain, ids", search=True))
    assert 690 <= found.bodies <= 730 and found.bodies in tried


def test_the_table_has_the_papers_figures():
    results = run_tasks(make_tasks([24], search=False), measure=lambda task: figures_of(task, 2))
    cells = [list(column.cells) for column in to_table(results).columns]
    assert ["145,322"] * 4 in cells and ["1.009"] * 4 in cells
    for bodies, (gestures, atomic, speed) in PAPER.items():
        assert atomic == pytest.approx(6 * gestures, rel=1e-3)  # as the paper says it is worked out
        assert speed == pytest.approx(gestures / bodies / 1000, rel=1e-3)


def test_the_command_prints_json(capsys, monkeypatch):
    monkeypatch.setattr(
        "graphtide.bench.gesture.run.measure_apart", lambda task: figures_of(task, 2)
    )
    assert main(["bench", "gesture", "--bodies", "1,2", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert [each["bodies"] for each in figures[:2]] == [1, 2] and len(figures) == 11


@pytest.mark.parametrize("bodies", ["0", "many", "1,,2", "-3"])
def test_the_command_refuses_what_is_no_number(bodies, capsys):
    assert main(["bench", "gesture", f"--bodies={bodies}"]) == 2
    assert "no numbers of bodies" in capsys.readouterr().err
