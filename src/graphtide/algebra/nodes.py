"""The nodes of the logical algebra: frozen data, no behaviour.

Each docstring names the clause of the SPARQL 1.1 recommendation that defines the node, and its
delta rule: how a change `d(...)` of its input becomes a change of its output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphtide.algebra.trees import Deep

if TYPE_CHECKING:
    from pyoxigraph import NamedNode

    from graphtide.algebra.expressions import Expression, Var
    from graphtide.algebra.paths import PathExpression
    from graphtide.rdf.terms import Term


@dataclass(frozen=True, slots=True)
class DefaultGraph:
    """The graph of a pattern outside any GRAPH clause."""


DEFAULT_GRAPH = DefaultGraph()


@dataclass(frozen=True, slots=True)
class MergedGraph:
    """The union of several named graphs, or (None) of all graphs: each triple once.

    Only in queries whose dataset has been worked into their patterns (`queries.with_dataset`).
    """

    names: tuple[NamedNode, ...] | None


@dataclass(frozen=True, slots=True)
class TriplePattern:
    """https://www.w3.org/TR/sparql11-query/#defn_TriplePattern, in a graph.

    `graph` is the default graph, a named one, or a variable that ranges over the named graphs.
    """

    subject: Var | Term
    predicate: Var | Term
    object: Var | Term
    graph: Var | NamedNode | DefaultGraph | MergedGraph = DEFAULT_GRAPH


@dataclass(frozen=True, slots=True)
class Bgp:
    """https://www.w3.org/TR/sparql11-query/#BasicGraphPatterns. No patterns: one empty row.

    d(p1 ⋈ … ⋈ pn): for each changed quad and each pattern it matches, the rows that use the quad.
    """

    patterns: tuple[TriplePattern, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Join(Deep):
    """https://www.w3.org/TR/sparql11-query/#defn_algJoin.

    d(L ⋈ R) = dL ⋈ R + L ⋈ dR + dL ⋈ dR.
    """

    left: Node
    right: Node


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LeftJoin(Deep):
    """https://www.w3.org/TR/sparql11-query/#defn_algLeftJoin. `condition` None means true.

    L ⟕ R = J + (L ▷ J), J = σ(L ⋈ R): each part by its own rule.
    """

    left: Node
    right: Node
    condition: Expression | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Filter(Deep):
    """https://www.w3.org/TR/sparql11-query/#defn_algFilter.

    d(σ(R)) = σ(dR); an EXISTS inside the condition is a semijoin or antijoin.
    """

    condition: Expression
    child: Node


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Union(Deep):
    """https://www.w3.org/TR/sparql11-query/#defn_algUnion.

    d(L + R) = dL + dR.
    """

    left: Node
    right: Node


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Minus(Deep):
    """https://www.w3.org/TR/sparql11-query/#defn_algMinus.

    `ignoring` holds variables that do not count as shared: the variable of an enclosing GRAPH,
    which the recommendation joins in only after the MINUS.
    d(L − R): rows of dL without a match in R; rows of L that got their first match or lost their
    last one.
    """

    left: Node
    right: Node
    ignoring: frozenset[Var] = frozenset()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Extend(Deep):
    """https://www.w3.org/TR/sparql11-query/#defn_extend (BIND). An error leaves `var` unbound.

    d(extend(R)) = extend(dR).
    """

    child: Node
    var: Var
    expression: Expression


@dataclass(frozen=True, slots=True)
class Values:
    """https://www.w3.org/TR/sparql11-query/#inline-data. None is UNDEF.

    d(values) = 0 after the first answer.
    """

    variables: tuple[Var, ...]
    rows: tuple[tuple[Term | None, ...], ...]


@dataclass(frozen=True, slots=True)
class GraphNames:
    """The names of the named graphs that hold a quad, one row each: what `GRAPH ?g {}` ranges over.

    d(names): a name appears with its graph's first quad and disappears with the last.
    """

    var: Var


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Project(Deep):
    """https://www.w3.org/TR/sparql11-query/#modProjection, keeping duplicates.

    d(π(R)) = π(dR).
    """

    child: Node
    variables: tuple[Var, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Distinct(Deep):
    """https://www.w3.org/TR/sparql11-query/#modDistinct.

    d(δ(R)): +1 where a row's count rises from 0, -1 where it falls to 0.
    """

    child: Node


@dataclass(frozen=True, slots=True)
class Path:
    """https://www.w3.org/TR/sparql11-query/#defn_evalPP_ZeroOrMorePath and its neighbours.

    `path` is a `?`, `*` or `+`; the pairs it connects are a set. With length zero it connects a
    term of the pattern with itself, even one that is not in the graph, and where both ends are
    variables each subject and object of the graph with itself. A variable graph ranges over the
    named graphs; the whole path lies in one of them.
    d(path): the pairs that become, or cease to be, connected.
    """

    subject: Var | Term
    path: PathExpression
    object: Var | Term
    graph: Var | NamedNode | DefaultGraph | MergedGraph = DEFAULT_GRAPH


@dataclass(frozen=True, slots=True)
class Aggregate:
    """https://www.w3.org/TR/sparql11-query/#setFunctions: one value per group, under a name.

    `function` is COUNT, SUM, AVG, MIN, MAX, SAMPLE or GROUP_CONCAT. `argument` is a column of the
    rows, in which unbound is an error; None counts the rows themselves. An error of the aggregate
    leaves `var` unbound.
    """

    var: Var
    function: str
    argument: Var | None
    distinct: bool = False
    separator: str = " "


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Group(Deep):
    """https://www.w3.org/TR/sparql11-query/#aggregateAlgebra. Its columns: keys, then aggregates.

    Rows with the same values for all keys (unbound is a value here) are one group. Without keys
    there is always exactly one group, even of no rows.
    d(group): for each group of a changed row, -1 for its old row and +1 for its new one.
    """

    child: Node
    keys: tuple[Var, ...]
    aggregates: tuple[Aggregate, ...]


@dataclass(frozen=True, slots=True)
class OrderKey:
    """A column to sort by."""

    var: Var
    descending: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Slice(Deep):
    """https://www.w3.org/TR/sparql11-query/#solutionModifiers: ORDER BY, LIMIT and OFFSET in one.

    The rows are sorted by `keys` in SPARQL's order, ties by the N-Triples texts of `variables`,
    unbound first. Then they are projected to `variables`, without duplicates if `distinct`;
    `offset` rows are skipped and at most `limit` returned (None: all). If `per` names columns (they
    are among `variables`), all this happens separately for each combination of their values.
    d(slice): a row that enters the range pushes the last one out, one that leaves it pulls the next
    one in.
    """

    child: Node
    variables: tuple[Var, ...]
    keys: tuple[OrderKey, ...] = ()
    distinct: bool = False
    offset: int = 0
    limit: int | None = None
    per: tuple[Var, ...] = ()


Node = (
    Bgp
    | Path
    | Join
    | LeftJoin
    | Filter
    | Union
    | Minus
    | Extend
    | Values
    | GraphNames
    | Project
    | Distinct
    | Group
    | Slice
)


@dataclass(frozen=True, slots=True)
class Dataset:
    """https://www.w3.org/TR/sparql11-query/#specifyingDataset: FROM and FROM NAMED.

    The default graph is the union of the graphs `default`; the named graphs are `named` alone.
    """

    default: tuple[NamedNode, ...]
    named: tuple[NamedNode, ...]


@dataclass(frozen=True, slots=True)
class SelectQuery:
    """A parsed SELECT query: its answer columns in order, and the node that produces its rows.

    `dataset` None means the graphs as they are. `form` is what the query was before it was turned
    into a SELECT: SELECT, ASK, CONSTRUCT or DESCRIBE.
    """

    variables: tuple[Var, ...]
    root: Node
    text: str = ""
    dataset: Dataset | None = None
    form: str = "SELECT"
