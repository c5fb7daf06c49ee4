"""Graphs of people and posts with even and skewed degrees, and queries of every shape over them.

In a `uniform` graph, all ends of edges are equally likely. In a `zipf` graph, the n-th most
frequent end has a share of 1/n. In a `hubs` graph, a fifth of all edges end at three hubs. Frequent
nodes are frequent for every predicate. `drifted` replaces all edges of two predicates: as many
others, skewed where they were even and even where they were skewed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.random import Generator

    from graphtide.kernel.batch import Ints
    from graphtide.rdf.dictionary import TermDictionary

Shape = Literal["uniform", "zipf", "hubs"]
SHAPES: Final[tuple[Shape, ...]] = ("uniform", "zipf", "hubs")

HUBS: Final = 3
HUB_SHARE: Final = 0.2
MIN_QUADS: Final = 1000
QUADS_PER_PERSON: Final = 19

PREFIX: Final = "PREFIX : <http://example.org/> "

EDGES: Final[dict[str, tuple[str, str, float]]] = {
    "follows": ("person", "person", 4),
    "blocks": ("person", "person", 0.5),
    "likes": ("person", "post", 5),
    "tag": ("post", "tag", 4),
    "creator": ("post", "person", 2),
    "city": ("person", "city", 1),
    "org": ("person", "org", 1),
    "status": ("person", "status", 1),
    "moderates": ("person", "tag", 0.1),
}
"""Predicate -> kinds of its ends, and edges per person."""

NODES: Final[dict[str, float]] = {
    "person": 1, "post": 2, "tag": 0.05, "city": 0.02, "org": 0.1, "status": 0.001,
}  # fmt: skip
"""Kind of node -> nodes per person."""

DRIFTING: Final = ("follows", "likes")

QUERIES: Final[dict[str, str]] = {
    # chains
    "chain 2": "?a :follows ?b . ?b :city ?c",
    "chain of follows": "?a :follows ?b . ?b :follows ?c . ?c :moderates ?t",
    "chain 3": "?a :follows ?b . ?b :moderates ?t . ?p :tag ?t . ?p :creator ?a",
    "chain of posts": "?p :creator ?a . ?a :org ?o . ?a :city ?c",
    "chain to a constant": "?a :follows ?b . ?b :follows ?c . ?c :city :city1",
    "chain from a constant": ":person1 :follows ?b . ?b :likes ?p . ?p :tag ?t",
    "chain to a rare status": "?a :likes ?p . ?p :creator ?b . ?b :status :status1",
    "chain of four": "?m :moderates ?t . ?p :tag ?t . ?p :creator ?a . ?a :org ?o",
    # stars
    "star 2": "?a :city ?c . ?a :org ?o",
    "star 3": "?a :city ?c . ?a :org ?o . ?a :status :status1",
    "star of edges": "?a :moderates ?t . ?a :follows ?b . ?a :blocks ?c",
    "star at a post": "?p :creator ?a . ?p :tag ?t . ?m :moderates ?t",
    "star of constants": "SELECT ?a { ?a :city :city1 . ?a :org :org1 . ?a :status :status1 }",
    # pairs that meet
    "co-like": ":person1 :likes ?p . ?b :likes ?p . ?b :city :city1",
    "co-like with two constants": "?a :city :city1 . ?a :likes ?p . ?b :likes ?p . ?b :city :city2",
    "co-follow with two constants": (
        "?a :org :org1 . ?a :follows ?x . ?b :follows ?x . ?b :org :org2"
    ),
    "co-tag with two constants": (
        "?p :creator :person1 . ?p :tag ?t . ?q :tag ?t . ?q :creator :person2"
    ),
    # cycles
    "mutual": "?a :follows ?b . ?b :follows ?a",
    "triangle": "?a :follows ?b . ?b :follows ?c . ?c :follows ?a",
    "square": "?a :follows ?b . ?b :blocks ?c . ?c :follows ?d . ?d :blocks ?a",
    "own like": "?a :likes ?p . ?p :creator ?a",
    "liked by a follower": "?a :follows ?b . ?a :likes ?p . ?p :creator ?b",
    "neighbours follow": "?a :blocks ?b . ?a :city ?c . ?b :city ?c",
    # snowflakes
    "snowflake": "?a :moderates ?t . ?p :tag ?t . ?p :creator ?b . ?a :city ?c . ?b :org ?o",
    "snowflake of likes": "?a :likes ?p . ?p :creator ?b . ?a :org :org1 . ?b :city :city1",
    "snowflake of follows": "?a :follows ?b . ?a :status :status0 . ?b :city :city1 . ?b :org ?o",
    # negation and existence
    "NOT EXISTS": "?a :follows ?b FILTER NOT EXISTS { ?b :follows ?a }",
    "NOT EXISTS over 2 hops": "?a :blocks ?b FILTER NOT EXISTS { ?a :follows ?x . ?x :follows ?b }",
    "NOT EXISTS through co-tags": (
        "?a :moderates ?t . ?a :likes ?p FILTER NOT EXISTS "
        "{ ?p :tag ?u . ?q :tag ?u . ?q :creator ?a }"
    ),
    "NOT EXISTS through co-likes": (
        "?a :blocks ?b FILTER NOT EXISTS { ?a :likes ?p . ?b :likes ?p }"
    ),
    "EXISTS": "?a :city ?c FILTER EXISTS { ?a :moderates ?t }",
    "EXISTS over 2 hops": "?a :moderates ?t FILTER EXISTS { ?a :likes ?p . ?p :tag ?t }",
    "MINUS": "?a :likes ?p MINUS { ?p :creator ?a }",
    # OPTIONAL
    "OPTIONAL": "?a :moderates ?t OPTIONAL { ?a :blocks ?b }",
    "two OPTIONAL": "?p :creator ?a OPTIONAL { ?a :moderates ?t } OPTIONAL { ?a :blocks ?b }",
    "OPTIONAL over 2 hops": "?a :moderates ?t OPTIONAL { ?a :follows ?b . ?b :moderates ?u }",
    # aggregates
    "COUNT per city": "SELECT ?c (COUNT(*) AS ?n) { ?a :city ?c } GROUP BY ?c",
    "COUNT of a join": "SELECT ?c (COUNT(*) AS ?n) { ?a :follows ?b . ?b :city ?c } GROUP BY ?c",
    "COUNT of a chain": (
        "SELECT (COUNT(*) AS ?n) { ?m :moderates ?t . ?p :tag ?t . ?p :creator ?a }"
    ),
    "COUNT of pairs": "SELECT (COUNT(*) AS ?n) { ?a :blocks ?x . ?b :blocks ?x }",
    "distinct tags liked": "SELECT DISTINCT ?t { ?a :status :status1 . ?a :likes ?p . ?p :tag ?t }",
    "COUNT with EXISTS": (
        "SELECT ?o (COUNT(*) AS ?n) { ?a :org ?o FILTER EXISTS { ?a :moderates ?t } } GROUP BY ?o"
    ),
}
"""Name -> query, or the pattern of one that selects everything."""


def query_text(name: str) -> str:
    """The query of a name, with its prefix.

    >>> query_text("star 2")
    'PREFIX : <http://example.org/> SELECT * { ?a :city ?c . ?a :org ?o }'
    """
    query = QUERIES[name]
    return PREFIX + (query if query.startswith("SELECT") else f"SELECT * {{ {query} }}")


class SocialGraph:
    """The quads of a graph by predicate, as rows `s, p, o` of ids.

    >>> from graphtide.rdf.dictionary import TermDictionary
    >>> graph = SocialGraph(TermDictionary(), 2000, "zipf", seed=0)
    >>> drift = graph.drifted()
    >>> all(len(drift[name]) == len(graph.edges[name]) for name in DRIFTING)
    True
    """

    def __init__(self, terms: TermDictionary, quads: int, shape: Shape, seed: int) -> None:
        self.people = max(quads // QUADS_PER_PERSON, 20)
        self.shape = shape
        self._random = np.random.default_rng(seed)
        self._nodes = {
            kind: _encoded(terms, kind, max(round(share * self.people), 4))
            for kind, share in NODES.items()
        }
        self._predicates = {name: int(_encoded(terms, name)[0]) for name in EDGES}
        # The most frequent ends are the same ones for all predicates.
        self._ranked = {kind: self._random.permutation(ids) for kind, ids in self._nodes.items()}
        self.edges = {name: self._edges(name, shape) for name in EDGES}

    def drifted(self) -> dict[str, Ints]:
        """Other edges of the predicates that drift, as many as before."""
        shape: Shape = "hubs" if self.shape == "uniform" else "uniform"
        for kind, ids in self._ranked.items():
            self._ranked[kind] = self._random.permutation(ids)
        return {name: self._edges(name, shape, len(self.edges[name])) for name in DRIFTING}

    def all_edges(self) -> Ints:
        """All quads in random order."""
        return self._random.permutation(np.concatenate([*self.edges.values()]))

    def _edges(self, name: str, shape: Shape, wanted: int | None = None) -> Ints:
        """Distinct edges of a predicate; functional ones have one edge for each subject."""
        source, target, share = EDGES[name]
        count = wanted or round(share * self.people)
        functional = count == len(self._nodes[source])
        found: Ints = np.empty((0, 2), np.int32)
        while len(found) < count:
            left = self._nodes[source]
            if not functional:
                left = self._ends(source, shape, count)
            pairs = np.column_stack([left, self._ends(target, shape, count)])
            found = np.unique(np.concatenate([found, pairs]), axis=0)
            found = self._random.permutation(found)
        p = np.full(count, self._predicates[name], np.int32)
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


def _drawn(random: Generator, ids: Ints, count: int) -> Ints:
    return random.choice(ids, count).astype(np.int32)


def _encoded(terms: TermDictionary, kind: str, count: int | None = None) -> Ints:
    names = [kind] if count is None else [f"{kind}{i}" for i in range(count)]
    column = pa.array([f"<http://example.org/{name}>" for name in names], pa.string())
    return np.asarray(terms.encode_column(column), np.int32)
