"""The steps of a program, in order, with the reasons for what is dropped; and no other results."""

import json
from random import Random

import pytest

from graphtide import LiveGraph, Program
from graphtide.errors import GraphtideError
from graphtide.rules.running.tracing import chrome_trace

EX = "<http://example.org/{}>".format
HEAD = """PREFIX : <http://example.org/>
QUERY Open AS SELECT ?d { ?d :is :open }
EVENT Knock(?d) AS { ?d :is :knocked }
EVENT Ring(?d) AS { ?d :is :rung }
EVENT Opened(?d) ON APPEAR OF Open
"""


def traced(text, functions=(), **options):
    graph = LiveGraph()
    program = graph.run(
        Program.parse(HEAD + text), functions=dict.fromkeys(functions, lambda *_: None), **options
    )
    records = []
    program.on_trace(records.append)
    return graph, program, records


def happen(graph, what, time, door="d"):
    graph.publish([(EX(door), EX("is"), EX(what))], time=time)


def lines(records):
    return [record.line(lambda term: term.value.rpartition("/")[2]) for record in records]


def test_tokens_begin_move_and_end():
    graph, _, records = traced("PATTERN Twice(?d) AS Knock(?d) -> Knock(?d) -> Ring(?d)")
    happen(graph, "knocked", 1)
    happen(graph, "knocked", 2)
    happen(graph, "rung", 3)
    assert lines(records) == [
        "1 event Knock ?d=d",
        "1 token Twice 0 begins ?d=d: at 1",
        "2 event Knock ?d=d",
        "2 token Twice 0 moves ?d=d: at 2",
        "3 event Ring ?d=d",
        "3 token Twice 0 ends ?d=d",
        "3 match Twice ?d=d",
    ]


def test_a_token_is_dropped_with_its_reason():
    graph, _, records = traced("PATTERN Soon(?d) AS (Knock(?d) -> Ring(?d)) WITHIN 5s")
    happen(graph, "knocked", 1)
    graph.advance(20)
    (dropped,) = [record for record in records if record.step == "is dropped"]
    assert (dropped.kind, dropped.name, dropped.time) == ("token", "Soon", 6)
    assert dropped.detail == "its time ran out"


def test_a_match_that_waits_fires_or_is_dropped():
    graph, _, records = traced(
        "RULE Alone WHEN EVENT k = Knock(?d) NO EVENT r = Ring(?d) AFTER[0,5] k THEN CALL f(?d)",
        ["f"],
    )
    happen(graph, "knocked", 1, "a")
    happen(graph, "knocked", 2, "b")
    happen(graph, "rung", 4, "a")
    graph.advance(20)
    assert lines(records) == [
        "1 event Knock ?d=a",
        "1 wait Alone 0 begins ?d=a: until 6",
        "2 event Knock ?d=b",
        "2 wait Alone 1 begins ?d=b: until 7",
        "4 event Ring ?d=a",
        "4 wait Alone 0 is dropped ?d=a: NO EVENT r came at 4",
        "7 wait Alone 1 ends ?d=b",
        "7 firing Alone 0 ?d=b: k at 2",
    ]


def test_what_an_action_causes_comes_after_its_firing():
    graph, _, records = traced(
        "RULE Let ON Knock(?d) THEN INSERT { ?d :is :open }\n"
        "RULE Told ON Opened(?d) THEN CALL f(?d)",
        ["f"],
    )
    happen(graph, "knocked", 1)
    assert [(each.kind, each.name) for each in records] == [
        ("event", "Knock"),
        ("firing", "Let"),
        ("event", "Opened"),
        ("firing", "Told"),
    ]


def test_activations():
    graph, program, records = traced(
        "RULE Told ON Opened(?d) THEN CALL f(?d)", ["f"], firing="manual"
    )
    for door in "ab":
        graph.insert(EX(door), EX("is"), EX("open"), time=1)
    program.fire()
    graph.delete(EX("b"), EX("is"), EX("open"), time=2)
    happen(graph, "rung", 3)
    assert lines(records) == [
        "1 event Opened ?d=a",
        "1 activation Told 0 begins ?d=a",
        "1 event Opened ?d=b",
        "1 activation Told 1 begins ?d=b",
        "1 activation Told 0 ends ?d=a",
        "1 firing Told 0 ?d=a: Opened at 1",
        "3 event that no rule or pattern names",
        "3 activation Told 1 is dropped ?d=b: what it matched, or a fact, is not there any more",
    ]


