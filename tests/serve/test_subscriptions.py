"""Subscriptions: every delta, in order, once; also after interruptions and restarts."""

from __future__ import annotations

import json
import random
import time
from threading import Event

import httpx
import pytest
from serve.event_streams import Copy, bag, events, subscribe
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from graphtide import LiveGraph, Program
from graphtide.serve.host import ServerSettings
from graphtide.serve.subscriptions.channels import Channel

PAIRS = "SELECT ?a ?c { ?a <http://e/p> ?b . ?b <http://e/p> ?c }"


def link(graph, a, b, *, there=True):
    change = graph.insert if there else graph.delete
    change(f"<http://e/{a}>", "<http://e/p>", f"<http://e/{b}>")


def answer_of(client, query):
    return bag(client.get("/sparql", params={"query": query}).json())


def shake(graph, chance, count):
    """Random changes, some of which change nothing."""
    for _ in range(count):
        link(graph, chance.randrange(4), chance.randrange(4), there=chance.random() < 0.6)


def test_the_answer_then_deltas(client):
    link(client.graph, 1, 2)
    link(client.graph, 2, 3)
    made = subscribe(client, PAIRS)
    assert made["variables"] == ["a", "c"]
    with events(client, made) as stream:
        first = next(stream)
        assert first["event"] == "answer"
        assert bag(first["added"]) == answer_of(client, PAIRS)
        body = "INSERT DATA { <http://e/3> <http://e/p> <http://e/4> }"
        done = client.post("/sparql", data={"update": body}).json()
        second = next(stream)
        assert (second["event"], second["seq"], second["time"]) == ("delta", done["tx"], 0)
        assert second["added"]["results"]["bindings"] == [
            {
                "a": {"type": "uri", "value": "http://e/2"},
                "c": {"type": "uri", "value": "http://e/4"},
            }
        ]
        assert second["removed"]["results"]["bindings"] == []
        link(client.graph, 1, 2, there=False)  # not through the server
        third = next(stream)
        assert len(third["removed"]["results"]["bindings"]) == 1


def test_copies_follow_random_changes_over_interruptions(client):
    """Readers are interrupted at random and go on by the last id; each delta comes once."""
    chance = random.Random(5)
    graph, made = client.graph, subscribe(client, PAIRS)
    watch = graph.watch(PAIRS)
    copy = Copy()
    for _ in range(12):
        with events(client, made, last=copy.seq) as stream:
            if copy.seq is None:
                copy.take(next(stream))
            shake(graph, chance, 30)
            link(graph, "x", "y")
            link(graph, "y", "z")  # the last event to come
            for data in stream:
                copy.take(data)
                if chance.random() < 0.1 or data["seq"] == graph.transactions - 1:
                    break
        shake(graph, chance, 10)
        link(graph, "y", "z", there=False)
    with events(client, made, last=copy.seq) as stream:
        for data in stream:
            copy.take(data)
            if data["seq"] == graph.transactions - 1:
                break
    assert copy.rows == answer_of(client, PAIRS)
    expected = [delta.seq for delta in watch.deltas()]
    assert copy.seen[1:] == expected[-len(copy.seen) + 1 :]
    assert len(copy.seen) > 20


def test_equal_queries_are_one_query(client):
    made = [subscribe(client, PAIRS) for _ in range(5)]
    assert len({each["id"] for each in made}) == 5
    assert len(client.graph.queries) == 1
    for each in made[:-1]:
        assert client.delete(f"/subscriptions/{each['id']}").status_code == 204
    assert len(client.graph.queries) == 1
    with events(client, made[-1]) as stream:
        assert next(stream)["event"] == "answer"
        assert client.delete(f"/subscriptions/{made[-1]['id']}").status_code == 204
        assert next(stream) == {"event": "goodbye", "reason": "ended"}
    assert client.graph.queries == ()
    assert client.get(made[0]["events"]).status_code == 404


def test_what_is_no_longer_retained_begins_anew(serve):
    graph = LiveGraph()
    query = graph.watch(PAIRS, name="pairs", history=10)
    with serve(graph) as client:
        made = client.post("/subscriptions", json={"name": "pairs"}).json()
        with events(client, made) as stream:
            seq = next(stream)["seq"]
        for number in range(30):
            link(graph, number, number + 1)
        assert query.evicted == 0 or query.deltas()
        with events(client, made, last=seq) as stream:
            first = next(stream)
        assert first["event"] == "answer"
        assert bag(first["added"]) == answer_of(client, PAIRS)
        with events(client, made, last=10**9) as stream:  # of another server
            assert next(stream)["event"] == "answer"


def test_the_server_says_how_much_the_query_of_a_subscription_retains(serve):
    with serve(settings=ServerSettings(history=10)) as client:
        made = subscribe(client, PAIRS)
        (query,) = client.graph.queries
        for number in range(30):
            link(client.graph, number, number + 1)
        assert len(list(query.rows())) == 10
        with events(client, made, last=client.graph.transactions - 6) as stream:
            assert next(stream)["event"] == "delta"
        with events(client, made, last=5) as stream:
            assert next(stream)["event"] == "answer"


