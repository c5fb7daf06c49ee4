"""Changes and events from outside, once each, and on disk before the answer."""

from __future__ import annotations

import io
import json
from hashlib import sha256

import pytest

from graphtide import LiveGraph, Program, read_changes
from graphtide.errors import GraphtideError
from graphtide.serve.changes import RequestLog
from graphtide.serve.host import Host

PATCH = """TX .
A <http://e/a> <http://e/p> <http://e/b> .
A <http://e/a> <http://e/p> <http://e/c> .
TC .
TX .
D <http://e/a> <http://e/p> <http://e/b> .
TC .
"""


def post(client, body, kind="application/rdf-patch", **headers):
    return client.post("/changes", content=body, headers={"content-type": kind, **headers})


def lines(*objects):
    return "\n".join(map(json.dumps, objects))


def test_rdf_patch_in_transactions(client):
    watch = client.graph.watch("SELECT ?o { ?s ?p ?o }")
    done = post(client, PATCH)
    assert done.status_code == 202
    assert done.json() == {"transactions": 2, "changes": 3, "tx": 1, "time": 0}
    assert [len(delta) for delta in watch.deltas()] == [2, 1]
    client.graph.advance(to=17)
    assert post(client, PATCH).json()["time"] == 17  # without a time, it happens now
    assert post(client, "TX .\nH time 20 .\nA <ex:a> <ex:a> <ex:a> .\nTC .\n").json()["time"] == 20
    late = post(client, "TX .\nH time 3 .\nA <ex:a> <ex:a> <ex:b> .\nTC .\n")
    assert late.status_code == 400
    assert "backwards" in late.json()["title"]


def test_quads_and_lines_of_json(client):
    quads = "<ex:a> <ex:p> <ex:b> <ex:g> .\n<ex:a> <ex:p> <ex:c> .\n"
    assert post(client, quads, "application/n-quads").json()["transactions"] == 1
    body = lines(
        {"s": "<ex:a>", "p": "<ex:p>", "o": {"type": "literal", "value": "x", "xml:lang": "en"}},
        {"diff": -1, "s": "<ex:a>", "p": "<ex:p>", "o": "<ex:b>", "g": "<ex:g>", "time": 5},
        {"time": 6, "changes": [{"s": "_:b", "p": "<ex:p>", "o": f'"{n}"'} for n in (1, 2)]},
        {"time": 7, "tx": 1, "s": "<ex:a>", "p": "<ex:q>", "o": "<ex:b>"},
        {"time": 7, "tx": 1, "s": "<ex:a>", "p": "<ex:r>", "o": "<ex:b>"},
    )  # fmt: skip
    done = post(client, body, "application/x-ndjson").json()
    assert done == {"transactions": 4, "changes": 6, "tx": 4, "time": 7}
    found = {(str(s), str(p), str(o), g and str(g)) for s, p, o, g in client.graph.quads()}
    assert found == {
        ("<ex:a>", "<ex:p>", "<ex:c>", None),
        ("<ex:a>", "<ex:p>", '"x"@en', None),
        ("_:b", "<ex:p>", '"1"', None),
        ("_:b", "<ex:p>", '"2"', None),
        ("<ex:a>", "<ex:q>", "<ex:b>", None),
        ("<ex:a>", "<ex:r>", "<ex:b>", None),
    }


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        ("A <ex:a> <ex:p> .", "application/rdf-patch", 400),
        ("TX .\nA <ex:a> <ex:p> <ex:b> .\n", "application/rdf-patch", 400),
        ("<ex:a> <ex:p> .", "application/n-quads", 400),
        ("{", "application/x-ndjson", 400),
        ("[]", "application/x-ndjson", 400),
        (lines({"s": "<ex:a>", "p": "<ex:p>"}), "application/x-ndjson", 400),
        (lines({"s": "a", "p": "<ex:p>", "o": "<ex:p>"}), "application/x-ndjson", 400),
        (lines({"s": '"a"', "p": "<ex:p>", "o": "<ex:p>"}), "application/x-ndjson", 400),
        (lines({"diff": 2, "s": "<ex:a>", "p": "<ex:p>", "o": "<ex:p>"}), "application/jsonl", 400),
        (lines({"time": 1.5, "s": "<a:>", "p": "<a:>", "o": "<a:>"}), "application/jsonl", 400),
        (lines({"changes": 7}), "application/jsonl", 400),
        ("", "text/turtle", 415),
    ],
)  # fmt: skip
def test_what_is_wrong_changes_nothing(client, body, kind, status):
    good = "TX .\nA <ex:ok> <ex:p> <ex:b> .\nTC .\n" if "patch" in kind else ""
    assert post(client, good + body, kind).status_code == status
    assert len(client.graph) == 0


