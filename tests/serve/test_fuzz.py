"""Requests made from the OpenAPI description, and random bytes: no 500, no hang, no growth."""

from __future__ import annotations

import random
import socket
import threading
import time
from urllib.parse import urlsplit

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings

from graphtide import LiveGraph
from graphtide.limits import Limits
from graphtide.serve.app import create_app
from graphtide.serve.host import Host, ServerSettings
from graphtide.serve.openapi import DESCRIPTION
from graphtide.serve.server import serving
from graphtide.serve.subscriptions.channels import CONNECTIONS

SCHEMA = schemathesis.openapi.from_dict(DESCRIPTION)
DOCUMENTED = {
    (path, method): {int(status) for status in operation["responses"]}
    for path, methods in DESCRIPTION["paths"].items()
    for method, operation in methods.items()
}
SEED = 7


@pytest.fixture(scope="module")
def server():
    graph = LiveGraph(limits=Limits(query_seconds=2, flush_seconds=5))
    graph.insert("<http://e/a>", "<http://e/p>", 1)
    host = Host(graph, settings=ServerSettings(body_seconds=2, subscriptions=50))
    with serving(create_app(host), head_seconds=2) as found:
        yield found


@pytest.fixture(scope="module")
def url(server):
    return server.url


@SCHEMA.parametrize()
@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@pytest.mark.slow
def test_requests_of_the_description(case, url):
    if case.path.endswith("/events") and case.method == "GET":
        case.path_parameters["id"] = "none"  # an event stream does not end
    answer = case.call(base_url=url, timeout=20)
    known = DOCUMENTED[case.operation.path, case.method.lower()]
    assert answer.status_code in known, (case.method, case.path, answer.text)


def test_random_bytes_do_not_hang_and_nothing_is_left_of_them(server):
    """Heads and bodies that are cut off, mixed up and slow; afterwards no connection is left."""
    url = server.url
    chance, place = random.Random(SEED), urlsplit(url)
    head = b"HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/"
    quads = (
        b"n-quads\r\nTransfer-Encoding: chunked\r\n\r\n16\r\n<a:a> <a:a> <a:a> . \n\r\n0\r\n\r\n"
    )
    asked = b'json\r\nContent-Length: 19\r\n\r\n{"query": "ASK {}"}'
    good = [
        b"POST /changes " + head + quads,
        b"POST /subscriptions " + head + asked,
        b"GET /sparql?query=ASK%20%7B%7D HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ]
    for _ in range(150):
        data = bytearray(chance.choice(good))
        for _ in range(chance.randrange(1, 8)):
            place_of = chance.randrange(len(data))
            data[place_of : place_of + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
        with socket.create_connection((place.hostname, place.port), timeout=10) as found:
            try:
                found.sendall(data[: chance.randrange(1, len(data) + 1)])
                if chance.random() < 0.3:
                    found.shutdown(socket.SHUT_WR)
                    assert not found.recv(65536).startswith(b"HTTP/1.1 5")
            except (ConnectionError, TimeoutError):
                pass
    began = time.monotonic()
    assert httpx.get(f"{url}/healthz", timeout=10).text == "ok\n"
    assert time.monotonic() - began < 5
    state = server.server.server_state  # of uvicorn: what a connection or a request leaves is here
    while state.connections or state.tasks:
        assert time.monotonic() - began < 30
        time.sleep(0.05)
    assert not CONNECTIONS


@pytest.mark.slow
def test_many_clients_at_once(url):
    """Threads that write, ask, subscribe and go away; all that is left is the graph."""
    failures = []

    def act(number):
        chance = random.Random(number)
        with httpx.Client(base_url=url, timeout=20) as client:
            for _ in range(8):
                kind = {"content-type": "application/n-quads"}
                body = f"<a:{number}> <a:p> <a:{chance.randrange(9)}> .\n"
                done = client.post("/changes", content=body, headers=kind)
                made = client.post("/subscriptions", json={"query": "SELECT * { ?s <a:p> ?o }"})
                if done.status_code != 202 or made.status_code not in (201, 429):
                    failures.append((done.text, made.text))
                elif made.status_code == 201:
                    with client.stream("GET", made.json()["events"]) as stream:
                        next(stream.iter_lines())
                    client.delete(f"/subscriptions/{made.json()['id']}")

    threads = [threading.Thread(target=act, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    metrics = httpx.get(f"{url}/metrics").text
    assert "graphtide_subscribers 0\n" in metrics
