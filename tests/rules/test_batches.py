"""A batch of events fires what the same events fire one by one, in the same order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rules.brute_force import matches
from rules.histories import found, gaps, happenings, rules, run
from support.programs import publish
from support.programs import run as run_program

from graphtide import LiveGraph
from graphtide.engine.events import make_events
from graphtide.rules.model import Rule

TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def iri(name):
    return f"<http://example.org/{name}>"


def fired(engine):
    return [(f.rule, f.time, f.number, f.values, f.events, f.why()) for f in engine.firings()]


@settings(deadline=None, max_examples=200)
@given(rules(), happenings, gaps)
@pytest.mark.slow
def test_matches_of_batches_are_those_of_the_definition(rule, history, times):
    engine, events, states = run([rule], history, times, batched=True)
    assert found(engine, rule) == matches(rule, events, states, 60)


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.tuples(st.one_of(rules(), rules(denied=True)), st.integers(0, 1)),
             min_size=1, max_size=3),
    happenings, gaps, st.integers(1, 5),
)  # fmt: skip
def test_several_rules_fire_in_the_same_order(drawn, history, times, stride):
    several = [
        Rule(f"rule{n}", rule.events, rule.facts, rule.test, priority)
        for n, (rule, priority) in enumerate(drawn)
    ]
    single, *_ = run(several, history, times)
    batched, *_ = run(several, history, times, batched=True, stride=stride)
    assert fired(batched) == fired(single)
    assert batched.retained == single.retained


PROGRAM = """
PREFIX : <http://example.org/>
QUERY Busy AS SELECT ?x { ?x :busy ?y }
EVENT A(?x, ?n) AS { ?n :a ?x }
EVENT B(?x, ?n) AS { ?n :b ?x }
EVENT Free(?x) ON DISAPPEAR OF Busy(?x)
RULE Pair      WHEN FACT { ?x :on ?y } EVENT a = A(?x, ?m) EVENT b = B(?x, ?n) AFTER[0,3] a
               THEN INSERT { ?m :then ?n }
RULE Twice     PRIORITY 1 WHEN EVENT a = A(?x, ?m) EVENT b = A(?x, ?n) AFTER[0,2] a
               THEN RETRACT a ; CALL tell(?m, ?n)
RULE Stop      WHEN EVENT b = B(?x, ?m) EVENT c = B(?x, ?n) AFTER[1,2] b
               THEN DELETE { ?x :on true } ; INSERT { ?x :busy ?n }
RULE Back      ON Free(?x) THEN INSERT { ?x :on true }
RULE Lonely    WHEN FACT { ?x :on ?y } EVENT a = A(?x, ?m) NO EVENT b = B(?x, ?n) AFTER[0,2] a
               THEN EMIT :s { ?m :b ?x } ; DELETE { ?x :busy ?m } ; INSERT { ?m :lonely ?x }
