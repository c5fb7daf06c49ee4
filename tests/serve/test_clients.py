"""Clients of others (SPARQLWrapper, rdflib, curl), and our own."""

from __future__ import annotations

import gc
import json
import shutil
import socket
import subprocess
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
import rdflib
from rdflib.graph import DATASET_DEFAULT_GRAPH_ID
from rdflib.plugins.stores.sparqlstore import SPARQLStore, SPARQLUpdateStore
from SPARQLWrapper import CSV, JSON, POST, TURTLE, XML, SPARQLWrapper

import graphtide as gt
from graphtide import ChangeBatch, LiveGraph
from graphtide.errors import GraphtideError, QueryError
from graphtide.serve.http import HttpProblem
from graphtide.serve.subscriptions.hub import SubscriptionHub

EX = "http://example.org/"
PAIRS = f"SELECT ?a ?c {{ ?a <{EX}p> ?b . ?b <{EX}p> ?c }}"


def iri(local):
    return f"<{EX}{local}>"


# --- of others ---


def test_sparqlwrapper(client):
    update = SPARQLWrapper(f"{client.base_url}/update".replace("//update", "/update"))
    update.setMethod(POST)
    update.setQuery(f'INSERT DATA {{ {iri("a")} {iri("p")} "x"@en , 7 }}')
    update.query()
    asked = SPARQLWrapper(f"{client.base_url}/sparql".replace("//sparql", "/sparql"))
    asked.setQuery("SELECT ?o { ?s ?p ?o } ORDER BY ?o")
    for form in (JSON, XML, CSV):
        asked.setReturnFormat(form)
        found = asked.queryAndConvert()
        if form == JSON:
            values = [row["o"]["value"] for row in found["results"]["bindings"]]
            assert sorted(values) == ["7", "x"]
    asked.setQuery("CONSTRUCT WHERE { ?s ?p ?o }")
    asked.setReturnFormat(TURTLE)
    graph = rdflib.Graph().parse(data=asked.queryAndConvert(), format="turtle")
    assert len(graph) == 2
    asked.setQuery("SELECT nonsense")
    asked.setReturnFormat(JSON)
    with pytest.raises(Exception, match="bad"):
        asked.query()


def test_rdflib(client):
    base = str(client.base_url).rstrip("/")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rdflib itself
        store = SPARQLUpdateStore(f"{base}/sparql", f"{base}/update")
        graph = rdflib.Graph(store, identifier=DATASET_DEFAULT_GRAPH_ID)
        node = rdflib.URIRef(EX + "a")
        graph.add((node, rdflib.RDFS.label, rdflib.Literal("one")))
        graph.add((node, rdflib.RDFS.label, rdflib.Literal("two")))
        graph.remove((node, rdflib.RDFS.label, rdflib.Literal("one")))
        assert len(client.graph) == 1
        read = rdflib.Graph(SPARQLStore(f"{base}/sparql"), identifier=DATASET_DEFAULT_GRAPH_ID)
        assert list(read.objects(node, rdflib.RDFS.label)) == [rdflib.Literal("two")]
        assert len(read) == 1
        assert [str(row.s) for row in read.store.query("SELECT ?s { ?s ?p ?o }")] == [EX + "a"]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl(client):
    base = str(client.base_url).rstrip("/")

    def curl(*options):
        command = ["curl", "-sS", "--max-time", "20", *options]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    curl(f"{base}/update", "--data-urlencode", "update=INSERT DATA { <a:a> <a:p> <a:b> }")
    query = "query=SELECT * { ?s ?p ?o }"
    assert "a:a" in curl(f"{base}/sparql", "-H", "Accept: text/csv", "--data-urlencode", query)
    query = json.dumps({"query": "SELECT ?s { ?s ?p ?o }"})
    made = json.loads(
        curl(f"{base}/subscriptions", "-H", "Content-Type: application/json", "-d", query)
    )
    reader = subprocess.Popen(
        ["curl", "-sSN", f"{base}{made['events']}"], stdout=subprocess.PIPE, text=True
    )
    with reader:
        for line in reader.stdout:
            if line.startswith("event: answer"):
                client.graph.insert("<a:b>", "<a:p>", "<a:c>")
            if line.startswith("data:") and '"delta"' in line:
                assert "a:b" in line
                break
        reader.kill()
    assert reader.returncode


