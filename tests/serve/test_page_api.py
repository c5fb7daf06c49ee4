"""The API of the page: the same answers as the graph gives in process."""

from __future__ import annotations

import json

import httpx
import pytest
from support.page_server import serving

import graphtide as gt
from graphtide.datasets.railway import PREFIX, QUERIES, change_stream
from graphtide.serve.app import create_app
from graphtide.serve.host import Host
from graphtide.serve.page.data import MAX_OWN_QUERIES, PageData, check
from graphtide.serve.server import serving as serving_app

DOORS = """
PREFIX : <http://example.org/>
QUERY Open AS SELECT ?door { ?door :is :open }
EVENT Opened(?door) ON APPEAR OF Open(?door)
EVENT Closed(?door) ON DISAPPEAR OF Open(?door)
PATTERN Left(?door) AS Opened(?door) -> NOT Closed(?door) WITHIN 30s
RULE Warn ON Left(?door) THEN INSERT { ?door :was :left }
GOAL Shut NONE OF Open
FIX Close ON Open THEN DELETE { ?door :is :open }
"""
IRI = "<http://example.org/{}>".format


@pytest.fixture
def graph():
    graph = gt.LiveGraph()
    for name, text in QUERIES.items():
        graph.watch(text, name=name)
    for batch in change_stream(20, seed=3):
        graph.apply(batch)
    return graph


@pytest.fixture
def doors():
    graph = gt.LiveGraph()
    graph.run(gt.Program.parse(DOORS))
    return graph


@pytest.fixture
def client(graph):
    with serving(graph) as address, httpx.Client(base_url=address) as found:
        yield found


def test_the_overview_has_the_numbers_of_the_graph(client, graph):
    found = client.get("/api/overview").json()
    stats = graph.stats()
    assert (found["clock"], found["tx"], found["quads"]) == (
        stats.clock,
        stats.transactions,
        stats.quads,
    )
    rows = {each["name"]: each["rows"] for each in found["queries"]}
    assert rows == {query.name: query.count() for query in graph.queries}
    assert found["history"] is None
    last = found["queries"][0]["last"]
    assert last["seq"] == list(graph.queries[0].deltas())[-1].seq


