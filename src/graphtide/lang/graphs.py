"""GRAPH: every pattern learns which graph it is asked of.

https://www.w3.org/TR/sparql11-query/#sparqlGraph defines `GRAPH ?g {P}` as the union, over the
named graphs, of P evaluated in that graph alone and *then* joined with the graph's name. Pushing
`?g` into the patterns gives the same rows, with three provisos that this module takes care of:

- the inside does not see `?g`: if it uses that name other than to join, the patterns get a hidden
  variable, and `?g` is joined to it at the end;
- what is decided per graph (OPTIONAL, MINUS, EXISTS) needs rows that know their graph;
- `?g` alone never makes the two sides of a MINUS share a variable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

from graphtide.algebra.expressions import Call, Const, Exists, Expression, Var
from graphtide.algebra.nodes import (
    DEFAULT_GRAPH,
    Bgp,
    Distinct,
    Extend,
    Filter,
    GraphNames,
    Join,
    LeftJoin,
    Minus,
    Node,
    Project,
    Union,
    Values,
)
from graphtide.algebra.variables import certain, expression_variables, mentioned
from graphtide.lang.join import EMPTY_GROUP, join

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.algebra.nodes import TriplePattern
    from graphtide.rdf.term import NamedNode


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


@dataclass(frozen=True, slots=True)
class _Push:
    """Gives `graph` to all patterns that have no graph of their own yet."""

    graph: Var | NamedNode

    def node(self, node: Node) -> Node:
        match node:
            case Bgp(patterns):
                return Bgp(tuple(map(self._pattern, patterns)))
            case Join(left, right):
                return Join(self.node(left), self.node(right))
            case Union(left, right):
                return Union(self.node(left), self.node(right))
            case Project(child, variables):
                return Project(self.node(child), variables)
            case Distinct(child):
                return Distinct(self.node(child))
            case Values() | GraphNames():
                return node
            case LeftJoin() | Minus() | Filter() | Extend():
                return self._decided(node)
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
                return Filter(condition, self._known(child, expression_variables(condition)))
            case Extend(child, var, expression):
                expression = self.expression(expression)
                return Extend(self._known(child, expression_variables(expression)), var, expression)
            case _:
                assert_never(node)

    def _pattern(self, pattern: TriplePattern) -> TriplePattern:
        return replace(pattern, graph=self.graph) if pattern.graph == DEFAULT_GRAPH else pattern

    def expression(self, expression: Expression) -> Expression:
        match expression:
            case Var() | Const():
                return expression
            case Call(name, args):
                return Call(name, tuple(self.expression(arg) for arg in args))
            case Exists(pattern):
                return Exists(self.node(pattern))
            case _:
                assert_never(expression)

    def _known(self, node: Node, used: frozenset[Var]) -> Node:
        """The rows of `node`, knowing their graph if what is decided about them uses it."""
        node = self.node(node)
        if isinstance(self.graph, Var) and self.graph in used:
            return _knowing(node, self.graph)
        return node


def _knowing(node: Node, name: Var) -> Node:
    return node if name in certain(node) else join(GraphNames(name), node)


def _only_joins(node: Node, name: Var) -> bool:
    """Whether `node` uses the variable only where a join would: it may then be bound early."""
    match node:
        case Bgp() | Values() | GraphNames():
            return True
        case Join(left, right) | Union(left, right):
            return _only_joins(left, name) and _only_joins(right, name)
        case LeftJoin(left, right, condition):
            rest = mentioned(LeftJoin(EMPTY_GROUP, right, condition))
            return name not in rest and _only_joins(left, name)
        case Minus(left, right):
            return name not in mentioned(right) and _only_joins(left, name)
        case Filter(condition, child):
            return name not in expression_variables(condition) and _only_joins(child, name)
        case Extend(child, var, expression):
            used = expression_variables(expression) | {var}
            return name not in used and _only_joins(child, name)
        case Project() | Distinct():
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
        case Filter(_, child) | Extend(child) | Project(child) | Distinct(child):
            return _touches(child, name)
        case Values() | GraphNames():
            return False
        case _:
            assert_never(node)
