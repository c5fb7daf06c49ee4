"""The pattern part of a plan: how a basic graph pattern is matched, by strategy.

    rete     one input node per triple pattern, joined two by two, with a memory at every join
    search   one search over each connected group of patterns, with nothing stored but the quads

The default is `search`: its state is the shared quads alone and its cost per change is that of
walking from the changed quad. Groups that share no variable are joined by memories in both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from graphtide.algebra.nodes import Bgp
from graphtide.algebra.variables import pattern_variables, schema
from graphtide.kernel.program import MOST_PATTERNS
from graphtide.plan import make
from graphtide.plan.physical import CheckBlock, Physical, Search

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.algebra.expressions import Exists, Expression, Var
    from graphtide.algebra.nodes import TriplePattern

Strategy = Literal["rete", "search"]

STRATEGIES: tuple[Strategy, ...] = ("rete", "search")

DEFAULT_STRATEGY: Strategy = "search"

LARGEST_SEARCH = 40
"""Most variables of one search before its checks; longer patterns are searched in pieces."""


def plan_patterns(patterns: Sequence[TriplePattern], strategy: Strategy) -> Physical:
    """The plan of a basic graph pattern."""
    groups = [[p] for p in dict.fromkeys(patterns)] if strategy == "rete" else connected(patterns)
    plans: list[Physical] = [make.search(group) for group in groups]
    return join_in_order(plans)


def join_in_order(plans: list[Physical]) -> Physical:
    """Join plans left-deep: the next one in the text that shares a variable, if there is one."""
    if not plans:
        return make.ONE_EMPTY_ROW
    tree, *rest = plans
    while rest:
        following = next((p for p in rest if make.shared(tree, p)), rest[0])
        rest.remove(following)
        tree = make.join(tree, following)
    return tree


def connected(patterns: Sequence[TriplePattern]) -> list[list[TriplePattern]]:
    """Groups of patterns that hang together by variables, each in an order that stays connected."""
    rest = list(dict.fromkeys(patterns))
    groups: list[list[TriplePattern]] = []
    while rest:
        group = [rest.pop(0)]
        known: set[Var] = set(pattern_variables(group[0]))
        while len(group) < LARGEST_SEARCH:
            following = next((p for p in rest if known & set(pattern_variables(p))), None)
            if following is None or len(known.union(pattern_variables(following))) > LARGEST_SEARCH:
                break
            rest.remove(following)
            group.append(following)
            known.update(pattern_variables(following))
        groups.append(group)
    return groups


def fuse_checks(
    plan: Physical,
    parts: Sequence[tuple[Expression, tuple[Exists, bool] | None]],
    strategy: Strategy,
) -> tuple[Physical, list[Expression]]:
    """Move (NOT) EXISTS over plain patterns into the search itself; the conditions left over.

    Only checks that hang together with the searched patterns: one that does not is better served
    by a semijoin, which looks at the rows only when the check turns.
    """
    if strategy != "search" or not isinstance(plan, Search):
        return plan, [part for part, _ in parts]
    left: list[Expression] = []
    checks: list[CheckBlock] = []
    room = MOST_PATTERNS - LARGEST_SEARCH
    for part, existence in parts:
        pattern = existence[0].pattern if existence else None
        if existence and isinstance(pattern, Bgp) and _fits(plan, pattern, room):
            checks.append(CheckBlock(existence[1], tuple(dict.fromkeys(pattern.patterns))))
            room -= _size(pattern)
        else:
            left.append(part)
    return make.search(plan.patterns, checks), left


def _fits(plan: Search, pattern: Bgp, room: int) -> bool:
    if not pattern.patterns or _size(pattern) > room:
        return False
    known = set(plan.schema)
    rest = list(pattern.patterns)
    while rest:
        following = next((p for p in rest if known & set(pattern_variables(p))), None)
        if following is None:
            return False
        rest.remove(following)
        known.update(pattern_variables(following))
    return True


def _size(pattern: Bgp) -> int:
    """At least as many as a pattern's triple patterns, and as its variables."""
    return max(len(pattern.patterns), len(schema(pattern)))