def test_rates_are_of_the_rows_since_the_last_look(graph, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("graphtide.serve.page.data.time.monotonic", lambda: now[0])
    data = PageData(graph)
    data.overview()
    for k in range(5):
        graph.insert(IRI(f"a{k}"), IRI("p"), 1)
    lengths = graph.watch(
        "SELECT ?a { ?a <http://example.org/p> 1 }", name="P"
    )  # seen for the first time: its rows are no rate
    now[0] += 2
    found = data.overview()
    assert found["changes_per_second"] == 2.5
    assert sum(found["queries"][-1]["added"]) == 0
    graph.insert(IRI("b"), IRI("p"), 1)
    graph.delete(IRI("a0"), IRI("p"), 1)
    graph.delete(IRI("a1"), IRI("p"), 1)
    now[0] += 1
    found = data.overview()["queries"][-1]
    assert (found["added"][-1], found["removed"][-1], found["rows"]) == (1, 2, lengths.count())


def test_rows_come_in_parts(client, graph):
    query = graph.queries[0]
    whole = query.table(terms=True).to_pylist()
    found = [
        client.get("/api/queries/RouteSensor/rows", params={"offset": at, "limit": 1}).json()
        for at in range(len(whole) + 1)
    ]
    assert {part["total"] for part in found} == {len(whole)}
    assert found[0]["head"]["vars"] == list(query.variables)
    shown = [row for part in found for row in part["results"]["bindings"]]
    assert [{k: f"<{v['value']}>" for k, v in row.items()} for row in shown] == whole


def test_deltas_after_a_number(client, graph):
    query = graph.queries[2]
    expected = list(query.deltas())[::-1]
    found = client.get("/api/queries/SwitchSet/deltas", params={"limit": 3}).json()["deltas"]
    assert [each["seq"] for each in found] == [delta.seq for delta in expected[:3]]
    assert found[0]["added"] == len(expected[0].added())
    after = expected[1].seq
    found = client.get("/api/queries/SwitchSet/deltas", params={"after": after}).json()["deltas"]
    assert [each["seq"] for each in found] == [expected[0].seq]


def test_the_plan_says_why(client, graph):
    found = client.get("/api/queries/SwitchSet/plan").json()
    query = graph.queries[2]
    assert found["text"] == query.explain() and found["strategy"] == query.strategy
    assert len(found["nodes"]) == len(found["edges"]) + 1
    assert found["nodes"][0]["lines"] == [found["text"].splitlines()[1]]
    assert "expected for" in found["why"] and "which is running" in found["why"]
    pinned = graph.watch("SELECT * { ?a ?b ?c . ?c ?d ?e }", strategy="rete", name="R")
    assert client.get("/api/queries/R/plan").json()["why"] == "rete was asked for"
    assert pinned.strategy == "rete"


def test_why_and_why_not_are_those_of_the_query(client, graph):
    query = graph.queries[2]
    row = query.table(terms=True).to_pylist()[0]
    found = client.post("/api/queries/SwitchSet/why", json={"row": row, "all": False})
    assert found.json() == json.loads(query.why(row).json())
    asked = {"bindings": {"route": ":route77"}}
    found = client.post("/api/queries/SwitchSet/why-not", json=asked)
    iri = "<http://www.semanticweb.org/ontologies/2015/trainbenchmark#route77>"
    assert found.json() == json.loads(query.why_not(route=iri).json())


def test_a_pattern_its_tokens_and_its_rule(doors):
    data = PageData(doors)
    doors.insert(IRI("north"), IRI("is"), IRI("open"), time=10)
    found = data.answer("GET", ["patterns", "Left"])
    (token,) = found["tokens"]
    assert token["since"] == 10 and token["until"] == 40
    assert token["values"]["door"]["value"] == "http://example.org/north"
    assert len(token["waits_for"]) == 1 and "Closed" in token["waits_for"][0]
    assert found["tokens_at"] == [0, 1, 0]
    doors.advance(50)
    assert data.answer("GET", ["patterns", "Left"])["matched"] == 1
    (firing,) = data.answer("GET", ["rules", "Warn"])["firings"]
    (expected,) = doors.programs[0].firings()
    assert firing["time"] == expected.time == 40
    assert firing["events"] == {name: list(span) for name, span in expected.events.items()}
    kinds = {each["name"]: each["kind"] for each in data.overview()["queries"]}
    assert kinds == {"Open": "query", "Left": "pattern", "Warn": "rule"}  # none of its own


def test_goals_are_repaired(doors):
    data = PageData(doors)
    doors.insert(IRI("north"), IRI("is"), IRI("open"))
    (program,) = data.answer("GET", ["repairs"])["programs"]
    assert program["goals"][0]["violations"] == 1
    found = data.answer("POST", ["repairs", "preview"], body={"program": program["name"]})
    plan = found["plans"][0]
    assert plan["solves"] and plan["preview"]["Open"][0]["diff"] == -1
    assert len(doors) == 1
    assert data.answer("POST", ["repairs", "apply"], body={"plan": plan["id"]}) == {"changed": 1}
    assert len(doors) == 0
    with pytest.raises(gt.GraphtideError, match="not known any more"):
        data.answer("POST", ["repairs", "apply"], body={"plan": plan["id"]})


def test_the_past_is_that_of_the_store(tmp_path):
    with gt.LiveGraph.open(tmp_path / "store") as graph:
        query = graph.watch("SELECT ?a { ?a ?p ?o }", name="All")
        for k in range(5):
            graph.insert(IRI(f"a{k}"), IRI("p"), k)
        data = PageData(graph)
        assert data.overview()["history"] == {
            "first_tx": 0, "last_tx": 5, "first_time": 0, "last_time": graph.clock,
        }  # fmt: skip
        for tx in (1, 3, 4):
            then = data.answer("GET", ["queries", "All", "rows"], {"at": str(tx)})
            assert then["total"] == tx
        row = {"a": IRI("a4")}
        why = data.answer("POST", ["queries", "All", "why-not"], body={"bindings": row, "at": 3})
        assert "is not in" in why["title"]
        assert query.count() == 5


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SELECT * { ?a ?b ?c }", "query"),
        ("SELECT (RAND() AS ?r) {}", "once"),
        ("PREFIX : <ex:>\nQUERY A AS SELECT * { ?a :b ?c }", "program"),
    ],
)
def test_a_text_is_known(text, kind):
    assert check(text) == {"ok": True, "kind": kind}


def test_an_error_has_its_place():
    found = check("SELECT * {\n  ?a ?b }")
    assert not found["ok"]
    assert (found["error"]["line"], found["error"]["column"]) == (2, 9)
    assert "\n" not in found["error"]["message"]


