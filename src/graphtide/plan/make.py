"""Constructors of physical nodes: they derive the columns, and simplify."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from graphtide.algebra import nodes as alg
from graphtide.algebra.expressions import Const, Expression, Var
from graphtide.algebra.variables import Schema, certain_extension, merge, pattern_variables
from graphtide.plan import physical as phys
from graphtide.plan.decomposition import instantiation_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyoxigraph import NamedNode

ONE_EMPTY_ROW = phys.Constant(rows=((),), schema=(), certain=frozenset())


def search(
    patterns: Sequence[alg.TriplePattern], checks: Sequence[phys.CheckBlock] = ()
) -> phys.Search:
    """Rows of connected triple patterns."""
    schema = merge(*(pattern_variables(p) for p in patterns))
    return phys.Search(tuple(patterns), tuple(checks), schema, frozenset(schema))


def matches(pattern: alg.TriplePattern) -> phys.Physical:
    """Rows of one triple pattern, over any graph or a merge of several."""
    graph = pattern.graph
    if not isinstance(graph, alg.MergedGraph):
        return search((pattern,))
    if graph.names is None:
        graphs: tuple[Var | NamedNode | alg.DefaultGraph, ...] = (alg.DEFAULT_GRAPH, Var(".graph"))
    else:
        graphs = graph.names
    variables = pattern_variables(pattern)
    found: phys.Physical = phys.Constant((), variables, frozenset(variables))
    for each in graphs:
        found = union(found, keep(search((replace(pattern, graph=each),)), variables))
    return unique(found)


def decomposed(patterns: Sequence[alg.TriplePattern]) -> phys.Physical:
    """Rows of triple patterns, connected or not; duplicate patterns are removed."""
    each = tuple(dict.fromkeys(patterns))
    if not each:
        return ONE_EMPTY_ROW
    if len(each) == 1:
        return matches(each[0])
    schema = merge(*(pattern_variables(p) for p in each))
    inputs = tuple(map(matches, each))
    return phys.Decomposed(each, inputs, instantiation_order(each), schema, frozenset(schema))


def join(left: phys.Physical, right: phys.Physical, *, overlap: Schema = ()) -> phys.Physical:
    """Natural join; the one empty row is its identity.

    Hidden columns identify the outer row: there, unbound equals only unbound.
    """
    if left == ONE_EMPTY_ROW and not overlap:
        return right
    if right == ONE_EMPTY_ROW and not overlap:
        return left
    both = shared(left, right)
    keys = tuple(v for v in both if _hidden(v) or (v in left.certain and v in right.certain))
    fixed = frozenset(keys)
    loose = tuple(v for v in both if v not in fixed)
    return phys.HashJoin(
        left,
        right,
        keys,
        loose,
        () if fixed.intersection(overlap) else overlap,
        merge(left.schema, right.schema),
        left.certain | right.certain,
    )


def semijoin(
    left: phys.Physical, right: phys.Physical, keys: Schema, *, negated: bool
) -> phys.SemiJoin:
    """Left rows whose `keys` occur on the right, or if negated do not."""
    wanted = frozenset(keys)  # in the order of the right side, which saves a projection
    keys = tuple(v for v in right.schema if v in wanted)
    return phys.SemiJoin(left, keep(right, keys), keys, negated, left.schema, left.certain)


def select(child: phys.Physical, condition: Expression) -> phys.Select:
    """Rows for which a condition is true."""
    return phys.Select(child, condition, child.schema, child.certain)


def compute(child: phys.Physical, *columns: tuple[Var, Expression]) -> phys.Physical:
    """More columns; computed columns in a row are one node."""
    if not columns:
        return child
    if isinstance(child, phys.Compute):
        columns = child.columns + columns
        child = child.child
    schema = (*child.schema, *(each for each, _ in columns))
    constants = frozenset(var for var, value in columns if isinstance(value, Const))
    parts = (certain_extension(var, expression) for var, expression in columns)
    return phys.Compute(child, columns, schema, child.certain.union(constants, *parts))


def union(left: phys.Physical, right: phys.Physical) -> phys.Merge:
    """All rows of both, with the columns of both."""
    schema = merge(left.schema, right.schema)
    return phys.Merge(keep(left, schema), keep(right, schema), schema, left.certain & right.certain)


def unique(child: phys.Physical) -> phys.Unique:
    """Each row once."""
    if isinstance(child, phys.Unique):
        return child
    return phys.Unique(child, child.schema, child.certain)


def group(
    child: phys.Physical, keys: Schema, aggregates: tuple[alg.Aggregate, ...]
) -> phys.GroupBy:
    """One row per group; a key that the child does not have is unbound."""
    child = keep(child, merge(child.schema, keys))
    schema = (*keys, *(a.var for a in aggregates))
    counts = frozenset(a.var for a in aggregates if a.function == "COUNT")
    return phys.GroupBy(child, keys, aggregates, schema, (child.certain & frozenset(keys)) | counts)


def top(child: phys.Physical, node: alg.Slice) -> phys.TopK:
    """The rows of LIMIT and OFFSET in the given order."""
    certain = child.certain & frozenset(node.variables)
    return phys.TopK(
        child,
        node.keys,
        node.distinct,
        node.offset,
        node.limit,
        node.per,
        node.variables,
        certain,
    )


def closure(edges: phys.Physical, sources: phys.Physical | None = None) -> phys.Closure:
    """The pairs that edges connect, in one or more steps; with `sources`, only from these.

    Sources are in one column. If the edges are of several graphs, they are sought in each.
    """
    if sources is None:
        return phys.Closure((edges,), edges.schema, edges.certain)
    start, _, *graph = edges.schema
    sources = renamed(sources, sources.schema, (start,))
    if graph:
        everywhere = unique(keep(edges, (start, *graph)))
        sources = semijoin(everywhere, sources, (start,), negated=False)
    return phys.Closure((edges, sources), edges.schema, edges.certain)


def graph_names(var: Var) -> phys.Physical:
    """The names of non-empty graphs."""
    pattern = alg.TriplePattern(Var(".s"), Var(".p"), Var(".o"), var)
    return unique(keep(search((pattern,)), (var,)))


def keep(child: phys.Physical, schema: Schema) -> phys.Physical:
    """Exactly these columns in this order; missing ones are unbound."""
    if child.schema == schema:
        return child
    certain = child.certain & frozenset(schema)
    there: dict[Var, Var] = {v: v for v in child.schema}
    if isinstance(child, phys.Compute) and all(
        isinstance(value, Var) and value in child.child.schema for _, value in child.columns
    ):  # other names for columns that are there
        there.update((var, value) for var, value in child.columns if isinstance(value, Var))
        child = child.child
    return phys.Keep(child, tuple(map(there.get, schema)), schema, certain)


def with_copies(child: phys.Physical, variables: Sequence[Var]) -> tuple[phys.Physical, Schema]:
    """The child with hidden copies of some columns, and the copy of each column.

    A join may bind a column that was unbound. The copy still identifies the original row.
    """
    if not variables:
        return child, child.schema
    taken = sum(map(_hidden, child.schema))
    copies = {v: Var(f".{taken + i}.{v.name}") for i, v in enumerate(variables)}
    schema = (*child.schema, *copies.values())
    wide = phys.Keep(child, (*child.schema, *copies), schema, child.certain)
    return wide, tuple(copies.get(v, v) for v in child.schema)


def copied(child: phys.Physical, variables: Schema, names: Schema) -> phys.Physical:
    """The child with more columns: copies of some under other names."""
    schema = (*child.schema, *names)
    return phys.Keep(child, (*child.schema, *variables), schema, child.certain)


def anchored(given: phys.Physical) -> phys.Physical:
    """Outer rows with a hidden copy of each column that a pattern might bind."""
    return with_copies(
        given, [v for v in given.schema if v not in given.certain and not _hidden(v)]
    )[0]


def without_copies(
    plan: phys.Physical, given: phys.Physical | None, known: phys.Physical | None
) -> phys.Physical:
    """A plan for the outer rows `known` without the copies that `given` did not have."""
    if given is None or known is None or given == known:
        return plan
    copies = frozenset(known.schema) - frozenset(given.schema)
    return keep(plan, tuple(v for v in plan.schema if v not in copies))


def _hidden(var: Var) -> bool:
    return var.name.startswith(".")


def renamed(child: phys.Physical, sources: Schema, schema: Schema) -> phys.Physical:
    """The columns `sources` under the names `schema`."""
    if sources == schema:
        return keep(child, schema)
    certain = frozenset(n for s, n in zip(sources, schema, strict=True) if s in child.certain)
    return phys.Keep(child, sources, schema, certain)


def shared(left: phys.Physical, right: phys.Physical) -> Schema:
    """The common columns."""
    there = frozenset(right.schema)
    return tuple(v for v in left.schema if v in there)
