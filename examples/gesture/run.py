"""Two speakers before a camera; a gesture of the right arm turns the slides.

Prints:

    frame 7: speaker <http://example.org/stage/body0> shows slide 2
    frame 12: speaker <http://example.org/stage/body1> shows slide 3
    frame 19: speaker <http://example.org/stage/body0> shows slide 4
    frame 24: speaker <http://example.org/stage/body1> shows slide 5
    36 frames, 4 gestures
"""

from math import cos, radians, sin
from pathlib import Path

import graphtide as gt

BODY = "http://example.org/body#"
STAGE = "http://example.org/stage/"
FRAME_MS = 40
FRAMES = 36
UPPER, LOWER = 280, 260  # millimetres from shoulder to elbow, and from elbow to hand

# Degrees of the upper and the lower arm, frame by frame: 0 is away from the body, 90 is up.
TURN = [(-60, 10), (-8, 4), (8, 14), (-25, 55), (-40, 165), (-50, 150)]
TURN += [(-65, 20), (-10, 70), (70, 80), (80, 88), (45, 120), (10, 85)]
AT_REST = (-88, -85)
DELAYS = (0, 5)  # frames until each of the bodies begins to turn its arm, twice


def points(upper: float, lower: float) -> dict[str, tuple[int, int]]:
    """Where the points of a body are that the postures ask for, in millimetres."""
    x, y = 200 + UPPER * cos(radians(upper)), 1400 + UPPER * sin(radians(upper))
    hand = x + LOWER * cos(radians(lower)), y + LOWER * sin(radians(lower))
    places = {"head": (0, 1620), "rightShoulder": (200, 1400), "rightElbow": (x, y)}
    return {name: (round(x), round(y)) for name, (x, y) in (places | {"rightHand": hand}).items()}


def arm(frame: int, delay: int) -> tuple[int, int]:
    """The angles of an arm in a frame."""
    step = frame - delay
    return TURN[step % len(TURN)] if 0 <= step < 2 * len(TURN) else AT_REST


slide = 1


def next_slide(speaker: object) -> None:
    global slide  # noqa: PLW0603 - a script with one projector
    slide += 1
    print(f"frame {graph.clock // FRAME_MS}: speaker {speaker} shows slide {slide}")


graph = gt.LiveGraph(tick_ms=1)
program = gt.Program.read(Path(__file__).with_name("gesture.tide"))
running = graph.run(program, functions={"next_slide": next_slide})

shown: dict[tuple[str, str], int] = {}
for frame in range(-1, FRAMES):  # first the bodies at rest, then frame by frame
    with graph.transaction(time=(frame + 1) * FRAME_MS) as changes:
        for number, delay in enumerate(DELAYS):
            for name, place in points(*arm(frame, delay)).items():
                point = f"<{STAGE}body{number}/{name}>"
                changes.insert(f"<{STAGE}body{number}>", f"<{BODY}{name}>", point)
                for axis, value in zip("xy", place, strict=True):
                    old = shown.get((point, axis))
                    if old is not None and old != value:
                        changes.delete(point, f"<{BODY}{axis}>", old)
                    if old != value:
                        changes.insert(point, f"<{BODY}{axis}>", value)
                        shown[point, axis] = value
print(f"{FRAMES} frames, {slide - 1} gestures")
