"""What rules do on partitions: feedback, retracted events, loops, calls."""

from __future__ import annotations

from collections import Counter

import pytest
from spark.driver.alarms import ALARMS, SCENE, ex
from spark.stages.program_runs import (
    PREFIX,
    ProgramRun,
    change,
    event,
    in_process,
    iri,
    watermark,
    with_actions,
)

from graphtide.errors import ActionError, GraphtideError
from graphtide.lang.tide.program import Program
from graphtide.spark.partition.program import program_spec
from graphtide.spark.partition.windows import Clock
from graphtide.spark.state import cache


@pytest.mark.parametrize("partitions", [1, 2, 4])
def test_the_alarms_of_the_paper_one_transaction_at_a_time(partitions, tmp_path):
    alone = in_process(ALARMS, [row for part in SCENE[:-1] for row in part], 60)
    expected = [(f.rule, f.time, str(f.values["alarm"])) for f in alone.firings()]
    batches = [[*part, (*part[0][:2], 0, *[None] * 5)] for part in SCENE]
    _, fired = with_actions(ALARMS, batches, partitions, tmp_path, quiet=True)
    found = [(f.rule.name, f.time, f.values["alarm"]) for f in fired]
    assert found == expected
    assert ("AlarmConfirmation", 13, ex("a2")) in found
    assert ("AlarmCancelled", 12, ex("a1")) in found
    assert ("AlarmConfirmation", 13, ex("a1")) not in found


CHAIN = """
QUERY Border AS SELECT ?y { ?x :is :reached . ?x :next ?y FILTER NOT EXISTS { ?y :is :reached } }
EVENT Ping(?x) AS { ?x :ping ?y }
RULE Go ON APPEAR OF Border THEN INSERT { ?y :is :reached } ; EMIT :pings { ?y :ping ?y }
RULE Pong WHEN FACT { ?z :next ?x } EVENT Ping(?x) THEN INSERT { ?z :before ?x }
RULE Stop ON DISAPPEAR OF Border THEN DELETE { :n0 :is :reached }
"""


@pytest.mark.parametrize("quiet", [True, False])
def test_a_chain_of_actions_leads_to_the_same_graph(quiet, tmp_path):
    """By hand: n1 to n4 are reached one after the other, each after those before it."""
    rows = [change(1, 0, 1, f"n{i}", "next", f"n{i + 1}") for i in range(4)]
    rows += [change(1, 1, 1, "n0", "is", "reached"), change(2, 2, 1, "m0", "next", "m1")]
    batches = [rows[:5], rows[5:], [watermark(3)]]
    seen = PREFIX + CHAIN + "QUERY All AS SELECT ?s ?p ?o { ?s ?p ?o }"
    running, _ = with_actions(seen, batches, 2, tmp_path, quiet=quiet)
    there = Counter()
    for name, _, _, diff, values in running.deltas:
        if name == "All":
            there[values] += diff
    alone = in_process(seen, rows, 3)
    expected = {
        tuple(map(str, row.values())) for row in alone.queries["All"].table(terms=True).to_pylist()
    }
    assert {values for values, count in there.items() if count} == expected
    assert max(there.values()) == 1
    assert sum("before" in p for _, p, _ in expected) == 4
    assert not any("n0>" in s and "is>" in p for s, p, _ in expected)


def test_actions_without_end_are_stopped(tmp_path):
    text = (
        PREFIX
        + """
EVENT Ping(?x) AS { ?x :ping ?y }
EVENT Pong(?x) AS { ?x :pong ?y }
RULE A WHEN EVENT Ping(?x) THEN EMIT :s { ?x :pong ?x }
RULE B WHEN EVENT Pong(?x) THEN EMIT :s { ?x :ping ?x }
RULE C WHEN EVENT Pong(?x) THEN CALL f(?x)"""
    )
    rows = [*event(1, 0, ("<ex:a>", "<http://e/ping>", "<ex:a>")), watermark(2)]
    given = {"f": lambda _: None}
    with pytest.raises(GraphtideError, match="rules fire without end: A, B"):
        with_actions(text, [rows], 2, tmp_path, given, quiet=True, max_rounds=20)


