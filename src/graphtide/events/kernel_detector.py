"""KernelDetector: a deterministic pattern, run by the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.errors import GraphtideError
from graphtide.events.columns import FoundColumns
from graphtide.events.configuration import Configuration, Reader
from graphtide.events.kernel_tables import kernel_automaton
from graphtide.events.tables import make_tables
from graphtide.events.token import NEVER, Found, Token
from graphtide.kernel.token_tables import BLOCKED, FIELDS, ORDER, STARTED, STATE
from graphtide.kernel.tokens import TokenTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphtide.events.determine import Deterministic
    from graphtide.kernel.tokens import Matches, Saved


class KernelDetector:
    """Finds the complex events of one pattern; the same ones as `Detector`, but faster.

    >>> from graphtide.events.compile import compile_pattern
    >>> from graphtide.events.determine import determine
    >>> from graphtide.lang.event_algebra import Atom, Follows, PatternDeclaration
    >>> body = Follows((Atom("A", ()), Atom("B", ())))
    >>> pattern = PatternDeclaration("P", (), body, "CHRONICLE", (), 1)
    >>> form = determine(compile_pattern(pattern, {"A": 0, "B": 1}, lambda term: 1))
    >>> detector = KernelDetector(form)
    >>> detector.feed(np.array([0, 1]), np.zeros((2, 0)), np.array([10, 12])).time.tolist()
    [12]
    """

    def __init__(self, form: Deterministic) -> None:
        self.automaton = form.automaton
        self.now: int | None = None
        self._form = form
        self._kernel = kernel_automaton(form, make_tables(form))
        self.table = TokenTable(self._kernel)
        self._numbers = _known_types(form)

    @property
    def reader(self) -> Reader:
        """What the words of `explain` need to know."""
        return Reader(self.automaton)

    def step(self, type: int, values: tuple[int, ...], time: int) -> list[Found]:  # noqa: A002
        """Offers an event, after all timers before it; what became complete, in order."""
        row = np.array([values], np.int32).reshape(1, len(values))
        return _rows(self.feed(np.array([type]), row, np.array([time])))

    def feed(
        self, types: NDArray[np.integer], values: NDArray[np.integer], times: NDArray[np.integer]
    ) -> FoundColumns:
        """Many events at once, in order of time: a row of values each, as wide as the widest."""
        if len(times):
            self._pass(int(times[0]))
            if len(times) > 1 and (np.diff(times) < 0).any():
                at = int(np.argmax(np.diff(times) < 0))
                self._refuse(int(times[at]), int(times[at + 1]))
            self.now = int(times[-1])
        known = self._numbers[types]
        wide = np.ascontiguousarray(values, np.int32)
        return _columns(self.table.feed(known, wide, np.asarray(times, np.int64)))

    def advance(self, to: int) -> list[Found]:
        """Moves time on: timers that end before `to` fire."""
        self._pass(to)
        self.now = to
        return _rows(_columns(self.table.advance(to)))

    def save(self) -> Saved:
        """The tokens, to be loaded again later, or elsewhere."""
        return self.table.save()

    def load(self, saved: Saved) -> None:
        """Have the tokens that were saved; ids have to mean the same as then."""
        self.table.load(saved)
        self.now = int(saved.counts[0]) if saved.counts[1] else self.now

    def next_time(self) -> int:
        """When the next time is over that a token waits for, or later if there is none."""
        due = self.table.next_due
        return NEVER if due is None else due

    def _pass(self, to: int) -> None:
        if self.now is not None and to < self.now:
            self._refuse(self.now, to)

    def _refuse(self, before: int, after: int) -> None:
        raise GraphtideError(
            f"time went back from {before} to {after}",
            hint="events have to be in order of time; streams can put them in order",
        )

    def tokens(self) -> list[Token]:
        """The live instances, the oldest first."""
        zones = self._kernel.zones
        found = []
        for row in self.table.rows().tolist():
            entries, values = row[FIELDS : FIELDS + zones], row[FIELDS + zones :]
            spoilt = frozenset() if not row[BLOCKED] else self._spoilt(row[STATE], row[BLOCKED])
            configurations = [
                Configuration(position, tuple(values), tuple(entries), 0, spoilt)
                for position in self._form.states[row[STATE]]
            ]
            found.append(Token(row[ORDER], row[STARTED], (), [], configurations))
        return found

    def _spoilt(self, state: int, blocked: int) -> frozenset[int]:
        """The NOTs of the edges that are blocked."""
        moves = enumerate(self._form.moves[state])
        closed = [move for bit, move in moves if blocked >> bit & 1]
        return frozenset(n for move in closed for n in move.members[0].nots)


def _known_types(form: Deterministic) -> NDArray[np.int32]:
    """The number of each type, -1 for those that the pattern does not name."""
    named = {letter.type for letter in form.automaton.letters()}
    numbers = [t if t in named else -1 for t in range(len(form.automaton.types))]
    return np.array(numbers, np.int32)


def _columns(matches: Matches) -> FoundColumns:
    first = np.concatenate([np.zeros(1, np.int64), matches.used_to])
    values = matches.values.astype(np.int64)
    return FoundColumns(values, matches.times, matches.started, matches.at, first, matches.used)


def _rows(columns: FoundColumns) -> list[Found]:
    firsts, used = columns.first_used.tolist(), columns.used.tolist()
    rows = zip(columns.values.tolist(), columns.time.tolist(), columns.start.tolist(), strict=True)
    return [
        Found(tuple(values), time, start, tuple(used[firsts[i] : firsts[i + 1]]))
        for i, (values, time, start) in enumerate(rows)
    ]
