"""Moment: events that are due."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphtide.engine.graph_events import GraphEvents


@dataclass(slots=True)
class Moment:
    """Events that are due: one after the other, or all `together`, as those of one transaction.

    `since` is the number of transactions before them, if not all. `depth` is 0 for what comes from
    outside, and one more for what is caused by an action than for the cause of that.
    """

    events: GraphEvents
    depth: int
    since: int | None = None
    together: bool = False
    begins: bool = False
    """Whether a cascade of its own begins with them."""

    def part(self, first: int, last: int) -> Moment:
        """The events from one place up to another."""
        if first == 0 and last == len(self.events.ends):
            return self
        return self.of(self.events.part(first, last))

    def of(self, events: GraphEvents) -> Moment:
        """Other events in the place of these."""
        return Moment(events, self.depth, self.since, self.together, self.begins)
