"""From the declarations of a program to types of events and rules that an engine can run."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from pyoxigraph import BlankNode

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import GraphNames, Path, TriplePattern
from graphtide.algebra.paths import link_iris, matches_zero_length
from graphtide.algebra.traverse import parts
from graphtide.lang.tide.ast import (
    CallFunction,
    Combined,
    Delete,
    Emit,
    EventDeclaration,
    GraphPattern,
    Insert,
    PatternSource,
    Retract,
    TimeTest,
    ValueTest,
)
from graphtide.rules.model import EventCondition, EventType, Rule
from graphtide.rules.temporal import AllTests, AnyTest, ExpressionTest, NotTest, Temporal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from graphtide.algebra.nodes import SelectQuery
    from graphtide.lang.tide.ast import (
        PatternDeclaration,
        QueryChange,
        QueryUpdate,
        RuleDeclaration,
        RuleTest,
        StateChange,
    )
    from graphtide.rdf.terms import Term
    from graphtide.rules.temporal import Test


class Compiler:
    """Makes each type of event once.

    `changes` has those that come from changes of the graph, `complex` those that patterns make.
    """

    def __init__(self, tick_ms: int) -> None:
        self._tick_ms = tick_ms
        self._types: dict[tuple[object, ...], EventType] = {}
        self.changes: dict[EventType, QueryChange | QueryUpdate | StateChange] = {}
        self.complex: dict[str, EventType] = {}

    def type_of(self, event: EventDeclaration) -> EventType:
        """The type of an event; those that say the same are one."""
        key = event.parameters, event.source, event.check
        if key not in self._types:
            self._types[key] = self._made(event)
        return self._types[key]

    def complex_type(self, pattern: PatternDeclaration) -> EventType:
        """The type of the complex events that a pattern makes."""
        source = PatternSource(pattern.name)
        return self.type_of(
            EventDeclaration(pattern.name, pattern.parameters, source, pattern.line)
        )

    def _made(self, event: EventDeclaration) -> EventType:
        if isinstance(event.source, GraphPattern):
            return EventType(event.name, event.parameters, event.source.patterns, event.check)
        made = EventType(event.name, event.parameters, check=event.check, id=len(self._types))
        if isinstance(event.source, PatternSource):
            self.complex[event.source.pattern] = made
        else:
            self.changes[made] = event.source
        return made

    def rule(self, rule: RuleDeclaration) -> Rule:
        """A rule, with times in ticks."""
        events = tuple(
            EventCondition(use.name, self.type_of(use.type), use.arguments, use.negated)
            for use in rule.events
        )
        test = AllTests(tuple(part for each in rule.tests for part in _parts(self.test(each))))
        return Rule(rule.name, events, rule.facts, test, rule.priority)

    def test(self, test: RuleTest) -> Test:
        """A test, with times in ticks."""
        match test:
            case TimeTest(operator, this, other, numbers):
                ticks = tuple(number.ticks(self._tick_ms) for number in numbers)
                return Temporal(operator, this, other, ticks)
            case ValueTest(expression):
                return ExpressionTest(expression)
            case Combined("AND", parts):
                return AllTests(tuple(self.test(part) for part in parts))
            case Combined("OR", parts):
                return AnyTest(tuple(self.test(part) for part in parts))
            case Combined(_, (part, *_)):
                return NotTest(self.test(part))
            case _:
                assert_never(test)  # type: ignore[arg-type]


def _parts(test: Test) -> tuple[Test, ...]:
    """The tests that all have to hold, so that each may be about other events."""
    if isinstance(test, AllTests):
        return tuple(part for each in test.tests for part in _parts(each))
    return (test,)


# --- Which actions cannot concern the rules: what they insert, no query of the program can match.
#
# The actions of many firings may then be carried out together.

Reads = tuple["Var | Term | None", "Var | Term | None", "Var | Term | None"]
"""A triple that a query looks for; None is anything."""


def only_inserts(rule: RuleDeclaration, queries: Iterable[SelectQuery]) -> bool:
    """Whether a rule does nothing but insert what none of some queries can match."""
    inserts = [action for action in rule.actions if isinstance(action, Insert)]
    if len(inserts) < len(rule.actions):
        return False
    written = [triple for insert in inserts for triple in insert.template]
    reads = [read for query in queries for read in _reads(query.root)]
    return not any(_meet(triple, read) for triple in written for read in reads)


def why_one_by_one(rule: RuleDeclaration, queries: Iterable[SelectQuery]) -> str | None:
    """Why the actions of a rule are carried out event by event; None if they need not be."""
    if only_inserts(rule, queries):
        return None
    words = {CallFunction: "CALL", Delete: "DELETE", Emit: "EMIT", Retract: "RETRACT"}
    found = dict.fromkeys(words[type(a)] for a in rule.actions if type(a) in words)
    return ", ".join(found) or "INSERT of what rules look at"


def _reads(part: object) -> Iterator[Reads]:
    """Every kind of triple that a node looks for, in whichever graph."""
    match part:
        case TriplePattern():
            yield part.subject, part.predicate, part.object
        case Path():
            links = link_iris(part.path)
            if links is None or matches_zero_length(part.path):
                yield None, None, None
            else:
                yield from ((None, link, None) for link in links)
        case GraphNames():
            yield None, None, None
        case _:
            for each in parts(part):
                yield from _reads(each)


def _meet(triple: TriplePattern, read: Reads) -> bool:
    parts = (triple.subject, triple.predicate, triple.object)
    return all(
        wanted is None or isinstance(wanted, Var) or isinstance(given, Var | BlankNode)
        or given == wanted
        for given, wanted in zip(parts, read, strict=True)
    )  # fmt: skip