RULE Clear     WHEN FACT { ?x :busy ?y } EVENT b = A(?x, ?n) THEN DELETE { ?x :busy ?y }
"""


def start(calls):
    graph = LiveGraph()
    running = run_program(
        PROGRAM, graph,
        functions={"tell": lambda m, n: calls.append((str(m), str(n), graph.clock))},
    )  # fmt: skip
    graph.update(f"INSERT DATA {{ {iri('u')} {iri('on')} true }}")
    return graph, running


several_events = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from("uv"), st.sampled_from((0, 0, 1, 2))),
    max_size=25,
)


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(several_events, st.integers(1, 8))
def test_actions_that_concern_the_rules(history, stride):
    """Facts, events and retractions that actions cause are seen by the very next event."""
    time, events = 0, []
    for number, (kind, x, gap) in enumerate(history):
        time += gap
        events.append(([(iri(f"n{number}"), iri(kind), iri(x))], time))
    results = []
    for batched in (False, True):
        calls = []
        graph, running = start(calls)
        if batched:
            running._engine.batch_size = stride
            encode = graph.terms.encode
            ids = [[tuple(map(encode, t)) for t in triples] for triples, _ in events]
            publish(running, make_events(ids, [time for _, time in events]))
        else:
            for triples, at in events:
                graph.publish(triples, time=at)
        graph.advance(time + 10)
        quads = sorted(" ".join(map(str, quad)) for quad in graph.quads())
        results.append((fired(running), calls, quads, running.retained, graph.stats().transactions))
    assert results[0] == results[1]


def events_of(count):
    """Alarms at every tick, all confirmed after two."""
    rows, times = [], []
    for n in range(count):
        rows.append([(iri(f"a{n}"), TYPE, iri("Alarm")), (iri(f"a{n}"), iri("eqpt"), iri("pump"))])
        times.append(n)
        if n >= 2:
            rows.append(
                [(iri(f"c{n}"), TYPE, iri("Conf")), (iri(f"c{n}"), iri("alarm"), iri(f"a{n - 2}"))]
            )
            times.append(n)
    return rows, times


QUIET = """
PREFIX : <http://example.org/>
EVENT Alarm(?alarm, ?e)        AS { ?alarm a :Alarm ; :eqpt ?e }
EVENT Confirmation(?c, ?alarm) AS { ?c a :Conf ; :alarm ?alarm }
RULE R WHEN FACT { ?e :state :ACTIVE } EVENT a = Alarm(?alarm, ?e)
            EVENT c = Confirmation(?conf, ?alarm) AFTER[1,5] a
THEN INSERT { [] a :Confirmed ; :alarm ?alarm ; :by ?conf . ?alarm :seen true . ?e :seen true }
"""


def test_actions_that_only_insert_are_one_transaction_each():
    """Blank nodes, redundant quads and transactions come out as if each fired by itself."""
    rows, times = events_of(30)
    seen = []
    for batched in (False, True):
        graph = LiveGraph()
        running = run_program(QUIET, graph)
        graph.insert(iri("pump"), iri("state"), iri("ACTIVE"))
        watch = graph.watch(f"SELECT ?x {{ ?x {iri('seen')} true }}")
        if batched:
            encode = graph.terms.encode
            ids = [[tuple(map(encode, t)) for t in triples] for triples in rows]
            publish(running, make_events(ids, times))
        else:
            for triples, time in zip(rows, times, strict=True):
                graph.publish(triples, time=time)
        deltas = [(row.diff, row.time, str(row.row["x"])) for row in watch.rows()]
        quads = sorted(" ".join(map(str, quad)) for quad in graph.quads())
        seen.append((quads, deltas, graph.stats().transactions, graph.clock, fired(running)))
    assert len(seen[0][4]) == 28
    assert seen[0] == seen[1]


def test_firings_are_looked_at_by_place():
    rows, times = events_of(10)
    graph = LiveGraph()
    running = run_program(QUIET, graph)
    graph.insert(iri("pump"), iri("state"), iri("ACTIVE"))
    encode = graph.terms.encode
    ids = [[tuple(map(encode, t)) for t in triples] for triples in rows]
    publish(running, make_events(ids, times))
    assert [f.time for f in running.firings()] == list(range(2, 10))
    assert running.firings()[0].time == running.firings()[-8].time == 2
    assert [f.time for f in running.firings()[2:4]] == [4, 5]
    with pytest.raises(IndexError):
        running.firings()[8]


def test_many_ways_to_match_one_event():
    """Each way once, in order; more than there is room for at first."""
    graph = LiveGraph()
    running = run_program(
        "PREFIX : <http://example.org/> EVENT E(?x, ?y) AS { ?a :x ?x . ?a :y ?y }\n"
        "RULE R WHEN EVENT E(?x, ?y) THEN INSERT { ?x :with ?y }",
        graph,
    )
    shuffled = np.random.default_rng(0).permutation
    xs, ys = shuffled(20), shuffled(15)
    graph.publish(
        [(iri("a"), iri("x"), int(x)) for x in xs] + [(iri("a"), iri("y"), int(y)) for y in ys]
    )
    assert len(running.firings()) == 300
    pairs = {(f.values["x"].value, f.values["y"].value) for f in running.firings()}
    assert pairs == {(str(x), str(y)) for x in range(20) for y in range(15)}
