"""Plan basic graph patterns, by strategy.

    rete        one input node per edge of the pattern, binary joins with memories
    search      one search per connected group of patterns; stores nothing but the quads
    decomposed  variables are bound one after the other; stores a bit per pattern and instance
    counting    aggregates from counts by key (`plan.counting`); what is not aggregated is searched

A search orders its joins at run time, by the current number of candidates. For `rete`, `plan.order`
chooses the join order by statistics. In both, groups that share no variable are joined with
memories. `decomposed` is planned by `plan.decomposition`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, assert_never

from graphtide.algebra import nodes as alg
from graphtide.algebra.trees import bottom_up
from graphtide.algebra.variables import certain, mentioned, pattern_variables, schema
from graphtide.kernel.search.program import MAX_PATTERNS
from graphtide.plan import make
from graphtide.plan.estimate import NOTHING_KNOWN, Estimator, Statistics, pattern_estimate
from graphtide.plan.order import JoinTree, Pin, distinct, join_as_pinned, join_best, join_distinct
from graphtide.plan.physical import CheckBlock, Physical, Search, Unique

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from graphtide.algebra.expressions import Exists, Expression, Var
    from graphtide.algebra.variables import Schema

Strategy = Literal["rete", "search", "decomposed", "counting"]

STRATEGIES: tuple[Strategy, ...] = ("rete", "search", "decomposed", "counting")

DEFAULT_STRATEGY: Strategy = "search"

Groups = Callable[["Sequence[alg.TriplePattern]"], "list[list[alg.TriplePattern]]"]
"""Divides the patterns of a basic graph pattern into input nodes."""

LARGEST_SEARCH = 40
"""Maximum number of variables of a search without checks; larger patterns are split."""


@dataclass(frozen=True, slots=True)
class Choices:
    """The options of planning: strategy, statistics, and a join tree of the user.

    `pinned` applies to the basic graph pattern with as many triple patterns as the tree.
    With `union`, the default graph is the union of all graphs. `groups` says which patterns are one
    input node of a Rete network, by default `edges`. With `reduced`, (NOT) EXISTS over triple
    patterns is a join of the patterns with the rows in question (`matched`). With `pushed`, it
    filters the rows of one input node that has all of its variables, before these are joined. With
    `observed`, the join order of a Rete network is that for the changes that were observed.
    """

    strategy: Strategy = DEFAULT_STRATEGY
    statistics: Statistics = NOTHING_KNOWN
    pinned: Pin | None = None
    union: bool = False
    groups: Groups | None = None
    reduced: bool = False
    pushed: bool = False
    observed: bool = False
    expect: Estimator = field(
        default_factory=lambda: Estimator(NOTHING_KNOWN), compare=False, repr=False
    )
    """One for all parts of a query: each node is estimated once."""

    def __post_init__(self) -> None:
        if self.expect.statistics is not self.statistics:
            object.__setattr__(self, "expect", Estimator(self.statistics))


def plan_patterns(patterns: Sequence[alg.TriplePattern], choices: Choices) -> Physical:
    """The plan of a basic graph pattern."""
    if choices.strategy == "decomposed":
        return make.decomposed(patterns)
    merged = [p for p in dict.fromkeys(patterns) if isinstance(p.graph, alg.MergedGraph)]
    if merged:
        plain = [p for p in patterns if p not in merged]
        plans = [plan_patterns(plain, choices)] if plain else []
        return join_best([*plans, *map(make.matches, merged)], choices.expect)
    if choices.pinned == "written":
        return join_in_order([make.search(group) for group in connected(patterns)])
    if choices.strategy == "rete":
        return _plan_rete(list(dict.fromkeys(patterns)), choices)
    return join_best([make.search(group) for group in connected(patterns)], choices.expect)


def over_merged_graphs(patterns: Iterable[alg.TriplePattern]) -> bool:
    """Whether a pattern reads a merge of several graphs, which no search can."""
    return any(isinstance(p.graph, alg.MergedGraph) for p in patterns)


def _plan_rete(patterns: list[alg.TriplePattern], choices: Choices) -> Physical:
    if choices.pinned is not None and len(patterns) > 1:
        tree: JoinTree = choices.pinned  # type: ignore[assignment]  # "written" went another way
        return join_as_pinned(patterns, tree)
    groups = (choices.groups or edges)(patterns)
    turnover = [_turnover(group, choices.statistics) for group in groups if choices.observed]
    return join_best([make.search(group) for group in groups], choices.expect, turnover or None)


UNSEEN = 0.1
"""The share of changes that may be of any quad, whatever was observed."""


def _turnover(patterns: Sequence[alg.TriplePattern], statistics: Statistics) -> float:
    """How often rows of an input node change, while changes are observed."""
    quads = [(p, max(pattern_estimate(p, statistics).rows, 1.0)) for p in patterns]
    every = sum(statistics.rates.values()) / max(statistics.quads, 1)
    return UNSEEN * every + sum(statistics.observed(p, many) / many for p, many in quads)


def edges(patterns: Sequence[alg.TriplePattern]) -> list[list[alg.TriplePattern]]:
    """The input nodes of a Rete network: each pattern of several variables, with its classes.

    A pattern of one variable (`?x a :Route`) only filters another one with this variable: in one
    node, their join stores nothing.
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


