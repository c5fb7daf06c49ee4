"""The event algebra as data: what a PATTERN is made of, before anything is compiled.

A pattern says which sequences of events it accepts: its *traces*. `Atom` is one event; the other
nodes put traces together. Times, absence and contexts are told in docs/patterns.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from graphtide.algebra.expressions import Var
    from graphtide.lang.durations import Duration
    from graphtide.rdf.term import Term

Context = Literal["CHRONICLE", "IMMEDIATE", "STRICT"]
"""Which instances an event may go to: see docs/patterns.md."""


@dataclass(frozen=True, slots=True)
class Atom:
    """`Type(arguments)`: one event. An argument that is None was written `_`: any value will do."""

    event: str
    arguments: tuple[Var | Term | None, ...]


@dataclass(frozen=True, slots=True)
class Follows:
    """`p -> q -> …`: each part whole, one after the other."""

    parts: tuple[EventPattern, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """`p OR q OR …`: one of the parts."""

    parts: tuple[EventPattern, ...]


@dataclass(frozen=True, slots=True)
class Both:
    """`p AND q AND …`: all parts, each whole, in any order. Nested ones count as one."""

    parts: tuple[EventPattern, ...]


@dataclass(frozen=True, slots=True)
class Interleaved:
    """`ALL(p, q, …)`: all parts, each in its own order, at the same time."""

    parts: tuple[EventPattern, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`p{n}` (least = most = n), `p{+}` (least 1) and `p{*}` (least 0; most None: no limit)."""

    part: EventPattern
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Not:
    """`NOT p`: no match of p between what comes before and what comes after."""

    part: EventPattern


@dataclass(frozen=True, slots=True)
class Within:
    """`p WITHIN d`: from its first event to its last at most d. After NOT: for d, from here on."""

    part: EventPattern
    length: Duration


@dataclass(frozen=True, slots=True)
class HoldsFor:
    """`p HOLDS FOR d`: from its first event to its last at least d."""

    part: EventPattern
    length: Duration


EventPattern = Atom | Follows | Either | Both | Interleaved | Repeat | Not | Within | HoldsFor


@dataclass(frozen=True, slots=True)
class PatternDeclaration:
    """`PATTERN name(parameters) AS body CONTEXT context PER variables`.

    Patterns that the body uses have been put in its place, so that every atom is an EVENT.
    """

    name: str
    parameters: tuple[Var, ...]
    body: EventPattern
    context: Context
    per: tuple[Var, ...]
    line: int
