"""How a program's rules work: how long each event is kept for each of them, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.rules.compile import Compiler
from graphtide.rules.expiry import rule_keepings, waits

if TYPE_CHECKING:
    from graphtide.lang.declarations import RuleDeclaration
    from graphtide.lang.program import Program
    from graphtide.rules.expiry import Keeping


def explain_rules(program: Program, tick_ms: int = 1000) -> str:
    """For each rule, the table of how long its events are kept; times in ticks.

    >>> from graphtide.lang.program import parse_program
    >>> print(
    ...     explain_rules(
    ...         parse_program('''PREFIX : <http://example.org/>
    ...     EVENT Alarm(?a) AS { ?a a :Alarm }
    ...     EVENT End(?a) AS { ?a :ends true }
    ...     RULE Short WHEN EVENT a = Alarm(?a) EVENT e = End(?a) AFTER[0, 5s] a
    ...     THEN CALL tell(?a)''')
    ...     )
    ... )
    RULE Short
      a = Alarm(?a)  kept for 5, as long as e may come
      e = End(?a)    kept for 0, as long as a may come
    """
    compiler = Compiler(tick_ms)
    return "\n\n".join(_explained(rule, compiler) for rule in program.rules)


def _explained(rule: RuleDeclaration, compiler: Compiler) -> str:
    compiled = compiler.rule(rule)
    names = [condition.name for condition in compiled.events]
    kept, waiting = rule_keepings(compiled), waits(compiled)
    shown = {
        use.name: f"{'no ' if use.negated else ''}{use.name} = {use.type.name}"
        + ("" if "(" in use.type.name else f"({', '.join(map(str, use.arguments))})")
        for use in rule.events
    }
    width = max(map(len, shown.values()))
    lines = [
        f"  {shown[name].ljust(width)}  {_length(kept[name], waiting.get(name))}" for name in names
    ]
    return "\n".join([f"RULE {rule.name}", *lines])


def _length(kept: Keeping, waiting: Keeping | None) -> str:
    """How long an event is kept, and how long the matches that it completes have to wait."""
    _, _, text = str(kept).partition(": ")
    if waiting is None:
        return text
    return f"{text}; a match waits for {waiting.ticks:g}, as long as {waiting.partner} may come"
