"""A relational algebra of labelled graphs, to write queries in Python.

A labelled graph is a set of relations: one of vertices for each vertex label, one of edges for each
edge label. In RDF, a vertex label is a class (`rdf:type`), an edge is a triple; an edge with an
identity of its own is a triple in a named graph, whose name is that identity.

Relations are sets with named attributes. `graph.watch(relation.query())` registers one as a
standing query; with `plan="written"` it is maintained in the shape in which it was written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyoxigraph import NamedNode

from graphtide.algebra import nodes as alg
from graphtide.algebra.expressions import Call, Const, Exists, Expression, Var
from graphtide.algebra.variables import mentioned, schema
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from graphtide.rdf.terms import Term

RDF_TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation over the graph: an algebra node with named attributes."""

    node: alg.Node

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(v.name for v in schema(self.node))

    def join(self, other: Relation) -> Relation:
        """R ⋈ s: pairs of rows that agree on all attributes of the same name."""
        return Relation(alg.Join(self.node, other.node))

    def product(self, other: Relation) -> Relation:
        """R × s: all pairs of rows. The two must have no attribute in common."""
        both = [name for name in self.attributes if name in other.attributes]
        if both:
            raise GraphtideError(
                f"both sides of a product have the attribute {both[0]!r}",
                hint="use join(), or other attribute names on one side",
            )
        return Relation(alg.Join(self.node, other.node))

    def antijoin(self, other: Relation) -> Relation:
        """R ⊳ s: rows of r that no row of s agrees with."""
        return Relation(alg.Filter(Call("!", (Exists(other.node),)), self.node))

    def semijoin(self, other: Relation) -> Relation:
        """R ⋉ s: rows of r that some row of s agrees with."""
        return Relation(alg.Filter(Exists(other.node), self.node))

    def select(self, condition: Expression) -> Relation:
        """σ: rows for which a condition holds."""
        self._reject_unknown(v.name for v in mentioned(condition))
        return Relation(alg.Filter(condition, self.node))

    def project(self, *attributes: str) -> Relation:
        """π: these attributes only, each row once."""
        self._reject_unknown(attributes)
        return Relation(alg.Distinct(alg.Project(self.node, tuple(map(Var, attributes)))))

    def query(self) -> alg.SelectQuery:
        """The relation as a query that can be registered."""
        return alg.SelectQuery(schema(self.node), self.node)

    def _reject_unknown(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.attributes:
                known = ", ".join(self.attributes)
                raise GraphtideError(
                    f"unknown attribute {name!r}", hint=f"the relation has {known}"
                )


@dataclass(frozen=True, slots=True)
class Labels:
    """The relations of a labelled graph whose labels are IRIs in one namespace.

    Where no edge has an identity of its own, `identities=False` says so: patterns then look at the
    default graph alone, which takes fewer nodes.

    >>> rail = Labels("http://example.org/")
    >>> follows = rail.edges("route", "follows", "position")
    >>> requires = rail.edges("route", "requires", "sensor", target_label="Sensor")
    >>> follows.antijoin(requires).attributes
    ('route', 'position')
    """

    namespace: str
    identities: bool = True

    def vertices(self, vertex: str, *labels: str) -> Relation:
        """○: the vertices that have all of these labels."""
        if not labels:
            raise GraphtideError("vertices() needs a label", hint='as in vertices("r", "Route")')
        return Relation(alg.Bgp(self._classes(vertex, labels)))

    def edges(
        self,
        source: str,
        label: str,
        target: str,
        *,
        edge: str | None = None,
        source_label: str | tuple[str, ...] = (),
        target_label: str | tuple[str, ...] = (),
    ) -> Relation:
        """⇑: the edges with a label, between vertices with all of theirs.

        With `edge`, the edge's own identity is an attribute too. Without, edges with and without an
        identity count, and parallel ones are one row: a relation is a set.
        """
        pattern = alg.TriplePattern(
            Var(source), self.iri(label), Var(target), self._graph(edge, label)
        )
        ends = ((source, source_label), (target, target_label))
        classes = (self._classes(v, (n,) if isinstance(n, str) else n) for v, n in ends)
        return Relation(alg.Bgp((pattern, *(each for group in classes for each in group))))

    def iri(self, label: str) -> NamedNode:
        """A label as an IRI."""
        return NamedNode(self.namespace + label)

    def _graph(self, edge: str | None, label: str) -> Var | alg.DefaultGraph | alg.MergedGraph:
        if self.identities:
            return alg.MergedGraph(None) if edge is None else Var(edge)
        if edge is None:
            return alg.DEFAULT_GRAPH
        raise GraphtideError(
            f"edges of {label!r} have no identity that {edge!r} could be",
            hint="leave out edge=, or use Labels(…) without identities=False",
        )

    def _classes(self, vertex: str, labels: tuple[str, ...]) -> tuple[alg.TriplePattern, ...]:
        return tuple(alg.TriplePattern(Var(vertex), RDF_TYPE, self.iri(label)) for label in labels)


def different(left: str, right: str | Term) -> Expression:
    """An attribute is not the same as another, or as a term."""
    return Call("!=", (Var(left), _operand(right)))


def _operand(value: str | Term) -> Expression:
    return Var(value) if isinstance(value, str) else Const(value)
