"""Plan nodes in words: what a node does, and what it stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from graphtide.algebra.variables import pattern_variables
from graphtide.plan.describe_decomposed import decomposed_text
from graphtide.plan.describe_modifiers import aggregate_text, top_text
from graphtide.plan.physical import (
    Closure,
    Compute,
    Constant,
    Decomposed,
    GroupBy,
    HashJoin,
    Keep,
    Merge,
    Physical,
    Search,
    Select,
    SemiJoin,
    TopK,
    Unique,
)
from graphtide.plan.wording import expression_text, names, patterns_text, short

if TYPE_CHECKING:
    from collections.abc import Mapping


def describe(node: Physical) -> str:
    """One line on what a node does."""
    match node:
        case Search(patterns, checks):
            found = "input" if is_input(node) else "search"
            text = f"{found} {patterns_text(patterns)}"
            for check in checks:
                word = "without" if check.negated else "with"
                text += f" {word} {{ {patterns_text(check.patterns)} }}"
            return text
        case Decomposed():
            return decomposed_text(node)
        case Constant(rows):
            return "one empty row" if rows == ((),) else _constants(len(rows))
        case HashJoin(_, _, keys, loose, overlap):
            text = f"join on {names(keys)}" if keys or loose else "product"
            text += f", {names(loose)} if bound" if loose else ""
            return text + (f", one of {names(overlap)} bound on both sides" if overlap else "")
        case SemiJoin(_, _, keys, negated):
            return f"{'antijoin' if negated else 'semijoin'} on {names(keys)}"
        case Select(_, condition):
            return f"select {expression_text(condition)}"
        case Compute(_, var, expression):
            return f"compute {names((var,))} as {expression_text(expression)}"
        case Merge():
            return "union"
        case Unique():
            return f"distinct {names(node.schema)}"
        case Keep():
            return f"project {names(node.schema)}"
        case GroupBy(_, keys, aggregates):
            by = f" by {names(keys)}" if keys else ""
            return f"group{by}: {', '.join(map(aggregate_text, aggregates)) or 'nothing'}"
        case TopK():
            return top_text(node)
        case Closure(_, source):
            return "reach" if source is None else f"reach from {short(source)}"
        case _:
            assert_never(node)


def is_input(node: Physical) -> bool:
    """Whether a node is an input node of a network: one edge, and the classes of its ends."""
    if not isinstance(node, Search) or node.checks:
        return False
    return all(len(pattern_variables(p)) < 2 for p in node.patterns[1:])


def state_of(node: Physical, sizes: Mapping[str, int] | None) -> str:
    """What a node stores, with the rows it holds now if they are known; empty for nothing."""

    def size(key: str) -> str:
        return "" if sizes is None else f" ({sizes.get(key, 0):,} now)"

    match node:
        case HashJoin():
            return f"left rows{size('left')} and right rows{size('right')}"
        case SemiJoin():
            return f"left rows{size('left')} and a count per right key{size('right')}"
        case Decomposed():
            return f"a bit per pattern of each instance{size('instances')}"
        case Unique():
            return f"a count per row{size('rows')}"
        case GroupBy():
            return f"the state of each group{size('groups')}"
        case TopK():
            return f"all rows in order{size('rows')}"
        case Closure():
            return f"edges{size('edges')} and pairs that they connect{size('pairs')}"
        case Search() | Constant() | Select() | Compute() | Merge() | Keep():
            return ""
        case _:
            assert_never(node)


def _constants(count: int) -> str:
    return "1 constant row" if count == 1 else f"{count} constant rows"
