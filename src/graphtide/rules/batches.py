"""Batches: events that come at once are matched together, as if no action concerned the rules.

If one does, the rules come back to the event that caused it, and go on from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.rules.agenda import Agenda, Share
from graphtide.rules.cascades import Cascades
from graphtide.rules.moment import Moment

if TYPE_CHECKING:
    from graphtide.engine.live_graph import LiveGraph
    from graphtide.rules.rule_set import States

LONGEST = 1 << 16
"""Events that are matched together at most."""


class Batches(Cascades):
    """Matches events and fires what they complete, one event or many at a time."""

    def __init__(self, graph: LiveGraph, most_firings: int, longest: int) -> None:
        super().__init__(graph, most_firings, longest)
        self._clock = 0
        self._stride = 1024

    def move_to(self, time: int) -> None:
        """Events have moved the clock on."""
        self._clock = time

    def _take_part(self, moment: Moment) -> int:
        """Match some events and fire; how many of them are through.

        All events of a transaction come before any action. Of others, those after an action that
        concerns the rules have to wait.
        """
        self._rules.catch_up()
        many = len(moment.events.ends)
        if moment.together or many == 1:
            shares = self._match(moment)
            if shares and many > 1:
                shares = [Share(each, found.at_one_moment()) for each, found in shares]
            if shares:
                self._fire_now(shares, moment.depth)
            return many
        taken = self._take_many(moment)
        if taken == many:
            self._stride = min(2 * self._stride, LONGEST)
            self.move_to(max(self._clock, int(moment.events.ends[-1])))
        return taken

    def _match(self, moment: Moment) -> list[Share]:
        since = self.graph.transactions if moment.since is None else moment.since
        return self._rules.take(moment.events, since)

    def _take_many(self, moment: Moment) -> int:
        """Match several events, and fire what they complete; how many of them are through."""
        since = self.graph.transactions if moment.since is None else moment.since
        moment = Moment(moment.events, moment.depth, since)
        states = None if self.is_quiet() else self._rules.mark()
        self._rules.held += 1
        try:
            shares = self._match(moment)
            agenda = Agenda(shares, self.graph.terms, self.fired)
            if len(agenda) and (moment.depth or not self.fire_at_once(agenda)):
                return self._fire_each(agenda, moment, states)
        finally:
            self._rules.held -= 1
        return len(moment.events)

    def _fire_each(self, agenda: Agenda, moment: Moment, states: States | None) -> int:
        """Fire event by event until an action concerns the rules; how many events are through.

        If it was not the last one, the rules come back to it: they do not know those after it.
        """
        events, due = moment.events, len(self._due)
        for at, places in agenda.groups():
            event, complete = divmod(at, 2)
            taken, fired = event + complete, self.fired
            self._retracted.clear()
            self._clock = max(self._clock, int(events.ends[event]))
            if complete:
                self.move_to(self._clock)
            if not moment.depth:
                self.begin()
                self._rules.track()
            try:
                self._fire(agenda.turns(places), moment.depth)
            except BaseException:
                if states is not None:
                    self._come_back(moment, states, event, taken)
                    self._forget_events()
                raise
            if states is not None and self._is_concerned(due):
                self._come_back(moment, states, event, taken)
                if not moment.depth:
                    self._begin_at(fired)
                self._forget_events()
                return taken
        return len(events)

    def _is_concerned(self, due: int) -> bool:
        """Whether actions have changed what rules look at; so much was due before them."""
        changed = self._rules.look_changed()
        return bool(self._retracted) or len(self._due) > due or changed

    def _come_back(self, moment: Moment, states: States, event: int, taken: int) -> None:
        """Let the rules know the first events only, as if the others had not come yet."""
        self._rules.back_to(states, self._rules.order - len(moment.events))
        if taken:
            self._match(moment.part(0, taken))
        if taken == event:  # what had waited has fired, but its event has not come yet
            self._rules.advance(int(moment.events.ends[event]))
        self._stride = max(1, self._stride // 2)

    def _forget_events(self) -> None:
        """Those that were retracted are known again, now that the rules have come back."""
        for order in self._retracted:
            self._rules.retract(order)
