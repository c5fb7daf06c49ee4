"""References to events in SPARQL fragments: `TIMEOF(a)`, `?a.value`, `AVG(?a.value)`, `COUNT(a)`.

Before SPARQL is parsed, each is replaced by a variable of the same length, so that errors have the
right place. Its name has middle dots, as in `?AVG·a·value`; SPARQL allows them in names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from graphtide.algebra.expressions import Var

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lark import Token

DOT: Final = "\u00b7"
TIMES: Final = ("TIMEOF", "STARTOF")
"""The last and the first tick of an event."""
GATHERED: Final = ("FIRST", "LAST", "PREV", "COUNT", "SUM", "AVG", "MIN", "MAX", "COLLECT")
"""Over the events that one part of a pattern has consumed. `?a.value` is `LAST(?a.value)`."""

_SKIPPED = r"""(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|<[^<>"{}|^`\\\s]*>|\#[^\n]*)"""
_TIME: Final = re.compile(rf"{_SKIPPED}|\b({'|'.join(TIMES)})\s*\(\s*(\w*)\s*\)", re.IGNORECASE)
_EVENT: Final = re.compile(
    rf"{_SKIPPED}|\b({'|'.join((*TIMES, *GATHERED))})\s*\(\s*\??(\w+)(?:\.(\w+))?\s*\)"
    r"|\?(\w+)\.(\w+)",
    re.IGNORECASE,
)


class EventReference(NamedTuple):
    """What is asked of which event of a rule or pattern; no event is the match itself."""

    function: str
    event: str
    parameter: str = ""

    @property
    def variable(self) -> Var:
        """The variable that stands for it."""
        if not self.parameter:
            return Var(f"{self.function}{DOT}{self.event}")
        short = self.function == "LAST"
        return Var(DOT.join((self.event, self.parameter) if short else self))

    def __str__(self) -> str:
        if not self.parameter:
            return f"{self.function}({self.event})"
        field = f"?{self.event}.{self.parameter}"
        return field if self.function == "LAST" else f"{self.function}({field})"


def reference_of(variable: Var) -> EventReference | None:
    """The reference that a variable stands for, if any.

    >>> reference_of(EventReference("TIMEOF", "a").variable), reference_of(Var("a"))
    (EventReference(function='TIMEOF', event='a', parameter=''), None)
    """
    first, *rest = variable.name.split(DOT)
    if len(rest) == 1 and first not in (*TIMES, *GATHERED):
        return EventReference("LAST", first, rest[0])
    return EventReference(first, *rest) if len(rest) in (1, 2) else None


def references_in(variables: Iterable[object]) -> list[EventReference]:
    """The references among some variables and terms."""
    found = (reference_of(each) for each in variables if isinstance(each, Var))
    return [each for each in found if each is not None]


def with_time_variables(token: Token) -> Token:
    """A fragment in which each `TIMEOF(a)` is a variable.

    >>> from lark import Token
    >>> str(with_time_variables(Token("GROUP", '{ ?x :at TIMEOF( a ) ; :is "TIMEOF(a)" }')))
    '{ ?x :at ?TIMEOF·a   ; :is "TIMEOF(a)" }'
    """

    def written(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        return f"{EventReference(found[1].upper(), found[2]).variable}".ljust(len(found[0]))

    return token.update(value=_TIME.sub(written, token))


def with_event_variables(token: Token) -> Token:
    """A fragment of a pattern in which each reference to events is a variable.

    >>> from lark import Token
    >>> str(with_event_variables(Token("EXPRESSION", "(?b.v > 2 * prev( ?b.v ) && COUNT(?b) < 9)")))
    '(?b·v > 2 * ?PREV·b·v    && ?COUNT·b  < 9)'
    """

    def written(found: re.Match[str]) -> str:
        if found[1] is not None:
            reference = EventReference(found[1].upper(), found[2], found[3] or "")
        elif found[4] is not None:
            reference = EventReference("LAST", found[4], found[5])
        else:
            return found[0]
        return str(reference.variable).ljust(len(found[0]))

    return token.update(value=_EVENT.sub(written, token))
