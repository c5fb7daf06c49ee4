"""Where the quads of an explanation come from: a small protocol, and a graph with some changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from graphtide.algebra.nodes import DefaultGraph, MergedGraph

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from graphtide.rdf.terms import Term
    from graphtide.why.tree import Fact, FactChange

    GraphChoice = Term | DefaultGraph | MergedGraph | None
    """The graph of a pattern; None stands for every named graph."""


class QuadSource(Protocol):
    """A set of quads in which those of a pattern can be found."""

    def find(
        self,
        subject: Term | None,
        predicate: Term | None,
        object_: Term | None,
        graph: GraphChoice,
    ) -> Iterable[Fact]:
        """The quads with these terms, None being any; of the named graphs if `graph` is None."""


def is_in(graph: GraphChoice, name: Term | None) -> bool:
    """Whether the graph `name` is, or is part of, the graph of a pattern.

    >>> is_in(DefaultGraph(), None), is_in(None, None), is_in(MergedGraph(None), None)
    (True, False, True)
    """
    match graph:
        case DefaultGraph():
            return name is None
        case MergedGraph(names):
            return names is None or name in names
        case None:
            return name is not None
        case _:
            return bool(name == graph)


class ChangedQuads:
    """A source with some changes applied: the graph before a transaction, or one that might be."""

    def __init__(self, source: QuadSource, changes: Iterable[FactChange]) -> None:
        self._source = source
        last = {change.fact.quad: change for change in changes}
        self._deleted = {quad for quad, change in last.items() if change.diff < 0}
        self._inserted = {q: change.fact for q, change in last.items() if change.diff > 0}

    def find(
        self,
        subject: Term | None,
        predicate: Term | None,
        object_: Term | None,
        graph: GraphChoice,
    ) -> Iterator[Fact]:
        """The quads with these terms."""
        for fact in self._source.find(subject, predicate, object_, graph):
            if fact.quad not in self._deleted and fact.quad not in self._inserted:
                yield fact
        wanted = (subject, predicate, object_)
        for fact in self._inserted.values():
            pairs = zip(wanted, fact[:3], strict=True)
            if is_in(graph, fact.graph) and all(w is None or w == t for w, t in pairs):
                yield fact