def test_a_retracted_event():
    graph, _, records = traced(
        "RULE Back WHEN EVENT k = Knock(?d) EVENT r = Ring(?d) AFTER[0,3] k THEN RETRACT k\n"
        "RULE Alone WHEN EVENT k = Knock(?d) NO EVENT o = Opened(?d) AFTER[0,9] k THEN CALL f(?d)",
        ["f"],
    )
    happen(graph, "knocked", 1)
    happen(graph, "rung", 2)
    assert lines(records)[-1] == "2 wait Alone 0 is dropped ?d=d: an event of it was retracted"


def test_json_and_chrome():
    graph, _, records = traced("PATTERN Soon(?d) AS (Knock(?d) -> Ring(?d)) WITHIN 5s")
    happen(graph, "knocked", 1)
    graph.advance(20)
    assert records[0].as_json() == {
        "time": 1, "kind": "event", "name": "Knock", "values": {"d": EX("d")},
    }  # fmt: skip
    events = json.loads("\n".join(chrome_trace(records, 1000)))
    spans = [each for each in events if each.get("cat") == "token"]
    assert [(each["ph"], each["ts"]) for each in spans] == [("b", 1_000_000), ("e", 6_000_000)]
    assert len({each["id"] for each in spans}) == 1
    assert {each["ph"] for each in events} <= {"M", "b", "n", "e", "i"}


def test_a_replacement_is_traced_on():
    graph, program, records = traced("RULE A ON Knock(?d) THEN CALL f(?d)", ["f"])
    program.replace(HEAD + "RULE B ON Knock(?d) THEN CALL f(?d)")
    happen(graph, "knocked", 1)
    assert [(each.kind, each.name) for each in records] == [("event", "Knock"), ("firing", "B")]


def test_with_retract_and_patterns_from_the_start_only():
    text = (
        "PATTERN P(?d) AS Knock(?d) -> Ring(?d)\n"
        "RULE Back WHEN EVENT k = Knock(?d) EVENT r = Ring(?d) AFTER[0,3] k THEN RETRACT k"
    )
    graph = LiveGraph()
    program = graph.run(Program.parse(HEAD + text))
    happen(graph, "knocked", 1)
    with pytest.raises(GraphtideError, match="from its start"):
        program.on_trace(print)


@pytest.mark.parametrize("seed", range(8))
def test_tracing_changes_nothing(seed):
    text = HEAD + (
        "PATTERN Soon(?d) AS (Knock(?d) -> Ring(?d)) WITHIN 3s\n"
        "PATTERN Next(?d) AS Knock(?d) -> Ring(?d) CONTEXT STRICT PER ?d\n"
        "RULE Let ON Soon(?d) THEN INSERT { ?d :is :open }\n"
        "RULE Alone WHEN EVENT k = Knock(?d) NO EVENT r = Ring(?d) AFTER[0,4] k THEN CALL f(?d)\n"
        "RULE Told ON Opened(?d) THEN DELETE { ?d :is :open }"
    )
    outputs = []
    for listens in (False, True):
        rng, graph, records, time = Random(seed), LiveGraph(), [], 0
        program = graph.run(Program.parse(text), functions={"f": lambda _: None})
        if listens:
            program.on_trace(records.append)
        for _ in range(60):
            time += rng.choice((0, 1, 1, 3))
            happen(graph, rng.choice(("knocked", "rung")), time, rng.choice("ab"))
        graph.advance(time + 10)
        fired = [(f.rule, f.time, f.values, f.events) for f in program.firings()]
        outputs.append((fired, program.matches("Soon"), program.matches("Next")))
    assert outputs[0] == outputs[1]
    firings = [(r.name, r.time, r.values) for r in records if r.kind == "firing"]
    assert firings == [(rule, at, values) for rule, at, values, _ in outputs[1][0]]
    assert sum(r.kind == "match" for r in records) == len(outputs[1][1]) + len(outputs[1][2])
