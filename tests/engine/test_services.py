"""SERVICE: snapshots of another endpoint's answer, against pyoxigraph over both graphs at once."""

from __future__ import annotations

import threading
from collections import Counter
from random import Random
from time import monotonic, sleep

import pytest
from pyoxigraph import NamedNode, Quad, Store
from support.endpoint import Answer, endpoint, of_store

import graphtide as gt
from graphtide.errors import GraphtideError, UnsupportedError
from oracles.answers import oxigraph_answer, row_of

HEAD = "PREFIX : <http://e/>\n"
PATTERNS = [
    "?x :p ?y . {remote} ?y :q ?z {end}",
    "{remote} ?x :q ?z OPTIONAL {{ ?z :q ?w }} {end} OPTIONAL {{ ?x :p ?w }}",
    "?x :p ?y FILTER NOT EXISTS {{ {remote} ?y :q ?z {end} }}",
    "{{ ?x :p ?y }} UNION {{ {remote} ?x :q ?y {end} }} MINUS {{ {remote} ?x :q :a {end} }}",
    "{remote} {{ SELECT ?x (COUNT(*) AS ?n) {{ ?x :q ?y }} GROUP BY ?x }} {end} ?x :p ?y",
    "?x :p ?y . {remote} ?s :q ?o {end}",
]
TERMS = [NamedNode(f"http://e/{name}") for name in "abc"]


def answer_of(query):
    """The answer, which the deltas so far must add up to."""
    summed: Counter = Counter()
    for delta in query.rows():
        summed[row_of(delta.row)] += delta.diff
    rows = query.table(terms=True).to_pylist()
    answer = Counter(tuple(sorted((n, t) for n, t in row.items() if t is not None)) for row in rows)
    assert +summed == answer
    return answer


def some_quads(random: Random, predicate: str) -> list[Quad]:
    named = NamedNode(f"http://e/{predicate}")
    return [Quad(random.choice(TERMS), named, random.choice(TERMS)) for _ in range(4)]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.slow
def test_as_if_all_were_one_graph(pattern):
    random, remote, both = Random(pattern), Store(), Store()
    with endpoint(of_store(remote)) as url:
        graph = gt.LiveGraph(services=[url])
        text = f"{HEAD} SELECT * {{ {pattern.format(remote=f'SERVICE <{url}> {{', end='}')} }}"
        local = f"{HEAD} SELECT * {{ {pattern.format(remote='{', end='}')} }}"
        query = graph.watch(text)
        for _ in range(12):
            for quad in some_quads(random, "q"):
                change = random.choice([Store.add, Store.add, Store.remove])
                change(remote, quad)
                change(both, quad)
            graph.services.refresh()
            for quad in some_quads(random, "p"):
                there = random.random() < 0.6
                (graph.insert if there else graph.delete)(quad.subject, quad.predicate, quad.object)
                (both.add if there else both.remove)(quad)
                assert answer_of(query) == oxigraph_answer(local, both)
            asked = graph.query(text, terms=True).to_pylist()
            rows = (tuple(sorted((n, t) for n, t in r.items() if t is not None)) for r in asked)
            assert Counter(rows) == oxigraph_answer(local, both)
        assert len(graph) == sum(1 for q in both if q.predicate.value == "http://e/p")


@pytest.fixture
def remote():
    store = Store()
    store.update(f"{HEAD} INSERT DATA {{ :a :q 1, 2 . :b :q 3 }}")
    return store


def service(url, silent=""):
    return f"{HEAD} SELECT * {{ SERVICE {silent} <{url}> {{ ?x :q ?y }} }}"


def test_a_table_changes_only_when_it_is_fetched_again(remote):
    with endpoint(of_store(remote)) as url:
        graph = gt.LiveGraph(services=[url])
        query = graph.watch(service(url))
        assert query.count() == 3
        remote.update(f"{HEAD} DELETE DATA {{ :a :q 1 }} ; INSERT DATA {{ :c :q 4 }}")
        assert len(list(query.delta())) == 3
        assert query.count() == 3
        assert graph.services.refresh() == 2
        assert sorted(row.diff for row in query.delta()) == [-1, 1]
        assert graph.services.refresh() == 0