def input_with(
    groups: Sequence[Sequence[alg.TriplePattern]], tested: alg.Node
) -> Sequence[alg.TriplePattern]:
    """The input node with all variables that several share with a (NOT) EXISTS, if there is one.

    >>> from graphtide.algebra.expressions import Var
    >>> p = alg.TriplePattern(Var("a"), Var("p"), Var("b"))
    >>> q = alg.TriplePattern(Var("b"), Var("q"), Var("c"))
    >>> input_with([[p], [q]], alg.Bgp((p,))) == [p], input_with([[p], [q]], alg.Bgp((p, q)))
    (True, ())
    """
    variables = [{v for p in group for v in pattern_variables(p)} for group in groups]
    wanted = set().union(*variables).intersection(schema(tested))
    whole = (group for group, own in zip(groups, variables, strict=True) if wanted <= own)
    return next(whole, ()) if wanted else ()


def join_in_order(plans: Sequence[Physical]) -> Physical:
    """A left-deep join of plans in the given order."""
    if not plans:
        return make.ONE_EMPTY_ROW
    tree, *rest = plans
    for plan in rest:
        tree = make.join(tree, plan)
    return tree


def connected(patterns: Sequence[alg.TriplePattern]) -> list[list[alg.TriplePattern]]:
    """Groups of patterns connected by variables, each in an order that stays connected."""
    rest = list(dict.fromkeys(patterns))
    groups: list[list[alg.TriplePattern]] = []
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
    """Move (NOT) EXISTS over plain patterns into the search; returns the other conditions too.

    Only checks that share variables with the search: for others a semijoin is better, because it
    reads the rows only when the result of the check changes.
    """
    if choices.strategy != "search" or choices.reduced or not isinstance(plan, Search):
        return plan, [part for part, _ in parts]
    left: list[Expression] = []
    checks: list[CheckBlock] = []
    room = MAX_PATTERNS - LARGEST_SEARCH
    for part, existence in parts:
        pattern = existence[0].pattern if existence else None
        if existence and isinstance(pattern, alg.Bgp) and _fits(plan, pattern, room):
            tested = dict.fromkeys(pattern.patterns)
            by_cost = sorted(tested, key=lambda p: _fan_out(p, plan, choices.statistics))
            checks.append(CheckBlock(existence[1], tuple(by_cost)))
            room -= _size(pattern)
        else:
            left.append(part)
    return make.search(plan.patterns, checks), left


def _fan_out(pattern: alg.TriplePattern, plan: Search, statistics: Statistics) -> float:
    """How many rows a pattern of a check has for a variable that the search does not bind.

    A change of a pattern without variables of the search is connected with its rows by the first of
    the other patterns that can be (`kernel.search.program.walks_of`).
    """
    local = [v for v in pattern_variables(pattern) if v not in plan.schema]
    expected = pattern_estimate(pattern, statistics)
    return min((expected.rows / expected.of(v) for v in local), default=0.0)


def _fits(plan: Search, pattern: alg.Bgp, room: int) -> bool:
    if not pattern.patterns or _size(pattern) > room:
        return False
    if over_merged_graphs(pattern.patterns):
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


