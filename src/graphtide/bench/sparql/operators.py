"""The operators that are measured: a query that is little else, and how its cost may grow.

The graph of an operator has `size` quads, or pairs for a path. A round takes some quads away and
puts them back, one transaction each, so that the state keeps its size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import pyarrow as pa

from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.random import Generator

    from graphtide.engine.live_graph import LiveGraph
    from graphtide.kernel.batch import Ints
    from graphtide.plan.patterns import Strategy

Growth = Literal["flat", "logarithmic", "affected region"]

CHAIN = 10
"""Nodes of a chain: a path reaches 45 pairs in it."""

_PAIRS = CHAIN * (CHAIN - 1) // 2
_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


@dataclass(frozen=True, slots=True)
class Data:
    """The quads of a graph as ids, and which of them a round takes away: those at the end."""

    quads: Ints
    moving: Ints


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator, its query, its data, and how the cost of a change may grow with the state."""

    name: str
    growth: Growth
    query: str
    make: Callable[[LiveGraph, int, Generator], Data]
    strategy: Strategy | None = None


def edges(graph: LiveGraph, size: int, random: Generator) -> Data:
    """Half of the quads are `?a :p ?b`, half `?b :q ?c`; those of `:q` move."""
    half = size // 2
    a, b, c = (nodes(graph, name, half) for name in "abc")
    p, q = (np.full(half, graph.terms.encode(f"<ex:{name}>"), np.int32) for name in "pq")
    into = random.permutation(b)
    left, right = _quads(a, p, into), _quads(b, q, c)
    return Data(np.concatenate([left, right]), random.permutation(right))


def doubled(graph: LiveGraph, size: int, random: Generator) -> Data:
    """`?a :p ?b`, where half of the `?b` are there twice: they stay when one goes."""
    a = nodes(graph, "a", size)
    b = nodes(graph, "b", size * 3 // 4)
    p = np.full(size, graph.terms.encode("<ex:p>"), np.int32)
    quads = _quads(a, p, np.concatenate([b, b[: size - len(b)]]))
    return Data(quads, random.permutation(quads))


def numbers(graph: LiveGraph, size: int, random: Generator) -> Data:
    """`?a :p ?v` with different numbers; the least and the greatest move, and as many others."""
    a = nodes(graph, "a", size)
    p = np.full(size, graph.terms.encode("<ex:p>"), np.int32)
    texts = pa.array([f'"{n}"^^<{_INTEGER}>' for n in range(size)])
    quads = _quads(a, p, graph.terms.encode_column(texts))
    part = size // 8
    others = random.permutation(quads[part:-part])
    moving = np.empty((4 * part, 4), np.int32)
    moving[0::4], moving[2::4] = others[:part], others[part : 2 * part]
    moving[1::4], moving[3::4] = quads[part - 1 :: -1], quads[-part:]
    return Data(quads, moving)


def chains(graph: LiveGraph, size: int, random: Generator) -> Data:
    """Chains of ten nodes, as many as give `size` pairs."""
    count = max(size // _PAIRS, 1)
    node = nodes(graph, "n", count * CHAIN).reshape(count, CHAIN)
    p = np.full(count * (CHAIN - 1), graph.terms.encode("<ex:p>"), np.int32)
    quads = _quads(node[:, :-1].reshape(-1), p, node[:, 1:].reshape(-1))
    return Data(quads, random.permutation(quads))


def nodes(graph: LiveGraph, name: str, count: int) -> Ints:
    """Ids of so many IRIs."""
    found: Ints = graph.terms.encode_column(pa.array([f"<ex:{name}{n}>" for n in range(count)]))
    return found


def _quads(s: Ints, p: Ints, o: Ints) -> Ints:
    quads: Ints = np.column_stack([s, p, o, np.zeros(len(s), np.int32)]).astype(np.int32)
    return quads


_JOIN: Final = "SELECT * { ?a <ex:p> ?b . ?b <ex:q> ?c }"
_ANTIJOIN: Final = "SELECT * { ?a <ex:p> ?b FILTER NOT EXISTS { ?b <ex:q> ?c } }"
_GROUPS: Final = "SELECT ?b (COUNT(*) AS ?n) { ?a <ex:p> ?b } GROUP BY ?b"
_TOP: Final = "SELECT * { ?a <ex:p> ?v } ORDER BY DESC(?v) LIMIT 10"

OPERATORS: Final = (
    Operator("join, search", "flat", _JOIN, edges, "search"),
    Operator("join, rete", "flat", _JOIN, edges, "rete"),
    Operator("antijoin, search", "flat", _ANTIJOIN, edges, "search"),
    Operator("antijoin, rete", "flat", _ANTIJOIN, edges, "rete"),
    Operator("optional", "flat", "SELECT * { ?a <ex:p> ?b OPTIONAL { ?b <ex:q> ?c } }", edges),
    Operator("distinct", "flat", "SELECT DISTINCT ?b { ?a <ex:p> ?b }", doubled),
    Operator("COUNT", "flat", "SELECT (COUNT(?v) AS ?n) { ?a <ex:p> ?v }", numbers),
    Operator("SUM", "flat", "SELECT (SUM(?v) AS ?n) { ?a <ex:p> ?v }", numbers),
    Operator("MIN", "logarithmic", "SELECT (MIN(?v) AS ?n) { ?a <ex:p> ?v }", numbers),
    Operator("MAX", "logarithmic", "SELECT (MAX(?v) AS ?n) { ?a <ex:p> ?v }", numbers),
    Operator("COUNT in groups", "flat", _GROUPS, doubled),
    Operator("top 10", "logarithmic", _TOP, numbers),
    Operator("path", "affected region", "SELECT * { ?a <ex:p>+ ?b }", chains),
)


def find_operators(names: Sequence[str]) -> list[Operator]:
    """Operators by name; `all` of them.

    >>> [operator.name for operator in find_operators(["MIN", "path"])]
    ['MIN', 'path']
    """
    if "all" in names:
        return list(OPERATORS)
    known = {operator.name: operator for operator in OPERATORS}
    for name in names:
        if name not in known:
            hint = f"use all, or some of {'; '.join(known)}"
            raise GraphtideError(f"there is no operator {name!r}", hint=hint)
    return [known[name] for name in names]