def test_the_timer_fetches(remote):
    with endpoint(of_store(remote)) as url:
        with gt.LiveGraph(services=gt.Services([url], refresh=0.05)) as graph:
            query = graph.watch(service(url))
            remote.update(f"{HEAD} INSERT DATA {{ :c :q 4 }}")
            deadline = monotonic() + 20
            while query.count() != 4 and monotonic() < deadline:
                sleep(0.02)
            assert query.count() == 4
        ended = "services" not in [thread.name for thread in threading.enumerate()]
        while not ended and monotonic() < deadline:
            sleep(0.02)
            ended = "services" not in [thread.name for thread in threading.enumerate()]
        assert ended


def test_what_no_query_reads_is_forgotten(remote):
    with endpoint(of_store(remote)) as url:
        graph = gt.LiveGraph(services=[url])
        query = graph.watch(service(url))
        held = graph.services.held
        query.close()
        assert graph.services.refresh() == 3
        assert (held, graph.services.held, len(graph)) == (9, 0, 0)


def test_updates_and_programs_may_ask(remote):
    with endpoint(of_store(remote)) as url:
        graph = gt.LiveGraph(services=[url])
        graph.update(
            f"{HEAD} INSERT {{ ?x :copied ?y }} WHERE {{ SERVICE <{url}> {{ ?x :q ?y }} }}"
        )
        assert len(graph) == 3


def test_copies_of_rows_count(remote):
    with endpoint(of_store(remote)) as url:
        graph = gt.LiveGraph(services=[url])
        text = f"{HEAD} SELECT ?x {{ SERVICE <{url}> {{ SELECT ?x {{ ?x :q ?y }} }} }}"
        assert graph.watch(text).count() == 3
        assert graph.query(text).num_rows == 3
        text = f"{HEAD} SELECT * {{ SERVICE <{url}> {{ :a :q [] }} }}"
        assert graph.watch(text).count() == 2


def test_blank_nodes_of_others_are_none_of_ours():
    remote = Store()
    remote.update(f"{HEAD} INSERT DATA {{ [] :q 1 }}")
    with endpoint(of_store(remote)) as url:
        graph = gt.LiveGraph(services=[url])
        (label,) = [quad.subject.value for quad in remote]
        graph.insert(f"_:{label}", "<http://e/p>", 1)
        assert (
            graph.query(f"{HEAD} SELECT * {{ ?x :p 1 SERVICE <{url}> {{ ?x :q 1 }} }}").num_rows
            == 0
        )


def fails(status, **headers):
    def answer(_: str) -> bytes:
        raise Answer(status, **headers)

    return answer


def test_nothing_is_asked_that_is_not_allowed(remote):
    with endpoint(of_store(remote)) as url:
        for graph in (gt.LiveGraph(), gt.LiveGraph(services=[f"{url}/more", "http://e/*"])):
            for ask in (graph.watch, graph.query):
                with pytest.raises(UnsupportedError, match="is not allowed") as refused:
                    ask(service(url, "SILENT"))
                assert url in (refused.value.hint or "")
    with pytest.raises(UnsupportedError, match="is not allowed"):
        gt.LiveGraph(services=["*"]).query(service("file:///etc/passwd"))
    with pytest.raises(GraphtideError, match="a list of endpoints"):
        gt.LiveGraph(services="http://e/")


