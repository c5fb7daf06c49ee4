"""watch and close: registration, names, sharing, and stores of matched quads."""

from __future__ import annotations

import random

import pytest
from engine.small_graph import KNOWN, KNOWS, PATHS, PREFIX, answer, delete, insert, lines, watch

from graphtide import GraphtideError, LiveGraph
from graphtide.errors import QueryError, UnsupportedError
from graphtide.kernel import JIT
from graphtide.lang.sparql.parse import parse_query
from graphtide.plan.patterns import STRATEGIES


@pytest.fixture
def graph():
    return LiveGraph()


@pytest.mark.parametrize("strategy", ["rete", "search", None])
def test_a_late_query_first_gives_its_whole_answer(graph, strategy):
    insert(graph, "a knows b", "b knows c", "b knows d", time=3)
    paths = watch(graph, PATHS, strategy=strategy)
    assert lines(paths.delta()) == ["+1 a c", "+1 a d"]
    assert lines(paths.rows()) == ["+1 a c", "+1 a d"]
    assert paths.count() == 2
    insert(graph, "d knows e")
    assert lines(paths.delta()) == ["+1 b e"]


def test_a_late_query_that_finds_nothing_has_an_empty_delta(graph):
    insert(graph, "a likes b")
    assert not watch(graph).delta()


def test_rows_that_depend_on_no_quad_are_there_at_once(graph):
    values = watch(graph, "SELECT * { VALUES ?x { :a :b } }")
    assert lines(values.delta()) == ["+1 a", "+1 b"]
    empty = watch(graph, "SELECT ?x {}")
    assert lines(empty.delta()) == ["+1 -"]
    insert(graph, "a knows b")
    assert not values.delta()
    assert not empty.delta()


def test_a_parsed_query_can_be_watched(graph):
    query = parse_query(PREFIX + KNOWS)
    knows = graph.watch(query)
    insert(graph, "a knows b")
    assert answer(knows) == {"a b": 1}
    assert knows.text == PREFIX + KNOWS


def test_names_are_given_or_made_up_and_unique(graph):
    named = watch(graph, name="who")
    first, second = watch(graph), watch(graph, name="query4")
    third, fourth = watch(graph), watch(graph)
    assert [w.name for w in graph.queries] == ["who", "query2", "query4", "query5", "query6"]
    assert graph.queries == (named, first, second, third, fourth)
    with pytest.raises(
        GraphtideError, match="a query named 'who' is already registered on this graph"
    ):
        watch(graph, name="who")
    named.close()
    assert watch(graph, name="who").name == "who"


def test_a_watch_tells_what_it_is(graph):
    knows = watch(graph, name="who", strategy="rete")
    assert (knows.variables, knows.strategy) == (("a", "b"), "rete")
    assert repr(knows) == "<Query who (rete): a, b>"


def test_an_unknown_strategy_is_refused(graph):
    with pytest.raises(GraphtideError, match="strategy 'magic' is unknown") as caught:
        watch(graph, strategy="magic")
    assert caught.value.hint == f"choose from {', '.join(STRATEGIES)}"
    assert graph.queries == ()


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("SELECT ?x { ?x :knows }", QueryError),
        ("SELECT ?x { ?x nope:knows ?y }", QueryError),
        ("SELECT (RAND() AS ?x) {}", UnsupportedError),
    ],
)
def test_a_query_that_is_refused_leaves_nothing_behind(graph, query, error):
    with pytest.raises(error):
        watch(graph, query)
    assert (graph.queries, graph.stats().searches) == ((), 0)


def test_an_unknown_store_is_refused():
    with pytest.raises(GraphtideError, match="store='some' is unknown"):
        LiveGraph(store="some")


def test_equal_searches_are_shared(graph):
    watch(graph, PATHS)
    before = graph.stats()
    watch(graph, PATHS, name="again")
    watch(graph, "SELECT ?x { ?x :knows ?y . ?y :knows ?z }")  # other names, the same search
    assert (before.searches, graph.stats().searches) == (1, 1)
    assert (graph.stats().queries, graph.stats().indexes) == (3, before.indexes)


def test_input_nodes_are_shared_within_and_between_queries(graph):
    watch(graph, PATHS, strategy="rete")
    assert graph.stats().searches == 1  # both of its patterns ask for `x knows y`
    watch(graph, KNOWN, strategy="rete")
    watch(graph, KNOWS, strategy="search")
    assert graph.stats().searches == 1
    watch(graph, "SELECT * { ?a :knows ?a }")
    assert graph.stats().searches == 2


@pytest.mark.skipif(not JIT, reason="the twin needs no indexes")
def test_indexes_are_shared_between_different_searches(graph):
    watch(graph, PATHS)
    alone = graph.stats().indexes
    watch(graph, "SELECT * { ?a :knows ?b . ?b :likes ?c }")
    assert (alone, graph.stats().indexes) == (2, 2)  # by subject and by object


def test_each_of_several_queries_gets_its_own_delta(graph):
    knows, paths, likes = (
        watch(graph),
        watch(graph, PATHS),
        watch(graph, "SELECT * { ?a :likes ?b }"),
    )
    insert(graph, "a knows b", "b knows c")
    assert [lines(w.delta()) for w in (knows, paths, likes)] == [["+1 b c"], ["+1 a c"], []]
    insert(graph, "a likes b")
    assert [lines(w.delta()) for w in (knows, paths, likes)] == [[], [], ["+1 a b"]]


