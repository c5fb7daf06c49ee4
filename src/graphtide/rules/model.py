"""Rules as data: types of events, conditions on facts and events, tests between them.

A rule matches when all its events have happened, their temporal tests hold, and its facts held
from before the first of these events until the last one (paper 2, section 4.5). So only the arrival
of an event can complete a match.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphtide.algebra.expressions import Expression, Var
from graphtide.algebra.variables import pattern_variables
from graphtide.engine.events import GRAPH_EVENT
from graphtide.errors import GraphtideError
from graphtide.rules.temporal import NO_TEST, Test, named

if TYPE_CHECKING:
    from graphtide.algebra.nodes import SelectQuery, TriplePattern
    from graphtide.rdf.terms import Term


@dataclass(frozen=True, slots=True)
class EventType:
    """`EVENT name(parameters) AS { pattern } CHECK (check)`: graph events that match a pattern.

    Events that are made in the process (changes of queries, complex events) have an id instead of a
    pattern; their values are given.
    """

    name: str
    parameters: tuple[Var, ...]
    pattern: tuple[TriplePattern, ...] = ()
    check: Expression | None = None
    id: int = GRAPH_EVENT

    def __post_init__(self) -> None:
        if self.id != GRAPH_EVENT:
            return
        known = {v for p in self.pattern for v in pattern_variables(p)}
        for parameter in self.parameters:
            if parameter not in known:
                raise GraphtideError(
                    f"the event {self.name} has the parameter {parameter}, which its pattern lacks"
                )


@dataclass(frozen=True, slots=True)
class EventCondition:
    """`EVENT name = type(arguments)`, or `NO EVENT …` if negated."""

    name: str
    type: EventType
    arguments: tuple[Var | Term, ...]
    negated: bool = False

    def __post_init__(self) -> None:
        wanted, given = len(self.type.parameters), len(self.arguments)
        if wanted != given:
            raise GraphtideError(f"the event {self.type.name} has {wanted} parameters, not {given}")

    @property
    def variables(self) -> tuple[Var, ...]:
        """The variables of its arguments, each once."""
        return tuple(dict.fromkeys(a for a in self.arguments if isinstance(a, Var)))


@dataclass(frozen=True, slots=True)
class Rule:
    """Facts that hold while events happen, and when these happen."""

    name: str
    events: tuple[EventCondition, ...]
    facts: SelectQuery | None = None
    test: Test = NO_TEST
    priority: int = 0

    def __post_init__(self) -> None:
        names = [condition.name for condition in self.events]
        double = next((name for name in names if names.count(name) > 1), None)
        if double is not None:
            raise GraphtideError(f"the rule {self.name} has two events named {double}")
        if not any(not condition.negated for condition in self.events):
            raise GraphtideError(
                f"the rule {self.name} waits for no event",
                hint="a rule over facts alone is a query: use watch().on_appear",
            )
        unknown = sorted(named(self.test) - set(names))
        if unknown:
            raise GraphtideError(
                f"the rule {self.name} compares {unknown[0]}, which is none of its events",
                hint=f"there are {', '.join(names)}",
            )

    @property
    def positive(self) -> tuple[EventCondition, ...]:
        """The events that have to happen."""
        return tuple(condition for condition in self.events if not condition.negated)

    @property
    def negative(self) -> tuple[EventCondition, ...]:
        """The events that must not happen."""
        return tuple(condition for condition in self.events if condition.negated)
