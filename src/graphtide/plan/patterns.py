"""The pattern part of a plan: how a basic graph pattern is matched, by strategy.

    rete        one input node per edge of the pattern, joined two by two, a memory at every join
    search      one search over each connected group of patterns, with nothing stored but the quads
    decomposed  variables instantiated one after the other, with a bit per pattern and instance

A search chooses its order anew at every step, by the number of candidates that there are right
then: it needs no plan. For `rete` the planner weighs join orders by statistics (`plan.order`).
Groups that share no variable are joined by memories in both. `plan.decomposition` has the third.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, assert_never

from graphtide.algebra.nodes import (
    Bgp,
    Distinct,
    Extend,
    Filter,
    GraphNames,
    Group,
    Join,
    LeftJoin,
    MergedGraph,
    Minus,
    Node,
    Path,
    Project,
    Slice,
    Union,
    Values,
)
from graphtide.algebra.traverse import children
from graphtide.algebra.variables import certain, mentioned, pattern_variables, schema
from graphtide.kernel.search.program import MAX_PATTERNS
from graphtide.plan import make
from graphtide.plan.estimate import NOTHING_KNOWN, Statistics
from graphtide.plan.order import JoinTree, Pin, join_as_pinned, join_best
from graphtide.plan.physical import CheckBlock, Physical, Search

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.algebra.expressions import Exists, Expression, Var
    from graphtide.algebra.nodes import TriplePattern

Strategy = Literal["rete", "search", "decomposed"]

STRATEGIES: tuple[Strategy, ...] = ("rete", "search", "decomposed")

DEFAULT_STRATEGY: Strategy = "search"

LARGEST_SEARCH = 40
"""Most variables of one search before its checks; longer patterns are searched in pieces."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What a plan is made by: a strategy, what is known of the data, and what the user insists on.

    `pinned` is the join tree of the pattern that has as many triple patterns as it has numbers.
    With `union`, a query's default graph is the union of all graphs.
    """

    strategy: Strategy = DEFAULT_STRATEGY
    statistics: Statistics = NOTHING_KNOWN
    pinned: Pin | None = None
    union: bool = False


def plan_patterns(patterns: Sequence[TriplePattern], choices: Choices) -> Physical:
    """The plan of a basic graph pattern."""
    if choices.strategy == "decomposed":
        return make.decomposed(patterns)
    merged = [p for p in dict.fromkeys(patterns) if isinstance(p.graph, MergedGraph)]
    if merged:
        plain = [p for p in patterns if p not in merged]
        plans = [plan_patterns(plain, choices)] if plain else []
        return join_best([*plans, *map(make.matches, merged)], choices.statistics)
    if choices.pinned == "written":
        return join_in_order([make.search(group) for group in connected(patterns)])
    if choices.strategy == "rete":
        return _plan_rete(list(dict.fromkeys(patterns)), choices)
    return join_best([make.search(group) for group in connected(patterns)], choices.statistics)


def _plan_rete(patterns: list[TriplePattern], choices: Choices) -> Physical:
    if choices.pinned is not None and len(patterns) > 1:
        tree: JoinTree = choices.pinned  # type: ignore[assignment]  # "written" went another way
        return join_as_pinned(patterns, tree)
    return join_best([make.search(group) for group in edges(patterns)], choices.statistics)


def edges(patterns: Sequence[TriplePattern]) -> list[list[TriplePattern]]:
    """The input nodes of a network: each pattern of several variables, with its classes.

    A pattern of one variable (`?x a :Route`) only narrows another that has this variable: found
    together they make one node, and nothing is stored for the join of the two.
    """
    groups = [[p] for p in patterns if len(pattern_variables(p)) > 1]
    for pattern in patterns:
        own = pattern_variables(pattern)
        if len(own) > 1:
            continue
        home = next((g for g in groups if own and own[0] in pattern_variables(g[0])), None)
        if home is None or len(home) >= LARGEST_SEARCH:
            groups.append([pattern])
        else:
            home.append(pattern)
    return groups


def join_in_order(plans: Sequence[Physical]) -> Physical:
    """Join plans one after the other as they come."""
    if not plans:
        return make.ONE_EMPTY_ROW
    tree, *rest = plans
    for plan in rest:
        tree = make.join(tree, plan)
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
    plan: Physical, parts: Sequence[tuple[Expression, tuple[Exists, bool] | None]], choices: Choices
) -> tuple[Physical, list[Expression]]:
    """Move (NOT) EXISTS over plain patterns into the search itself; the conditions left over.

    Only checks that hang together with the searched patterns: one that does not is better served
    by a semijoin, which looks at the rows only when the check turns.
    """
    if choices.strategy != "search" or not isinstance(plan, Search):
        return plan, [part for part, _ in parts]
    left: list[Expression] = []
    checks: list[CheckBlock] = []
    room = MAX_PATTERNS - LARGEST_SEARCH
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
    if any(isinstance(p.graph, MergedGraph) for p in pattern.patterns):
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


# --- Which patterns inside EXISTS depend on the outer row in more than their shared variables.


def reads_outer(node: Node, outer: frozenset[Var]) -> bool:
    """Whether evaluating `node` once and joining it could differ from evaluating it per outer row.

    True when an expression mentions an outer variable that its own pattern does not certainly
    bind, and for OPTIONAL, MINUS and BIND that meet an outer variable: for these, substitution and
    joining are not the same. So it is with groups by, and ranges for each, other variables.
    """
    match node:
        case Bgp() | Values() | GraphNames() | Path():
            return False
        case Join(left, right) | Union(left, right):
            return reads_outer(left, outer) or reads_outer(right, outer)
        case Filter(condition, child):
            return _expression_reads(condition, child, outer) or reads_outer(child, outer)
        case Project(child, variables):
            return reads_outer(child, outer & frozenset(variables))
        case Distinct(child):
            return reads_outer(child, outer)
        case Group(child, keys):
            return reads_outer(child, outer) or bool((mentioned(child) & outer) - {*keys})
        case Slice(child, variables, per=per):
            seen = outer & frozenset(variables)
            return reads_outer(child, seen) or bool((mentioned(child) & seen) - {*per})
        case LeftJoin() | Minus() | Extend():
            return bool(mentioned(node) & outer)
        case _:
            assert_never(node)


def _expression_reads(expression: Expression, child: Node, outer: frozenset[Var]) -> bool:
    return bool((mentioned(expression) & outer) - certain(child))


def assigned(node: Node) -> frozenset[Var]:
    """The variables that a BIND inside `node` gives a value."""
    below: frozenset[Var] = frozenset().union(*map(assigned, children(node)))
    match node:
        case Extend(_, var, _):
            return below | {var}
        case Group(_, _, aggregates):
            return below | {a.var for a in aggregates}
        case _:
            return below