def test_queries_of_the_page_are_opened_and_closed(client, graph):
    text = "SELECT ?a { ?a ?p ?o }"
    assert client.post("/api/queries", json={"text": text, "name": "a/b"}).json() == {"name": "a/b"}
    assert client.get("/api/queries/a%2Fb").json()["rows"] == graph.queries[-1].count()
    assert client.post("/api/queries", json={"text": text, "name": "a/b"}).status_code == 400
    assert client.delete("/api/queries/SwitchSet").status_code == 400
    assert client.delete("/api/queries/a%2Fb").json() == {"closed": "a/b"}
    assert client.get("/api/queries/a%2Fb").status_code == 404
    data = PageData(graph)
    for _ in range(MAX_OWN_QUERIES):
        data.watch(text)
    with pytest.raises(gt.GraphtideError, match="registered on the page"):
        data.watch(text)


def test_what_is_wrong_is_said(client):
    wrong = [
        client.get("/api/nothing"),
        client.get("/api/queries/None"),
        client.get("/api/queries/SwitchSet/rows?offset=-1"),
        client.get("/api/queries/SwitchSet/rows?limit=many"),
        client.get("/api/overview?at=3"),
        client.get("/api/queries/None/events"),
        client.post("/api/ask", content=b"no JSON"),
        client.post("/api/ask", json=[]),
        client.post("/api/ask", json={"text": 7}),
        client.post("/api/queries/SwitchSet/why", json={"row": "x"}),
        client.post("/api/queries/SwitchSet/why", json={"row": {"no": None}}),
        client.post("/api/ask", content=b" " * 1_100_000),
    ]
    assert [each.status_code for each in wrong] == [404, 404, *[400] * 3, 404, *[400] * 6]
    assert all(each.json()["error"]["message"] for each in wrong)


def test_events_follow_until_the_server_ends(graph):
    query = graph.queries[3]
    with httpx.Client() as client:
        with serving(graph) as address:
            lines = client.send(
                client.build_request("GET", f"{address}api/queries/PosLength/events"), stream=True
            ).iter_lines()
            assert json.loads(next(lines).removeprefix("data: "))["rows"] == query.count()
            graph.update(f"{PREFIX} INSERT DATA {{ :s99 a :Segment ; :length -1 }}")
            assert next(lines) == ""
            changed = json.loads(next(lines).removeprefix("data: "))
            assert changed["rows"] == query.count()
        assert list(lines)[-3:] == ["event: goodbye", "data: {}", ""]


def test_the_files_keep_to_themselves(client):
    found = client.get("/")
    assert found.status_code == 200 and "<title>Graphtide</title>" in found.text
    policy = found.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    assert client.get("/vendor/dagre.LICENSE").status_code == 200
    assert client.get("/../page_api.py").status_code == 404


def test_a_token_to_read_looks_and_asks_but_does_not_repair(doors):
    tokens = {"r" * 20: "read", "w" * 20: "write"}
    doors.insert(IRI("north"), IRI("is"), IRI("open"))
    with serving_app(create_app(Host(doors), tokens=tokens)) as server:
        ask = httpx.Client(base_url=server.url)
        assert ask.get("/").status_code == 200
        assert ask.get("/api/overview").status_code == 401
        ask.headers["authorization"] = f"Bearer {'r' * 20}"
        assert ask.get("/api/overview").status_code == 200
        assert ask.post("/api/check", json={"text": "ASK {}"}).json()["ok"]
        name = doors.programs[0].name
        found = ask.post("/api/repairs/preview", json={"program": name}).json()
        plan = {"plan": found["plans"][0]["id"]}
        assert ask.post("/api/repairs/apply", json=plan).status_code == 403
        ask.headers["authorization"] = f"Bearer {'w' * 20}"
        assert ask.post("/api/repairs/apply", json=plan).json() == {"changed": 1}
        ask.close()


def test_viewers_of_the_same_share_an_answer(graph, monkeypatch):
    asked = []
    answer = PageData.answer
    monkeypatch.setattr(
        PageData, "answer", lambda self, *given: asked.append(given) or answer(self, *given)
    )
    with serving(graph) as address, httpx.Client() as client:
        request = client.build_request("GET", f"{address}api/overview/events")
        streams = [client.send(request, stream=True).iter_lines() for _ in range(5)]
        assert len({next(lines) for lines in streams}) == 1
    assert len(asked) <= 2
