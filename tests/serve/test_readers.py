"""A server beside the process that writes to its store: it follows, and keeps nothing itself."""

from __future__ import annotations

import random
import time

from serve.event_streams import Copy, bag, events, subscribe

from graphtide import LiveGraph
from graphtide.serve.subscriptions.hub import PREFIX

PAIRS = "SELECT ?a ?c { ?a <http://e/p> ?b . ?b <http://e/p> ?c }"
PATIENCE = 20


def shake(graph, chance, count):
    """Random changes, some of which change nothing."""
    for _ in range(count):
        change = graph.insert if chance.random() < 0.6 else graph.delete
        ends = (f"<http://e/{chance.randrange(4)}>" for _ in range(2))
        change(next(ends), "<http://e/p>", next(ends))


def until(true):
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_reader_follows_the_writer(serve, tmp_path):
    chance = random.Random(7)
    with LiveGraph.open(tmp_path) as writer:
        watched = writer.watch(PAIRS)
        shake(writer, chance, 20)
        writer.flush()
        with serve(LiveGraph.open(tmp_path, read_only=True)) as client:
            made = subscribe(client, PAIRS)
            with events(client, made) as stream:
                copy = Copy()
                copy.take(next(stream))
                # As a server that writes would: the names of a reader are others.
                writer.watch(PAIRS, name=PREFIX + made["id"].split(".")[0])
                for _ in range(6):
                    shake(writer, chance, 10)
                writer.insert("<http://e/x>", "<http://e/p>", "<http://e/y>")
                writer.insert("<http://e/y>", "<http://e/p>", "<http://e/z>")
                writer.flush()
                last = writer.transactions - 1
                while copy.seq < last:
                    copy.take(next(stream))
            assert copy.rows.total() == watched.count()
            assert copy.rows == bag(client.get("/sparql", params={"query": PAIRS}).json())
            deltas = [delta.seq for delta in watched.deltas() if delta.seq >= copy.seen[1]]
            assert copy.seen[1:] == deltas
            assert client.get("/healthz").text == "ok\n"


def test_a_reader_keeps_nothing_for_its_clients(serve, tmp_path):
    with LiveGraph.open(tmp_path) as writer:
        writer.watch(PAIRS, name=f"{PREFIX}other")
        writer.flush()
        with serve(LiveGraph.open(tmp_path, read_only=True)) as client:
            body = {"query": PAIRS, "cursor": "mailer"}
            refused = client.post("/subscriptions", json=body)
            assert refused.status_code == 400 and "--read-only" in refused.json()["hint"]
            subscribe(client, PAIRS)
            asked = client.post("/api/queries", json={"text": PAIRS}).json()["name"]
            assert asked.startswith("asked-")
    with LiveGraph.open(tmp_path) as again:
        assert [query.name for query in again.queries] == [f"{PREFIX}other"]


def test_a_store_that_cannot_be_followed_any_more_is_told(serve, tmp_path):
    with LiveGraph.open(tmp_path) as writer:
        writer.insert("<http://e/x>", "<http://e/p>", "<http://e/y>")
        writer.flush()
        with serve(LiveGraph.open(tmp_path, read_only=True)) as client:
            client.post("/api/queries", json={"text": PAIRS, "name": "Mine"})
            writer.watch(PAIRS, name="Mine")
            writer.flush()
            until(lambda: client.get("/healthz").status_code == 503)
            assert "Mine" in client.get("/healthz").text
            there = client.get("/sparql", params={"query": "ASK { ?s ?p ?o }"})
            assert there.json()["boolean"] is True


def test_delete_lets_the_cursor_go(serve, tmp_path):
    with serve(LiveGraph.open(tmp_path)) as client:
        mailer, other = (subscribe(client, PAIRS, cursor=name) for name in ("mailer", "other"))
        for pair in ("ab", "bc"):
            client.graph.insert(f"<http://e/{pair[0]}>", "<http://e/p>", f"<http://e/{pair[1]}>")
        for made in (mailer, other):
            acked = client.post(f"/subscriptions/{made['id']}/ack", json={"seq": 1})
            assert acked.status_code == 204
        where = f"/subscriptions/{mailer['id']}"
        assert client.delete(where).status_code == 204
        assert client.get(where).status_code == 404
        journal = client.graph.store.store.journal
        assert [name for _, name in journal.cursors()] == ["other"]
        again = subscribe(client, PAIRS, cursor="mailer")
        with events(client, again) as stream:
            assert next(stream)["event"] == "answer"  # from the beginning
        for made in (again, other):
            assert client.delete(f"/subscriptions/{made['id']}").status_code == 204
        assert not client.graph.queries
        assert journal.cursors() == {}
