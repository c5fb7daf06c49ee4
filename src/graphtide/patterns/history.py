"""TokenHistory: the past of a detector, for rollbacks and for events that are taken back.

Tokens are saved now and then, together with the input since: a rollback loads the saved tokens and
replays the input. So a savepoint costs nothing, however many tokens there are, and saving costs
little for each event, as it is done once for many. An event is retracted in the same way: the input
since the last save before it is replayed without it.
"""

from __future__ import annotations

from collections import deque
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from graphtide.patterns.detector import AnyDetector, without_users
from graphtide.patterns.event_rows import EventRows
from graphtide.patterns.saved import load_tokens, save_tokens, saved_of, saved_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from graphtide.kernel.batch import Ints, Longs
    from graphtide.kernel.tokens.token_table import SavedTokens
    from graphtide.patterns.general import MatchColumns, SavedDetector
    from graphtide.patterns.tokens import PatternMatch
    from graphtide.rdf.dictionary import TermDictionary

MIN_HISTORY = 1024
"""Most events that are replayed if there are few tokens; else it is two for each token."""

MAX_RETRACTABLE = 1 << 16
"""The last events of a pattern that can surely be taken back."""


class SavedInput(NamedTuple):
    """Saved tokens, the detector's time, and how many entries and rows of input came before."""

    tokens: SavedTokens | SavedDetector
    now: int | None
    first: int
    rows: int


class HistorySavepoint(NamedTuple):
    """How many entries of input, retractions, and rows of input there had been."""

    entries: int
    retracted: int
    rows: int


