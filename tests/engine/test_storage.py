"""The options of `store`: all quads, those that queries match, or none."""

import pytest

from graphtide import LiveGraph
from graphtide.errors import GraphtideError

PATH = "SELECT * { ?x <ex:p> ?y . ?y <ex:q> ?z }"
STAR = "SELECT * { ?x <ex:p> <ex:a> . ?x <ex:q> <ex:b> }"


def test_a_graph_without_quads_keeps_only_what_its_queries_keep():
    graph = LiveGraph(store="none")
    star, path = graph.watch(STAR), graph.watch(PATH)
    for i in range(3000):
        graph.insert(f"<ex:s{i}>", "<ex:other>", f"<ex:o{i}>")
        graph.insert(f"<ex:s{i % 50}>", "<ex:q>", f"<ex:o{i}>")
    assert star.cache_size().entries == 0
    assert path.cache_size().entries == 3000 + 50, (
        "a triple each, and the values on which they meet"
    )
    assert graph.stats().quads == 0 and graph.stats().quad_bytes < 1000


def test_operators_work_on_top_of_decomposed_patterns_without_quads():
    graph = LiveGraph(store="none")
    watch = graph.watch("""SELECT ?x (COUNT(?z) AS ?n) { ?x <ex:p> ?y . ?y <ex:q> ?z
        FILTER NOT EXISTS { ?z <ex:r> ?x } } GROUP BY ?x""")
    for s, p, o in ["apb", "bqc", "bqd", "cra"]:
        graph.insert(f"<ex:{s}>", f"<ex:{p}>", f"<ex:{o}>")
    one = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert watch.table(terms=True).to_pylist() == [{"x": "<ex:a>", "n": one}]


def test_several_patterns_forgive_redundant_changes_without_quads():
    graph = LiveGraph(store="none")
    watch = graph.watch(STAR)
    for _ in range(2):
        graph.insert("<ex:s>", "<ex:p>", "<ex:a>")
        graph.insert("<ex:s>", "<ex:q>", "<ex:b>")
    assert [row.diff for row in watch.rows()] == [1]
    for _ in range(2):
        graph.delete("<ex:s>", "<ex:p>", "<ex:a>")
    assert [row.diff for row in watch.rows()] == [1, -1]


def test_explain_does_not_count_what_it_cannot_count():
    graph = LiveGraph(store="none")
    watch = graph.watch(STAR)
    graph.insert("<ex:s>", "<ex:p>", "<ex:a>")
    assert "(1 now)" in watch.explain() and "has " not in watch.explain()


def test_what_a_graph_without_quads_cannot_do_is_refused():
    graph = LiveGraph(store="none")
    with pytest.raises(GraphtideError, match="needs stored quads"):
        graph.watch(PATH, strategy="search")
    graph.watch(STAR)
    graph.insert("<ex:s>", "<ex:p>", "<ex:a>")
    with pytest.raises(GraphtideError, match="would start wrong"):
        graph.watch(STAR)
    looks = [
        lambda: graph.query("SELECT * { ?s ?p ?o }"),
        lambda: list(graph.quads()),
        lambda: ("<ex:s>", "<ex:p>", "<ex:a>") in graph,
        lambda: graph.update("DELETE WHERE { ?s <ex:p> ?o }"),
    ]
    for look in looks:
        with pytest.raises(GraphtideError, match="stores no quads"):
            look()


@pytest.mark.parametrize("store", ["matched", "none"])
def test_strict_mode_needs_every_quad(store):
    with pytest.raises(GraphtideError, match="strict mode has to know every quad"):
        LiveGraph(strict=True, store=store)


def test_an_unknown_storage_is_refused():
    with pytest.raises(GraphtideError, match="store='some' is unknown"):
        LiveGraph(store="some")


def test_no_count_is_shown_below_zero_after_a_redundant_delete():
    graph = LiveGraph(store="none")
    rows = graph.watch("SELECT * { ?x <ex:p> ?y }")
    total = graph.watch("SELECT (COUNT(*) AS ?n) { ?x <ex:p> ?y }")
    groups = graph.watch("SELECT ?y (COUNT(?x) AS ?n) { ?x <ex:p> ?y } GROUP BY ?y")
    graph.delete("<ex:a>", "<ex:p>", "<ex:b>")
    assert total.table()["n"].to_pylist() == [0]
    assert rows.count() == 0 and rows.table().num_rows == 0 and groups.table().num_rows == 0
    graph.insert("<ex:a>", "<ex:p>", "<ex:b>")
    graph.insert("<ex:c>", "<ex:p>", "<ex:b>")
    assert total.table()["n"].to_pylist() == [1], "the promise was broken: one too few from then on"


@pytest.mark.parametrize(
    "text",
    [
        "INSERT DATA { <ex:s> <ex:p> <ex:c> } ; DELETE WHERE { ?x ?y ?z }",
        "DELETE WHERE { ?x ?y ?z }",
        "CLEAR ALL",
    ],
)
def test_an_update_of_a_graph_without_quads_is_refused_before_it_begins(text):
    graph = LiveGraph(store="none")
    watch = graph.watch(STAR)
    with pytest.raises(GraphtideError, match="stores no quads"):
        graph.update(text)
    graph.insert("<ex:s>", "<ex:p>", "<ex:a>")
    with pytest.raises(GraphtideError, match="stores no quads"):
        graph.update(text)
    graph.insert("<ex:s>", "<ex:q>", "<ex:b>")
    assert watch.count() == 1
