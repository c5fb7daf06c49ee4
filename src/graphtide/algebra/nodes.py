"""The nodes of the logical algebra: frozen data, no behaviour.

Each docstring names the clause of the SPARQL 1.1 recommendation that defines the node, and its
delta rule: how a change `d(...)` of its input becomes a change of its output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphtide.algebra.expressions import Expression, Var
    from graphtide.rdf.term import NamedNode, Term


@dataclass(frozen=True, slots=True)
class DefaultGraph:
    """The graph position of a pattern outside any GRAPH clause."""


DEFAULT_GRAPH = DefaultGraph()


@dataclass(frozen=True, slots=True)
class TriplePattern:
    """https://www.w3.org/TR/sparql11-query/#defn_TriplePattern, with the graph it is asked of.

    `graph` is the default graph, a named one, or a variable that ranges over the named graphs.
    """

    subject: Var | Term
    predicate: Var | Term
    object: Var | Term
    graph: Var | NamedNode | DefaultGraph = DEFAULT_GRAPH


@dataclass(frozen=True, slots=True)
class Bgp:
    """https://www.w3.org/TR/sparql11-query/#BasicGraphPatterns. No patterns: one empty row.

    d(p1 ⋈ … ⋈ pn): for each changed quad and each pattern it matches, the rows through that quad.
    """

    patterns: tuple[TriplePattern, ...]


@dataclass(frozen=True, slots=True)
class Join:
    """https://www.w3.org/TR/sparql11-query/#defn_algJoin.

    d(L ⋈ R) = dL ⋈ R + L ⋈ dR + dL ⋈ dR.
    """

    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class LeftJoin:
    """https://www.w3.org/TR/sparql11-query/#defn_algLeftJoin. `condition` None means true.

    L ⟕ R = J + (L ▷ J), J = σ(L ⋈ R): each part by its own rule.
    """

    left: Node
    right: Node
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """https://www.w3.org/TR/sparql11-query/#defn_algFilter.

    d(σ(R)) = σ(dR); an EXISTS inside the condition is a semijoin or antijoin.
    """

    condition: Expression
    child: Node


@dataclass(frozen=True, slots=True)
class Union:
    """https://www.w3.org/TR/sparql11-query/#defn_algUnion.

    d(L + R) = dL + dR.
    """

    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Minus:
    """https://www.w3.org/TR/sparql11-query/#defn_algMinus.

    `ignoring` holds variables that do not count as shared: the variable of an enclosing GRAPH,
    which the recommendation joins in only after the MINUS.
    d(L − R): rows of dL without a partner in R; rows of L whose last partner went or first came.
    """

    left: Node
    right: Node
    ignoring: frozenset[Var] = frozenset()


@dataclass(frozen=True, slots=True)
class Extend:
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


@dataclass(frozen=True, slots=True)
class Project:
    """https://www.w3.org/TR/sparql11-query/#modProjection, keeping duplicates.

    d(π(R)) = π(dR).
    """

    child: Node
    variables: tuple[Var, ...]


@dataclass(frozen=True, slots=True)
class Distinct:
    """https://www.w3.org/TR/sparql11-query/#modDistinct.

    d(δ(R)): +1 where a row's count rises from 0, -1 where it falls to 0.
    """

    child: Node


Node = (
    Bgp
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
)


@dataclass(frozen=True, slots=True)
class SelectQuery:
    """A parsed SELECT query: its answer columns in order, and the node that produces its rows."""

    variables: tuple[Var, ...]
    root: Node
    text: str = ""