class TokenHistory:
    """A detector with its saved tokens, and the input since they were saved.

    With `retracts`, the input is retained for retractions, too.
    """

    def __init__(self, detector: AnyDetector, *, retracts: bool = False) -> None:
        self.detector = detector
        self._retracts = retracts
        self._saved: list[SavedInput] = []
        self._input: list[EventRows | int] = []
        """Rows of events, or times to which the detector was advanced."""
        self._removed: list[tuple[int, EventRows]] = []
        self._dropped = 0
        self._rows = 0
        self._most = 0
        self._forgotten = -1
        if retracts:
            self._save()

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The ids of the tokens, of the saved ones, and of the input since."""
        yield from self.detector.held_ids()
        for saved in self._saved:
            yield from saved.tokens.held_ids()
        for entry in (*self._input, *(rows for _, rows in self._removed)):
            if not isinstance(entry, int):
                yield entry.values

    def dump(self, terms: TermDictionary) -> dict[str, Any]:
        """The tokens; and, if events can be taken back, those saved before and the input since."""
        detector = self.detector
        found: dict[str, Any] = {"tokens": save_tokens(detector, terms).decode()}
        if self._retracts:
            found["saved"] = [
                [saved_text(detector, each.tokens, each.now, terms).decode(), each.first, each.rows]
                for each in self._saved
            ]
            found["input"] = [
                entry if isinstance(entry, int) else _as_saved(entry) for entry in self._input
            ]
            found["counts"] = [self._dropped, self._rows, self._most, self._forgotten]
        return found

    def load(self, found: Mapping[str, Any], terms: TermDictionary) -> None:
        """Go on with a saved state."""
        detector = self.detector
        load_tokens(detector, found["tokens"].encode(), terms)
        if self._retracts and "saved" not in found:  # nothing that came before can be taken back
            self._saved.clear()
            self._save()
        elif self._retracts:
            self._saved = [
                SavedInput(*saved_of(detector, text.encode(), terms), first, rows)
                for text, first, rows in found["saved"]
            ]
            self._input = [
                entry if isinstance(entry, int) else _as_rows(entry) for entry in found["input"]
            ]
            self._dropped, self._rows, self._most, self._forgotten = found["counts"]

    def feed(self, rows: EventRows) -> MatchColumns:
        """Feed events to the detector."""
        self._log(rows, len(rows.types))
        return self.detector.feed_rows(rows)

    def advance(self, to: int) -> list[PatternMatch]:
        """Fire the timers before `to`; events may still come at `to - 1`."""
        self._log(to, 1)
        return self._advance(to)

    def _advance(self, to: int) -> list[PatternMatch]:
        now = self.detector.now
        matches = self.detector.advance(to, causes=True)
        self.detector.now = to - 1 if now is None else max(now, to - 1)
        return matches

    def _log(self, entry: EventRows | int, rows: int) -> None:
        if self._saved:
            self._input.append(entry)
            self._rows += rows

    def _save(self) -> None:
        at = self._dropped + len(self._input)
        saved = SavedInput(self.detector.save(), self.detector.now, at, self._rows)
        self._saved.append(saved)
        self._most = max(MIN_HISTORY, 2 * len(saved.tokens.tokens))

    def begin(self) -> None:
        """Discard savepoints; a history that became too long is dropped, or saved again."""
        self._removed.clear()
        if not self._saved or self._rows - self._saved[-1].rows <= self._most:
            return
        if not self._retracts:
            self._saved.clear()
            self._input.clear()
            return
        self._save()
        while len(self._saved) > 1 and self._rows - self._saved[1].rows > MAX_RETRACTABLE:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        """Drop the input before the second savepoint: its events can no longer be taken back."""
        many = self._saved[1].first - self._dropped
        for entry in self._input[:many]:
            if not isinstance(entry, int) and len(entry.numbers):
                self._forgotten = int(entry.numbers.max())
        del self._input[:many], self._saved[0]
        self._dropped += many

    def savepoint(self) -> HistorySavepoint:
        """A savepoint, valid until `begin`."""
        if not self._saved:
            self._save()
        entries = self._dropped + len(self._input)
        return HistorySavepoint(entries, len(self._removed), self._rows)

    def rollback(self, to: HistorySavepoint) -> None:
        """Restore a savepoint, and the events that were retracted since."""
        while len(self._removed) > to.retracted:
            at, rows = self._removed[-1]
            self._input[at - self._dropped] = rows
            self._removed.pop()
        del self._input[to.entries - self._dropped :]
        self._rows = to.rows
        self._replay(to.entries)

    def retract(self, number: int, now: int) -> None:
        """Make the tokens those of the input without an event, at a time.

        What would have been completed meanwhile is not reported.
        """
        if number <= self._forgotten:
            self._drop_users(number)
        at = self._find(number)
        if at is None:
            return
        rows = self._input[at - self._dropped]
        assert not isinstance(rows, int)  # noqa: S101 - it has the event
        self._removed.append((at, rows))
        self._input[at - self._dropped] = rows.without(number)
        self._replay(at)
        self._advance(max(now, self.detector.now or now))

    def _find(self, number: int) -> int | None:
        """The entry of the input that has an event."""
        for at in range(len(self._input) - 1, -1, -1):
            entry = self._input[at]
            if isinstance(entry, int) or not len(entry.numbers):
                continue
            if entry.numbers.min() <= number:
                return self._dropped + at if number in entry.numbers else None
        return None

    def _drop_users(self, number: int) -> None:
        """Drop the tokens that have used an event, now and when they were saved."""
        self._saved = [
            each._replace(tokens=without_users(each.tokens, number)) for each in self._saved
        ]
        now = self.detector.now
        self.detector.load(without_users(self.detector.save(), number))  # type: ignore[arg-type]
        self.detector.now = now

    def _replay(self, at: int) -> None:
        """Load the tokens that were saved before an entry of the input, and feed it again."""
        while self._saved[-1].first > at:
            self._saved.pop()
        saved = self._saved[-1]
        self.detector.load(saved.tokens)  # type: ignore[arg-type] # it is the detector's own
        self.detector.now = saved.now
        since = self._input[saved.first - self._dropped :]
        for is_time, entries in groupby(since, lambda entry: isinstance(entry, int)):
            if is_time:
                for to in entries:
                    self._advance(to)  # type: ignore[arg-type] # it is a time
            else:
                self.detector.feed_rows(EventRows(*map(np.concatenate, zip(*entries, strict=True))))


def _as_saved(rows: EventRows) -> list[Ints | Longs]:
    """The columns of events, of which only values are ids: other columns are long."""
    columns = rows._asdict()
    return [c if name == "values" else c.astype(np.int64) for name, c in columns.items()]


def _as_rows(columns: Sequence[Any]) -> EventRows:
    types, values, times, numbers, begins, source = columns
    return EventRows(
        types.astype(np.int32), values.astype(np.int32), times, numbers, begins.astype(np.int32),
        source,
    )  # fmt: skip


class EventNumbers:
    """The numbers that events have for patterns, by those that they have for rules."""

    def __init__(self) -> None:
        self._orders: deque[tuple[Longs, int]] = deque()
        self._events = 0

    def add(self, orders: Longs, first: int) -> None:
        """Add events, given by increasing numbers of the rules; those of patterns are in turn."""
        self._orders.append((orders, first))
        self._events += len(orders)
        while self._events - len(self._orders[0][0]) > 2 * MAX_RETRACTABLE:
            self._events -= len(self._orders.popleft()[0])

    def cut(self, number: int) -> None:
        """Remove the events from a number of the patterns on."""
        while self._orders and self._orders[-1][1] >= number:
            self._orders.pop()
        self._events = sum(len(orders) for orders, _ in self._orders)

    def dump(self) -> list[Any]:
        """All of them."""
        return [list(each) for each in self._orders]

    def load(self, saved: list[Any]) -> None:
        """Go on with saved ones."""
        self._orders = deque((orders, first) for orders, first in saved)
        self._events = sum(len(orders) for orders, _ in self._orders)

    def of(self, order: int) -> int | None:
        """The number of an event for patterns; None if it was never one of their events."""
        for orders, first in reversed(self._orders):
            if orders[0] <= order:
                at = int(np.searchsorted(orders, order))
                return first + at if at < len(orders) and orders[at] == order else None
        return None
