"""A plan takes the place of another node by node, while changes go on: nobody can tell."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from engine.small_graph import PREFIX, iri

from graphtide import Limits, LiveGraph
from graphtide.engine import queries as registry_module
from graphtide.engine.dataflow import attachment

QUERIES = {
    "join": "SELECT * { ?a :p ?b . ?b :q ?c }",
    "chain": "SELECT ?a ?d { ?a :p ?b . ?b :q ?c . ?c :p ?d }",
    "cycle": "SELECT * { ?a :p ?b . ?b :q ?c . ?c :p ?a }",
    "NOT EXISTS": "SELECT * { ?a :p ?b FILTER NOT EXISTS { ?b :q ?c . ?c :p ?a } }",
    "OPTIONAL": "SELECT * { ?a :p ?b OPTIONAL { ?b :q ?c . ?c :p ?d } }",
    "MINUS": "SELECT * { ?a :p ?b . ?b :q ?c MINUS { ?c :p ?a } }",
    "UNION": "SELECT * { { ?a :p ?b . ?b :q ?c } UNION { ?a :q ?b . ?b :p ?c } }",
    "DISTINCT": "SELECT DISTINCT ?a ?c { ?a :p ?b . ?b :q ?c }",
    "groups": """SELECT ?a (COUNT(*) AS ?n) (SUM(?v) AS ?s) (MIN(?v) AS ?m)
        { ?a :p ?b . ?b :v ?v } GROUP BY ?a""",
    "counts": "SELECT ?a (COUNT(*) AS ?n) { ?a :p ?b . ?b :q ?c } GROUP BY ?a",
    "one group": "SELECT (COUNT(*) AS ?n) { ?a :p ?b . ?b :q ?c }",
    "path": "SELECT * { ?a :p+ ?b . ?b :q ?c }",
    "first rows": "SELECT ?b ?v { ?a :p ?b . ?b :v ?v } ORDER BY ?v ?b LIMIT 3",
    "FILTER": "SELECT * { ?a :v ?v . ?b :v ?w . ?a :p ?b FILTER (?v < ?w) }",
}


class Changes:
    """Random changes of a small graph, by single calls, transactions and batches."""

    def __init__(self, graph: LiveGraph, rng: random.Random) -> None:
        self.graph, self.rng = graph, rng
        self.present: set[tuple[str, str, object]] = set()

    def one(self) -> tuple[bool, tuple[str, str, object]]:
        rng = self.rng
        if self.present and rng.random() < 0.4:
            quad = rng.choice(sorted(self.present, key=str))
            self.present.remove(quad)
            return False, quad
        relation = rng.choice("ppqqv")
        to = rng.randrange(5) if relation == "v" else iri(f"n{rng.randrange(6)}")
        quad = iri(f"n{rng.randrange(6)}"), iri(relation), to
        self.present.add(quad)
        return True, quad

    def some(self) -> None:
        with self.graph.transaction() as tx:
            for _ in range(self.rng.randrange(1, 4)):
                comes, quad = self.one()
                (tx.insert if comes else tx.delete)(*quad)


def bag(table) -> Counter:
    return Counter(tuple(row.values()) for row in table.to_pylist())


def summed(query) -> Counter:
    """All deltas together."""
    found: Counter = Counter()
    for delta in query.deltas():
        for row in delta:
            found[tuple(None if t is None else str(t) for t in row.row.values())] += row.diff
    return Counter({key: n for key, n in found.items() if n})


@pytest.fixture(autouse=True)
def one_node_at_a_time(monkeypatch):
    monkeypatch.setattr(registry_module, "PIECE_SECONDS", 0)
    monkeypatch.setattr(registry_module, "LOOK_SHARE", 0)
    monkeypatch.setattr(attachment, "NOTED", 2)


def begin(graph, query, strategy) -> bool:
    """Let the plan of a strategy take the place of a query's own; whether it is another one."""
    registry = graph._runtime.queries
    chosen = registry.plan(query.asked.select, strategy)
    if chosen == query.plan:
        return False
    registry.begin_replacing(query, chosen)
    return True


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("seed", range(6))
def test_the_answer_is_that_of_the_graph_at_every_moment(name, seed):
    rng = random.Random(f"{name} {seed}")
    graph = LiveGraph()
    changes, text = Changes(graph, rng), PREFIX + QUERIES[name]
    for _ in range(rng.randrange(12)):
        changes.some()
    strategies = ["search", "rete"]
    query = graph.watch(text, strategy=rng.choice(strategies), history=None)
    join = PREFIX + QUERIES["join"]
    beside = graph.watch(join, strategy=rng.choice(strategies))
    registry, replaced = graph._runtime.queries, 0
    for step in range(60):
        if registry._replacing is None and rng.random() < 0.3:
            other = "rete" if query.strategy == "search" else "search"
            replaced += begin(graph, query, other)
        changes.some()
        if rng.random() < 0.15:
            graph._runtime.flush()
            graph._runtime.reclaimer.reclaim()
        assert bag(query.table(terms=True)) == bag(graph.query(text, terms=True)), step
        assert bag(beside.table(terms=True)) == bag(graph.query(join, terms=True)), step
    assert summed(query) == bag(query.table(terms=True))
    assert replaced == 0 or graph.stats().replans > 0
    query.close()
    beside.close()
    assert (len(registry.plans.network), len(registry.plans.programs)) == (0, 0)