def _size(pattern: alg.Bgp) -> int:
    """An upper bound of the number of triple patterns and of variables."""
    return max(len(pattern.patterns), len(schema(pattern)))


# --- correlation: EXISTS patterns that depend on the outer row beyond shared variables ---


def reads_outer(node: alg.Node, outer: frozenset[Var]) -> bool:
    """Whether evaluating `node` once and joining it could differ from evaluating it per outer row.

    True if an expression uses an outer variable that its own pattern does not certainly bind, and
    for OPTIONAL, MINUS and BIND with an outer variable: there, substitution and join differ. The
    same holds for GROUP BY and LIMIT whose keys do not contain the outer variables.
    """
    rest = [(node, outer)]
    while rest:
        node, outer = rest.pop()
        reads = False
        match node:
            case alg.Bgp() | alg.Values() | alg.GraphNames() | alg.Path():
                pass
            case alg.Join(left, right) | alg.Union(left, right):
                rest += ((left, outer), (right, outer))
            case alg.Filter(condition, child):
                reads = bool((mentioned(condition) & outer) - certain(child))
                rest.append((child, outer))
            case alg.Project(child, variables):
                rest.append((child, outer & frozenset(variables)))
            case alg.Distinct(child):
                rest.append((child, outer))
            case alg.Group(child, keys):
                reads = bool((mentioned(child) & outer) - {*keys})
                rest.append((child, outer))
            case alg.Slice(child, variables, per=per):
                seen = outer & frozenset(variables)
                reads = bool((mentioned(child) & seen) - {*per})
                rest.append((child, seen))
            case alg.LeftJoin() | alg.Minus() | alg.Extend():
                reads = bool(mentioned(node) & outer)
            case _:
                assert_never(node)
        if reads:
            return True
    return False


def assigned(node: alg.Node) -> frozenset[Var]:
    """The variables that a BIND inside `node` assigns."""
    found: set[Var] = set()
    for each in bottom_up(node):
        match each:
            case alg.Extend(_, var, _):
                found.add(var)
            case alg.Group(_, _, aggregates):
                found.update(a.var for a in aggregates)
            case _:
                pass
    return frozenset(found)


# --- semijoin reduction: (NOT) EXISTS by joins that start from the rows in question ---
#
# A semijoin stores all keys for which its right side has a match, which may be far more than there
# are rows to test: all pairs with a common tag, where few pairs are asked for. So the distinct keys
# of the rows are joined with the patterns, in the best order. Columns that no later join reads are
# dropped early, and equal rows counted once: whether there is a match does not depend on how many
# there are.

REPEATED = 0.5
"""The share of rows that differ up to which they are counted before a semijoin gets them."""


def searched(
    rows: Physical, keys: Schema, patterns: Sequence[alg.TriplePattern], expect: Estimator
) -> Physical | None:
    """The keys of searched rows for which patterns have a match, by one search for both.

    It finds every match of a row, but stores no joined rows. None if it would be too large.
    """
    if not isinstance(rows, Search) or rows.checks:
        return None
    whole, *others = connected([*rows.patterns, *patterns])
    return None if others else _keys(make.search(whole), keys, rows, expect)


def _keys(found: Physical, keys: Schema, rows: Physical, expect: Estimator) -> Physical:
    """What was found for rows: their keys once, if otherwise each would be there several times."""
    every = expect(found)
    different = distinct(every, keys)
    different = different.scaled(min(1.0, expect(rows).rows / max(different.rows, 1e-9)))
    if isinstance(found, Unique) or different.rows > REPEATED * every.rows:
        return found
    once = make.unique(make.keep(found, keys))
    expect.learn(once, different)
    return once


def matched(rows: Physical, keys: Schema, parts: Sequence[Physical], expect: Estimator) -> Physical:
    """The keys of rows for which all parts have a match."""
    asked = make.keep(rows, keys)
    if not isinstance(rows, Search) or len(keys) < len(rows.schema):
        asked = make.unique(asked)  # rows of a search are different
    return _keys(join_distinct([asked, *parts], frozenset(keys), expect), keys, rows, expect)
