"""What a program declares, as data: queries, events and rules, with the lines they begin in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphtide.algebra.expressions import Expression, Var
    from graphtide.algebra.nodes import SelectQuery, TriplePattern
    from graphtide.lang.durations import Duration
    from graphtide.rdf.term import NamedNode, Term


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
class StateChange:
    """`ON CHANGE OF ?e FROM { … } TO { … }`: by one transaction the one ends, the other begins."""

    of: Var
    before: SelectQuery
    after: SelectQuery


@dataclass(frozen=True, slots=True)
class EventDeclaration:
    """`EVENT name(parameters) …`; one that a rule declares on the spot is named by its text."""

    name: str
    parameters: tuple[Var, ...]
    source: GraphPattern | QueryChange | StateChange
    line: int


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
    numbers: tuple[Duration, ...]


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
