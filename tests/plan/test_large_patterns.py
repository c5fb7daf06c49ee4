"""Patterns too large for one search are searched in pieces."""

from __future__ import annotations

import random

import pytest
from support.sampling import slow

from graphtide import LiveGraph
from graphtide.kernel.search.program import MAX_PATTERNS
from graphtide.lang.sparql.parse import parse_query
from graphtide.plan.build import build_plan
from graphtide.plan.patterns import LARGEST_SEARCH
from graphtide.plan.physical import Search, children

PREFIX = "PREFIX : <http://example.org/> "
LENGTH, WITH_PREDICATE = 70, 19
NODES = 5


def iri(name: object) -> str:
    return f"<http://example.org/{name}>"


def chain(length: int = LENGTH, variable_predicates: int = WITH_PREDICATE) -> str:
    """`?x0 :to ?x1 . ?x1 :to ?x2 …`, the first predicates being variables."""
    words = [f"?p{n}" if n < variable_predicates else ":to" for n in range(length)]
    return " . ".join(f"?x{n} {word} ?x{n + 1}" for n, word in enumerate(words))


def searches(node) -> list[Search]:
    if isinstance(node, Search):
        return [node]
    return [found for child in children(node) for found in searches(child)]


def test_no_search_is_larger_than_the_kernel_takes():
    plan = build_plan(parse_query(f"{PREFIX} SELECT * {{ {chain()} }}"), "search")
    assert len(plan.root.schema) == LENGTH + 1 + WITH_PREDICATE == 90
    found = searches(plan.root)
    assert 2 < len(found) < 8
    assert sum(len(search.patterns) for search in found) == LENGTH
    assert all(len(s.patterns) <= LARGEST_SEARCH for s in found)
    assert all(len(s.schema) <= LARGEST_SEARCH for s in found)


def walk(successor: dict[int, int], start: int, steps: int) -> list[int] | None:
    """Where a chain from `start` leads, if every node on it has a successor."""
    path = [start]
    for _ in range(steps):
        if path[-1] not in successor:
            return None
        path.append(successor[path[-1]])
    return path


LAST = f"?x{LENGTH}"
QUERIES = {
    "alone": f"SELECT ?x0 {LAST} {{ {chain()} }}",
    "optional": f"SELECT * {{ {chain()} OPTIONAL {{ GRAPH :m {{ ?x0 :mark {LAST} }} }} }}",
    "not exists": f"""
        SELECT * {{ {chain()} FILTER NOT EXISTS {{ GRAPH :m {{ {LAST} :mark ?m }} }} }}""",
    "a large check": f"""
        SELECT * {{ GRAPH :m {{ ?x0 :mark ?m }} FILTER EXISTS {{ {chain(50, 0)} }} }}""",
}


@pytest.mark.parametrize("name", QUERIES)
def test_seventy_patterns_with_ninety_variables_follow_random_changes(name):
    rng, graph = random.Random(name), LiveGraph()
    watches = [graph.watch(PREFIX + QUERIES[name], strategy=s) for s in ("search", "rete")]
    successor: dict[int, int] = {}
    marks: set[tuple[int, int]] = set()
    rows = 0
    for _ in range(25):
        with graph.transaction() as tx:
            for _ in range(rng.randint(1, 3)):
                node, other = rng.randrange(NODES), rng.randrange(NODES)
                if node in successor:  # one successor at most: there is one chain from each node
                    tx.delete(iri(node), iri("to"), iri(successor.pop(node)))
                if rng.random() < 0.85:
                    successor[node] = other
                    tx.insert(iri(node), iri("to"), iri(other))
            mark = (rng.randrange(NODES), rng.randrange(NODES))
            marks.add(mark)  # in a graph of their own, where no predicate variable finds them
            tx.insert(iri(mark[0]), iri("mark"), iri(mark[1]), iri("m"))
        rows += watches[0].count()
        first, second = ([str(row) for row in watch.delta()] for watch in watches)
        assert sorted(first) == sorted(second)
        assert sorted(watches[0].table(terms=True).to_pylist(), key=str) == sorted(
            watches[1].table(terms=True).to_pylist(), key=str
        )
        if name == "alone":
            paths = [walk(successor, node, LENGTH) for node in range(NODES)]
            expected = [{"x0": iri(p[0]), f"x{LENGTH}": iri(p[-1])} for p in paths if p]
            assert sorted(watches[0].table(terms=True).to_pylist(), key=str) == sorted(
                expected, key=str
            )
        elif name == "a large check":
            reached = {n for n in range(NODES) if walk(successor, n, 50)}
            assert watches[0].count() == sum(start in reached for start, _ in marks)
    assert rows > 10


def test_a_check_that_does_not_fit_beside_its_search_stays_a_semijoin():
    room = MAX_PATTERNS - LARGEST_SEARCH
    for size, fused in ((room - 1, True), (room, False)):
        check = chain(size, 0)
        query = f"{PREFIX} SELECT * {{ ?x0 :p ?y FILTER NOT EXISTS {{ {check} }} }}"
        (first, *_) = searches(build_plan(parse_query(query), "search").root)
        assert bool(first.checks) == fused
        LiveGraph().watch(query)


@pytest.mark.parametrize("patterns", [slow(39), 40, 41, slow(59), slow(60), slow(61)])
def test_sizes_around_the_limits_can_be_watched(patterns):
    graph = LiveGraph()
    watch = graph.watch(f"{PREFIX} SELECT ?x0 {{ {chain(patterns, 0)} }}")
    graph.insert(iri("a"), iri("to"), iri("a"))
    assert watch.count() == 1
    graph.insert(iri("b"), iri("to"), iri("a"))
    assert len(watch.delta()) == 1
    graph.delete(iri("a"), iri("to"), iri("a"))
    assert watch.count() == 0