def test_queries_of_programs_and_errors(serve):
    graph = LiveGraph()
    graph.run(Program.parse("QUERY Linked AS SELECT ?a { ?a <http://e/p> ?b }"))
    with serve(graph) as client:
        made = client.post("/subscriptions", json={"name": "Linked"}).json()
        with events(client, made) as stream:
            next(stream)
            link(graph, 1, 2)
            assert len(next(stream)["added"]["results"]["bindings"]) == 1
        client.delete(f"/subscriptions/{made['id']}")
        assert len(graph.queries) == 1  # the program's own
        for body, status in (
            ({"name": "Nothing"}, 404),
            ({"query": "SELECT"}, 400),
            ({"query": PAIRS, "name": "Linked"}, 400),
            ({}, 400),
            ({"query": 7}, 400),
            ({"query": PAIRS, "cursor": "mailer"}, 400),  # there is no store
        ):
            assert client.post("/subscriptions", json=body).status_code == status, body
        assert client.post("/subscriptions", content=b"[1]").status_code == 415
        assert client.get("/subscriptions/none/events").status_code == 404


def test_a_query_that_ends_says_goodbye(serve):
    graph = LiveGraph()
    query = graph.watch(PAIRS, name="pairs")
    with serve(graph) as client:
        made = client.post("/subscriptions", json={"name": "pairs"}).json()
        with events(client, made) as stream:
            next(stream)
            query.close()
            assert next(stream) == {"event": "goodbye", "reason": "ended"}
        assert client.get(made["events"]).status_code == 404
        graph.watch(PAIRS, name="pairs")
        again = client.post("/subscriptions", json={"name": "pairs"}).json()
        with events(client, again) as stream:
            next(stream)
            link(graph, 1, 1)
            assert next(stream)["event"] == "delta"


def test_windows(client):
    window = "FROM NAMED WINDOW <http://e/w> ON <http://e/s> [RANGE 10 STEP 5]"
    query = f"SELECT ?a {window} {{ WINDOW <http://e/w> {{ ?a <http://e/p> ?b }} }}"
    made = subscribe(client, query)
    with events(client, made) as stream:
        assert next(stream)["event"] == "answer"
        lines = [
            {"time": t, "s": f"<http://e/{t}>", "p": "<http://e/p>", "o": '"x"'}
            for t in (2, 7, 13, 18)
        ]
        done = client.post(
            "/streams/http:%2F%2Fe%2Fs/events",
            content="\n".join(map(json.dumps, lines)),
            headers={"content-type": "application/x-ndjson"},
        )
        assert (done.status_code, done.json()["events"]) == (202, 4)
        results = [next(stream), next(stream)]
    assert [(each["event"], each["time"]) for each in results] == [("result", 10), ("result", 15)]
    assert [len(each["added"]["results"]["bindings"]) for each in results] == [2, 2]
    oracle = LiveGraph()
    watch = oracle.watch(query)
    for line in lines:
        triple = line["s"], line["p"], line["o"]
        oracle.stream("<http://e/s>").push([triple], time=line["time"])
    assert [(r.time, len(r)) for r in watch.results()] == [(10, 2), (15, 2)]
    with events(client, made, last=10) as stream:
        assert next(stream)["time"] == 15


def test_by_websocket(client):
    made = subscribe(client, PAIRS)
    link(client.graph, 1, 2)
    link(client.graph, 2, 3)
    url = str(client.base_url).replace("http", "ws") + made["socket"]
    with connect(url) as socket:
        first = json.loads(socket.recv(10))
        assert bag(first["added"]) == answer_of(client, PAIRS)
        link(client.graph, 1, 2, there=False)
        second = json.loads(socket.recv(10))
        assert (second["event"], second["seq"]) == ("delta", 2)
        socket.send("nonsense")
        client.delete(f"/subscriptions/{made['id']}")
        assert json.loads(socket.recv(10)) == {"event": "goodbye", "reason": "ended"}
        with pytest.raises(ConnectionClosed):
            socket.recv(10)


@pytest.mark.slow
def test_heartbeats_and_idle_subscriptions(serve):
    with serve(settings=ServerSettings(heartbeat_seconds=0.1, idle_seconds=0.2)) as client:
        made = subscribe(client, PAIRS)
        with client.stream("GET", made["events"]) as response:
            assert any(line == ": heartbeat" for line in response.iter_lines())
        end = time.monotonic() + 20
        while client.graph.queries and time.monotonic() < end:
            time.sleep(0.05)
        assert client.graph.queries == ()


def test_a_client_has_a_bounded_number_of_subscriptions(serve):
    with serve(settings=ServerSettings(subscriptions=2)) as client:
        made = [subscribe(client, PAIRS) for _ in range(2)]
        assert client.post("/subscriptions", json={"query": PAIRS}).status_code == 429
        client.delete(f"/subscriptions/{made[0]['id']}")
        subscribe(client, PAIRS)


