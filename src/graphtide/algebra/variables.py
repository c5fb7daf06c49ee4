"""The variables of a node: those it can bind, those it binds in every row, those it mentions."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, assert_never

from graphtide.algebra import nodes as alg
from graphtide.algebra.expressions import Call, Expression, Var
from graphtide.algebra.traverse import walk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.rdf.terms import Term

Schema = tuple[Var, ...]

PARTS_OF_TRIPLES: Final = ("SUBJECT OF", "PREDICATE OF", "OBJECT OF")
"""Functions that give the parts of a triple term, and any other term itself. No query can spell
them: they are applied to variables that are bound in every row, so what they give is, too."""


def pattern_variables(pattern: alg.TriplePattern) -> Schema:
    """The variables of one triple pattern, in order of position, each once."""
    positions = (pattern.subject, pattern.predicate, pattern.object, pattern.graph)
    found = [p for p in positions if isinstance(p, Var)]
    return tuple(dict.fromkeys(found) if len(found) > 1 else found)


def schema(node: alg.Node) -> Schema:
    """The columns of a node's rows, in order of first appearance."""
    found: dict[Var, None] = {}
    rest: list[alg.Node | Var] = [node]
    while rest:
        match rest.pop():
            case Var() as var:
                found[var] = None
            case alg.Bgp(patterns):
                found.update((v, None) for p in patterns for v in pattern_variables(p))
            case alg.Join(left, right) | alg.LeftJoin(left, right) | alg.Union(left, right):
                rest += (right, left)
            case alg.Minus(child, _) | alg.Filter(_, child) | alg.Distinct(child):
                rest.append(child)
            case alg.Extend(child, var, _):
                rest += (var, child)
            case alg.Values(variables, _) | alg.Project(_, variables) | alg.Slice(_, variables):
                found.update(dict.fromkeys(variables))
            case alg.GraphNames(var):
                found[var] = None
            case alg.Path(subject, _, object_, graph):
                found.update((p, None) for p in (subject, object_, graph) if isinstance(p, Var))
            case alg.Group(_, keys, aggregates):
                found.update(dict.fromkeys((*keys, *(a.var for a in aggregates))))
            case other:
                assert_never(other)
    return tuple(found)


def certain(node: alg.Node) -> frozenset[Var]:
    """The variables that are bound in every row of `node`; the others may be unbound."""
    found: frozenset[Var] = frozenset()
    rest: list[alg.Node] = [node]
    while rest:
        match rest.pop():
            case alg.Bgp() | alg.GraphNames() | alg.Path() as leaf:
                found |= frozenset(schema(leaf))
            case alg.Join(left, right):
                rest += (left, right)
            case alg.LeftJoin(child, _) | alg.Minus(child, _) | alg.Filter(_, child):
                rest.append(child)
            case alg.Distinct(child):
                rest.append(child)
            case alg.Extend(child, var, expression):
                found |= certain_extension(var, expression)
                rest.append(child)
            case alg.Union(left, right):
                found |= certain(left) & certain(right)
            case alg.Values(variables, rows):
                found |= certain_columns(variables, rows)
            case alg.Project(child, variables) | alg.Slice(child, variables):
                found |= certain(child) & frozenset(variables)
            case alg.Group(child, keys, aggregates):
                counts = frozenset(a.var for a in aggregates if a.function == "COUNT")
                found |= certain(child) & frozenset(keys) | counts
            case other:
                assert_never(other)
    return found


def certain_extension(var: Var, expression: Expression) -> frozenset[Var]:
    """The variable that an expression extends rows with, if it is never unbound."""
    sure = isinstance(expression, Call) and expression.name in PARTS_OF_TRIPLES
    return frozenset((var,)) if sure else frozenset()


def certain_columns(variables: Schema, rows: Sequence[Sequence[object]]) -> frozenset[Var]:
    """The variables that are bound in every row of VALUES."""
    return frozenset(v for i, v in enumerate(variables) if all(row[i] is not None for row in rows))


def mentioned(part: alg.Node | Expression) -> frozenset[Var]:
    """Every variable that occurs in a node or expression, EXISTS patterns included."""
    return frozenset(each for each in walk(part) if isinstance(each, Var))


def merge(*schemas: Schema) -> Schema:
    """Columns of several schemas side by side, each variable once."""
    return tuple(dict.fromkeys(v for each in schemas for v in each))


@lru_cache(maxsize=256)
def predicates_of(node: alg.Node) -> frozenset[Var | Term]:
    """The predicates of all triple patterns of a query; of a path or a graph, a variable.

    >>> p = alg.TriplePattern(Var("s"), Var("p"), Var("o"))
    >>> predicates_of(alg.Bgp((p,)))
    frozenset({Var(name='p')})
    """
    found: set[Var | Term] = set()
    for part in walk(node):
        if isinstance(part, alg.TriplePattern):
            found.add(part.predicate)
        elif isinstance(part, alg.Path | alg.GraphNames):
            found.add(Var("any"))
    return frozenset(found)