def test_redirects_are_not_followed(remote):
    with (
        endpoint(of_store(remote)) as other,
        endpoint(fails(302, Location=other)) as url,
        pytest.raises(GraphtideError, match="redirects"),
    ):
        gt.LiveGraph(services=["*"]).query(service(url))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (fails(500), "500"),
        (lambda _: b"<html>", "failed"),
        (lambda _: b"[]", "failed"),
        (lambda _: b'{"results": {"bindings": [{}]}}', "leaves \\?x unbound"),
        (
            lambda _: b'{"results": {"bindings": [{"x": {"type": "uri", "value": "a b"}}]}}',
            "failed",
        ),
        (lambda _: b" " * 300, "more than 200 bytes"),
        (lambda _: b'{"results":{"bindings":[{},{},{}]}}', "3 rows"),
    ],
)
def test_failures_are_errors_unless_silent(answer, message):
    with endpoint(answer) as url:
        graph = gt.LiveGraph(services=gt.Services([url], rows=2, bytes=200))
        for ask in (graph.watch, graph.query):
            with pytest.raises(GraphtideError, match=message):
                ask(service(url))
        assert len(graph) == 0
        (row,) = graph.watch(service(url, "SILENT")).table().to_pylist()
        assert row == {"x": None, "y": None}


def test_a_failing_refresh_changes_nothing(remote):
    broken = []

    def answer(query: str) -> bytes:
        return fails(503)(query) if broken else of_store(remote)(query)

    with endpoint(answer) as url:
        graph = gt.LiveGraph(services=[url])
        query = graph.watch(service(url))
        broken.append(True)
        with pytest.raises(GraphtideError, match="503"):
            graph.services.refresh()
        assert query.count() == 3


def test_a_slow_endpoint_is_given_up():
    def answer(_: str) -> bytes:
        sleep(1)
        return b""

    with endpoint(answer) as url:
        graph = gt.LiveGraph(services=gt.Services([url], seconds=0.1))
        with pytest.raises(GraphtideError, match="timed out"):
            graph.query(service(url))


def test_an_endpoint_that_answers_byte_by_byte_is_given_up():
    with endpoint(lambda _: b" " * 1000, pause=0.02) as url:
        graph = gt.LiveGraph(services=gt.Services([url], seconds=0.2))
        with pytest.raises(GraphtideError, match=r"takes over 0\.2 s"):
            graph.query(service(url))


def test_where_it_cannot_be_maintained(remote, tmp_path):
    with endpoint(of_store(remote)) as url:
        with pytest.raises(UnsupportedError, match="stores only some quads"):
            gt.LiveGraph(store="matched", services=[url]).watch(service(url))
        with gt.LiveGraph.open(tmp_path / "store", services=[url]) as graph:
            with pytest.raises(UnsupportedError, match="durable"):
                graph.watch(service(url))
            assert graph.query(service(url)).num_rows == 3


def test_from_does_not_hide_it(remote):
    with endpoint(of_store(remote)) as url:
        graph = gt.LiveGraph(services=[url])
        text = f"{HEAD} SELECT * FROM :g {{ SERVICE <{url}> {{ ?x :q ?y }} }}"
        assert graph.watch(text).count() == graph.query(text).num_rows == 3
        named = f"{HEAD} SELECT * {{ GRAPH ?g {{ ?s ?p ?o }} }}"
        assert graph.query(named).num_rows == 0


# --- an endpoint that is a variable ---


def over_endpoints(silent="", before="?s :at ?where ."):
    return f"{HEAD} SELECT ?where ?x ?y {{ {before} SERVICE {silent} ?where {{ ?x :q ?y }} }}"


def rows_of(table):
    return Counter((row["where"], row["x"], row["y"]) for row in table.to_pylist())


@pytest.fixture
def two(remote):
    """Two endpoints with different rows: their addresses and their stores."""
    other = Store()
    other.update(f"{HEAD} INSERT DATA {{ :a :q 1 . :c :q 9 }}")
    with endpoint(of_store(remote)) as one, endpoint(of_store(other)) as two:
        yield (one, two), (remote, other)


ROWS = [
    [("<http://e/a>", 1), ("<http://e/a>", 2), ("<http://e/b>", 3)],
    [("<http://e/a>", 1), ("<http://e/c>", 9)],
]


def expected(urls, *numbers):
    return Counter((f"<{urls[n]}>", *row) for n in numbers for row in ROWS[n])


