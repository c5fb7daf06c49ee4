"""A decomposed pattern in words: its parts, and the order in which their variables get values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.plan.decomposition.nodes import query_variables
from graphtide.plan.decomposition.parts import decompose
from graphtide.plan.wording import names, patterns_text

if TYPE_CHECKING:
    from graphtide.algebra.nodes import TriplePattern
    from graphtide.plan.physical import Decomposed


def decomposed_text(node: Decomposed) -> str:
    """The parts of a decomposed pattern, joined by ×.

    A connected part is followed by the order of its variables: `?b then (?a, ?c)` gives ?b a value
    first, after which ?a and ?c have nothing to do with each other.
    """
    parts = decompose(node.patterns)
    ground = [f"ground {{ {patterns_text(parts.ground)} }}"] if parts.ground else []
    return "decompose " + " × ".join([*ground, *(_part(node, part) for part in parts.open)])


def _part(node: Decomposed, part: tuple[TriplePattern, ...]) -> str:
    variables = query_variables(part)
    if len(variables) == 1:
        return f"star {names(variables)} {{ {patterns_text(part)} }}"
    (root,) = (
        i for i, each in enumerate(node.order) if each.above < 0 and each.variables[0] in variables
    )
    return f"connected {_order(node, root)} {{ {patterns_text(part)} }}"


def _order(node: Decomposed, at: int) -> str:
    own = names(node.order[at].variables)
    below = [_order(node, i) for i, each in enumerate(node.order) if each.above == at]
    if not below:
        return own
    return f"{own} then {below[0]}" if len(below) == 1 else f"{own} then ({', '.join(below)})"
