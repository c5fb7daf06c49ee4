"""Complex events: the matches of patterns as events for the rules, each in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphtide.engine.events import EventBatch, concat_events, typed_events

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.kernel.batch import Longs


class CompleteEvent(NamedTuple):
    """A complex event: its place among other events, its time, type and values.

    Twice the index of an event is the place before it, one more the place after it.
    """

    place: int
    time: int
    pattern: int
    type: int
    values: Sequence[int]
    start: int

    @property
    def order(self) -> tuple[int, int, int]:
        """By place, then by time, then by pattern."""
        return self.place, self.time, self.pattern


class CompleteEvents(NamedTuple):
    """Complex events in columns, in their order."""

    places: Longs
    events: EventBatch


def complex_batch(events: Sequence[CompleteEvent]) -> EventBatch:
    """Complex events as a batch."""
    return typed_events(
        [each.type for each in events],
        [each.values for each in events],
        [each.time for each in events],
        [each.start for each in events],
    )


class ExpandedEvents(NamedTuple):
    """Events with complex events among them. The place of each is 4 n + 1 for event n of the input.

    Before it come, with 4 n, those that timers complete; after it those that it completes.
    """

    events: EventBatch
    places: Longs

    def after(self, many: int) -> int:
        """How many events of the input are among the first ones."""
        return int(np.count_nonzero(self.places[:many] % 4 == 1))

    def end_of(self, many: int) -> int:
        """Up to where the events go that the last of the first ones completes."""
        return int(np.searchsorted(self.places, 4 * self.after(many)))


def inserted(events: EventBatch, more: CompleteEvents) -> ExpandedEvents:
    """Events with complex events among them: those of place 2n before event n, of 2n + 1 after."""
    places = 4 * np.arange(len(events)) + 1
    if not len(more.places):
        return ExpandedEvents(events, places)
    places = np.concatenate([places, 2 * more.places])
    order = np.argsort(places, kind="stable")
    return ExpandedEvents(concat_events(events, more.events).take(order), places[order])