@pytest.mark.slow
def test_a_slow_reader_is_cut_off_and_others_are_not(serve):
    settings = ServerSettings(unsent_bytes=100_000)
    with serve(settings=settings) as client:
        made = subscribe(client, "SELECT * { ?s ?p ?o }")
        with (
            httpx.Client(base_url=client.base_url, timeout=30) as other,
            events(other, made) as slow,
            events(client, made) as stream,
        ):
            next(slow)
            copy = Copy()
            copy.take(next(stream))
            large = "x" * 100_000
            for number in range(120):
                client.graph.insert("<http://e/a>", "<http://e/p>", f'"{number}{large}"')
                copy.take(next(stream))
            assert len(copy.seen) == 121
            with pytest.raises(httpx.HTTPError):
                for _ in slow:
                    pass
        (line,) = [
            line
            for line in httpx.get(f"{client.base_url}/metrics").text.splitlines()
            if line.startswith("graphtide_slow_subscribers_total")
        ]
        assert line.endswith(" 1")


# --- with a store ---


def test_a_subscription_goes_on_after_a_restart(serve, tmp_path):
    """Events before, between and after two servers: by the last id, each comes once."""
    copy = Copy()
    with serve(LiveGraph.open(tmp_path)) as client:
        made = subscribe(client, PAIRS)
        with events(client, made) as stream:
            copy.take(next(stream))
            for number in range(5):
                link(client.graph, number, number + 1)
            while len(copy.seen) < 4:
                copy.take(next(stream))
        for number in range(5, 8):
            link(client.graph, number, number + 1)
    with serve(LiveGraph.open(tmp_path)) as client:
        with events(client, made, last=copy.seq) as stream:
            link(client.graph, 0, 1, there=False)
            while copy.seen[-1] != 8:
                copy.take(next(stream))
        assert copy.rows == answer_of(client, PAIRS)
        assert copy.seen == [-1, 1, 2, 3, 4, 5, 6, 7, 8]
        assert len(client.graph.queries) == 1


def test_a_cursor_knows_where_its_consumer_is(serve, tmp_path):
    with serve(LiveGraph.open(tmp_path)) as client:
        made = subscribe(client, PAIRS, cursor="mailer")
        with events(client, made) as stream:
            next(stream)
            for number in range(4):
                link(client.graph, number, number + 1)
            second = [next(stream), next(stream)][-1]
        acked = client.post(f"/subscriptions/{made['id']}/ack", json={"seq": second["seq"]})
        assert acked.status_code == 204
        assert subscribe(client, PAIRS, cursor="mailer") == made
        assert (
            client.post("/subscriptions", json={"query": PAIRS, "cursor": "/"}).status_code == 400
        )
    with serve(LiveGraph.open(tmp_path)) as client:
        again = subscribe(client, PAIRS, cursor="mailer")
        assert again == made
        with events(client, again) as stream:
            third = next(stream)
        assert (third["event"], third["seq"]) == ("delta", second["seq"] + 1)


@pytest.mark.slow
def test_queries_of_earlier_subscribers_end_unless_they_have_a_cursor(serve, tmp_path):
    other = "SELECT ?s { ?s ?p ?o }"
    with serve(LiveGraph.open(tmp_path)) as client:
        subscribe(client, PAIRS)
        subscribe(client, other, cursor="mailer")
    settings = ServerSettings(idle_seconds=0.5)
    with serve(LiveGraph.open(tmp_path), settings=settings) as client:
        end = time.monotonic() + 20
        while len(client.graph.queries) > 1 and time.monotonic() < end:
            time.sleep(0.05)
        assert [query.text for query in client.graph.queries] == [other]


def test_what_is_on_its_way_comes_before_goodbye(serve, monkeypatch):
    """A stop in the middle of a round, after it has taken the deltas from the query."""
    taken, news = Event(), Channel.news

    def slowly(channel, graph):
        found = news(channel, graph)
        if found:
            taken.set()
            time.sleep(0.3)
        return found

    monkeypatch.setattr(Channel, "news", slowly)
    with serve() as client:
        made = subscribe(client, PAIRS)
        with events(client, made) as stream:
            next(stream)
            link(client.graph, 1, 2)
            link(client.graph, 2, 3)
            assert taken.wait(20)
            client.stop()
            rest = list(stream)
    assert [each["event"] for each in rest] == ["delta", "goodbye"]


def test_goodbye_at_the_end(serve):
    with serve() as client:
        made = subscribe(client, PAIRS)
        with events(client, made) as stream:
            next(stream)
            link(client.graph, 1, 2)
            link(client.graph, 2, 3)
            client.stop()
            rest = list(stream)
    assert [each["event"] for each in rest] == ["delta", "goodbye"]
    assert rest[-1]["reason"] == "shutdown"