def test_unwatch_frees_what_only_that_query_needed(graph):
    kept = watch(graph)
    before = graph.stats()
    insert(graph, "a knows b", "b likes c")
    gone = watch(graph, "SELECT * { ?a :knows ?b . ?b :likes ?c . ?c :hates ?a }")
    twin = watch(graph, "SELECT * { ?a :knows ?b . ?b :likes ?c . ?c :hates ?a }")
    gone.close()
    assert graph.stats().searches == 2  # its twin still needs the search
    twin.close()
    after = graph.stats()
    assert (after.queries, after.searches, after.indexes) == (1, before.searches, before.indexes)
    assert after.query_bytes == kept.nbytes
    insert(graph, "c hates a", "b knows c")
    assert (gone.count(), answer(kept)) == (0, {"a b": 1, "b c": 1})


def test_other_queries_stay_right_when_one_ends(graph):
    gone, paths = watch(graph), watch(graph, PATHS)
    insert(graph, "a knows b")
    gone.close()
    insert(graph, "b knows c")
    assert lines(paths.delta()) == ["+1 a c"]
    again = watch(graph, KNOWS)
    assert answer(again) == {"a b": 1, "b c": 1}
    delete(graph, "a knows b")
    assert (answer(paths), answer(again)) == ({}, {"b c": 1})


def test_unwatch_of_a_stranger_is_refused(graph):
    knows = watch(graph)
    with pytest.raises(GraphtideError, match="does not watch this graph"):
        LiveGraph()._runtime.close_query(knows)
    knows.close()
    with pytest.raises(GraphtideError, match=r"does not watch this graph \(any more\)"):
        knows.close()


# --- store="matched" ---


def test_a_store_of_matched_quads_drops_and_counts_the_others():
    graph = LiveGraph(store="matched")
    knows = watch(graph)
    insert(graph, "a knows b", "a likes b", "b likes c")
    delete(graph, "a likes b")
    stats = graph.stats()
    assert (stats.quads, stats.inserted, stats.dropped, stats.redundant) == (1, 1, 2, 1)
    assert answer(knows) == {"a b": 1}


def test_it_keeps_what_only_a_check_matches():
    graph = LiveGraph(store="matched")
    query = "SELECT ?a { ?a :knows ?b FILTER NOT EXISTS { ?b :likes ?a } }"
    unliked = watch(graph, query)
    insert(graph, "b likes a", "a knows b")
    assert (answer(unliked), graph.stats().dropped) == ({}, 0)
    delete(graph, "b likes a")
    assert lines(unliked.delta()) == ["+1 a"]


def test_it_keeps_everything_for_a_predicate_variable():
    graph = LiveGraph(store="matched")
    watch(graph, "SELECT * { ?a ?p ?b }")
    insert(graph, "a knows b", "a likes b")
    assert (len(graph), graph.stats().dropped) == (2, 0)


def test_after_a_drop_a_new_query_would_start_wrong_and_is_refused():
    graph = LiveGraph(store="matched")
    watch(graph)
    insert(graph, "a knows b")
    assert answer(watch(graph, KNOWN)) == {"b": 1}  # nothing dropped yet
    insert(graph, "a likes b")
    with pytest.raises(GraphtideError, match="have been dropped, so this query would start wrong"):
        watch(graph, "SELECT * { ?a :likes ?b }")
    assert graph.stats().queries == 2
    insert(graph, "b knows c")
    assert len(graph) == 2


PROJECTIONS = (
    "SELECT ?c ?a { ?a :knows ?b . ?b :knows ?c }",
    "SELECT ?b { ?a :knows ?b . ?b :knows ?c }",
    "SELECT ?a ?b ?c { ?a :knows ?b . ?b :knows ?c }",
    "SELECT DISTINCT ?a { ?a :knows ?b . ?b :knows ?c }",
    "SELECT ?a { ?a :knows ?b FILTER NOT EXISTS { ?b :likes ?a } }",
)
"""Some share a search: it has one reader, a projection, only while the others are not there."""


@pytest.mark.parametrize("seed", range(4))
def test_queries_that_come_and_go_change_nothing_for_the_others(seed):
    rng, graph, reference = random.Random(seed), LiveGraph(), LiveGraph()
    plain = [watch(reference, text, strategy="rete") for text in PROJECTIONS]
    found = {}
    for _ in range(300):
        if rng.random() < 0.1:
            at = rng.randrange(len(PROJECTIONS))
            if at in found:
                found.pop(at).close()
            else:
                found[at] = watch(graph, PROJECTIONS[at], strategy="search")
                assert answer(found[at]) == answer(plain[at])
        change = insert if rng.random() < 0.6 else delete
        text = f"{rng.choice('abc')} {rng.choice(('knows', 'likes'))} {rng.choice('abc')}"
        for each in (graph, reference):
            change(each, text)
        for at, query in found.items():
            assert lines(query.delta()) == lines(plain[at].delta())
            assert answer(query) == answer(plain[at])
            assert query.count() == plain[at].count()
