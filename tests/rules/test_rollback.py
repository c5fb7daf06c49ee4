"""Rollback: a cascade that is stopped leaves no trace in graph, rules, patterns and events."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from patterns.random_patterns import declarations, streams
from rules.engine import Engine
from rules.histories import gaps, happenings, rules, triples
from rules.pattern_programs import event_ids, program_of
from support.programs import publish, run

from graphtide import LiveGraph
from graphtide.engine.events import make_events
from graphtide.errors import GraphtideError
from graphtide.patterns import history as token_history
from oracles.event_oracle import EventOracle


def iri(name):
    return f"<http://example.org/{name}>"


def happens(engine, history, times, begin, end):
    """Events and changes of the graph from one place up to another."""
    now = sum(times[:begin])
    for number in range(begin, min(end, len(history))):
        now += times[number]
        what = history[number]
        if isinstance(what[0], str):
            engine.assert_event(triples(*what, number), time=now)
        else:
            diff, subject, (predicate, object_) = what
            engine.advance(now)
            (engine.graph.insert if diff > 0 else engine.graph.delete)(subject, predicate, object_)


def seen(engine, since):
    return [(f.rule, f.time, f.values, f.events) for f in engine.firings()[since:]]


events = st.lists(
    st.tuples(st.sampled_from("AB"), *(st.sampled_from("uuvw") for _ in "xy")), max_size=30
)


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.one_of(rules(), rules(denied=True)), min_size=1, max_size=2),
    happenings, gaps, events, st.integers(0, 14), st.integers(1, 30), st.data(),
)  # fmt: skip
def test_what_rules_remember_comes_back(drawn, history, times, between, at, width, data):
    """Events that were taken in and retracted in between leave no trace, however many they were."""
    engines = []
    for goes_astray in (False, True):
        engine = Engine()
        for name in "uvw":  # matches fire in the order of ids
            engine.graph.terms.encode(f"<ex:{name}>")
        for number, rule in enumerate(drawn):
            engine.add(type(rule)(f"rule{number}", rule.events, rule.facts, rule.test))
        happens(engine, history, times, 0, at)
        before = len(engine.firings())
        if goes_astray:
            order, now, kept = engine.rules.order, engine.clock, engine.retained
            states = engine.rules.savepoint()
            inner = None
            for place, (kind, x, y) in enumerate(between):
                if place == width:
                    inner = engine.rules.savepoint(), engine.rules.order
                encode = engine.graph.terms.encode
                ids = [tuple(map(encode, t)) for t in triples(kind, f"<ex:{x}>", f"<ex:{y}>", 99)]
                engine.rules.take(make_events([ids], [now + place // 3]), 1)
                if place % 4 == 3:
                    engine.rules.retract(data.draw(st.integers(0, engine.rules.order)))
            if inner is not None and data.draw(st.booleans()):
                engine.rules.rollback(*inner)
            engine.rules.rollback(states, order)
            assert engine.retained == kept
            engine.rules.begin()
        happens(engine, history, times, at, 14)
        engine.advance(60)
        engines.append((seen(engine, before), engine.retained, engine.max_retained))
    assert engines[0] == engines[1]


@pytest.mark.parametrize("rounds", [2, 30])
def test_events_after_a_loop_stand_in_line_with_those_before_it(rounds):
    """Of the same key, so that they are in one list; with 30 rounds there is no room for all."""
    graph = LiveGraph()
    running = run(
        "PREFIX : <http://example.org/> EVENT A(?x, ?n) AS { ?n :a ?x }\n"
        "EVENT B(?x) AS { ?n :b ?x } EVENT Spin(?x) AS { ?n :spin ?x }\n"
        "RULE Pair WHEN EVENT a = A(?x, ?n) EVENT b = B(?x) AFTER[0,9] a THEN INSERT { ?n :ok 1 }\n"
        "RULE Round ON Spin(?x) THEN EMIT :s { [] :a ?x } ; EMIT :s { [] :spin ?x }",
        graph,
        max_firings=rounds,
    )
    for time, (kind, name) in enumerate([("a", "n0"), ("spin", "n1"), ("a", "n2"), ("b", "n3")]):
        given = [(iri(name), iri(kind), iri("u"))]
        if kind == "spin":
            with pytest.raises(GraphtideError, match="without end: Round"):
                graph.publish(given, time=time)
            assert running.retained == 1
        else:
            graph.publish(given, time=time)
    assert [str(f.values["n"]) for f in running.firings()] == [iri("n0"), iri("n2")]


PROGRAM = """
PREFIX : <http://example.org/>
EVENT A(?x, ?n) AS { ?n :a ?x }
EVENT B(?x, ?n) AS { ?n :b ?x }
EVENT Spin(?x)  AS { ?n :spin ?x }
RULE Pair      WHEN FACT { ?x :on ?y } EVENT a = A(?x, ?m) EVENT b = B(?x, ?n) AFTER[0,3] a
               THEN INSERT { ?m :then ?n }
