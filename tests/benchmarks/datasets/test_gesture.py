"""The gesture dataset: its recording and its postures."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import RdfFormat, Store

from benchmarks.datasets.gesture import GestureEncoder
from benchmarks.datasets.gesture_scene import EVENT_AT, POINTS, TYPES, GestureScene
from benchmarks.datasets.queries import BODY, POSTURES, query_text
from graphtide import LiveGraph

SCENE = GestureScene(bodies=5, cycles=2)

# Which positions of the turn show a posture, as read off the recording.
SHOWN = {"ForwardStart": (1, 2), "ForwardEnd": (4, 5), "BackwardStart": (8, 9)}


def frames_of(scene):
    return list(GestureEncoder(scene).frames())


# --- the recording ---


def test_a_body_has_twenty_points():
    assert len(set(POINTS)) == 20


@pytest.mark.parametrize("scene", [GestureScene(13, 2), GestureScene(1, 1)])
def test_every_coordinate_changes_in_every_frame(scene):
    for before, after in scene.moves():
        assert before.shape == (scene.bodies, 20, 2)
        assert (before != after).all()


def test_bodies_are_out_of_phase():
    scene = GestureScene(12, 2)
    middle = scene.positions(15).tolist()
    assert sorted(middle) == list(range(12))
    assert all(abs(a - b) > 1 for a, b in pairwise(middle))


def test_a_frame_takes_out_old_values_and_puts_in_new_ones():
    frames = frames_of(SCENE)
    assert len(frames) == SCENE.frames + 1
    assert len(frames[0]) == SCENE.initial_triples
    graph = LiveGraph(strict=True)  # in which no change may be without effect
    for number, frame in enumerate(frames):
        assert set(frame.triples.time.tolist()) == {40 * number}
        if number:
            assert frame.diff.tolist() == [-1, 1] * (40 * SCENE.bodies)
        graph.apply(frame.changes())
        assert len(graph) == SCENE.initial_triples


def test_each_position_has_its_words():
    assert list(EVENT_AT.values()) == list(TYPES)


# --- postures ---


def test_postures_are_those_of_the_recording():
    """Asked of pyoxigraph, frame by frame."""
    store, live = Store(), LiveGraph()
    watches = {name: live.watch(query_text("gesture", name)) for name in POSTURES}
    present = set()
    for number, frame in enumerate(frames_of(SCENE)):
        changes = frame.changes()
        for diff, *triple in zip(
            changes.diff, changes.s.to_pylist(), changes.p.to_pylist(), changes.o.to_pylist(),
            strict=True,
        ):  # fmt: skip
            (present.add if diff > 0 else present.remove)(" ".join(triple))
        store.clear()
        store.load("".join(f"{line} .\n" for line in present), format=RdfFormat.N_TRIPLES)
        live.apply(changes)
        positions = SCENE.positions(number - 1)
        for name in POSTURES:
            wanted = {f"body{b}" for b in np.flatnonzero(np.isin(positions, SHOWN[name]))}
            rows = store.query(query_text("gesture", name))
            assert {row["body"].value.rpartition("/")[2] for row in rows} == wanted
            table = watches[name].table(terms=True)["body"].to_pylist()
            assert sorted(text[1:-1].rpartition("/")[2] for text in table) == sorted(wanted)


def one_body(shoulder, elbow, hand, head):
    graph = LiveGraph()
    watches = {name: graph.watch(query_text("gesture", name)) for name in POSTURES}
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
