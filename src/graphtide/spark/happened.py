"""Happened: names of events, by which an action can tell all cells to forget one (RETRACT).

A graph event has one name, whatever it matches; each other event has its own.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from pyoxigraph import NamedNode

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import TriplePattern
from graphtide.rules.model import EventType

if TYPE_CHECKING:
    from collections.abc import Sequence

RETRACTS: Final = NamedNode("urn:graphtide:retracts")
_SPACE: Final = "urn:graphtide:happened:"

RETRACTED: Final = EventType(
    "RETRACT", (Var("event"),), (TriplePattern(Var("event"), RETRACTS, Var("event")),)
)
"""The events by which actions tell what to forget."""


def event_name(time: int, tx: int, place: int, own: tuple[int, Sequence[str | None]] | None) -> str:
    """The name of an event; `own` has its type and values, if it is not a graph event.

    >>> event_name(17, 3, 1, None)
    '17/3/1'
    >>> event_name(17, 3, 0, (2, ["<ex:a>"]))
    '17/3/0/2-d957795fdb9a6514'
    """
    name = f"{time}/{tx}/{place}"
    if own is None:
        return name
    type_, values = own
    text = "\0".join(value or "" for value in values)
    return f"{name}/{type_}-{sha256(text.encode()).hexdigest()[:16]}"


def event_time(name: str) -> int:
    """When an event was.

    >>> event_time("17/3/1")
    17
    """
    return int(name.partition("/")[0])


def as_term(name: str) -> str:
    """A name as a term.

    >>> from_term(as_term("17/3/1"))
    '17/3/1'
    """
    return f"<{_SPACE}{name}>"


def from_term(text: str) -> str:
    """The name that a term stands for."""
    return text[len(_SPACE) + 1 : -1]