RULE Twice     PRIORITY 1 WHEN EVENT a = A(?x, ?m) EVENT b = A(?x, ?n) AFTER[0,2] a THEN RETRACT a
RULE Stop      WHEN EVENT b = B(?x, ?m) EVENT c = B(?x, ?n) AFTER[1,2] b
               THEN DELETE { ?x :on true } ; INSERT { ?m :stopped ?x }
RULE Lonely    WHEN FACT { ?x :on ?y } EVENT a = A(?x, ?m) NO EVENT b = B(?x, ?n) AFTER[0,2] a
               THEN INSERT { ?m :lonely ?x }
PATTERN Both(?x) AS (A(?x, _) -> B(?x, _) -> A(?x, _)) WITHIN 5000ms
RULE Seen      ON Both(?x) THEN INSERT { ?x :both true } ; DELETE { ?x :on true }
"""
LOOP = """
EVENT Turn(?x) AS { ?n :turn ?x }
RULE Round ON Spin(?x) THEN DELETE { ?x :on true } ; INSERT { ?x :turned true } ;
     EMIT :s { [] :a ?x } ; EMIT :s { [] :b ?x } ; EMIT :s { [] :turn ?x } ; EMIT :s { [] :spin ?x }
RULE Undo  ON Turn(?x) THEN INSERT { ?x :on true }
"""
steps = st.lists(
    st.tuples(
        st.sampled_from(["a", "a", "b", "b", "spin"]), st.sampled_from("uv"),
        st.sampled_from((0, 0, 1, 2)),
    ),
    max_size=16,
)  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(steps)
def test_a_program_goes_on_as_if_a_loop_had_not_been(history):
    """Once with rules that go round at each spin, and once without them."""
    results = []
    for loops in (False, True):
        graph = LiveGraph(tick_ms=1000)
        running = run(PROGRAM + (LOOP if loops else ""), graph, max_firings=40)
        graph.update(f"INSERT DATA {{ {iri('u')} {iri('on')} true }}")
        time = 0
        for number, (kind, x, gap) in enumerate(history):
            time += gap
            given = [(iri(f"n{number}"), iri(kind), iri(x))]
            if loops and kind == "spin":
                with pytest.raises(GraphtideError, match="without end"):
                    graph.publish(given, time=time)
            else:
                graph.publish(given, time=time)
        graph.advance(time + 10)
        fired = [(f.rule, f.time, f.number, f.values, f.events) for f in running.firings()]
        quads = sorted(" ".join(map(str, quad)) for quad in graph.quads())
        results.append((fired, quads, running.matches("Both"), running.fired))
    assert results[0] == results[1]


@settings(deadline=None, max_examples=80)
@given(
    pattern=declarations(), stream=streams(), other=streams(), at=st.integers(0, 9),
    least=st.integers(0, 5),
)  # fmt: skip
def test_tokens_come_back(pattern, stream, other, at, least):
    """Marks at every event, and once a way that leads nowhere: the definitions see none of it."""
    graph = LiveGraph(tick_ms=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(token_history, "MIN_HISTORY", least)
        running = run(program_of(pattern), graph)
        for place, (name, values, time) in enumerate(stream):
            running._detection.protect()
            marks = running._detection.savepoint()
            if place == at:
                for kind, given_values, later in other:
                    one = make_events([event_ids(graph, kind, given_values)], [time + later])
                    running._detection.expand(one, 0, ())
                    running._detection.pass_time(time + later)
                running._detection.rollback(marks)
            publish(running, make_events([event_ids(graph, name, values)], [time]))
        running.advance(1000)
    oracle = EventOracle(pattern)
    expected = [each for each_event in stream for each in oracle.step(*each_event)]
    expected += oracle.advance(1000)
    wanted = [([f"<http://example.org/v{v}>" for v in each.values], each.time) for each in expected]
    got = [([*map(str, e.values.values())], e.time) for e in running.matches("p")]
    assert sorted(got) == sorted(wanted)
