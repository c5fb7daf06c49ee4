"""Join order: the tree of joins that is expected to store and pass on the fewest rows.

The cost of a join is the number of rows of its inputs, which it stores, and of its output; or how
many of these rows change, if that is known. Up to `MAX_EXACT` inputs, all trees without products
are compared, including bushy ones (dynamic programming over connected sets). Beyond, the pair with
the smallest result is joined repeatedly. Inputs that share no variables are multiplied last,
smallest first.

Where only the distinct values of some columns matter, as for EXISTS, columns that no later join
reads are dropped, and equal rows counted once, if that makes the whole tree cheaper.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from heapq import heappop, heappush, nsmallest
from itertools import count, product
from math import expm1, log2, prod
from typing import TYPE_CHECKING, Literal

from graphtide.algebra.trees import Steps, finish
from graphtide.errors import GraphtideError
from graphtide.plan import make
from graphtide.plan.estimate import MAX_SKEWED, Estimate, Estimator, joined, joined_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from graphtide.algebra.expressions import Var
    from graphtide.algebra.nodes import TriplePattern
    from graphtide.algebra.variables import Schema
    from graphtide.plan.physical import Physical

MAX_EXACT = 8

MAX_PAIRS = 32
"""Trees with the fewest rows that a tree may be joined with next: of hundreds, not all pairs."""


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """A plan, or two trees to be joined; its expected rows, and the expected cost of its joins.

    With `kept`, the distinct values of these columns. With `turnover`, how often a row changes.
    """

    parts: Physical | tuple[Tree, Tree]
    expected: Estimate
    cost: float
    kept: Schema | None = None
    turnover: float | None = None

    @property
    def work(self) -> float:
        """The rows that are stored or passed on; with a turnover, those that change."""
        return self.expected.rows * (1.0 if self.turnover is None else self.turnover)

    def meets(self, other: Tree) -> bool:
        """Whether the two share a variable."""
        return not self.expected.values.keys().isdisjoint(other.expected.values)


NARROWING = (0.5, 0.9)
"""The shares of rows of which at most one may be left where equal ones are counted: each is tried,
since fewer rows at one join may be far fewer at the next."""


def join_distinct(plans: Sequence[Physical], read: frozenset[Var], expect: Estimator) -> Physical:
    """One plan that joins all of these, of which only the distinct values of some columns matter.

    It may have other columns, and equal rows.
    """
    leaves = _leaves(plans, expect)
    trees = (_tree(leaves, _Narrowing(read, share)) for share in NARROWING)
    return finish(_plan(min(trees, key=lambda tree: tree.cost), expect))


def join_best(
    plans: Sequence[Physical], expect: Estimator, turnover: Sequence[float] | None = None
) -> Physical:
    """One plan that joins all of these; best for changes, if known is how often rows change."""
    if not plans:
        return make.ONE_EMPTY_ROW
    if len(plans) == 1:
        return plans[0]
    leaves = _leaves(plans, expect)
    if turnover is not None:
        pairs = zip(leaves, turnover, strict=True)
        leaves = [replace(leaf, turnover=often) for leaf, often in pairs]
    return finish(_plan(_tree(leaves), expect))


def _leaves(plans: Sequence[Physical], expect: Estimator) -> list[Tree]:
    leaves = [Tree(plan, expect(plan), 0.0) for plan in plans]
    if len(leaves) > MAX_SKEWED:  # hubs would be compared for each pair
        leaves = [replace(leaf, expected=leaf.expected.without_hubs()) for leaf in leaves]
    return leaves


def _tree(leaves: Sequence[Tree], narrowing: _Narrowing | None = None) -> Tree:
    parts = [_best(group, narrowing) for group in _components(leaves)]
    parts.sort(key=lambda tree: tree.expected.rows)
    tree, *rest = parts
    for part in rest:
        tree = _joined(tree, part)
    return tree


def _plan(tree: Tree, expect: Estimator) -> Steps[Physical]:
    """The plan of a tree; what was expected of its joins is not estimated again."""
    if isinstance(tree.parts, tuple):
        one, other = tree.parts
        plan = make.join((yield _plan(one, expect)), (yield _plan(other, expect)))
    else:
        plan = tree.parts
    if tree.kept is not None:
        plan = make.unique(make.keep(plan, tree.kept))
    expect.learn(plan, tree.expected)
    return plan


def _joined(left: Tree, right: Tree) -> Tree:
    expected = joined(left.expected, right.expected)
    own, turnover = expected.rows, None
    if left.turnover is not None and right.turnover is not None:
        turnover = left.turnover + right.turnover  # a row changes with each of its parts
        own *= turnover
    cost = left.cost + right.cost + left.work + right.work + own
    return Tree((left, right), expected, cost, turnover=turnover)


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


@dataclass(frozen=True, slots=True)
class _Narrowing:
    """Drops columns that are not `read` in the end or by later joins, if few enough rows are left.

    The share of rows is that of the columns, whatever the tree is.
    """

    read: frozenset[Var]
    share: float

    def __call__(self, tree: Tree, later: Collection[Var]) -> Tree:
        """A tree without the columns that nobody reads, or as it is."""
        found = tree.expected
        kept = tuple(v for v in found.values if v in self.read or v in later)
        if not later or not kept or len(kept) == len(found.values):
            return tree  # a semijoin counts its rows itself
        left = distinct(found, kept)
        if left.rows > self.share * found.rows:
            return tree
        return Tree(tree.parts, left, tree.cost + found.rows + left.rows, kept)


MAX_COMBINED = 3
"""Columns up to which frequent values are combined."""


def distinct(found: Estimate, columns: Schema) -> Estimate:
    """The distinct values of some columns of rows that are drawn independently.

    A combination of values with a share s of n rows is there with probability 1 - exp(-n s).

    >>> from graphtide.algebra.expressions import Var
    >>> a, b = Var("a"), Var("b")
    >>> round(distinct(Estimate(100.0, {a: 10.0, b: 10.0}), (a, b)).rows, 1)  # 100 (1 - 1 / e)
    63.2
    >>> skewed = Estimate(100.0, {a: 10.0, b: 10.0}, {a: {"hub": 91.0}})
    >>> round(distinct(skewed, (a, b)).rows, 1)  # 10 (1 - exp(-9.1)) + 90 (1 - exp(-0.1))
    18.6
    """
    values = {v: found.of(v) for v in columns}
    samples = {v: found.samples[v] for v in columns if v in found.samples}
    if len(columns) > MAX_COMBINED:
        return Estimate(min(found.rows, prod(values.values())), values, {}, samples)
    shares = {v: _value_shares(found, v) for v in columns}

    def there(vars_: Sequence[Var], share: float) -> float:
        """How many combinations of values are there in a share of the rows."""
        combined = product(*(shares[v].items() for v in vars_))
        return sum(
            -expm1(-found.rows * share * prod(s for s, _ in each)) * prod(n for _, n in each)
            for each in combined
        )

    hubs = {}
    for var in columns:
        others = [v for v in columns if v != var]
        known = found.hubs.get(var, {}).items()
        hubs[var] = {name: there(others, n / max(found.rows, 1e-9)) for name, n in known}
    return Estimate(min(found.rows, there(columns, 1.0)), values, hubs, samples)


def _value_shares(found: Estimate, var: Var) -> dict[float, float]:
    """The share of the rows that a value has -> how many values have about that share."""
    rows = max(found.rows, 1e-9)
    hubs = found.hubs.get(var, {})
    shares: dict[float, float] = defaultdict(float)
    for number in hubs.values():
        shares[2.0 ** round(log2(max(number / rows, 1e-9)))] += 1
    others = max(found.of(var) - len(hubs), 0.0)
    if others:
        shares[found.beside_hubs(var) / rows / others] += others
    return shares


def _best(leaves: Sequence[Tree], narrowing: _Narrowing | None = None) -> Tree:
    find = _exact if len(leaves) <= MAX_EXACT else _greedy
    return find(leaves, narrowing)


def _exact(leaves: Sequence[Tree], narrowing: _Narrowing | None) -> Tree:
    """The cheapest tree over connected leaves, by dynamic programming over sets of leaves."""
    best: dict[int, Tree] = {1 << i: leaf for i, leaf in enumerate(leaves)}
    everything = (1 << len(leaves)) - 1

    def later(whole: int) -> set[Var]:
        rest = (leaf for i, leaf in enumerate(leaves) if not whole >> i & 1)
        return {var for leaf in rest for var in leaf.expected.values}

    if narrowing is not None:
        best = {each: narrowing(leaf, later(each)) for each, leaf in best.items()}
    for whole in sorted(range(1, everything + 1), key=int.bit_count):
        for left in _halves(whole):
            one, other = best.get(left), best.get(whole ^ left)
            if one is None or other is None or not one.meets(other):
                continue
            known = best.get(whole)
            if known is not None and one.cost + other.cost >= known.cost:
                continue  # without their join it already costs as much
            tree = _joined(one, other)
            if narrowing is not None:
                tree = narrowing(tree, later(whole))
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


def _greedy(leaves: Sequence[Tree], narrowing: _Narrowing | None) -> Tree:
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
            tree = _joined(take(one), take(other))
            if narrowing is not None:
                tree = narrowing(tree, [v for v in tree.expected.values if readers[v]])
            add(tree)
    return trees.popitem()[1]


# --- pinned plans: join trees that the user chooses ---
#
# A tree refers to the triple patterns of a query by number, from 0 in text order: `((0, 1), 2)`
# joins the first two and then the third. `"written"` plans the algebra as written, without rewrite
# rules, and with one input node per pattern.

JoinTree = int | tuple["JoinTree", "JoinTree"]
Pin = JoinTree | Literal["written"]


def check_pin(given: object) -> None:
    """Raise unless an argument is a join tree, or "written"; without asking how many patterns."""
    if given != "written" if isinstance(given, str) else given is not None:
        for _ in numbers_of(given):  # type: ignore[arg-type] # it raises for what is no tree
            pass


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
                f"{tree!r:.80} is not a join tree",
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