# --- ours ---


@pytest.fixture
def remote(client):
    with gt.connect(str(client.base_url)) as found:
        found.graph = client.graph
        yield found


def test_the_words_of_a_live_graph(remote):
    assert remote.version() == gt.__version__
    query = remote.watch(PAIRS)
    deltas = query.deltas()
    assert next(deltas).added == []
    remote.insert(iri("1"), iri("p"), iri("2"))
    tx = remote.insert(gt.NamedNode(EX + "2"), iri("p"), 3)
    delta = next(deltas)
    assert (delta.seq, delta.removed) == (tx, [])
    assert delta.added == [{"a": gt.NamedNode(EX + "1"), "c": gt.Literal(3)}]
    assert "1 :p :2" in query.why(a=iri("1"))
    assert "is not in" in query.why_not({"a": iri("7")})
    remote.delete(iri("1"), iri("p"), iri("2"), time=5)
    assert (next(deltas).time, query.rows.total()) == (5, 0)
    assert remote.query(f"SELECT ?o {{ {iri('2')} ?p ?o }}") == [{"o": gt.Literal(3)}]
    assert remote.query("ASK {}") == [{"answer": gt.Literal(True)}]
    assert remote.update("CLEAR ALL") == 1
    deltas.close()
    query.close()
    assert remote.graph.queries == ()


def test_named_graphs_times_and_names(serve, tmp_path):
    with serve(LiveGraph.open(tmp_path)) as client, gt.connect(str(client.base_url)) as remote:
        client.graph.watch(PAIRS, name="pairs")
        remote.insert(iri("1"), iri("p"), iri("2"), g=iri("g"), time=4)
        assert (len(client.graph), client.graph.clock) == (1, 4)
        remote.delete(iri("1"), iri("p"), iri("2"), g=iri("g"), time=6)
        assert (len(client.graph), client.graph.clock) == (0, 6)
        with (
            closing(remote.watch(name="pairs").deltas()) as deltas,
            closing(iter(remote.cursor("mailer", name="pairs"))) as others,
        ):
            assert next(deltas).added == []
            next(others)


def test_call_sends_any_request(remote):
    line = json.dumps({"s": "<a:a>", "p": "<a:p>", "o": "<a:b>"}).encode()
    headers = {"Content-Type": "application/x-ndjson"}
    remote.call("POST", "/changes", body=line, headers=headers)
    assert len(remote.graph) == 1


def test_batches_and_events(remote, tmp_path):
    batch = ChangeBatch.of([(3, n, 1, "<a:a>", "<a:p>", f'"{n}"', None) for n in range(4)])
    assert remote.apply(batch) == 3
    log = tmp_path / "more.rdfp"
    log.write_text('TX .\nH time 9 .\nD <a:a> <a:p> "0" .\nTC .\n', encoding="utf-8")
    assert remote.apply(log) == 4
    assert (len(remote.graph), remote.graph.clock) == (3, 9)
    remote.push("<a:s>", [("<a:a>", "<a:p>", 1)], time=10)
    assert list(remote.graph.feed().streams) == ["<a:s>"]


def test_errors_are_those_of_the_server(remote):
    with pytest.raises(QueryError) as found:
        remote.query("SELECT *\n{ ?s foaf:name ?o }")
    assert found.value.line == 2
    with pytest.raises(GraphtideError, match="no query of that name"):
        remote.watch(name="none")
    with pytest.raises(GraphtideError, match="either"):
        remote.watch()
    with pytest.raises(GraphtideError, match="not the URL"):
        gt.connect("nonsense")
    with pytest.raises(GraphtideError, match="cannot be reached"):
        gt.connect("http://127.0.0.1:9", patience=0).version()


