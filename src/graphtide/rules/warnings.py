"""Warnings about a program without errors: events that never happen, rules that never fire."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING

from pyoxigraph import Literal

from graphtide.algebra import nodes as alg
from graphtide.algebra.expressions import Call, Exists, Expression
from graphtide.algebra.variables import mentioned
from graphtide.lang.sparql.parse import parse_standing
from graphtide.lang.tide import ast as tide
from graphtide.rules import temporal
from graphtide.rules.compile import Compiler, events_in_use
from graphtide.rules.expiry import Distances, between_times

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.lang.tide.program import Program


@dataclass(frozen=True, slots=True)
class ProgramWarning:
    """What is probably not meant, the line where it is, and what to do."""

    line: int
    message: str
    hint: str

    def __str__(self) -> str:
        return f"{self.line}: warning: {self.message}\n  hint: {self.hint}"


def warnings_of(
    program: Program, tick_ms: int = 1, max_event_duration: float = inf
) -> list[ProgramWarning]:
    """All warnings, by line; graph events last for up to `max_event_duration` ticks.

    >>> from graphtide.lang.tide.program import Program
    >>> program = Program.parse('''PREFIX : <http://example.org/>
    ... EVENT A(?x) AS { ?e :a ?x } CHECK (1 > 2)
    ... RULE Never ON A(?x) THEN CALL tell(?x)''')
    >>> print(*warnings_of(program))
    2: warning: the event A never happens: its CHECK is always false
      hint: mend the CHECK or FILTER, or remove the event
    """
    return list(_warnings_of(program, tick_ms, max_event_duration))


@lru_cache(maxsize=64)
def _warnings_of(
    program: Program, tick_ms: int, max_event_duration: float
) -> tuple[ProgramWarning, ...]:
    nevers = _NeverEvents(program)
    intervals = {pattern.name for pattern in program.patterns if pattern.interval}
    found = [w for event in events_in_use(program) for w in nevers.warnings(event)]
    for rule in program.rules:
        found += _facts(rule)
        found += _arguments(rule)
        found += _times(rule, Compiler(tick_ms), max_event_duration, intervals)
    return tuple(sorted(dict.fromkeys(found), key=lambda each: each.line))


class _NeverEvents:
    """Which declared events never happen, and why."""

    def __init__(self, program: Program) -> None:
        self._queries = program.texts

    def warnings(self, event: tide.EventDeclaration) -> Iterator[ProgramWarning]:
        why, hint = self._why(event)
        if why:
            message = f"the event {event.name} never happens: {why}"
            yield ProgramWarning(event.line, message, hint)

    def _why(self, event: tide.EventDeclaration) -> tuple[str, str]:
        if event.check is not None and _always_false(event.check):
            return "its CHECK is always false", "mend the CHECK or FILTER, or remove the event"
        match event.source:
            case tide.StateChange(_, before, after) if before.root == after.root:
                return "FROM and TO are the same state", "mend one of them"
            case tide.QueryChange(query) | tide.QueryUpdate(query):
                parsed = parse_standing(self._queries[query])
                select = parsed if isinstance(parsed, alg.SelectQuery) else parsed.select
                if _has_no_rows(select.root):
                    return f"the query {query} has no rows, whatever the graph", "mend the query"
        return "", ""


def _always_false(expression: Expression) -> bool:
    """Whether a condition without variables is false, or an error."""
    if mentioned(expression) or _changes(expression):
        return False
    return not temporal.is_true(expression, {})


def _changes(expression: Expression) -> bool:
    """Whether the value may be another one each time, or depends on the graph."""
    if isinstance(expression, Call):
        fixed = expression.name.upper() not in ("NOW", "RAND", "UUID", "STRUUID", "BNODE")
        return not fixed or any(map(_changes, expression.args))
    return isinstance(expression, Exists)


def _has_no_rows(node: alg.Node) -> bool:
    match node:
        case alg.Filter(condition, child):
            return _always_false(condition) or _has_no_rows(child)
        case alg.Join(left, right):
            return _has_no_rows(left) or _has_no_rows(right)
        case alg.Union(left, right):
            return _has_no_rows(left) and _has_no_rows(right)
        case alg.LeftJoin(left) | alg.Minus(left):
            return _has_no_rows(left)
        case alg.Extend(child) | alg.Project(child) | alg.Distinct(child):
            return _has_no_rows(child)
        case alg.Slice(child):
            return node.limit == 0 or _has_no_rows(child)
        case alg.Group(child, keys):
            return bool(keys) and _has_no_rows(child)
        case alg.Values(_, rows):
            return not rows
        case alg.Bgp(patterns):
            return any(isinstance(pattern.subject, Literal) for pattern in patterns)
        case _:
            return False


def _facts(rule: tide.RuleDeclaration) -> Iterator[ProgramWarning]:
    """Facts that no graph has."""
    if rule.facts is not None and _has_no_rows(rule.facts.root):
        message = f"the rule {rule.name} never fires: no graph has its facts"
        yield ProgramWarning(rule.line, message, "mend FACT")


def _arguments(rule: tide.RuleDeclaration) -> Iterator[ProgramWarning]:
    """Literals where an event has a subject or a predicate."""
    for use in rule.events:
        if not isinstance(use.type.source, tide.GraphPattern):
            continue
        nodes = {v for p in use.type.source.patterns for v in (p.subject, p.predicate)}
        for parameter, argument in zip(use.type.parameters, use.arguments, strict=True):
            if isinstance(argument, Literal) and parameter in nodes:
                message = f"{use.type.name} with {argument} never happens"
                yield ProgramWarning(use.line, message, f"{parameter} is never a literal")


def _times(
    rule: tide.RuleDeclaration, compiler: Compiler, longest: float, intervals: set[str]
) -> Iterator[ProgramWarning]:
    """Temporal tests that never hold."""
    if not rule.tests:
        return
    compiled = compiler.rule(rule)
    parts = temporal.conjuncts(compiled.test)
    denied = {condition.name for condition in compiled.negative}
    lasting = {u.name: longest if _is_graph_event(u) else 0.0 for u in rule.events}
    lasting |= {u.name: inf for u in rule.events if u.type.name in intervals}
    plain = tuple(part for part in parts if not temporal.named(part) & denied)
    names = [condition.name for condition in compiled.positive]
    subject = f"the rule {rule.name} never fires"
    if not _possible(names, plain, lasting):
        yield _contradiction(rule, subject, names, plain)
        return
    for name in sorted(denied):
        own = tuple(part for part in parts if name in temporal.named(part))
        if own and not _possible([*names, name], (*plain, *own), lasting):
            subject = f"NO EVENT {name} of the rule {rule.name} forbids nothing"
            yield _contradiction(rule, subject, [*names, name], (*plain, *own))


def _is_graph_event(use: tide.EventUse) -> bool:
    return isinstance(use.type.source, tide.GraphPattern)


def _possible(
    names: list[str], tests: tuple[temporal.Test, ...], lasting: dict[str, float]
) -> bool:
    matrix: Distances = between_times(names, temporal.AllTests(tests), lasting)
    return all(bounds.low <= bounds.high for bounds in matrix.values())


def _contradiction(
    rule: tide.RuleDeclaration, subject: str, names: list[str], tests: tuple[temporal.Test, ...]
) -> ProgramWarning:
    for test in tests:
        own = sorted(temporal.named(test))
        if _possible(own, (test,), dict.fromkeys(own, inf)) and not _possible(
            own, (test,), dict.fromkeys(own, 0)
        ):
            shown = _shown(test)
            why = f"{shown} never holds between instants"
            hint = "publish events with a duration, and run(…, max_event_duration=…)"
            return ProgramWarning(rule.line, f"{subject}: {why}", hint)
    if _possible(names, tests, dict.fromkeys(names, inf)):
        why, hint = "its tests never hold between instants", "publish events with a duration"
    else:
        why, hint = "its temporal tests contradict each other", "compare the bounds"
    return ProgramWarning(rule.line, f"{subject}: {why}", hint)


def _shown(test: temporal.Test) -> str:
    if isinstance(test, temporal.Temporal):
        return f"{test.this} {test.operator} {test.other}"
    return f"the test of {' and '.join(sorted(temporal.named(test)))}"