def started():
    """A graph with a query whose plan is being replaced: one node is there."""
    graph = LiveGraph()
    changes = Changes(graph, random.Random(7))
    for _ in range(40):
        changes.some()
    query = graph.watch(PREFIX + QUERIES["chain"], strategy="search")
    assert begin(graph, query, "rete")
    changes.some()
    query.count()
    assert graph._runtime.queries._replacing is not None
    return graph, changes, query


def agrees(graph, query) -> bool:
    fresh = graph.query(PREFIX + QUERIES["chain"], terms=True)
    return bag(query.table(terms=True)) == bag(fresh)


def test_what_is_noted_meanwhile_does_not_grow_with_what_has_passed(monkeypatch):
    graph, _, query = started()
    monkeypatch.setattr(registry_module, "LOOK_SHARE", 1e9)
    registry = graph._runtime.queries
    registry._look_after = float("inf")
    quad = iri("n0"), iri("p"), iri("n77")
    for _ in range(100):
        graph.insert(*quad)
        graph.delete(*quad)
    query.count()
    added = registry._replacing[1].added
    noted = sum(len(batch) for batches in added._since.values() for batch in batches)
    assert noted <= 100
    assert agrees(graph, query)


def test_a_query_that_ends_meanwhile_leaves_nothing():
    graph, changes, query = started()
    query.close()
    registry = graph._runtime.queries
    assert registry._replacing is None
    assert (len(registry.plans.network), len(registry.plans.programs)) == (0, 0)
    changes.some()


def test_a_plan_that_is_asked_for_comes_at_once():
    graph, changes, query = started()
    query.replan()
    assert graph._runtime.queries._replacing is None
    changes.some()
    assert agrees(graph, query)


def test_after_an_error_the_query_has_the_plan_it_had(monkeypatch):
    graph, changes, query = started()
    registry = graph._runtime.queries

    def fail(*_):
        raise KeyboardInterrupt

    changes.some()
    with monkeypatch.context() as patched:
        patched.setattr(registry, "take", fail)
        with pytest.raises(KeyboardInterrupt):
            query.count()
    assert agrees(graph, query)
    assert registry._replacing is None and query.strategy == "search"


def test_a_plan_that_is_too_large_is_given_up():
    graph, changes, query = started()
    graph._runtime.queries.plans.limits = Limits(query_bytes=50)
    for _ in range(6):
        changes.some()
        assert query.count() >= 0
    assert graph._runtime.queries._replacing is None
    assert (query.strategy, graph.stats().replans) == ("search", 0)
