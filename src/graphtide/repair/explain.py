"""Explain goals and fixes: what they require and change, and which fix can help which goal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyoxigraph import BlankNode

from graphtide.algebra.expressions import Var
from graphtide.lang.sparql.parse import parse_query
from graphtide.lang.tide.ast import FixDeclaration, GoalDeclaration, Insert
from graphtide.plan.build import build_plan
from graphtide.plan.physical import Search, nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.algebra.nodes import TriplePattern
    from graphtide.lang.tide.program import Program


def explain_fixes(program: Program) -> str:
    """Each goal with the fixes that can help it, and each fix with its changes.

    A fix can help a goal if one of its triples can match a pattern of the goal's query.

    >>> from graphtide.lang.tide.program import Program
    >>> print(
    ...     explain_fixes(
    ...         Program.parse('''PREFIX : <ex:>
    ...     QUERY Hot AS SELECT ?room { ?room :is :hot }
    ...     GOAL Cool NONE OF Hot
    ...     FIX Air COST 2 ON Hot THEN DELETE { ?room :is :hot }''')
    ...     )
    ... )
    GOAL Cool
      no row of Hot
      helped by Air
    <BLANKLINE>
    FIX Air
      for each row of Hot, at a cost of 2
      - ?room <ex:is> <ex:hot>
    """
    parts = [_goal(goal, program) for goal in program.goals]
    return "\n\n".join(parts + [_fix(fix) for fix in program.fixes])


def _goal(goal: GoalDeclaration, program: Program) -> str:
    asked = list(_patterns(program.texts[goal.query]))
    helped = [fix.name for fix in program.fixes if _concerns(fix, asked)]
    helpers = f"helped by {', '.join(helped)}" if helped else "no fix can help it"
    if goal.most is None:
        wanted = f"as few rows of {goal.query} as possible, each costs {goal.weight:g}"
    else:
        wanted = (
            f"at most {goal.most} rows of {goal.query}" if goal.most else f"no row of {goal.query}"
        )
    return f"GOAL {goal.name}\n  {wanted}\n  {helpers}"


def _fix(fix: FixDeclaration) -> str:
    lines = [
        f"  {'+' if isinstance(action, Insert) else '-'} "
        f"{pattern.subject} {pattern.predicate} {pattern.object}"
        for action in fix.actions
        for pattern in action.template
    ]
    head = f"  for each row of {fix.query}, at a cost of {fix.cost:g}"
    return "\n".join([f"FIX {fix.name}", head, *lines])


def _patterns(text: str) -> Iterator[TriplePattern]:
    """All triple patterns of a query."""
    for node in nodes(build_plan(parse_query(text), "search").root):
        if isinstance(node, Search):
            yield from node.patterns
            for check in node.checks:
                yield from check.patterns


def _concerns(fix: FixDeclaration, asked: list[TriplePattern]) -> bool:
    changed = [pattern for action in fix.actions for pattern in action.template]
    return any(_can_match(a, b) for a in changed for b in asked)


def _can_match(a: TriplePattern, b: TriplePattern) -> bool:
    pairs = (a.subject, b.subject), (a.predicate, b.predicate), (a.object, b.object)
    free = (Var, BlankNode)
    return all(x == y or isinstance(x, free) or isinstance(y, free) for x, y in pairs)
