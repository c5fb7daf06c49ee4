"""Graphs of people and posts or of a shop, with even and skewed degrees, and queries over them.

In a `uniform` graph, all ends of edges are equally likely. In a `zipf` graph, the n-th most
frequent end has a share of 1/n. In a `hubs` graph, a fifth of all edges end at three hubs. Frequent
nodes are frequent for every predicate. `drifted` replaces all edges of some predicates: as many
others, skewed where they were even and even where they were skewed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import pyarrow as pa
from pyoxigraph import NamedNode

from benchmarks.planner import shop, social
from graphtide.algebra.nodes import Bgp
from graphtide.algebra.traverse import walk
from graphtide.lang.sparql.parse import parse_query
from graphtide.plan.estimate import RDF_TYPE

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.random import Generator

    from graphtide.algebra.nodes import TriplePattern
    from graphtide.kernel.batch import Ints
    from graphtide.rdf.dictionary import TermDictionary

Shape = Literal["uniform", "zipf", "hubs"]
SHAPES: Final[tuple[Shape, ...]] = ("uniform", "zipf", "hubs")

HUBS: Final = 3
HUB_SHARE: Final = 0.2
MIN_QUADS: Final = 1000

NAMESPACE: Final = "http://example.org/"
PREFIX: Final = f"PREFIX : <{NAMESPACE}> "

QUERIES: Final[dict[str, ModuleType]] = {
    name: module for module in (social, shop) for name in module.QUERIES
}
"""Name of a query -> the module of its kind of graph."""


def query_text(name: str) -> str:
    """The query of a name, with its prefix.

    >>> query_text("star 2")
    'PREFIX : <http://example.org/> SELECT * { ?a :city ?c . ?a :org ?o }'
    """
    query = QUERIES[name].QUERIES[name]
    return PREFIX + (query if query.startswith("SELECT") else f"SELECT * {{ {query} }}")


class WorkloadGraph:
    """The quads of a graph for a query, by relation, as rows `s, p, o` of ids.

    >>> from graphtide.rdf.dictionary import TermDictionary
    >>> graph = WorkloadGraph(TermDictionary(), "star 2", 2000, "zipf", seed=0)
    >>> drift = graph.drifted()
    >>> all(len(drift[name]) == len(graph.edges[name]) for name in social.DRIFTING)
    True
    """

    def __init__(
        self, terms: TermDictionary, query: str, quads: int, shape: Shape, seed: int
    ) -> None:
        self.shape = shape
        self._query = query
        self._kind = QUERIES[query]
        self._people = max(quads // self._kind.QUADS, 20)
        self._random = np.random.default_rng(seed)
        self._nodes = {
            kind: _encoded(terms, kind, max(round(share * self._people), 4))
            for kind, share in self._kind.NODES.items()
        }
        self._predicates = {name: _predicate(name) for name in self._kind.EDGES}
        self._ids = {name: int(terms.intern(str(term))) for name, term in self._predicates.items()}
        # The most frequent ends are the same ones for all predicates.
        self._ranked = {kind: self._random.permutation(ids) for kind, ids in self._nodes.items()}
        self.edges = {name: self._edges(name, shape) for name in self._kind.EDGES}

    def drifted(self) -> dict[str, Ints]:
        """Other edges of the predicates that drift, as many as before."""
        shape: Shape = "hubs" if self.shape == "uniform" else "uniform"
        for kind, ids in self._ranked.items():
            self._ranked[kind] = self._random.permutation(ids)
        return {
            name: self._edges(name, shape, len(self.edges[name])) for name in self._kind.DRIFTING
        }

    def all_edges(self) -> Ints:
        """All quads in random order."""
        return self._random.permutation(np.concatenate([*self.edges.values()]))

    def read(self) -> list[Ints]:
        """The quads of each predicate that the query reads."""
        patterns = [p for each in patterns_of(self._query) for p in each]
        return [
            np.concatenate([self.edges[n] for n, own in self._predicates.items() if own == each])
            for each in dict.fromkeys(pattern.predicate for pattern in patterns)
        ]

    def _edges(self, name: str, shape: Shape, wanted: int | None = None) -> Ints:
        """Distinct edges of a relation, with each subject or object once if it says so."""
        source, target, share = self._kind.EDGES[name]
        count = wanted or max(round(share * self._people), 1)
        found: Ints = np.empty((0, 2), np.int32)
        while len(found) < count:
            left, right = self._ends(source, shape, count), self._ends(target, shape, count)
            if name in self._kind.SINGLE:
                left = self._random.permutation(self._nodes[source])[:count]
            elif name in self._kind.OWNED:
                right = self._random.permutation(self._nodes[target])[:count]
            pairs = np.column_stack([left, right])
            found = np.unique(np.concatenate([found, pairs]), axis=0)
            found = self._random.permutation(found)
        p = np.full(count, self._ids[name], np.int32)
        return np.column_stack([found[:count, 0], p, found[:count, 1]]).astype(np.int32)

    def _ends(self, kind: str, shape: Shape, count: int) -> Ints:
        ranked = self._ranked[kind]
        if shape == "uniform":
            return _drawn(self._random, ranked, count)
        if shape == "zipf":
            shares = 1 / np.arange(1, len(ranked) + 1)
            return self._random.choice(ranked, count, p=shares / shares.sum()).astype(np.int32)
        ends = _drawn(self._random, ranked, count)
        at_hub = self._random.random(count) < HUB_SHARE
        ends[at_hub] = _drawn(self._random, ranked[:HUBS], int(at_hub.sum()))
        return ends


def patterns_of(query: str) -> list[tuple[TriplePattern, ...]]:
    """The basic graph patterns of a query, by name.

    >>> [len(each) for each in patterns_of("NOT EXISTS over 2 hops")]
    [2, 1]
    """
    parts = walk(parse_query(query_text(query)).root)
    found = (each.patterns for each in parts if isinstance(each, Bgp))
    return sorted(found, key=len, reverse=True)


def _predicate(name: str) -> NamedNode:
    """The predicate of a relation, which is its first word."""
    word = name.split(maxsplit=1)[0]
    return RDF_TYPE if word == "type" else NamedNode(NAMESPACE + word)


def _drawn(random: Generator, ids: Ints, count: int) -> Ints:
    return random.choice(ids, count).astype(np.int32)


def _encoded(terms: TermDictionary, kind: str, count: int) -> Ints:
    column = pa.array([f"<{NAMESPACE}{kind}{i}>" for i in range(count)], pa.string())
    return np.asarray(terms.encode_column(column), np.int32)
