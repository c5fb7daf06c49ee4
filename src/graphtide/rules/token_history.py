"""TokenHistory: a way back to the tokens that a pattern had when a cascade began.

Tokens are laid down now and then, and what came since is kept: the way back is to take up those
tokens and to go through it again. So a mark costs nothing, however many tokens there are, and
laying them down costs little for each event, as it is done once for many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphtide.events.columns import FoundColumns
    from graphtide.events.detect import AnyDetector
    from graphtide.events.token import Found
    from graphtide.events.token_engine import SavedDetector
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.kernel.tokens import Saved

LEAST = 1024
"""Events that are gone through again at most, if there are few tokens; else two for each token."""


class TokenHistory:
    """A detector, and what has come to it since its tokens were last laid down."""

    def __init__(self, detector: AnyDetector) -> None:
        self.detector = detector
        self._saved: Saved | SavedDetector | None = None
        self._now: int | None = None
        self._since: list[tuple[Ints, Ints, Longs] | int] = []
        self._events = 0
        self._most = 0

    def feed(self, types: Ints, values: Ints, times: Longs) -> FoundColumns:
        """Let the detector take in events."""
        if self._saved is not None:
            self._since.append((types, values, times))
            self._events += len(times)
        return self.detector.feed(types, values, times)

    def advance(self, to: int) -> list[Found]:
        """Let times before `to` be over; events may still come at the last of them."""
        if self._saved is not None:
            self._since.append(to)
            self._events += 1
        return self._advance(to)

    def _advance(self, to: int) -> list[Found]:
        now = self.detector.now
        found = self.detector.advance(to)
        self.detector.now = to - 1 if now is None else max(now, to - 1)
        return found

    def begin(self) -> None:
        """Nobody comes back to where it was; too long a history is dropped."""
        if self._events > self._most:
            self._saved, self._events = None, 0
            self._since.clear()

    def mark(self) -> int:
        """The state of now, to come back to, until `begin`."""
        if self._saved is None:
            self._saved, self._now = self.detector.save(), self.detector.now
            self._most = max(LEAST, 2 * len(self._saved.tokens))
        return len(self._since)

    def back_to(self, mark: int) -> None:
        """Come back to a state."""
        assert self._saved is not None  # noqa: S101 - there was a mark
        self.detector.load(self._saved)  # type: ignore[arg-type] # it is the detector's own
        self.detector.now = self._now
        del self._since[mark:]
        for each in self._since:
            if isinstance(each, int):
                self._advance(each)
            else:
                self.detector.feed(*each)
