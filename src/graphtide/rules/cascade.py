"""Cascade: an event from outside and all firings that it causes in turn, up to a limit.

A cascade that exceeds the limit is rolled back: rules, patterns and the log of firings return to
the savepoint that was taken before its first action.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from graphtide.rules.detection import Detection, PatternSavepoint
    from graphtide.rules.firing import FiringLog
    from graphtide.rules.rule_set import RuleSavepoints, RuleSet

NAMED_RULES = 100
"""Last firings of an endless cascade whose rules are named in the error."""


class CascadeStart(NamedTuple):
    """The state to roll back to: memories of rules, number of firings, tokens of patterns."""

    states: RuleSavepoints
    fired: int
    tokens: list[PatternSavepoint]


class Cascade:
    """Counts the firings that actions cause, and rolls back those of a cascade without end."""

    def __init__(
        self, rules: RuleSet, log: FiringLog, detection: Detection | None, max_firings: int
    ) -> None:
        self._rules = rules
        self._log = log
        self._detection = detection
        self._max = max_firings
        self._caused: deque[str] = deque(maxlen=NAMED_RULES)
        self._count = 0
        self._start: CascadeStart | None = None
        self._is_endless = False

    def begin(self) -> None:
        """Begin another cascade: the savepoint of the last one is discarded."""
        self._count = 0
        self._caused.clear()
        self._start = None
        self._rules.begin()
        if self._detection is not None:
            self._detection.begin()

    @property
    def saved(self) -> bool:
        """Whether there is a savepoint."""
        return self._start is not None

    def save(self, fired: int) -> None:
        """Take a savepoint, at which there had been a number of firings."""
        tokens = [] if self._detection is None else self._detection.savepoint()
        self._start = CascadeStart(self._rules.savepoint(), fired, tokens)

    def count(self, rule: str) -> bool:
        """Count a firing that was caused by an action; whether it is within the limit."""
        self._caused.append(rule)
        self._count += 1
        self._is_endless = self._count > self._max
        return not self._is_endless

    def endless(self, undone: str) -> GraphtideError:
        """The error of a cascade beyond the limit; `abort` rolls it back."""
        return GraphtideError(
            f"rules fire without end: {', '.join(sorted(set(self._caused)))}{undone}",
            hint="an action causes the events that cause the action",
        )

    def abort(self) -> None:
        """The cascade has failed: roll it back, if it was endless."""
        if self._is_endless and self._start is not None:
            states, fired, tokens = self._start
            self._rules.rollback_all(states)
            self._log.cut(self._log.total - fired)
            if self._detection is not None:
                self._detection.rollback(tokens)
        self._is_endless = False
