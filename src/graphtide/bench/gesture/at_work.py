"""AtWork: the whole program on a live graph, as its user would run it, with a rule for gestures."""

from __future__ import annotations

from typing import Final

from graphtide.datasets.queries import program_text
from graphtide.engine import LiveGraph
from graphtide.rules import run

RULE: Final = "RULE NextSlide ON Forward(?body) THEN CALL next_slide(?body)\n"


class AtWork:
    """A live graph on which the program runs; its rule counts the gestures.

    >>> from graphtide.datasets.gesture_scene import GestureScene
    >>> from graphtide.datasets.gesture import GestureEncoder
    >>> program = AtWork()
    >>> for frame in GestureEncoder(GestureScene(bodies=2, cycles=1)).frames():
    ...     program.graph.apply(frame.changes())
    >>> program.gestures
    2
    """

    def __init__(self) -> None:
        self.graph = LiveGraph(tick_ms=1)
        self.gestures = 0
        self.running = run(
            program_text() + RULE, self.graph, functions={"next_slide": self._next_slide}
        )

    def _next_slide(self, _body: object) -> None:
        self.gestures += 1

    @property
    def events(self) -> int:
        """Atomic events as the paper counts them: six for each gesture."""
        return 6 * self.gestures

    def listen(self) -> None:
        """Nothing: rules fire as soon as a transaction is through."""
