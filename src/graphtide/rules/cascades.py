"""Cascades: firing what matched, and all that actions cause in turn, up to a limit.

If a cascade goes on without end, the rules come back to where it began.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from graphtide.errors import GraphtideError
from graphtide.rules.agenda import Agenda, in_turn
from graphtide.rules.firing_log import FiringLog
from graphtide.rules.rule_set import RuleSet
from graphtide.rules.turn import ChosenTurn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from graphtide.engine.live_graph import LiveGraph
    from graphtide.rules.agenda import Share
    from graphtide.rules.conflicts import Activation, ConflictSet
    from graphtide.rules.detected import TokenMark
    from graphtide.rules.detection import Detection
    from graphtide.rules.happening import Happening
    from graphtide.rules.moment import Moment
    from graphtide.rules.rule_set import States
    from graphtide.rules.turn import Turn


class Beginning(NamedTuple):
    """What to come back to if a cascade has no end."""

    states: States
    fired: int
    tokens: list[TokenMark]


class Cascades:
    """Fires matches, counts what they cause, and knows the way back.

    A program adds what actions do to the graph: `collect`, `undo`, `is_quiet`, `fire_at_once`.
    """

    def __init__(self, graph: LiveGraph, most_firings: int, longest: int) -> None:
        self.graph = graph
        self.firings = FiringLog()
        self.fired = 0
        self.depth = 0
        self.detection: Detection | None = None
        self.conflicts: ConflictSet | None = None
        self.by_hand = False
        self._most = most_firings
        self._rules = RuleSet(graph, longest)
        self._due: deque[Moment] = deque()
        self._caused: deque[str] = deque(maxlen=100)
        self._count = 0
        self._retracted: list[int] = []
        self._before: Beginning | None = None
        self._endless = False

    # --- what a program adds ---

    def collect(self) -> None:
        """Note the events that changes of the graph have caused (nothing, without a program)."""

    def undo(self) -> str:
        """Take back what a cascade has changed, and say so (nothing, without a program)."""
        return ""

    def is_quiet(self) -> bool:
        """Whether no action of any rule can concern the rules."""
        return all(each.action is None for each in self._rules)

    def fire_at_once(self, agenda: Agenda) -> bool:
        """Fire all that is on an agenda, if its actions cannot concern the rules; else nothing."""
        if any(share.registered.action for share in agenda.shares):
            return False
        self.note(agenda)
        return True

    # --- the way back ---

    def begin(self) -> None:
        """A cascade begins: what comes from outside, and all that it causes."""
        self._count = 0
        self._caused.clear()
        self._before = None
        self._rules.begin()
        if self.detection is not None:
            self.detection.begin()

    def _remember(self) -> None:
        """Note what to come back to if actions go on without end."""
        self._retracted.clear()
        if self._before is None and not self.is_quiet():
            self._begin_at(self.fired)
            self._rules.track()

    def _begin_at(self, fired: int) -> None:
        """The cascade begins here: so many firings were before it."""
        tokens = [] if self.detection is None else self.detection.mark()
        self._before = Beginning(self._rules.mark(), fired, tokens)

    def forget(self) -> None:
        """Drop what is due: a cascade has failed."""
        self._due.clear()
        if self.conflicts is not None:
            self.conflicts.forget()
        if self._endless and self._before is not None:
            states, fired, tokens = self._before
            self._rules.take_back(states)
            self.firings.cut(self.fired - fired)
            self.fired = fired
            if self.detection is not None:
                self.detection.back_to(tokens)
        self._endless = False

    def retract(self, event: Happening) -> None:
        """Forget an event that has happened: no rule matches it any more."""
        self._retracted.append(event.order)
        self._rules.retract(event.order)

    # --- firing ---

    def _fire_now(self, shares: list[Share], depth: int) -> None:
        """Fire what was completed at one moment."""
        self._remember()
        self._fire(in_turn(shares, self.graph.terms, self.fired), depth)

    def _fire(self, turns: Iterable[Turn], depth: int) -> None:
        """Carry out what matched, in turn; or let it wait for that."""
        self.depth = depth + 1
        for turn in turns:
            if self.conflicts is not None:
                self.conflicts.add(turn.firing(), turn.registered, depth)
            else:
                self._carry_out(turn, depth)

    def _carry_out(self, turn: Turn, depth: int) -> None:
        self.firings.add_turn(turn)
        self.fired += 1
        if depth:
            self._caused.append(turn.rule)
            self._count += 1
            self._check_limit()
        if turn.registered.action is not None:
            turn.registered.action.carry_out(turn)
            self.collect()

    def _fire_next(self) -> bool:
        """Fire the activation whose turn it is, if they wait and are not fired by hand."""
        if self.conflicts is None or self.by_hand:
            return False
        activation = self.conflicts.next()
        if activation is not None:
            self._fire_activation(activation)
        return activation is not None

    def _fire_activation(self, activation: Activation) -> None:
        self._remember()
        self.depth = activation.depth + 1
        firing = replace(activation.firing, number=self.fired)
        self._carry_out(ChosenTurn(firing, activation.registered), activation.depth)
        assert self.conflicts is not None  # noqa: S101 - there was an activation
        self.conflicts.fired(activation)

    def note(self, agenda: Agenda) -> None:
        """All that is on an agenda has fired."""
        self.firings.add(agenda)
        self.fired += len(agenda)

    def _check_limit(self) -> None:
        if self._count <= self._most:
            return
        self._endless = True
        done = self.undo()
        raise GraphtideError(
            f"rules fire without end: {', '.join(sorted(set(self._caused)))}{done}",
            hint="an action causes the events that cause the action",
        )
