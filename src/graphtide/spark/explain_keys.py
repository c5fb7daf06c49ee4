"""Explain: by what the events of rules and patterns are divided among cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.spark.reaction import reaction_of
from graphtide.spark.retention import retention

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.lang.tide.program import Program
    from graphtide.spark.react_keys import Keyed
    from graphtide.spark.reaction import Reaction


def explain_reaction(program: Program, cells: int, tick_ms: int = 1000) -> str:
    """Per pattern and rule the key of its cells, and for how long events are kept there.

    >>> from graphtide.lang.tide.program import Program
    >>> print(
    ...     explain_reaction(
    ...         Program.parse('''
    ... EVENT A(?x, ?y) AS { ?x <ex:a> ?y }
    ... EVENT B(?x) AS { ?x <ex:b> ?y }
    ... PATTERN P(?x) AS (A(?x, _) -> B(?x)) WITHIN 10s
    ... PATTERN Q(?x) AS A(?x, _) -> B(?x) CONTEXT STRICT
    ... RULE R WHEN EVENT a = A(?x, ?y) EVENT b = B(?x) AFTER[0,5] a THEN CALL f(?x)
    ... RULE S WHEN EVENT a = A(?x, ?y) EVENT b = B(?y) AFTER[0,5] a THEN CALL f(?x)
    ... '''),
    ...         4,
    ...     )
    ... )
    PATTERN P: by ?x over 4 cells
    PATTERN Q: in one cell, since noise of every kind counts (CONTEXT STRICT without PER)
    RULE R: by ?x over 4 cells; events are kept for 5
    RULE S: by ?y over 4 cells; events are kept for 5
    """
    reaction = reaction_of(program, cells, tick_ms)
    return "" if reaction is None else "\n".join([*_patterns(reaction), *_rules(reaction)])


def _patterns(reaction: Reaction) -> Iterator[str]:
    for pattern, key in zip(reaction.program.patterns, reaction.pattern_keys, strict=True):
        why = "no parameter stands in all of its events"
        if pattern.context != "CHRONICLE" and not pattern.per:
            why = f"noise of every kind counts (CONTEXT {pattern.context} without PER)"
        yield f"PATTERN {pattern.name}: {_where(key, why, reaction.cells)}"


def _rules(reaction: Reaction) -> Iterator[str]:
    for rule, key in zip(reaction.rules, reaction.rule_keys, strict=True):
        where = _where(key, "no variable stands in all of its conditions", reaction.cells)
        longest = max(retention(rule, reaction.types).values(), default=None)
        kept = "no event is kept" if longest is None else f"events are kept for {longest:g}"
        if longest == float("inf"):
            kept = "events are kept for ever"
        yield f"RULE {rule.name}: {where}; {kept}"


def _where(key: Keyed, why: str, cells: int) -> str:
    if not key.variables:
        return f"in one cell, since {why}"
    return f"by {' '.join(map(str, key.variables))} over {cells} cells"
