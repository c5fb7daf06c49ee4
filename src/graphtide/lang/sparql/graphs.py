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
from typing import TYPE_CHECKING, Final, TypeVar, assert_never, cast

from pyoxigraph import Literal

from graphtide.algebra.expressions import Const, Exists, Var
from graphtide.algebra.nodes import (
    DEFAULT_GRAPH,
    Bgp,
    Distinct,
    Extend,
    Filter,
    GraphNames,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    Path,
    Project,
    Slice,
    Union,
    Values,
)
from graphtide.algebra.paths import matches_zero_length
from graphtide.algebra.traverse import map_children, map_parts
from graphtide.algebra.variables import certain, mentioned
from graphtide.functions.values import integer_term

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyoxigraph import NamedNode

    from graphtide.algebra.nodes import TriplePattern


T = TypeVar("T")
EMPTY_GROUP = Bgp(())


def join(left: Node, right: Node) -> Node:
    """Join; the empty group is its identity, as the recommendation says."""
    if left == EMPTY_GROUP:
        return right
    return left if right == EMPTY_GROUP else Join(left, right)


_NOTHING = integer_term(0)
_OF_NOTHING: Final[Mapping[str, Literal]] = {
    "COUNT": _NOTHING,
    "SUM": _NOTHING,
    "AVG": _NOTHING,
    "GROUP_CONCAT": Literal(""),
}
"""Values of aggregates over an empty group; the others have none."""


def in_variable_graph(inside: Node, name: Var, fresh: Callable[[], Var]) -> Node:
    """`GRAPH ?name { inside }`."""
    if _only_joins(inside, name):
        return _knowing(_Push(name).node(inside), name)
    hidden = fresh()
    return Join(_Push(hidden).node(inside), Extend(GraphNames(hidden), name, hidden))


def in_named_graph(inside: Node, name: NamedNode, fresh: Callable[[], Var]) -> Node:
    """`GRAPH <name> { inside }`: no rows unless the graph exists."""
    node = _Push(name).node(inside)
    if _touches(node, name):
        return node
    hidden = fresh()
    return join(Join(Values((hidden,), ((name,),)), GraphNames(hidden)), node)


def in_default_graph(inside: Node, name: NamedNode) -> Node:
    """`WITH <name>`: the named graph is the default graph, and may be empty."""
    return _Push(name).node(inside)


@dataclass(frozen=True, slots=True)
class _Push:
    """Assigns `graph` to all patterns of the default graph."""

    graph: Var | NamedNode

    def node(self, node: Node) -> Node:
        match node:
            case Bgp(patterns):
                return Bgp(tuple(map(self._pattern, patterns)))
            case Path(graph=graph):
                return replace(node, graph=self.graph) if graph == DEFAULT_GRAPH else node
            case Join() | Union() | Values() | GraphNames():
                return map_children(node, self.node)
            case LeftJoin() | Minus() | Filter() | Extend():
                return self._decided(node)
            case Project() | Distinct() | Group() | Slice():
                return self._collected(node)
            case _:
                assert_never(node)

    def _decided(self, node: LeftJoin | Minus | Filter | Extend) -> Node:
        match node:
            case LeftJoin(left, right, condition):
                right = self.node(right)
                condition = None if condition is None else self.expression(condition)
                used = mentioned(LeftJoin(EMPTY_GROUP, right, condition))
                return LeftJoin(self._known(left, used), right, condition)
            case Minus(left, right, ignoring):
                right = self.node(right)
                used = mentioned(right)
                if isinstance(self.graph, Var) and self.graph in used:
                    ignoring |= {self.graph}
                return Minus(self._known(left, used), right, ignoring)
            case Filter(condition, child):
                condition = self.expression(condition)
                return Filter(condition, self._known(child, mentioned(condition)))
            case Extend(child, var, expression):
                expression = self.expression(expression)
                return Extend(self._known(child, mentioned(expression)), var, expression)
            case _:
                assert_never(node)

    def _collected(self, node: Project | Distinct | Group | Slice) -> Node:
        """Operators over several rows work per graph: the graph becomes part of their keys."""
        child = self.node(node.child)
        if not isinstance(self.graph, Var):
            return replace(node, child=child)
        graph, child = self.graph, _knowing(child, self.graph)
        match node:
            case Project(_, variables):
                return Project(child, (*variables, graph))
            case Distinct():
                return Distinct(child)
            case Slice(_, variables, per=per):
                shown = (*variables, graph)
                return replace(node, child=child, variables=shown, per=(*per, graph))
            case Group(_, keys, aggregates):
                groups = Group(child, (*keys, graph), aggregates)
                return groups if keys else Union(groups, _empty_groups(groups, graph))
            case _:
                assert_never(node)

    def _pattern(self, pattern: TriplePattern) -> TriplePattern:
        return replace(pattern, graph=self.graph) if pattern.graph == DEFAULT_GRAPH else pattern

    def expression(self, part: T) -> T:
        if isinstance(part, Exists):
            return cast("T", Exists(self.node(part.pattern)))
        return map_parts(part, self.expression)

    def _known(self, node: Node, used: frozenset[Var]) -> Node:
        """The rows of `node`, with the graph as a column if `used` contains it."""
        node = self.node(node)
        if isinstance(self.graph, Var) and self.graph in used:
            return _knowing(node, self.graph)
        return node


def _empty_groups(groups: Group, graph: Var) -> Node:
    """For each graph without rows, one group with the values of empty aggregates."""
    node: Node = Minus(GraphNames(graph), Distinct(Project(groups.child, (graph,))))
    for aggregate in groups.aggregates:
        value = _OF_NOTHING.get(aggregate.function)
        if value is not None:
            node = Extend(node, aggregate.var, Const(value))
    return node


def _knowing(node: Node, name: Var) -> Node:
    return node if name in certain(node) else join(GraphNames(name), node)


def _only_joins(node: Node, name: Var) -> bool:
    """Whether `node` uses the variable only in joins, so that it may be bound early."""
    match node:
        case Bgp() | Values() | GraphNames() | Path():
            return True
        case Join(left, right) | Union(left, right):
            return _only_joins(left, name) and _only_joins(right, name)
        case LeftJoin(left, right, condition):
            rest = mentioned(LeftJoin(EMPTY_GROUP, right, condition))
            return name not in rest and _only_joins(left, name)
        case Minus(left, right):
            return name not in mentioned(right) and _only_joins(left, name)
        case Filter(condition, child):
            return name not in mentioned(condition) and _only_joins(child, name)
        case Extend(child, var, expression):
            used = mentioned(expression) | {var}
            return name not in used and _only_joins(child, name)
        case Project() | Distinct() | Group() | Slice():
            return name not in mentioned(node)
        case _:
            assert_never(node)


def _touches(node: Node, name: NamedNode) -> bool:
    """Whether every row of `node` needs a quad of the named graph."""
    match node:
        case Bgp(patterns):
            return any(p.graph == name for p in patterns)
        case Join(left, right):
            return _touches(left, name) or _touches(right, name)
        case Union(left, right):
            return _touches(left, name) and _touches(right, name)
        case LeftJoin(left, _) | Minus(left, _):
            return _touches(left, name)
        case Filter(_, child) | Extend(child) | Project(child) | Distinct(child) | Slice(child):
            return _touches(child, name)
        case Group(child, keys):
            return bool(keys) and _touches(child, name)
        case Path(subject, path, object_, graph):
            open_ended = isinstance(subject, Var) and isinstance(object_, Var)
            return graph == name and (open_ended or not matches_zero_length(path))
        case Values() | GraphNames():
            return False
        case _:
            assert_never(node)
