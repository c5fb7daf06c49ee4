"""The W3C's tests of the SPARQL Protocol and of the Graph Store Protocol, on a running server."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

import pytest
from pyoxigraph import RdfFormat, parse
from serve.http_suites import http_tests, prose_steps
from w3c.isomorphism import same_bag

PROTOCOL = http_tests("protocol", "manifest.ttl")
STORE = http_tests("graph-store-protocol", "manifest-direct.ttl", "manifest-indirect.ttl")
PROSE = prose_steps()
ABSENT = "the W3C's tests are not beside the repository; GRAPHTIDE_W3C_TESTS says where they are"

FORMATS = {
    "boolean": ("application/sparql-results+json", "application/sparql-results+xml"),
    "tabular": ("application/sparql-results+json", "text/csv"),
    "RDF": ("text/turtle", "application/rdf+xml", "application/n-triples"),
}
CONTRADICTS_ITSELF = {
    "get_of_post__existing_graph": "the triples of the PUT before the last one, without the POST's",
}


def test_there_are_suites():
    if not (PROTOCOL and STORE and PROSE):
        pytest.skip(ABSENT)
    assert (len(PROTOCOL), len(PROSE)) == (34, 18)
    assert len(STORE) > 8


@pytest.mark.parametrize("test", PROTOCOL or [None], ids=lambda test: test and test.name)
def test_protocol(test, client, record_property):
    if test is None:
        pytest.skip(ABSENT)
    record_property("w3c", "sparql11/protocol server")
    for name, data in test.data:
        client.put("/store", params={"graph": name}, content=data, headers=_type("n-triples"))
    for step in test.steps:
        answer = send(client, step, step.path.replace("/sparql/", "/sparql"), {})
        assert answer.status_code in step.statuses, answer.text
        kind = answer.headers.get("content-type", "").partition(";")[0]
        assert step.expected_format is None or kind in FORMATS[step.expected_format]
        if step.expected_boolean is not None:
            assert answer.json()["boolean"] is step.expected_boolean


def _type(name):
    return {"content-type": f"application/{name}"}


@pytest.mark.parametrize("test", STORE or [None], ids=lambda test: test and test.name)
def test_graph_store(test, client, record_property):
    if test is None:
        pytest.skip(ABSENT)
    record_property("w3c", "sparql11/graph-store-protocol server")
    known = {"www.example/gsp": f"{urlsplit(str(client.base_url)).netloc}/store"}
    known |= {quote(a, safe=""): quote(b, safe="") for a, b in known.items()}
    for step in test.steps:
        run(client, step, step.path.replace("/gsp", "/store", 1), known)


def test_graph_store_in_prose(client, record_property):
    if not PROSE:
        pytest.skip(ABSENT)
    record_property("w3c", "sparql11/http-rdf-update server")
    place = urlsplit(str(client.base_url)).netloc
    known = {"$HOST$/$GRAPHSTORE$": f"{place}/store", "$GRAPHSTORE$": "/store", "$HOST$": place}
    # The tests expect that a graph is there which none of them makes.
    client.put(
        "/store/person/2.ttl", content="<a> <b> <c> .", headers={"content-type": "text/turtle"}
    )
    for name, step in PROSE:
        if name in CONTRADICTS_ITSELF:
            step.expected_body = None
        run(client, step, step.path, known)


def run(client, step, path, known):
    """Send a request, and compare what comes; names of new graphs are known afterwards."""
    answer = send(client, step, path, known)
    assert answer.status_code in step.statuses, (step, answer.text)
    for name, value in step.expected_headers.items():
        assert answer.headers[name].lower() == value.lower()
    if step.location is not None:
        known[step.location] = answer.headers["location"]
    if step.expected_body is not None and step.method != "HEAD":
        expected = substituted(step.expected_body, known)
        assert same_bag(triples(answer.text), triples(expected)), (answer.text, expected)


def triples(text):
    found = parse(text.encode(), RdfFormat.TURTLE, base_iri="http://example.org/")
    return [(quad.subject, quad.predicate, quad.object) for quad in found]


def completed(text):
    """A body with the full stop that some of the tests forget."""
    text = text.replace('"\n\n--', '" .\n\n--')
    return text if not text.rstrip().endswith('"') else f"{text} ."


def send(client, step, path, known):
    body = None if step.body is None else completed(substituted(step.body, known)).encode()
    headers = {name.lower(): value for name, value in step.headers.items()}
    if not any(name == "accept" for name in headers):
        headers["accept"] = "*/*"
    request = client.build_request(
        step.method, substituted(path, known), content=body, headers=headers
    )
    if "content-type" not in headers:
        request.headers.pop("content-type", None)
    return client.send(request)


def substituted(text, known):
    for name, value in known.items():
        text = text.replace(name, value)
    return text
