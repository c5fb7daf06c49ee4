"""Queries and updates by HTTP, in all formats; the description of the service."""

from __future__ import annotations

import csv
import io
import json
import socket
import time
from xml.etree import ElementTree as ET

import pytest
from pyoxigraph import QueryResultsFormat, RdfFormat, parse, parse_query_results

from graphtide import LiveGraph
from graphtide.serve.host import ServerSettings

SELECT = "SELECT ?s ?o { ?s <http://e/p> ?o } ORDER BY ?s"
SPARQL = "application/sparql-query"


@pytest.fixture
def asked(serve):
    graph = LiveGraph()
    graph.insert("<http://e/a>", "<http://e/p>", '"x\\ty"@en')
    graph.insert("<http://e/b>", "<http://e/p>", 7)
    graph.insert("<http://e/b>", "<http://e/p>", "<http://e/c>", "<http://e/g>")
    with serve(graph) as client:
        yield client


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("application/sparql-results+json", QueryResultsFormat.JSON),
        ("application/sparql-results+xml", QueryResultsFormat.XML),
        ("text/tab-separated-values", QueryResultsFormat.TSV),
    ],
)
def test_rows_in_every_format_are_read_by_another_parser(asked, accept, form):
    answer = asked.get("/sparql", params={"query": SELECT}, headers={"accept": accept})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == f"{accept}; charset=utf-8"
    rows = [tuple(map(str, row)) for row in parse_query_results(answer.content, form)]
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    assert rows == [
        ("<http://e/a>", '"x\\ty"@en'),
        ("<http://e/b>", f'"7"^^<{integer}>'),
    ]


def test_csv(asked):
    answer = asked.get("/sparql", params={"query": SELECT}, headers={"accept": "text/csv"})
    rows = list(csv.reader(io.StringIO(answer.text)))
    assert rows == [["s", "o"], ["http://e/a", "x\ty"], ["http://e/b", "7"]]


@pytest.mark.parametrize(("subject", "rows"), [("a", [{}]), ("none", [])])
def test_rows_without_values(asked, subject, rows):
    query = f'SELECT * {{ <http://e/{subject}> <http://e/p> "x\\ty"@en }}'
    answer = asked.get("/sparql", params={"query": query})
    assert answer.json() == {"head": {"vars": []}, "results": {"bindings": rows}}


def test_ask_and_its_formats(asked):
    query = {"query": "ASK { <http://e/a> ?p ?o }"}
    assert asked.get("/sparql", params=query).json()["boolean"] is True
    xml = asked.get("/sparql", params=query, headers={"accept": "application/sparql-results+xml"})
    assert ET.fromstring(xml.text)[1].text == "true"


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("text/turtle", RdfFormat.TURTLE),
        ("application/n-triples", RdfFormat.N_TRIPLES),
        ("application/rdf+xml", RdfFormat.RDF_XML),
        ("application/ld+json", RdfFormat.JSON_LD),
        ("application/n-quads", RdfFormat.N_QUADS),
        ("application/trig", RdfFormat.TRIG),
    ],
)
def test_graphs_in_every_format(asked, accept, form):
    query = "CONSTRUCT { ?s <http://e/q> ?s } { ?s <http://e/p> ?o }"
    answer = asked.post(
        "/sparql", content=query, headers={"accept": accept, "content-type": SPARQL}
    )
    assert answer.headers["content-type"].startswith(accept)
    found = {str(quad.subject) for quad in parse(answer.content, form)}
    assert found == {"<http://e/a>", "<http://e/b>"}


def test_what_cannot_be_written_is_said(asked):
    params = {"query": SELECT}
    assert asked.get("/sparql", params=params, headers={"accept": "image/png"}).status_code == 406
    wild = asked.get("/sparql", params=params, headers={"accept": "image/png, */*;q=0.1"})
    assert wild.headers["content-type"].startswith("application/sparql-results+json")


def test_the_three_ways_to_ask_are_equal(asked):
    by_get = asked.get("/sparql", params={"query": SELECT}).json()
    by_form = asked.post("/sparql", data={"query": SELECT}).json()
    direct = asked.post("/sparql", content=SELECT, headers={"content-type": SPARQL}).json()
    assert by_get == by_form == direct
    assert len(direct["results"]["bindings"]) == 2


def test_the_dataset_of_the_protocol(asked):
    params = {"query": "ASK { <http://e/b> ?p <http://e/c> }"}
    assert asked.get("/sparql", params=params).json()["boolean"] is False
    params["default-graph-uri"] = "http://e/g"
    assert asked.get("/sparql", params=params).json()["boolean"] is True
    params["default-graph-uri"] = "no iri"
    assert asked.get("/sparql", params=params).status_code == 400


