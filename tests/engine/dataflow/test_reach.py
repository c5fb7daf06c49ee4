"""Property paths under inserts and deletes, on data with cycles: against the reference."""

from __future__ import annotations

import random

import pytest
from engine.against_reference import check, iri, streams, unhurried
from hypothesis import given
from hypothesis import strategies as st

from graphtide import LiveGraph
from graphtide.kernel import ReachKernel
from graphtide.kernel.batch import empty_batch, make_batch
from graphtide.lang.sparql.parse import parse_any_query

NODES = [iri(n) for n in "abcd"]
changes = streams(NODES, [iri(n) for n in "pqr"], NODES)
in_graphs = streams(NODES, [iri("p")], NODES, (None, iri("g"), iri("h")))

links = st.sampled_from((":p", ":q", "^:p", "!:p", "!(:p|^:q)"))
paths = st.recursive(
    links,
    lambda inner: st.one_of(
        inner.map(lambda p: f"({p})*"),
        inner.map(lambda p: f"({p})+"),
        inner.map(lambda p: f"({p})?"),
        inner.map(lambda p: f"^({p})"),
        st.builds(lambda a, b: f"({a}/{b})", inner, inner),
        st.builds(lambda a, b: f"({a}|{b})", inner, inner),
    ),
    max_leaves=4,
)
ends = st.sampled_from(
    (("?x", "?y"), (":a", "?y"), ("?x", ":b"), (":a", ":b"), ("?x", "?x"), (":n", "?y"))
)


@unhurried
@given(paths, ends, changes)
def test_any_path(path, end, stream):
    check(f"SELECT * {{ {end[0]} {path} {end[1]} }}", stream)


@unhurried
@given(st.sampled_from((":p+", ":p*", "(:p|^:p)+", ":p?", ":p/:p*")), ends, in_graphs)
def test_a_path_lies_in_one_graph(path, end, stream):
    check(f"SELECT * {{ GRAPH ?g {{ {end[0]} {path} {end[1]} }} }}", stream)
    check(f"SELECT * {{ GRAPH :g {{ {end[0]} {path} {end[1]} }} }}", stream)


@unhurried
@given(paths, changes)
def test_joined_with_patterns(path, stream):
    check(f"SELECT ?x ?y {{ ?x :q ?z . ?x {path} ?y OPTIONAL {{ ?y :r ?w }} }}", stream)
    check(f"SELECT ?x {{ ?x :q ?z FILTER NOT EXISTS {{ ?x {path} ?z }} }}", stream)


def pairs(edges):
    """Who reaches whom in one or more steps, by plain search from each node."""
    found = set()
    for start in {a for a, _ in edges}:
        ahead = [b for a, b in edges if a == start]
        for node in ahead:
            if (start, node) not in found:
                found.add((start, node))
                ahead += [b for a, b in edges if a == node]
    return found


@pytest.mark.slow
def test_a_long_random_life_of_a_graph_with_cycles():
    """The kernel against a search from scratch, edge by edge: 3,000 changes of up to 40 edges."""
    chance = random.Random(7)
    reach = {None: ReachKernel(2, every=True), 3: ReachKernel(2)}
    reach[3].step(empty_batch(2), make_batch([(0, 1, 3)], 1))
    known: dict[int | None, set] = {source: set() for source in reach}
    edges: set[tuple[int, int]] = set()
    for step in range(3000):
        edge = chance.randrange(1, 10), chance.randrange(1, 10)
        if len(edges) > 25 or (edge not in edges and chance.random() < 0.2 and edges):
            edge = chance.choice(sorted(edges))
        diff = -1 if edge in edges else 1
        edges ^= {edge}
        for source, node in reach.items():
            for _, sign, a, b in node.step(
                make_batch([(step, diff, *edge)], 2), empty_batch(1)
            ).tolist():
                assert ((a, b) in known[source]) == (sign < 0)
                known[source] ^= {(a, b)}
            assert known[source] == {p for p in pairs(edges) if source in (None, p[0])}
    assert reach[None].sizes() == {"edges": len(edges), "pairs": len(pairs(edges))}


def test_reachability_is_stored_as_a_set_whatever_the_number_of_paths():
    """A ladder of 20 diamonds has 2^20 paths from its first node to its last."""
    graph = LiveGraph()
    watch = graph.watch(parse_any_query("SELECT ?y { <ex:0> <ex:p>+ ?y }"))
    with graph.transaction() as tx:
        for n in range(20):
            for side in "lr":
                tx.insert(iri(n), iri("p"), iri(f"{n}{side}"))
                tx.insert(iri(f"{n}{side}"), iri("p"), iri(n + 1))
    assert watch.count() == 60
    assert watch.cache_size().entries == 80 + 60 + 0
    graph.delete(iri(10), iri("p"), iri("10l"))
    assert watch.count() == 59
    graph.delete(iri(10), iri("p"), iri("10r"))
    assert watch.count() == 30
