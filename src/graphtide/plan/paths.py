"""Plan property paths: relations of pairs, and their transitive closure.

Inside `?`, `*` and `+` a path is a set of pairs: sequences are joins, alternatives are unions, and
only the closure needs an operator of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import count
from typing import TYPE_CHECKING, assert_never

from graphtide.algebra import paths
from graphtide.algebra.expressions import Call, Const, Var
from graphtide.algebra.nodes import DefaultGraph, MergedGraph, Path, TriplePattern
from graphtide.algebra.trees import balanced
from graphtide.plan import make
from graphtide.plan.physical import Constant, Physical

if TYPE_CHECKING:
    from pyoxigraph import NamedNode

    from graphtide.algebra.variables import Schema
    from graphtide.rdf.terms import Term

NODE = Var(".node")
"""The column of all subjects and objects of a graph, which zero steps pair with themselves."""


def plan_path(node: Path, number: int) -> Physical:
    """The plan of a path pattern: one row for each pair that the path connects.

    The columns of paths with different numbers are different: each has demands of its own.
    """
    graph = node.graph
    if isinstance(graph, Var) and graph in (node.subject, node.object):
        # A plan node has no column twice: the graph gets a column of its own, and is compared.
        name = Var(f".graph{number}")
        found = plan_path(replace(node, graph=name), number)
        same = make.select(found, Call("SAMETERM", (graph, name)))
        return make.keep(same, tuple(v for v in found.schema if v != name))
    ends = Var(f".from{number}"), Var(f".to{number}")
    return _Paths(node.graph, *ends).pattern(node)


@dataclass(slots=True)
class _Paths:
    """Builds pairs of a start and an end, with the variable of the graph, if any."""

    graph: Var | NamedNode | DefaultGraph | MergedGraph
    start: Var
    end: Var
    numbers: count[int] = field(default_factory=count)

    @property
    def schema(self) -> Schema:
        return (self.start, self.end, *self.where)

    @property
    def where(self) -> Schema:
        return (self.graph,) if isinstance(self.graph, Var) else ()

    def pattern(self, node: Path) -> Physical:
        s, o = node.subject, node.object
        if isinstance(s, Var):
            if isinstance(o, Var):
                return self._ends(self.pairs(node.path), s, o)
            return self._from_constant(paths.Inverse(node.path), o, s)
        if isinstance(o, Var):
            return self._from_constant(node.path, s, o)
        end = Var(".end")
        reached = self._from_constant(node.path, s, end)
        there = make.select(reached, Call("SAMETERM", (end, Const(o))))
        return make.keep(there, self.where)

    def _ends(self, pairs: Physical, s: Var, o: Var) -> Physical:
        if s != o:
            return make.renamed(pairs, self.schema, (s, o, *self.where))
        same = make.select(pairs, Call("SAMETERM", (self.start, self.end)))
        return make.renamed(same, (self.start, *self.where), (s, *self.where))

    def _from_constant(self, path: paths.PathExpression, start: Term, end: Var) -> Physical:
        """The ends of a path from a term, including the term itself for zero steps."""
        pairs = self._reached(path, start)
        reached = make.renamed(pairs, (self.end, *self.where), (end, *self.where))
        if not paths.matches_zero_length(path):
            return reached
        itself: Physical = Constant(((start,),), (end,), frozenset((end,)))
        if self.where:
            itself = make.join(itself, make.graph_names(self.where[0]))
        return make.unique(make.union(reached, itself))

    def _reached(self, path: paths.PathExpression, start: Term) -> Physical:
        """Pairs from a term; those of zero steps may be missing."""
        match path:
            case paths.OneOrMore(inner) | paths.ZeroOrMore(inner):
                return self._closed(inner, start)
            case paths.Inverse(paths.OneOrMore(inner) | paths.ZeroOrMore(inner)):
                return self._closed(paths.Inverse(inner), start)
            case paths.ZeroOrOne(inner):
                return self._reached(inner, start)
            case paths.Inverse(paths.ZeroOrOne(inner)):
                return self._reached(paths.Inverse(inner), start)
            case _:
                pairs = self.pairs(path)
                return make.select(pairs, Call("SAMETERM", (self.start, Const(start))))

    def _closed(self, path: paths.PathExpression, start: Term) -> Physical:
        source = Constant(((start,),), (self.start,), frozenset((self.start,)))
        return make.closure(self._edges(path), source)

    def _edges(self, path: paths.PathExpression) -> Physical:
        """Distinct pairs, as edges of a closure."""
        pairs = self.pairs(path)
        return pairs if isinstance(path, paths.Link) else make.unique(pairs)

    def pairs(self, path: paths.PathExpression) -> Physical:
        """All distinct pairs that a path connects."""
        match path:
            case paths.Link(iri):
                return make.matches(TriplePattern(self.start, iri, self.end, self.graph))
            case paths.NegatedSet(iris):
                return self._other_links(iris)
            case paths.ToBlank():
                return make.select(self._other_links(()), Call("ISBLANK", (self.end,)))
            case paths.Inverse(inner):
                swapped = (self.end, self.start, *self.where)
                return make.renamed(self.pairs(inner), swapped, self.schema)
            case paths.Sequence(steps):
                return reduce(self._followed, map(self.pairs, steps))
            case paths.Alternative(choices):
                return make.unique(balanced(make.union, [self.pairs(each) for each in choices]))
            case paths.ZeroOrOne(inner):
                return make.unique(make.union(self.pairs(inner), self._still()))
            case paths.OneOrMore(inner):
                return make.closure(self._edges(inner))
            case paths.ZeroOrMore(inner):
                closed = make.closure(self._edges(inner))
                return make.unique(make.union(closed, self._still()))
            case _:
                assert_never(path)

    def _other_links(self, iris: tuple[NamedNode, ...]) -> Physical:
        predicate = Var(".by")
        links = make.matches(TriplePattern(self.start, predicate, self.end, self.graph))
        if iris:
            links = make.select(links, Call("NOT IN", (predicate, *map(Const, iris))))
        return make.unique(make.keep(links, self.schema))

    def _followed(self, first: Physical, second: Physical) -> Physical:
        """The pairs of one path and then another."""
        middle = Var(f".middle{next(self.numbers)}")
        left = make.renamed(first, self.schema, (self.start, middle, *self.where))
        right = make.renamed(second, self.schema, (middle, self.end, *self.where))
        return make.unique(make.keep(make.join(left, right), self.schema))

    def _still(self) -> Physical:
        """Every subject and object of the graph, paired with itself."""
        by, other = Var(".by"), Var(".other")
        patterns = (TriplePattern(s, by, o, self.graph) for s, o in ((NODE, other), (other, NODE)))
        sides = [make.keep(make.matches(p), (NODE, *self.where)) for p in patterns]
        there = make.unique(make.union(sides[0], sides[1]))
        return make.renamed(there, (NODE, NODE, *self.where), self.schema)
