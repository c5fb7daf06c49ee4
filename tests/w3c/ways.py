"""Three ways to bring a live graph to a test's data; each must end in the expected answer."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from pyoxigraph import Literal, NamedNode, Quad

from graphtide import LiveGraph
from graphtide.errors import UnsupportedError
from oracles.runs import batch_of
from oracles.transactions import StreamTransaction, terms_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from graphtide import Query


STRATEGIES = ("rete", "search", "decomposed")


def load_then_watch(query: str, quads: Sequence[Quad], seed: int) -> list[Query]:
    """All data in one transaction, then the query."""
    return _watches(loaded(quads), query)


def loaded(quads: Sequence[Quad]) -> LiveGraph:
    """A graph with all data, from one transaction."""
    graph = LiveGraph()
    graph.apply(batch_of([StreamTransaction(0, tuple((1, quad) for quad in quads))]))
    return graph


def watch_then_insert(query: str, quads: Sequence[Quad], seed: int) -> list[Query]:
    """The query on the empty graph, then quad by quad in random order."""
    graph = LiveGraph()
    watches = _watches(graph, query)
    for quad in Random(seed).sample(quads, len(quads)):
        graph.insert(*terms_of(quad))
    return watches


def watch_then_insert_with_noise(query: str, quads: Sequence[Quad], seed: int) -> list[Query]:
    """As `watch_then_insert`, but quads go and come back, and strangers come and go."""
    random = Random(seed)
    graph = LiveGraph()
    watches = _watches(graph, query)
    present: list[Quad] = []
    for quad in random.sample(quads, len(quads)):
        graph.insert(*terms_of(quad))
        present.append(quad)
        if random.random() < 0.5:
            _away_and_back(graph, random.sample(present, random.randint(1, min(3, len(present)))))
        if random.random() < 0.3:
            _visit(graph, [_stranger(random, quads) for _ in range(2)], quads)
    return watches


def _away_and_back(graph: LiveGraph, quads: Sequence[Quad]) -> None:
    """Delete quads one by one, re-insert them together."""
    for quad in quads:
        graph.delete(*terms_of(quad))
    with graph.transaction() as tx:
        for quad in quads:
            tx.insert(*terms_of(quad))


def _visit(graph: LiveGraph, strangers: Sequence[Quad], quads: Sequence[Quad]) -> None:
    """Insert quads that are not among the data, and delete them again."""
    visitors = [quad for quad in strangers if quad not in quads]
    with graph.transaction() as tx:
        for quad in visitors:
            tx.insert(*terms_of(quad))
    for quad in visitors:
        graph.delete(*terms_of(quad))


def _stranger(random: Random, quads: Sequence[Quad]) -> Quad:
    """A quad made of parts of the data, so that it is likely to join with it."""
    a, b, c = (random.choice(quads) for _ in range(3))
    other = (NamedNode("http://example.org/stranger"), Literal("stranger"), c.object)
    return Quad(a.subject, b.predicate, random.choice(other), b.graph_name)


def _watches(graph: LiveGraph, query: str) -> list[Query]:
    watches = [graph.watch(query, strategy=strategy) for strategy in STRATEGIES]
    with suppress(UnsupportedError):  # what has no aggregate of a join cannot be counted
        watches.append(graph.watch(query, strategy="counting"))
    return watches


WAYS: dict[str, Callable[[str, Sequence[Quad], int], list[Query]]] = {
    "load-then-watch": load_then_watch,
    "one-by-one": watch_then_insert,
    "noise": watch_then_insert_with_noise,
}
