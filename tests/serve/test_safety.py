"""Tokens, hosts, origins, slow and broken clients, the log, and a graceful stop."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import time
from types import SimpleNamespace
from urllib.parse import urlsplit

import httpx
import pytest
from serve.event_streams import events, parsed, subscribe

from graphtide import LiveGraph
from graphtide.errors import GraphtideError
from graphtide.limits import Limits
from graphtide.serve import access
from graphtide.serve.host import ServerSettings

READ, WRITE, ADMIN = "read-token-0123456", "write-token-012345", "admin-token-012345"
TOKENS = {READ: "read", WRITE: "write", ADMIN: "admin"}
ASK = {"query": "ASK {}"}


def bearer(token):
    return {"authorization": f"Bearer {token}"}


def test_what_each_token_allows(serve):
    with serve(tokens=TOKENS) as client:
        update = {"data": {"update": "INSERT DATA { <a:> <a:> <a:> }"}}
        answer = client.get("/sparql", params=ASK)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        for path in ("/healthz", "/version", "/openapi.json"):
            assert client.get(path).status_code == 200
        for path in ("/metrics", "/store?default"):
            assert client.get(path).status_code == 401
            assert client.get(path, headers=bearer(READ)).status_code == 200
        assert client.get("/sparql", params=ASK, headers=bearer("no")).status_code == 401
        assert client.get("/sparql", params=ASK, headers=bearer(READ)).status_code == 200
        for method, path in (
            ("POST", "/sparql"), ("POST", "/update"), ("PUT", "/store?default"),
            ("POST", "/changes"), ("POST", "/streams/a:/events"), ("POST", "/checkpoint"),
        ):  # fmt: skip
            found = client.request(method, path, headers=bearer(READ), **update)
            assert found.status_code == 403, path
        assert client.post("/sparql", headers=bearer(WRITE), **update).status_code == 200
        assert client.post("/checkpoint", headers=bearer(WRITE)).status_code == 403
        assert client.post("/checkpoint", headers=bearer(ADMIN)).status_code == 400  # no store
        made = client.post("/subscriptions", json={"query": "ASK {}"}, headers=bearer(READ)).json()
        with client.stream("GET", f"{made['events']}?access_token={READ}") as response:
            assert next(parsed(response.iter_lines()))["event"] == "answer"
        assert client.get(made["events"]).status_code == 401


def test_the_file_of_tokens(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"# ours\nread {READ}\nadmin {ADMIN} # me\n", encoding="utf-8")
    assert access.read_tokens(path) == {READ: "read", ADMIN: "admin"}
    for wrong in ("", "root 0123456789abcdef", "read short", "read"):
        path.write_text(wrong, encoding="utf-8")
        with pytest.raises(GraphtideError):
            access.read_tokens(path)
    with pytest.raises(GraphtideError):
        access.read_tokens(tmp_path / "none")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.org"])
def test_an_address_for_others_needs_a_token(host):
    with pytest.raises(GraphtideError, match="no token"):
        access.check_address(host, {}, no_auth=False)
    access.check_address(host, {}, no_auth=True)
    access.check_address(host, TOKENS, no_auth=False)


def test_pages_of_others_change_nothing(client):
    evil = {"origin": "https://evil.example"}
    update = {"update": "INSERT DATA { <a:> <a:> <a:> }"}
    assert client.post("/sparql", data=update, headers=evil).status_code == 403
    assert "access-control-allow-origin" not in client.get("/version", headers=evil).headers
    own = {"origin": str(client.base_url).rstrip("/")}
    assert client.post("/sparql", data=update, headers=own).status_code == 200
    for host in (
        "evil.example", "evil.example:80", "", "localhost:80@evil.example", "localhost/x",
        "localhost:80:80", "[::1]evil.example", "localhost@evil.example", "localhost evil",
    ):  # fmt: skip
        assert client.get("/version", headers={"host": host}).status_code == 421
    assert client.get("/version", headers={"host": "localhost:1"}).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("path", ["/sparql", "/update", "/subscriptions"])
def test_forms_of_other_pages_change_nothing(client, site, path):
    update = {"update": "INSERT DATA { <a:> <a:> <a:> }"}
    assert client.post(path, data=update, headers={"sec-fetch-site": site}).status_code == 403
    assert client.get("/sparql", params=ASK, headers={"sec-fetch-site": site}).status_code == 200
    for own in ("same-origin", "none"):
        found = client.post("/sparql", data=update, headers={"sec-fetch-site": own})
        assert found.status_code == 200


def test_a_request_of_two_lengths_is_refused_and_nothing_follows(client):
    smuggled = b"GET /version HTTP/1.1\r\n" + HOST + b"\r\n"
    body = b"0\r\n\r\n" + smuggled
    head = b"POST /sparql HTTP/1.1\r\n" + HOST + b"Content-Type: application/sparql-query\r\n"
    length = f"Content-Length: {len(body)}\r\n".encode()
    answer = raw(client, head + length + b"Transfer-Encoding: chunked\r\n\r\n" + body)
    assert re.match(rb"HTTP/1.1 400", answer)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"connection: close" in answer.lower()


@pytest.mark.parametrize(
    "head",
    [
        b"POST /sparql HTTP/1.1\r\nContent-Type: application/sparql-query\r\n",
        b"POST /nowhere HTTP/1.1\r\n",
        b"GET /version HTTP/1.1\r\n",
        b"PUT /store?default HTTP/1.1\r\nContent-Type: text/nothing\r\n",
        b"POST /sparql HTTP/1.1\r\nOrigin: https://evil.example\r\n",
    ],
)
def test_a_body_that_trickles_in_is_cut_off(serve, head):
    with serve(head_seconds=1, settings=ServerSettings(body_seconds=1)) as client:
        place = urlsplit(str(client.base_url))
        with socket.create_connection((place.hostname, place.port), timeout=5) as found:
            found.sendall(head + HOST + b"Content-Length: 1000\r\n\r\n")
            began = time.monotonic()
            with pytest.raises(ConnectionError):
                trickle(found)
            assert time.monotonic() - began < 6


def trickle(found):
    for _ in range(100):
        found.sendall(b"x")
        time.sleep(0.1)


def test_origins_that_are_allowed(serve):
    friend = {"origin": "https://friend.example"}
    with serve(origins=frozenset({"https://friend.example"})) as client:
        answer = client.post("/sparql", data=ASK, headers=friend)
        assert answer.headers["access-control-allow-origin"] == "https://friend.example"
        asks = {**friend, "access-control-request-method": "POST"}
        before = client.options("/changes", headers=asks)
        assert before.status_code == 204
        assert "POST" in before.headers["access-control-allow-methods"]
        evil = {**asks, "origin": "https://evil.example"}
        assert client.options("/changes", headers=evil).status_code == 403


def test_a_long_query_is_stopped(serve):
    graph = LiveGraph(limits=Limits(query_seconds=0.5))
    for number in range(60):
        graph.insert(f"<a:{number}>", "<a:p>", number)
    patterns = "?a ?p ?x . ?b ?p ?y . ?c ?p ?z . ?d ?p ?w"
    slow = f"SELECT (COUNT(*) AS ?n) {{ {patterns} FILTER (?x + ?y + ?z + ?w = 7) }}"
    with serve(graph) as client:
        began = time.monotonic()
        answer = client.get("/sparql", params={"query": slow})
        assert answer.status_code == 503
        assert "query_seconds" in answer.json()["hint"]
        assert time.monotonic() - began < 20
        assert client.get("/healthz").text == "ok\n"


def test_the_query_of_a_client_that_hangs_up_is_cancelled(serve):
    graph = LiveGraph()
    for number in range(400):
        graph.insert(f"<ex:{number}>", "<ex:p>", number)
    heavy = "SELECT (COUNT(*) AS ?n) { ?a ?p ?x . ?b ?q ?y . ?c ?r ?z FILTER(?x + ?y + ?z < 0) }"
    with serve(graph) as client:
        place = urlsplit(str(client.base_url))
        client.get("/sparql", params=ASK)
        for _ in range(3):
            with socket.create_connection((place.hostname, place.port), timeout=5) as found:
                request = f"POST /sparql HTTP/1.1\r\nContent-Length: {len(heavy)}\r\n"
                kind = "Content-Type: application/sparql-query\r\n"
                found.sendall((request + kind).encode() + HOST + b"\r\n" + heavy.encode())
                time.sleep(0.3)
        began = time.monotonic()
        assert client.get("/sparql", params=ASK, timeout=60).status_code == 200
        assert time.monotonic() - began < 5


def test_nothing_reaches_the_log_unescaped(client, caplog):
    with caplog.at_level(logging.INFO, logger="graphtide.serve.access"):
        client.get("/a%0Aforged%20line%1b[31m", params={"secret": "s3cret"})
        client.get("/version", headers={"x-note": "s3cret"})
        end = time.monotonic() + 5
        while len(caplog.records) < 2 and time.monotonic() < end:
            time.sleep(0.01)
    text = "\n".join(record.getMessage() for record in caplog.records)
    assert "s3cret" not in text
    assert text.count("\n") == len(caplog.records) - 1
    assert "\x1b" not in text
    assert "\\nforged" in text


# --- raw sockets ---


def raw(client, data, *, seconds=5.0):
    """What comes back for bytes on a socket, until the server closes it or waits."""
    place = urlsplit(str(client.base_url))
    with socket.create_connection((place.hostname, place.port), timeout=seconds) as found:
        found.settimeout(seconds)
        received = b""
        try:
            found.sendall(data)
            while part := found.recv(65536):
                received += part
        except (TimeoutError, ConnectionError):
            pass
        return received


HOST = b"Host: localhost\r\n"


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /version HTTP/1.1\r\n\r\n",
        b"GET /version HTTP/1.1\r\n" + HOST + b"X: " + b"x" * 200_000 + b"\r\n\r\n",
        b"GET /" + b"y" * 200_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET /version HTTP/1.1\r\n" + HOST + b"Bad Header: x\r\n\r\n",
        b"GET /version HTTP/1.1\r\n" + HOST + b"X: a\0b\r\n\r\n",
        b"POST /changes HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n"
        b"Content-Type: application/n-quads\r\n\r\nzz\r\nbroken\r\n",
        b"POST /changes HTTP/1.1\r\n" + HOST + b"Content-Length: -5\r\n\r\n",
        b"POST /changes HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n"
        b"Content-Length: 6\r\n\r\nhello",
        b"POST /changes HTTP/1.1\r\n" + HOST + b"Content-Length: 99999999999999999999999\r\n"
        b"Content-Type: application/n-quads\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /subscriptions/x/socket HTTP/1.1\r\n" + HOST + b"Upgrade: websocket\r\n"
        b"Connection: Upgrade\r\nSec-WebSocket-Version: 1\r\n\r\n",
    ],
)  # fmt: skip
@pytest.mark.slow
def test_broken_requests_are_answered_or_closed(serve, data):
    with serve(head_seconds=0.5, settings=ServerSettings(body_seconds=0.5)) as client:
        answer = raw(client, data)
        assert not answer.startswith(b"HTTP/1.1 5")
        assert not answer or re.match(rb"HTTP/1.1 4\d\d", answer)
        assert client.get("/healthz").status_code == 200


@pytest.mark.slow
def test_slow_clients_are_disconnected(serve):
    with serve(head_seconds=0.5, settings=ServerSettings(body_seconds=0.5)) as client:
        began = time.monotonic()
        assert raw(client, b"GET /version HT") == b""
        slow = b"POST /changes HTTP/1.1\r\n" + HOST + b"Content-Length: 100\r\n"
        answer = raw(client, slow + b"Content-Type: application/n-quads\r\n\r\nabc")
        assert answer.startswith(b"HTTP/1.1 408")
        place = urlsplit(str(client.base_url))
        with socket.create_connection((place.hostname, place.port), timeout=5) as found:
            found.sendall(b"GET /version HTTP/1.1\r\n" + HOST + b"\r\n")
            answer = found.recv(65536)
            while not answer.endswith(b"}"):
                answer += found.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200")
            found.sendall(b"GET /ver")  # the head of the next request is slow
            assert found.recv(65536) == b""
        assert time.monotonic() - began < 10


# --- the command ---


@pytest.fixture
def command(tmp_path):
    """Starts `graphtide serve`, and gives its process and a client."""
    started, clients = [], []

    def start(*options):
        process = subprocess.Popen(
            [sys.executable, "-m", "graphtide.cli.main", "serve", "--port", "0", *options],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        started.append(process)
        line = process.stderr.readline()
        url = re.search(r"http://\S+", line)
        assert url, line + process.stderr.read()
        client = httpx.Client(base_url=url[0].rstrip("/"), timeout=30)
        clients.append(client)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                client.get("/healthz")
                break
            except httpx.TransportError:
                time.sleep(0.05)
        return process, client

    yield start
    for client in clients:
        client.close()
    for process in started:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_the_command_stops_gracefully(command, tmp_path, how):
    process, client = command("--store", str(tmp_path / "store"))
    made = subscribe(client, "SELECT ?s { ?s ?p ?o }")
    with events(client, made) as stream:
        next(stream)
        body = json.dumps({"s": "<a:>", "p": "<a:>", "o": "<a:>"})
        kind = {"content-type": "application/x-ndjson"}
        done = client.post("/changes", content=body, headers=kind)
        assert done.status_code == 202
        process.send_signal(how)
        assert [each["event"] for each in stream] == ["delta", "goodbye"]
    assert process.wait(timeout=20) == 0
    with LiveGraph.open(tmp_path / "store", read_only=True) as graph:
        assert len(graph) == 1


@pytest.mark.slow
def test_the_demo_and_the_log(command):
    process, client = command("--demo")
    made = client.post("/subscriptions", json={"name": "SwitchSet"}).json()
    with events(client, made) as stream:
        assert next(stream)["event"] == "answer"
        assert next(stream)["event"] == "delta"
    client.close()
    process.terminate()
    assert process.wait(timeout=20) == 0
    assert "POST /subscriptions 201" in process.stderr.read()


def test_mistakes_of_the_command(capsys, tmp_path):
    from graphtide.cli.main import main

    assert main(["serve", "--host", "0.0.0.0"]) == 2
    assert "--token-file" in capsys.readouterr().err
    assert main(["serve", "--read-only"]) == 2
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["serve", "--port", str(taken.getsockname()[1])]) == 2
    assert "another --port" in capsys.readouterr().err


def test_options_reach_the_server(capsys, tmp_path, monkeypatch):
    """Each option of `graphtide serve`, up to the server, which does not run here."""
    from graphtide.cli.main import main
    from graphtide.serve import app, server

    made = []

    def create_app(host, **access):
        made.append((host, access))

    idle = SimpleNamespace(run=lambda sockets: None)
    monkeypatch.setattr(app, "create_app", create_app)
    monkeypatch.setattr(server, "make_server", lambda *_: idle)
    monkeypatch.setattr(server, "share_heap", lambda: None)
    (tmp_path / "one.nt").write_text("<ex:a> <ex:p> <ex:b> .\n")
    options = {
        "--host": "0.0.0.0", "--port": 0, "--data": tmp_path / "one.nt", "--store": tmp_path / "s",
        "--cors": "https://example.org", "--max-body-bytes": 11, "--max-rows": 12,
        "--max-subscriptions": 13, "--max-history": 14, "--tick-ms": 15,
    }  # fmt: skip
    tokens = [str(word) for pair in options.items() for word in pair]
    assert main(["serve", *tokens]) == 2
    assert "--no-auth" in capsys.readouterr().err and not made
    assert main(["serve", *tokens, "--no-auth"]) == 0
    ((host, access),) = made
    bounds = host.settings
    assert (bounds.body_bytes, bounds.rows) == (11, 12)
    assert (bounds.subscriptions, bounds.history) == (13, 14)
    assert access == {"tokens": {}, "origins": {"https://example.org"}, "local": False}
    assert len(host.graph) == 1
    host.graph.close()
    (tmp_path / "tokens").write_text(f"read {READ}\n")
    reading = ("--store", str(tmp_path / "s"), "--read-only", "--port", "0")
    assert main(["serve", *reading, "--token-file", str(tmp_path / "tokens")]) == 0
    host, access = made[1]
    assert access["tokens"] == {READ: "read"} and access["local"]
    with pytest.raises(GraphtideError, match="read"):
        host.graph.insert("<ex:a>", "<ex:p>", "<ex:c>")
    host.graph.close()
    with pytest.raises(GraphtideError, match="other options: tick_ms"):
        LiveGraph.open(tmp_path / "s", tick_ms=1000)
    for option in ("--max-body-bytes", "--max-rows", "--max-subscriptions", "--max-history"):
        assert main(["serve", "--port", "0", option, "0"]) == 2
        assert f'{option} "0"' in capsys.readouterr().err


def test_without_the_extra_it_says_what_to_install(monkeypatch, capsys):
    from graphtide.cli import serve
    from graphtide.cli.main import main

    monkeypatch.setattr(serve, "find_spec", lambda name: None)
    assert main(["serve"]) == 2
    assert "graphtide[serve]" in capsys.readouterr().err