def test_tokens(serve):
    with serve(tokens={"read-token-0123456": "read"}) as client:
        url = str(client.base_url)
        with gt.connect(url) as remote, pytest.raises(GraphtideError, match="token"):
            remote.query("ASK {}")
        with gt.connect(url, token="read-token-0123456") as remote:
            with closing(remote.watch("ASK {}").deltas()) as deltas:
                assert next(deltas).added
            with pytest.raises(GraphtideError, match="does not allow"):
                remote.insert("<a:>", "<a:>", "<a:>")


@pytest.mark.slow
def test_a_watcher_lives_through_restarts(serve, tmp_path):
    """The server is stopped and started again at the same port, with a store and without."""
    from urllib.parse import urlsplit

    from graphtide.serve.app import create_app
    from graphtide.serve.host import Host
    from graphtide.serve.server import serving

    for durable in (True, False):
        graph = LiveGraph.open(tmp_path / "store") if durable else LiveGraph()
        with serving(create_app(Host(graph))) as server:
            port = urlsplit(server.url).port
            remote = gt.connect(server.url)
            query = remote.watch(PAIRS)
            deltas = query.deltas()
            next(deltas)
            graph.insert(iri("1"), iri("p"), iri("2"))
            graph.insert(iri("2"), iri("p"), iri("3"))
            assert len(next(deltas).added) == 1
        graph = LiveGraph.open(tmp_path / "store") if durable else LiveGraph()
        with serving(create_app(Host(graph)), port=port):
            graph.insert(iri("4"), iri("p"), iri("5"))
            graph.insert(iri("5"), iri("p"), iri("6"))
            delta = next(deltas)
            if durable:
                assert (len(delta.added), len(delta.removed)) == (1, 0)
                graph.delete(iri("1"), iri("p"), iri("2"))
                assert len(next(deltas).removed) == 1
            elif not delta.added:  # the whole answer, before or after the inserts
                assert (len(delta.removed), len(next(deltas).added)) == (1, 1)
            assert query.rows.total() == 1
            deltas.close()
        remote.close()


def test_cursor(serve, tmp_path):
    with serve(LiveGraph.open(tmp_path)) as client, gt.connect(str(client.base_url)) as remote:
        cursor = remote.cursor("mailer", PAIRS)
        deltas = iter(cursor)
        next(deltas)
        for number in range(4):
            remote.insert(iri(number), iri("p"), iri(number + 1))
        first, second = next(deltas), next(deltas)
        cursor.ack(first)
        with closing(iter(remote.cursor("mailer", PAIRS))) as others:
            assert next(others) == second
        deltas.close()


def test_a_response_that_ends_its_connection_is_closed():
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:

        def answer():
            with server.accept()[0] as there:
                there.settimeout(20)
                there.recv(10_000)
                there.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n: hello\n")
                return there.recv(1)

        end = pool.submit(answer)
        with gt.connect(f"http://127.0.0.1:{server.getsockname()[1]}") as remote:
            with closing(remote.stream("/events", None)) as lines:
                assert next(iter(lines)) == ": hello"
            assert end.result() == b""  # not only once the garbage collector comes


def test_connections_that_are_dropped_are_closed(client):
    """Without close(), in a cycle, while a response is under way: no socket is left open."""
    gc.collect()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        gc.disable()
        try:
            remote = gt.connect(str(client.base_url))
            deltas = remote.watch(PAIRS).deltas()
            next(deltas)
            cycle = [remote, deltas]
            cycle.append(cycle)
            del remote, deltas, cycle
            gc.collect()
        finally:
            gc.enable()
    assert [each.message for each in found if each.category is ResourceWarning] == []


def test_a_server_that_stops_is_asked_again(client, monkeypatch):
    """The refusal of a server that is stopping is like a connection that is lost."""
    attach, refused = SubscriptionHub.attach, []

    async def stopping(hub, subscription, reader, last, **options):
        if not refused:
            refused.append(last)
            hub._host.metrics.readers += 1  # as detach() takes off
            raise HttpProblem(503, "the server is stopping")
        return await attach(hub, subscription, reader, last, **options)

    monkeypatch.setattr(SubscriptionHub, "attach", stopping)
    with (
        gt.connect(str(client.base_url)) as remote,
        closing(remote.watch("ASK {}").deltas()) as deltas,
    ):
        assert next(deltas).added
    assert refused == [None]
