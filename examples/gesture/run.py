"""Two speakers before a camera; a gesture of the right arm turns the slides.

Prints:

    frame 7: speaker <http://example.org/stage/body0> shows slide 2
    frame 12: speaker <http://example.org/stage/body1> shows slide 3
    frame 19: speaker <http://example.org/stage/body0> shows slide 4
    frame 24: speaker <http://example.org/stage/body1> shows slide 5
    2,880 new coordinates, 4 gestures
"""

from pathlib import Path

import graphtide as gt
from benchmarks.datasets.gesture import GestureEncoder
from benchmarks.datasets.gesture_scene import FRAME_MS, GestureScene

slide = 1


def next_slide(speaker: object) -> None:
    global slide  # noqa: PLW0603 - a script with one projector
    slide += 1
    print(f"frame {graph.clock // FRAME_MS}: speaker {speaker} shows slide {slide}")


graph = gt.LiveGraph(tick_ms=1)
program = gt.Program.read(Path(__file__).with_name("gesture.tide"))
running = graph.run(program, functions={"next_slide": next_slide})

stage = GestureScene(bodies=2, cycles=2)
for frame in GestureEncoder(stage).frames():  # first the bodies, then frame by frame
    graph.apply(frame.changes())
print(f"{stage.updates:,} new coordinates, {slide - 1} gestures")
