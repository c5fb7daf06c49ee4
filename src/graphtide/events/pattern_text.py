"""The nodes of a pattern as a program writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from graphtide.events.build import atom_text
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
from graphtide.lang.pattern_text import PatternText, absent, chain, event, interleaved

if TYPE_CHECKING:
    from graphtide.lang.durations import Duration


def pattern_text(node: EventPattern) -> PatternText:
    """A pattern in the words of the language.

    >>> a, b = Atom("A", ()), Atom("B", ())
    >>> print(pattern_text(Follows((a, Either((a, b)), Repeat(b, 1, None)))))
    A -> (A OR B) -> B{+}
    """
    match node:
        case Atom():
            return event(atom_text(node))
        case Follows(parts):
            return chain("->", *map(pattern_text, parts))
        case Either(parts):
            return chain("OR", *map(pattern_text, parts))
        case Both(parts):
            return chain("AND", *map(pattern_text, parts))
        case Interleaved(parts):
            return interleaved(*map(pattern_text, parts))
        case Repeat(part, least, most):
            often = ("{*}" if least == 0 else "{+}") if most is None else f"{{{most}}}"
            return pattern_text(part).suffixed(often)
        case Not(part):
            return absent(pattern_text(part))
        case Within(part, length):
            return pattern_text(part).within(_written(length))
        case HoldsFor(part, length):
            return pattern_text(part).holds_for(_written(length))
        case _:
            assert_never(node)


def _written(length: Duration) -> str:
    return f"{int(length.amount)}{'ms' if length.in_time else ''}"