def test_calls_have_ids_and_a_call_that_fails_stops_the_batch(tmp_path):
    text = (
        PREFIX
        + """EVENT Ping(?x, ?y) AS { ?x :ping ?y }
RULE A WHEN EVENT Ping(?x, ?y) THEN CALL f(?x)
RULE B PRIORITY 2 WHEN EVENT Ping(?x, ?y) THEN CALL g(?x, "b")"""
    )
    ping = "<http://e/ping>"
    rows = [*event(1, 0, ("<ex:a>", ping, "<ex:b>"), ("<ex:a>", ping, "<ex:c>")), watermark(2)]
    calls = []
    given = {
        "f": lambda x, firing_id: calls.append((str(x), firing_id)),
        "g": lambda *a: calls.append(a),
    }
    with_actions(text, [rows], 2, tmp_path, given, quiet=True)
    assert [len(call) for call in calls] == [2, 2, 2, 2]
    (_, one), (_, two) = calls[2:]
    again, calls[:] = list(calls), []
    with_actions(text, [rows[:1], rows[1:]], 4, tmp_path / "again", given, quiet=True)
    assert calls == again and one != two and len(one) == 32
    broken = {"f": lambda _: 1 // 0, "g": print}
    with pytest.raises(ActionError, match=r"the rule A at 1 with .*ZeroDivisionError"):
        with_actions(text, [rows], 2, tmp_path / "broken", broken, quiet=True)


def test_what_must_be_given_or_cannot_run_is_said(tmp_path):
    with pytest.raises(GraphtideError, match="the rule A calls f, which was not given"):
        with_actions(PREFIX + "EVENT E(?x) AS { ?x :p ?y } RULE A ON E(?x) THEN CALL f(?x)",
                     [], 1, tmp_path, quiet=True)  # fmt: skip
    with pytest.raises(GraphtideError, match="f takes a graph, and on Spark there is none to give"):
        with_actions(PREFIX + "EVENT E(?x) AS { ?x :p ?y } RULE A ON E(?x) THEN CALL f(?x)",
                     [], 1, tmp_path, {"f": lambda x, *, graph: None}, quiet=True)  # fmt: skip
    window = "FROM NAMED WINDOW :w ON :s [RANGE 10 STEP 5]"
    text = f"""{PREFIX}
QUERY Q AS REGISTER ISTREAM :o AS SELECT ?x {window} WHERE {{ WINDOW :w {{ ?x :p ?y }} }}
RULE A ON APPEAR OF Q THEN INSERT {{ ?x a :Seen }}"""
    with pytest.raises(GraphtideError, match="over windows, do not run on Spark"):
        program_spec(Program.parse(text), 2, 1000).check()


BOUNDED = (
    PREFIX
    + """
EVENT A(?x) AS { ?x :a ?y }
EVENT B(?x) AS { ?x :b ?y }
EVENT Up(?x) ON APPEAR OF Hot
QUERY Hot AS SELECT ?x { ?x :is :hot }
PATTERN P(?x) AS (A(?x) -> B(?x)) WITHIN 20s
RULE R WHEN FACT { ?x :is :hot } EVENT a = A(?x) EVENT b = B(?x) AFTER[0,20] a THEN CALL f(?x)
RULE N WHEN EVENT a = A(?x) NO EVENT b = B(?x) AFTER[0,20] a THEN CALL f(?x)
"""
)


@pytest.mark.slow
def test_an_endless_stream_keeps_a_bounded_state(monkeypatch):
    """By hand: rules need the events of 20 ticks, one each, twice; patterns look for tokens whose
    time is over when there are 1024 of them."""
    monkeypatch.setattr(cache, "SMALL_LOG", 50)
    running = ProgramRun(BOUNDED, 1)
    retained, logs = {"rules": [], "patterns": []}, []
    for batch in range(240):
        rows = []
        for time in range(20 * batch, 20 * batch + 20):
            diff = 1 if time % 14 < 7 else -1
            rows.append(change(time, 0, diff, f"n{time % 7}", "is", "hot"))
            rows += event(time, 1, (f"<ex:m{time}>", f"<http://e/{'ab'[time % 2]}>", "<ex:o>"))
        running.batch([rows])
        for name, found in retained.items():
            found.append(sum(engine.retained for engine in running.run.engines(name)))
        every = [log for logs_of in running.run.logs.values() for log in logs_of]
        logs.append(sum(log.head().size for log in every if log.head()))
    assert 0 < max(retained["rules"]) <= 60
    assert 0 < max(retained["patterns"]) <= 1200
    assert max(logs[120:]) < 1.2 * max(logs[:120])
    assert len(running.firings) > 2000


def test_late_events_are_set_aside():
    text = PREFIX + "EVENT A(?x) AS { ?x :a ?y }\nRULE R WHEN EVENT A(?x) THEN CALL f(?x)"
    early, late = (event(t, 0, ("<ex:x>", "<http://e/a>", f"<ex:y{t}>")) for t in (5, 3))
    running = ProgramRun(text, 2, clock=Clock(late="reject"))
    running.batch([early])
    running.batch([late])
    running.batch([[watermark(9)]])
    assert [(rule, time) for rule, time, *_ in running.firings] == [("R", 5)]
    ((time, _, words, reason),) = running.rejected
    assert (time, "<ex:y3>" in words, reason.split(":")[0]) == (3, True, "too late")
    running = ProgramRun(text, 2, clock=Clock(lateness=4))
    running.batch([early])
    running.batch([late])
    running.batch([[watermark(20)]])
    assert [time for _, time, *_ in running.firings] == [3, 5]
    assert running.rejected == []


TIMES = """
EVENT A(?x) AS { ?x :a ?y }
EVENT B(?x) AS { ?x :b ?y }
RULE R WHEN EVENT a = A(?x) EVENT b = B(?x) WHERE FILTER (TIMEOF(b) - TIMEOF(a) >= 2)
THEN INSERT { ?x :from TIMEOF(a) ; :to TIMEOF() }
RULE S WHEN FACT { ?x :from ?t } THEN INSERT { ?x :seen ?t }
QUERY All AS SELECT ?s ?p ?o { ?s ?p ?o }
"""


def test_times_of_events_in_tests_and_templates(tmp_path):
    steps = [(1, 0, "a"), (2, 1, "b"), (4, 2, "b")]
    rows = [event(time, tx, (iri("x"), iri(p), iri("y")))[0] for time, tx, p in steps]
    batches = [[row, (*row[:2], 0, *[None] * 5)] for row in rows] + [[watermark(9)]]
    alone = in_process(PREFIX + TIMES, rows, 9)
    running, fired = with_actions(PREFIX + TIMES, batches, 2, tmp_path, quiet=True)
    expected = [(f.rule, f.time, sorted(map(str, f.values.values()))) for f in alone.firings()]
    assert [(f.rule.name, f.time, sorted(f.values.values())) for f in fired] == expected
    assert [rule for rule, *_ in expected] == ["R", "S"]
    there = {values for name, *_, values in running.deltas if name == "All"}
    number = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'.format
    assert there == {
        (iri("x"), iri(p), number(n)) for p, n in [("from", 1), ("to", 4), ("seen", 1)]
    }


COMPUTED = """
EVENT A(?x, ?v) AS { ?x :a ?v }
EVENT B(?x, ?v) AS { ?x :b ?v }
RULE R WHEN EVENT a = A(?x, ?v) BIND (?v * 2 AS ?w)
THEN INSERT { ?x :half (?v / 2 AS ?half) ; :twice ?w } ;
EMIT :out { ?x :b (?w + TIMEOF(a) AS ?sum) }
RULE S ON B(?x, ?v) THEN INSERT { ?x :sum ?v }
QUERY All AS SELECT ?s ?p ?o { ?s ?p ?o }
"""


def test_computed_values_in_templates(tmp_path):
    number = '"{}"^^<http://www.w3.org/2001/XMLSchema#{}>'.format
    rows = event(3, 0, (iri("x"), iri("a"), number(7, "integer")))
    running, fired = with_actions(
        PREFIX + COMPUTED, [rows, [watermark(9)]], 2, tmp_path, quiet=True
    )
    assert [f.rule.name for f in fired] == ["R", "S"]
    assert {values for name, *_, values in running.deltas if name == "All"} == {
        (iri("x"), iri("half"), number("3.5", "decimal")),
        (iri("x"), iri("twice"), number(14, "integer")),
        (iri("x"), iri("sum"), number(17, "integer")),
    }
