"""Cursors over HTTP: what may be acknowledged, by whom; and a disk that is full."""

from __future__ import annotations

import json

import pytest
from durable.full_disk import full_disk
from serve.event_streams import parsed, subscribe
from websockets.sync.client import connect

from graphtide import LiveGraph

PAIRS = "SELECT ?a ?b { ?a <ex:knows> ?b }"
WINDOW = """REGISTER RSTREAM <ex:out> AS SELECT ?a
    FROM NAMED WINDOW <ex:w> ON <ex:s> [RANGE 4 STEP 2] WHERE { WINDOW <ex:w> { ?a <ex:at> ?b } }"""
BEYOND = 999_999_999_999_999_999


READ, WRITE = "read-token-0123456", "write-token-012345"


def bearer(token):
    return {"authorization": f"Bearer {token}"}


@pytest.fixture
def disk(monkeypatch):
    with full_disk(monkeypatch) as found:
        yield found


def fill(client):
    for name in "abc":
        client.graph.insert(f"<ex:{name}>", "<ex:knows>", "<ex:x>")


def read(client, made, headers=None, **params):
    """The status of a GET of the events, and the first of them."""
    with client.stream("GET", made["events"], params=params, headers=headers) as response:
        if response.status_code != 200:
            return response.status_code, json.loads(response.read())
        return 200, next(parsed(response.iter_lines()))


def acknowledged(client):
    return list(client.graph.store.store.journal.cursors().values())


def test_a_number_beyond_the_last_delta_is_refused(serve, tmp_path):
    with serve(LiveGraph.open(tmp_path)) as client:
        made = subscribe(client, PAIRS, cursor="mailer")
        fill(client)
        for status, problem in (
            read(client, made, **{"last-event-id": BEYOND}),
            read(client, made, {"last-event-id": str(BEYOND)}),
            read(client, made, {"last-event-id": "3"}),
        ):
            assert status == 400
            assert "to acknowledge: the last is 2" in problem["title"]
        url = f"/subscriptions/{made['id']}/ack"
        assert client.post(url, json={"seq": BEYOND}).status_code == 400
        with connect(f"ws{str(client.base_url)[4:]}{made['socket']}") as socket:
            socket.recv()
            socket.send(json.dumps({"ack": BEYOND}))
            socket.send(json.dumps({"ack": 1}))
            while acknowledged(client) == [-2]:
                pass
        assert acknowledged(client) == [1]
        status, first = read(client, made)
        assert (status, first["event"], first["seq"]) == (200, "delta", 2)


def test_results_of_windows_are_acknowledged_by_their_times(serve, tmp_path):
    with serve(LiveGraph.open(tmp_path)) as client:
        made = subscribe(client, WINDOW, cursor="mailer")
        stream = client.graph.stream("<ex:s>")
        for time in (1001, 1003):
            stream.push([("<ex:a>", "<ex:at>", "<ex:b>")], time=time)
        client.graph.advance(1004)
        assert read(client, made, **{"last-event-id": 1005})[0] == 400
        assert read(client, made, **{"last-event-id": 1002})[1]["seq"] == 1004
        assert acknowledged(client) == [1002]


def test_a_page_of_another_origin_acknowledges_nothing(serve, tmp_path):
    with serve(LiveGraph.open(tmp_path), origins=frozenset({"https://ours.example"})) as client:
        made = subscribe(client, PAIRS, cursor="mailer")
        fill(client)
        last = {"last-event-id": "1"}
        for headers in (
            {"origin": "https://evil.example"},
            {"origin": "null"},
            {"sec-fetch-site": "cross-site"},  # an image of theirs
        ):
            status, problem = read(client, made, headers | last)
            assert (status, problem["title"]) == (
                403, "requests from pages of other origins are refused",
            )  # fmt: skip
        assert acknowledged(client) == [-2]
        ours = {"origin": "https://ours.example", "sec-fetch-site": "cross-site"}
        assert read(client, made, ours | last)[0] == 200
        assert acknowledged(client) == [1]


def test_only_a_token_that_may_write_changes_a_cursor(serve, tmp_path):
    with serve(LiveGraph.open(tmp_path), tokens={READ: "read", WRITE: "write"}) as client:
        body = {"query": PAIRS, "cursor": "mailer"}
        reader, writer = bearer(READ), bearer(WRITE)
        assert client.post("/subscriptions", json=body, headers=reader).status_code == 403
        made = client.post("/subscriptions", json=body, headers=writer).json()
        fill(client)
        status, first = read(client, made, reader, **{"last-event-id": 1})
        assert (status, first["seq"]) == (200, 2)
        url = f"/subscriptions/{made['id']}"
        assert client.post(f"{url}/ack", json={"seq": 1}, headers=reader).status_code == 403
        assert client.delete(url, headers=reader).status_code == 403
        address = f"ws{str(client.base_url)[4:]}{made['socket']}?access_token="
        with connect(address + READ) as socket:
            socket.recv()
            socket.send(json.dumps({"ack": 1}))
            with connect(address + WRITE) as other:
                other.recv()
                other.send(json.dumps({"ack": 0}))
                while acknowledged(client) == [-2]:
                    pass
        assert acknowledged(client) == [0]
        assert read(client, made, writer, **{"last-event-id": 1})[1]["seq"] == 2
        assert acknowledged(client) == [1]
        assert client.delete(url, headers=writer).status_code == 204
        assert acknowledged(client) == []


@pytest.mark.parametrize("durability", ["transaction", "batch"])
def test_a_full_disk_refuses_an_update(serve, tmp_path, disk, durability):
    """With 507, without a path of the server; and it does not come later."""
    update = "INSERT DATA {{ <ex:{}> <ex:knows> <ex:x> }}"

    def send(name):
        return client.post("/sparql", data={"update": update.format(name)})

    with serve(LiveGraph.open(tmp_path, durability=durability)) as client:
        assert send("a").status_code == 200
        disk.fill(1)
        for _ in range(3):
            refused = send("b")
            assert refused.status_code == 507
            assert str(tmp_path) not in refused.text
            assert refused.json()["title"] == "the store cannot be used: database or disk is full"
        disk.room = True
        assert send("c").status_code == 200
        found = client.get("/sparql", params={"query": "SELECT ?a { ?a ?p ?b }"}).json()
        names = {row["a"]["value"] for row in found["results"]["bindings"]}
        assert names == {"ex:a", "ex:c"} | ({"ex:b"} if durability == "batch" else set())
    with LiveGraph.open(tmp_path) as graph:
        assert {quad[0].value for quad in graph.quads()} == names