def test_a_key_is_applied_once(client):
    key = {"idempotency-key": "k1"}
    first = post(client, PATCH, **key).json()
    client.graph.insert("<http://e/a>", "<http://e/p>", "<http://e/b>")
    again = post(client, PATCH, **key)
    assert (again.status_code, again.json()["repeated"]) == (202, True)
    assert client.graph.transactions == first["tx"] + 2
    assert len(client.graph) == 2  # nothing was deleted again
    assert post(client, PATCH + "\n", **key).status_code == 422
    wrong = post(client, "A <ex:a> .", **{"idempotency-key": "k2"})
    assert wrong.status_code == 400
    assert post(client, PATCH, **{"idempotency-key": "k2"}).json().get("repeated") is None
    assert post(client, PATCH, **{"idempotency-key": "x" * 201}).status_code == 400


def test_keys_and_changes_survive_a_restart(serve, tmp_path):
    key = {"idempotency-key": "k1"}
    with serve(LiveGraph.open(tmp_path)) as client:
        done = post(client, PATCH, **key).json()
        with LiveGraph.open(tmp_path, read_only=True) as other:
            assert other.transactions == done["tx"] + 1  # on disk before the answer
    with serve(LiveGraph.open(tmp_path)) as client:
        assert post(client, PATCH, **key).json()["repeated"] is True
        assert client.graph.transactions == done["tx"] + 1


@pytest.mark.parametrize("applied", [0, 1, 2])
@pytest.mark.slow
def test_a_crash_in_the_middle_is_made_good(serve, tmp_path, applied):
    """The key is on disk, and only some of its transactions: a retry applies the others."""
    with LiveGraph.open(tmp_path) as graph:
        graph.insert("<ex:x>", "<ex:x>", "<ex:x>")
    with LiveGraph.open(tmp_path) as graph:
        log = RequestLog(Host(graph))
        log._add("k1", sha256(PATCH.encode()).hexdigest(), graph.transactions, 2, 0)
        log._database.close()
        (batch,) = read_changes(io.BytesIO(PATCH.encode()), format="rdfp")
        for part in list(batch.transactions())[:applied]:
            graph.apply(part)
    with serve(LiveGraph.open(tmp_path)) as client:
        done = post(client, PATCH, **{"idempotency-key": "k1"}).json()
        assert done["tx"] == 2
        assert client.graph.transactions == 3
        assert bool(done.get("repeated")) is (applied == 2)
        assert ("<http://e/a>", "<http://e/p>", "<http://e/c>") in client.graph
        assert len(client.graph) == 2


def test_events_reach_programs_and_have_keys(serve):
    graph, heard = LiveGraph(), []
    program = Program.parse(
        """PREFIX : <http://e/>
        EVENT Hot(?room) AS { ?e a :Hot ; :room ?room }
        RULE Note ON Hot(?room) THEN CALL note(?room)"""
    )
    graph.run(program, functions={"note": heard.append})
    kind = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
    event = {
        "time": 3,
        "triples": [
            {"s": "_:e", "p": f"<{kind}>", "o": "<http://e/Hot>"},
            {"s": "_:e", "p": "<http://e/room>", "o": "<http://e/kitchen>"},
        ],
    }
    with serve(graph) as client:
        for repeated in (None, True):
            done = client.post(
                "/streams/http%3A%2F%2Fe%2Fs/events",
                content=lines(event),
                headers={"content-type": "application/x-ndjson", "idempotency-key": "k"},
            )
            assert (done.status_code, done.json().get("repeated")) == (202, repeated)
        graph.advance(to=10)
        assert [str(each) for each in heard] == ["<http://e/kitchen>"]
        bad = client.post(
            "/streams/nothing/events", content="{}", headers={"content-type": "application/jsonl"}
        )
        assert bad.status_code == 400


def test_a_read_only_store_is_only_read(serve, tmp_path):
    with LiveGraph.open(tmp_path) as graph:
        graph.insert("<ex:a>", "<ex:p>", "<ex:b>")
    with serve(LiveGraph.open(tmp_path, read_only=True)) as client:
        assert post(client, PATCH).status_code == 400
        answer = client.get("/sparql", params={"query": "ASK { ?s ?p ?o }"})
        assert answer.json()["boolean"] is True
    with pytest.raises(GraphtideError):
        LiveGraph.open(tmp_path / "none", read_only=True)
