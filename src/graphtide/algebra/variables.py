"""The variables of a node: those it can bind, those it binds in every row, those it mentions."""

from __future__ import annotations

from typing import assert_never

from graphtide.algebra import nodes as alg
from graphtide.algebra.expressions import Expression, Var
from graphtide.algebra.traverse import walk

Schema = tuple[Var, ...]


def pattern_variables(pattern: alg.TriplePattern) -> Schema:
    """The variables of one triple pattern, in order of position, each once."""
    positions = (pattern.subject, pattern.predicate, pattern.object, pattern.graph)
    return tuple(dict.fromkeys(p for p in positions if isinstance(p, Var)))


def schema(node: alg.Node) -> Schema:
    """The columns of a node's rows, in order of first appearance."""
    match node:
        case alg.Bgp(patterns):
            return merge(*(pattern_variables(p) for p in patterns))
        case alg.Join(left, right) | alg.LeftJoin(left, right) | alg.Union(left, right):
            return merge(schema(left), schema(right))
        case alg.Minus(left, _):
            return schema(left)
        case alg.Filter(_, child) | alg.Distinct(child):
            return schema(child)
        case alg.Extend(child, var, _):
            return merge(schema(child), (var,))
        case alg.Values(variables, _) | alg.Project(_, variables) | alg.Slice(_, variables):
            return variables
        case alg.GraphNames(var):
            return (var,)
        case alg.Path(subject, _, object_, graph):
            return merge(tuple(p for p in (subject, object_, graph) if isinstance(p, Var)))
        case alg.Group(_, keys, aggregates):
            return merge(keys, tuple(a.var for a in aggregates))
        case _:
            assert_never(node)


def certain(node: alg.Node) -> frozenset[Var]:
    """The variables that are bound in every row of `node`; the others may be unbound."""
    match node:
        case alg.Bgp() | alg.GraphNames() | alg.Path():
            return frozenset(schema(node))
        case alg.Join(left, right):
            return certain(left) | certain(right)
        case alg.LeftJoin(left, _) | alg.Minus(left, _):
            return certain(left)
        case alg.Union(left, right):
            return certain(left) & certain(right)
        case alg.Filter(_, child) | alg.Distinct(child) | alg.Extend(child, _, _):
            return certain(child)
        case alg.Values(variables, rows):
            return frozenset(
                v for i, v in enumerate(variables) if all(row[i] is not None for row in rows)
            )
        case alg.Project(child, variables) | alg.Slice(child, variables):
            return certain(child) & frozenset(variables)
        case alg.Group(child, keys, aggregates):
            counts = frozenset(a.var for a in aggregates if a.function == "COUNT")
            return certain(child) & frozenset(keys) | counts
        case _:
            assert_never(node)


def mentioned(part: alg.Node | Expression) -> frozenset[Var]:
    """Every variable that occurs in a node or expression, EXISTS patterns included."""
    return frozenset(each for each in walk(part) if isinstance(each, Var))


def merge(*schemas: Schema) -> Schema:
    """Columns of several schemas side by side, each variable once."""
    return tuple(dict.fromkeys(v for each in schemas for v in each))
