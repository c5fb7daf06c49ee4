"""What can be said of a pattern before it is compiled: how long it lasts, how it may end."""

from __future__ import annotations

from typing import assert_never

from graphtide.lang.event_algebra import (
    Atom,
    Both,
    Either,
    EventPattern,
    Follows,
    HoldsFor,
    Interleaved,
    Not,
    Repeat,
    Within,
)
from graphtide.lang.pattern_facts import can_be_empty, last_absence


class Measure:
    """Lengths of patterns; `tick_ms` turns durations into ticks."""

    def __init__(self, tick_ms: int) -> None:
        self.tick_ms = tick_ms

    def ticks(self, node: Within | HoldsFor) -> int | None:
        """The length of a zone in ticks; None if it has no end.

        >>> from graphtide.lang.durations import Duration
        >>> Measure(1000).ticks(Within(Atom("A", ()), Duration(5000, in_time=True)))
        5
        """
        length = node.length.ticks(self.tick_ms)
        return None if length == float("inf") else int(length)

    def shortest(self, node: EventPattern) -> int:
        """The least time from its first event to its last.

        >>> from graphtide.lang.durations import Duration
        >>> a = Atom("A", ())
        >>> Measure(1).shortest(Follows((a, HoldsFor(Follows((a, a)), Duration(4)))))
        4
        """
        match node:
            case Atom() | Not():
                return 0
            case Follows(parts) | Both(parts):
                return sum(map(self.shortest, parts))
            case Interleaved(parts):
                return max(map(self.shortest, parts))
            case Either(parts):
                return min(map(self.shortest, parts))
            case Repeat(part, least, _):
                return least * self.shortest(part)
            case Within(part, _):
                return (self.ticks(node) or 0) if only_timer(part) else self.shortest(part)
            case HoldsFor(part, _):
                inside = 0 if can_be_empty(part) else self.ticks(node) or 0
                return max(inside, self.shortest(part))
            case _:
                assert_never(node)


def only_timer(part: EventPattern) -> bool:
    """Must a part with WITHIN end by its timer: has it a NOT behind its last event, always?

    >>> a = Atom("A", ())
    >>> only_timer(Follows((a, Not(a)))), only_timer(Either((a, Follows((a, Not(a))))))
    (True, False)
    """
    return last_absence(part) is not None and not event_last(part)


def event_last(node: EventPattern) -> bool:
    """Can it end with an event, or with a timer?

    >>> event_last(Follows((Atom("A", ()), Not(Atom("B", ())))))
    False
    """
    match node:
        case Atom() | Within():
            return True
        case Not():
            return False
        case Follows(parts):
            for part in reversed(parts):
                if event_last(part):
                    return True
                if isinstance(part, Not) or not can_be_empty(part):
                    return False
            return False
        case Either(parts) | Both(parts) | Interleaved(parts):
            return any(map(event_last, parts))
        case Repeat(part, _, _) | HoldsFor(part, _):
            return event_last(part)
        case _:
            assert_never(node)
