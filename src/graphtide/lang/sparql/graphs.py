"""GRAPH: push the graph name into the triple patterns.

https://www.w3.org/TR/sparql11-query/#sparqlGraph defines `GRAPH ?g {P}` as the union, over the
named graphs, of P evaluated in that graph alone and *then* joined with the graph's name. Pushing
`?g` into the patterns gives the same rows, with three provisos that this module takes care of:

- `?g` is not in scope inside: if P uses that name other than in joins, the patterns get a hidden
  variable, and `?g` is joined to it at the end;
- operators that are evaluated per graph (OPTIONAL, MINUS, EXISTS, DISTINCT, GROUP BY, LIMIT) need
  the graph as a column of their rows;
- `?g` does not count as a shared variable of the two sides of a MINUS.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, assert_never

from pyoxigraph import Literal, NamedNode

from graphtide.algebra import nodes as alg
from graphtide.algebra.expressions import Const, Exists, Expression, Var
from graphtide.algebra.paths import matches_zero_length
from graphtide.algebra.traverse import replaced
from graphtide.algebra.trees import rebuilt
from graphtide.algebra.variables import certain, mentioned
from graphtide.functions.values import integer_term

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


EMPTY_GROUP = alg.Bgp(())


def join(left: alg.Node, right: alg.Node) -> alg.Node:
    """Join; the empty group is its identity, as the recommendation says."""
    if left == EMPTY_GROUP:
        return right
    return left if right == EMPTY_GROUP else alg.Join(left, right)


_NOTHING = integer_term(0)
_OF_NOTHING: Final[Mapping[str, Literal]] = {
    "COUNT": _NOTHING,
    "SUM": _NOTHING,
    "AVG": _NOTHING,
    "GROUP_CONCAT": Literal(""),
}
"""Values of aggregates over an empty group; the others have none."""


def in_variable_graph(inside: alg.Node, name: Var, fresh: Callable[[], Var]) -> alg.Node:
    """`GRAPH ?name { inside }`."""
    if _only_joins(inside, name):
        return _knowing(_Push(name).node(inside), name)
    hidden = fresh()
    return alg.Join(_Push(hidden).node(inside), alg.Extend(alg.GraphNames(hidden), name, hidden))


def in_named_graph(inside: alg.Node, name: NamedNode, fresh: Callable[[], Var]) -> alg.Node:
    """`GRAPH <name> { inside }`: no rows unless the graph exists."""
    node = _Push(name).node(inside)
    if _touches(node, name):
        return node
    hidden = fresh()
    return join(alg.Join(alg.Values((hidden,), ((name,),)), alg.GraphNames(hidden)), node)


def in_default_graph(inside: alg.Node, name: NamedNode) -> alg.Node:
    """`WITH <name>`: the named graph is the default graph, and may be empty."""
    return _Push(name).node(inside)


@dataclass(frozen=True, slots=True)
class _Push:
    """Assigns `graph` to all patterns of the default graph."""

    graph: Var | NamedNode

    def node(self, node: alg.Node) -> alg.Node:
        return rebuilt(node, self._pushed)

    def _pushed(self, node: alg.Node) -> alg.Node:
        """A node over inputs that are done."""
        match node:
            case alg.Bgp(patterns):
                return alg.Bgp(tuple(map(self._pattern, patterns)))
            case alg.Path(graph=graph):
                return replace(node, graph=self.graph) if graph == alg.DEFAULT_GRAPH else node
            case alg.Join() | alg.Union() | alg.Values() | alg.GraphNames():
                return node
            case alg.LeftJoin() | alg.Minus() | alg.Filter() | alg.Extend():
                return self._decided(node)
            case alg.Project() | alg.Distinct() | alg.Group() | alg.Slice():
                return self._collected(node)
            case _:
                assert_never(node)

    def _decided(self, node: alg.LeftJoin | alg.Minus | alg.Filter | alg.Extend) -> alg.Node:
        match node:
            case alg.LeftJoin(left, right, condition):
                condition = None if condition is None else self.expression(condition)
                used = mentioned(alg.LeftJoin(EMPTY_GROUP, right, condition))
                return alg.LeftJoin(self._known(left, used), right, condition)
            case alg.Minus(left, right, ignoring):
                used = mentioned(right)
                if isinstance(self.graph, Var) and self.graph in used:
                    ignoring |= {self.graph}
                return alg.Minus(self._known(left, used), right, ignoring)
            case alg.Filter(condition, child):
                condition = self.expression(condition)
                return alg.Filter(condition, self._known(child, mentioned(condition)))
            case alg.Extend(child, var, expression):
                expression = self.expression(expression)
                return alg.Extend(self._known(child, mentioned(expression)), var, expression)
            case _:
                assert_never(node)

    def _collected(self, node: alg.Project | alg.Distinct | alg.Group | alg.Slice) -> alg.Node:
        """Operators over several rows work per graph: the graph becomes part of their keys."""
        if not isinstance(self.graph, Var):
            return node
        graph, child = self.graph, _knowing(node.child, self.graph)
        match node:
            case alg.Project(_, variables):
                return alg.Project(child, (*variables, graph))
            case alg.Distinct():
                return alg.Distinct(child)
            case alg.Slice(_, variables, per=per):
                shown = (*variables, graph)
                return replace(node, child=child, variables=shown, per=(*per, graph))
            case alg.Group(_, keys, aggregates):
                groups = alg.Group(child, (*keys, graph), aggregates)
                return groups if keys else alg.Union(groups, _empty_groups(groups, graph))
            case _:
                assert_never(node)

    def _pattern(self, pattern: alg.TriplePattern) -> alg.TriplePattern:
        return replace(pattern, graph=self.graph) if pattern.graph == alg.DEFAULT_GRAPH else pattern

    def expression(self, expression: Expression) -> Expression:
        return replaced(
            expression,
            lambda part: Exists(self.node(part.pattern)) if isinstance(part, Exists) else None,
        )

    def _known(self, node: alg.Node, used: frozenset[Var]) -> alg.Node:
        """The rows of `node`, with the graph as a column if `used` contains it."""
        if isinstance(self.graph, Var) and self.graph in used:
            return _knowing(node, self.graph)
        return node


def _empty_groups(groups: alg.Group, graph: Var) -> alg.Node:
    """For each graph without rows, one group with the values of empty aggregates."""
    node: alg.Node = alg.Minus(
        alg.GraphNames(graph), alg.Distinct(alg.Project(groups.child, (graph,)))
    )
    for aggregate in groups.aggregates:
        value = _OF_NOTHING.get(aggregate.function)
        if value is not None:
            node = alg.Extend(node, aggregate.var, Const(value))
    return node


def _knowing(node: alg.Node, name: Var) -> alg.Node:
    return node if name in certain(node) else join(alg.GraphNames(name), node)


def _only_joins(node: alg.Node, name: Var) -> bool:
    """Whether `node` uses the variable only in joins, so that it may be bound early."""
    rest = [node]
    while rest:
        match rest.pop():
            case alg.Bgp() | alg.Values() | alg.GraphNames() | alg.Path():
                used: frozenset[Var] = frozenset()
            case alg.Join(left, right) | alg.Union(left, right):
                used = frozenset()
                rest += (left, right)
            case alg.LeftJoin(left, right, condition):
                used = mentioned(alg.LeftJoin(EMPTY_GROUP, right, condition))
                rest.append(left)
            case alg.Minus(left, right):
                used = mentioned(right)
                rest.append(left)
            case alg.Filter(condition, child):
                used = mentioned(condition)
                rest.append(child)
            case alg.Extend(child, var, expression):
                used = mentioned(expression) | {var}
                rest.append(child)
            case alg.Project() | alg.Distinct() | alg.Group() | alg.Slice() as other:
                used = mentioned(other)
            case other:
                assert_never(other)
        if name in used:
            return False
    return True


def _touches(node: alg.Node, name: NamedNode) -> bool:
    """Whether every row of `node` needs a quad of the named graph."""
    while True:
        match node:
            case alg.Bgp(patterns):
                return any(p.graph == name for p in patterns)
            case alg.Join(left, right):
                if _touches(right, name):
                    return True
                node = left
            case alg.Union(left, right):
                return _touches(left, name) and _touches(right, name)
            case alg.LeftJoin(child, _) | alg.Minus(child, _) | alg.Filter(_, child):
                node = child
            case alg.Extend(child) | alg.Project(child) | alg.Distinct(child) | alg.Slice(child):
                node = child
            case alg.Group(child, keys):
                if not keys:
                    return False
                node = child
            case alg.Path(subject, path, object_, graph):
                open_ended = isinstance(subject, Var) and isinstance(object_, Var)
                return graph == name and (open_ended or not matches_zero_length(path))
            case alg.Values() | alg.GraphNames():
                return False
            case _:
                assert_never(node)
