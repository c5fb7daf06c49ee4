"""What a program declares, as data, with lines; patterns are in event_algebra.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pyoxigraph import NamedNode

    from graphtide.algebra.expressions import Expression, Var
    from graphtide.algebra.nodes import SelectQuery, TriplePattern
    from graphtide.lang.durations import WrittenDuration
    from graphtide.rdf.terms import Term


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """A query of a program: its name, its whole SPARQL text, and the line where that begins."""

    name: str
    text: str
    line: int


# --- events ---


@dataclass(frozen=True, slots=True)
class GraphPattern:
    """`AS { pattern }`: triples that come together in one graph event."""

    patterns: tuple[TriplePattern, ...]


@dataclass(frozen=True, slots=True)
class QueryChange:
    """`ON APPEAR OF query(variables)`: a row was not in the answer, and now is; or it left."""

    query: str
    variables: tuple[Var, ...]
    appears: bool


@dataclass(frozen=True, slots=True)
class QueryUpdate:
    """`ON UPDATE OF query(variables)`: such a row stays, but other values of it change."""

    query: str
    variables: tuple[Var, ...]


@dataclass(frozen=True, slots=True)
class StateChange:
    """`ON CHANGE OF ?e FROM { … } TO { … }`: by one transaction the one ends, the other begins."""

    of: Var
    before: SelectQuery
    after: SelectQuery


@dataclass(frozen=True, slots=True)
class PatternSource:
    """The matches of the pattern of this name: complex events."""

    pattern: str


@dataclass(frozen=True, slots=True)
class EventDeclaration:
    """`EVENT name(parameters) … CHECK (check)`; one that a rule declares is named by its text.

    Patterns have one too, so that rules can ask for them by name.
    """

    name: str
    parameters: tuple[Var, ...]
    source: GraphPattern | QueryChange | QueryUpdate | StateChange | PatternSource
    line: int
    check: Expression | None = None


# --- rules ---


@dataclass(frozen=True, slots=True)
class EventUse:
    """`EVENT name = type(arguments)` in a rule, or `NO EVENT …`."""

    name: str
    type: EventDeclaration
    arguments: tuple[Var | Term, ...]
    negated: bool
    line: int


@dataclass(frozen=True, slots=True)
class TimeTest:
    """`this OPERATOR[numbers] other`."""

    operator: str
    this: str
    other: str
    numbers: tuple[WrittenDuration, ...]


@dataclass(frozen=True, slots=True)
class ValueTest:
    """`FILTER (expression)`, over the values of events and facts."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class Combined:
    """Tests joined by AND or OR, or one after NOT."""

    word: str
    parts: tuple[RuleTest, ...]


RuleTest = TimeTest | ValueTest | Combined


@dataclass(frozen=True, slots=True)
class Insert:
    """`INSERT { template }`."""

    template: tuple[TriplePattern, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """`DELETE { template }`."""

    template: tuple[TriplePattern, ...]


@dataclass(frozen=True, slots=True)
class Emit:
    """`EMIT stream { template }`: a new event."""

    stream: NamedNode
    template: tuple[TriplePattern, ...]


@dataclass(frozen=True, slots=True)
class CallFunction:
    """`CALL name(arguments)`: a function that the host has given."""

    function: str
    arguments: tuple[Var | Term, ...]


@dataclass(frozen=True, slots=True)
class Retract:
    """`RETRACT name`: an event of the rule is forgotten, so that no rule matches it any more."""

    event: str


Action = Insert | Delete | Emit | CallFunction | Retract


@dataclass(frozen=True, slots=True)
class RuleDeclaration:
    """`RULE name PRIORITY n WHEN … THEN …`."""

    name: str
    events: tuple[EventUse, ...]
    facts: SelectQuery | None
    tests: tuple[RuleTest, ...]
    actions: tuple[Action, ...]
    priority: int
    line: int


# --- quick fixes ---


@dataclass(frozen=True, slots=True)
class GoalDeclaration:
    """`GOAL name NONE OF query`, `AT MOST most OF query`, or `MINIMIZE query` (no `most`)."""

    name: str
    query: str
    most: int | None
    weight: float
    line: int


@dataclass(frozen=True, slots=True)
class FixDeclaration:
    """`FIX name COST cost ON query(variables) THEN …`."""

    name: str
    query: str
    variables: tuple[Var, ...]
    actions: tuple[Insert | Delete, ...]
    cost: float
    line: int


# --- The event algebra as data: what a PATTERN is made of, before anything is compiled.
#
# A pattern says which sequences of events it accepts: its *traces*. `Atom` is one event; the other
# nodes put traces together. Times, absence and contexts are told in docs/patterns.md.

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
    length: WrittenDuration


@dataclass(frozen=True, slots=True)
class HoldsFor:
    """`p HOLDS FOR d`: from its first event to its last at least d."""

    part: EventPattern
    length: WrittenDuration


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
