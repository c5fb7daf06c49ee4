"""The meaning of the algebra, as plainly as it can be written.

Answers are computed from scratch with nested loops over lists of solutions, straight from
https://www.w3.org/TR/sparql11-query/#sparqlAlgebra. Everything faster is compared with this.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeAlias, assert_never

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import (
    Bgp,
    DefaultGraph,
    Distinct,
    Extend,
    Filter,
    GraphNames,
    Join,
    LeftJoin,
    Minus,
    Project,
    Union,
    Values,
)
from graphtide.errors import ExpressionError
from graphtide.functions import effective_boolean, evaluate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from graphtide.algebra.expressions import Expression
    from graphtide.algebra.nodes import Node, SelectQuery, TriplePattern
    from graphtide.rdf.term import Term

Quad: TypeAlias = "tuple[Term, Term, Term, Term | None]"
Solution: TypeAlias = "Mapping[Var, Term]"


def evaluate_query(query: SelectQuery, quads: Iterable[Quad]) -> Counter[tuple[Term | None, ...]]:
    """The answer of a query over a set of quads: how often each row occurs. None is unbound.

    >>> from graphtide.lang.sparql import parse_query
    >>> from graphtide.rdf.term import NamedNode
    >>> a, knows, b = (NamedNode(f"http://example.org/{name}") for name in ("a", "knows", "b"))
    >>> query = parse_query("SELECT ?x WHERE { ?x <http://example.org/knows> ?y }")
    >>> for (x,), count in evaluate_query(query, [(a, knows, b, None)]).items():
    ...     print(x, count)
    <http://example.org/a> 1
    """
    solutions = _Dataset(quads).solutions(query.root, {})
    return Counter(tuple(s.get(v) for v in query.variables) for s in solutions)


class _Dataset:
    """A set of quads that patterns can be evaluated over."""

    def __init__(self, quads: Iterable[Quad]) -> None:
        self.quads = list(dict.fromkeys(quads))

    def solutions(self, node: Node, outer: Solution) -> list[Solution]:
        """The solutions of `node`, as a multiset in a list.

        Inside EXISTS, `outer` is the solution that is being tested: its values replace the
        variables of patterns, data and expressions. Elsewhere it is empty.
        """
        match node:
            case Bgp() | Values() | GraphNames():
                return [s for s in self._leaf(node) if compatible(s, outer)]
            case Union(left, right):
                return self.solutions(left, outer) + self.solutions(right, outer)
            case Join() | LeftJoin() | Minus():
                return self._paired(node, outer)
            case Filter(condition, child):
                return [s for s in self.solutions(child, outer) if self._holds(condition, s, outer)]
            case Extend(child, var, expression):
                extended = [
                    self._extended(s, var, expression, outer) for s in self.solutions(child, outer)
                ]
                return [s for s in extended if compatible(s, outer)]
            case Project(child, variables):
                inner = self.solutions(child, _restricted(outer, variables))
                return [_restricted(s, variables) for s in inner]
            case Distinct(child):
                unique = {frozenset(s.items()) for s in self.solutions(child, outer)}
                return [dict(items) for items in unique]
            case _:
                assert_never(node)

    def _leaf(self, node: Bgp | Values | GraphNames) -> list[Solution]:
        match node:
            case Bgp(patterns):
                found: list[Solution] = [{}]
                for pattern in patterns:
                    found = [
                        {**s, **m}
                        for s in found
                        for m in self._matches(pattern)
                        if compatible(s, m)
                    ]
                return found
            case Values(variables, rows):
                return [
                    {v: t for v, t in zip(variables, row, strict=True) if t is not None}
                    for row in rows
                ]
            case GraphNames(var):
                names = dict.fromkeys(g for _, _, _, g in self.quads if g is not None)
                return [{var: name} for name in names]
            case _:
                assert_never(node)

    def _matches(self, pattern: TriplePattern) -> list[Solution]:
        """One solution per quad that the pattern matches."""
        positions = (pattern.subject, pattern.predicate, pattern.object, pattern.graph)
        return [s for quad in self.quads if (s := _unified(positions, quad)) is not None]

    def _paired(self, node: Join | LeftJoin | Minus, outer: Solution) -> list[Solution]:
        lefts = self.solutions(node.left, outer)
        rights = self.solutions(node.right, outer)
        match node:
            case Join():
                return [{**l, **r} for l in lefts for r in rights if compatible(l, r)]
            case LeftJoin(_, _, condition):
                found: list[Solution] = []
                for l in lefts:
                    merged = [{**l, **r} for r in rights if compatible(l, r)]
                    found += [m for m in merged if self._holds(condition, m, outer)] or [l]
                return found
            case Minus(_, _, ignoring):
                return [
                    l
                    for l in lefts
                    if not any(
                        compatible(l, r) and (l.keys() & r.keys()) - ignoring for r in rights
                    )
                ]
            case _:
                assert_never(node)

    def _holds(self, condition: Expression | None, solution: Solution, outer: Solution) -> bool:
        """Whether the condition is true; an error is not."""
        if condition is None:
            return True
        try:
            return effective_boolean(self._value(condition, solution, outer))
        except ExpressionError:
            return False

    def _extended(
        self, solution: Solution, var: Var, expression: Expression, outer: Solution
    ) -> Solution:
        try:
            return {**solution, var: self._value(expression, solution, outer)}
        except ExpressionError:
            return solution

    def _value(self, expression: Expression, solution: Solution, outer: Solution) -> Term:
        return evaluate(expression, {**outer, **solution}, exists=self._exists)

    def _exists(self, pattern: Node, solution: Solution) -> bool:
        return bool(self.solutions(pattern, solution))


def compatible(left: Solution, right: Solution) -> bool:
    """https://www.w3.org/TR/sparql11-query/#defn_algCompatibleMapping"""
    return all(left[v] == right[v] for v in left.keys() & right.keys())


def _restricted(solution: Solution, variables: Iterable[Var]) -> Solution:
    return {v: solution[v] for v in variables if v in solution}


def _unified(positions: tuple[Var | Term | DefaultGraph, ...], quad: Quad) -> Solution | None:
    """The solution under which a pattern's positions are the terms of a quad."""
    solution: dict[Var, Term] = {}
    for position, term in zip(positions, quad, strict=True):
        if isinstance(position, DefaultGraph):
            if term is not None:
                return None
        elif term is None or not isinstance(position, Var):
            if position != term:
                return None
        elif solution.setdefault(position, term) != term:
            return None
    return solution
