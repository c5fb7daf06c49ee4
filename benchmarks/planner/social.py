"""People and posts: queries of every shape, and shapes of LDBC's benchmarks.

"IC" are complex reads of LDBC's Social Network Benchmark [Erling et al., SIGMOD 2015], "LSQB"
queries of its Labelled Subgraph Query Benchmark [Mhedhbi et al., GRADES 2021], as far as people and
posts have what they ask for.
"""

from __future__ import annotations

from typing import Final

QUADS: Final = 19
"""Quads per person."""

NODES: Final[dict[str, float]] = {
    "person": 1, "post": 2, "tag": 0.05, "city": 0.02, "org": 0.1, "status": 0.001,
}  # fmt: skip
"""Kind of node -> nodes per person."""

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

SINGLE: Final = frozenset({"creator", "city", "org", "status"})
"""Predicates with one edge at most of each subject."""

OWNED: Final = frozenset[str]()
"""Predicates with one edge at most to each object."""

DRIFTING: Final = ("follows", "likes")
"""Predicates whose edges are replaced by others."""

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
    "COUNT of same-status pairs": "SELECT (COUNT(*) AS ?n) { ?a :status ?s . ?b :status ?s }",
    "COUNT of pairs": "SELECT (COUNT(*) AS ?n) { ?a :blocks ?x . ?b :blocks ?x }",
    "distinct tags liked": "SELECT DISTINCT ?t { ?a :status :status1 . ?a :likes ?p . ?p :tag ?t }",
    "COUNT with EXISTS": (
        "SELECT ?o (COUNT(*) AS ?n) { ?a :org ?o FILTER EXISTS { ?a :moderates ?t } } GROUP BY ?o"
    ),
    "COUNT of likes by tag": (
        "SELECT ?t (COUNT(*) AS ?n) { ?a :likes ?p . ?p :tag ?t } GROUP BY ?t"
    ),
    # LDBC
    "IC 2": ":person1 :follows ?b . ?p :creator ?b . ?b :city ?c",
    "IC 6": (
        "SELECT ?t (COUNT(*) AS ?n) "
        "{ :person1 :follows ?b . ?p :creator ?b . ?p :tag :tag1 . ?p :tag ?t } GROUP BY ?t"
    ),
    "IC 7": "?p :creator :person1 . ?b :likes ?p OPTIONAL { :person1 :follows ?b }",
    "LSQB 2": "SELECT (COUNT(*) AS ?n) { ?a :follows ?b . ?p :creator ?b . ?a :likes ?p }",
    "LSQB 3": (
        "SELECT (COUNT(*) AS ?n) { ?a :city ?x . ?b :city ?x . ?c :city ?x . "
        "?a :follows ?b . ?b :follows ?c . ?c :follows ?a }"
    ),
    "LSQB 4": "SELECT (COUNT(*) AS ?n) { ?p :tag ?t . ?p :creator ?a . ?b :likes ?p }",
    "LSQB 5": (
        "SELECT (COUNT(*) AS ?n) "
        "{ ?p :tag ?t . ?p :creator ?a . ?a :moderates ?u FILTER(?t != ?u) }"
    ),
    "LSQB 6": "SELECT (COUNT(*) AS ?n) { ?a :follows ?b . ?b :follows ?c . ?c :moderates ?t }",
    "LSQB 9": (
        "SELECT (COUNT(*) AS ?n) { ?a :follows ?b . ?b :follows ?c . ?c :moderates ?t "
        "FILTER NOT EXISTS { ?a :follows ?c } }"
    ),
}
"""Name -> query, or the pattern of one that selects everything."""
