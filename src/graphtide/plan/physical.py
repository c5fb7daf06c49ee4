"""Physical plan nodes: the operators of a standing query.

Every node has columns (`schema`), of which some are bound in every row (`certain`). Columns whose
variable starts with `.` are hidden from users.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphtide.algebra.expressions import Expression, Var
from graphtide.algebra.trees import Deep, bottom_up, inputs

if TYPE_CHECKING:
    from graphtide.algebra.nodes import Aggregate, OrderKey, TriplePattern
    from graphtide.algebra.variables import Schema
    from graphtide.plan.decomposition import Instantiated
    from graphtide.rdf.terms import Term

Certain = frozenset[Var]


@dataclass(frozen=True, slots=True)
class CheckBlock:
    """An EXISTS or NOT EXISTS over triple patterns, evaluated inside a search."""

    negated: bool
    patterns: tuple[TriplePattern, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Search(Deep):
    """Rows of connected triple patterns, searched in the quad store; stores nothing.

    With one pattern and no checks this is the *input node* of a Rete network.
    """

    patterns: tuple[TriplePattern, ...]
    checks: tuple[CheckBlock, ...]
    schema: Schema
    certain: Certain


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Decomposed(Deep):
    """Rows of triple patterns, by binding variables one after the other.

    `inputs` are the matches of each pattern. Stores a bit per pattern and instance, and a count per
    part of an instance, but no triples.
    """

    patterns: tuple[TriplePattern, ...]
    inputs: tuple[Physical, ...]
    order: tuple[Instantiated, ...]
    schema: Schema
    certain: Certain


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Constant(Deep):
    """Rows that never change (VALUES, or the one empty row of an empty pattern)."""

    rows: tuple[tuple[Term | None, ...], ...]
    schema: Schema
    certain: Certain


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HashJoin(Deep):
    """Natural join with a memory of each side.

    `keys` are bound on both sides in every row; `loose` shared variables may be unbound, and then
    match anything; one variable of `overlap` must be bound on both sides (the test of MINUS).
    """

    left: Physical
    right: Physical
    keys: Schema
    loose: Schema
    overlap: Schema
    schema: Schema
    certain: Certain


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SemiJoin(Deep):
    """Left rows whose `keys` occur on the right, or, negated (antijoin), do not."""

    left: Physical
    right: Physical
    keys: Schema
    negated: bool
    schema: Schema
    certain: Certain


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RangeJoin(Deep):
    """Left rows, as often as right rows of the same `keys` satisfy `value operator bound`.

    `bound` is the one column of the right side that is no key (`plan.ranges`).
    """

    left: Physical
    right: Physical
    keys: Schema
    value: Var
    operator: str
    bound: Var
    schema: Schema
    certain: Certain


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Select(Deep):
    """Rows for which a condition is true."""

    child: Physical
    condition: Expression
    schema: Schema
    certain: Certain


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Compute(Deep):
    """Rows with additional computed columns; an error leaves one unbound.

    An expression reads the columns of the child and those computed before it.
    """

    child: Physical
    columns: tuple[tuple[Var, Expression], ...]
    schema: Schema
    certain: Certain


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Merge(Deep):
    """All rows of both inputs, which have the same columns."""

    left: Physical
    right: Physical
    schema: Schema
    certain: Certain


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Unique(Deep):
    """Distinct rows; stores a count per row."""

    child: Physical
    schema: Schema
    certain: Certain


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Keep(Deep):
    """Projection: column i is a copy of `sources[i]`, or unbound."""

    child: Physical
    sources: tuple[Var | None, ...]
    schema: Schema
    certain: Certain


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GroupBy(Deep):
    """One row per group: its keys, then its aggregates; stores the state of each group."""

    child: Physical
    keys: Schema
    aggregates: tuple[Aggregate, ...]
    schema: Schema
    certain: Certain


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Counting(Deep):
    """The groups of a natural join of the inputs, from counts and sums by key, without the join.

    `parents` has for each input the number of the one that it sends its counts to; -1 is the root,
    the groups (`plan.counting`). With `always`, the one group without keys is there even if it is
    empty. Stores counts per key of each input.
    """

    inputs: tuple[Physical, ...]
    parents: tuple[int, ...]
    keys: Schema
    aggregates: tuple[Aggregate, ...]
    always: bool
    schema: Schema
    certain: Certain


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TopK(Deep):
    """The rows from `offset` on, at most `limit`, in order; separately for each value of `per`.

    Stores all rows, so that the next one is known when one is removed.
    """

    child: Physical
    keys: tuple[OrderKey, ...]
    distinct: bool
    offset: int
    limit: int | None
    per: Schema
    schema: Schema
    certain: Certain


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Closure(Deep):
    """Transitive closure of edges (from, to, graph…), the rows of the first input.

    A second input has the sources (from, graph…) that are demanded: only pairs from there. Stores
    edges and pairs, not paths.
    """

    inputs: tuple[Physical, ...]
    schema: Schema
    certain: Certain


Physical = (
    Search
    | Decomposed
    | Constant
    | HashJoin
    | SemiJoin
    | RangeJoin
    | Select
    | Compute
    | Merge
    | Unique
    | Keep
    | GroupBy
    | Counting
    | TopK
    | Closure
)


def children(node: Physical) -> tuple[Physical, ...]:
    """The inputs of a node."""
    return inputs(node)


def nodes(root: Physical) -> list[Physical]:
    """All nodes of a plan, each once and after its inputs."""
    return list(dict.fromkeys(bottom_up(root)))


def searches(root: Physical) -> list[Search]:
    """All searches of a plan, each once: `nodes` would compare whole plans."""
    return list(dict.fromkeys(node for node in bottom_up(root) if isinstance(node, Search)))


def predicates(root: Physical) -> set[Term | Var]:
    """The predicates of all triple patterns of a plan."""
    found = searches(root)
    groups = [each.patterns for each in found]
    groups += [check.patterns for each in found for check in each.checks]
    return {pattern.predicate for group in groups for pattern in group}


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """The physical plan of a query: root, answer columns and strategy."""

    root: Physical
    variables: tuple[Var, ...]
    strategy: str
    text: str = ""
    form: str = "SELECT"
