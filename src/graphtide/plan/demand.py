"""Demand: what is joined with a property path says from which nodes it has to be followed.

A join drops the rows of a path whose ends have no partner. So the values of the other side become
the sources of the path's closure, and nothing is stored for any other node: the "magic sets" of
deductive databases. Constants of filters, VALUES, BIND, EXISTS, OPTIONAL and MINUS are joins or
selections by now, so this pass over the physical plan has them all.

Demands flow down, from a node to its inputs, as far as a column passes through unchanged. A node
with several consumers has only the demands that all of them have. At a join, the side that is
expected to be smaller demands from the other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pyoxigraph import NamedNode

from graphtide.algebra.expressions import Call, Const, Expression, Var
from graphtide.algebra.rewrite import conjuncts
from graphtide.algebra.trees import bottom_up
from graphtide.plan import make
from graphtide.plan import physical as phys
from graphtide.plan.estimate import Estimator
from graphtide.plan.paths import NODE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from graphtide.plan.estimate import Statistics


class Demand(NamedTuple):
    """The values that a column may have: those that a column of another plan has."""

    plan: phys.Physical
    var: Var


Demands = dict[Var, Demand]


def on_demand(root: phys.Physical, statistics: Statistics) -> phys.Physical:
    """A plan with the same rows, whose paths are followed only from where it matters."""
    if not any(map(_is_target, bottom_up(root))):  # to tell nodes apart takes longer
        return root
    every = phys.nodes(root)
    targets = [node for node in every if _is_target(node)]
    return _Pass(root, every, targets, statistics).rebuilt()


def _is_target(node: phys.Physical) -> bool:
    """Whether a node has pairs from everywhere: a closure, or all nodes paired with themselves."""
    match node:
        case phys.Closure(inputs):
            return len(inputs) == 1
        case phys.Keep(_, sources):
            return sources[:2] == (NODE, NODE)
        case _:
            return False


class _Pass:
    """One plan: first its targets choose their demands, then it is built anew.

    Sets of targets are bits of numbers. No target may depend on itself by way of demands.
    """

    def __init__(
        self,
        root: phys.Physical,
        every: Sequence[phys.Physical],
        targets: Sequence[phys.Physical],
        statistics: Statistics,
    ) -> None:
        self._root = root
        self._expect = Estimator(statistics)
        self._bits = {node: 1 << i for i, node in enumerate(targets)}
        self._inside: dict[phys.Physical, int] = {}
        for node in every:
            own = self._bits.get(node, 0)
            for child in phys.children(node):
                own |= self._inside[child]
            self._inside[node] = own
        self._chosen: dict[phys.Physical, tuple[Var, Demand]] = {}
        self._needs: dict[int, int] = {}
        self._flow_down(every)

    def _flow_down(self, every: Sequence[phys.Physical]) -> None:
        wanted: dict[phys.Physical, Demands] = {self._root: {}}
        for node in reversed(every):  # consumers first
            if not self._inside[node]:
                continue
            given = wanted.get(node, {})
            if node in self._bits:
                self._choose(node, given)
                passed = [(each, Demands()) for each in phys.children(node)]
            else:
                passed = list(self._passed(node, given))
            for child, demands in passed:
                sure = {v: each for v, each in demands.items() if v in child.certain}
                before = wanted.get(child, sure)
                wanted[child] = {v: d for v, d in before.items() if sure.get(v) == d}

    def _passed(
        self, node: phys.Physical, given: Demands
    ) -> Iterator[tuple[phys.Physical, Demands]]:
        """What a node demands of its inputs, if that much is demanded of it."""
        match node:
            case phys.HashJoin(left, right, keys):
                first, second = (left, right) if self._leads(left, right, given) else (right, left)
                yield first, given
                yield second, self._least(given, first, keys)
            case phys.SemiJoin(left, right, keys, negated):
                plain = not negated and not self._inside[right]
                yield left, self._least(given, right, keys) if plain else given
                # Of OPTIONAL, both sides contain the same path: it needs one demand.
                above = given if self._inside[left] else {}
                yield right, {v: above.get(v, Demand(left, v)) for v in keys}
            case phys.Select(child, condition):
                yield child, {**given, **_constants(condition)}
            case phys.Keep(child, sources):
                named = zip(node.schema, sources, strict=True)
                yield child, {s: given[v] for v, s in named if s is not None and v in given}
            case phys.GroupBy(child, keys):
                yield child, {v: given[v] for v in keys if v in given}
            case phys.TopK(child, per=per):
                yield child, {v: given[v] for v in per if v in given}
            case phys.Merge() | phys.Unique() | phys.Compute():
                for child in phys.children(node):
                    yield child, given
            case _:
                for child in phys.children(node):
                    yield child, {}

    def _leads(self, left: phys.Physical, right: phys.Physical, given: Demands) -> bool:
        """Whether the left side of a join demands of the right one, not the other way round."""
        if not (self._inside[left] and self._inside[right]):
            return not self._inside[left]
        bound = [not given.keys().isdisjoint(side.certain) for side in (left, right)]
        if bound[0] != bound[1]:
            return bound[0]
        return self._expect(left).rows <= self._expect(right).rows

    def _least(self, given: Demands, other: phys.Physical, keys: Sequence[Var]) -> Demands:
        """Demands of a side of a join: those from above, or, where there are fewer, the partners'.

        A partner that may be unbound joins with any value.
        """
        found = dict(given)
        for var in keys:
            mine = Demand(other, var)
            if var in other.certain and (
                var not in found or self._values(mine) <= self._values(found[var])
            ):
                found[var] = mine
        return found

    def _values(self, demand: Demand) -> float:
        return self._expect(demand.plan).of(demand.var)

    def _choose(self, target: phys.Physical, given: Demands) -> None:
        """Let a target have the smaller of the demands for its ends, unless that is circular."""
        ends = [(self._values(given[v]), v) for v in target.schema[:2] if v in given]
        for _, var in sorted(ends, key=lambda each: each[0]):
            demand = given[var]
            needs = self._needed(self._inside.get(demand.plan, 0))
            if not needs & self._bits[target]:
                self._chosen[target] = var, demand
                self._needs[self._bits[target]] = needs
                return

    def _needed(self, targets: int) -> int:
        """Some targets, and those that their demands are computed from."""
        done, ahead = 0, targets
        while ahead:
            bit = ahead & -ahead
            done |= bit
            ahead = (ahead | self._needs.get(bit, 0)) & ~done
        return done

    def rebuilt(self) -> phys.Physical:
        """The plan with restricted targets, first those whose demands need the fewest others."""
        new: dict[phys.Physical, phys.Physical] = {}
        order = sorted(
            self._chosen, key=lambda node: self._needed(self._needs[self._bits[node]]).bit_count()
        )
        for root in (*(self._chosen[target][1].plan for target in order), self._root):
            for node in bottom_up(root, known=new.__contains__):
                same = over(node, new)
                if node in self._chosen:
                    var, demand = self._chosen[node]
                    values = make.keep(new[demand.plan], (demand.var,))
                    at_end = var == node.schema[1]
                    same = _restricted(node, same, values, demand, at_end=at_end)
                new[node] = same
        return new[self._root]


def over(node: phys.Physical, new: dict[phys.Physical, phys.Physical]) -> phys.Physical:
    """A node over the new plans of its inputs."""
    match node:
        case phys.HashJoin() | phys.SemiJoin() | phys.RangeJoin() | phys.Merge():
            return replace(node, left=new[node.left], right=new[node.right])
        case phys.Closure(inputs) | phys.Counting(inputs):
            return replace(node, inputs=tuple(new[each] for each in inputs))
        case phys.Search() | phys.Constant() | phys.Decomposed():
            return node
        case _:
            return replace(node, child=new[node.child])


def _restricted(
    old: phys.Physical,
    node: phys.Physical,
    values: phys.Physical,
    demand: Demand,
    *,
    at_end: bool,
) -> phys.Physical:
    """The pairs of a target whose start, or end, is among some values."""
    start, end, *graph = node.schema
    if isinstance(node, phys.Closure):
        (edges,) = node.inputs
        if not at_end:
            return make.closure(edges, values)
        back = make.renamed(edges, (end, start, *graph), node.schema)
        return make.renamed(make.closure(back, values), (end, start, *graph), node.schema)
    (there,) = phys.children(node)
    if _binds_node(demand, old):
        (column,) = values.schema
        return make.renamed(make.unique(values), (column, column), node.schema)
    values = make.renamed(values, values.schema, (NODE,))
    kept = make.semijoin(there, values, (NODE,), negated=False)
    return make.renamed(kept, (NODE, NODE, *graph), node.schema)


def _constants(condition: Expression) -> Demands:
    """The variables that a condition requires to be one of some terms."""
    found: Demands = {}
    for part in conjuncts(condition):
        match part:
            case Call("SAMETERM" | "=" | "IN" as name, (Var() as var, *others)):
                terms = [each.term for each in others if isinstance(each, Const)]
                # Equal literals may be different terms.
                exact = name == "SAMETERM" or all(isinstance(t, NamedNode) for t in terms)
                if terms and len(terms) == len(others) and exact:
                    rows = tuple((term,) for term in dict.fromkeys(terms))
                    plan = phys.Constant(rows, (var,), frozenset((var,)))
                    found[var] = Demand(plan, var)
            case Call("SAMETERM" | "=", (Const() as term, Var() as var)):
                found |= _constants(Call(part.name, (var, term)))
            case _:
                pass
    return found


def _binds_node(demand: Demand, target: phys.Physical) -> bool:
    """Whether a column can only have subjects and objects of the graph that a path lies in."""
    searches = phys.searches(target)
    graphs = {pattern.graph for node in searches for pattern in node.patterns}
    if len(graphs) != 1 or len(target.schema) > 2:
        return False
    (graph,) = graphs
    rest = [demand]
    while rest:
        node, var = rest.pop()
        match node:
            case phys.Search(patterns):
                if any(p.graph == graph and var in (p.subject, p.object) for p in patterns):
                    return True
            case phys.HashJoin() | phys.Select() | phys.Compute() | phys.Unique():
                sides = phys.children(node)
                rest += (Demand(side, var) for side in sides if var in side.certain)
            case phys.SemiJoin(left):
                rest.append(Demand(left, var))
            case phys.Keep(child, sources):
                source = sources[node.schema.index(var)]
                if source == NODE and _is_target(node):
                    rest.append(Demand(child, NODE))
                elif source is not None:
                    rest.append(Demand(child, source))
            case phys.Closure(inputs):
                rest.append(Demand(inputs[0], var))
            case phys.Merge(left, right):
                return all(_binds_node(Demand(side, var), target) for side in (left, right))
            case _:
                pass
    return False
