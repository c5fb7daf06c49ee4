"""Found: matches of a rule in columns, made into objects only when somebody looks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphtide.rules.happening import Happening
from graphtide.rules.temporal import Span

if TYPE_CHECKING:
    from graphtide.algebra.expressions import Var
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rules.happening import Binding
    from graphtide.rules.model import Rule

Events = dict[str, Happening]


@dataclass(frozen=True, slots=True)
class Match:
    """The events of a match by name, and the values of all variables."""

    rule: Rule
    events: Events
    binding: Binding
    time: int


@dataclass(frozen=True, slots=True)
class Found:
    """Matches that some events complete.

    A row has the place of the event that completes it, then the values of the variables. `spans`
    has start and end of each event, then order and since of each. `moments` are twice the place of
    the event at which a match fires, or one more: a match that has waited comes before the event.
    """

    rows: Ints
    spans: Longs
    moments: Longs
    times: Longs

    def __len__(self) -> int:
        return len(self.rows)

    def chosen(self, places: Longs) -> Found:
        """Some of the matches, in an order."""
        return Found(
            self.rows[places], self.spans[places], self.moments[places], self.times[places]
        )

    def at_one_moment(self) -> Found:
        """The same, firing all together."""
        return replace(self, moments=np.ones_like(self.moments))


class Shape(NamedTuple):
    """What the columns of a rule's matches mean."""

    rule: Rule
    variables: tuple[Var, ...]

    def match(self, found: Found, place: int) -> Match:
        """One of the matches as an object."""
        row, spans = found.rows[place].tolist(), found.spans[place].tolist()
        binding = dict(zip(self.variables, row[1:], strict=True))
        half = len(spans) // 2
        events = {
            condition.name: Happening(
                Span(spans[2 * n], spans[2 * n + 1]), spans[half + 2 * n], spans[half + 2 * n + 1]
            )
            for n, condition in enumerate(self.rule.positive)
        }
        return Match(self.rule, events, binding, int(found.times[place]))


def completed(rows: Ints, spans: Longs, ends: Longs) -> Found:
    """Matches that fire as soon as their last event is there."""
    places = rows[:, 0].astype(np.int64)
    return Found(rows, spans, 2 * places + 1, ends[places])
