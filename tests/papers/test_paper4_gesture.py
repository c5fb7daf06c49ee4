"""Paper 4, 7.1: the angle of the arm is smoothed by a moving average before postures go by it."""

import numpy as np
import pytest

from benchmarks.datasets.gesture import GestureEncoder
from benchmarks.datasets.gesture_scene import ANGLES, GestureScene, MovingAverage, arm_angles
from benchmarks.datasets.queries import BODY, program_text
from benchmarks.gesture import ProgramChain
from graphtide import LiveGraph
from graphtide.lang.tide.program import Program


def test_the_angle_is_that_between_upper_and_lower_arm():
    scene = GestureScene(bodies=1, cycles=1)
    for position, (upper, lower) in enumerate(ANGLES[:12]):
        between = abs(upper - lower)
        between = min(between, 360 - between)
        (measured,) = arm_angles(scene.coordinates(position))
        assert abs(measured - between) <= 1, "coordinates are whole millimetres"


@pytest.mark.parametrize(("width", "expected"), [
    (1, [10, 10, 100, 10, 10, 10]),
    (2, [10, 10, 55, 55, 10, 10]),
    (3, [10, 10, 40, 40, 40, 10]),
])  # fmt: skip
def test_the_average_of_the_last_values(width, expected):
    average = MovingAverage(width)
    found = [average.add(np.array([v])).item() for v in (10, 10, 100, 10, 10, 10)]
    assert found == expected


def test_the_average_is_that_of_each_body():
    average = MovingAverage(2)
    average.add(np.array([0, 90]))
    assert average.add(np.array([10, 30])).tolist() == [5, 60]


def test_smoothed_frames_have_one_angle_of_each_arm():
    scene = GestureScene(bodies=3, cycles=1)
    graph = LiveGraph(strict=True)
    watch = graph.watch(f"SELECT ?elbow ?angle {{ ?elbow <{BODY}angle> ?angle }}")
    for frame in GestureEncoder(scene, smooth=2).frames():
        graph.apply(frame.changes())
        assert watch.count() == scene.bodies


def test_events_of_a_smoothed_turn():
    """Angles of the turn: 70 12 6 80 155 160 85 80 10 8 75 75; below 21 is stretched, over 90 bent.

    The means of two are 41 9 43 118 158 122 82 45 9 42: the arm is found stretched one frame later
    than it is, and lost in the frame in which the hand or the angle leaves its range.
    """
    chain = ProgramChain(smoothed=True)
    seen = []
    for name in ("ForwardStart", "ForwardEnd", "BackwardStart"):
        query = chain.running.queries[name]
        query.on_appear(lambda row, name=name: seen.append((row.time // 40 - 1, "+", name)))
        query.on_disappear(lambda row, name=name: seen.append((row.time // 40 - 1, "-", name)))
    for frame in GestureEncoder(GestureScene(bodies=1, cycles=1), smooth=2).frames():
        chain.graph.apply(frame.changes())
    assert seen == [
        (2, "+", "ForwardStart"),
        (3, "-", "ForwardStart"),
        (4, "+", "ForwardEnd"),
        (6, "-", "ForwardEnd"),
        (9, "+", "BackwardStart"),
        (10, "-", "BackwardStart"),
    ]
    assert chain.gestures == 1


@pytest.mark.parametrize(("width", "kept"), [(1, False), (4, True)])
def test_an_outlier_does_not_end_a_posture(width, kept):
    """The arm is held stretched; in one frame the camera sees it bent by 60 degrees."""
    graph = LiveGraph()
    (start,) = (
        q for q in Program.parse(program_text(smoothed=True)).queries if q.name == "ForwardStart"
    )
    posture = graph.watch(start.text)
    point = "<http://example.org/{}>".format
    for name, x, y in (
        ("rightHand", 500, 0),
        ("rightElbow", 250, 0),
        ("rightShoulder", 0, 0),
        ("head", 0, 300),
    ):
        graph.insert(point("body"), f"<{BODY}{name}>", point(name))
        graph.insert(point(name), f"<{BODY}x>", x)
        graph.insert(point(name), f"<{BODY}y>", y)
    average, before, counts = MovingAverage(width), None, []
    for angle in (4, 4, 4, 4, 60, 4, 4):
        after = average.add(np.array([angle])).item()
        with graph.transaction() as change:
            if before is not None:
                change.delete(point("rightElbow"), f"<{BODY}angle>", before)
            change.insert(point("rightElbow"), f"<{BODY}angle>", after)
        before = after
        counts.append(posture.count())
    assert counts == ([1] * 7 if kept else [1, 1, 1, 1, 0, 1, 1])