def test_rows_before_it_bind_the_endpoint(two):
    urls, _ = two
    graph = gt.LiveGraph(services=urls)
    query = graph.watch(over_endpoints())
    assert rows_of(query.table()) == Counter()
    for numbers in ((0,), (0, 1)):
        graph.insert("<http://e/s>", "<http://e/at>", f"<{urls[numbers[-1]]}>")
        assert rows_of(query.table()) == expected(urls, *numbers)
        assert rows_of(graph.query(over_endpoints())) == expected(urls, *numbers)
    graph.delete("<http://e/s>", "<http://e/at>", f"<{urls[0]}>")
    assert rows_of(query.table()) == expected(urls, 1)
    answer_of(query)


def test_a_refresh_asks_every_endpoint_again(two):
    urls, stores = two
    graph = gt.LiveGraph(services=urls)
    query = graph.watch(over_endpoints(before=""))
    assert rows_of(query.table()) == expected(urls, 0, 1)
    stores[1].update(f"{HEAD} DELETE DATA {{ :c :q 9 }}")
    assert graph.services.refresh() == 1
    gone = Counter([(f"<{urls[1]}>", "<http://e/c>", 9)])
    assert rows_of(query.table()) == expected(urls, 0, 1) - gone
    assert rows_of(graph.query(over_endpoints(before=""))) == rows_of(query.table())


def test_an_endpoint_that_is_not_on_the_list_has_no_rows(two):
    urls, _ = two
    graph = gt.LiveGraph(services=urls[:1])
    for url in urls:
        graph.insert("<http://e/s>", "<http://e/at>", f"<{url}>")
    assert rows_of(graph.query(over_endpoints())) == expected(urls, 0)
    assert rows_of(graph.watch(over_endpoints()).table()) == expected(urls, 0)


def test_a_pattern_that_has_the_endpoint_in_it(two):
    urls, stores = two
    stores[0].update(f"{HEAD} INSERT DATA {{ <{urls[0]}> :q 5 . <{urls[1]}> :q 6 }}")
    graph = gt.LiveGraph(services=urls)
    text = f"{HEAD} SELECT * {{ SERVICE ?where {{ ?where :q ?y }} }}"
    for table in (graph.query(text), graph.watch(text).table()):
        assert [(row["where"], row["y"]) for row in table.to_pylist()] == [(f"<{urls[0]}>", 5)]


def test_an_endpoint_among_others_that_fails(two):
    urls, _ = two
    with endpoint(fails(503)) as broken:
        graph = gt.LiveGraph(services=[urls[0], broken])
        for ask in (graph.query, graph.watch):
            with pytest.raises(GraphtideError, match=f"SERVICE <{broken}> failed"):
                ask(over_endpoints(before=""))
        found = expected(urls, 0) + Counter([(f"<{broken}>", None, None)])
        assert rows_of(graph.query(over_endpoints("SILENT", ""))) == found
        assert rows_of(graph.watch(over_endpoints("SILENT", "")).table()) == found


def test_a_variable_inside_optional_and_after_values(two):
    urls, _ = two
    graph = gt.LiveGraph(services=urls)
    before = f"VALUES ?where {{ <{urls[1]}> <http://e/none> }}"
    text = f"{HEAD} SELECT * {{ {before} OPTIONAL {{ SERVICE ?where {{ ?x :q ?y }} }} }}"
    found = expected(urls, 1) + Counter([("<http://e/none>", None, None)])
    assert rows_of(graph.query(text)) == found
    assert rows_of(graph.watch(text).table()) == found


@pytest.mark.parametrize(("allow", "problem"), [
    ([], "none is allowed"), (["http://e/sparql", "*"], r"\* names none"),
])  # fmt: skip
def test_a_variable_needs_endpoints_that_are_named(allow, problem):
    graph = gt.LiveGraph(services=allow)
    for ask in (graph.query, graph.watch):
        with pytest.raises(UnsupportedError, match=problem) as refused:
            ask(over_endpoints())
        assert "name each" in (refused.value.hint or "")
