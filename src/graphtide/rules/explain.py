"""Explains the rules of a program: the retention of their events, and how actions are applied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.algebra.nodes import SelectQuery
from graphtide.lang.sparql.parse import parse_standing
from graphtide.lang.tide.ast import QueryChange, RuleDeclaration, StateChange
from graphtide.rules.compile import Compiler, why_one_by_one
from graphtide.rules.expiry import Retention, rule_retentions, waits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.lang.tide.program import Program


def explain_rules(program: Program, tick_ms: int = 1000) -> str:
    """A table of the retention of each rule's events, in ticks.

    >>> from graphtide.lang.tide.program import Program
    >>> print(
    ...     explain_rules(
    ...         Program.parse('''PREFIX : <http://example.org/>
    ...     EVENT Alarm(?a) AS { ?a a :Alarm }
    ...     EVENT End(?a) AS { ?a :ends true }
    ...     RULE Short WHEN EVENT a = Alarm(?a) EVENT e = End(?a) AFTER[0, 5s] a
    ...     THEN CALL tell(?a)''')
    ...     )
    ... )
    RULE Short
      a = Alarm(?a)  retained for 5, as long as e may come
      e = End(?a)    retained for 0, as long as a may come
      acts event by event: CALL
    """
    compiler = Compiler(tick_ms)
    read = list(_queries_read(program))
    return "\n\n".join(_explained(rule, compiler, read) for rule in program.rules)


def _queries_read(program: Program) -> Iterator[SelectQuery]:
    """The queries that rules read."""
    queries = {query.name: query.text for query in program.queries}
    for rule in program.rules:
        if rule.facts is not None:
            yield rule.facts
        for use in rule.events:
            source = use.type.source
            if isinstance(source, StateChange):
                yield from (source.before, source.after)
            elif isinstance(source, QueryChange):
                parsed = parse_standing(queries[source.query])
                yield parsed if isinstance(parsed, SelectQuery) else parsed.select


def _explained(rule: RuleDeclaration, compiler: Compiler, read: list[SelectQuery]) -> str:
    compiled = compiler.rule(rule)
    names = [condition.name for condition in compiled.events]
    kept, waiting = rule_retentions(compiled), waits(compiled)
    shown = {
        use.name: f"{'no ' if use.negated else ''}{use.name} = {use.type.name}"
        + ("" if "(" in use.type.name else f"({', '.join(map(str, use.arguments))})")
        for use in rule.events
    }
    width = max(map(len, shown.values()))
    lines = [
        f"  {shown[name].ljust(width)}  {_length(kept[name], waiting.get(name))}" for name in names
    ]
    why = why_one_by_one(rule, read)
    acts = "acts for many events at once" if why is None else f"acts event by event: {why}"
    group = f" IN {rule.group}" if rule.group else ""
    return "\n".join([f"RULE {rule.name}{group}", *lines, f"  {acts}"])


def _length(kept: Retention, waiting: Retention | None) -> str:
    """The retention of an event, and how long matches that it completes wait for a NO EVENT."""
    _, _, text = str(kept).partition(": ")
    if waiting is None:
        return text
    return f"{text}; a match waits for {waiting.ticks:g}, as long as {waiting.partner} may come"
