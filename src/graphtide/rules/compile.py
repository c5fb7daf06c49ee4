"""Compiles the declarations of a program to event types and rules; times become ticks."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from pyoxigraph import BlankNode

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import GraphNames, Path, SelectQuery, TriplePattern
from graphtide.algebra.paths import link_iris, matches_zero_length
from graphtide.algebra.traverse import parts
from graphtide.algebra.variables import mentioned, pattern_variables
from graphtide.algebra.windows import WindowedQuery
from graphtide.lang.sparql.parse import parse_standing
from graphtide.lang.tide import ast as tide
from graphtide.lang.tide.pattern_facts import walk
from graphtide.lang.tide.references import EventReference, references_in
from graphtide.rules.model import EventCondition, EventType, Rule
from graphtide.rules.temporal import AllTests, AnyTest, ExpressionTest, NotTest, Temporal, Test

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from graphtide.lang.tide.program import Program
    from graphtide.rdf.terms import Term


class Compiler:
    """Compiles rules; equal event declarations become one event type.

    `changes` has the types of events that changes of the graph cause, `complex` those of patterns.
    """

    def __init__(self, tick_ms: int) -> None:
        self._tick_ms = tick_ms
        self._types: dict[tuple[object, ...], EventType] = {}
        self.changes: dict[EventType, tide.QueryChange | tide.QueryUpdate | tide.StateChange] = {}
        self.complex: dict[str, EventType] = {}

    def type_of(self, event: tide.EventDeclaration) -> EventType:
        """The type of a declared event."""
        key = event.parameters, event.source, event.check
        if key not in self._types:
            self._types[key] = self._made(event)
        return self._types[key]

    @property
    def types(self) -> tuple[EventType, ...]:
        """All types so far."""
        return tuple(self._types.values())

    def complex_type(self, pattern: tide.PatternDeclaration) -> EventType:
        """The type of the complex events of a pattern."""
        source = tide.PatternSource(pattern.name)
        return self.type_of(
            tide.EventDeclaration(pattern.name, pattern.parameters, source, pattern.line)
        )

    def _made(self, event: tide.EventDeclaration) -> EventType:
        if isinstance(event.source, tide.GraphPattern):
            return EventType(event.name, event.parameters, event.source.patterns, event.check)
        made = EventType(event.name, event.parameters, check=event.check, id=len(self._types))
        if isinstance(event.source, tide.PatternSource):
            self.complex[event.source.pattern] = made
        else:
            self.changes[made] = event.source
        return made

    def rule(self, rule: tide.RuleDeclaration) -> Rule:
        """A rule, with times in ticks."""
        events = tuple(
            EventCondition(use.name, self.type_of(use.type), use.arguments, use.negated)
            for use in rule.events
        )
        test = AllTests(tuple(part for each in rule.tests for part in _parts(self.test(each))))
        return Rule(rule.name, events, rule.facts, test, rule.priority)

    def test(self, test: tide.RuleTest) -> Test:
        """A test, with times in ticks."""
        match test:
            case tide.TimeTest(operator, this, other, numbers):
                ticks = tuple(number.ticks(self._tick_ms) for number in numbers)
                return Temporal(operator, this, other, ticks)
            case tide.ValueTest(expression):
                return ExpressionTest(expression, tuple(references_in(mentioned(expression))))
            case tide.Combined("AND", parts):
                return AllTests(tuple(self.test(part) for part in parts))
            case tide.Combined("OR", parts):
                return AnyTest(tuple(self.test(part) for part in parts))
            case tide.Combined(_, (part, *_)):
                return NotTest(self.test(part))
            case _:
                assert_never(test)  # type: ignore[arg-type]


def events_in_use(program: Program) -> list[tide.EventDeclaration]:
    """The declared events that rules or patterns name, in order; the others change nothing."""
    atoms = (part for pattern in program.patterns for part in walk(pattern.body))
    names = {atom.event for atom in atoms if isinstance(atom, tide.Atom)}
    names |= {use.type.name for rule in program.rules for use in rule.events}
    return [event for event in program.events if event.name in names]


def _parts(test: Test) -> tuple[Test, ...]:
    """The conjuncts of a test."""
    if isinstance(test, AllTests):
        return tuple(part for each in test.tests for part in _parts(each))
    return (test,)


# --- Independent actions: they insert only what no query of the program can match.
#
# The actions of many firings may then be applied together.

Reads = tuple["Var | Term | None", "Var | Term | None", "Var | Term | None"]
"""A triple pattern of a query; None is a wildcard."""


def only_inserts(rule: tide.RuleDeclaration, queries: Iterable[SelectQuery]) -> bool:
    """Whether a rule does nothing but insert what none of some queries can match."""
    inserts = [action for action in rule.actions if isinstance(action, tide.Insert)]
    if len(inserts) < len(rule.actions) or rule.computed or times_in(rule):
        return False
    written = [triple for insert in inserts for triple in insert.template]
    reads = [read for query in queries for read in _reads(query.root)]
    return not any(_meet(triple, read) for triple in written for read in reads)


def feedback_of(program: Program) -> dict[str, tuple[str, ...]]:
    """Return for each rule whose actions the program itself may see what sees them.

    Templates and patterns meet unless constants differ, so it may name what never happens.

    >>> from graphtide.lang.tide.program import Program
    >>> feedback_of(
    ...     Program.parse('''PREFIX : <http://example.org/>
    ... EVENT A(?x) AS { ?x :a ?y }
    ... QUERY Marked AS SELECT ?x { ?x :marked ?y }
    ... RULE Mark ON A(?x) THEN INSERT { ?x :marked true }
    ... RULE Tell ON A(?x) THEN CALL tell(?x)''')
    ... )
    {'Mark': ('the query Marked',)}
    """
    seen: dict[str, list[Reads]] = {}
    events: dict[str, list[Reads]] = {}
    for name, text in program.texts.items():
        query = parse_standing(text)
        seen[f"the query {name}"] = list(_reads(query))
        if isinstance(query, WindowedQuery):
            events[f"the query {name}"] = seen[f"the query {name}"]
    for rule in program.rules:
        if rule.facts is not None:
            seen[f"FACT of the rule {rule.name}"] = list(_reads(rule.facts.root))
    for event in (*events_in_use(program), *(u.type for r in program.rules for u in r.events)):
        match event.source:
            case tide.StateChange(_, before, after):
                reads = [*_reads(before.root), *_reads(after.root)]
                seen[f"the event {event.name}"] = reads
            case tide.GraphPattern(patterns):
                events[f"the event {event.name}"] = list(_reads(patterns))
            case _:
                pass
    found = {}
    for rule in program.rules:
        parts: list[str] = []
        for action in rule.actions:
            match action:
                case tide.Insert(template) | tide.Delete(template):
                    parts += _meeting(template, seen)
                case tide.Emit(_, template):
                    parts += _meeting(template, events)
                case tide.Retract(name):
                    parts.append(f"whatever uses the event {name} that it retracts")
                case tide.CallFunction():
                    pass
        if parts:
            found[rule.name] = tuple(dict.fromkeys(parts))
    return found


def _meeting(template: Iterable[TriplePattern], seen: Mapping[str, list[Reads]]) -> Iterator[str]:
    for name, reads in seen.items():
        if any(_meet(triple, read) for triple in template for read in reads):
            yield name


def times_in(rule: tide.RuleDeclaration) -> tuple[EventReference, ...]:
    """The times that the actions of a rule use."""
    found: list[EventReference] = []
    for action in rule.actions:
        match action:
            case tide.Insert(template) | tide.Delete(template) | tide.Emit(_, template):
                found += references_in(v for triple in template for v in pattern_variables(triple))
            case tide.CallFunction(_, arguments):
                found += references_in(arguments)
            case tide.Retract():
                pass
    found += references_in(v for _, expression in rule.computed for v in mentioned(expression))
    return tuple(dict.fromkeys(found))


def why_one_by_one(rule: tide.RuleDeclaration, queries: Iterable[SelectQuery]) -> str | None:
    """Why the actions of a rule are applied event by event; None if they are independent."""
    if only_inserts(rule, queries):
        return None
    words = {
        tide.CallFunction: "CALL",
        tide.Delete: "DELETE",
        tide.Emit: "EMIT",
        tide.Retract: "RETRACT",
    }
    found = dict.fromkeys(words[type(a)] for a in rule.actions if type(a) in words)
    times = ["BIND" for _ in rule.computed[:1]] + [each.function for each in times_in(rule)][:1]
    return ", ".join([*found, *times]) or "INSERT of what rules read"


def _reads(part: object) -> Iterator[Reads]:
    """The triple patterns of a node, in whichever graph."""
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
