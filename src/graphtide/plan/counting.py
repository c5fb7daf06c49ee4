"""The strategy `counting`: aggregates over an acyclic join, from counts by key, without the join.

The inputs of a join are the nodes of a *join tree*: whatever two of them have in common is in every
node between them. Each node sends its parent, for each value of the variables that they share, how
many rows its subtree has there, and the sums of what is aggregated. The root has the variables of
the groups; so the tree exists if the join is acyclic, and stays so with the groups as one more
edge: if it is *free-connex*. [Idris, Ugarte, Vansummeren: The Dynamic Yannakakis Algorithm,
SIGMOD 2017; Nikolic, Olteanu: Incremental View Maintenance with Triple Lock Factorization Benefits,
SIGMOD 2018]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from graphtide.algebra import nodes as alg
from graphtide.algebra.expressions import Exists, Expression, Var
from graphtide.algebra.rewrite import conjuncts
from graphtide.algebra.traverse import walk
from graphtide.algebra.variables import Schema, mentioned, merge
from graphtide.errors import UnsupportedError
from graphtide.plan import make
from graphtide.plan import physical as phys

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = -1
"""The parent of the inputs that send their counts to the groups."""

COUNTED = ("COUNT", "SUM", "AVG")
"""The aggregates of a product that follow from those of its factors."""

Step = tuple[Var | None, Expression]
"""A condition, or a variable and how it is computed."""

Cost = Callable[[phys.Counting], float]

MOST_TREES = 8
"""Inputs up to which each is tried as the root of a join tree."""


def join_tree(edges: Sequence[frozenset[Var]], keys: frozenset[Var]) -> tuple[int, ...] | None:
    """For each edge the number of its parent, with `keys` at the root; None if there is no tree.

    An edge is an *ear* if what it shares with all others is in one of them, or in the keys: its
    parent. Ears are removed until nothing is left (Graham, Yu and Ozsoyoglu). An edge that has got
    a child waits for the next round, so that trees are low.

    >>> a, b, c, d = (Var(name) for name in "abcd")
    >>> path = [frozenset(pair) for pair in ((a, b), (b, c), (c, d))]
    >>> join_tree(path, frozenset())
    (1, -1, 1)
    >>> join_tree(path, frozenset({d})), join_tree(path, frozenset({a, d}))
    ((1, 2, -1), None)
    """
    parents = [ROOT] * len(edges)
    having: dict[Var, dict[int, None]] = {}
    for number, edge in enumerate(edges):
        for var in edge:
            having.setdefault(var, {})[number] = None
    rest = list(range(len(edges)))
    while rest:
        left: list[int] = []
        waiting: set[int] = set()
        for number in rest:
            edge = edges[number]
            shared = [v for v in edge if v in keys or len(having[v]) > 1]
            if not keys.issuperset(shared) or number in waiting:
                near = min((having[v] for v in shared), key=len, default={})
                found = (n for n in near if n != number and edges[n].issuperset(shared))
                parent = ROOT if number in waiting else max(found, default=ROOT)
                if parent == ROOT:
                    left.append(number)
                    continue
                parents[number] = parent
                waiting.add(parent)
            for var in edge:
                del having[var][number]
        if len(left) == len(rest):
            return None
        rest = left
    return tuple(parents)


def is_counted(aggregate: alg.Aggregate) -> bool:
    """Whether totals are enough for an aggregate; others need the values themselves."""
    return aggregate.function in COUNTED and not aggregate.distinct


def needs_values(aggregate: alg.Aggregate) -> bool:
    """Whether the different values of a group are enough for an aggregate, however often each is.

    >>> [needs_values(alg.Aggregate(Var("n"), name, Var("v"))) for name in ("MAX", "SUM")]
    [True, False]
    """
    once = aggregate.distinct or aggregate.function in ("MIN", "MAX")
    return once and aggregate.argument is not None


def is_input(node: alg.Node) -> bool:
    """Whether an operand of a join may be an input; others would be planned once more."""
    return isinstance(node, alg.Bgp | alg.Path | alg.Values)


def peeled(node: alg.Node) -> tuple[alg.Node, list[Step]]:
    """A join, and the conditions and computed columns above it, from the lowest on."""
    steps: list[Step] = []
    while isinstance(node, alg.Filter | alg.Extend):
        if isinstance(node, alg.Filter):
            steps += ((None, part) for part in reversed(conjuncts(node.condition)))
        else:
            steps.append((node.var, node.expression))
        node = node.child
    return node, steps[::-1]


def grouped(
    inputs: Sequence[phys.Physical],
    steps: Sequence[Step],
    keys: Schema,
    aggregates: tuple[alg.Aggregate, ...],
    *,
    always: bool,
    cost: Cost | None = None,
) -> phys.Physical:
    """The groups of a join: counted, or from the different values that are counted for each group.

    `UnsupportedError` says why there are none. Of several join trees, the one of the least `cost`
    is taken.
    """
    of_values = tuple(each for each in aggregates if needs_values(each))
    if not of_values:
        return counting(inputs, steps, keys, aggregates, always=always, cost=cost)
    wider = merge(keys, tuple(each.argument for each in of_values if each.argument is not None))
    rows = counting(inputs, steps, wider, (), always=False, cost=cost)
    groups = make.group(rows, keys, of_values)
    others = tuple(each for each in aggregates if not needs_values(each))
    if not others:
        return groups
    if not groups.certain.issuperset(keys):
        raise UnsupportedError("counting does not apply: a group may have an unbound key")
    counted = counting(inputs, steps, keys, others, always=always, cost=cost)
    return make.keep(make.join(counted, groups), (*keys, *(each.var for each in aggregates)))


def counting(
    inputs: Sequence[phys.Physical],
    steps: Sequence[Step],
    keys: Schema,
    aggregates: tuple[alg.Aggregate, ...],
    *,
    always: bool,
    cost: Cost | None = None,
) -> phys.Counting:
    """The node that counts the groups of a join; `UnsupportedError` says why there is none."""
    for each in aggregates:
        if not is_counted(each):
            name = f"{each.function}{'(DISTINCT …)' * each.distinct}"
            raise UnsupportedError(f"counting does not apply: {name} needs the values themselves")
    if len(inputs) < 2:
        raise UnsupportedError(
            "counting does not apply: it needs a join of triple patterns, paths and VALUES"
        )
    parts = tuple(_with_steps(inputs, steps))
    every = merge(*(part.schema for part in parts))
    if not aggregates and set(keys).issuperset(every):
        raise UnsupportedError("counting does not apply: every variable is selected")
    loose = {v for part in parts for v in part.schema if v not in part.certain}
    for var in every:
        if var in loose and sum(var in part.schema for part in parts) > 1:
            raise UnsupportedError(
                f"counting does not apply: ?{var.name} joins, and may be unbound"
            )
    schema = (*keys, *(a.var for a in aggregates))
    certain = frozenset(v for v in keys if v in every and v not in loose)
    counts = frozenset(a.var for a in aggregates if a.function == "COUNT")
    parents = _parents(parts, frozenset(keys).intersection(every))
    node = phys.Counting(parts, parents, keys, aggregates, always, schema, certain | counts)
    if cost is None or len(parts) > MOST_TREES:
        return node
    for root in [i for i, each in enumerate(sent(node)) if parents[i] == ROOT and not each]:
        node = min((node, *_other_roots(node, root)), key=cost)
    return node


def _other_roots(node: phys.Counting, root: int) -> Iterator[phys.Counting]:
    """The same with each other input of a tree as its root, if it sends no keys to the groups.

    A change goes from its input to the root, and on its way to all that meets it there. So which
    changes cost most depends on the root: `COUNT(*) { ?a :follows ?b . ?b :follows ?c }` counts
    the followers of ?b first, or those whom ?b follows.
    """
    for number in range(len(node.inputs)):
        way = [number]
        while (above := node.parents[way[-1]]) != ROOT:
            way.append(above)
        if number != root == way[-1]:
            parents = list(node.parents)
            for child, parent in zip(way, [ROOT, *way], strict=False):
                parents[child] = parent
            yield replace(node, parents=tuple(parents))


def _parents(parts: Sequence[phys.Physical], keys: frozenset[Var]) -> tuple[int, ...]:
    edges = [frozenset(part.schema) for part in parts]
    if join_tree(edges, frozenset()) is None:
        raise UnsupportedError("counting does not apply: the patterns form a cycle")
    parents = join_tree(edges, keys)
    if parents is None:
        named = ", ".join(sorted(f"?{v.name}" for v in keys))
        raise UnsupportedError(
            f"counting does not apply: the groups by {named} close a cycle with the patterns",
            hint="group by variables of one pattern, or of neighbouring ones; or use another "
            "strategy",
        )
    return parents


def _with_steps(inputs: Sequence[phys.Physical], steps: Sequence[Step]) -> list[phys.Physical]:
    """Inputs with the conditions and computed columns that read one of them."""
    parts = list(inputs)
    for var, expression in steps:
        read = mentioned(expression)
        if any(isinstance(each, Exists) for each in walk(expression)):
            raise UnsupportedError("counting does not apply: rows are tested by EXISTS")
        at = next((i for i, part in enumerate(parts) if read <= set(part.schema)), None)
        if at is None:
            raise UnsupportedError(
                "counting does not apply: an expression reads variables of several patterns"
            )
        if var is None:
            parts[at] = make.select(parts[at], expression)
        else:
            parts[at] = make.compute(parts[at], (var, expression))
    return parts


def sent(node: phys.Counting) -> tuple[Schema, ...]:
    """For each input, the variables by which it sends counts to its parent."""
    above = [node.keys if parent == ROOT else node.inputs[parent].schema for parent in node.parents]
    return tuple(
        tuple(v for v in part.schema if v in shared)
        for part, shared in zip(node.inputs, above, strict=True)
    )


def stored(node: phys.Counting) -> tuple[Schema, ...]:
    """For each input, the variables by which it counts: of what it sends, and of what it gets."""
    shared = sent(node)
    used = [set(each) for each in shared]
    for each, parent in zip(shared, node.parents, strict=True):
        if parent != ROOT:
            used[parent].update(each)
    return tuple(
        tuple(v for v in part.schema if v in own)
        for part, own in zip(node.inputs, used, strict=True)
    )
