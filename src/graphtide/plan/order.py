"""Join order: the tree of joins that is expected to store and pass on the fewest rows.

The cost of a join is the number of rows of its inputs, which it stores, and of its output. Up to
`MAX_EXACT` inputs, all trees without products are compared, including bushy ones (dynamic
programming over connected sets). Beyond, the pair with the smallest result is joined repeatedly.
Inputs that share no variables are multiplied last, smallest first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heappop, heappush, nsmallest
from itertools import count
from typing import TYPE_CHECKING, Literal

from graphtide.algebra.trees import Steps, finish
from graphtide.errors import GraphtideError
from graphtide.plan import make
from graphtide.plan.estimate import MAX_SKEWED, Estimate, Estimator, joined, joined_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from graphtide.algebra.expressions import Var
    from graphtide.algebra.nodes import TriplePattern
    from graphtide.plan.physical import Physical

MAX_EXACT = 8

MAX_PAIRS = 32
"""Trees with the fewest rows that a tree may be joined with next: of hundreds, not all pairs."""


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """A plan, or two trees to be joined; its expected rows, and the expected cost of its joins."""

    parts: Physical | tuple[Tree, Tree]
    expected: Estimate
    cost: float

    def meets(self, other: Tree) -> bool:
        """Whether the two share a variable."""
        return not self.expected.values.keys().isdisjoint(other.expected.values)


def join_best(plans: Sequence[Physical], expect: Estimator) -> Physical:
    """One plan that joins all of these."""
    if not plans:
        return make.ONE_EMPTY_ROW
    if len(plans) == 1:
        return plans[0]
    leaves = [Tree(plan, expect(plan), 0.0) for plan in plans]
    if len(leaves) > MAX_SKEWED:  # hubs would be compared for each pair
        leaves = [replace(leaf, expected=leaf.expected.without_hubs()) for leaf in leaves]
    parts = [_best(group) for group in _components(leaves)]
    parts.sort(key=lambda tree: tree.expected.rows)
    tree, *rest = parts
    for part in rest:
        tree = _joined(tree, part)
    return finish(_plan(tree, expect))


def _plan(tree: Tree, expect: Estimator) -> Steps[Physical]:
    """The plan of a tree; what was expected of its joins is not estimated again."""
    if not isinstance(tree.parts, tuple):
        return tree.parts
    one, other = tree.parts
    plan = make.join((yield _plan(one, expect)), (yield _plan(other, expect)))
    expect.learn(plan, tree.expected)
    return plan


def _joined(left: Tree, right: Tree) -> Tree:
    expected = joined(left.expected, right.expected)
    own = left.expected.rows + right.expected.rows + expected.rows
    return Tree((left, right), expected, left.cost + right.cost + own)


def _components(leaves: Sequence[Tree]) -> Iterator[list[Tree]]:
    """Groups of leaves that are connected by variables."""
    readers: dict[Var, list[int]] = {}
    for number, leaf in enumerate(leaves):
        for var in leaf.expected.values:
            readers.setdefault(var, []).append(number)
    placed: set[int] = set()
    for first in range(len(leaves)):
        if first in placed:
            continue
        placed.add(first)
        group = [first]
        for member in group:
            lists = (readers.pop(var, ()) for var in leaves[member].expected.values)
            near = sorted({number for each in lists for number in each} - placed)
            placed.update(near)
            group += near
        yield [leaves[number] for number in group]


def _best(leaves: Sequence[Tree]) -> Tree:
    return _exact(leaves) if len(leaves) <= MAX_EXACT else _greedy(leaves)


def _exact(leaves: Sequence[Tree]) -> Tree:
    """The cheapest tree over connected leaves, by dynamic programming over sets of leaves."""
    best: dict[int, Tree] = {1 << i: leaf for i, leaf in enumerate(leaves)}
    everything = (1 << len(leaves)) - 1
    for whole in sorted(range(1, everything + 1), key=int.bit_count):
        for left in _halves(whole):
            one, other = best.get(left), best.get(whole ^ left)
            if one is None or other is None or not one.meets(other):
                continue
            known = best.get(whole)
            if known is not None and one.cost + other.cost >= known.cost:
                continue  # without their join it already costs as much
            tree = _joined(one, other)
            if known is None or tree.cost < known.cost:
                best[whole] = tree
    return best[everything]


def _halves(whole: int) -> list[int]:
    """The subsets of a set with its lowest member, largest first: each split in two, once.

    >>> [bin(part) for part in _halves(0b111)]
    ['0b11', '0b101', '0b1']
    """
    lowest = whole & -whole
    parts = [part for part in range(lowest, whole) if part & whole == part and part & lowest]
    return sorted(parts, key=lambda part: -part.bit_count())


def _greedy(leaves: Sequence[Tree]) -> Tree:
    """Join the pair with the smallest result, the oldest of several, until one tree is left."""
    trees: dict[int, Tree] = {}
    readers: dict[Var, set[int]] = {}
    pairs: list[tuple[float, int, int, int]] = []  # a heap: rows, age, and the numbers of two trees
    ages = count()

    def add(tree: Tree) -> None:
        number = next(ages)
        lists = [readers.setdefault(var, set()) for var in tree.expected.values]
        near = sorted(set().union(*lists))
        if len(near) > MAX_PAIRS:
            near = sorted(nsmallest(MAX_PAIRS, near, key=lambda n: trees[n].expected.rows))
        for other in near:
            rows = joined_rows(trees[other].expected, tree.expected)
            heappush(pairs, (rows, next(ages), other, number))
        for each in lists:
            each.add(number)
        trees[number] = tree

    def take(number: int) -> Tree:
        tree = trees.pop(number)
        for var in tree.expected.values:
            readers[var].remove(number)
        return tree

    for leaf in leaves:
        add(leaf)
    while len(trees) > 1:
        _, _, one, other = heappop(pairs)
        if one in trees and other in trees:
            add(_joined(take(one), take(other)))
    return trees.popitem()[1]


# --- pinned plans: join trees that the user chooses ---
#
# A tree refers to the triple patterns of a query by number, from 0 in text order: `((0, 1), 2)`
# joins the first two and then the third. `"written"` plans the algebra as written, without rewrite
# rules, and with one input node per pattern.

JoinTree = int | tuple["JoinTree", "JoinTree"]
Pin = JoinTree | Literal["written"]


def numbers_of(tree: JoinTree) -> Iterator[int]:
    """The pattern numbers in a join tree, from left to right.

    >>> list(numbers_of(((2, 0), 1)))
    [2, 0, 1]
    """
    match tree:
        case int() if not isinstance(tree, bool):
            yield tree
        case (left, right):
            yield from numbers_of(left)
            yield from numbers_of(right)
        case _:
            raise GraphtideError(
                f"{tree!r} is not a join tree",
                hint="nest pairs of pattern numbers, such as ((0, 1), 2)",
            )


def join_as_pinned(patterns: Sequence[TriplePattern], tree: JoinTree) -> Physical:
    """The plan of a basic graph pattern by a join tree."""
    numbers = list(numbers_of(tree))
    if sorted(numbers) != list(range(len(patterns))):
        raise GraphtideError(
            f"the plan {tree!r} must contain each pattern from 0 to {len(patterns) - 1} once",
            hint="number the triple patterns of the query's largest group from 0 in text order",
        )

    def build(part: JoinTree) -> Physical:
        if isinstance(part, int):
            return make.search((patterns[part],))
        return make.join(build(part[0]), build(part[1]))

    return build(tree)