def test_an_update_is_one_transaction(asked):
    before = asked.graph.transactions
    done = asked.post(
        "/update",
        content="DELETE WHERE { <http://e/a> ?p ?o } ; INSERT DATA { <http://e/d> <http://e/p> 1 }",
        headers={"content-type": "application/sparql-update"},
    )
    assert done.json() == {"changed": 2, "tx": before, "time": 0}
    assert len(asked.graph) == 3


def test_an_error_has_its_place_and_a_hint(asked):
    answer = asked.post("/sparql", data={"query": "SELECT *\n{ ?s foaf:name ?o }"})
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    found = answer.json()
    assert (found["status"], found["line"]) == (400, 2)
    assert "foaf" in found["title"]


def test_nothing_is_loaded_from_anywhere(asked, tmp_path):
    data = tmp_path / "a.nt"
    data.write_text("<http://e/x> <http://e/x> <http://e/x> .\n", encoding="utf-8")
    for source in (data.as_uri(), "http://127.0.0.1:9/a.nt"):
        answer = asked.post("/sparql", data={"update": f"LOAD <{source}>"})
        assert answer.status_code == 400
    service = "SELECT * { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }"
    assert asked.post("/sparql", data={"query": service}).status_code == 400
    assert len(asked.graph) == 3


def test_large_answers_and_texts_are_refused(serve):
    graph = LiveGraph()
    for number in range(5):
        graph.insert("<http://e/a>", "<http://e/p>", number)
    with serve(graph, settings=ServerSettings(rows=4, body_bytes=2000)) as client:
        assert client.get("/sparql", params={"query": SELECT}).status_code == 413
        fewer = client.get("/sparql", params={"query": SELECT + " LIMIT 4"})
        assert len(fewer.json()["results"]["bindings"]) == 4
        large = client.post("/sparql", data={"query": SELECT + " " * 3000})
        assert large.status_code == 413
        chunked = client.post(
            "/sparql", content=(b" " * 500 for _ in range(10)), headers={"content-type": SPARQL}
        )
        assert chunked.status_code == 413


def test_a_refusal_of_a_large_body_reaches_a_client_that_still_sends(serve):
    with serve(LiveGraph(), settings=ServerSettings(body_bytes=1000)) as client:
        address = client.base_url.host, client.base_url.port
        for head in ("Content-Length: 300000", "Transfer-Encoding: chunked"):
            with socket.create_connection(address, timeout=20) as connection:
                lines = "POST /sparql HTTP/1.1", f"Host: {address[0]}", f"Content-Type: {SPARQL}"
                connection.sendall("\r\n".join([*lines, head, "", ""]).encode())
                for _ in range(30):
                    part = b" " * 10_000
                    if "chunked" in head:
                        part = b"2710\r\n" + part + b"\r\n"
                    connection.sendall(part)
                    time.sleep(0.01)
                if "chunked" in head:
                    connection.sendall(b"0\r\n\r\n")
                answer = b""
                while part := connection.recv(1 << 16):
                    answer += part
                assert answer.startswith(b"HTTP/1.1 413 "), answer[:100]
                assert b"the body has more than 1,000 bytes" in answer


def test_the_service_describes_itself(asked):
    answer = asked.get("/sparql", headers={"accept": "application/n-triples"})
    triples = {
        (str(t.predicate), str(t.object)) for t in parse(answer.content, RdfFormat.N_TRIPLES)
    }
    sd = "http://www.w3.org/ns/sparql-service-description#"
    assert (f"<{sd}supportedLanguage>", f"<{sd}SPARQL11Query>") in triples
    assert (
        f"<{sd}endpoint>",
        f"<{asked.base_url}/sparql>".replace("//sparql", "/sparql"),
    ) in triples


def test_json_of_unusual_texts(serve):
    graph = LiveGraph()
    text = 'quotes " and \\ and \u2028 and \U0001f686 and \x07'
    with serve(graph) as client:
        quoted = json.dumps(text, ensure_ascii=True).replace("\\ud83d\\ude86", "\\U0001F686")
        body = f"INSERT DATA {{ <http://e/a> <http://e/p> {quoted} }}"
        assert client.post("/sparql", data={"update": body}).status_code == 200
        (row,) = client.get("/sparql", params={"query": SELECT}).json()["results"]["bindings"]
        assert row["o"]["value"] == text
