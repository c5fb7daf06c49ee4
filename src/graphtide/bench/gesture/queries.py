"""The queries for postures that come with the package, and the program that they are part of."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from graphtide.bench.gesture.vocabulary import BODY, POSTURES
from graphtide.errors import GraphtideError

GESTURE: Final = "Forward"

EVENTS: Final = """
EVENT StartFound(?body) ON APPEAR OF ForwardStart(?body)
EVENT StartLost(?body)  ON DISAPPEAR OF ForwardStart(?body)
EVENT EndFound(?body)   ON APPEAR OF ForwardEnd(?body)
EVENT EndLost(?body)    ON DISAPPEAR OF ForwardEnd(?body)
EVENT BackFound(?body)  ON APPEAR OF BackwardStart(?body)
EVENT BackLost(?body)   ON DISAPPEAR OF BackwardStart(?body)

PATTERN Forward(?body) AS
  StartFound(?body) -> StartLost(?body) -> NOT BackFound(?body) -> EndFound(?body) -> EndLost(?body)
  CONTEXT IMMEDIATE PER ?body
"""
"""In the stream of a body, what does not carry the gesture on breaks it off."""


def query_text(name: str) -> str:
    """The text of a query for a posture.

    >>> "NOT EXISTS" in query_text("ForwardStart")
    True
    """
    if name not in POSTURES:
        hint = f"choose from {', '.join(POSTURES)}"
        raise GraphtideError(f"query {name!r} is unknown", hint=hint)
    return files(__package__).joinpath("queries", f"{name}.rq").read_text("utf-8")


def program_text() -> str:
    """A program with the queries, their events and the gesture.

    >>> from graphtide.lang.tide.program import Program
    >>> [pattern.name for pattern in Program.parse(program_text()).patterns]
    ['Forward']
    """
    queries = (f"QUERY {name} AS {_select(query_text(name))}" for name in POSTURES)
    return "\n".join((f"PREFIX : <{BODY}>", *queries, EVENTS))


def _select(text: str) -> str:
    """A query without its prefixes, which the program has."""
    return text[text.index("SELECT") :]
