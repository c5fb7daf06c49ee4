"""Every way along a path, against a search by hand; and rows of older transactions."""

from __future__ import annotations

from random import Random

import pytest

import graphtide as gt

NODE = "<ex:{}>".format


def simple_ways(edges, start, end):
    """All ways from one node to another on which no node is reached twice, as sets of edges."""
    found = set()

    def go(at, way, seen):
        if way and at == end:
            found.add(frozenset(way))
        if way and at in (start, end):
            return
        for one, two in edges:
            if one == at and two not in seen:
                go(two, (*way, (one, two)), seen | {two})

    go(start, (), frozenset())
    return found


def ways_of(explanation):
    """The edges of each derivation."""
    return {
        frozenset((f.subject.value[3:], f.object.value[3:]) for s in way.walk() for f in s.facts)
        for way in explanation.derivations
    }


@pytest.mark.parametrize("seed", range(40))
def test_all_ways_along_a_path(seed):
    rng = Random(seed)
    nodes = "abcde"
    pairs = [(one, two) for one in nodes for two in nodes]
    edges = rng.sample(pairs, rng.randint(3, 10))
    graph = gt.LiveGraph()
    query = graph.watch("SELECT ?x ?y { ?x <ex:p>+ ?y }")
    for one, two in edges:
        graph.insert(NODE(one), "<ex:p>", NODE(two))
    for row in query.table(terms=True).to_pylist():
        start, end = row["x"][4:-1], row["y"][4:-1]
        found = query.why(row, all=True, limit=1000)
        assert ways_of(found) == simple_ways(edges, start, end)
        shortest = query.why(row)
        assert len(shortest.facts()) == min(map(len, ways_of(found)))


def test_ways_of_a_sequence_and_an_alternative():
    graph = gt.LiveGraph()
    query = graph.watch("SELECT ?x ?y { ?x (<ex:p>|<ex:q>)/<ex:r> ?y }")
    for s, p, o in ("apb", "aqb", "apc", "brd", "crd"):
        graph.insert(NODE(s), NODE(p), NODE(o))
    found = query.why(x=NODE("a"), y=NODE("d"), all=True)
    assert len(found.derivations) == 3
    assert len(query.why(x=NODE("a"), y=NODE("d"), all=True, limit=2).derivations) == 2


def test_many_ways_are_found_as_far_as_the_limit():
    """A ladder of twenty steps has a million ways: only some of them are looked for."""
    graph = gt.LiveGraph()
    query = graph.watch("SELECT ?y { <ex:0> <ex:p>+ ?y }")
    for step in range(20):
        for side in "uv":
            graph.insert(NODE(step), "<ex:p>", NODE(f"{step}{side}"))
            graph.insert(NODE(f"{step}{side}"), "<ex:p>", NODE(step + 1))
    found = query.why(y=NODE(20), all=True, limit=5)
    assert len(found.derivations) == 5
    assert found.notes == ("stopped after 5 derivations",)
